package git

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlainIndex: what git says by ls-files -v, PlainIndex says without it, in each form of
// index; of what it cannot read it says no.
func TestPlainIndex(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	for _, c := range []struct {
		name, do string
		want     bool
	}{
		{"plain", "", true},
		{"version 4", "git update-index --index-version 4", true},
		{"intent to add", "echo x > later; git add -N later", true},
		{"conflict", "git checkout -q -b o; echo 1 > f1; git commit -qam 1; git checkout -q -; echo 2 > f1; git commit -qam 2; git merge -q o", true},
		{"assumed unchanged", "git update-index --assume-unchanged f7", false},
		{"skipped", "git update-index --skip-worktree f7", false},
		{"skipped, version 4", "git update-index --index-version 4; git update-index --skip-worktree f7", false},
		{"sparse", "git sparse-checkout set --no-cone /f1", false},
		{"split", "git update-index --split-index; echo 1 > f1; git add f1", false},
		{"cut", "head -c 200 .git/index > x; mv x .git/index", false},
		{"none", "rm .git/index", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for n := range 20 {
				name := fmt.Sprintf("f%d", n)
				if n%5 == 4 {
					name = strings.Repeat("long", n) + name
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("sh", "-c", "git init -q . && git add -A && git commit -qm x; "+c.do)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x")
			out, _ := cmd.CombinedOutput() // a merge that conflicts ends badly
			if got := PlainIndex(filepath.Join(dir, ".git", "index")); got != c.want {
				t.Errorf("%v, want %v\n%s", got, c.want, out)
			}
		})
	}
}
