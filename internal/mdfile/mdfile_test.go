package mdfile

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

func parse(t testing.TB, s string) *File {
	t.Helper()
	f, err := Parse([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestParseSplitsFrontMatter(t *testing.T) {
	for _, c := range []struct {
		name, in, fm, body string
		has                bool
	}{
		{"none", "# Hi\n", "", "# Hi\n", false},
		{"empty file", "", "", "", false},
		{"plain", "---\na: 1\n---\nbody", "a: 1\n", "body", true},
		{"empty", "---\n---\nbody\n", "", "body\n", true},
		{"crlf", "---\r\na: 1\r\n---\r\nb\r\n", "a: 1\r\n", "b\r\n", true},
		{"byte order mark", "\ufeff---\na: 1\n---\nb", "a: 1\n", "b", true},
		{"dots end it", "---\na: 1\n...\nb", "a: 1\n", "b", true},
		{"spaces after the fence", "--- \na: 1\n---\t\nb", "a: 1\n", "b", true},
		{"never closed", "---\na: 1\nb", "", "---\na: 1\nb", false},
		{"only a rule", "---", "", "---", false},
		{"not at the start", "\n---\na: 1\n---\n", "", "\n---\na: 1\n---\n", false},
		{"closed without line end", "---\na: 1\n---", "a: 1\n", "", true},
		{"four dashes", "----\na: 1\n----\n", "", "----\na: 1\n----\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := parse(t, c.in)
			if string(f.FrontMatter()) != c.fm || string(f.Body()) != c.body || f.HasFrontMatter() != c.has {
				t.Errorf("front matter %q, body %q, has %v", f.FrontMatter(), f.Body(), f.HasFrontMatter())
			}
			if string(f.Bytes()) != c.in {
				t.Errorf("bytes changed: %q", f.Bytes())
			}
		})
	}
}

func TestParseRefusesWhatIsNotText(t *testing.T) {
	for _, in := range []string{"a\x00b", "a\xffb", "\xff\xfea\x00"} {
		if _, err := Parse([]byte(in)); !errors.Is(err, ErrNotText) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestSetKey(t *testing.T) {
	for _, c := range []struct{ name, in, key, val, want string }{
		{"replaces", "---\na: 1\nupdated: 2026-01-01\nb: 2\n---\nx", "updated", "2026-02-03", "---\na: 1\nupdated: 2026-02-03\nb: 2\n---\nx"},
		{"keeps a comment", "---\nupdated: 2026-01-01  # by hand\n---\n", "updated", "2026-02-03", "---\nupdated: 2026-02-03  # by hand\n---\n"},
		{"keeps odd space before the colon", "---\nupdated : 2026-01-01\n---\n", "updated", "x", "---\nupdated : x\n---\n"},
		{"quoted key", "---\n\"updated\": 2026-01-01\n---\n", "updated", "x", "---\n\"updated\": x\n---\n"},
		{"crlf", "---\r\nupdated: 1\r\nz: 2\r\n---\r\nb\r\n", "updated", "x", "---\r\nupdated: x\r\nz: 2\r\n---\r\nb\r\n"},
		{"drops the lines of a folded value", "---\nupdated: >\n  one\n  two\nz: 2\n---\n", "updated", "x", "---\nupdated: x\nz: 2\n---\n"},
		{"adds at the end", "---\na: 1\n# last\n---\nb", "updated", "x", "---\na: 1\n# last\nupdated: x\n---\nb"},
		{"makes a front matter", "# T\n", "updated", "2026-02-03", "---\nupdated: 2026-02-03\n---\n\n# T\n"},
		{"makes one behind a byte order mark", "\ufeff# T\r\n", "updated", "x", "\ufeff---\r\nupdated: x\r\n---\r\n\r\n# T\r\n"},
		{"quotes what YAML would read otherwise", "---\nk: 1\n---\n", "k", "yes", "---\nk: \"yes\"\n---\n"},
		{"quotes a number", "---\nk: 1\n---\n", "k", "1.5", "---\nk: \"1.5\"\n---\n"},
		{"quotes a colon", "---\nk: 1\n---\n", "k", "a: b # c", "---\nk: \"a: b # c\"\n---\n"},
		{"empty value", "---\nk:\nz: 1\n---\n", "k", "v", "---\nk: v\nz: 1\n---\n"},
		{"empty front matter", "---\n---\n", "k", "v", "---\nk: v\n---\n"},
		{"hash within quotes is no comment", "---\nk: \"a # b\"\n---\n", "k", "v", "---\nk: v\n---\n"},
		{"key of a nested mapping is another key", "---\nm:\n  updated: 1\nupdated: 2\n---\n", "updated", "v", "---\nm:\n  updated: 1\nupdated: v\n---\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := parse(t, c.in).SetString(c.key, c.val)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(g.Bytes())); diff != "" {
				t.Error(diff)
			}
			if got := g.Value(c.key); got != c.val {
				t.Errorf("reads back as %q", got)
			}
		})
	}
}

func TestSetListKeepsTheRest(t *testing.T) {
	f := parse(t, "---\n# mine\ntags:\n- a\n- b\n\nz: {x: 1}\n---\nb\n")
	g, err := f.SetList("tags", []string{"go", "no", "a b"})
	if err != nil {
		t.Fatal(err)
	}
	want := "---\n# mine\ntags: [go, \"no\", a b]\n\nz: {x: 1}\n---\nb\n"
	if string(g.Bytes()) != want {
		t.Errorf("got %q", g.Bytes())
	}
}

func TestSetKeyRefusesWhatItCannotDoSafely(t *testing.T) {
	for name, in := range map[string]string{
		"a mapping in flow form":          "---\n{a: 1}\n---\n",
		"a list":                          "---\n- a\n---\n",
		"text":                            "---\njust words\n---\n",
		"broken YAML":                     "---\na: [1\nb: 2\n---\n",
		"the same key twice":              "---\nk: 1\nk: 2\n---\n",
		"a quoted value over two lines":   "---\nk: \"one\ntwo: x\"\nz: 1\n---\n",
		"a flow value that is not closed": "---\nk: {\n---\n",
	} {
		t.Run(name, func(t *testing.T) {
			g, err := parse(t, in).SetString("k", "v")
			if !errors.Is(err, ErrFrontMatter) {
				t.Errorf("err %v, file %v", err, g)
			}
		})
	}
}

func TestMapErrorNamesTheLineInTheFile(t *testing.T) {
	_, err := parse(t, "---\na: 1\nb: [\n---\n").Map()
	if err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("got %v", err)
	}
}

const sample = "---\na: 1\n---\nintro\n\n# One #\ntext\n\n```md\n# not one\n```\n\n    # code\n\nTwo\nlines\n-----\nx\n\n### Deep\n<!--\n# hidden\n-->\n> # quoted\n\n- item\n---\n\n####### seven\n#nospace\n\n~~~\n# open to the end\n"

func TestSections(t *testing.T) {
	f := parse(t, sample)
	type brief struct {
		Level int
		Path  string
		Line  int
	}
	var got []brief
	end := len(f.Head())
	for _, s := range f.Sections() {
		got = append(got, brief{s.Level, strings.Join(s.Path, " > "), s.Line})
		if s.Start != end {
			t.Errorf("%q starts at %d, the one before ends at %d", s.Heading, s.Start, end)
		}
		end = s.End
	}
	want := []brief{{0, "", 4}, {1, "One", 6}, {2, "One > Two lines", 15}, {3, "One > Two lines > Deep", 20}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if end != len(f.Bytes()) {
		t.Errorf("sections end at %d of %d", end, len(f.Bytes()))
	}
}

// TestHeadingsAgreeWithGoldmark compares with a full CommonMark parser.
func TestHeadingsAgreeWithGoldmark(t *testing.T) {
	for _, in := range []string{
		strings.SplitN(sample, "---\n", 3)[2], "# a\n## b ##\n### c#\n#\n", "a\n=\nb\n-\n", "para\n\n---\n", "  ## in\n   ### three\n    #### four\n",
		"```\n# x\n````\n# y\n", "~~~ a`b\n# x\n~~~\n# y\n", "``` a`b\n# x\n", "* a\n===\n", "1. a\n---\nb\n===\n", "<pre>\n# x\n\n# y\n</pre>\n# z\n",
		"a\nb\n  c\n===\n", "#\ttab\n", "a\n\n===\n", "***\nt\n---\n", "+\n---\n", "# \\# esc\n", "text\n# h\nmore\n---\n", "<!-- x --> y\n# h\n",
		"\u00a0# nbsp\n", "a\n====x\n", "___\n---\n",
	} {
		var want []int
		src := []byte(in)
		doc := goldmark.DefaultParser().Parse(text.NewReader(src))
		for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
			if h, ok := n.(*ast.Heading); ok {
				want = append(want, h.Level)
			}
		}
		var got []int
		for _, s := range parse(t, in).Sections() {
			if s.Level > 0 {
				got = append(got, s.Level)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
}

func TestTables(t *testing.T) {
	in := "# Index\n\n|Block|  Summary  | Updated |\n|:--|---|--:|\n| a.md | x \\| y | 2026-01-01 |\n|b.md|short\n\nafter\n\nN | M\n-|-\n1 | 2"
	f := parse(t, in)
	ts := f.Tables()
	if len(ts) != 2 {
		t.Fatalf("%d tables", len(ts))
	}
	if diff := cmp.Diff([]string{"Block", "Summary", "Updated"}, ts[0].Columns); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]string{{"a.md", "x | y", "2026-01-01"}, {"b.md", "short"}}, [][]string{ts[0].Rows[0].Cells, ts[0].Rows[1].Cells}); diff != "" {
		t.Error(diff)
	}
	edit := func(f *File, err error) *File {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	g := edit(f.SetCell(ts[0].Rows[0], 1, "a|b\nc"))
	if want := strings.Replace(in, `x \| y`, `a\|b c`, 1); string(g.Bytes()) != want {
		t.Errorf("set cell: %q", g.Bytes())
	}
	g = edit(f.SetCell(ts[0].Rows[1], 2, "new"))
	if want := strings.Replace(in, "|b.md|short", "|b.md|short | new", 1); string(g.Bytes()) != want {
		t.Errorf("set missing cell: %q", g.Bytes())
	}
	g = edit(f.AppendRow(ts[0], []string{"c.md", "s", "d"}))
	if want := strings.Replace(in, "|b.md|short\n", "|b.md|short\n| c.md | s | d |\n", 1); string(g.Bytes()) != want {
		t.Errorf("append row: %q", g.Bytes())
	}
	g = edit(f.AppendRow(ts[1], []string{"3", "4"}))
	if want := in + "\n3 | 4\n"; string(g.Bytes()) != want {
		t.Errorf("append row without outer pipes: %q", g.Bytes())
	}
	g = edit(f.RemoveRow(ts[0].Rows[0]))
	if strings.Contains(string(g.Bytes()), "a.md") || !strings.Contains(string(g.Bytes()), "b.md") {
		t.Errorf("remove row: %q", g.Bytes())
	}
	pad := parse(t, "| B | S      | U |\n|---|--------|---|\n| a | one    | 1 |\n")
	g = edit(pad.SetCell(pad.Tables()[0].Rows[0], 1, "three"))
	if want := "| B | S      | U |\n|---|--------|---|\n| a | three  | 1 |\n"; string(g.Bytes()) != want {
		t.Errorf("width of a padded cell: %q", g.Bytes())
	}
}

func TestTableInCodeIsNone(t *testing.T) {
	if n := len(parse(t, "```\n| a | b |\n|---|---|\n```\n").Tables()); n != 0 {
		t.Errorf("%d tables", n)
	}
}

func seeds(f *testing.F) {
	for _, s := range []string{"", sample, "---\n? a\n: b\n---\n", "---\r\nk: v # c\r\n---\r\n# h\r\n", "| a | b |\n|---|---|\n| \\| | \\\\| |\n", "\ufeff---\n---\n", "a\n-\n|\n-|\n"} {
		f.Add([]byte(s), "k", "v|\\|")
	}
}

func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte, _, _ string) {
		m, err := Parse(data)
		if err != nil {
			return
		}
		if !bytes.Equal(m.Bytes(), data) || !bytes.Equal(append(append([]byte{}, m.Head()...), m.Body()...), data) {
			t.Fatal("bytes changed")
		}
		end := len(m.Head())
		secs := m.Sections()
		for i, s := range secs {
			if i > 0 && s.Start != end || s.End < s.Text || s.Text < s.Start {
				t.Fatalf("section %d: %+v after %d", i, s, end)
			}
			end = s.End
		}
		m.Map()
	})
}

// FuzzSetKey: an edit that succeeds sets its key, and takes away no line but the key's own.
func FuzzSetKey(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte, key, val string) {
		m, err := Parse(data)
		if err != nil || key == "" {
			return
		}
		g, err := m.SetString(key, val)
		if err != nil {
			return
		}
		if !bytes.Equal(m.Body(), g.Body()) && m.HasFrontMatter() {
			t.Fatalf("body changed from %q to %q", m.Body(), g.Body())
		}
		raw, _ := m.RawEntry(key)
		left := strings.Replace(string(m.FrontMatter()), raw, "", 1)
		now, _ := g.RawEntry(key)
		if m.HasFrontMatter() && strings.Replace(string(g.FrontMatter()), now, "", 1) != left {
			t.Fatalf("other lines changed: %q to %q", m.FrontMatter(), g.FrontMatter())
		}
	})
}

// FuzzSetCell: setting a cell reads back as set and leaves every other cell.
func FuzzSetCell(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte, _, val string) {
		m, err := Parse(data)
		if err != nil {
			return
		}
		if _, err := Parse([]byte(val)); err != nil || strings.ContainsAny(val, "\u0085\u00a0\v\f\r") {
			return
		}
		for ti, tab := range m.Tables() {
			for ri, r := range tab.Rows {
				g, err := m.SetCell(r, 0, val)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(g.Bytes()[:r.start], m.Bytes()[:r.start]) || !bytes.HasSuffix(g.Bytes(), m.Bytes()[r.end:]) {
					t.Fatal("bytes outside the row changed")
				}
				gt := g.Tables()
				if len(gt) <= ti || len(gt[ti].Rows) <= ri || strings.TrimSpace(val) == "" {
					continue // a row may stop being one when its only pipe or text goes
				}
				if got := gt[ti].Rows[ri].Cells[0]; got != strings.Join(strings.Fields(val), " ") {
					t.Fatalf("set %q, reads %q in %q", val, got, g.Bytes())
				}
			}
			if g, err := m.AppendRow(tab, []string{val, "x"}); err != nil || len(g.Bytes()) <= len(m.Bytes()) {
				t.Fatal(err)
			}
		}
	})
}
