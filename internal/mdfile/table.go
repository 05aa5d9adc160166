package mdfile

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Table is a pipe table of the body.
type Table struct {
	Columns    []string // header cells, unescaped and trimmed
	Line       int      // of the header, from 1, in the whole file
	Rows       []Row
	Start, End int  // bytes in the whole file; End is after the last row's line end
	leadPipe   bool // rows start with a pipe
	tailPipe   bool
}

// Row is one line of a table below its header.
type Row struct {
	Line  int
	Cells []string // unescaped and trimmed; may be fewer or more than the columns
	start int
	end   int // before the line end
	next  int
	at    []span
}

type span struct{ from, to int } // between the pipes, spaces included

// Tables finds the pipe tables of the body that are not in code.
func (f *File) Tables() []Table {
	var out []Table
	var fence []byte
	var prev *line
	prevNo, lineNo := 0, CountLines(f.src[:f.body])
	var cur *Table
	for l := range lines(f.src, f.body) {
		lineNo++
		text := f.src[l.start:l.end]
		indent, rest := splitIndent(text)
		if fence != nil {
			if indent < 4 && closesFence(rest, fence) {
				fence = nil
			}
			continue
		}
		if fc := opensFence(rest); fc != nil && indent < 4 {
			fence, prev = fc, nil
			out, cur = done(out, cur)
			continue
		}
		if cur != nil {
			if len(bytes.TrimSpace(text)) == 0 || !hasPipe(text) {
				out, cur = done(out, cur)
			} else {
				cur.Rows = append(cur.Rows, f.row(l, lineNo))
				cur.End = l.next
				continue
			}
		}
		if prev != nil && isDelimiter(text) {
			head := f.row(*prev, prevNo)
			if delim := f.row(l, lineNo); len(delim.Cells) == len(head.Cells) {
				h := bytes.TrimSpace(f.src[prev.start:prev.end])
				cur = &Table{Columns: head.Cells, Line: prevNo, Start: prev.start, End: l.next,
					leadPipe: h[0] == '|', tailPipe: len(h) > 1 && h[len(h)-1] == '|'}
				prev = nil
				continue
			}
		}
		prev = nil
		if hasPipe(text) && indent < 4 {
			p := l
			prev, prevNo = &p, lineNo
		}
	}
	out, _ = done(out, cur)
	return out
}

func done(out []Table, cur *Table) ([]Table, *Table) {
	if cur != nil {
		out = append(out, *cur)
	}
	return out, nil
}

func hasPipe(b []byte) bool { return bytes.IndexByte(b, '|') >= 0 }

func isDelimiter(b []byte) bool {
	dash := false
	for _, c := range b {
		switch c {
		case '-':
			dash = true
		case '|', ':', ' ', '\t':
		default:
			return false
		}
	}
	return dash && hasPipe(b)
}

// row splits one line at its unescaped pipes.
func (f *File) row(l line, lineNo int) Row {
	r := Row{Line: lineNo, start: l.start, end: l.end, next: l.next}
	from, to := l.start, l.end
	for from < to && (f.src[from] == ' ' || f.src[from] == '\t') {
		from++
	}
	for to > from && (f.src[to-1] == ' ' || f.src[to-1] == '\t') {
		to--
	}
	if from < to && f.src[from] == '|' {
		from++
	}
	closed := false
	slashes := 0
	at := from
	for i := from; i < to; i++ {
		switch f.src[i] {
		case '\\':
			slashes++
			continue
		case '|':
			if slashes%2 == 0 {
				r.at = append(r.at, span{at, i})
				at = i + 1
				closed = at == to
			}
		}
		slashes = 0
	}
	if !closed {
		r.at = append(r.at, span{at, to})
	}
	for _, s := range r.at {
		r.Cells = append(r.Cells, unescapeCell(string(bytes.Trim(f.src[s.from:s.to], " \t"))))
	}
	return r
}

// EscapeCell makes one line of text that can stand in a table cell: line breaks
// become spaces, pipes are escaped.
func EscapeCell(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	var b strings.Builder
	slashes := 0
	for _, c := range s {
		switch c {
		case '\\':
			slashes++
		case '|':
			b.WriteString(strings.Repeat(`\`, slashes+1)) // double those before it, and one for the pipe
			slashes = 0
		default:
			slashes = 0
		}
		b.WriteRune(c)
	}
	return b.String()
}

func unescapeCell(s string) string {
	if !strings.Contains(s, `\|`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		n := 0
		for i+n < len(s) && s[i+n] == '\\' {
			n++
		}
		if n > 0 {
			if i+n < len(s) && s[i+n] == '|' {
				b.WriteString(strings.Repeat(`\`, n/2))
			} else {
				b.WriteString(s[i : i+n])
			}
			i += n
			continue
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}

// SetCell sets the text of one cell, keeping the spacing around it and, where
// the cell was padded, its width. Missing cells of a short row are added.
func (f *File) SetCell(r Row, col int, text string) (*File, error) {
	text = EscapeCell(text)
	if col < 0 {
		return nil, fmt.Errorf("set table cell in line %d: no such column", r.Line)
	}
	if col >= len(r.at) {
		raw := string(f.src[r.start:r.end])
		row := strings.TrimRight(raw, " \t")
		closed := strings.HasSuffix(row, "|") && !strings.HasSuffix(row, `\|`)
		if !closed {
			row += " |"
		}
		for i := len(r.at); i < col; i++ {
			row += " |"
		}
		row += " " + text
		if closed {
			row += " |"
		}
		return f.Replace(r.start, r.end, []byte(row))
	}
	s := r.at[col]
	old := string(f.src[s.from:s.to])
	body := strings.Trim(old, " \t")
	var lead, tail string
	if body == "" {
		lead, tail = " ", " "
		if n := utf8.RuneCountInString(old) - 1 - utf8.RuneCountInString(text); n > 1 {
			tail = strings.Repeat(" ", n)
		}
	} else {
		i := strings.Index(old, body)
		lead, tail = old[:i], old[i+len(body):]
		if len(tail) > 1 || utf8.RuneCountInString(text) < utf8.RuneCountInString(body) && len(tail) > 0 {
			n := len(tail) + utf8.RuneCountInString(body) - utf8.RuneCountInString(text)
			tail = strings.Repeat(" ", max(1, n))
		}
		if strings.HasSuffix(text, `\`) && tail == "" {
			tail = " "
		}
	}
	return f.Replace(s.from, s.to, []byte(lead+text+tail))
}

// AppendRow adds a row at the end of a table, in the table's own style.
func (f *File) AppendRow(t Table, cells []string) (*File, error) {
	var b strings.Builder
	if t.End > 0 && f.src[t.End-1] != '\n' {
		b.WriteString(f.EOL())
	}
	if t.leadPipe || len(cells) == 1 {
		b.WriteString("| ")
	}
	for i, c := range cells {
		if i > 0 {
			b.WriteString(" | ")
		}
		b.WriteString(EscapeCell(c))
	}
	if t.tailPipe || len(cells) == 1 || cells[len(cells)-1] == "" {
		b.WriteString(" |")
	}
	b.WriteString(f.EOL())
	return f.Replace(t.End, t.End, []byte(b.String()))
}

// RemoveRow takes one row out.
func (f *File) RemoveRow(r Row) (*File, error) { return f.Replace(r.start, r.next, nil) }
