package recall

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/fact"
)

// lines is a format of entries for tests: one a line, "title: text".
func lines(data []byte) (docs []Doc, err error) {
	for i, l := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		title, text, ok := strings.Cut(l, ": ")
		if !ok {
			return nil, fmt.Errorf("line %d is no entry", i+1)
		}
		docs = append(docs, Doc{Title: title, Text: text, Time: noon, Source: fmt.Sprint(i + 1)})
	}
	return docs, nil
}

func projects(t *testing.T) (*Index, string) {
	x, _ := newIndex(t)
	base := t.TempDir()
	for _, p := range []string{"shop", "blog"} {
		write(t, base, p+"/memory/core.md", "# Core of "+p+"\n\nUses postgres for the "+p+".\n")
		write(t, base, p+"/memory/blocks/decisions.md", "---\nupdated: 2026-02-03\nconfidence: 0.75\n---\n# Decisions\n\nThe "+p+" is written in Go.\n")
		write(t, base, p+"/learnings.md", "flaky: tests of the "+p+" need a clock\nport: the database of the "+p+" listens on 5433\n")
		x.o.Sources = append(x.o.Sources, Source{Project: p, Dir: filepath.Join(base, p, "memory"), Entries: []EntryFile{{Name: "learnings.md", Path: filepath.Join(base, p, "learnings.md"), Class: ClassLearning, Parse: lines}}})
	}
	x.places = placesOf(x.o)
	return x, base
}

func recalled(t testing.TB, x *Index, q Question) (ids []string) {
	t.Helper()
	a, err := x.Recall(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range a.Results {
		ids = append(ids, r.Source)
	}
	return ids
}

// TestProjectsAreSources: what a project's memory and entries say is recalled in
// that project and in no other, with the class, time and place it has.
func TestProjectsAreSources(t *testing.T) {
	x, base := projects(t)
	x.o.Facts = func(_, text string) []fact.Fact {
		if strings.Contains(text, "postgres") {
			return []fact.Fact{{Subject: "database", Attribute: "is", Value: "postgres"}}
		}
		return nil
	}
	for project, want := range map[string]string{"shop": "shop:learnings.md:2", "blog": "blog:learnings.md:2", "": ""} {
		got := recalled(t, x, Question{Text: "which port does the database listen on", Reader: Reader{Project: project}})
		if want == "" && slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "learnings") }) || want != "" && (len(got) == 0 || got[0] != want) {
			t.Errorf("in %q: got %q, want %q first", project, got, want)
		}
	}
	a, err := x.Recall(t.Context(), Question{Text: "flaky tests clock", Elsewhere: true})
	if err != nil || len(a.Results) != 0 || len(a.Elsewhere) != 2 {
		t.Errorf("outside of projects: %v %v %v", a.Results, a.Elsewhere, err)
	}
	view(t, x, func(tx *Tx) error {
		docs := map[string]Doc{}
		err := tx.Each(Filter{Project: "shop"}, func(d Doc) bool { docs[d.Source] = d; return true })
		d := docs["shop:blocks/decisions.md:5"]
		if d.Class != ClassDecision || !d.Time.Equal(time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC)) || d.Confidence != .75 || d.Scope != "project" {
			t.Errorf("%+v", d)
		}
		if d := docs["shop:core.md:1"]; d.Class != ClassCore || len(d.Facts) != 1 {
			t.Errorf("%+v", d)
		}
		if d := docs["shop:learnings.md:1"]; d.Class != ClassLearning || d.Ord != 0 || docs["shop:learnings.md:2"].Ord != 1 || d.Group != docs["shop:learnings.md:2"].Group {
			t.Errorf("%+v", d)
		}
		return err
	})
	// Edits of either kind are found by the next question, and what Search
	// answers stays what the global memory says.
	write(t, base, "shop/learnings.md", "port: the database of the shop listens on 6000\n")
	write(t, base, "shop/memory/blocks/project-x.md", "# X\n\nkumquat\n")
	if got := recalled(t, x, Question{Text: "kumquat", Reader: Reader{Project: "shop"}}); len(got) != 1 || got[0] != "shop:blocks/project-x.md:1" {
		t.Error(got)
	}
	if got := recalled(t, x, Question{Text: "6000", Reader: Reader{All: true}}); len(got) != 1 || got[0] != "shop:learnings.md:1" {
		t.Error(got)
	}
	if hits := search(t, x, "kumquat database port"); len(hits) != 0 {
		t.Error(hits)
	}
	os.Remove(filepath.Join(base, "shop/learnings.md"))
	if got := recalled(t, x, Question{Text: "6000", Reader: Reader{Project: "shop"}}); len(got) != 0 {
		t.Error(got)
	}
	// A file of entries that cannot be read is named and does not hide others.
	write(t, base, "blog/learnings.md", "no entry\n")
	st, err := x.Rebuild(t.Context())
	if err != nil || len(st.Skipped) != 1 || !strings.HasPrefix(st.Skipped[0], "blog:entries/learnings.md: ") {
		t.Errorf("%+v %v", st, err)
	}
	// A project that is no more goes with Refresh.
	x.o.Sources = x.o.Sources[:1]
	x.places = placesOf(x.o)
	if err := x.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	view(t, x, func(tx *Tx) error {
		ps, err := tx.Projects()
		if len(ps) != 1 || ps[0] != "shop" {
			t.Error(ps)
		}
		return err
	})
}

// TestIdsOutliveEdits: an edit of one section leaves the ids of the others, and
// its own.
func TestIdsOutliveEdits(t *testing.T) {
	x, dir := newIndex(t)
	ids := func() (out []string) {
		if err := x.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		view(t, x, func(tx *Tx) error {
			return tx.Each(Filter{Group: "file::blocks/project-long.md"}, func(d Doc) bool { out = append(out, d.Title+" "+d.ID); return true })
		})
		slices.Sort(out)
		return out
	}
	write(t, dir, "blocks/project-long.md", "# A\n\none\n\n## B\n\ntwo\n\n## B\n\nthree\n")
	before := ids()
	write(t, dir, "blocks/project-long.md", "# A\n\none, and more\nand more\n\n## B\n\ntwo\n\n## B\n\nthree!\n\n## C\n\nfour\n")
	after := ids()
	lost := slices.DeleteFunc(slices.Clone(before), func(id string) bool { return slices.Contains(after, id) })
	if len(before) != 3 || len(after) != 4 || len(lost) > 0 {
		t.Errorf("%q\n%q", before, after)
	}
}

func put(t testing.TB, x *Index, docs ...Doc) {
	t.Helper()
	update(t, x, func(tx *Tx) error {
		for _, d := range docs {
			if d.Source = d.ID; d.Class == "" {
				d.Class = ClassLearning
			}
			if err := tx.Put(d); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestWhoSeesWhat: scope, session, ACL and status decide, for words and for keys.
func TestWhoSeesWhat(t *testing.T) {
	x, _ := newIndex(t)
	doc := func(id, scope, project, session string, status Status, acl ...string) Doc {
		return Doc{ID: id, Scope: scope, Project: project, Session: session, Text: "quokka " + id, Keys: []string{"sig"}, ACL: acl, Time: noon, Status: status}
	}
	put(t, x,
		doc("everyone", "global", "", "", Active), doc("ofp", "project", "p", "s1", Active), doc("ofq", "project", "q", "s2", Active),
		doc("session1", "session", "p", "s1", Active), doc("session2", "session", "p", "s2", Active),
		doc("adas", "project", "p", "", Active, "agent:ada"), doc("devs", "project", "p", "", Active, "role:dev", "client:codex"), doc("open", "project", "p", "", Active, "*"),
		doc("waiting", "project", "p", "s1", Candidate), doc("old", "project", "p", "", Superseded))
	for want, r := range map[string]Reader{
		"everyone":                           {},
		"everyone ofp open":                  {Project: "p"},
		"everyone ofp open session1 waiting": {Project: "p", Session: "s1"},
		"adas everyone ofp open":             {Project: "p", Agent: "ada"},
		"devs everyone ofp open":             {Project: "p", Role: "dev", Agent: "bob"},
		"devs everyone ofp open session2":    {Project: "p", Client: "codex", Session: "s2"},
		"everyone ofq":                       {Project: "q", Session: "s1"},
		"adas devs everyone ofp ofq open session1 session2 waiting": {All: true},
		// All projects, as this agent: no one else's notes or sessions with them.
		"adas everyone ofp ofq open": {Wide: true, Agent: "ada"},
		"everyone ofp ofq open":      {Wide: true, Agent: "bob", Role: "x"},
	} {
		for _, q := range []Question{{Text: "quokka"}, {Keys: []string{"sig"}}} {
			q.Reader, q.Max, q.MaxTokens = r, 50, 5000
			var got []string
			view(t, x, func(tx *Tx) error {
				a, v, err := tx.d.ask(q, x)
				if err != nil {
					return err
				}
				cs, err := (&ledge{d: tx.d, a: &a, v: v}).candidates(t.Context())
				for _, c := range cs {
					got = append(got, c.ID)
					if c.exact != (len(q.Keys) > 0) {
						t.Errorf("%s: exact is %v", c.ID, c.exact)
					}
				}
				return err
			})
			slices.Sort(got)
			if s := strings.Join(got, " "); s != want {
				t.Errorf("%+v, by words %v: got %q, want %q", r, q.Text != "", s, want)
			}
		}
	}
}

// TestAsOf: a question about a time is answered with what was known and true
// then.
func TestAsOf(t *testing.T) {
	x, _ := newIndex(t)
	at := func(h int) time.Time { return noon.Add(time.Duration(h) * time.Hour) }
	put(t, x,
		Doc{ID: "first", Text: "the port of the quokka is 1000", Time: at(0), Until: at(10), Status: Superseded, Keys: []string{"port"}},
		Doc{ID: "second", Text: "the port of the quokka is 2000", Time: at(10), Until: at(20), Keys: []string{"port"}},
		Doc{ID: "third", Text: "the port of the quokka is 3000", Time: at(20), Keys: []string{"port"}})
	for _, c := range []struct {
		asOf time.Time
		now  time.Time
		want string
	}{
		{at(-1), at(100), ""}, {at(0), at(100), "first"}, {at(9), at(100), "first"}, {at(10), at(100), "second"}, {at(19), at(100), "second"},
		{at(20), at(100), "third"}, {time.Time{}, at(100), "third"}, {at(20).Add(-time.Nanosecond), at(100), "second"},
	} {
		x.o.Now = func() time.Time { return c.now }
		for _, q := range []Question{{Text: "port of the quokka"}, {Keys: []string{"port"}}} {
			q.AsOf = c.asOf
			if got := strings.Join(recalled(t, x, q), " "); got != c.want {
				t.Errorf("as of %v: got %q, want %q", c.asOf, got, c.want)
			}
		}
	}
}

// TestManyCommonWords: where every word is common, what has most of them is
// found however many documents others have, and so is what a reader of a small
// project or of a rare class may see.
func TestManyCommonWords(t *testing.T) {
	x, _ := newIndex(t)
	update(t, x, func(tx *Tx) error {
		for i := range 7000 {
			d := Doc{ID: fmt.Sprint("d", i), Class: ClassEpisode, Project: "big", Text: fmt.Sprintf("%s %s filler%d", vocabulary[i%5], vocabulary[5+i%3], i), Time: noon.Add(time.Duration(i) * time.Minute), Source: fmt.Sprint("d", i)}
			if i == 12 {
				d.Text = "amber basil cedar delta"
			}
			if i == 500 {
				d.Project = "small"
			}
			if i == 900 {
				d.Class = ClassAntiPattern
			}
			if i == 1300 {
				d.ACL = []string{"agent:ada"}
			}
			if err := tx.Put(d); err != nil {
				return err
			}
		}
		return nil
	})
	if df, _ := x.db.df("amber"); df < 1000 {
		t.Fatalf("amber is in %d documents: too few for this test", df)
	}
	candidates := func(q Question) (ids []string) {
		view(t, x, func(tx *Tx) error {
			a, v, err := tx.d.ask(q, x)
			if err != nil {
				return err
			}
			cs, err := (&ledge{d: tx.d, a: &a, v: v}).candidates(t.Context())
			for _, c := range cs {
				ids = append(ids, c.ID)
			}
			return err
		})
		return ids
	}
	all := "amber basil cedar delta ember fjord grove hazel"
	if got := candidates(Question{Text: all, Reader: Reader{Project: "big"}}); len(got) == 0 || got[0] != "d12" {
		t.Errorf("%d, first %v", len(got), got[:min(len(got), 1)])
	}
	if got := candidates(Question{Text: all, Reader: Reader{Project: "small"}}); len(got) != 1 || got[0] != "d500" {
		t.Error(got)
	}
	if got := candidates(Question{Text: all, Reader: Reader{Project: "big"}, Classes: []Class{ClassAntiPattern}}); len(got) != 1 || got[0] != "d900" {
		t.Error(got)
	}
	if got := candidates(Question{Text: all, Reader: Reader{Project: "big"}, AsOf: noon.Add(time.Hour)}); len(got) != 61 {
		t.Errorf("%d documents of the first hour", len(got))
	}
}

// TestNoBuild: a program with a deadline is told that there is no index instead
// of building it, and builds none.
func TestNoBuild(t *testing.T) {
	x, dir := newIndex(t)
	y := Open(Options{MemoryDir: dir, IndexFile: x.o.IndexFile, NoBuild: true})
	defer y.Close()
	for _, harm := range []func(){func() {}, func() { os.WriteFile(x.o.IndexFile, []byte("garbage"), 0o600) }} {
		harm()
		if _, err := y.Recall(t.Context(), Question{Text: "sourdough"}); !errors.Is(err, ErrNotBuilt) {
			t.Error(err)
		}
		if err := y.Update(t.Context(), func(tx *Tx) error { return nil }); !errors.Is(err, ErrNotBuilt) {
			t.Error(err)
		}
		os.MkdirAll(filepath.Dir(x.o.IndexFile), 0o700)
	}
	if got := recalled(t, x, Question{Text: "sourdough"}); len(got) == 0 {
		t.Error(got)
	}
	if got := recalled(t, y, Question{Text: "sourdough"}); len(got) == 0 {
		t.Error(got)
	}
}

// TestDeriveAfterLoss: the derived part is asked for where the index lost it,
// once, and not where it has it.
func TestDeriveAfterLoss(t *testing.T) {
	x, _ := newIndex(t)
	calls := 0
	x.o.Derive = func(ctx context.Context, x *Index) error {
		calls++
		return x.Update(ctx, func(tx *Tx) error { return tx.Put(Doc{ID: "d", Text: "wallaby", Source: "event", Time: noon}) })
	}
	for i, before := range []func(){func() {}, func() {}, func() { x.Close(); os.Remove(x.o.IndexFile) }, func() { x.Rebuild(t.Context()) }} {
		before()
		if got := recalled(t, x, Question{Text: "wallaby"}); len(got) != 1 {
			t.Errorf("%d: %v", i, got)
		}
		if want := []int{1, 1, 2, 3}[i]; calls != want {
			t.Errorf("%d: derived %d times, want %d", i, calls, want)
		}
	}
	fails := errors.New("no log")
	x.o.Derive = func(context.Context, *Index) error { return fails }
	if _, err := x.Rebuild(t.Context()); !errors.Is(err, fails) {
		t.Error(err)
	}
}

// TestLargeMemoryOpensLazily: a new process that asks one question of a large
// memory reads no list of files, and finds what was replaced or touched.
func TestLargeMemoryOpensLazily(t *testing.T) {
	x, dir := newIndex(t)
	for i := range 300 {
		write(t, dir, fmt.Sprintf("blocks/reference-n%d.md", i), fmt.Sprintf("# N\n\nword%d\n", i))
	}
	// The directories must not have changed in the moment of the look.
	old := time.Now().Add(-time.Hour)
	for _, d := range []string{dir, filepath.Join(dir, "blocks")} {
		if err := os.Chtimes(d, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := x.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	execSQL(t, x.o.IndexFile, `UPDATE sources SET cost=10000000`) // as if the look had been slow
	again := func() *Index {
		y := Open(x.o)
		t.Cleanup(func() { y.Close() })
		return y
	}
	y := again()
	if got := recalled(t, y, Question{Text: "word17"}); len(got) != 1 {
		t.Error(got)
	}
	if y.places[0].files != nil {
		t.Error("the list of files was read")
	}
	write(t, dir, "blocks/reference-n17.md", "# N\n\nnumbat\n") // in place
	y = again()
	if got := recalled(t, y, Question{Text: "numbat"}); len(got) != 0 {
		t.Error("an edit in place was seen: this test no longer shows that looks are saved")
	}
	y.Touch("blocks/reference-n17.md")
	if got := recalled(t, y, Question{Text: "numbat"}); len(got) != 1 {
		t.Error("a touched file is not found")
	}
	write(t, dir, "blocks/reference-n18.md", "# N\n\nbilby\n")
	if hits := search(t, again(), "bilby"); len(hits) != 1 {
		t.Error("the first Search of a process does not see an edit in place")
	}
	write(t, dir, "blocks/reference-new.md", "# N\n\ndugong\n")
	if got := recalled(t, again(), Question{Text: "dugong"}); len(got) != 1 {
		t.Error("a new file is not found")
	}
}

// TestManyOfOneTime: sections of files have a day for a time, or none, and are
// alike in all that their numbers are made of.
func TestManyOfOneTime(t *testing.T) {
	x, _ := newIndex(t)
	const n = 6000
	start := cpuTime() // the clock of a busy machine says nothing
	update(t, x, func(tx *Tx) error {
		for i := range n {
			if err := tx.Put(Doc{ID: fmt.Sprint("d", i), Class: ClassBlock, Text: "alike " + vocabulary[i%26]}); err != nil {
				return err
			}
		}
		return nil
	})
	rows := int64(0)
	view(t, x, func(tx *Tx) (err error) {
		rows, err = tx.d.number(`SELECT count(DISTINCT row) FROM docs WHERE row < ?`, int64(spread+1)<<timeShift)
		return err
	})
	if took := cpuTime() - start; rows < n || took > time.Minute {
		t.Errorf("%d rows in %s of processor time", rows, took)
	}
}

// Files of entries that come and go while the index is open are found at once and
// are gone at once, and what is one agent's own is found by that agent, and where
// its state is kept.
func TestEntriesComeAndGo(t *testing.T) {
	for _, size := range []string{"small", "large"} {
		t.Run(size, func(t *testing.T) {
			x, base := projects(t)
			there := []string{"ann"}
			for i := range x.o.Sources {
				s := &x.o.Sources[i]
				s.Come = func() (out []EntryFile) {
					for _, agent := range there {
						out = append(out, EntryFile{Name: agent + "/learnings.md", Path: filepath.Join(base, s.Project, agent, "learnings.md"), Class: ClassLearning, Parse: func(data []byte) ([]Doc, error) {
							docs, err := lines(data)
							for i := range docs {
								docs[i].ACL = []string{"agent:" + agent}
							}
							return docs, err
						}})
					}
					return out
				}
			}
			x.places = placesOf(x.o)
			if size == "large" {
				search(t, x, "anything")
				for _, p := range x.places {
					p.cost, p.count = time.Minute, 1_000_000 // no look at all files at each search
				}
			}
			has := func(want bool, word string, r Reader) {
				t.Helper()
				r.Project = "shop"
				hits, err := x.Search(t.Context(), Query{Text: word, Reader: r, Classes: []Class{ClassLearning}})
				if err != nil || (len(hits) > 0) != want {
					t.Errorf("%s for %+v: %v, %v", word, r, hits, err)
				}
			}
			write(t, base, "shop/ann/learnings.md", "oven: the kiln needs an hour\n")
			has(true, "kiln", Reader{Agent: "ann"})
			has(true, "kiln", Reader{Agent: "ann-cli", Keeps: "ann"})
			has(true, "kiln", Reader{All: true})
			has(false, "kiln", Reader{Agent: "ben"})
			has(false, "kiln", Reader{})
			there = append(there, "ben")
			write(t, base, "shop/ben/learnings.md", "glaze: the glaze cracks when cold\n")
			has(true, "glaze", Reader{Agent: "ben"})
			hits, err := x.Search(t.Context(), Query{Text: "glaze", Reader: Reader{Agent: "ben", Project: "shop"}, Keep: func(d *Doc) bool { return d.Title != "glaze" }})
			if err != nil || len(hits) != 0 {
				t.Errorf("what is not to be kept: %v, %v", hits, err)
			}
			hits, err = x.Search(t.Context(), Query{Text: "glaze", Reader: Reader{Agent: "ben", Project: "shop"}, Classes: []Class{ClassDecision}})
			if err != nil || len(hits) != 0 {
				t.Errorf("of another class: %v, %v", hits, err)
			}
			there = there[1:]
			if size == "large" {
				if err := x.Refresh(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			has(false, "kiln", Reader{Agent: "ann"})
			has(true, "glaze", Reader{Agent: "ben"})
			x.work.Wait()
		})
	}
}
