package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A conflict ends with the tasks of both sides, whether or not git found one in state.json,
// too; nothing is written into the middle of it before.
func TestConflict(t *testing.T) {
	const (
		here  = "### 2. Here\n\n- **Status**: [NOT STARTED]\n"
		there = "### 2. There\n\n- **Status**: [PLANNED]\n- **Plan**: [p](002_there/plans/p.md)\n\nTheir words.\n"
		mine  = `"2":{"title":"Here","slug":"here","status":"not_started","created":"2026-01-02T03:04:05Z"}`
		other = `"2":{"title":"There","slug":"there","status":"planned","created":"2026-01-02T03:04:06Z","plans":["002_there/plans/p.md"]}`
	)
	for name, state := range map[string]string{
		"conflict":    "{\"next_number\":3,\"tasks\":{\n<<<<<<< HEAD\n" + mine + "\n=======\n" + other + "\n>>>>>>> theirs\n}}\n",
		"with a base": "{\"next_number\":3,\"tasks\":{\n<<<<<<< HEAD\n" + mine + "\n||||||| abc\n=======\n" + other + "\n>>>>>>> theirs\n}}\n",
		"merged":      `{"next_number":3,"tasks":{` + other + "," + mine + "}}",
		"merged, too": `{"next_number":3,"tasks":{` + mine + "," + other + "}}",
	} {
		t.Run(name, func(t *testing.T) {
			s := storeIn(t.TempDir(), unsynced())
			s.o.Now = func() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) }
			text0 := "# TODO\n\nA note.\n\n<<<<<<< HEAD\n" + here + "=======\n" + there + ">>>>>>> theirs\n"
			write(t, s, "TODO.md", text0)
			write(t, s, "state.json", state)
			if err := os.MkdirAll(filepath.Join(s.Dir(), "002_there", "plans"), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, s, "002_there/plans/p.md", "### Phase 1: x\n")
			title := "More"
			if _, err := s.Change(context.Background(), func(b *Board) error { _, err := b.Add(Draft{Title: &title}); return err }); err == nil || text(t, s, "TODO.md") != text0 {
				t.Errorf("%v\n%s", err, text(t, s, "TODO.md"))
			}
			if _, err := s.Fix(context.Background()); err != nil {
				t.Fatal(err)
			}
			got := text(t, s, "TODO.md")
			for _, want := range []string{"A note.\n", "### 2. Here\n", "### 3. There\n", "- **Status**: [PLANNED]\n", "(003_there/plans/p.md)", "Their words.\n"} {
				if strings.Count(got, want) != 1 {
					t.Errorf("%q stands there %d times:\n%s", want, strings.Count(got, want), got)
				}
			}
			b, err := s.Load(context.Background())
			if err != nil || len(b.Problems)+len(b.Taken) > 0 || len(b.State.Tasks) != 2 || b.State.Tasks[3].Plans[0] != "003_there/plans/p.md" {
				t.Errorf("%v, %v, %v\n%s", b.Problems, b.Taken, err, text(t, s, "state.json"))
			}
			if text(t, s, "003_there/plans/p.md") != "### Phase 1: x\n" {
				t.Error("its plan is not there")
			}
		})
	}
}

// git puts two sections of a number side by side where both sides wrote them at different
// places, without a conflict in TODO.md: it is found, and both tasks are kept, each with
// what state.json knew of it.
func TestMergedWithoutConflict(t *testing.T) {
	const (
		first = `"1":{"title":"Shared","slug":"shared","status":"planned","created":"2026-01-01T00:00:00Z","plans":["001_shared/plans/p.md"]}`
		mine  = `"2":{"title":"Here","slug":"here","status":"not_started","created":"2026-01-02T03:04:05Z"}`
		other = `"2":{"title":"There","slug":"there","status":"planned","created":"2026-01-02T03:04:06Z","plans":["002_there/plans/p.md"]}`
		todo  = "# TODO\n\n### 2. There\n\n- **Status**: [PLANNED]\n- **Plan**: [p](002_there/plans/p.md)\n\nTheir words.\n\n### 1. Shared\n\n- **Status**: [PLANNED]\n\n### 2. Here\n\n- **Status**: [NOT STARTED]\n\nOur words.\n"
	)
	for name, state := range map[string]string{
		"a conflict in state.json":     "{\"next_number\":3,\"tasks\":{\n" + first + ",\n<<<<<<< HEAD\n" + mine + "\n=======\n" + other + "\n>>>>>>> theirs\n}}\n",
		"two entries":                  `{"next_number":3,"tasks":{` + first + "," + mine + "," + other + "}}",
		"two entries, theirs first":    `{"next_number":3,"tasks":{` + first + "," + other + "," + mine + "}}",
		"one entry, the other is lost": `{"next_number":3,"tasks":{` + first + "," + mine + "}}",
	} {
		t.Run(name, func(t *testing.T) {
			s := storeIn(t.TempDir(), unsynced())
			write(t, s, "TODO.md", todo)
			write(t, s, "state.json", state)
			if err := os.MkdirAll(filepath.Join(s.Dir(), "002_there", "plans"), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, s, "002_there/plans/p.md", "### Phase 1: x\n")
			lost := strings.Contains(name, "lost")
			r, err := s.Check(context.Background())
			switch {
			case lost && (err != nil || r.Agrees()), !lost && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrDoubled):
				t.Errorf("the check says %+v, %v", r, err)
			}
			if _, err := s.Change(context.Background(), status(2, Planned, "")); err == nil || text(t, s, "TODO.md") != todo {
				t.Errorf("a command on the number: %v", err)
			}
			r, err = s.Fix(context.Background())
			if err != nil || len(r.Mended) == 0 {
				t.Fatalf("%+v, %v", r, err)
			}
			b, err := s.Load(context.Background())
			if err != nil || len(b.Problems)+len(b.Taken) > 0 || len(b.State.Tasks) != 3 {
				t.Fatalf("%v, %v, %v\n%s", b.Problems, b.Taken, err, text(t, s, "TODO.md"))
			}
			got := text(t, s, "TODO.md")
			for _, want := range []string{"### 1. Shared\n", ". Here\n", ". There\n", "Their words.\n", "Our words.\n"} {
				if strings.Count(got, want) != 1 {
					t.Errorf("%q stands there %d times:\n%s", want, strings.Count(got, want), got)
				}
			}
			if one := b.State.Tasks[1]; len(one.Plans) != 1 || one.Status != Planned {
				t.Errorf("%+v", one)
			}
			for n, one := range b.State.Tasks {
				if one.Title != "There" {
					continue
				}
				if one.Status != Planned {
					t.Errorf("it is %s", one.Status)
				}
				if lost {
					continue // nothing told of its plan
				}
				if name := one.Folder() + "/plans/p.md"; n != 2 && (len(one.Plans) != 1 || one.Plans[0] != name || text(t, s, name) != "### Phase 1: x\n" || !strings.Contains(got, "("+name+")")) {
					t.Errorf("its plan is %v:\n%s", one.Plans, got)
				}
			}
			change(t, s, add("More"))
		})
	}
}

// A section that a merge left twice in the same words is one task, not two.
func TestSectionTwice(t *testing.T) {
	s := storeIn(t.TempDir(), unsynced())
	change(t, s, add("One", "Two"))
	before := text(t, s, "TODO.md")
	_, two, _ := strings.Cut(before, "### 2.")
	again := strings.Replace("### 2."+two, "[NOT STARTED]", "[PLANNED]", 1)
	write(t, s, "TODO.md", strings.Replace(before, "### 1.", again+"\n### 1.", 1))
	if r, err := s.Check(context.Background()); err != nil || len(r.Left) == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	r, err := s.Fix(context.Background())
	if err != nil || len(r.Left) > 0 || !strings.Contains(fmt.Sprint(r.Mended), "stood there twice") {
		t.Errorf("%+v, %v", r, err)
	}
	if b, err := s.Load(context.Background()); err != nil || len(b.State.Tasks) != 2 || strings.Count(text(t, s, "TODO.md"), "2. Two") != 1 {
		t.Errorf("%v\n%s", err, text(t, s, "TODO.md"))
	}
	// Where one of them has a line of its own, both are kept.
	write(t, s, "TODO.md", text(t, s, "TODO.md")+"\n### 2. Two\n\n- **Status**: [NOT STARTED]\n\nMine alone.\n")
	if _, err := s.Fix(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := text(t, s, "TODO.md"); !strings.Contains(got, "### 3. Two\n") || !strings.Contains(got, "Mine alone.") {
		t.Error(got)
	}
}

// A state.json that is gone or cannot be read is made anew with the files that lie in the
// tasks' folders.
func TestStateAnewFromFolders(t *testing.T) {
	s := storeIn(t.TempDir(), unsynced())
	change(t, s, add("One"))
	change(t, s, func(b *Board) error { _, err := b.AddReport(1, []byte("# R\n")); return err })
	change(t, s, func(b *Board) error { _, err := b.AddPlan(1, []byte("### Phase 1: x\n")); return err })
	change(t, s, func(b *Board) error { return b.Edit(1, Draft{Title: ptr("Called otherwise")}) })
	write(t, s, "state.json", "{")
	if _, err := s.Fix(context.Background()); err != nil {
		t.Fatal(err)
	}
	b, err := s.Load(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	got := b.State.Tasks[1]
	if got.Folder() != "001_one" || got.Status != Planned || len(got.Plans) != 1 || len(got.Research) != 1 || b.NextOp(got) != OpImplement {
		t.Errorf("%+v", got)
	}
}
