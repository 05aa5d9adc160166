package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMoves: what went into a checkout is read from its reflog, also from below it, and what
// reprise commits for a user is named so.
func TestMoves(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	dir := t.TempDir()
	vars := map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir}
	g := New(dir, Options{Vars: vars})
	who := []string{"-c", "user.name=a", "-c", "user.email=a@x"}
	run := func(g *Git, args ...string) {
		t.Helper()
		if _, err := g.Run(t.Context(), append(who[:4:4], args...)...); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	run(g, "init", "-q")
	if got := Moves(dir, began); len(got) != 0 {
		t.Errorf("before the first commit: %+v", got)
	}
	run(g, "commit", "-q", "--allow-empty", "-m", "one")
	run(g.AsUser(), "commit", "-q", "--allow-empty", "-m", "two")
	sub := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	got := Moves(sub, began)
	if len(got) != 2 || got[0].What != "commit (initial): one" || got[1].What != Action+": two" || got[1].Old != got[0].New {
		t.Fatalf("%+v", got)
	}
	if head, err := g.Resolve(t.Context(), "HEAD"); err != nil || head != got[1].New {
		t.Errorf("HEAD is %s, %v", head, err)
	}
	if got := Moves(dir, time.Now().Add(time.Hour)); len(got) != 0 {
		t.Errorf("later: %+v", got)
	}
	tree := filepath.Join(t.TempDir(), "tree")
	run(g, "worktree", "add", "-q", tree)
	if got := Moves(tree, began); len(got) == 0 || strings.HasPrefix(got[len(got)-1].What, Action) {
		t.Errorf("of a linked worktree: %+v", got)
	}
}
