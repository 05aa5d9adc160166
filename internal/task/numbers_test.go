package task

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A number that was given is not given again, though state.json is lost: the archive and
// the folders tell of it.
func TestNumbersOutliveState(t *testing.T) {
	for name, left := range map[string]func(t *testing.T, s *Store){
		"archive": func(t *testing.T, s *Store) {
			change(t, s, func(b *Board) error {
				if err := b.SetStatus(3, Completed, ""); err != nil {
					return err
				}
				_, err := b.Archive()
				return err
			})
		},
		"folder": func(t *testing.T, s *Store) {
			if err := os.MkdirAll(filepath.Join(s.Dir(), "003_third"), 0o755); err != nil {
				t.Fatal(err)
			}
			change(t, s, func(b *Board) error { b.Todo.Remove(b.Todo.Find(3)); delete(b.State.Tasks, 3); return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := storeIn(t.TempDir(), unsynced())
			change(t, s, add("First", "Second", "Third"))
			left(t, s)
			if err := os.Remove(filepath.Join(s.Dir(), "state.json")); err != nil {
				t.Fatal(err)
			}
			b := change(t, s, add("Fourth"))
			if b.State.Tasks[4] == nil || b.State.Tasks[3] != nil {
				t.Errorf("the new task is among %v", b.State.Numbers())
			}
		})
	}
}

// Beyond the highest number none is given: it could not be read back.
func TestNumbersEnd(t *testing.T) {
	s := storeIn(t.TempDir(), unsynced())
	change(t, s, add("First"))
	write(t, s, "state.json", strings.Replace(text(t, s, "state.json"), `"next_number": 2`, `"next_number": 999999999`, 1)) // it is meant
	write(t, s, "TODO.md", text(t, s, "TODO.md")+"\n### 999999999. By hand\n\n- **Status**: [PLANNED]\n")
	title := "Second"
	_, err := s.Change(context.Background(), func(b *Board) error { _, err := b.Add(Draft{Title: &title}); return err })
	if err == nil || !strings.Contains(err.Error(), "999999999") {
		t.Errorf("%v", err)
	}
	// Headings without a number stay as they are, and a check says why.
	write(t, s, "TODO.md", text(t, s, "TODO.md")+"\n### Another\n\n- **Status**: [PLANNED]\n\n### 1. The first again\n\n- **Status**: [PLANNED]\n")
	rep, err := s.Fix(context.Background())
	if err != nil || len(rep.Left) != 2 || !strings.Contains(rep.Left[0].What+rep.Left[1].What, "gets no") {
		t.Errorf("%+v, %v", rep, err)
	}
	if got := text(t, s, "TODO.md"); !strings.Contains(got, "### Another\n") || strings.Count(got, "### 1. ") != 2 {
		t.Error(got)
	}
	b, err := s.Load(context.Background())
	if err != nil || b.State.Tasks[999999999] == nil || len(b.State.Tasks) != 2 {
		t.Errorf("%v, %v", b.State.Numbers(), err)
	}
	// A state.json that names more is not believed.
	write(t, s, "state.json", `{"v":1,"next_number":4,"tasks":{"1000000000":{"title":"x","slug":"x","status":"planned"}}}`)
	if _, err := s.Load(context.Background()); err == nil || !strings.Contains(err.Error(), "1000000000") {
		t.Errorf("%v", err)
	}
}

// What the archive has is not written over, though its number was given a second time.
func TestArchiveIsNotWrittenOver(t *testing.T) {
	s := storeIn(t.TempDir(), unsynced())
	change(t, s, add("Same title"))
	gone := func(b *Board) error {
		if err := b.SetStatus(1, Abandoned, ""); err != nil {
			return err
		}
		b.Write("001_same_title/reports/research-001.md", []byte("mine\n"))
		return nil
	}
	change(t, s, gone)
	archive := func(b *Board) error { _, err := b.Archive(); return err }
	change(t, s, archive)
	write(t, s, "TODO.md", text(t, s, "TODO.md")+"\n### 1. Same title\n\n- **Status**: [ABANDONED]\n")
	write(t, s, "state.json", `{"v":1,"next_number":2,"tasks":{"1":{"title":"Same title","slug":"same_title","status":"abandoned"}}}`)
	if _, err := s.Change(context.Background(), archive); err == nil || !strings.Contains(err.Error(), "the archive has") {
		t.Errorf("%v", err)
	}
	if got := text(t, s, "archive/001_same_title/reports/research-001.md"); got != "mine\n" {
		t.Errorf("the archived report is %q", got)
	}
	// Without the record, its folder says so.
	write(t, s, "archive/state.json", "{}")
	if _, err := s.Change(context.Background(), archive); err == nil || !strings.Contains(err.Error(), "specs/archive/001_same_title") {
		t.Errorf("%v", err)
	}
}

// A specs/ that leads out of the project is neither read nor written; one that leads to
// another place within it is the user's own way to have it.
func TestSpecsThatLeadOut(t *testing.T) {
	for name, within := range map[string]bool{"out": false, "within": true} {
		root, other := t.TempDir(), t.TempDir()
		if within {
			other = filepath.Join(root, "docs", "specs")
			if err := os.MkdirAll(other, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(other, filepath.Join(root, "specs")); err != nil {
			t.Skip("no links here: ", err)
		}
		s := storeIn(root, unsynced())
		title := "First"
		_, err := s.Change(context.Background(), func(b *Board) error { _, err := b.Add(Draft{Title: &title}); return err })
		_, lerr := s.Load(context.Background())
		_, ferr := s.Fix(context.Background())
		if (err == nil) != within || (lerr == nil) != within || (ferr == nil) != within {
			t.Errorf("%s: %v, %v, %v", name, err, lerr, ferr)
		}
		if list, _ := os.ReadDir(other); !within && len(list) > 0 {
			t.Errorf("%s: %v were written", name, list)
		}
	}
}

// A number far beyond the last one, as by a slip of the finger, is not taken over: later
// tasks would come after it, until none is left. It stays as it stands, and is told of.
func TestFarNumber(t *testing.T) {
	for _, c := range []struct {
		name, first, number string
		next                int // number of the task made then
		told                bool
	}{
		{"the highest", "First", "999999999", 2, true},
		{"a date", "First", "20261128", 2, true},
		{"a gap", "First", "5000", 5001, false},
		{"a new list that begins with a date", "", "20261128", 20261129, false},
		{"a new list that begins at the end", "", "999999999", 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := storeIn(t.TempDir(), unsynced())
			todo := "# TODO\n"
			if c.first != "" {
				change(t, s, add(c.first))
				todo = text(t, s, "TODO.md")
			} else if err := os.MkdirAll(s.Dir(), 0o755); err != nil {
				t.Fatal(err)
			}
			section := "\n### " + c.number + ". By hand\n\n- **Status**: [PLANNED]\n"
			write(t, s, "TODO.md", todo+section)
			rep, err := s.Fix(context.Background())
			if err != nil || (len(rep.Left) == 1 && strings.Contains(rep.Left[0].What, c.number+" is far beyond")) != c.told {
				t.Fatalf("%+v, %v", rep, err)
			}
			var made *Task
			title := "Next"
			change(t, s, func(b *Board) (err error) { made, err = b.Add(Draft{Title: &title}); return err })
			if made.Number != c.next {
				t.Errorf("the next one has the number %d, not %d", made.Number, c.next)
			}
			if got := text(t, s, "TODO.md"); c.told && !strings.Contains(got, strings.TrimSpace(section)) {
				t.Errorf("what the person wrote is another:\n%s", got)
			}
			write(t, s, "TODO.md", strings.Replace(text(t, s, "TODO.md"), "### "+c.number+".", "###", 1))
			if !c.told {
				return
			}
			if b := change(t, s, func(*Board) error { return nil }); b.State.Tasks[c.next+1] == nil || b.State.Tasks[c.next+1].Status != Planned {
				t.Errorf("without its number it does not get the next one: %v", b.State.Numbers())
			}
		})
	}
}
