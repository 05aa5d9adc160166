package mdfile

import (
	"bytes"
	"strings"
)

// Section is a heading and what follows it, up to the next heading of any
// level. What precedes the first heading is a section of level 0.
type Section struct {
	Level      int      // 1–6; 0 = before the first heading
	Heading    string   // text of the heading, markup kept
	Path       []string // headings from the outermost to this one
	Line       int      // of the heading, from 1, in the whole file
	Start, End int      // bytes in the whole file, heading included
	Text       int      // first byte after the heading
}

// Sections splits the body. Headings are ATX and setext ones at the top level;
// those in fenced or indented code, in HTML comments and in quotes are not.
// A section of level 0 is left out when it has nothing but blank lines.
func (f *File) Sections() []Section {
	var out []Section
	cur := Section{Start: f.body, Text: f.body, Line: CountLines(f.src[:f.body]) + 1}
	var stack []Section
	push := func(end int) {
		cur.End = end
		if cur.Level > 0 || len(bytes.TrimSpace(f.src[cur.Start:end])) > 0 {
			out = append(out, cur)
		}
	}
	f.headings(func(level int, text string, lineNo, start, next int) {
		push(start)
		for len(stack) > 0 && stack[len(stack)-1].Level >= level {
			stack = stack[:len(stack)-1]
		}
		cur = Section{Level: level, Heading: text, Line: lineNo, Start: start, Text: next}
		for _, s := range stack {
			cur.Path = append(cur.Path, s.Heading)
		}
		cur.Path = append(cur.Path, text)
		stack = append(stack, cur)
	})
	push(len(f.src))
	return out
}

// headings walks the lines of the body and reports each heading.
func (f *File) headings(report func(level int, text string, lineNo, start, next int)) {
	var (
		fence   []byte // open code fence
		until   string // end of an open HTML block, lower case
		para    = -1   // start of an open paragraph
		paraNo  int
		lineNo  = CountLines(f.src[:f.body])
		isPara  bool
		endPara = func() { para = -1 }
	)
	for l := range lines(f.src, f.body) {
		lineNo++
		text := f.src[l.start:l.end]
		indent, rest := splitIndent(text)
		switch {
		case fence != nil:
			if indent < 4 && closesFence(rest, fence) {
				fence = nil
			}
			continue
		case until != "":
			if strings.Contains(strings.ToLower(string(text)), until) {
				until = ""
			}
			continue
		case len(bytes.TrimSpace(text)) == 0:
			endPara()
			continue
		case indent >= 4: // code, or a paragraph that goes on
			continue
		}
		if fc := opensFence(rest); fc != nil {
			fence = fc
			endPara()
			continue
		}
		if u := opensHTML(rest); u != "" {
			if !strings.Contains(strings.ToLower(string(rest[2:])), u) {
				until = u
			}
			endPara()
			continue
		}
		if level, head := atx(rest); level > 0 {
			report(level, head, lineNo, l.start, l.next)
			endPara()
			continue
		}
		if para >= 0 {
			if level := setext(rest); level > 0 {
				report(level, joinLines(f.src[para:l.start]), paraNo, para, l.next)
				endPara()
				continue
			}
		}
		isPara = !startsBlock(rest)
		if !isPara {
			endPara()
		} else if para < 0 {
			para, paraNo = l.start, lineNo
		}
	}
}

func splitIndent(b []byte) (int, []byte) {
	n := 0
	for i, c := range b {
		switch c {
		case ' ':
			n++
		case '\t':
			n += 4 - n%4
		default:
			return n, b[i:]
		}
	}
	return n, nil
}

func opensFence(b []byte) []byte {
	if len(b) < 3 || (b[0] != '`' && b[0] != '~') {
		return nil
	}
	n := 0
	for n < len(b) && b[n] == b[0] {
		n++
	}
	if n < 3 || (b[0] == '`' && bytes.IndexByte(b[n:], '`') >= 0) {
		return nil
	}
	return b[:n]
}

func closesFence(b, fence []byte) bool {
	n := 0
	for n < len(b) && b[n] == fence[0] {
		n++
	}
	return n >= len(fence) && len(bytes.TrimSpace(b[n:])) == 0
}

// opensHTML gives what ends the HTML block that b starts: the kinds that may
// hold blank lines and lines that look like headings.
func opensHTML(b []byte) string {
	if len(b) < 4 || b[0] != '<' {
		return ""
	}
	if bytes.HasPrefix(b, []byte("<!--")) {
		return "-->"
	}
	low := strings.ToLower(string(b[1:min(len(b), 12)]))
	for _, tag := range []string{"pre", "script", "style", "textarea"} {
		if strings.HasPrefix(low, tag) && (len(low) == len(tag) || strings.IndexByte(" \t>", low[len(tag)]) >= 0) {
			return "</" + tag + ">"
		}
	}
	return ""
}

func atx(b []byte) (int, string) {
	n := 0
	for n < len(b) && b[n] == '#' {
		n++
	}
	if n == 0 || n > 6 || (n < len(b) && b[n] != ' ' && b[n] != '\t') {
		return 0, ""
	}
	t := bytes.TrimSpace(b[n:])
	if c := bytes.TrimRight(t, "#"); len(c) < len(t) && (len(c) == 0 || c[len(c)-1] == ' ' || c[len(c)-1] == '\t') {
		t = bytes.TrimSpace(c)
	}
	return n, string(t)
}

func setext(b []byte) int {
	b = trimRight(b)
	if len(b) == 0 || (b[0] != '=' && b[0] != '-') {
		return 0
	}
	for _, c := range b {
		if c != b[0] {
			return 0
		}
	}
	if b[0] == '=' {
		return 1
	}
	return 2
}

// startsBlock says that a line is no paragraph text: quote, list item, table
// row or thematic break.
func startsBlock(b []byte) bool {
	switch c := b[0]; {
	case c == '>', c == '|':
		return true
	case c == '-' || c == '+' || c == '*':
		if len(b) == 1 || b[1] == ' ' || b[1] == '\t' {
			return true
		}
		return isBreak(b)
	case c == '_':
		return isBreak(b)
	case c >= '0' && c <= '9':
		n := 0
		for n < len(b) && b[n] >= '0' && b[n] <= '9' {
			n++
		}
		return n < 10 && n < len(b) && (b[n] == '.' || b[n] == ')') && (n+1 == len(b) || b[n+1] == ' ')
	}
	return false
}

func isBreak(b []byte) bool {
	n := 0
	for _, c := range b {
		switch c {
		case b[0]:
			n++
		case ' ', '\t':
		default:
			return false
		}
	}
	return n >= 3
}

func joinLines(b []byte) string {
	return strings.Join(strings.Fields(string(b)), " ")
}
