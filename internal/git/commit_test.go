package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The user's own staging, hooks and unfinished files are theirs: a commit of some
// files has those and no others, and leaves the rest as it was.
func TestCommitOnly(t *testing.T) {
	ctx := context.Background()
	home, dir := t.TempDir(), filepath.Join(t.TempDir(), "a project")
	put := func(name, text string, mode os.FileMode) {
		t.Helper()
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	put("specs/TODO.md", "one\n", 0o644)
	g := New(dir, Options{Vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": home}}).AsUser()
	git := func(args ...string) string {
		t.Helper()
		out, err := g.Run(ctx, args...)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "-b", "main")
	git("config", "user.name", "A Person")
	git("config", "user.email", "a@example.com")

	// The first commit of all, of a new file.
	if _, err := g.CommitOnly(ctx, "task 1: begin\n", []string{"specs/TODO.md"}); err != nil {
		t.Fatal(err)
	}
	put("code.go", "package a\n", 0o644)
	put("other.go", "package b\n", 0o644)
	git("add", "other.go")
	put("specs/TODO.md", "two\n", 0o644)
	put("specs/[1]*.md", "odd name\n", 0o644)
	id, err := g.CommitOnly(ctx, "task 1 phase 1: go on\n\nSession: x\n", []string{"specs/TODO.md", "specs/[1]*.md", "not/there"})
	if err != nil {
		t.Fatal(err)
	}
	if got := git("show", "--name-only", "--format=%an|%s|%b", id); got != "A Person|task 1 phase 1: go on|Session: x\n\n\nspecs/TODO.md\nspecs/[1]*.md" {
		t.Errorf("%q", got)
	}
	if got := git("status", "--porcelain"); got != "A  other.go\n?? code.go" {
		t.Errorf("%q", got)
	}
	if _, err := g.CommitOnly(ctx, "again", []string{"specs/TODO.md"}); !errors.Is(err, ErrNothingToCommit) {
		t.Error(err)
	}

	// A hook that refuses: nothing is committed, and nothing new is staged.
	put(".git/hooks/pre-commit", "#!/bin/sh\necho no such commits here >&2\nexit 1\n", 0o755)
	put("specs/new.md", "new\n", 0o644)
	if _, err := g.CommitOnly(ctx, "refused", []string{"specs/new.md"}); err == nil || !strings.Contains(err.Error(), "no such commits here") {
		t.Error(err)
	}
	if got := git("status", "--porcelain"); got != "A  other.go\n?? code.go\n?? specs/new.md" {
		t.Errorf("%q", got)
	}
	put(".git/hooks/pre-commit", "#!/bin/sh\ngit diff --cached --name-only >hooked\n", 0o755)
	if err := os.Remove(filepath.Join(dir, "specs/[1]*.md")); err != nil {
		t.Fatal(err)
	}
	if _, err := g.CommitOnly(ctx, "removed", []string{"specs/[1]*.md", "specs/new.md"}); err != nil {
		t.Fatal(err)
	}
	if hooked, err := os.ReadFile(filepath.Join(dir, "hooked")); err != nil || string(hooked) != "specs/[1]*.md\nspecs/new.md\n" {
		t.Errorf("the hook saw %q, %v", hooked, err)
	}
	if got := git("ls-files"); got != "other.go\nspecs/TODO.md\nspecs/new.md" {
		t.Errorf("%q", got)
	}
}

// TestSettingsSwitchedOff: Gemini CLI has git read no settings in whatever its tools
// start; reprise commits as the user all the same. Settings in another place count.
func TestSettingsSwitchedOff(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	other := filepath.Join(t.TempDir(), "settings")
	for path, name := range map[string]string{filepath.Join(home, ".gitconfig"): "At Home", other: "Elsewhere"} {
		if err := os.WriteFile(path, []byte("[user]\n\tname = "+name+"\n\temail = a@example.invalid\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for place, want := range map[string]string{os.DevNull: "At Home", other: "Elsewhere", "": "At Home"} {
		v := vars()
		v["HOME"] = home
		if place != "" {
			v["GIT_CONFIG_GLOBAL"], v["GIT_CONFIG_SYSTEM"], v["GIT_CONFIG_NOSYSTEM"] = place, os.DevNull, "1"
			if place == other {
				delete(v, "GIT_CONFIG_SYSTEM")
			}
		}
		g := New(dir, Options{Vars: v}).AsUser()
		if err := New(dir, Options{Vars: v}).Init(t.Context(), "main"); err != nil {
			t.Fatal(err)
		}
		out, err := g.Run(t.Context(), "config", "user.name")
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("with settings in %q: %q, %v; want %q", place, got, err, want)
		}
	}
}
