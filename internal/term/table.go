package term

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Width is the number of columns that s takes on a terminal: wide characters
// count two, combining ones none, colour sequences none.
func Width(s string) int {
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

func runeWidth(r rune) int {
	switch {
	case r < 0x20 || r >= 0x7f && r < 0xa0:
		return 0
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me) || hidden(r):
		return 0
	case wide(r):
		return 2
	}
	return 1
}

// wideRanges are the blocks that Unicode's East Asian Width property calls wide
// or full-width, and the emoji, coarsely.
var wideRanges = [...][2]rune{
	{0x1100, 0x115f}, {0x231a, 0x231b}, {0x2329, 0x232a}, {0x23e9, 0x23ec}, {0x23f0, 0x23f0}, {0x23f3, 0x23f3},
	{0x25fd, 0x25fe}, {0x2614, 0x2615}, {0x2648, 0x2653}, {0x267f, 0x267f}, {0x2693, 0x2693}, {0x26a1, 0x26a1},
	{0x26aa, 0x26ab}, {0x26bd, 0x26be}, {0x26c4, 0x26c5}, {0x26ce, 0x26ce}, {0x26d4, 0x26d4}, {0x26ea, 0x26ea},
	{0x26f2, 0x26f3}, {0x26f5, 0x26f5}, {0x26fa, 0x26fa}, {0x26fd, 0x26fd}, {0x2705, 0x2705}, {0x270a, 0x270b},
	{0x2728, 0x2728}, {0x274c, 0x274c}, {0x274e, 0x274e}, {0x2753, 0x2755}, {0x2757, 0x2757}, {0x2795, 0x2797},
	{0x27b0, 0x27b0}, {0x27bf, 0x27bf}, {0x2b1b, 0x2b1c}, {0x2b50, 0x2b50}, {0x2b55, 0x2b55},
	{0x2e80, 0x303e}, {0x3041, 0x33ff}, {0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xa000, 0xa4cf}, {0xa960, 0xa97f},
	{0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe10, 0xfe19}, {0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0xffe0, 0xffe6},
	{0x16fe0, 0x18cff}, {0x1aff0, 0x1b2ff}, {0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f18e},
	{0x1f191, 0x1f19a}, {0x1f200, 0x1f320}, {0x1f32d, 0x1f335}, {0x1f337, 0x1f37c}, {0x1f37e, 0x1f393},
	{0x1f3a0, 0x1f3ca}, {0x1f3cf, 0x1f3d3}, {0x1f3e0, 0x1f3f0}, {0x1f3f4, 0x1f3f4}, {0x1f3f8, 0x1f43e},
	{0x1f440, 0x1f440}, {0x1f442, 0x1f4fc}, {0x1f4ff, 0x1f53d}, {0x1f54b, 0x1f54e}, {0x1f550, 0x1f567},
	{0x1f57a, 0x1f57a}, {0x1f595, 0x1f596}, {0x1f5a4, 0x1f5a4}, {0x1f5fb, 0x1f64f}, {0x1f680, 0x1f6c5},
	{0x1f6cc, 0x1f6cc}, {0x1f6d0, 0x1f6d2}, {0x1f6d5, 0x1f6d7}, {0x1f6dc, 0x1f6df}, {0x1f6eb, 0x1f6ec},
	{0x1f6f4, 0x1f6fc}, {0x1f7e0, 0x1f7eb}, {0x1f7f0, 0x1f7f0}, {0x1f90c, 0x1f93a}, {0x1f93c, 0x1f945},
	{0x1f947, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
}

func wide(r rune) bool {
	lo, hi := 0, len(wideRanges)
	for lo < hi {
		mid := (lo + hi) / 2
		switch {
		case r < wideRanges[mid][0]:
			hi = mid
		case r > wideRanges[mid][1]:
			lo = mid + 1
		default:
			return true
		}
	}
	return false
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

// Table lines up rows under headers. Columns are as wide as their widest cell
// and two apart; the last is not padded.
type Table struct {
	style  Style
	header []string
	rows   [][]string
	max    int
	right  map[int]bool
}

// NewTable returns an empty table. Without headers none are printed.
func NewTable(style Style, header ...string) *Table {
	return &Table{style: style, header: header, right: map[int]bool{}}
}

// MaxWidth cuts the last column so that a line takes at most width columns; 0,
// the default, does not cut.
func (t *Table) MaxWidth(width int) *Table { t.max = width; return t }

// AlignRight puts the cells of column i (from 0) to the right, as for numbers.
func (t *Table) AlignRight(i int) *Table { t.right[i] = true; return t }

// Row adds a row. Cells may be coloured by the table's style; line breaks and
// anything else a terminal would act on are shown as escapes.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = safeCell(c)
	}
	t.rows = append(t.rows, row)
}

// safeCell is SafeLine that lets colour sequences through.
func safeCell(s string) string {
	if clean(s, false) {
		return s
	}
	var b strings.Builder
	start := 0
	for i := 0; i < len(s); {
		n := sgrLen(s[i:])
		if n == 0 {
			i++
			continue
		}
		b.WriteString(SafeLine(s[start:i]) + s[i:i+n])
		i += n
		start = i
	}
	return b.String() + SafeLine(s[start:])
}

// Write prints the table.
func (t *Table) Write(w io.Writer) error {
	var widths []int
	measure := func(cells []string) {
		for i, c := range cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(c))
		}
	}
	measure(t.header)
	for _, r := range t.rows {
		measure(r)
	}
	var b strings.Builder
	if len(t.header) > 0 {
		head := make([]string, len(t.header))
		for i, h := range t.header {
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
	b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}
