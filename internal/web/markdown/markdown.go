// Package markdown renders foreign markdown for a page, so that nothing in it can reach out
// of its place there.
//
// It owns no file, writes none and takes no lock.
package markdown

import (
	"bytes"
	"html/template"
	"net/url"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
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
	p := goldmark.New(
		goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList),
		goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(headings{}, 500))),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(safe{}, 100))),
	)
	var b bytes.Buffer
	if err := p.Convert([]byte(src), &b); err != nil {
		return template.HTML("<pre>" + template.HTMLEscapeString(src) + "</pre>")
	}
	return template.HTML(b.String())
}

// headings puts a text's headings below the page's, each one level below the heading that it
// belongs to: who has a page read aloud goes from level to level, and one that a text has
// left out would seem to be missing.
type headings struct{}

func (headings) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	var above []int // levels in the text of the headings that the next one may belong to
	_ = ast.Walk(doc, func(n ast.Node, in bool) (ast.WalkStatus, error) {
		if h, ok := n.(*ast.Heading); ok && in {
			for len(above) > 0 && above[len(above)-1] >= h.Level {
				above = above[:len(above)-1]
			}
			above = append(above, h.Level)
			h.Level = min(headingsFrom-1+len(above), 6)
		}
		return ast.WalkContinue, nil
	})
}

// safe renders what could reach out of a text.
type safe struct{}

func (s safe) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindRawHTML, s.rawHTML)
	r.Register(ast.KindHTMLBlock, s.htmlBlock)
	r.Register(ast.KindLink, s.link)
	r.Register(ast.KindAutoLink, s.autoLink)
	r.Register(ast.KindImage, s.image)
	r.Register(ast.KindFencedCodeBlock, s.code)
	r.Register(ast.KindCodeBlock, s.code)
}

func (safe) rawHTML(w util.BufWriter, src []byte, n ast.Node, in bool) (ast.WalkStatus, error) {
	if in {
		lines := n.(*ast.RawHTML).Segments
		for i := range lines.Len() {
			at := lines.At(i)
			_, _ = w.Write(util.EscapeHTML(at.Value(src)))
		}
	}
	return ast.WalkSkipChildren, nil
}

func (safe) htmlBlock(w util.BufWriter, src []byte, n ast.Node, in bool) (ast.WalkStatus, error) {
	b := n.(*ast.HTMLBlock)
	if !in {
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString("<pre>")
	lines := b.Lines()
	for i := range lines.Len() {
		at := lines.At(i)
		_, _ = w.Write(util.EscapeHTML(at.Value(src)))
	}
	if b.HasClosure() {
		_, _ = w.Write(util.EscapeHTML(b.ClosureLine.Value(src)))
	}
	_, _ = w.WriteString("</pre>\n")
	return ast.WalkContinue, nil
}

// target is where a link may lead, "" where it may lead nowhere: a page of this server
// would look as if it were ours to send people to.
func target(dest []byte) string {
	u, err := url.Parse(strings.TrimSpace(string(dest)))
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

func openLink(w util.BufWriter, dest []byte) {
	if to := target(dest); to != "" {
		_, _ = w.WriteString(`<a rel="noopener noreferrer nofollow" href="` + template.HTMLEscapeString(to) + `">`)
		return
	}
	_, _ = w.WriteString(`<span class="nolink" title="` + template.HTMLEscapeString(string(dest)) + `">`)
}

func closeLink(w util.BufWriter, dest []byte) {
	if target(dest) != "" {
		_, _ = w.WriteString("</a>")
		return
	}
	_, _ = w.WriteString("</span>")
}

func (safe) link(w util.BufWriter, _ []byte, n ast.Node, in bool) (ast.WalkStatus, error) {
	l := n.(*ast.Link)
	if in {
		openLink(w, l.Destination)
	} else {
		closeLink(w, l.Destination)
	}
	return ast.WalkContinue, nil
}

func (safe) autoLink(w util.BufWriter, src []byte, n ast.Node, in bool) (ast.WalkStatus, error) {
	if !in {
		return ast.WalkContinue, nil
	}
	l := n.(*ast.AutoLink)
	dest := l.URL(src)
	if l.AutoLinkType == ast.AutoLinkEmail && !bytes.HasPrefix(bytes.ToLower(dest), []byte("mailto:")) {
		dest = append([]byte("mailto:"), dest...)
	}
	openLink(w, dest)
	_, _ = w.Write(util.EscapeHTML(l.Label(src)))
	closeLink(w, dest)
	return ast.WalkContinue, nil
}

// image names an image and links to it: to load it would tell its server who reads.
func (safe) image(w util.BufWriter, _ []byte, n ast.Node, in bool) (ast.WalkStatus, error) {
	i := n.(*ast.Image)
	if in {
		openLink(w, i.Destination)
		_, _ = w.WriteString("[image: ")
	} else {
		_, _ = w.WriteString("]")
		closeLink(w, i.Destination)
	}
	return ast.WalkContinue, nil
}

// code is a block that can be scrolled by the keyboard, for its lines may be wider than
// the page.
func (safe) code(w util.BufWriter, src []byte, n ast.Node, in bool) (ast.WalkStatus, error) {
	if !in {
		_, _ = w.WriteString("</code></pre>\n")
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString(`<pre tabindex="0"><code>`)
	lines := n.Lines()
	for i := range lines.Len() {
		at := lines.At(i)
		html.DefaultWriter.RawWrite(w, at.Value(src))
	}
	return ast.WalkContinue, nil
}
