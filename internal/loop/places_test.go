package loop

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/internal/git"
)

// TestLook: what changed in a place is seen, whether it was committed, staged, left in the
// files or is new, and how it changed as far as git knows it.
func TestLook(t *testing.T) {
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
	if w, err := lookGit(t.Context(), g, base); err != nil || w.Changed || w.Diff != "" || len(w.Files) > 0 {
		t.Fatalf("nothing has changed: %+v, %v", w, err)
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
	w, err := lookGit(t.Context(), g, base)
	slices.Sort(w.Files)
	if err != nil || !w.Changed || !slices.Equal(w.Files, []string{"committed", "in files", "new", "removed", "staged"}) {
		t.Fatalf("%q, %v", w.Files, err)
	}
	for _, want := range []string{"diff --git a/committed b/committed", "+: three", "+four", "+five", "-two"} {
		if !strings.Contains(w.Diff, want) {
			t.Errorf("the diff lacks %q:\n%s", want, w.Diff)
		}
	}
	if !strings.HasPrefix(w.Diff, "diff --git ") {
		t.Errorf("the diff begins with the list of files:\n%s", w.Diff)
	}
}
