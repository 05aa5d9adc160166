package markdown

import (
	"html"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What a link consists of is looked for so far at most, in bytes, so that a text of
// nothing but beginnings of links takes no longer than another.
const (
	longestLabel  = 999
	longestTarget = 4096
)

// longestRun is how many marks may stand side by side and still be more than text.
const longestRun = 64

// mostExpanded is how many bytes the names of links may come to in all: one name that is
// used again and again is shorter than where it leads.
const mostExpanded = 1 << 20

// links are where names of links lead, and how much of that may still be written.
type links struct {
	to   map[string]string
	left int
}

// piece is a part of a line: what is ready for the page, or a run of marks, which may come
// to be the ends of emphasis.
type piece struct {
	html          string
	mark          byte // * _ ~, 0 where it is ready
	size, left    int  // how many marks there were, how many are still marks
	opens, closes bool
	ends, begun   []string // the tags that marks came to: before those that are left, and after them, from the inside out
	image         bool
}

// bracket is a [ that a link may begin with.
type bracket struct {
	piece, marks int // where it stands among pieces, and how many runs of marks are before it
	at           int // where what is in it begins
	image        bool
}

// spans makes the text of a paragraph, heading or cell ready for the page.
type spans struct {
	s        string
	at       int
	links    *links
	text     strings.Builder
	pieces   []piece
	marks    []int // pieces that are runs of marks and may still come to be something
	brackets []bracket
	used     int           // so many of them cannot begin a link any more, for one lies in them
	ticks    map[int][]int // where runs of so many backticks begin, those that were passed left out
}

// special is what means more than itself.
const special = "\\`*_~[]!<&\n"

func inline(s string, l *links) string {
	p := &spans{s: strings.TrimRight(s, " \t\n"), links: l}
	for p.at < len(p.s) {
		n := strings.IndexAny(p.s[p.at:], special)
		if n < 0 {
			n = len(p.s) - p.at
		}
		p.text.WriteString(p.s[p.at : p.at+n])
		if p.at += n; p.at < len(p.s) {
			p.one()
		}
	}
	p.flush()
	p.emphasise(0)
	var b strings.Builder
	for _, x := range p.pieces {
		for _, tag := range x.ends {
			b.WriteString(tag)
		}
		for range x.left {
			b.WriteByte(x.mark)
		}
		for _, tag := range slices.Backward(x.begun) {
			b.WriteString(tag)
		}
		b.WriteString(x.html)
	}
	return b.String()
}

// flush makes a piece of the text that was read.
func (p *spans) flush() {
	if p.text.Len() > 0 {
		p.pieces = append(p.pieces, piece{html: escape(p.text.String())})
		p.text.Reset()
	}
}

func (p *spans) ready(html string) {
	p.flush()
	p.pieces = append(p.pieces, piece{html: html})
}

// one reads what begins with something special.
func (p *spans) one() {
	rest := p.s[p.at:]
	switch c := rest[0]; c {
	case '\\':
		switch {
		case len(rest) > 1 && rest[1] == '\n':
			p.newline(true, 2)
		case len(rest) > 1 && isPunct(rune(rest[1])) && rest[1] < utf8.RuneSelf:
			p.text.WriteByte(rest[1])
			p.at += 2
		default:
			p.literal(1)
		}
	case '`':
		p.codeSpan()
	case '*', '_', '~':
		p.run(c)
	case '[':
		p.bracket(1)
	case '!':
		if strings.HasPrefix(rest, "![") {
			p.bracket(2)
		} else {
			p.literal(1)
		}
	case ']':
		p.link()
	case '<':
		p.autoLink()
	case '&':
		if text, n := entity(rest); n > 0 {
			p.text.WriteString(text)
			p.at += n
		} else {
			p.literal(1)
		}
	case '\n':
		p.newline(false, 1)
	}
}

func (p *spans) literal(n int) {
	p.text.WriteString(p.s[p.at : p.at+n])
	p.at += n
}

// newline ends a line: with a break where two spaces or a backslash ask for one.
func (p *spans) newline(hard bool, n int) {
	if was := p.text.String(); !hard {
		p.text.Reset()
		p.text.WriteString(strings.TrimRight(was, " \t"))
		hard = strings.HasSuffix(was, "  ")
	}
	if p.flush(); hard {
		p.ready("<br>")
	}
	p.ready("\n") // so that what is still text is of one line, and trimming it no more work than that
	p.at += n
}

func (p *spans) codeSpan() {
	if p.ticks == nil {
		p.ticks = map[int][]int{}
		for i := 0; i < len(p.s); {
			n := run(p.s[i:], '`')
			if n > 0 {
				p.ticks[n] = append(p.ticks[n], i)
			}
			i += n + 1
		}
	}
	n := run(p.s[p.at:], '`')
	from := p.at + n
	ends := p.ticks[n]
	for len(ends) > 0 && ends[0] < from {
		ends = ends[1:]
	}
	p.ticks[n] = ends
	if len(ends) == 0 {
		p.literal(n)
		return
	}
	text := strings.ReplaceAll(p.s[from:ends[0]], "\n", " ")
	if len(text) > 1 && text[0] == ' ' && text[len(text)-1] == ' ' && strings.Trim(text, " ") != "" {
		text = text[1 : len(text)-1]
	}
	p.ready("<code>" + escape(text) + "</code>")
	p.at = ends[0] + n
}

// run reads marks that may come to be ends of emphasis.
func (p *spans) run(c byte) {
	n := run(p.s[p.at:], c)
	before, _ := utf8.DecodeLastRuneInString(p.s[:p.at])
	after, _ := utf8.DecodeRuneInString(p.s[p.at+n:])
	if p.at == 0 {
		before = '\n'
	}
	if p.at+n == len(p.s) {
		after = '\n'
	}
	if c == '~' && n > 2 || n > longestRun {
		p.literal(n)
		return
	}
	left := !unicode.IsSpace(after) && (!isPunct(after) || unicode.IsSpace(before) || isPunct(before))
	right := !unicode.IsSpace(before) && (!isPunct(before) || unicode.IsSpace(after) || isPunct(after))
	x := piece{mark: c, size: n, left: n, opens: left, closes: right}
	if c == '_' {
		x.opens = left && (!right || isPunct(before))
		x.closes = right && (!left || isPunct(after))
	}
	p.flush()
	p.marks = append(p.marks, len(p.pieces))
	p.pieces = append(p.pieces, x)
	p.at += n
}

func isPunct(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) }

// emphasise finds what belongs together among the runs of marks from that one on, and
// forgets them.
func (p *spans) emphasise(from int) {
	d := p.marks[from:]
	type kind struct {
		mark  byte
		opens bool
		rest  int
	}
	floor := map[kind]int{} // what is below it cannot open for that kind
	prev := make([]int, len(d))
	last := -1 // the last one that is still looked at
	for i := range d {
		c := &p.pieces[d[i]]
		prev[i] = last
		for c.closes && c.left > 0 {
			k := kind{c.mark, c.opens, c.size % 3}
			if c.mark == '~' {
				k.rest = c.size
			}
			o := prev[i]
			for o >= floor[k] && !pairs(&p.pieces[d[o]], c) {
				o = prev[o]
			}
			if o < floor[k] {
				floor[k] = i
				break
			}
			match(&p.pieces[d[o]], c)
			if prev[i] = o; p.pieces[d[o]].left == 0 {
				prev[i] = prev[o]
			}
		}
		if last = i; c.left == 0 || !c.opens {
			last = prev[i]
		}
	}
	p.marks = p.marks[:from]
}

// pairs says whether a run of marks may open what another one closes.
func pairs(o, c *piece) bool {
	if o.mark != c.mark || !o.opens || o.left == 0 {
		return false
	}
	if c.mark == '~' {
		return o.size == c.size
	}
	return !(o.closes || c.opens) || (o.size+c.size)%3 != 0 || o.size%3 == 0
}

// match makes emphasis of the marks of two runs that are nearest to each other.
func match(o, c *piece) {
	tag, n := "em", 1
	switch {
	case c.mark == '~':
		tag, n = "del", c.size
	case o.left > 1 && c.left > 1:
		tag, n = "strong", 2
	}
	o.left -= n
	c.left -= n
	o.begun = append(o.begun, "<"+tag+">")
	c.ends = append(c.ends, "</"+tag+">")
}

func (p *spans) bracket(n int) {
	p.flush()
	p.brackets = append(p.brackets, bracket{piece: len(p.pieces), marks: len(p.marks), at: p.at + n, image: n == 2})
	p.ready(p.s[p.at : p.at+n])
	p.at += n
}

// link reads a ], which may end a link.
func (p *spans) link() {
	if len(p.brackets) == 0 {
		p.literal(1)
		return
	}
	b := p.brackets[len(p.brackets)-1]
	p.brackets = p.brackets[:len(p.brackets)-1]
	used := !b.image && len(p.brackets) < p.used
	p.used = min(p.used, len(p.brackets))
	to, end := "", -1
	if !used {
		to, end = p.target(b)
	}
	if end < 0 {
		p.literal(1)
		return
	}
	p.flush()
	p.emphasise(b.marks)
	open, shut := opening(to), closing(to)
	if b.image {
		// It is named and linked to: to load it would tell its server who reads.
		p.pieces[b.piece] = piece{html: open + "[image: ", image: true}
		p.pieces = append(p.pieces, piece{html: "]" + shut, image: true})
	} else {
		for i := b.piece + 1; i < len(p.pieces); i++ {
			if x := &p.pieces[i]; x.image { // no link lies within another
				x.html = x.html[strings.LastIndex(x.html, ">")+1:]
				if x.html == "" {
					x.html = "]"
				}
			}
		}
		p.pieces[b.piece].html = open
		p.ready(shut)
		p.used = len(p.brackets)
	}
	p.at = end
}

// target is where the link leads that began with a bracket and whose text ends here, and
// where it ends; -1 where it is none.
func (p *spans) target(b bracket) (to string, end int) {
	s, at := p.s, p.at+1
	if strings.HasPrefix(s[at:], "(") {
		i := white(s, at+1)
		if strings.HasPrefix(s[i:], ")") {
			return "", i + 1
		}
		if to, i := destination(s, i); i > 0 {
			j := white(s, i)
			if j > i {
				if e := titleEnd(s, j); e > 0 {
					j = white(s, e)
				}
			}
			if strings.HasPrefix(s[j:], ")") {
				return to, j + 1
			}
		}
	}
	name, end := s[b.at:p.at], at
	if strings.HasPrefix(s[at:], "[") {
		if e := labelEnd(s, at+1); e >= 0 {
			if end = e + 1; e > at+1 {
				name = s[at+1 : e]
			}
		}
	}
	if len(name) > longestLabel {
		return "", -1
	}
	to, there := p.links.to[label(name)]
	if there = there && len(to) <= p.links.left; !there {
		return "", -1
	}
	p.links.left -= len(to)
	return to, end
}

// autoLink reads a <, which may begin an address.
func (p *spans) autoLink() {
	rest := p.s[p.at:]
	end := strings.IndexAny(rest[1:], "<> \t\n")
	if end < 0 || rest[1+end] != '>' {
		p.literal(1)
		return
	}
	text := rest[1 : 1+end]
	to := text
	if !hasScheme(text) {
		if !isMail(text) {
			p.literal(1)
			return
		}
		to = "mailto:" + text
	}
	p.ready(opening(to) + escape(text) + closing(to))
	p.at += end + 2
}

// hasScheme says whether a text begins as an address of any kind does.
func hasScheme(s string) bool {
	name, _, found := strings.Cut(s[:min(len(s), 33)], ":")
	if !found || len(name) < 2 || !isLetter(name[0]) {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !isLetter(c) && (c < '0' || c > '9') && !strings.ContainsRune("+.-", rune(c)) {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isMail(s string) bool {
	name, host, found := strings.Cut(s, "@")
	if !found || name == "" || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789.!#$%&'*+/=?^_`{|}~-") != "" {
		return false
	}
	for part := range strings.SplitSeq(strings.ToLower(host), ".") {
		if part == "" || len(part) > 63 || part[0] == '-' || part[len(part)-1] == '-' || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	return true
}

// entity is the character that a name of HTML at the beginning of a text stands for, and how
// long that is; 0 where there is none.
func entity(s string) (text string, n int) {
	end := strings.IndexByte(s[:min(len(s), 34)], ';')
	if end < 2 {
		return "", 0
	}
	name := s[1:end]
	if digits, is := strings.CutPrefix(name, "#"); is {
		most := 7
		if hex := strings.TrimLeft(digits, "xX"); len(hex) == len(digits)-1 {
			digits, most = hex, 6
			if strings.Trim(digits, "0123456789abcdefABCDEF") != "" {
				return "", 0
			}
		} else if strings.Trim(digits, "0123456789") != "" {
			return "", 0
		}
		if digits == "" || len(digits) > most {
			return "", 0
		}
	}
	if strings.IndexFunc(name[1:], func(r rune) bool { return r >= utf8.RuneSelf || !isLetter(byte(r)) && (r < '0' || r > '9') }) >= 0 {
		return "", 0
	}
	text = html.UnescapeString(s[:end+1])
	if strings.HasSuffix(text, ";") && name != "semi" && name != "#59" {
		return "", 0 // it has the beginning of a name at best
	}
	return text, end + 1
}

// white is where what is no white space begins. A paragraph has no blank line, so that it
// is one line further at most.
func white(s string, at int) int {
	for at < len(s) && (s[at] == ' ' || s[at] == '\t' || s[at] == '\n') {
		at++
	}
	return at
}

// labelEnd is where the ] stands that ends the name of a link; -1 where there is none.
func labelEnd(s string, at int) int {
	for i := at; i < len(s) && i-at <= longestLabel; i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			return -1
		case ']':
			return i
		}
	}
	return -1
}

// label is the name of a link as it is compared.
func label(s string) string {
	return strings.ToLower(strings.ToUpper(strings.Join(strings.Fields(s), " ")))
}

// destination is where a link leads, as it is written at that place, and where that ends; -1
// where nothing of the kind is written there.
func destination(s string, at int) (to string, end int) {
	most := min(len(s), at+longestTarget)
	if at < len(s) && s[at] == '<' {
		for i := at + 1; i < most; i++ {
			switch s[i] {
			case '\\':
				i++
			case '<', '\n':
				return "", -1
			case '>':
				return plain(s[at+1 : i]), i + 1
			}
		}
		return "", -1
	}
	depth, i := 0, at
scan:
	for ; i < most; i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s) && isPunct(rune(s[i+1])):
			i++
		case c <= ' ' || c == 0x7f:
			break scan
		case c == '(':
			if depth++; depth > 32 {
				return "", -1
			}
		case c == ')':
			if depth == 0 {
				break scan
			}
			depth--
		}
	}
	if i == at || i >= most && most < len(s) || depth > 0 {
		return "", -1
	}
	i = min(i, len(s))
	return plain(s[at:i]), i
}

// titleEnd is where the title of a link ends that begins there; 0 where there is none.
func titleEnd(s string, at int) int {
	if at >= len(s) {
		return 0
	}
	end := s[at]
	switch end {
	case '"', '\'':
	case '(':
		end = ')'
	default:
		return 0
	}
	for i := at + 1; i < len(s) && i-at <= longestTarget; i++ {
		switch s[i] {
		case '\\':
			i++
		case end:
			return i + 1
		case '(':
			if end == ')' {
				return 0
			}
		}
	}
	return 0
}

// plain is a text without the backslashes and names that stand for characters.
func plain(s string) string {
	if !strings.ContainsAny(s, "\\&") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] == '\\' && i+1 < len(s) && s[i+1] < utf8.RuneSelf && isPunct(rune(s[i+1])) {
			i++
		} else if s[i] == '&' {
			if text, n := entity(s[i:]); n > 0 {
				b.WriteString(text)
				i += n
				continue
			}
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}
