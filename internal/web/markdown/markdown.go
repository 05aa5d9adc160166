// Package markdown renders foreign markdown for a page, so that nothing in it can reach out
// of its place there.
//
// It takes CommonMark with the tables, the struck out and the ticked of GitHub's dialect,
// and writes tags of its own alone: what it does not know is text. It is its own because
// each library that is kept up compiles expressions when a program starts, which was a
// quarter of what the start of every command cost; the tests compare it with one of them.
//
// It owns no file, writes none and takes no lock.
package markdown

import (
	"html/template"
	"net/url"
	"strconv"
	"strings"
)

// most is how many bytes of a text is rendered; what is longer is shown as it is.
const most = 512 << 10

// headingsFrom is the level that a text's first headings get on a page, whose own are
// above them.
const headingsFrom = 3

// HTML renders foreign markdown. HTML in it is shown as text, an image as a link to
// it, and a link leads to a web page or a mail address or nowhere. Footnotes, identifiers
// and attributes are not understood, so that nothing can take the name of a part of the
// page.
func HTML(src string) template.HTML {
	if len(src) > most {
		return template.HTML("<pre>" + template.HTMLEscapeString(src) + "</pre>")
	}
	doc, links := parse(src)
	r := page{links: links}
	r.parts(doc, false)
	return template.HTML(r.String())
}

// page writes blocks for a page.
type page struct {
	strings.Builder
	links  *links
	above  []int // levels in the text of the headings that the next one may belong to
	filled int   // cells of tables that a text has not
}

func (r *page) write(s ...string) {
	for _, s := range s {
		r.WriteString(s)
	}
}

// parts writes what lies in a block; where it is an item of a list without room, its text
// is no paragraph of its own.
func (r *page) parts(b *block, tight bool) {
	for i, p := range b.parts {
		switch p.kind {
		case quote:
			r.write("<blockquote>\n")
			r.parts(p, false)
			r.write("</blockquote>\n")
		case list:
			r.list(p)
		case heading:
			n := strconv.Itoa(r.level(p.level))
			r.write("<h", n, ">", inline(strings.Join(p.lines, "\n"), r.links), "</h", n, ">\n")
		case code:
			// It can be scrolled by the keyboard, for its lines may be wider than the page.
			r.write(`<pre tabindex="0"><code>`)
			for _, s := range p.lines {
				r.write(escape(s), "\n")
			}
			r.write("</code></pre>\n")
		case rule:
			r.write("<hr>\n")
		case paragraph:
			r.paragraph(p, tight, b.kind == item && i == 0, i == len(b.parts)-1)
		}
	}
}

// level puts a text's headings below the page's, each one level below the heading that it
// belongs to: who has a page read aloud goes from level to level, and one that a text has
// left out would seem to be missing.
func (r *page) level(l int) int {
	for len(r.above) > 0 && r.above[len(r.above)-1] >= l {
		r.above = r.above[:len(r.above)-1]
	}
	r.above = append(r.above, l)
	return min(headingsFrom-1+len(r.above), 6)
}

func (r *page) list(b *block) {
	tag := "ul"
	if b.mark == '.' || b.mark == ')' {
		tag = "ol"
	}
	r.write("<", tag)
	if tag == "ol" && b.start != 1 {
		r.write(` start="`, strconv.Itoa(b.start), `"`)
	}
	r.write(">\n")
	for _, it := range b.parts {
		r.write("<li>")
		if len(it.parts) > 0 && (b.loose || it.parts[0].kind != paragraph) {
			r.write("\n")
		}
		r.parts(it, !b.loose)
		r.write("</li>\n")
	}
	r.write("</", tag, ">\n")
}

// paragraph writes text, and the table that may stand at its end. The first one of an item
// may be ticked.
func (r *page) paragraph(b *block, tight, first, last bool) {
	lines, t := split(b.lines)
	if len(lines) > 0 {
		text, box := strings.Join(lines, "\n"), ""
		if first {
			text, box = ticked(text)
		}
		text = box + inline(text, r.links)
		switch {
		case !tight:
			r.write("<p>", text, "</p>\n")
		case last && t == nil:
			r.write(text)
		default:
			r.write(text, "\n")
		}
	}
	if t != nil {
		r.table(t)
	}
}

// ticked takes the box off a text that begins with one.
func ticked(s string) (text, box string) {
	if len(s) < 4 || s[0] != '[' || s[2] != ']' || s[3] != ' ' && s[3] != '\t' {
		return s, ""
	}
	switch s[1] {
	case 'x', 'X':
		box = `<input checked="" disabled="" type="checkbox"> `
	case ' ':
		box = `<input disabled="" type="checkbox"> `
	default:
		return s, ""
	}
	return strings.TrimLeft(s[4:], " \t\n"), box
}

// target is where a link may lead, "" where it may lead nowhere: a page of this server
// would look as if it were ours to send people to.
func target(dest string) string {
	u, err := url.Parse(strings.TrimSpace(dest))
	if err != nil || u.User != nil {
		return ""
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		if u.Host != "" {
			return u.String()
		}
	case "mailto":
		return u.String()
	}
	return ""
}

func opening(dest string) string {
	if to := target(dest); to != "" {
		return `<a rel="noopener noreferrer nofollow" href="` + template.HTMLEscapeString(to) + `">`
	}
	return `<span class="nolink" title="` + template.HTMLEscapeString(dest) + `">`
}

func closing(dest string) string {
	if target(dest) != "" {
		return "</a>"
	}
	return "</span>"
}

// escapes are what would be more than text on a page.
var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

func escape(s string) string { return escapes.Replace(s) }
