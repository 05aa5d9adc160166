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
)

// committing is a store of which "commits" are taken by commit: versions of its files, the
// newest first.
func committing(dir string) (s *Store, commit func(t *testing.T)) {
	var versions []map[string][]byte
	s = New(dir, Options{Disk: unsynced(), Now: clock, Committed: func(_ context.Context, name string) iter.Seq[[]byte] {
		return func(yield func([]byte) bool) {
			for _, v := range versions {
				if !yield(v[name]) {
					return
				}
			}
		}
	}})
	return s, func(t *testing.T) {
		t.Helper()
		v := map[string][]byte{}
		for _, name := range []string{"TODO.md", "state.json", "archive/TODO.md", "archive/state.json"} {
			if data, err := os.ReadFile(filepath.Join(s.Dir(), filepath.FromSlash(name))); err == nil {
				v["specs/"+name] = data
			}
		}
		versions = slices.Insert(versions, 0, v)
	}
}

func addText(b *Board) error {
	for _, title := range []string{"One", "Two", "Three"} {
		if _, err := b.Add(Draft{Title: ptr(title), Body: "Body of " + title + ".\n\n#### More\n\nWords."}); err != nil {
			return err
		}
	}
	return nil
}

// A TODO.md that is gone or empty, while the last commit has it, is no list without tasks:
// what they say stands nowhere else, and the next command would commit that it is gone.
func TestTodoGone(t *testing.T) {
	ctx := context.Background()
	for name, spoil := range map[string]func(file string) error{
		"gone":   os.Remove,
		"empty":  func(file string) error { return os.WriteFile(file, nil, 0o644) },
		"blanks": func(file string) error { return os.WriteFile(file, []byte("\n \r\n"), 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			s, commit := committing(t.TempDir())
			change(t, s, addText)
			commit(t)
			file := filepath.Join(s.Dir(), "TODO.md")
			todo, state := text(t, s, "TODO.md"), text(t, s, "state.json")
			if err := spoil(file); err != nil {
				t.Fatal(err)
			}
			_, lerr := s.Load(ctx)
			_, cerr := s.Change(ctx, add("Four"))
			_, ferr := s.Fix(ctx)
			for what, err := range map[string]error{"load": lerr, "change": cerr, "fix": ferr} {
				if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "git checkout HEAD -- specs/TODO.md") {
					t.Errorf("%s: %v", what, err)
				}
			}
			if text(t, s, "state.json") != state {
				t.Error("state.json was changed")
			}
			commit(t) // so it is meant; what the tasks said is in the commit before
			change(t, s, add("Four"))
			r, err := s.Fix(ctx)
			if err != nil || len(r.Mended) != 3 || !strings.Contains(r.Mended[0].What, "with its text") {
				t.Errorf("%+v, %v", r, err)
			}
			for _, line := range []string{"Body of One.\n\n#### More\n\nWords.\n", "Body of Three."} {
				if !strings.Contains(text(t, s, "TODO.md"), line) {
					t.Errorf("%q is missing in\n%s", line, text(t, s, "TODO.md"))
				}
			}
			write(t, s, "TODO.md", todo)
			write(t, s, "state.json", state)
			if r, err := s.Check(ctx); err != nil || !r.Agrees() {
				t.Errorf("brought back: %+v, %v", r, err)
			}
		})
	}
}

// The same where other text stands in the file and none of its tasks: --fix writes them
// back with what they said. A single task is cut out easily, and is asked about.
func TestTasksGone(t *testing.T) {
	ctx := context.Background()
	s, commit := committing(t.TempDir())
	change(t, s, addText)
	commit(t)
	own := "# TODO\n\n## Notes\n\nMine.\n"
	write(t, s, "TODO.md", own)
	if _, err := s.Change(ctx, add("Four")); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "none of the 3 tasks") {
		t.Errorf("%v", err)
	}
	if _, err := s.Load(ctx); !errors.Is(err, ErrLost) {
		t.Errorf("%v", err)
	}
	r, err := s.Fix(ctx)
	if err != nil || len(r.Mended) != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	if got := text(t, s, "TODO.md"); !strings.Contains(got, own) || !strings.Contains(got, "Body of Two.") {
		t.Error(got)
	}
	commit(t)
	// One of several, and one that is the only one, are a question.
	whole := text(t, s, "TODO.md")
	write(t, s, "TODO.md", whole[:strings.Index(whole, "### 3.")])
	change(t, s, status(1, Planned, ""))
	commit(t)
	if r, err := s.Fix(ctx); err != nil || len(r.Mended) != 1 || !strings.Contains(text(t, s, "TODO.md"), "Body of Three.") {
		t.Errorf("%+v, %v in\n%s", r, err, text(t, s, "TODO.md"))
	}
	s, commit = committing(t.TempDir())
	change(t, s, add("Only"))
	commit(t)
	write(t, s, "TODO.md", "# TODO\n\nMine.\n")
	change(t, s, status(1, Abandoned, ""))
	// Where no commit has a text, that is said.
	s = storeIn(t.TempDir(), unsynced())
	change(t, s, addText)
	write(t, s, "TODO.md", "")
	if r, err := s.Fix(ctx); err != nil || len(r.Mended) != 3 || !strings.Contains(r.Mended[0].What, "no commit has one of it") {
		t.Errorf("%+v, %v", r, err)
	}
}

// A state.json with nothing in it is as unreadable as one that is cut in half, and one of a
// newer program is not told to be set aside, which --fix would not do.
func TestStateUnreadable(t *testing.T) {
	ctx := context.Background()
	s := storeIn(t.TempDir(), unsynced())
	change(t, s, addText)
	write(t, s, "state.json", "")
	if _, err := s.Change(ctx, add("Four")); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "nothing in it") {
		t.Errorf("%v", err)
	}
	if r, err := s.Fix(ctx); err != nil || r.Damaged == "" {
		t.Errorf("%+v, %v", r, err)
	}
	if b := change(t, s, add("Four")); len(b.State.Tasks) != 4 || b.State.Tasks[4] == nil {
		t.Errorf("%v", b.State.Numbers())
	}
	newer := strings.Replace(text(t, s, "state.json"), `"v": 1`, `"v": 99`, 1)
	write(t, s, "state.json", newer)
	if _, err := s.Load(ctx); !errors.Is(err, ErrNewer) || strings.Contains(err.Error(), "--fix") {
		t.Errorf("%v", err)
	}
	if _, err := s.Fix(ctx); !errors.Is(err, ErrNewer) || text(t, s, "state.json") != newer {
		t.Errorf("%v", err)
	}
}

// An archive that is gone or empty, while the last commit has it, is not begun anew.
func TestArchiveGone(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"archive/TODO.md", "archive/state.json"} {
		s, commit := committing(t.TempDir())
		change(t, s, addText)
		change(t, s, status(1, Completed, ""))
		archive := func(b *Board) error { _, err := b.Archive(); return err }
		change(t, s, archive)
		commit(t)
		change(t, s, status(2, Completed, ""))
		kept := text(t, s, name)
		for _, spoil := range []func(){func() { write(t, s, name, "") }, func() { _ = os.Remove(filepath.Join(s.Dir(), filepath.FromSlash(name))) }} {
			spoil()
			if _, err := s.Change(ctx, archive); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "git checkout HEAD -- specs/"+name) {
				t.Errorf("%s: %v", name, err)
			}
		}
		write(t, s, name, kept)
		change(t, s, archive)
		if got := text(t, s, "archive/TODO.md"); !strings.Contains(got, "Body of One.") || !strings.Contains(got, "Body of Two.") {
			t.Error(got)
		}
	}
}
