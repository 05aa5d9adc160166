package memory

import (
	"regexp"
	"strings"
	"sync"

	"reprise/internal/mdfile"
)

// indexTable is the table of index.md, whatever its columns are called and
// whatever order they are in. A column that is not there is -1.
type indexTable struct {
	mdfile.Table
	block, summary, updated int
}

var (
	blockWords   = []string{"block", "blocks", "file", "files", "filename", "file name", "name", "block file"}
	summaryWords = []string{"summary", "description", "about", "what", "content", "contents", "notes", "topic"}
	updatedWords = []string{"updated", "last updated", "date", "modified", "last modified", "changed", "last change"}
)

func findIndex(f *mdfile.File) (indexTable, bool) {
	for _, t := range f.Tables() {
		it := indexTable{Table: t, block: column(t, blockWords), summary: column(t, summaryWords), updated: column(t, updatedWords)}
		if it.block >= 0 {
			return it, true
		}
	}
	return indexTable{}, false
}

func column(t mdfile.Table, words []string) int {
	for _, w := range words { // the first word that fits is the best one
		for i, c := range t.Columns {
			if strings.ToLower(strings.Trim(c, " *_`")) == w {
				return i
			}
		}
	}
	return -1
}

var (
	linkCell = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^!?\[([^\]]*)\]\(<?([^)>\s]*)>?[^)]*\)$`) })
	wikiCell = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\[\[([^\]|]+)(?:\|[^\]]*)?\]\]$`) })
)

// rowName is the block file that a row's cell names: plain, in code or bold, as
// a link, with or without "blocks/" and ".md".
func (t indexTable) rowName(r mdfile.Row) string {
	if t.block >= len(r.Cells) {
		return ""
	}
	c := strings.Trim(r.Cells[t.block], " *_`")
	if m := wikiCell().FindStringSubmatch(c); m != nil {
		c = m[1]
	} else if m := linkCell().FindStringSubmatch(c); m != nil {
		c = m[1]
		if strings.HasSuffix(strings.ToLower(m[2]), ".md") {
			c = m[2]
		}
	}
	c = strings.Trim(strings.ReplaceAll(c, `\`, "/"), " `*_")
	c = strings.TrimPrefix(strings.TrimPrefix(c, "./"), blocksDir+"/")
	if c != "" && !strings.HasSuffix(strings.ToLower(c), ".md") {
		c += ".md"
	}
	return c
}

func (t indexTable) cell(r mdfile.Row, col int) string {
	if col < 0 || col >= len(r.Cells) {
		return ""
	}
	return r.Cells[col]
}

func (t indexTable) find(name string) (mdfile.Row, bool) {
	for _, r := range t.Rows {
		if strings.EqualFold(t.rowName(r), name) {
			return r, true
		}
	}
	return mdfile.Row{}, false
}

// summaries maps lower-case block names to their row's summary.
func summaries(f *mdfile.File) map[string]string {
	m := map[string]string{}
	t, ok := findIndex(f)
	if !ok {
		return m
	}
	for _, r := range t.Rows {
		k := strings.ToLower(t.rowName(r))
		if _, seen := m[k]; !seen {
			m[k] = t.cell(r, t.summary)
		}
	}
	return m
}

// withRow returns the index with a row for the block: a new row, or the row
// that is there with its date and, when summary is not empty, its summary set.
// Nothing else of the file changes. fallback is the summary of a new row.
func withRow(f *mdfile.File, name, summary, fallback, date string) (*mdfile.File, error) {
	t, ok := findIndex(f)
	if !ok {
		nl := f.EOL()
		text := "| Block | Summary | Updated |" + nl + "|-------|---------|---------|" + nl
		if b := f.Bytes(); len(b) > 0 {
			if b[len(b)-1] != '\n' {
				text = nl + text
			}
			text = nl + text
		} else {
			text = "# Index" + nl + nl + text
		}
		g, err := f.Replace(len(f.Bytes()), len(f.Bytes()), []byte(text))
		if err != nil {
			return nil, err
		}
		f = g
		t, _ = findIndex(f)
	}
	if _, ok := t.find(name); !ok {
		cells := make([]string, len(t.Columns))
		cells[t.block] = name
		if summary == "" {
			summary = fallback
		}
		if t.summary >= 0 {
			cells[t.summary] = summary
		}
		if t.updated >= 0 {
			cells[t.updated] = date
		}
		return f.AppendRow(t.Table, cells)
	}
	set := func(col int, text string) error { // offsets move with each edit, so look again
		t, _ = findIndex(f)
		r, _ := t.find(name)
		if col < 0 || text == "" || t.cell(r, col) == strings.Join(strings.Fields(text), " ") {
			return nil
		}
		g, err := f.SetCell(r, col, text)
		if err == nil {
			f = g
		}
		return err
	}
	if err := set(t.summary, summary); err != nil {
		return nil, err
	}
	if old, ok := func() (string, bool) { r, ok := t.find(name); return t.cell(r, t.updated), ok }(); ok && old > date && dateOnly().MatchString(old) {
		return f, nil // a later day than ours: another machine's clock; days never go back
	}
	err := set(t.updated, date)
	return f, err
}

var dateOnly = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`) })
