package workspace_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/workspace"
)

// Whatever is done in workspaces, in any order: what was written there is in the
// workspace, or comes back by restoring, or its commit can be reached from a ref.
func TestAnyOrder(t *testing.T) {
	t.Parallel()
	rounds, steps := 1, 8
	if os.Getenv("REPRISE_LONG_TESTS") != "" {
		rounds, steps = 10, 80
	}
	for seed := range rounds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := &world{place: newPlace(t), r: rand.New(rand.NewPCG(uint64(seed), 11)), files: map[string]map[string]string{}}
			for range steps {
				w.step()
			}
			w.check()
		})
	}
}

// world is what must be there: files by workspace, as they were last written, and
// commits.
type world struct {
	*place
	r       *rand.Rand
	n       int
	files   map[string]map[string]string // of workspaces that are there
	commits []string
}

func (w *world) some() string {
	var names []string
	for name := range w.files {
		names = append(names, name)
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return names[w.r.IntN(len(names))]
}

func (w *world) step() {
	w.n++
	m := w.manager()
	ctx := w.t.Context()
	name := w.some()
	op := w.r.IntN(10)
	if name == "" || op == 0 && len(w.files) < 3 {
		name = fmt.Sprintf("w%d", w.n)
		c := w.create(workspace.CreateOptions{Name: name})
		w.files[name] = map[string]string{"main.go": w.read(c.Dir, "main.go")}
		return
	}
	ws, err := m.Get(name)
	if err != nil {
		w.t.Fatal(err)
	}
	text := fmt.Sprintf("%d of %s\n", w.n, name)
	file := []string{"main.go", "a.txt", "dir/b c.txt", "x.log"}[w.r.IntN(4)]
	switch op {
	case 1, 2, 3, 4:
		w.write(ws.Dir, file, text)
		w.files[name][file] = text
		if op == 4 && file != "x.log" {
			w.git(ws.Dir, "add", file)
		}
	case 5:
		w.commits = append(w.commits, w.commit(ws.Dir, text))
	case 6:
		w.git(ws.Dir, "commit", "-q", "--amend", "--allow-empty", "-m", text)
		w.commits = append(w.commits, strings.TrimSpace(w.git(ws.Dir, "rev-parse", "HEAD")))
	case 7:
		w.git(ws.Dir, "checkout", "-q", "--detach")
	default:
		want, began := w.files[name], time.Now().Truncate(time.Millisecond)
		w.away(m, name)
		before, err := m.ListSaved(ctx, name)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(before) == 0 || before[0].At.Before(began) || w.r.IntN(3) == 0 {
			return
		}
		r, err := m.Restore(ctx, workspace.RestoreOptions{Name: name, Newest: true})
		if err != nil {
			w.t.Fatalf("step %d: %v", w.n, err)
		}
		for file, text := range want {
			if got := w.read(r.Dir, file); got != text {
				w.t.Fatalf("step %d: %s of %s was restored as %q, want %q (of %+v)", w.n, file, name, got, text, r.From)
			}
		}
		w.files[name] = want
	}
}

// away removes a workspace, and wants its files to come back elsewhere.
func (w *world) away(m *workspace.Manager, name string) {
	w.t.Helper()
	ctx := w.t.Context()
	want := w.files[name]
	r, err := m.Remove(ctx, name, workspace.RemoveOptions{Save: true, DeleteBranch: w.r.IntN(2) == 0})
	if err != nil {
		w.t.Fatalf("step %d: %v", w.n, err)
	}
	delete(w.files, name)
	for file, text := range want {
		if file == "x.log" {
			if got := w.read(r.Kept, file); got != text {
				w.t.Errorf("step %d: %s of %s is lost: %q", w.n, file, name, got)
			}
			continue
		}
		if got := w.kept(r, file); got != text {
			w.t.Errorf("step %d: %s of %s is lost: %q, want %q (%+v)", w.n, file, name, got, text, r)
		}
	}
}

// kept is a file's text by what git has after a removal.
func (w *world) kept(r workspace.Removed, file string) string {
	revs := []string{r.BranchAt}
	if r.Saved != "" {
		revs = strings.Fields(w.git(w.code, "rev-list", "--parents", "--max-count=1", r.Saved))
		revs = append(revs[:1], revs[min(3, len(revs)):min(4, len(revs))]...) // itself, and the untracked files
	}
	for _, rev := range revs {
		if list := w.git(w.code, "ls-tree", "-r", "--name-only", "-z", rev+"^{tree}", "--", file); list != "" {
			return w.git(w.code, "show", rev+":"+file)
		}
	}
	return ""
}

func (w *world) check() {
	w.t.Helper()
	w.git(w.code, "gc", "-q", "--prune=now")
	for _, c := range w.commits {
		if got := strings.TrimSpace(w.git(w.code, "cat-file", "-t", c)); got != "commit" {
			w.t.Errorf("commit %s is %s", c, got)
		}
	}
	for name, files := range w.files {
		ws, err := w.manager().Get(name)
		if err != nil {
			w.t.Fatal(err)
		}
		for file, text := range files {
			if got := w.read(ws.Dir, filepath.FromSlash(file)); got != text {
				w.t.Errorf("%s of %s: %q", file, name, got)
			}
		}
	}
	w.whole("in the end")
}

// What was restored, not changed, and removed again comes back where it was: its commits are
// named by what the first removal kept alone, and of the second there are ignored files only.
func TestRemovedTwice(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	m := p.manager()
	dir := p.create(workspace.CreateOptions{Name: "twice"}).Dir
	p.write(dir, "main.go", "package other\n")
	p.commit(dir, "other")
	p.write(dir, "x.log", "seen\n")
	for range 2 {
		if _, err := m.Remove(t.Context(), "twice", workspace.RemoveOptions{Save: true, DeleteBranch: true}); err != nil {
			t.Fatal(err)
		}
		r, err := m.Restore(t.Context(), workspace.RestoreOptions{Name: "twice", Newest: true})
		if err != nil {
			t.Fatal(err)
		}
		for file, want := range map[string]string{"main.go": "package other\n", "x.log": "seen\n"} {
			if got := p.read(r.Dir, file); got != want {
				t.Errorf("%s is %q, want %q, restored of %+v", file, got, want, r.From)
			}
		}
	}
}
