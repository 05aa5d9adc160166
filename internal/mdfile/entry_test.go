package mdfile

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"
)

func at(min int) time.Time { return time.Date(2026, 11, 28, 10, min, 0, 0, time.UTC) }

func rendered(e Entry) []byte {
	_, b := e.Render()
	return b
}

func mustEntries(t *testing.T, data []byte) *EntryFile {
	t.Helper()
	f := ParseEntries(data)
	if len(f.Damage) > 0 {
		t.Fatal(f.Damage)
	}
	return f
}

func TestEntryComesBackAsWritten(t *testing.T) {
	for _, e := range []Entry{
		{Type: TypeLearning, Time: at(1), Agent: "claude", Text: "The port is 5432."},
		{Type: TypeDecision, Time: at(2), Agent: "user", Decision: "Use pnpm: it's \"fast\"", Alternatives: []string{"npm", "yarn, too"}, Rationale: "line\nbreak", Text: "# Heading\n\nMore.\n\n---\n\nAfter a break.\n"},
		{Type: TypeLearning, Time: at(3), Agent: "yes", Source: "pattern:p-1", Confidence: 0.75, Supersedes: "e-0123456789abcdef", Evidence: []string{"a", "b"}, ACL: []string{"agent:a"}, Parent: "x", DependsOn: []string{"y"}, Text: "日本語の文。\n  indented\n\ttab"},
		{Type: TypeTombstone, Time: at(4), Status: StatusRetired, Supersedes: "e-0123456789abcdef"},
		{Type: "# odd: type", Time: at(5), Agent: "- x", Text: "- list\n* * *\n"},
		{Type: TypeLearning, Time: at(6), Text: "---\nid: e-0000000000000000\ntype: learning\n---\nnot an entry\n"},
		{},
	} {
		e, raw := e.Render()
		f := mustEntries(t, raw)
		if len(f.Entries) != 1 {
			if e.Type == "" { // nothing that would make it one
				continue
			}
			t.Fatalf("%d entries in:\n%s", len(f.Entries), raw)
		}
		got := f.Entries[0]
		if got.Edited || got.Problem != "" || got.ID != e.ID {
			t.Errorf("%+v from:\n%s", got, raw)
		}
		again, raw2 := got.Render()
		if again.ID != e.ID || !bytes.Equal(raw, raw2) {
			t.Errorf("rendered again:\n%s\nwas:\n%s", raw2, raw)
		}
		crlf := mustEntries(t, bytes.ReplaceAll(raw, []byte("\n"), []byte("\r\n")))
		if len(crlf.Entries) != 1 || crlf.Entries[0].Edited || crlf.Entries[0].ID != e.ID {
			t.Errorf("with CRLF: %+v", crlf.Entries)
		}
	}
}

// What people write between entries is theirs: where an entry ends is told by
// its hash, and adding entries touches nothing.
func TestHandWrittenTextBetweenEntries(t *testing.T) {
	one := rendered(Entry{Type: TypeLearning, Time: at(1), Text: "First.\n\nSecond paragraph."})
	two := rendered(Entry{Type: TypeLearning, Time: at(2), Text: "Other."})
	file := "# My notes\n\nBefore   \n\n" + string(one) + "\nBy hand, after the first.\n\n    code\n\n" + string(two) + "* the end *"
	f := mustEntries(t, []byte(file))
	if len(f.Entries) != 2 || f.Entries[0].Edited || f.Entries[1].Text != "Other.\n* the end *" || !f.Entries[1].Edited {
		t.Fatalf("%+v", f.Entries)
	}
	if f.Entries[0].Text != "First.\n\nSecond paragraph." {
		t.Errorf("text %q", f.Entries[0].Text)
	}
	var free []string
	for _, r := range f.Free {
		free = append(free, strings.TrimSpace(string(f.Bytes()[r[0]:r[1]])))
	}
	if want := []string{"# My notes\n\nBefore", "By hand, after the first.\n\n    code"}; !slices.Equal(free, want) {
		t.Errorf("free %q", free)
	}
	next := f.WithEntry(rendered(Entry{Type: TypeLearning, Time: at(3), Text: "Third."}))
	if !bytes.HasPrefix(next, []byte(file)) {
		t.Error("what was there changed")
	}
	if g := mustEntries(t, next); len(g.Entries) != 3 || g.Entries[2].Text != "Third." {
		t.Errorf("%+v", g.Entries)
	}
}

// A formatting error spoils its own entry and no other.
func TestBrokenFrontMatterHidesNothing(t *testing.T) {
	good := func(n int) string {
		return string(rendered(Entry{Type: TypeLearning, Time: at(n), Text: fmt.Sprintf("Good %d.", n)}))
	}
	for name, bad := range map[string]string{
		"not closed":      "---\nid: e-1111111111111111\ntype: learning\n\nLost its fence.\n",
		"bad YAML":        "---\nid: e-1111111111111111\ntype: [learning\n---\n\nText.\n",
		"bad time":        "---\nid: e-1111111111111111\ntimestamp: yesterday\ntype: learning\n---\n\nText.\n",
		"list for text":   "---\nid: e-1111111111111111\ntype:\n  - learning\n---\n\nText.\n",
		"only an opening": "---\nid: e-1111111111111111\n",
		"tabs":            "---\nid: e-1111111111111111\n\ttype: learning\n---\nText.\n",
	} {
		f := mustEntries(t, []byte(good(1)+"\n"+bad+"\n"+good(2)+"\n"+good(3)))
		var texts []string
		problems := 0
		for _, e := range f.Entries {
			if e.Problem == "" && !e.Edited {
				texts = append(texts, e.Text)
			} else {
				problems++
				if e.ID != "e-1111111111111111" {
					t.Errorf("%s: id %q", name, e.ID)
				}
			}
		}
		if !slices.Equal(texts, []string{"Good 1.", "Good 2.", "Good 3."}) || problems != 1 {
			t.Errorf("%s: %q and %d problems: %+v", name, texts, problems, f.Entries)
		}
	}
}

func TestEntryWrittenByHand(t *testing.T) {
	f := mustEntries(t, []byte("---\ntype: decision\ndecision: Use X   # comment\nalternatives:\n  - Y\n  - Z\nmine: kept\n---\nBecause.\n"))
	if len(f.Entries) != 1 || f.Entries[0].Decision != "Use X" || len(f.Entries[0].Alternatives) != 2 || f.Entries[0].ID == "" {
		t.Fatalf("%+v", f.Entries)
	}
	// Front matter that is no entry's, thematic breaks and tables are text.
	for _, s := range []string{"---\ncreated: 2026-01-01\n---\n\n# Block\n", "a\n\n---\n\nb\n---\n", "---\n---\n---\n", "---\nid:\n---\n"} {
		if f := mustEntries(t, []byte(s)); len(f.Entries) != 0 {
			t.Errorf("%q: %+v", s, f.Entries)
		}
	}
}

func TestResolve(t *testing.T) {
	a, _ := Entry{Type: TypeLearning, Time: at(1), Text: "a"}.Render()
	b, _ := Entry{Type: TypeLearning, Time: at(2), Text: "b", Supersedes: a.ID}.Render()
	gone, _ := Entry{Type: TypeTombstone, Time: at(3), Supersedes: b.ID, DependsOn: []string{a.ID}}.Render()
	s := Resolve([]Entry{a, b})
	if s[a.ID].Status != StatusSuperseded || s[a.ID].By != b.ID || !s[a.ID].Until.Equal(at(2)) || s[b.ID].Status != StatusActive {
		t.Errorf("%+v", s)
	}
	// A correction that was forgotten does not bring the wrong fact back.
	for _, order := range [][]Entry{{a, b, gone}, {gone, b, a}, {gone, a}} {
		s = Resolve(order)
		if s[a.ID].Status != StatusSuperseded || s[b.ID].Status != StatusRetired {
			t.Errorf("%+v", s)
		}
	}
	byHand := a
	byHand.Status = "Superseded"
	if s := Resolve([]Entry{byHand}); s[a.ID].Status != StatusSuperseded {
		t.Errorf("%+v", s)
	}
}

// some makes files of entries with text by hand between, an edited entry and a
// tombstone now and then, out of a small store so that files overlap.
func some(r *rand.Rand) []byte {
	var f []byte
	free := []string{"# Notes\n", "by hand\n\nand more\n", "* item\n", "---\n", "created: x\n"}
	add := func(s string) {
		if len(f) > 0 {
			f = append(f, '\n')
		}
		f = append(f, s...)
	}
	for range r.Intn(6) {
		n := r.Intn(8)
		e, raw := Entry{Type: TypeLearning, Time: at(n), Text: fmt.Sprintf("Entry %d.\n\nMore.", n)}.Render()
		switch r.Intn(8) {
		case 0:
			raw = bytes.Replace(raw, []byte("More"), []byte("Edited"), 1)
		case 1:
			_, raw = Entry{Type: TypeTombstone, Time: at(30 + n), Supersedes: e.ID}.Render()
		case 2:
			raw = bytes.Replace(raw, []byte("type: learning"), []byte("type: [learning"), 1)
		}
		add(string(raw))
		if r.Intn(3) == 0 {
			add(free[r.Intn(len(free))])
		}
	}
	return f
}

func parts(t *testing.T, data []byte) string {
	f := mustEntries(t, data)
	e, p := f.set()
	var out []string
	for k := range e {
		out = append(out, "E "+k)
	}
	for k := range p {
		out = append(out, "P "+k)
	}
	slices.Sort(out)
	return strings.Join(out, "\n\n")
}

func merged(t *testing.T, a, b []byte) []byte {
	t.Helper()
	return MergeEntries(a, b)
}

func TestMergeIsUnion(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for i := range 500 {
		a, b, c := some(r), some(r), some(r)
		ab := merged(t, a, b)
		if !bytes.Equal(ab, merged(t, b, a)) {
			t.Fatalf("%d: the order matters:\n%s\n=====\n%s", i, ab, merged(t, b, a))
		}
		for _, again := range [][]byte{merged(t, ab, a), merged(t, b, ab), merged(t, ab, ab)} {
			if !bytes.Equal(ab, again) {
				t.Fatalf("%d: merging again changes it:\n%s\n=====\n%s", i, ab, again)
			}
		}
		if x, y := parts(t, merged(t, ab, c)), parts(t, merged(t, a, merged(t, b, c))); x != y {
			t.Fatalf("%d: grouping matters:\n%s\n=====\n%s\nfrom\n%s\n=====\n%s\n=====\n%s", i, x, y, a, b, c)
		}
		gone := Retired(append(mustEntries(t, a).Entries, mustEntries(t, b).Entries...))
		have := map[string]bool{}
		for _, e := range mustEntries(t, ab).Entries {
			have[e.ID] = true
			if gone[e.ID] {
				t.Fatalf("%d: %s is back", i, e.ID)
			}
		}
		for _, e := range append(mustEntries(t, a).Entries, mustEntries(t, b).Entries...) {
			if !gone[e.ID] && !have[e.ID] {
				t.Fatalf("%d: %s is lost", i, e.ID)
			}
		}
	}
}

// Everything of a file is an entry, free or blank, each byte once; an entry
// added at the end is found there; a merge loses no entry.
func FuzzEntries(f *testing.F) {
	f.Add([]byte("---\nid: e-1\ntype: learning\n---\ntext\n"), []byte("x"))
	f.Add(some(rand.New(rand.NewSource(2))), some(rand.New(rand.NewSource(3))))
	f.Add([]byte("---\nid: a\n---\n---\nid: b\n---\n"), []byte("\ufeff---\r\ntype: x\r\n---\r\n"))
	f.Add([]byte("---\ntype: a\n\n---\ntype: b\n---\n"), []byte("---\nid: ["))
	f.Add([]byte("---\rtype: a\r---\rx\r"), []byte("a\x00b\xff"))
	f.Add([]byte("\xff\xfe-\x00-\x00-\x00\n\x00"), []byte("x\ry"))
	f.Fuzz(func(t *testing.T, data, other []byte) {
		g := ParseEntries(data)
		at := 0
		for _, e := range g.Entries {
			if e.Start < at || e.End < e.Start || e.End > len(g.Bytes()) || e.ID == "" {
				t.Fatalf("%+v", e)
			}
			at = e.End
		}
		_, raw := Entry{Type: TypeLearning, Time: time.Unix(1e9, 0), Text: string(other)}.Render()
		if !g.Foreign {
			next := ParseEntries(g.WithEntry(raw))
			if !bytes.HasPrefix(next.Bytes(), data) {
				t.Fatal("what was there changed")
			}
			if n := len(next.Entries); n == 0 || next.Entries[n-1].Edited || next.Entries[n-1].Problem != "" {
				t.Fatalf("the entry added is not there: %+v in %q", next.Entries, next.Bytes())
			}
		}
		m := MergeEntries(data, other)
		if back := MergeEntries(other, data); !bytes.Equal(m, back) {
			t.Fatalf("\n%q\n%q", m, back)
		}
	})
}

// What is read and united by the ten thousand makes little rubbish: how long either
// takes depends on the machine, how often memory is asked for does not.
func TestEntriesAreLean(t *testing.T) {
	const n = 1000
	log := func(agent string) []byte {
		b := []byte("# Changelog\n")
		parent := ""
		for i := range n {
			e, raw := Entry{
				Type: TypeImplement, Status: "completed", Agent: agent, Parent: parent, Time: time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC),
				Evidence: []string{"branch:main", "session:5a13438d"}, Text: fmt.Sprintf("Step %d\n\nThe handler of route %d says \"no\".", i, i%97),
			}.Render()
			b = append(append(b, '\n'), raw...)
			parent = e.ID
		}
		return b
	}
	a, b := log("ann"), log("ben")
	for what, c := range map[string]struct {
		most float64 // for each entry
		do   func()
	}{
		"parse": {4, func() { ParseEntries(a) }},
		"merge": {9, func() { MergeEntries(a, b) }},
	} {
		if got := testing.AllocsPerRun(3, c.do) / n; got > c.most {
			t.Errorf("%s: memory is asked for %.1f times for each entry, at most %.0f are meant", what, got, c.most)
		}
	}
}
