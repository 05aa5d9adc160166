package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"reprise/internal/proc"
)

func vars() map[string]string { return map[string]string{"PATH": os.Getenv("PATH")} }

func TestMissingProgram(t *testing.T) {
	for _, o := range []Options{{Program: "no-such-git", Vars: map[string]string{"PATH": t.TempDir()}}, {Program: "/nowhere/git"}, {Program: "no-such-git", Vars: map[string]string{"PATH": "."}}} {
		g := New(t.TempDir(), o)
		if _, err := g.Run(t.Context(), "status"); !errors.Is(err, ErrNotInstalled) || g.Installed() {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestUsualPlaces: git is found where the doctor finds it, though the PATH of a program
// that a desktop started does not name the place.
func TestUsualPlaces(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a script is no program there")
	}
	home := t.TempDir()
	file := filepath.Join(home, ".local", "bin", "git")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"PATH": t.TempDir(), "HOME": home}
	want, err := proc.LookPath("git", vars, runtime.GOOS)
	if g := New(home, Options{Vars: vars}); err != nil || g.Program() != want || want != file {
		t.Errorf("found %s, the doctor %s (%v), it is %s", g.Program(), want, err, file)
	}
}

// TestNeverARepositoryAbove: a directory within someone else's repository is
// not taken for a part of it.
func TestNeverARepositoryAbove(t *testing.T) {
	outer := t.TempDir()
	if err := New(outer, Options{Vars: vars()}).Init(t.Context(), "main"); err != nil {
		t.Fatal(err)
	}
	inner := filepath.Join(outer, "a")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	g := New(inner, Options{Vars: vars()})
	_, err := g.Run(t.Context(), "status")
	var e *Error
	if !errors.Is(err, ErrNotRepo) || !errors.As(err, &e) || e.Code != 128 || g.IsTop() {
		t.Errorf("%v", err)
	}
}

func TestBounds(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in is a shell script")
	}
	dir := t.TempDir()
	script := func(body string) string {
		p := filepath.Join(t.TempDir(), "git")
		if err := os.WriteFile(p, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return p
	}
	start := time.Now()
	_, err := New(dir, Options{Program: script("sleep 60"), Vars: vars(), Local: 50 * time.Millisecond}).Run(t.Context(), "x")
	if !errors.Is(err, ErrTimeout) || time.Since(start) > 20*time.Second {
		t.Errorf("%v after %s", err, time.Since(start))
	}
	_, err = New(dir, Options{Program: script("head -c 100000 /dev/zero"), Vars: vars(), MaxOut: 1000}).Run(t.Context(), "x")
	if err == nil || !strings.Contains(err.Error(), "more than 1000 bytes") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(dir, Options{Program: script("exit 0"), Vars: vars()}).Run(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	out, err := New(dir, Options{Program: script("env"), Vars: map[string]string{"PATH": os.Getenv("PATH"), "GIT_DIR": "/x", "GIT_TRACE": "1", "SECRET": "s", "HOME": "/h"}}).Run(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"GIT_DIR=", "GIT_TRACE=", "SECRET="} {
		if strings.Contains(string(out), bad) {
			t.Errorf("%s was handed on", bad)
		}
	}
	for _, want := range []string{"GIT_TERMINAL_PROMPT=0\n", "LC_ALL=C\n", "HOME=/h\n", "GIT_EDITOR=true\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not set", want)
		}
	}
}

func TestKindOf(t *testing.T) {
	for msg, want := range map[string]error{
		"fatal: not a git repository (or any of the parent directories): .git":                                  ErrNotRepo,
		"fatal: Unable to create '/m/.git/index.lock': File exists.\n\nAnother git process seems to be running": ErrLocked,
		" ! [rejected]        HEAD -> main (fetch first)\nerror: failed to push some refs":                      ErrRejected,
		"fatal: could not read Username for 'https://example.org': terminal prompts disabled":                   ErrAuth,
		"git@example.org: Permission denied (publickey).\nfatal: Could not read from remote repository.":        ErrAuth,
		"ssh: Could not resolve hostname x\nfatal: Could not read from remote repository.":                      ErrNetwork,
		"CONFLICT (content): Merge conflict in a.md\nAutomatic merge failed; fix conflicts and then commit":     ErrConflict,
		"error: pathspec 'x' did not match any file(s) known to git":                                            nil,
	} {
		if got := kindOf(msg); got != want {
			t.Errorf("%q: %v", msg, got)
		}
	}
}

func TestIdentityOnlyWhenMissing(t *testing.T) {
	home := t.TempDir()
	v := vars()
	v["HOME"] = home
	g := New(t.TempDir(), Options{Vars: v})
	if err := g.Init(t.Context(), "main"); err != nil {
		t.Fatal(err)
	}
	if got := g.Identity(t.Context()); len(got) != 4 {
		t.Errorf("none configured: %v", got)
	}
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\nname = N\nemail = e@example.org\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := g.Identity(t.Context()); got != nil {
		t.Errorf("both configured: %v", got)
	}
}

// What git says late, for a machine without time or one that slept, is what it said: it
// has done what it was to do, and a caller that was told otherwise would do it again.
func TestLateWords(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a script stands for git")
	}
	dir := t.TempDir()
	slow := filepath.Join(dir, "slow")
	// A child holds the output for longer than a killed git's would be waited for.
	if err := os.WriteFile(slow, []byte("#!/bin/sh\n(sleep 2.5; echo late) &\necho soon\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := New(dir, Options{Program: slow, Vars: map[string]string{"PATH": os.Getenv("PATH")}}).Run(t.Context(), "x")
	if err != nil || string(out) != "soon\nlate\n" {
		t.Errorf("%q %v", out, err)
	}
}

// What looks at a whole repository is not held to the time of what looks at a part.
func TestLong(t *testing.T) {
	g := New(t.TempDir(), Options{Vars: vars(), Local: time.Nanosecond})
	if _, err := g.Run(t.Context(), "version"); err == nil {
		t.Error("a command had longer than it was given")
	}
	if out, err := g.Long().Run(t.Context(), "version"); err != nil || !strings.HasPrefix(string(out), "git version") {
		t.Errorf("%q, %v", out, err)
	}
}
