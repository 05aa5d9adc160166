package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Who made a branch is told by its reflog, from any checkout of its repository, and is
// forgotten and renamed with the branch.
func TestMadeBy(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	dir := t.TempDir()
	top := filepath.Join(dir, "shop")
	if err := os.MkdirAll(filepath.Join(top, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	home := map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir}
	g := New(top, Options{Vars: home}).OfUser()
	run := func(args ...string) {
		t.Helper()
		if _, err := g.Run(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	wants := func(in, branch, mark, what string) {
		t.Helper()
		if m, w, known := MadeBy(in, branch); m != mark || w != what || !known {
			t.Errorf("%s is by %q, %q; it should be %q, %q", branch, m, w, mark, what)
		}
	}
	run("init", "-q", "-b", "trunk")
	run("config", "user.name", "A Person")
	run("config", "user.email", "a@example.invalid")
	run("config", "committer.email", "other@example.invalid") // which counts for more than user.email
	run("commit", "-q", "--allow-empty", "-m", "first")
	head, err := g.Resolve(t.Context(), "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	run(append(By("loop", "item+a.b-1@k3"), "worktree", "add", "--quiet", "--no-track", "-b", "own", "--", filepath.Join(dir, "place"), head)...)
	run("branch", "theirs")
	run("branch", "group/theirs")
	for _, in := range []string{top, filepath.Join(top, "sub"), filepath.Join(dir, "place"), filepath.Join(top, ".git")} {
		wants(in, "own", "item+a.b-1@k3", "branch: Created from "+head)
		wants(in, "theirs", "other@example.invalid", "branch: Created from trunk")
		wants(in, "group/theirs", "other@example.invalid", "branch: Created from trunk")
	}
	wants(top, "none", "", "")
	wants(top, "../../HEAD", "", "")
	wants(dir, "own", "", "")
	run("commit", "-q", "--allow-empty", "-m", "second")
	run("update-ref", "-m", "moved", "refs/heads/own", "HEAD")
	wants(top, "own", "item+a.b-1@k3", "branch: Created from "+head)
	run("branch", "-m", "own", "renamed")
	wants(top, "own", "", "")
	wants(top, "renamed", "item+a.b-1@k3", "branch: Created from "+head)
	run("branch", "own")
	wants(top, "own", "other@example.invalid", "branch: Created from trunk")
	if err := os.Mkdir(filepath.Join(top, ".git", "reftable"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, known := MadeBy(top, "own"); known {
		t.Error("what refs in another form say is said to be known")
	}
}
