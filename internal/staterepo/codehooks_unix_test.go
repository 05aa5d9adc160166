//go:build unix

package staterepo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"reprise/internal/git"
	"reprise/internal/staterepo/codehooks"
)

// shot is everything below a directory, with modes and contents.
func shot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(p, "/objects/") || strings.Contains(p, "/logs/") || filepath.Base(p) == "index" {
			return err
		}
		data, err := os.ReadFile(p)
		fi, _ := d.Info()
		b.WriteString(strings.TrimPrefix(p, dir) + " " + fi.Mode().String() + "\n" + string(data) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func codeOf(m *machine, dir string) codehooks.Repo {
	return codehooks.Repo{Dir: dir, Git: git.Options{Vars: m.vars}}
}

// Our hooks stand before the user's, which keep the last word, and go again without
// a trace, wherever the user has hooks.
func TestCodeHooksAreChained(t *testing.T) {
	t.Parallel()
	kinds := []string{"beside", "local"}
	if long() {
		kinds = append(kinds, "none", "relative", "global")
	}
	for _, where := range kinds {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, nil)
			dir := m.code("code ü'n q")
			hooks := filepath.Join(dir, ".git", "hooks")
			switch where {
			case "local":
				hooks = filepath.Join(m.dir, "my hooks")
				m.gitIn(dir, "config", "core.hooksPath", "~/my hooks")
			case "relative":
				hooks = filepath.Join(dir, ".husky")
				m.gitIn(dir, "config", "core.hooksPath", ".husky")
			case "global":
				hooks = filepath.Join(m.dir, "my hooks")
				m.write(m.dir, ".gitconfig", "[core]\n\thooksPath = ~/my hooks\n")
			}
			said := filepath.Join(m.dir, "said")
			if where != "none" {
				for _, h := range []string{"post-commit", "post-checkout", "pre-commit"} {
					m.write(hooks, h, "#!/bin/sh\necho user "+h+" $# >>'"+said+"'\n")
					if err := os.Chmod(filepath.Join(hooks, h), 0o755); err != nil {
						t.Fatal(err)
					}
				}
			}
			before := shot(t, filepath.Join(dir, ".git"))
			tracked := m.gitIn(dir, "status", "--porcelain")
			// The program opens a pipe that nobody else does: it hangs, and git goes on.
			program := filepath.Join(m.dir, "bin dir", "it's reprise")
			pipe := filepath.Join(m.dir, "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			m.write(filepath.Dir(program), filepath.Base(program), "#!/bin/sh\necho \"$@\" >'"+pipe+"'\n")
			if err := os.Chmod(program, 0o755); err != nil {
				t.Fatal(err)
			}
			for range 2 { // twice is once
				list, err := codeOf(m, dir).Install(t.Context(), program, codehooks.Names())
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range list {
					if !s.Installed || s.Problem != "" || (s.Chained != "") != (where != "none") && where != "relative" {
						t.Errorf("%+v", s)
					}
				}
			}
			if got := m.gitIn(dir, "status", "--porcelain"); got != tracked {
				t.Errorf("the user's own files changed: %s", got)
			}
			run := func(want string, args ...string) {
				t.Helper()
				m.gitIn(dir, args...)
				got, err := os.ReadFile(pipe) // ends when the program does
				if err != nil || strings.TrimSpace(string(got)) != want {
					t.Errorf("%v: the program got %q %v, want %q", args, got, err, want)
				}
			}
			run("state hooks run post-commit", "commit", "-qm", "second", "--allow-empty")
			head := strings.TrimSpace(m.gitIn(dir, "rev-parse", "HEAD"))
			run("state hooks run post-checkout "+head+" "+head+" 1", "checkout", "-qb", "other")
			if where != "none" {
				data, _ := os.ReadFile(said)
				if string(data) != "user pre-commit 0\nuser post-commit 0\nuser post-checkout 3\n" {
					t.Errorf("the user's hooks said %q", data)
				}
			}
			// The user's word counts: a post-checkout that fails is git's exit code.
			if where == "beside" {
				m.write(hooks, "post-checkout"+".before-reprise", "#!/bin/sh\nexit 7\n")
				cmd := exec.Command("git", "checkout", "-q", "trunk")
				cmd.Dir, cmd.Env = dir, []string{"PATH=" + m.vars["PATH"], "HOME=" + m.vars["HOME"]}
				if err := cmd.Run(); err == nil {
					t.Error("the user's failing hook was passed over")
				}
				if _, err := os.ReadFile(pipe); err != nil {
					t.Error(err)
				}
				m.write(hooks, "post-checkout"+".before-reprise", "#!/bin/sh\necho user post-checkout $# >>'"+said+"'\n")
				m.gitIn(dir, "symbolic-ref", "HEAD", "refs/heads/other")
			}
			if _, err := codeOf(m, dir).Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			m.gitIn(dir, "symbolic-ref", "HEAD", "refs/heads/trunk")
			m.gitIn(dir, "update-ref", "refs/heads/trunk", "HEAD~1")
			m.gitIn(dir, "branch", "-qD", "other")
			after := shot(t, filepath.Join(dir, ".git"))
			if drop := func(s string) string {
				s, _, _ = strings.Cut(s, "COMMIT_EDITMSG")
				return s
			}; drop(after) != drop(before) || cutConfig(after) != cutConfig(before) || cutHooks(after) != cutHooks(before) {
				t.Errorf("a trace is left:\n%s\n----\n%s", before, after)
			}
		})
	}
}

func cutConfig(s string) string {
	_, s, _ = strings.Cut(s, "\n/config ")
	s, _, _ = strings.Cut(s, "\n/")
	return s
}
func cutHooks(s string) string {
	var out []string
	for line := range strings.Lines(s) {
		if strings.HasPrefix(line, "/hooks/") || strings.HasPrefix(line, "/reprise") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// Whoever puts a hook where ours was is left alone, and it is said.
func TestCodeHookThatWasReplaced(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	dir := m.code("code")
	hook := filepath.Join(dir, ".git", "hooks", "post-commit")
	m.write(filepath.Dir(hook), "post-commit", "#!/bin/sh\n# theirs\n")
	o := codeOf(m, dir)
	if _, err := o.Install(t.Context(), "/bin/true", []string{"post-commit"}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\n# of another tool\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Install(t.Context(), "/bin/true", []string{"post-commit"}); err == nil || !strings.Contains(err.Error(), "before-reprise") {
		t.Errorf("%v", err)
	}
	list, err := o.Remove(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if list[1].Problem == "" || list[1].Installed {
		t.Errorf("%+v", list)
	}
	if m.read(filepath.Dir(hook), "post-commit") != "#!/bin/sh\n# of another tool\n" || m.read(filepath.Dir(hook), "post-commit.before-reprise") != "#!/bin/sh\n# theirs\n" {
		t.Error("a hook of somebody else's changed")
	}
	if _, err := o.Install(t.Context(), "/bin/true", []string{"pre-commit"}); err == nil {
		t.Error("a hook that there is no use for was installed")
	}
}
