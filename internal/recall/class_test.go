package recall

import (
	"fmt"
	"testing"
	"time"
)

func classDocs(now time.Time) []Doc {
	day := func(n int) time.Time { return now.AddDate(0, 0, -n) }
	return []Doc{
		{ID: "d-1", Class: ClassDecision, Project: "shop", Title: "We use pnpm, not npm", Text: "We use pnpm, not npm", Time: day(20), Importance: 0.7, Confidence: 0.95, Group: "entries", Ord: 0},
		{ID: "d-2", Class: ClassDecision, Project: "shop", Title: "Money is integer cents", Text: "Money is integer cents, never floats", Time: day(20), Importance: 0.7, Confidence: 0.95, Group: "entries", Ord: 1},
		{ID: "t-1", Class: ClassEpisode, Project: "shop", Author: "main", Title: "Use pnpm here, pnpm install", Text: "Asked: Use pnpm here, pnpm install\nAnswered: Done.", Time: day(1), Importance: 0.3, Confidence: 0.4, Group: "session:1", Ord: 0},
		{ID: "t-2", Class: ClassEpisode, Project: "shop", Author: "main", Title: "pnpm again: run pnpm test", Text: "Asked: pnpm again: run pnpm test\nAnswered: pnpm test passed.", Time: day(1), Importance: 0.3, Confidence: 0.4, Group: "session:1", Ord: 1},
		{ID: "c-1", Class: ClassEpisode, Project: "shop", Author: "user", Title: "The user corrected: no, pnpm", Text: "After `npm install` the user said: no, pnpm", Time: day(1), Importance: 0.6, Confidence: 0.6, Group: "session:1", Ord: 2},
		{ID: "s-1", Class: ClassSummary, Project: "shop", Title: "Session of 2026-11-27: Use pnpm here", Text: "Task: Use pnpm here, pnpm install / pnpm again\nThe user said: no, pnpm", Time: day(1), Importance: 0.4, Confidence: 0.5, Group: "session:1", Ord: 3},
		{ID: "f-1", Class: ClassEpisode, Project: "shop", Author: "main", Title: "pnpm test: boom", Text: "`pnpm test` failed: boom", Keys: []string{"k1", "k1=x"}, Time: day(1), Importance: 0.4, Confidence: 0.2, Group: "session:1", Ord: 4},
	}
}

func derived(t *testing.T, docs []Doc) *Index {
	t.Helper()
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	x := Open(Options{MemoryDir: t.TempDir(), Now: func() time.Time { return now }})
	t.Cleanup(func() { x.Close() })
	for i := range 60 { // a memory of some size, in which the words are rare
		docs = append(docs, Doc{ID: fmt.Sprint("x-", i), Class: ClassEpisode, Project: "shop", Text: fmt.Sprintf("something else %d of its own kind %d", i, i*i), Time: now.AddDate(-1, 0, 0), Confidence: 0.1})
	}
	if err := x.Update(t.Context(), func(tx *Tx) error {
		for _, d := range docs {
			if d.Scope = "project"; d.Project == "" {
				d.Scope = "global"
			}
			if err := tx.Put(d); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return x
}

// What was decided stands before what was only talked about.
func TestDecisionBeforeChatter(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	x := derived(t, classDocs(now))
	for _, q := range []string{"pnpm", "use pnpm", "do we use pnpm or npm?"} {
		a, err := x.Recall(t.Context(), Question{Text: q, Reader: Reader{Project: "shop"}, Explain: true})
		if err != nil {
			t.Fatal(err)
		}
		at := map[string]int{}
		for i, r := range a.Results {
			at[r.ID] = i + 1
			t.Log(q, r.ID, r.Score, r.Signals)
		}
		if at["d-1"] != 1 {
			t.Errorf("%s: the decision is at %d", q, at["d-1"])
		}
		if at["d-2"] != 0 && at["d-2"] < at["c-1"] {
			t.Errorf("%s: another decision stands at %d, the correction at %d", q, at["d-2"], at["c-1"])
		}
		for _, low := range []string{"t-1", "t-2", "s-1"} {
			if q != "use pnpm" && at[low] != 0 && at[low] < at["c-1"] { // the correction does not say "use"
				t.Errorf("%s: %s stands before the correction", q, low)
			}
		}
	}
}

// One thing is said once: by the entry that was made of the pattern, by the
// pattern for its episodes. Another remedy is another thing.
func TestSaidOnce(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	keys := []string{"sig", "sig=orders"}
	const same = "go test ./orders: connection refused — worked after running docker compose up"
	all := []Doc{
		{ID: "pt-p", Class: ClassPattern, Project: "shop", Title: same, Text: "`go test ./orders` fails with: connection refused. It worked after running docker compose up. Seen in 2 sessions.", Keys: keys},
		{ID: "pt-g", Class: ClassPattern, Title: same, Text: "`go test` fails with: connection refused. It worked after running docker compose up. Seen in 3 sessions of 2 projects.", Keys: keys},
		{ID: "ep-1", Class: ClassEpisode, Project: "shop", Title: same, Text: "`go test ./orders` failed: connection refused\nIt worked after running docker compose up.", Keys: keys, Confidence: 0.5},
		{ID: "ep-2", Class: ClassEpisode, Project: "shop", Title: "go test ./orders: connection refused", Text: "`go test ./orders` failed: connection refused\nIt did not work in that session.", Keys: keys, Confidence: 0.2},
		{ID: "ep-3", Class: ClassEpisode, Project: "shop", Title: "go test ./orders: connection refused — worked after editing internal/db/address.go", Text: "`go test ./orders` failed: connection refused\nIt worked after editing internal/db/address.go.", Keys: keys, Confidence: 0.6},
		{ID: "ep-4", Class: ClassEpisode, Project: "shop", Title: same, Text: "`go test ./bills` failed: connection refused\nIt worked after running docker compose up.", Keys: []string{"sig", "sig=bills"}, Confidence: 0.5},
		{ID: "ap-1", Class: ClassAntiPattern, Project: "shop", Title: "Did not help with " + same, Text: "`go test ./orders` fails with connection refused, and again after running go clean", Keys: keys, Confidence: 0.7},
	}
	for i := range all {
		all[i].Time, all[i].Importance = at.Add(time.Duration(i)*time.Minute), 0.5
		if all[i].Confidence == 0 {
			all[i].Confidence = 0.8
		}
	}
	served := func(x *Index, top bool) (ids map[string]bool, a Answer) {
		t.Helper()
		q := Question{Text: "go test orders connection refused", Reader: Reader{Project: "shop"}, Explain: true}
		ask := x.Recall
		if top {
			ask = x.Top
		}
		a, err := ask(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		ids = map[string]bool{}
		for _, r := range a.Results {
			ids[r.ID] = true
		}
		return ids, a
	}
	x := derived(t, all)
	got, a := served(x, false)
	if got["pt-p"] == got["pt-g"] || got["ep-1"] || got["ep-2"] || !got["ep-3"] || !got["ap-1"] {
		t.Errorf("served %v, dropped %v", got, a.Dropped)
	}
	if a.Dropped["ep-2"] != dropDuplicate {
		t.Errorf("ep-2 was left out for %q", a.Dropped["ep-2"])
	}
	entry := Doc{ID: "l-1", Class: ClassLearning, Project: "shop", Title: "The orders tests need the database", Text: "go test: on connection refused start docker compose", Keys: []string{"pt-p"}, Time: at, Importance: 0.6, Confidence: 0.8}
	for _, top := range []bool{false, true} {
		got, a := served(derived(t, append([]Doc{entry}, all...)), top)
		if !got["l-1"] || got["pt-p"] || got["pt-g"] || got["ep-1"] {
			t.Errorf("top %v: served %v, dropped %v", top, got, a.Dropped)
		}
	}
}

func TestSkip(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "core.md", "# Core\n\nnothing yet about marmalade\n")
	write(t, dir, "blocks/jam.md", "# Jam\n\nnothing yet about marmalade\n")
	x := Open(Options{MemoryDir: dir, Skip: func(name string, data []byte) bool { return name == "core.md" && len(data) == 36 }})
	defer x.Close()
	files := func() string {
		var out []string
		for _, h := range search(t, x, "marmalade") {
			out = append(out, h.File)
		}
		return fmt.Sprint(out)
	}
	if got := files(); got != "[blocks/jam.md]" {
		t.Errorf("found in %s", got)
	}
	write(t, dir, "core.md", "# Core\n\nwe make marmalade\n")
	if got := files(); got != "[core.md blocks/jam.md]" && got != "[blocks/jam.md core.md]" {
		t.Errorf("after an edit found in %s", got)
	}
}
