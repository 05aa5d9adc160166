package git

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shell runs a script in a directory, with nobody's settings but these.
func shell(t *testing.T, dir string) func(script string) string {
	return func(script string) string {
		t.Helper()
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		return strings.TrimSpace(string(out))
	}
}

func needShell(t *testing.T) {
	t.Helper()
	for _, name := range []string{"sh", "git"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(name + " is not here")
		}
	}
}

// What git calls changed and nobody has changed is told from what somebody has: by what a
// checkout would write, not by what git would make of the file.
func TestFresh(t *testing.T) {
	t.Parallel()
	needShell(t)
	dir := t.TempDir()
	sh := shell(t, dir)
	sh(`git init -q -b trunk && mkdir -p sub "with space"
printf 'a\r\nb\r\n' | tee crlf changed ended "with space/crlf" sub/crlf >/dev/null
printf 'raw\n' | tee raw.bin other.bin plain >/dev/null
git add -A && git commit -qm files
printf '* text\n*.bin filter=up\nsub/* -text\n' >.gitattributes && git config filter.up.clean 'sed s/^/pointer:/' && git config filter.up.smudge 'sed s/^pointer://'
git add .gitattributes && git commit -qm attributes
printf 'a\r\nB\r\n' >changed; printf 'a\nb\n' >ended; printf 'RAW\n' >other.bin; printf 'changed\n' >plain; touch crlf raw.bin "with space/crlf"`)
	g := New(dir, Options{Vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir}}).OfUser()
	all := []string{"crlf", "changed", "ended", "with space/crlf", "raw.bin", "other.bin", "plain"}
	if status := sh("git status --porcelain -- crlf raw.bin"); !strings.Contains(status, "M crlf") || !strings.Contains(status, "M raw.bin") {
		t.Fatalf("git does not call them changed: %q", status)
	}
	fresh, err := g.Unchanged(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(fresh)); !slices.Equal(got, []string{"crlf", "raw.bin", "with space/crlf"}) {
		t.Errorf("%q are as they were made", got)
	}
	sh("chmod +x crlf && git rm -q --cached raw.bin && git update-index --add --cacheinfo 100644," + strings.Repeat("1", 40) + ",'with space/crlf'")
	if fresh, err := g.Unchanged(t.Context(), all); err != nil || len(fresh) > 0 {
		t.Errorf("with another mode, out of the index, or whose object is gone: %v, %v", fresh, err)
	}
	sh("rm .gitattributes")
	if fresh, err := g.Unchanged(t.Context(), []string{"sub/crlf", "plain"}); err != nil || len(fresh) > 0 {
		t.Errorf("without attributes: %v, %v", fresh, err)
	}
}

// A filter whose program is missing is said to be that, and no remote.
func TestFilterIsMissing(t *testing.T) {
	t.Parallel()
	needShell(t)
	for name, settings := range map[string]string{
		"a process":             "git config filter.up.process 'no-such-lfs filter-process' && git config filter.up.required true",
		"a process of one word": "git config filter.up.process no-such-lfs && git config filter.up.required true",
		"a command":             "git config filter.up.smudge 'no-such-lfs smudge %f' && git config filter.up.required true",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			top := filepath.Join(dir, "shop")
			sh := shell(t, dir)
			sh("git init -q -b trunk shop && cd shop && echo x >a.bin && echo '*.bin filter=up' >.gitattributes && git add -A && git commit -qm x && " + settings)
			g := New(top, Options{Vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir}}).OfUser()
			_, err := g.Run(t.Context(), "-c", "core.hooksPath=/dev/null", "worktree", "add", "--quiet", "-b", "other", "--", filepath.Join(dir, "other"), "HEAD")
			if !errors.Is(err, ErrFilter) || errors.Is(err, ErrNetwork) || !strings.HasPrefix(err.Error(), "git worktree: ") || !strings.Contains(err.Error(), "the program no-such-lfs,") || strings.Contains(err.Error(), dir) {
				t.Errorf("%v", err)
			}
		})
	}
	if err := Short(&Error{Args: []string{"-c", "a=b", "worktree", "add", "--quiet"}, Stderr: "fatal: no", Kind: ErrFilter, held: "why"}); !errors.Is(err, ErrFilter) || err.Error() != "git worktree: why" {
		t.Errorf("short: %v", err)
	}
	if err := Short(&Error{Args: []string{"-c", "a=b", "worktree", "add", "--quiet"}, Stderr: "fatal: no"}); err.Error() != "git worktree: fatal: no" || Short(nil) != nil {
		t.Errorf("short: %v", err)
	}
	if p := filterIn([]string{"fetch"}, "ssh -x: 1: ssh: not found\nfatal: the remote end hung up"); p != "" {
		t.Errorf("a remote's program is called a filter: %q", p)
	}
}

// Whether a sparse checkout has a file is read from its directories.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	needShell(t)
	dir := t.TempDir()
	sh := shell(t, dir)
	sh("git init -q -b trunk && mkdir -p .reprise d/e/.reprise f && touch top .reprise/p d/x d/e/.reprise/p d/e/y f/z && git add -A && git commit -qm x")
	g := New(dir, Options{Vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir}})
	for _, c := range []struct{ set, out string }{
		{"true", ""},
		{"git sparse-checkout set --cone d", ".reprise/p f/z"},
		{"git sparse-checkout set --cone d/e", ".reprise/p f/z"},
		{"git sparse-checkout set --cone f .reprise", "d/x d/e/y d/e/.reprise/p"},
		{"git sparse-checkout set --no-cone '*.x'", ""}, // not read
		{"git sparse-checkout set --cone d && git sparse-checkout disable", ""},
	} {
		sh(c.set)
		var out []string
		for _, name := range []string{"top", ".reprise/p", "f/z", "d/x", "d/e/y", "d/e/.reprise/p"} {
			left, err := g.LeftOut(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if left {
				out = append(out, name)
			}
			if _, err := os.Lstat(filepath.Join(dir, name)); left && err == nil || c.out != "" && !left && err != nil {
				t.Errorf("%s: %s is called left out: %v; and on the disk: %v", c.set, name, left, err)
			}
		}
		if strings.Join(out, " ") != c.out {
			t.Errorf("%s leaves out %q; want %q", c.set, out, c.out)
		}
	}
}
