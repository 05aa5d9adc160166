package task

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
)

// save is what an editor does: another file in the place of TODO.md.
func save(t *testing.T, s *Store, content string) {
	t.Helper()
	write(t, s, "TODO.md.swp", content)
	if err := os.Rename(filepath.Join(s.Dir(), "TODO.md.swp"), filepath.Join(s.Dir(), "TODO.md")); err != nil {
		t.Fatal(err)
	}
}

// A person saves TODO.md at one moment after the other of a command: what was saved is
// there in the end, and so is what the command did.
func TestSavedDuringChange(t *testing.T) {
	for n := 0; ; n++ {
		dir := t.TempDir()
		quiet := storeIn(dir, unsynced())
		change(t, quiet, add("First"))
		at, saved := 0, false
		s := storeIn(dir, durable.NewDisk(func(durable.Step) *durable.Fault {
			if at++; at == n+1 {
				saved = true
				save(t, quiet, text(t, quiet, "TODO.md")+"\nA line of a person.\n")
			}
			return nil
		}))
		change(t, s, add("Second"))
		if !saved {
			if n < 5 {
				t.Errorf("only %d steps", n)
			}
			return
		}
		if got := text(t, quiet, "TODO.md"); !strings.Contains(got, "A line of a person.") || !strings.Contains(got, "### 2. Second") {
			t.Errorf("saved before step %d:\n%s", n, got)
		}
		if r, err := quiet.Check(context.Background()); err != nil || !r.Agrees() {
			t.Errorf("saved before step %d: %+v, %v", n, r, err)
		}
	}
}

// What a person writes after a command was killed, before the next one, stays; that the
// command's change was not made is said by the check, until --fix.
func TestSavedAfterKill(t *testing.T) {
	said := 0
	durabletest.Scenario{
		Prepare: func(t *testing.T, dir string) { change(t, storeIn(dir, durable.Disk{}), add("First")) },
		Act: func(disk durable.Disk, dir string) error {
			_, err := storeIn(dir, disk).Change(context.Background(), add("Second"))
			return err
		},
		Check: func(t *testing.T, dir string, err error, at string) {
			s := storeIn(dir, durable.Disk{})
			save(t, s, text(t, s, "TODO.md")+"\nA line of a person.\n")
			r, cerr := s.Check(context.Background())
			if cerr != nil {
				t.Fatalf("%s: %v", at, cerr)
			}
			for _, f := range r.Left {
				if strings.Contains(f.What, "was killed in the middle") {
					said++
				}
			}
			change(t, s, add("Third"))
			if got := text(t, s, "TODO.md"); !strings.Contains(got, "A line of a person.") || !strings.Contains(got, "Third") {
				t.Errorf("%s: lost:\n%s", at, got)
			}
			if _, err := s.Fix(context.Background()); err != nil {
				t.Fatalf("%s: %v", at, err)
			}
			if r, err := s.Check(context.Background()); err != nil || !r.Agrees() {
				t.Errorf("%s: after --fix: %+v, %v", at, r, err)
			}
		},
	}.CrashAtEachStep(t)
	if said == 0 {
		t.Error("nothing was said of a change that was not made")
	}
}

// A task's folder that leads out of the project is an error, not one more name to try.
func TestNoFreeName(t *testing.T) {
	s := storeIn(t.TempDir(), unsynced())
	change(t, s, add("One"))
	if err := os.Symlink(t.TempDir(), filepath.Join(s.Dir(), "001_one")); err != nil {
		t.Skip(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.Change(context.Background(), func(b *Board) error { _, err := b.AddReport(1, []byte("# R\n")); return err })
		ended <- err
	}()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "001_one") {
			t.Errorf("%v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it looks for a name for ever")
	}
}

// Lines of a person that have a field's name, or another name of it, stay: only what the
// program wrote is replaced or taken away.
func TestLinesOfAPerson(t *testing.T) {
	s := storeIn(t.TempDir(), unsynced())
	change(t, s, add("One"))
	mine := []string{"- Done: parser, by Anna", "- Report: see mail of Bo", "- Plan: ask Cy first", "- Abandoned: never", "- Blocker: the mail of Di"}
	write(t, s, "TODO.md", strings.Replace(text(t, s, "TODO.md"), "- **Language**", strings.Join(mine, "\n")+"\n- **Language**", 1))
	holds := func(when string) {
		t.Helper()
		for _, line := range mine {
			if !strings.Contains(text(t, s, "TODO.md"), line+"\n") {
				t.Errorf("%s: %q is gone:\n%s", when, line, text(t, s, "TODO.md"))
			}
		}
	}
	change(t, s, func(b *Board) error { _, err := b.AddReport(1, []byte("# R\n")); return err })
	change(t, s, func(b *Board) error {
		_, err := b.AddPlan(1, []byte("# Plan\n\n### Phase 1: Do it [NOT STARTED]\n"))
		return err
	})
	holds("report and plan")
	change(t, s, status(1, Blocked, "no access"))
	if got := text(t, s, "TODO.md"); !strings.Contains(got, "**Blocked by**: no access") || !strings.Contains(got, "[research-001.md](001_one/") {
		t.Errorf("the program's own lines are missing:\n%s", got)
	}
	change(t, s, func(b *Board) error { return b.Recover(1) })
	change(t, s, status(1, Completed, ""))
	holds("completed")
	if got := text(t, s, "TODO.md"); strings.Contains(got, "no access") || strings.Count(got, "**Completed**: 2026-11-28T12:00:00Z") != 1 {
		t.Errorf("the program's own lines are not as they should be:\n%s", got)
	}
	change(t, s, func(b *Board) error { return b.Recover(1) })
	holds("recovered")
	if got := text(t, s, "TODO.md"); strings.Contains(got, "**Completed**:") {
		t.Errorf("a task that is taken up again is said to be completed:\n%s", got)
	}
}

// Of a number that stands twice it cannot be told which task a command means: it is
// refused, with what to do, and neither section changes. The one whose title the list
// knows keeps the number.
func TestNumberTwice(t *testing.T) {
	s := storeIn(t.TempDir(), unsynced())
	change(t, s, add("One", "Two"))
	own, rest, _ := strings.Cut(text(t, s, "TODO.md"), "### 1. One")
	write(t, s, "TODO.md", own+"### 1. Another\n\n- **Status**: [COMPLETED]\n\nNot mine.\n\n### 1. One"+rest)
	before := text(t, s, "TODO.md")
	for name, fn := range map[string]func(*Board) error{
		"status":  status(1, Completed, ""),
		"edit":    func(b *Board) error { return b.Edit(1, Draft{Effort: ptr("2 h")}) },
		"archive": func(b *Board) error { _, err := b.Archive(1); return err },
		"report":  func(b *Board) error { _, err := b.AddReport(1, []byte("# R\n")); return err },
	} {
		if _, err := s.Change(context.Background(), fn); !errors.Is(err, ErrTwice) || !strings.Contains(err.Error(), "check --fix") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text(t, s, "TODO.md") != before {
		t.Errorf("it was changed:\n%s", text(t, s, "TODO.md"))
	}
	r, err := s.Check(context.Background())
	if err != nil || len(r.Left) == 0 {
		t.Errorf("the check says %+v, %v", r, err)
	}
	change(t, s, status(2, Completed, "")) // others go on
	b := change(t, s, func(b *Board) error { b.mend(); return nil })
	if got := b.State.Tasks[1]; got.Title != "One" || got.Status != NotStarted || b.State.Tasks[3] == nil || b.State.Tasks[3].Title != "Another" {
		t.Errorf("after --fix: %+v", b.State.Tasks)
	}
}

// A list that is gone while the last commit has it is not taken for empty.
func TestListLost(t *testing.T) {
	dir := t.TempDir()
	committed := true
	s := New(dir, Options{Disk: unsynced(), Now: clock, Committed: func(_ context.Context, name string) iter.Seq[[]byte] {
		if committed && name == "specs/state.json" {
			return slices.Values([][]byte{[]byte("{}")})
		}
		return slices.Values([][]byte{nil})
	}})
	for range 2 { // without specs/, and with an empty one
		if _, err := s.Load(context.Background()); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "git checkout HEAD -- specs") {
			t.Errorf("load: %v", err)
		}
		if _, err := s.Change(context.Background(), add("One")); !errors.Is(err, ErrLost) {
			t.Errorf("change: %v", err)
		}
		if _, err := s.Fix(context.Background()); !errors.Is(err, ErrLost) {
			t.Errorf("fix: %v", err)
		}
		if err := os.MkdirAll(s.Dir(), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, s, "TODO.md", "# TODO\n\n### 4. Here\n\n- **Status**: [PLANNED]\n")
	if _, err := s.Change(context.Background(), add("One")); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "--fix") {
		t.Errorf("state.json alone: %v", err)
	}
	if _, err := s.Fix(context.Background()); err != nil {
		t.Fatal(err)
	}
	if b := change(t, s, add("One")); b.State.Tasks[4] == nil || b.State.Tasks[5] == nil {
		t.Errorf("%v", b.State.Numbers())
	}
	committed = false
	if _, err := New(t.TempDir(), s.o).Load(context.Background()); err != nil {
		t.Errorf("a project without a list: %v", err)
	}
}

// git can take the list back to an older one; a number that was given is given all the same.
func TestNumbersOutliveGit(t *testing.T) {
	s := storeIn(t.TempDir(), unsynced())
	change(t, s, add("One"))
	todo, state := text(t, s, "TODO.md"), text(t, s, "state.json")
	change(t, s, add("Two", "Three"))
	write(t, s, "TODO.md", todo)
	write(t, s, "state.json", state)
	if b := change(t, s, add("Four")); b.State.Tasks[4] == nil {
		t.Errorf("the new task is among %v", b.State.Numbers())
	}
	// The number of a task that a person wrote, too.
	write(t, s, "TODO.md", text(t, s, "TODO.md")+"\n### Five\n- **Status**: todo\n")
	change(t, s, status(1, Planned, ""))
	write(t, s, "TODO.md", todo)
	write(t, s, "state.json", state)
	if b := change(t, s, add("Six")); b.State.Tasks[6] == nil {
		t.Errorf("the new task is among %v", b.State.Numbers())
	}
}

// A number that the list ever showed is given, at whatever step the command was killed
// that gave it, and though git takes the list back to an older one. A change that is made
// anew because a person saved the file leaves no number out.
func TestNumbersOutliveKillAndGit(t *testing.T) {
	durabletest.Scenario{
		Prepare: func(t *testing.T, dir string) { change(t, storeIn(dir, durable.Disk{}), add("One")) },
		Act: func(disk durable.Disk, dir string) error {
			_, err := storeIn(dir, disk).Change(context.Background(), add("Two"))
			return err
		},
		Check: func(t *testing.T, dir string, _ error, at string) {
			s := storeIn(dir, durable.Disk{})
			b, err := s.Load(context.Background())
			if err != nil {
				t.Fatalf("%s: %v", at, err)
			}
			shown := b.State.Next
			b.State.Next = 2
			delete(b.State.Tasks, 2)
			old, err := b.State.Bytes()
			if err != nil {
				t.Fatal(err)
			}
			todo, _, _ := strings.Cut(text(t, s, "TODO.md"), "### 2.")
			write(t, s, "TODO.md", todo)
			write(t, s, "state.json", string(old))
			b = change(t, s, add("Three"))
			if n := b.State.Next - 1; n < shown {
				t.Errorf("%s: %d is given again", at, n)
			}
		},
	}.CrashAtEachStep(t)
	s := storeIn(t.TempDir(), unsynced())
	change(t, s, add("One"))
	times := 0
	b := change(t, s, func(b *Board) error {
		if times++; times < 4 {
			save(t, s, text(t, s, "TODO.md")+"\nSaved.\n")
		}
		return add("Two")(b)
	})
	if b.State.Tasks[2] == nil || times != 4 {
		t.Errorf("after %d times: %v", times, b.State.Numbers())
	}
}

// Whatever is given as a text, the list is read again as it was meant: no task, field or
// heading comes of it, and none is hidden by it.
func TestTextIsText(t *testing.T) {
	for name, body := range map[string]string{
		"a task":          "Before.\n\n### 50. Evil\n\n- **Status**: [COMPLETED]\n",
		"a field":         "- Depends on: 1\n- Priority: critical\n",
		"a top heading":   "## Top\n\nMore.\n\n# Higher\n",
		"an open fence":   "```go\nfunc main() {",
		"waves":           "~~~~\nx",
		"an open comment": "<!-- left open",
	} {
		t.Run(name, func(t *testing.T) {
			s := storeIn(t.TempDir(), unsynced())
			change(t, s, add("One"))
			change(t, s, func(b *Board) error { _, err := b.Add(Draft{Title: ptr("Two"), Body: body}); return err })
			b := change(t, s, add("Three"))
			if got := b.State.Tasks; len(got) != 3 || got[3] == nil || len(got[2].DependsOn) > 0 || got[2].Priority != DefaultPriority {
				t.Errorf("%v in\n%s", b.State.Numbers(), text(t, s, "TODO.md"))
			}
			if r, err := s.Check(context.Background()); err != nil || !r.Agrees() {
				t.Errorf("%+v, %v in\n%s", r, err, text(t, s, "TODO.md"))
			}
		})
	}
	s := storeIn(t.TempDir(), unsynced())
	var draft *DraftError
	for _, d := range []Draft{{Title: ptr("bad\xff")}, {Title: ptr("Two"), Body: "a\x00b"}, {Title: ptr("Two"), Effort: ptr("\xfe")}} {
		if _, err := s.Change(context.Background(), func(b *Board) error { _, err := b.Add(d); return err }); !errors.As(err, &draft) {
			t.Errorf("%+v: %v", d, err)
		}
	}
	if _, err := s.Change(context.Background(), add("Two")); err != nil {
		t.Error(err)
	}
}

// A fence that a person left open hides what comes behind it: nothing is written into it,
// again and again, and the line is said.
func TestOpenFence(t *testing.T) {
	s := storeIn(t.TempDir(), unsynced())
	change(t, s, add("One"))
	write(t, s, "TODO.md", text(t, s, "TODO.md")+"\n```\nleft open\n")
	before := text(t, s, "TODO.md")
	if _, err := s.Change(context.Background(), add("Two")); !errors.Is(err, ErrReadBack) || !strings.Contains(err.Error(), "line 9") {
		t.Errorf("%v in\n%s", err, before)
	}
	if text(t, s, "TODO.md") != before {
		t.Errorf("it was changed:\n%s", text(t, s, "TODO.md"))
	}
	// One that hides a task is said by the check, and --fix piles nothing up behind it.
	write(t, s, "TODO.md", strings.Replace(strings.TrimSuffix(before, "```\nleft open\n"), "### 1.", "```\n### 1.", 1))
	r, err := s.Check(context.Background())
	if err != nil || len(r.Left) != 1 || !strings.Contains(r.Left[0].What, "begins in line 3") {
		t.Errorf("%+v, %v", r, err)
	}
	before = text(t, s, "TODO.md")
	if _, err := s.Fix(context.Background()); !errors.Is(err, ErrReadBack) || text(t, s, "TODO.md") != before {
		t.Errorf("--fix: %v\n%s", err, text(t, s, "TODO.md"))
	}
}

// A number that no phase can have is said, not cut short.
func TestPhaseNumbers(t *testing.T) {
	for number, ok := range map[string]bool{"1": true, "9999": true, "0": false, "10000": false, "99999": false, "99999999999999999999": false} {
		p, err := ParsePlan([]byte("# Plan\n\n### Phase " + number + ": Do it\n"))
		if (err == nil) != ok || ok && itoa(p.Phases[0].Number) != number {
			t.Errorf("phase %s: %v", number, err)
		}
	}
}

// An editor that saves an older text brings back the section of a task that was archived
// meanwhile: it is no new task of that number. What the archive has all of is taken away
// again, and what it has not becomes a task of its own.
func TestArchivedStandsAgain(t *testing.T) {
	s := storeIn(t.TempDir(), unsynced())
	change(t, s, add("One", "Two", "Three"))
	change(t, s, status(1, Completed, ""))
	change(t, s, status(2, Abandoned, ""))
	old := text(t, s, "TODO.md")
	change(t, s, func(b *Board) error { _, err := b.Archive(); return err })
	save(t, s, strings.Replace(old, "### 3.", "Written meanwhile.\n\n### 3.", 1))
	change(t, s, status(3, Completed, ""))
	if b := change(t, s, func(b *Board) error { _, err := b.Archive(); return err }); len(b.State.Tasks) != 0 {
		t.Errorf("%v", b.State.Numbers())
	}
	if _, err := s.Change(context.Background(), status(1, Planned, "")); !errors.Is(err, ErrNoTask) {
		t.Error(err)
	}
	if r, err := s.Check(context.Background()); err != nil || len(r.Left) != 2 || !strings.Contains(r.Left[0].What, "in specs/archive/ and stands here again") {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := s.Fix(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := text(t, s, "TODO.md"); strings.Contains(got, "One") || !strings.Contains(got, "### 4. Two\n") || !strings.Contains(got, "Written meanwhile.") {
		t.Error(got)
	}
	if r, err := s.Check(context.Background()); err != nil || !r.Agrees() {
		t.Errorf("%+v, %v", r, err)
	}
}
