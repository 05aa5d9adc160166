package checkout

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/git"
)

// TestShared: each thing that worktrees share and that was changed is named once, and what git
// writes by itself is not.
func TestShared(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	for _, c := range []struct{ do, want string }{
		{"git status -s; git log -1 --format=; git gc -q", ""},
		{"git branch a", "the branch a was made, at "},
		{"git branch -D x/y", "the branch x/y was deleted (it was at "},
		{"git branch -f x/y HEAD~1", "the branch x/y was moved from "},
		{"git tag v2; git tag -d v1", "the tag v1 was deleted (it was at |the tag v2 was made, at "},
		{"echo 1 > f; git stash -q", "something was put on the stash"},
		{"git stash drop -q", "something was taken off the stash"},
		{"git stash drop -q; echo 2 > f; git stash -q", "the stash, which all worktrees share, is another one"},
		{"git config core.bare true", "the setting core.bare of the repository was set to true"},
		{"git config remote.origin.url https://a:secret@b", "the setting remote.origin.url of the repository was made"},
		{"git config --unset x.y", "the setting x.y of the repository was removed"},
		{"git config --add x.y 2", "the setting x.y of the repository was changed"},
		{"git config branch.a.remote o; git config submodule.s.active true", ""},
		{"echo '# a comment' >> .git/config", ""},
		{"git replace HEAD HEAD~1", "the replacement of "},
		{"git -c user.name=a -c user.email=a@x notes add -m n", "the notes commits was made"},
		{"git update-ref refs/remotes/o/a HEAD; git update-ref refs/reprise/a HEAD", ""},
		{"echo x > .git/hooks/pre-push; rm .git/hooks/pre-commit", "the hook pre-commit was removed|the hook pre-push was made"},
	} {
		t.Run(c.do, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sh := func(script string) {
				t.Helper()
				cmd := exec.Command("sh", "-ec", script)
				cmd.Dir = dir
				for _, v := range os.Environ() {
					if !strings.HasPrefix(v, "GIT_") {
						cmd.Env = append(cmd.Env, v)
					}
				}
				cmd.Env = append(cmd.Env, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", script, err, out)
				}
			}
			sh("git init -q -b trunk; echo 0 > f; git add f; git commit -qm one; git commit -q --allow-empty -m two; git branch x/y; git tag v1; git config x.y 1; echo 3 > f; git stash -q; mkdir -p .git/hooks; echo old > .git/hooks/pre-commit")
			common, o := filepath.Join(dir, ".git"), git.Options{Vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir}}
			before, err := ReadShared(t.Context(), common, o)
			if err != nil {
				t.Fatal(err)
			}
			sh(c.do)
			now, err := ReadShared(t.Context(), common, o)
			if err != nil {
				t.Fatal(err)
			}
			list, err := now.Changed(t.Context(), git.New(dir, o), &before)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range list {
				got = append(got, c.What)
			}
			want := strings.Split(c.want, "|")
			if c.want == "" {
				want = nil
			}
			ok := len(got) == len(want)
			for i := range want {
				ok = ok && strings.HasPrefix(got[i], want[i])
			}
			if !ok || strings.Contains(fmt.Sprint(got), "secret") {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// A setting that has git run a program is put back to what it was, with all its values, unless
// somebody has changed it again; what else there is stays.
func TestPutBack(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		before, do, then, want string
		runs, refused          bool
	}{
		{"", "git config core.hooksPath /evil", "", "", true, false},
		{"git config core.hooksPath mine", "git config core.hooksPath /evil", "", "mine\n", true, false},
		{"git config core.hooksPath mine; git config --add core.hooksPath both", "git config --replace-all core.hooksPath /evil", "", "mine\nboth\n", true, false},
		{"", "git config core.fsmonitor /evil", "", "", true, false},
		{"git config core.fsmonitor true", "git config core.fsmonitor /evil", "", "true\n", true, false},
		{"", "git config core.fsmonitor true", "", "true\n", false, false},
		{"git config core.fsmonitor x", "git config --unset core.fsmonitor", "", "", false, false},
		{"", "git config core.hooksPath /evil", "git config core.hooksPath mine", "mine\n", true, true},
		{"", "git config filter.x.clean /evil", "", "", false, false}, // the loop goes no further at those
	} {
		dir := t.TempDir()
		sh := func(script string) string {
			t.Helper()
			cmd := exec.Command("sh", "-ec", script)
			cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", script, err, out)
			}
			return string(out)
		}
		sh("git init -q; git config x.y 1; " + tc.before)
		common, o := filepath.Join(dir, ".git"), git.Options{Vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir}}
		g := git.New(dir, o)
		before, err := ReadShared(t.Context(), common, o)
		if err != nil {
			t.Fatal(err)
		}
		sh(tc.do)
		now, err := ReadShared(t.Context(), common, o)
		if err != nil {
			t.Fatal(err)
		}
		list, err := now.Changed(t.Context(), g, &before)
		if err != nil || len(list) != 1 || list[0].Runs() != tc.runs {
			t.Fatalf("%s: %+v, %v", tc.do, list, err)
		}
		if !tc.runs {
			continue
		}
		sh(tc.then)
		if err := list[0].PutBack(t.Context(), g, common); (err != nil) != tc.refused {
			t.Errorf("%s: %v", tc.do, err)
		}
		if got := sh("git config --get-all " + list[0].Name + " || true"); got != tc.want {
			t.Errorf("%s, then %s: %q, want %q", tc.do, tc.then, got, tc.want)
		}
		if got := sh("git config x.y"); got != "1\n" {
			t.Errorf("%s: %q", tc.do, got)
		}
	}
}
