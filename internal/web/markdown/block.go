package markdown

import "strings"

// kind is what a block of a text is.
type kind int

const (
	document kind = iota
	quote
	list
	item
	paragraph
	heading
	code
	rule
	nothing // a paragraph of definitions alone
)

// deepest is how many blocks may lie within each other; what lies deeper is text of the
// one that it would lie in.
const deepest = 64

// block is one part of a text, with those that lie within it.
type block struct {
	kind  kind
	parts []*block
	lines []string // paragraph, heading, code: what stands in it
	level int      // of a heading

	fence byte // of code: what opened it, 0 where it is indented
	size  int  // how long that was
	inset int  // code: how far it was set in; item: how far what belongs to it is

	mark  byte // list, item: - + * . or )
	start int  // of a list with numbers
	loose bool // of a list: there is room between its items

	table bool // of a paragraph: a table is at its end
	blank bool // its last line was blank
}

// cursor is how far a line has been read, in bytes and in columns. Of a tab, which is as
// wide as it takes to the next fourth column, a part may have been read.
type cursor struct {
	s       string
	at, col int
	within  bool // a part of the tab at `at` was read
}

// next is where the first thing that is no space stands, and how many columns on.
func (c *cursor) next() (at, indent int) {
	col := c.col
	for at = c.at; at < len(c.s); at++ {
		switch c.s[at] {
		case ' ':
			col++
		case '\t':
			col += 4 - col%4
		default:
			return at, col - c.col
		}
	}
	return at, col - c.col
}

func (c *cursor) isBlank() bool { at, _ := c.next(); return at == len(c.s) }

// spaces reads so many columns of white space at most.
func (c *cursor) spaces(n int) {
	for ; n > 0 && c.at < len(c.s); n-- {
		switch c.s[c.at] {
		case ' ':
			c.at++
			c.col++
		case '\t':
			c.col++
			if c.within = c.col%4 != 0; !c.within {
				c.at++
			}
		default:
			return
		}
	}
}

// skip reads so many bytes, and all white space before them.
func (c *cursor) skip(n int) {
	_, indent := c.next()
	c.spaces(indent)
	c.at += n
	c.col += n
}

// rest is what has not been read.
func (c *cursor) rest() string {
	if c.within {
		return strings.Repeat(" ", 4-c.col%4) + c.s[c.at+1:]
	}
	return c.s[c.at:]
}

// reading takes a text apart, line by line.
type reading struct {
	open  []*block // each within the one before it
	links *links
}

// parse is a text as blocks. Of what CommonMark and GitHub's dialect of it have, it
// leaves out blocks of HTML: HTML is text here.
func parse(src string) (*block, *links) {
	p := &reading{open: []*block{{kind: document}}, links: &links{to: map[string]string{}, left: mostExpanded}}
	src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	src = strings.ReplaceAll(src, "\x00", "\uFFFD")
	for s := range strings.SplitSeq(strings.TrimSuffix(src, "\n"), "\n") {
		p.line(s)
	}
	doc := p.open[0]
	p.close(0)
	return doc, p.links
}

func (p *reading) tip() *block { return p.open[len(p.open)-1] }

// close ends the blocks from the one at that depth on.
func (p *reading) close(depth int) {
	for len(p.open) > depth {
		b := p.tip()
		p.open = p.open[:len(p.open)-1]
		switch b.kind {
		case paragraph:
			p.define(b)
		case code:
			for b.fence == 0 && len(b.lines) > 0 && strings.Trim(b.lines[len(b.lines)-1], " \t") == "" {
				b.lines = b.lines[:len(b.lines)-1]
			}
		case list:
			b.loose = isLoose(b)
		}
	}
}

// isLoose says whether between the items of a list, or between what stands in one, there
// is a blank line.
func isLoose(b *block) bool {
	for i, it := range b.parts {
		last := i == len(b.parts)-1
		if !last && endsBlank(it) {
			return true
		}
		for j, sub := range it.parts {
			if (!last || j < len(it.parts)-1) && endsBlank(sub) {
				return true
			}
		}
	}
	return false
}

func endsBlank(b *block) bool {
	for !b.blank {
		if b.kind != list && b.kind != item || len(b.parts) == 0 {
			return false
		}
		b = b.parts[len(b.parts)-1]
	}
	return true
}

// add puts a block into the one at that depth, or the nearest above that holds blocks.
func (p *reading) add(depth int, b *block) {
	for k := p.open[depth].kind; k == paragraph || k == list && b.kind != item; k = p.open[depth].kind {
		depth--
	}
	p.close(depth + 1)
	p.tip().parts = append(p.tip().parts, b)
	p.open = append(p.open, b)
}

func (p *reading) line(s string) {
	c := &cursor{s: s}
	depth := 0 // of the deepest block that goes on
	for depth+1 < len(p.open) {
		on, ended := p.open[depth+1].goesOn(c)
		if ended {
			p.close(depth + 1)
			return
		}
		if !on {
			break
		}
		depth++
	}
	whole := depth == len(p.open)-1
	for p.open[depth].kind != code && p.begins(c, depth) {
		depth, whole = len(p.open)-1, true
		if k := p.tip().kind; k == heading || k == rule {
			p.blankLines(false)
			return
		}
	}
	blank := c.isBlank()
	if !whole && !blank && p.tip().kind == paragraph {
		p.write(c) // a line that was not set in as it might have been
		return
	}
	p.close(depth + 1)
	b := p.tip()
	if blank && len(b.parts) > 0 {
		b.parts[len(b.parts)-1].blank = true
	}
	fresh := b.kind == item && len(b.parts) == 0
	p.blankLines(blank && b.kind != quote && !(b.kind == code && b.fence != 0) && !fresh)
	switch {
	case b.kind == code:
		if b.fence != 0 && b.size < 0 { // the line that opened it
			b.size = -b.size
			return
		}
		b.lines = append(b.lines, c.rest())
	case b.kind == paragraph && !blank:
		p.write(c)
	case !blank:
		p.add(depth, &block{kind: paragraph})
		p.write(c)
	}
}

// write adds what is left of a line to the paragraph that is open.
func (p *reading) write(c *cursor) {
	b, s := p.tip(), strings.TrimLeft(c.rest(), " \t")
	b.table = b.table || len(b.lines) > 0 && isTable(b.lines[len(b.lines)-1], s)
	b.lines = append(b.lines, s)
}

// blankLines notes of all blocks that are open whether their last line was blank.
func (p *reading) blankLines(is bool) {
	for _, b := range p.open {
		b.blank = is
	}
}

// goesOn says whether a line belongs to a block that it began, and reads what says so.
// Code ends with a line of its own.
func (b *block) goesOn(c *cursor) (on, ended bool) {
	at, indent := c.next()
	blank := at == len(c.s)
	switch b.kind {
	case quote:
		if indent > 3 || blank || c.s[at] != '>' {
			return false, false
		}
		c.skip(1)
		c.spaces(1)
		return true, false
	case list:
		return true, false
	case item:
		switch {
		case blank && len(b.parts) > 0:
			c.spaces(indent)
			return true, false
		case !blank && indent >= b.inset:
			c.spaces(b.inset)
			return true, false
		}
		return false, false
	case code:
		switch {
		case b.fence != 0:
			if indent <= 3 && isFenceEnd(c.s[at:], b.fence, b.size) {
				return false, true
			}
			c.spaces(b.inset)
		case indent >= 4:
			c.spaces(4)
		case blank:
			c.spaces(indent)
		default:
			return false, false
		}
		return true, false
	case paragraph:
		return !blank, false
	}
	return false, false
}

func isFenceEnd(s string, fence byte, size int) bool {
	n := run(s, fence)
	return n >= size && strings.Trim(s[n:], " \t") == ""
}

// run is how often a byte stands at the beginning of a text.
func run(s string, c byte) int {
	n := 0
	for n < len(s) && s[n] == c {
		n++
	}
	return n
}

// begins opens a block that a line begins in the one at that depth, and reads what says so.
func (p *reading) begins(c *cursor, depth int) bool {
	at, indent := c.next()
	if at == len(c.s) {
		return false
	}
	in, s := p.open[depth], c.s[at:]
	if indent > 3 {
		if p.tip().kind == paragraph {
			return false
		}
		c.spaces(4)
		p.add(depth, &block{kind: code})
		return true
	}
	if s[0] == '>' && depth < deepest {
		c.skip(1)
		c.spaces(1)
		p.add(depth, &block{kind: quote})
		return true
	}
	if n := run(s, '#'); n > 0 && n <= 6 && (n == len(s) || s[n] == ' ' || s[n] == '\t') {
		text := strings.Trim(s[n:], " \t")
		if cut := strings.TrimRight(text, "#"); cut == "" || strings.HasSuffix(cut, " ") || strings.HasSuffix(cut, "\t") {
			text = strings.TrimRight(cut, " \t")
		}
		p.add(depth, &block{kind: heading, level: n, lines: []string{text}})
		return true
	}
	if n := run(s, s[0]); n >= 3 && (s[0] == '~' || s[0] == '`' && !strings.Contains(s[n:], "`")) {
		p.add(depth, &block{kind: code, fence: s[0], size: -n, inset: indent})
		return true
	}
	if line := strings.TrimRight(s, " \t"); in.kind == paragraph && !in.table && (s[0] == '=' || s[0] == '-') && run(line, s[0]) == len(line) {
		if p.define(in); in.kind == paragraph {
			in.kind, in.level = heading, 1
			if s[0] == '-' {
				in.level = 2
			}
			in.lines[len(in.lines)-1] = strings.TrimRight(in.lines[len(in.lines)-1], " \t")
			p.close(depth + 1)
			return true
		}
		in.kind, in.lines = paragraph, nil // it had definitions alone, and this line begins it anew
	}
	if isRule(s) {
		p.add(depth, &block{kind: rule})
		return true
	}
	return depth < deepest && p.beginsItem(c, depth)
}

func isRule(s string) bool {
	if s[0] != '*' && s[0] != '-' && s[0] != '_' {
		return false
	}
	n := 0
	for i := range len(s) {
		switch s[i] {
		case s[0]:
			n++
		case ' ', '\t':
		default:
			return false
		}
	}
	return n >= 3
}

// beginsItem opens an item, and its list where it is the first of one.
func (p *reading) beginsItem(c *cursor, depth int) bool {
	at, indent := c.next()
	s := c.s[at:]
	mark, width, start := s[0], 1, 0
	switch {
	case mark == '-' || mark == '+' || mark == '*':
	case mark >= '0' && mark <= '9':
		for width = 0; width < len(s) && width < 10 && s[width] >= '0' && s[width] <= '9'; width++ {
			start = start*10 + int(s[width]-'0')
		}
		if width == 10 || width == len(s) || s[width] != '.' && s[width] != ')' {
			return false
		}
		mark = s[width]
		width++
	default:
		return false
	}
	if width < len(s) && s[width] != ' ' && s[width] != '\t' {
		return false
	}
	in := p.open[depth]
	empty := strings.Trim(s[width:], " \t") == ""
	if in.kind == paragraph && (empty || start != 1 && (mark == '.' || mark == ')')) {
		return false
	}
	c.skip(width)
	_, room := c.next()
	if empty || room > 4 {
		room = 1
	}
	c.spaces(room)
	if in.kind == paragraph {
		depth--
		in = p.open[depth]
	}
	if in.kind != list || in.mark != mark {
		p.add(depth, &block{kind: list, mark: mark, start: start})
		depth = len(p.open) - 1
	}
	p.add(depth, &block{kind: item, mark: mark, inset: indent + width + room})
	return true
}

// define takes the definitions of links out of the beginning of a paragraph.
func (p *reading) define(b *block) {
	if len(b.lines) == 0 {
		b.kind = nothing
		return
	}
	if b.lines[0] == "" || b.lines[0][0] != '[' {
		return
	}
	text := strings.Join(b.lines, "\n")
	for strings.HasPrefix(text, "[") {
		name, to, n := definition(text)
		if n == 0 {
			break
		}
		if _, there := p.links.to[name]; !there {
			p.links.to[name] = to
		}
		text = text[n:]
	}
	if b.lines = strings.Split(text, "\n"); text == "" {
		b.kind, b.lines = nothing, nil
	}
}

// definition is one definition of a link at the beginning of a text, and how long it is; 0
// where there is none.
func definition(s string) (name, to string, n int) {
	end := labelEnd(s, 1)
	if end < 0 || end+1 >= len(s) || s[end+1] != ':' {
		return "", "", 0
	}
	if name = label(s[1:end]); name == "" {
		return "", "", 0
	}
	at := white(s, end+2)
	to, after := destination(s, at)
	if after < 0 {
		return "", "", 0
	}
	// With a title, on the same line or the next; without one where that is none.
	if t := white(s, after); t > after {
		if e := titleEnd(s, t); e > 0 {
			if n := lineEnd(s, e); n > 0 {
				return name, to, n
			}
		}
	}
	return name, to, lineEnd(s, after)
}

// lineEnd is where the next line begins, where nothing but white space is before it; 0
// where there is more.
func lineEnd(s string, at int) int {
	for at < len(s) && (s[at] == ' ' || s[at] == '\t') {
		at++
	}
	switch {
	case at == len(s):
		return at
	case s[at] == '\n':
		return at + 1
	}
	return 0
}
