package task

import (
	"context"
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
