package checkout

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/git"
)

// TestCompare: what changed in a place is seen, whether it was committed, staged, left in the
// files or is new, and how it changed as far as git knows it.
func TestCompare(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	dir := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run("init", "-q", "-b", "trunk")
	for _, name := range []string{"committed", "staged", "in files", "removed", "same"} {
		write(name, "one\n\ntwo\n")
	}
	run("add", "-A")
	run("commit", "-q", "-m", "first")
	base := run("rev-parse", "HEAD")
	g := git.New(dir, git.Options{})
	if files, patch, err := Compare(t.Context(), g, base); err != nil || patch != "" || len(files) > 0 {
		t.Fatalf("nothing has changed: %q, %s, %v", files, patch, err)
	}
	write("committed", "one\n\n: three\n")
	run("commit", "-q", "-a", "-m", "second")
	write("staged", "four\n")
	run("add", "staged")
	write("in files", "five\n")
	if err := os.Remove(filepath.Join(dir, "removed")); err != nil {
		t.Fatal(err)
	}
	write("new", "six\n")
	files, patch, err := Compare(t.Context(), g, base)
	slices.Sort(files)
	if err != nil || !slices.Equal(files, []string{"committed", "in files", "new", "removed", "staged"}) {
		t.Fatalf("%q, %v", files, err)
	}
	for _, want := range []string{"diff --git a/committed b/committed", "+: three", "+four", "+five", "-two"} {
		if !strings.Contains(patch, want) {
			t.Errorf("the diff lacks %q:\n%s", want, patch)
		}
	}
	if !strings.HasPrefix(patch, "diff --git ") {
		t.Errorf("the diff begins with the list of files:\n%s", patch)
	}
}

// What runs say that they committed is read from their output: a number in brackets, as git
// prints it, and no directory that only begins like the one that was meant.
func TestCommittedIsRead(t *testing.T) {
	t.Parallel()
	const commit = "1a2b3c4d5e6f"
	for text, want := range map[string]bool{
		"[trunk 1a2b3c4] Fix": true, "[trunk 1a2b3c4d5e] Fix": true, "see 1a2b3c4 for it": false, " 1a2b3c4 and then [trunk 1a2b3c4] x": true, "[trunk 9a2b3c4] Fix": false, "": false,
	} {
		if got := Committed([]byte(text), commit); got != want {
			t.Errorf("Committed(%q) = %v", text, got)
		}
	}
	for text, want := range map[string]bool{
		"cd /a/b && git commit": true, `"/a/b"`: true, "/a/b": true, "/a/b/c": false, "/a/b-c": false, "/a/bc": false, "/a/b.workspaces": false, "/a/b.workspaces and /a/b": true,
	} {
		if got := NamesDir([]byte(text), "/a/b"); got != want {
			t.Errorf("NamesDir(%q) = %v", text, got)
		}
	}
	if NamesDir([]byte("anything"), "") {
		t.Error("no directory is named by any text")
	}
}

// A lock that nobody takes away is waited for so long, and told of once.
func TestLocksAreWaitedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock := &git.Error{Kind: git.ErrLocked, Lock: filepath.Join(dir, "index.lock")}
	tries, told := 0, 0
	l := Locks{Patience: 150 * time.Millisecond, Waiting: func(error) { told++ }}
	err := l.Patiently(t.Context(), func() error { tries++; return lock })
	if !errors.Is(err, git.ErrLocked) || tries != 3 || told != 1 {
		t.Errorf("%v after %d tries, told %d times", err, tries, told)
	}
	tries = 0
	if err := l.Patiently(t.Context(), func() error {
		if tries++; tries < 2 {
			return lock
		}
		return nil
	}); err != nil || tries != 2 {
		t.Errorf("%v after %d tries", err, tries)
	}
}

// A lock in a worktree in which nobody is at work any more is not waited for as long as one
// that may be somebody's.
func TestOwnLocksAreLeft(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells who works in a repository")
	}
	repository := t.TempDir()
	admin := filepath.Join(repository, "worktrees", "a")
	for _, dir := range []string{filepath.Join(repository, "objects"), admin} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(admin, "index.lock")
	for _, own := range []bool{false, true} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		taken := ""
		l := Locks{Now: func() time.Time { return time.Now().Add(ownLockAge) }, Patience: time.Millisecond, Unlocked: func(path string) { taken = path }}
		if own {
			l.Own = admin
		}
		err := l.Patiently(t.Context(), func() error {
			if _, err := os.Lstat(path); err == nil {
				return &git.Error{Kind: git.ErrLocked, Lock: path}
			}
			return nil
		})
		if (err == nil) != own || (taken == path) != own {
			t.Errorf("own %v: %v, taken %q", own, err, taken)
		}
	}
}
