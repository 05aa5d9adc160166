package mdfile

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The short form is read beside the full one, and a heading that is none of it
// stays text.
func TestShortForm(t *testing.T) {
	full := rendered(Entry{Type: TypePlan, Time: at(5), Text: "Full.\n\n## 2026-01-21T10:30:00Z - plan\n\nStill of the full one."})
	file := "# Changelog\n\n## 2026-01-21T10:30:00Z - implement\n\nValidate tokens.\n\n### Why\n\nBecause.\n\n" +
		"## 2026-01-21 11:00 — handoff\nTo you.\n## 2026-01-21 - plan\n\nA day is no time.\n\n## 2026-01-21T12:00:00Z - sonnet\n\nNo type.\n\n" +
		string(full) + "\nBy hand.\n\n## 2026-01-22T10:30:00Z - end\n"
	f := mustEntries(t, []byte(file))
	var got []string
	for _, e := range f.Entries {
		got = append(got, fmt.Sprintf("%s %v %q", e.Type, e.Short, e.Text))
		if e.ID == "" || e.Edited || e.Problem != "" || e.Time.IsZero() {
			t.Errorf("%+v", e)
		}
	}
	if want := []string{
		`implement true "Validate tokens.\n\n### Why\n\nBecause."`, `handoff true "To you."`,
		`plan false "Full.\n\n## 2026-01-21T10:30:00Z - plan\n\nStill of the full one."`, `end true ""`,
	}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	var free []string
	for _, r := range f.Free {
		free = append(free, string(bytes.TrimSpace(f.Bytes()[r[0]:r[1]])))
	}
	if len(free) != 3 || free[0] != "# Changelog" || !strings.HasPrefix(free[1], "## 2026-01-21 - plan") || free[2] != "By hand." {
		t.Errorf("free %q", free)
	}
	// An entry edited by hand ends where one in the short form begins.
	edited := strings.Replace(string(rendered(Entry{Type: TypePlan, Time: at(5), Text: "Full."})), "Full.", "Edited.", 1) + "\n## 2026-01-22T10:30:00Z - end\n\nOver.\n"
	f = mustEntries(t, []byte(edited))
	if len(f.Entries) != 2 || f.Entries[0].Text != "Edited." || f.Entries[1].Text != "Over." {
		t.Errorf("%+v", f.Entries)
	}
	// Merged and forgotten like any other.
	other := MergeEntries([]byte(file), []byte("## 2026-01-21T10:45:00Z - error\n\nIt broke.\n"))
	f = mustEntries(t, other)
	if len(f.Entries) != 5 || f.Entries[1].Text != "It broke." {
		t.Errorf("%s", other)
	}
	rest := mustEntries(t, f.Without(map[string]bool{f.Entries[1].ID: true}))
	if len(rest.Entries) != 4 {
		t.Errorf("%s", rest.Bytes())
	}
}

func TestSettleEdits(t *testing.T) {
	one, rawOne := Entry{Type: TypeLearning, Time: at(1), Text: "The port is 5432."}.Render()
	two, rawTwo := Entry{Type: TypeDecision, Time: at(2), Decision: "Use pnpm", Text: "More."}.Render()
	base := "# Notes\n\n" + string(rawOne) + "\n" + string(rawTwo)
	settle := func(data string) (Settled, *EntryFile) {
		t.Helper()
		s := SettleEdits([]byte(data), []byte(base), at(9))
		if again := SettleEdits(s.Data, s.Data, at(10)); again.Changed() {
			t.Errorf("again: %s", again)
		}
		if again := SettleEdits(s.Data, []byte(base), at(10)); again.Changed() {
			t.Errorf("again, from the base: %s", again)
		}
		return s, mustEntries(t, s.Data)
	}
	if s, _ := settle(base + "\nBy hand.\n"); s.Changed() {
		t.Errorf("%s", s)
	}
	s, f := settle(strings.Replace(base, "5432", "6543", 1))
	if !slices.Equal(s.Superseded, []string{one.ID}) || len(f.Entries) != 3 || f.Entries[0].Text != one.Text || f.Entries[2].Text != "The port is 6543." || f.Entries[2].Supersedes != one.ID {
		t.Errorf("%+v\n%s", s, s.Data)
	}
	if st := Resolve(f.Entries); st[one.ID].Status != StatusSuperseded || st[f.Entries[2].ID].Status != StatusActive {
		t.Errorf("%+v", st)
	}
	s, f = settle(strings.Replace(base, "Use pnpm", "Use yarn", 1)) // in the front matter
	if !slices.Equal(s.Superseded, []string{two.ID}) || f.Entries[2].Decision != "Use yarn" {
		t.Errorf("%+v\n%s", s, s.Data)
	}
	s, f = settle("# Notes\n\n" + string(rawTwo))
	if !slices.Equal(s.Retired, []string{one.ID}) || !Retired(f.Entries)[one.ID] {
		t.Errorf("%+v\n%s", s, s.Data)
	}
	if s, f = settle(""); len(s.Restored) != 2 || len(f.Entries) != 2 {
		t.Errorf("%+v\n%s", s, s.Data)
	}
	// A file that is gone, or holds what no text has, and has got a new entry since.
	_, fresh := Entry{Type: TypeLearning, Time: at(5), Text: "New."}.Render()
	for _, c := range []struct{ base, data string }{
		{base, "# Notes\n\n" + string(fresh)}, {base, strings.Repeat("\x00", len(base)) + "\n" + string(fresh)}, {base, strings.Repeat("\x00", len(base))},
		{string(rawOne), ""}, {string(rawOne), string(fresh)}, {"# Notes\n\n" + string(rawOne), "# Notes\n\n" + string(fresh)}, {string(rawOne), "\n\n"},
		{"# Notes\n\n" + string(rawOne), "\x00\x00\x00"},
	} {
		s := SettleEdits([]byte(c.data), []byte(c.base), at(9))
		if len(s.Retired) > 0 || len(s.Restored) != strings.Count(c.base, "id: e-") || strings.Contains(c.data, "New.") != strings.Contains(string(s.Data), "New.") {
			t.Errorf("%q: %+v\n%s", c.data, s, s.Data)
		}
	}
	// The only one may have been cut out.
	if s := SettleEdits([]byte("# Notes\n"), []byte("# Notes\n\n"+string(rawOne)), at(9)); len(s.Retired) != 1 {
		t.Errorf("%+v\n%s", s, s.Data)
	}
	// More than anyone cuts out by hand comes back.
	many := "# Notes\n"
	for i := range 12 {
		_, raw := Entry{Type: TypeLearning, Time: at(i), Text: fmt.Sprint("Number ", i)}.Render()
		many += "\n" + string(raw)
	}
	s = SettleEdits(rawTwo, []byte(many), at(20))
	if len(s.Restored) != 12 || len(mustEntries(t, s.Data).Entries) != 13 {
		t.Errorf("%+v", s)
	}
	// A tombstone that is cut out comes back, and what it names does not.
	_, stone := Entry{Type: TypeTombstone, Time: at(3), Supersedes: one.ID}.Render()
	base = string(rawTwo) + "\n" + string(stone)
	if s, f = settle(string(rawTwo)); len(s.Restored) != 1 || !Retired(f.Entries)[one.ID] {
		t.Errorf("%+v\n%s", s, s.Data)
	}
}

func TestMergeText(t *testing.T) {
	for _, c := range []struct {
		base, ours, theirs, want string
		conflicts                int
	}{
		{"a\nb\nc\n", "a\nb\nc\n", "a\nX\nc\n", "a\nX\nc\n", 0},
		{"a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n", 0},
		{"a\nb\nc\n", "a\nc\n", "a\nb\nc\nd\n", "a\nc\nd\n", 0},
		{"", "x\n", "x\n", "x\n", 0},
		{"a\nb", "a\nb\nc", "z\na\nb", "z\na\nb\nc", 0},
	} {
		got := MergeText([]byte(c.base), []byte(c.ours), []byte(c.theirs))
		if string(got.Data) != c.want || got.Conflicts != c.conflicts {
			t.Errorf("%q + %q: %d %q", c.ours, c.theirs, got.Conflicts, got.Data)
		}
	}
	m := MergeText([]byte("a\nb\nc\n"), []byte("a\nours\nc"), []byte("a\ntheirs\nc\n"))
	if m.Conflicts == 0 || !strings.Contains(string(m.Data), "ours\n") || !strings.Contains(string(m.Data), "theirs\n") || !strings.HasPrefix(string(m.Data), "a\n") {
		t.Errorf("%+v %q", m.Conflicts, m.Data)
	}
	if got := string(MergeUnion([]byte("a\n"), []byte("a\no\n"), []byte("a\nt\n"))); got != "a\no\nt\n" {
		t.Errorf("%q", got)
	}
}

// Whatever is merged, no line of either side is lost but what the other removed.
func FuzzMergeText(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nx\nc\n", "a\ny\nc\nd\n")
	f.Add("", "1", "2")
	f.Add("a\n\n\nb", "a\n\nb", "\n\n\n")
	f.Fuzz(func(t *testing.T, base, ours, theirs string) {
		m := string(MergeText([]byte(base), []byte(ours), []byte(theirs)).Data)
		have := map[string]bool{}
		for l := range strings.Lines(m) {
			have[strings.TrimRight(l, "\n")] = true
		}
		in := func(text, line string) bool {
			return slices.Contains(strings.Split(text, "\n"), line)
		}
		for _, side := range []string{ours, theirs} {
			for l := range strings.Lines(side) {
				if l = strings.TrimRight(l, "\n"); !have[l] && !in(base, l) {
					t.Errorf("%q of %q is lost in %q", l, side, m)
				}
			}
		}
	})
}

// Settling any two files keeps every entry of both, or a tombstone for it.
func FuzzSettleEdits(f *testing.F) {
	_, one := Entry{Type: TypeLearning, Time: at(1), Text: "One."}.Render()
	_, two := Entry{Type: TypePlan, Time: at(2), Text: "Two."}.Render()
	f.Add(string(one)+"\n"+string(two), string(two))
	f.Add(strings.Replace(string(one), "One", "Other", 1), string(one))
	f.Add("## 2026-01-21T10:30:00Z - plan\n\nx\n", string(one))
	f.Fuzz(func(t *testing.T, data, base string) {
		old := ParseEntries([]byte(base))
		s := SettleEdits([]byte(data), []byte(base), at(9))
		now := ParseEntries(s.Data)
		if old.Foreign || now.Foreign || data == base {
			return
		}
		gone := Retired(now.Entries)
		here := map[string]bool{}
		for _, e := range now.Entries {
			here[e.ID] = true
		}
		for _, e := range old.Entries {
			if !e.Edited && e.Problem == "" && !here[e.ID] && !gone[e.ID] {
				t.Errorf("%s is lost:\n%s", e.ID, s.Data)
			}
		}
	})
}
