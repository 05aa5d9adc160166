package markdown

import "strings"

const (
	widest = 100    // columns of a table; what has more is text
	filler = 10_000 // cells that a text's tables are filled up with where rows are short
)

// table is one of GitHub's dialect: a row of headings, a row of dashes, and rows.
type table struct {
	head  []string
	right []bool // columns whose text stands at their right
	rows  []string
}

// split takes the table off the end of a paragraph.
func split(lines []string) ([]string, *table) {
	for i := 1; i < len(lines); i++ {
		if isTable(lines[i-1], lines[i]) {
			right, _ := dashes(lines[i])
			return lines[:i-1], &table{cells(lines[i-1]), right, lines[i+1:]}
		}
	}
	return lines, nil
}

// isTable says whether two lines begin a table.
func isTable(head, line string) bool {
	right, is := dashes(line)
	return is && len(cells(head)) == len(right)
}

// dashes reads the row that makes a table of the one above it.
func dashes(line string) (right []bool, is bool) {
	if strings.Trim(line, "|-: \t") != "" || !strings.Contains(line, "-") {
		return nil, false
	}
	row := cells(line)
	if len(row) > widest || len(row) == 1 && !strings.ContainsAny(line, "|:") {
		return nil, false
	}
	for _, c := range row {
		d := strings.TrimSuffix(strings.TrimPrefix(c, ":"), ":")
		if d == "" || strings.Trim(d, "-") != "" {
			return nil, false
		}
		right = append(right, !strings.HasPrefix(c, ":") && strings.HasSuffix(c, ":"))
	}
	return right, true
}

// cells are the parts of a row. A pipe behind a backslash is text, even in code.
func cells(line string) []string {
	line = strings.TrimPrefix(strings.Trim(line, " \t"), "|")
	var out []string
	from := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '|':
			out = append(out, line[from:i])
			from = i + 1
		}
	}
	if from < len(line) || len(out) == 0 {
		out = append(out, line[from:])
	}
	for i, c := range out {
		out[i] = strings.ReplaceAll(strings.Trim(c, " \t"), `\|`, "|")
	}
	return out
}

func (r *page) table(t *table) {
	row := func(tag string, all []string) {
		r.write("<tr>\n")
		for i := range t.right {
			switch {
			case i < len(all) && t.right[i]:
				r.write("<", tag, ` class="n">`, inline(all[i], r.links))
			case i < len(all):
				r.write("<", tag, ">", inline(all[i], r.links))
			case r.filled < filler:
				r.write("<", tag, ">")
				r.filled++
			default:
				continue
			}
			r.write("</", tag, ">\n")
		}
		r.write("</tr>\n")
	}
	r.write("<table>\n<thead>\n")
	row("th", t.head)
	r.write("</thead>\n")
	if len(t.rows) > 0 {
		r.write("<tbody>\n")
		for _, s := range t.rows {
			row("td", cells(s))
		}
		r.write("</tbody>\n")
	}
	r.write("</table>\n")
}
