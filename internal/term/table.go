package term

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// Width is the number of columns that s takes on a terminal: wide characters
// count two, combining ones none, colour sequences none.
func Width(s string) int {
	if clean(s, false) { // as most cells of most tables
		return len(s)
	}
	w := 0
	for i := 0; i < len(s); {
		if n := sgrLen(s[i:]); n > 0 {
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		w += runeWidth(r)
		i += n
	}
	return w
}

// sgrLen is the length of the colour sequence that s begins with, 0 for none.
func sgrLen(s string) int {
	if !strings.HasPrefix(s, "\x1b[") {
		return 0
	}
	for i := 2; i < len(s); i++ {
		switch c := s[i]; {
		case c == 'm':
			return i + 1
		case c != ';' && (c < '0' || c > '9'):
			return 0
		}
	}
	return 0
}

// runeWidth asks the library with East Asian ambiguous characters narrow,
// whatever the locale: a table must not depend on who prints it. Characters
// that are not to be seen take no column.
func runeWidth(r rune) int {
	if hidden(r) {
		return 0
	}
	return (&runewidth.Condition{}).RuneWidth(r)
}

// Cut shortens s to at most width columns, the last of them "…" where something
// was left out. Colour sequences are kept whole and switched off at the cut.
func Cut(s string, width int) string {
	if Width(s) <= width {
		return s
	}
	if width < 1 {
		return ""
	}
	var b strings.Builder
	w, coloured := 0, false
	for i := 0; i < len(s); {
		if n := sgrLen(s[i:]); n > 0 {
			b.WriteString(s[i : i+n])
			coloured = s[i:i+n] != "\x1b[0m"
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if w+runeWidth(r) > width-1 {
			break
		}
		w += runeWidth(r)
		b.WriteString(s[i : i+n])
		i += n
	}
	b.WriteString("…")
	if coloured {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

// Wrap is head and then the words of text, broken between words so that no line takes more
// than width columns; what continues begins with hang. A word that is wider than that stands
// whole, but for one with wide characters, of languages that put no blanks between words; and what stands between backticks is one word where a line has room for it, so that a
// path or a command can be copied. With a width of 0 nothing is broken. There is no line break
// at the end.
func Wrap(head, text, hang string, width int) string {
	if width <= 0 || Width(head)+Width(text) <= width {
		return head + text
	}
	var b strings.Builder
	b.WriteString(head)
	at, first := Width(head), true
	for _, word := range wordsOf(text, width-Width(hang)) {
		if pieces := wide(word); len(pieces) > 1 && Width(word) > width-Width(hang) {
			switch {
			case first:
			case at+1+Width(pieces[0]) > width:
				b.WriteString("\n" + hang)
				at = Width(hang)
			default:
				b.WriteString(" ")
				at++
			}
			for i, piece := range pieces {
				n := Width(piece)
				if i > 0 && at+n > width {
					b.WriteString("\n" + hang)
					at = Width(hang)
				}
				b.WriteString(piece)
				at += n
			}
			first = false
			continue
		}
		n := Width(word)
		switch {
		case first:
		case at+1+n > width:
			b.WriteString("\n" + hang)
			at = Width(hang)
		default:
			b.WriteString(" ")
			at++
		}
		b.WriteString(word)
		at, first = at+n, false
	}
	return b.String()
}

// wide are the parts of a word between which a line may be broken: before and after each of
// its wide characters. A word without one is whole.
func wide(word string) (out []string) {
	from, was := 0, false
	for i, r := range word {
		is := runeWidth(r) == 2
		if i > from && (is || was) {
			out, from = append(out, word[from:i]), i
		}
		was = is
	}
	return append(out, word[from:])
}

// wordsOf are the words of a text; a quotation in backticks that takes no more than room is one.
func wordsOf(text string, room int) (out []string) {
	words := strings.Fields(text)
	for i := 0; i < len(words); i++ {
		word := words[i]
		if strings.Count(word, "`")%2 == 1 {
			for j := i + 1; j < len(words); j++ {
				whole := strings.Join(words[i:j+1], " ")
				if Width(whole) > room {
					break
				}
				if strings.Count(words[j], "`")%2 == 1 {
					word, i = whole, j
					break
				}
			}
		}
		out = append(out, word)
	}
	return out
}

// heads are the headers that fit whole, with "…" after them where that fits.
func (t *Table) heads(widths []int) []string {
	out := make([]string, 0, len(t.header))
	used := 0
	for i, h := range t.header {
		at := used
		if t.right[i] {
			at += widths[i] - Width(h)
		}
		if t.max > 0 && at+Width(h) > t.max {
			if used < t.max {
				out = append(out, "…")
			}
			return out
		}
		out = append(out, h)
		used += widths[i] + 2
	}
	return out
}

// Table lines up rows under headers. Columns are as wide as their widest cell
// and two apart; the last is not padded.
type Table struct {
	style  Style
	header []string
	rows   [][]string
	max    int
	right  map[int]bool
	spare  []int
}

// NewTable returns an empty table. Without headers none are printed.
func NewTable(style Style, header ...string) *Table {
	return &Table{style: style, header: header, right: map[int]bool{}}
}

// MaxWidth cuts the last column so that a line takes at most width columns, and the line
// where the others alone are wider; 0, the default, does not cut.
func (t *Table) MaxWidth(width int) *Table { t.max = width; return t }

// leastLast is how many columns the last cells are to have before others are left out.
const leastLast = 30

// Spare names columns (from 0) that can be done without: they are left out, in that order,
// where the last column, which is the one to be read, would get less than 30 of MaxWidth
// and needs more.
func (t *Table) Spare(columns ...int) *Table { t.spare = columns; return t }

// AlignRight puts the cells of column i (from 0) to the right, as for numbers.
func (t *Table) AlignRight(i int) *Table { t.right[i] = true; return t }

// Row adds a row. Cells may be coloured by the table's style; line breaks and
// anything else a terminal would act on are shown as escapes. Who puts text of others
// into a cell makes it safe first ([SafeLine], [Table.Text]): here it cannot be told from a style's.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = safeCell(c, t.style.on)
	}
	t.rows = append(t.rows, row)
}

// Text is Row for cells that are text alone: whoever wrote them, nothing in them is coloured.
func (t *Table) Text(cells ...string) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = SafeLine(c)
	}
	t.rows = append(t.rows, row)
}

// safeCell is SafeLine that lets through what a [Style] writes, where styles are on: no
// sequence else, such as one that hides the text after it, and none that outlives its cell.
func safeCell(s string, styled bool) string {
	if clean(s, false) {
		return s
	}
	if !styled {
		return SafeLine(s)
	}
	var b strings.Builder
	start, open := 0, false
	for i := 0; i < len(s); {
		n := sgrLen(s[i:])
		if n == 0 || !slices.Contains(ownCodes, s[i+len(sgrBegin):i+n-1]) {
			i++
			continue
		}
		b.WriteString(SafeLine(s[start:i]) + s[i:i+n])
		open = s[i:i+n] != sgrEnd
		i += n
		start = i
	}
	b.WriteString(SafeLine(s[start:]))
	if open {
		b.WriteString(sgrEnd)
	}
	return b.String()
}

// widths are how wide the columns' widest cells are.
func (t *Table) widths() []int {
	var widths []int
	for _, cells := range append([][]string{t.header}, t.rows...) {
		for i, c := range cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(c))
		}
	}
	return widths
}

// fitted is t without those of its spare columns that would leave its last one too little.
func (t *Table) fitted() *Table {
	widths := t.widths()
	out := map[int]bool{}
	room := func() int {
		left := t.max
		for i, w := range widths[:max(len(widths)-1, 0)] {
			if !out[i] {
				left -= w + 2
			}
		}
		return left
	}
	for _, i := range t.spare {
		if t.max <= 0 || len(widths) == 0 || room() >= min(leastLast, widths[len(widths)-1]) {
			break
		}
		out[i] = true
	}
	if len(out) == 0 {
		return t
	}
	keep := func(cells []string) []string {
		var kept []string
		for i, c := range cells {
			if !out[i] {
				kept = append(kept, c)
			}
		}
		return kept
	}
	f := &Table{style: t.style, header: keep(t.header), max: t.max, right: map[int]bool{}}
	for i, at := 0, 0; i < len(widths); i++ {
		if !out[i] {
			f.right[at] = t.right[i]
			at++
		}
	}
	for _, r := range t.rows {
		f.rows = append(f.rows, keep(r))
	}
	return f
}

// Write prints the table.
func (t *Table) Write(w io.Writer) error {
	t = t.fitted()
	widths := t.widths()
	var b strings.Builder
	if len(t.header) > 0 {
		head := t.heads(widths)
		for i, h := range head {
			head[i] = t.style.Dim(h)
		}
		t.line(&b, head, widths)
	}
	for _, r := range t.rows {
		t.line(&b, r, widths)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *Table) line(b *strings.Builder, cells []string, widths []int) {
	var line strings.Builder
	used := 0
	for i, c := range cells {
		if t.max > 0 && i == len(widths)-1 {
			c = Cut(c, max(t.max-used, 1))
		}
		pad := strings.Repeat(" ", max(widths[i]-Width(c), 0))
		switch {
		case t.right[i]:
			line.WriteString(pad + c)
		case i == len(widths)-1:
			line.WriteString(c)
		default:
			line.WriteString(c + pad)
		}
		if i < len(widths)-1 {
			line.WriteString("  ")
		}
		used += widths[i] + 2
	}
	text := strings.TrimRight(line.String(), " ")
	if t.max > 0 { // the columns before the last may be wider than that already
		text = Cut(text, t.max)
	}
	b.WriteString(text + "\n")
}
