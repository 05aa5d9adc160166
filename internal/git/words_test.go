package git

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A full disk is one of the moment also in the words that git has for it.
func TestPassingWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"fatal: sha1 file '/p/.git/worktrees/a/index.lock' write error. Out of diskspace":                                  true,
		"fatal: cannot update ref 'refs/heads/loop-a': couldn't write '/p/.git/refs/heads/loop-a.lock'":                    true,
		"error: unable to write file x: No space left on device":                                                           true,
		"fatal: unable to write new index file":                                                                            true,
		"fatal: cannot update ref 'refs/heads/loop-a': couldn't write '/p/.git/refs/heads/loop-a.lock': Permission denied": false,
		"fatal: unable to write new index file: Read-only file system":                                                     false,
		"error: pathspec 'x' did not match any file(s) known to git":                                                       false,
	} {
		if got := Passing(&Error{Stderr: text}); got != want {
			t.Errorf("Passing(%q) = %v", text, got)
		}
	}
}

// Settings of a person's that are for their own work do not get in the way of ours.
func TestSettingsOfAPerson(t *testing.T) {
	t.Parallel()
	needShell(t)
	dir := t.TempDir()
	sh := shell(t, dir)
	sh("git init -q -b trunk && git config diff.orderFile nowhere.txt && git config commit.cleanup strip && git config user.name a && git config user.email a@x && echo 1 >f")
	g := New(dir, Options{Vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir}}).OfUser()
	if _, err := g.Run(t.Context(), "add", "f"); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Run(t.Context(), "commit", "--quiet", "--message=#12 Title\n\nand more"); err != nil {
		t.Fatal(err)
	}
	if got := sh("git log -1 --format=%s"); got != "#12 Title" {
		t.Errorf("the commit is called %q", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("2"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"status", "--porcelain"}, {"diff", "HEAD"}} {
		if out, err := g.Run(t.Context(), args...); err != nil || !strings.Contains(string(out), "f") {
			t.Errorf("git %v: %s, %v", args, out, err)
		}
	}
	var exit *exec.ExitError
	cmd := exec.Command("git", "status", "--porcelain")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull)
	if err := cmd.Run(); !errors.As(err, &exit) {
		t.Logf("this git does not mind a file of orders that is gone: %v", err)
	}
}

func TestSaid(t *testing.T) {
	e := &Error{Args: []string{"-c", "branch.main.mergeOptions=", "merge", "--quiet", "--ff-only", "85c0"}, Code: 1, Stderr: "error: .env would be overwritten"}
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("move main forward: %w", e), "move main forward: git merge: error: .env would be overwritten"},
		{errors.New("something else"), "something else"},
	} {
		if got := Said(c.err); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
