package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A branch that is moved from another worktree is told from one that was moved where it is
// checked out, whatever a person does there.
func TestMovedBehind(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	for _, c := range []struct {
		name, do string
		behind   bool
	}{
		{"nothing", "true", false},
		{"committed", "git commit -q --allow-empty -m x", false},
		{"reset", "git commit -q --allow-empty -m x && git reset -q --hard HEAD~1", false},
		{"merged", "git merge -q --ff-only other", false},
		{"moved where it is", "git update-ref refs/heads/trunk other", false},
		{"moved from elsewhere", "cd ../tree && git update-ref refs/heads/trunk other", true},
		{"and taken back", "was=$(git rev-parse HEAD); cd ../tree && git update-ref refs/heads/trunk other; cd ../main && git reset -q --soft $was", false},
		{"and taken", "was=$(git rev-parse HEAD); cd ../tree && git update-ref refs/heads/trunk other; cd ../main && git reset -q --soft $was && git merge -q other", false},
		{"and gone on with", "cd ../tree && git update-ref refs/heads/trunk other; cd ../main && git commit -q --allow-empty -m x", false},
		{"another branch is moved", "cd ../tree && git update-ref refs/heads/third other", false},
		{"switched", "git switch -q -c fourth && cd ../tree && git update-ref refs/heads/trunk other; cd ../main && git switch -q trunk", false},
		{"no reflog", "cd ../tree && git -c core.logAllRefUpdates=false update-ref refs/heads/trunk other; rm ../main/.git/logs/HEAD", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sh := func(script string) string {
				t.Helper()
				cmd := exec.Command("sh", "-c", script)
				cmd.Dir = dir
				for _, v := range os.Environ() {
					if !strings.HasPrefix(v, "GIT_") {
						cmd.Env = append(cmd.Env, v)
					}
				}
				cmd.Env = append(cmd.Env, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x")
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v\n%s", script, err, out)
				}
				return strings.TrimSpace(string(out))
			}
			was := sh("git init -q -b trunk main && cd main && git commit -q --allow-empty -m one && git worktree add -q -b other ../tree && cd ../tree && git commit -q --allow-empty -m two && cd ../main && git rev-parse HEAD")
			sh("cd main && " + c.do)
			got := MovedBehind(filepath.Join(dir, "main"), "trunk", sh("cd main && git rev-parse trunk"))
			if want := map[bool]string{true: was}[c.behind]; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
