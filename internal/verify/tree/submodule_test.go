package tree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// nested is a repository with a submodule that has one itself, committed.
func nested(t *testing.T) (dir, base string) {
	t.Helper()
	dir = t.TempDir()
	made := func(at, name string) {
		runGit(t, at, "init", "-q", "-b", "main")
		put(t, at, name, "one\n", 0o644)
		runGit(t, at, "add", "-A")
		runGit(t, at, "commit", "-q", "-m", name)
	}
	lib, inner := t.TempDir(), t.TempDir()
	made(inner, "inner.txt")
	made(lib, "lib.txt")
	runGit(t, lib, "submodule", "--quiet", "add", inner, "in")
	runGit(t, lib, "commit", "-q", "-m", "in")
	made(dir, "a.txt")
	runGit(t, dir, "submodule", "--quiet", "add", lib, "third/lib")
	runGit(t, dir, "submodule", "--quiet", "update", "--init", "--recursive")
	runGit(t, dir, "commit", "-q", "-m", "lib")
	return dir, strings.TrimSpace(runGit(t, dir, "rev-parse", "HEAD"))
}

// A copy of a commit has the submodules as that commit records them, whatever is in them
// now or was committed since; what changed in one is a change.
func TestCommitHasItsSubmodules(t *testing.T) {
	t.Parallel()
	dir, base := nested(t)
	tr := find(t, dir)
	if c, err := tr.ChangeSince(context.Background(), base, t.TempDir()); err != nil || len(c.Paths) != 0 {
		t.Errorf("nothing changed: %q %v", c.Paths, err)
	}
	lib := filepath.Join(dir, "third/lib")
	put(t, lib, "in/inner.txt", "two\nthree\n", 0o644)
	put(t, lib, "lib.txt", "two\n", 0o644)
	put(t, lib, "new.txt", "new\n", 0o644)
	look := func(step string) {
		t.Helper()
		o := options(t, "ver-sub")
		o.Commit = base
		s, err := tr.Snapshot(context.Background(), o)
		if err != nil {
			t.Fatal(step, err)
		}
		defer s.Remove()
		for name, want := range map[string]string{"a.txt": "one\n", "third/lib/lib.txt": "one\n", "third/lib/in/inner.txt": "one\n"} {
			if got, err := os.ReadFile(filepath.Join(s.Tree.Top, name)); err != nil || string(got) != want {
				t.Errorf("%s: %s: %q, %v", step, name, got, err)
			}
		}
		if _, err := os.Lstat(filepath.Join(s.Tree.Top, "third/lib/new.txt")); err == nil {
			t.Errorf("%s: new.txt is not in that commit", step)
		}
		if out := runGit(t, s.Tree.Top, "status", "--porcelain"); out != "" {
			t.Errorf("%s: git status in the copy: %q", step, out)
		}
		if out := runGit(t, s.Tree.Top, "submodule", "status", "--recursive"); strings.HasPrefix(out, "-") || strings.Contains(out, "\n-") || strings.Count(out, "\n") != 2 {
			t.Errorf("%s: git submodule status in the copy: %q", step, out)
		}
		c, err := tr.ChangeSince(context.Background(), base, t.TempDir())
		for _, p := range []string{"third/lib/in/inner.txt", "third/lib/lib.txt", "third/lib/new.txt"} {
			if err != nil || !slices.Contains(c.Paths, p) {
				t.Errorf("%s: changes %q lack %s, %v", step, c.Paths, p, err)
			}
		}
		text, err := tr.Diff(context.Background(), base, t.TempDir(), 1<<20)
		for _, want := range []string{"in the submodule third/lib:", "+three", "new.txt"} {
			if err != nil || !strings.Contains(text, want) || strings.Contains(text, "new file third/") {
				t.Errorf("%s: the diff lacks %q (%v):\n%s", step, want, err, text)
			}
		}
	}
	look("changed")
	runGit(t, filepath.Join(lib, "in"), "commit", "-q", "-a", "-m", "inner")
	runGit(t, lib, "add", "-A")
	runGit(t, lib, "commit", "-q", "-m", "two")
	look("committed there")
	runGit(t, dir, "commit", "-q", "-a", "-m", "two")
	look("recorded")
	o := options(t, "ver-now")
	s, err := tr.Snapshot(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Remove()
	if out := runGit(t, s.Tree.Top, "submodule", "status"); strings.HasPrefix(out, "-") {
		t.Errorf("git submodule status in the copy of the tree: %q", out)
	}
	// Taken away meanwhile: what the commit was cannot be said any more.
	runGit(t, dir, "submodule", "--quiet", "deinit", "-f", "third/lib")
	o = options(t, "ver-gone")
	o.Commit = base
	if _, err := tr.Snapshot(context.Background(), o); !errors.Is(err, ErrLacking) {
		t.Errorf("without the submodule: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(dir, ".git/modules")); err != nil {
		t.Fatal(err)
	}
	s, err = tr.Snapshot(context.Background(), o)
	if err != nil {
		t.Fatalf("a submodule that nobody ever fetched: %v", err)
	}
	s.Remove()
}

// A list of what is ignored that the repository's own settings name counts.
func TestIgnoredByTheRepositorysSettings(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"absolute", "relative", "worktree", "included"} {
		dir := t.TempDir()
		runGit(t, dir, "init", "-q", "-b", "main")
		put(t, dir, "mine", "*.tmp\n", 0o644)
		put(t, dir, "x.tmp", "x", 0o644)
		name := filepath.Join(dir, "mine")
		switch how {
		case "relative":
			name = "mine"
			fallthrough
		case "absolute":
			runGit(t, dir, "config", "core.excludesFile", name)
		case "worktree":
			runGit(t, dir, "config", "extensions.worktreeConfig", "true")
			runGit(t, dir, "config", "--worktree", "core.excludesFile", name)
		case "included":
			put(t, dir, ".git/more", "[core]\n\texcludesFile = "+filepath.ToSlash(name)+"\n", 0o644)
			runGit(t, dir, "config", "include.path", "more")
		}
		tr := find(t, dir)
		c, err := tr.ChangeSince(context.Background(), "", t.TempDir())
		if err != nil || !slices.Equal(c.Paths, []string{"mine"}) {
			t.Errorf("%s: %q %v", how, c.Paths, err)
		}
		o := options(t, "ver-ignored")
		s, err := tr.Snapshot(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(filepath.Join(s.Tree.Top, "x.tmp")); err == nil {
			t.Errorf("%s: the copy has what is ignored", how)
		}
		s.Remove()
	}
}
