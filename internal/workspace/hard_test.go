package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"reprise/internal/workspace"
)

// The user's own settings of git do what they like: hooks that fail, signing, a
// monitor, templates, line ends, another first branch. Nothing of it runs or shows.
func TestOddSettings(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("hooks are shell scripts here")
	}
	p := newPlace(t)
	hook := "#!/bin/sh\necho ran >> '" + p.dir + "/ran'\nexit 1\n"
	for _, name := range []string{"post-checkout", "pre-commit", "reference-transaction", "post-commit", "fsmonitor"} {
		p.write(p.dir, "hooks/"+name, hook)
		if err := os.Chmod(filepath.Join(p.dir, "hooks", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.write(p.code, "unix.txt", "a\nb\n")
	p.commit(p.code, "line ends")
	p.write(p.vars["HOME"], ".gitignore_global", "*.mine\n")
	p.write(p.vars["HOME"], ".gitconfig", `[core]
	autocrlf = true
	hooksPath = `+p.dir+`/hooks
	fsmonitor = `+p.dir+`/hooks/fsmonitor
	excludesFile = ~/.gitignore_global
	splitIndex = true
[commit]
	gpgSign = true
[gpg]
	program = /nowhere
[init]
	templateDir = `+p.dir+`/hooks
	defaultBranch = main
[user]
	useConfigOnly = true
[worktree]
	guessRemote = true
[branch]
	autoSetupMerge = always
[advice]
	detachedHead = true
[status]
	showUntrackedFiles = no
	short = true
[diff]
	noprefix = true
	external = /nowhere
[submodule]
	recurse = true
`)
	m := p.manager()
	c := p.create(workspace.CreateOptions{Name: "auth"})
	if got := p.read(c.Dir, "unix.txt"); got != "a\r\nb\r\n" {
		t.Errorf("%q", got)
	}
	d, err := m.Detail(t.Context(), "auth")
	if err != nil || d.Changed != 0 || d.Untracked != 0 {
		t.Errorf("%+v %v", d, err)
	}
	p.write(c.Dir, "unix.txt", "a\r\nc\r\n")
	p.write(c.Dir, "x.mine", "ignored by the user's own list\n")
	p.write(c.Dir, "new.txt", "n\r\n")
	r, err := m.Remove(t.Context(), "auth", workspace.RemoveOptions{Save: true})
	if err != nil || p.read(r.Kept, "x.mine") == "" {
		t.Fatalf("%+v %v", r, err)
	}
	back, err := m.Restore(t.Context(), workspace.RestoreOptions{Name: "auth"})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.read(back.Dir, "unix.txt") + p.read(back.Dir, "new.txt") + p.read(back.Dir, "x.mine"); got != "a\r\nc\r\nn\r\nignored by the user's own list\n" {
		t.Errorf("%q", got)
	}
	if got := p.read(p.dir, "ran"); !strings.HasPrefix(got, "(") {
		t.Errorf("a program of the settings ran: %s", got)
	}
}

// Where it may be begun: a linked worktree, a detached HEAD, a directory within the
// project, a repository whose project is a part of it, a bare one.
func TestBeginnings(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	ctx := t.Context()
	p.git(p.code, "worktree", "add", "-q", "-b", "side", filepath.Join(p.dir, "side"))
	side := p.commit(filepath.Join(p.dir, "side"), "of the side")
	p.from = filepath.Join(p.dir, "side")
	c := p.create(workspace.CreateOptions{Name: "of-side", From: p.from})
	if c.Base != side || c.Dir != filepath.Join(p.dir, "shop.workspaces", "of-side") {
		t.Errorf("%+v", c)
	}
	p.git(p.from, "checkout", "-q", "--detach")
	if c := p.create(workspace.CreateOptions{Name: "detached", From: p.from}); c.Base != side || c.Branch != "detached" {
		t.Errorf("%+v", c)
	}
	// In a workspace, another one.
	p.from = c.Root()
	if c := p.create(workspace.CreateOptions{Name: "of-ws", From: c.AgentDir}); c.Base != side || c.Dir != filepath.Join(p.dir, "shop.workspaces", "of-ws") {
		t.Errorf("%+v", c)
	}
	p.from = ""
	m := p.manager()
	p.git(p.code, "worktree", "add", "-q", "--detach", filepath.Join(p.dir, "linked"))
	for name, o := range map[string]workspace.CreateOptions{
		"is checked out in":       {Name: "x1", Branch: "trunk"},
		"differs in case only":    {Name: "x2", Branch: "Trunk"},
		"no name for a branch":    {Name: "x3", Branch: "-x"},
		"that git does not allow": {Name: "x4", Branch: "a..b"},
		"there is no commit":      {Name: "x5", Base: "--help"},
		"no absolute path":        {Name: "x6", Dir: "relative"},
		"has files in it":         {Name: "x7", Dir: p.code},
		"is a worktree of":        {Name: "x7", Dir: filepath.Join(p.dir, "linked")},
		"must not change":         {Name: "x8", Dir: filepath.Join(p.code, ".git", "x")},
		"lies together with":      {Name: "x9", Dir: filepath.Join(c.Dir, "inner")},
	} {
		if _, err := m.Create(ctx, o); err == nil || !strings.Contains(err.Error(), name) && name != "there is no commit" {
			t.Errorf("%s: %v", name, err)
		}
		if list, _ := m.List(); len(list) != 3 {
			t.Errorf("%s left something", name)
		}
	}
	// A branch that is named is gone on with; one that is checked out nowhere.
	p.git(p.code, "branch", "feature/old", "trunk")
	o, err := m.Create(ctx, workspace.CreateOptions{Name: "old", Branch: "feature/old"})
	if err != nil || o.NewBranch {
		t.Errorf("%+v %v", o, err)
	}
	if r, err := m.Remove(ctx, "old", workspace.RemoveOptions{}); err != nil || r.BranchGone {
		t.Errorf("a branch that was there before is gone: %+v %v", r, err)
	}
	// Moved, it is followed.
	to := filepath.Join(p.dir, "moved")
	if err := os.Rename(c.Dir, to); err != nil {
		t.Fatal(err)
	}
	if w, err := m.Get("of-side"); err != nil || m.Look(w).Status != "missing" {
		t.Errorf("%+v %v", w, err)
	}
	p.git(p.code, "worktree", "repair", to)
	w, err := m.Get("of-side")
	if err != nil || w.Dir != to || m.Look(w).Status != "ready" {
		t.Errorf("%+v %v", w, err)
	}
	p.write(w.AgentDir, "scratch.md", "after the move\n")
	if _, err := m.Losses(ctx, "of-side"); err != nil {
		t.Error(err)
	}
	if got := p.git(w.AgentDir, "show", "HEAD:scratch.md"); got != "after the move\n" {
		t.Error(got)
	}
	c.Dir = to
	// Locked, it stays.
	p.git(p.code, "worktree", "lock", "--reason", "on a stick", c.Dir)
	if _, err := m.Remove(ctx, "of-side", workspace.RemoveOptions{Save: true}); !errors.Is(err, workspace.ErrRefused) || !strings.Contains(err.Error(), "on a stick") {
		t.Error(err)
	}
	// Another project's name at the base is another project.
	p.write(p.code, ".reprise/project.yaml", "v: 1\nname: shop2\n")
	p.commit(p.code, "renamed")
	p.write(p.code, ".reprise/project.yaml", "v: 1\nname: shop\n")
	if _, err := p.manager().Create(ctx, workspace.CreateOptions{Name: "renamed"}); err == nil || !strings.Contains(err.Error(), `called "shop2"`) {
		t.Error(err)
	}
	if list := p.git(p.code, "worktree", "list"); strings.Contains(list, "renamed") {
		t.Error(list)
	}
}

// A part of a repository is a project, and so is a submodule; a bare repository has
// nothing but worktrees.
func TestKindsOfRepositories(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	t.Run("part", func(t *testing.T) {
		mono := filepath.Join(p.dir, "mono")
		p.write(mono, "services/pay/.reprise/project.yaml", "v: 1\nname: pay\n")
		p.write(mono, "services/pay/go.mod", "module pay\n")
		p.git(mono, "init", "-q", ".")
		p.commit(mono, "first")
		q := *p
		q.t, q.from = t, filepath.Join(mono, "services", "pay")
		c := q.create(workspace.CreateOptions{Name: "a", From: q.from})
		if c.Sub != "services/pay" || c.AgentDir != filepath.Join(c.Dir, "services", "pay", ".reprise", "agent") || q.git(c.Dir, "status", "--porcelain") != "" {
			t.Errorf("%+v", c)
		}
		if _, err := q.manager().Remove(t.Context(), "a", workspace.RemoveOptions{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("bare", func(t *testing.T) {
		bare := filepath.Join(p.dir, "lib", "lib.git")
		p.git(p.dir, "clone", "-q", "--bare", p.code, bare)
		p.git(bare, "worktree", "add", "-q", filepath.Join(p.dir, "lib", "main"), "trunk")
		q := *p
		q.t, q.from = t, filepath.Join(p.dir, "lib", "main")
		c := q.create(workspace.CreateOptions{Name: "b", From: q.from})
		if c.Dir != filepath.Join(p.dir, "lib", "shop.workspaces", "b") {
			t.Errorf("%+v", c)
		}
		if _, err := q.manager().Remove(t.Context(), "b", workspace.RemoveOptions{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("submodule", func(t *testing.T) {
		super := filepath.Join(p.dir, "super")
		p.git(p.dir, "init", "-q", super)
		p.git(super, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", p.code, "lib")
		p.commit(super, "with a submodule")
		q := *p
		q.t, q.from = t, filepath.Join(super, "lib")
		c := q.create(workspace.CreateOptions{Name: "c", From: q.from})
		if c.Dir != filepath.Join(p.dir, "shop.workspaces", "c") || q.read(c.Dir, "main.go") != "package main\n" {
			t.Errorf("%+v", c)
		}
		if _, err := q.manager().Remove(t.Context(), "c", workspace.RemoveOptions{}); err != nil {
			t.Error(err)
		}
		// And one in a workspace: its work is nobody else's.
		p.write(super, ".reprise/project.yaml", "v: 1\nname: super\n")
		p.commit(super, "a project")
		q.from = super
		// It comes from the checkout, whatever has become of where that was cloned from.
		far := q.git(filepath.Join(super, "lib"), "config", "remote.origin.url")
		q.git(filepath.Join(super, "lib"), "config", "remote.origin.url", "https://example.invalid/lib")
		c = q.create(workspace.CreateOptions{Name: "d"})
		lib := filepath.Join(c.Dir, "lib")
		if len(c.Notes) > 0 || q.read(lib, "main.go") != "package main\n" || q.git(c.Dir, "status", "--porcelain") != "" {
			t.Error(c.Notes, q.git(c.Dir, "status", "--porcelain"))
		}
		if url := q.git(lib, "config", "remote.origin.url"); url != "https://example.invalid/lib\n" {
			t.Error(url)
		}
		if a, b := q.git(lib, "rev-parse", "origin/trunk"), q.git(filepath.Join(super, "lib"), "rev-parse", "origin/trunk"); a != b {
			t.Error(a, b)
		}
		q.git(filepath.Join(super, "lib"), "config", "remote.origin.url", strings.TrimSpace(far))
		q.write(c.Dir, "lib/new.go", "package new\n")
		if _, err := q.manager().Remove(t.Context(), "d", workspace.RemoveOptions{Save: true}); err == nil || !strings.Contains(err.Error(), "submodule with work") {
			t.Error(err)
		}
		if err := os.Remove(filepath.Join(c.Dir, "lib", "new.go")); err != nil {
			t.Fatal(err)
		}
		q.write(c.Dir, "clone/.git/HEAD", "ref: refs/heads/x\n")
		q.git(c.Dir, "init", "-q", "clone")
		q.write(c.Dir, "clone/x", "x")
		if _, err := q.manager().Remove(t.Context(), "d", workspace.RemoveOptions{Save: true}); err == nil || !strings.Contains(err.Error(), "repository of its own") {
			t.Error(err)
		}
		if err := os.RemoveAll(filepath.Join(c.Dir, "clone")); err != nil {
			t.Fatal(err)
		}
		if _, err := q.manager().Remove(t.Context(), "d", workspace.RemoveOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// Git believes a file to be the one it knows by size and time in seconds, and reads
// those that were changed in the second in which the index was written. A copy of the
// index that is younger made it believe them all, and a change was lost.
func TestChangeInTheSecondOfTheIndex(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(p.vars["HOME"], ".gitconfig", "[core]\n\ttrustctime = false\n")
	p.write(p.code, "a.txt", "one\n")
	p.git(p.code, "add", "--all")
	p.commit(p.code, "a file")
	m := p.manager()
	c := p.create(workspace.CreateOptions{Name: "auth"})
	file := filepath.Join(c.Dir, "a.txt")
	index := strings.TrimSpace(p.git(c.Dir, "rev-parse", "--path-format=absolute", "--git-path", "index"))
	then := time.Now().Add(-10 * time.Second)
	at := func(name string) {
		t.Helper()
		if err := os.Chtimes(name, then, then); err != nil {
			t.Fatal(err)
		}
	}
	at(file)
	p.git(c.Dir, "update-index", "--refresh")
	if err := os.WriteFile(file, []byte("two\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	at(file)
	at(index)
	if d, err := m.Detail(t.Context(), "auth"); err != nil || d.Changed != 1 {
		t.Errorf("%+v %v", d, err)
	}
	if _, err := m.Remove(t.Context(), "auth", workspace.RemoveOptions{Save: true}); err != nil {
		t.Fatal(err)
	}
	back, err := m.Restore(t.Context(), workspace.RestoreOptions{Name: "auth"})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.read(back.Dir, "a.txt"); got != "two\n" {
		t.Errorf("%q", got)
	}
}

// Submodules come along with theirs, as far as they are here. A commit that only the
// main checkout's own has is in no danger from the workspace; one that it does not have
// is.
func TestSubmodules(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	ctx := t.Context()
	allow := []string{"-c", "protocol.file.allow=always"}
	repo := func(name string, subs ...string) string {
		dir := filepath.Join(p.dir, name)
		p.write(dir, name+".txt", name+"\n")
		p.git(dir, "init", "-q", "-b", "trunk", ".")
		for _, s := range subs {
			p.git(dir, append(allow, "submodule", "--quiet", "add", filepath.Join(p.dir, s), "parts/"+s)...)
		}
		p.commit(dir, "first")
		return dir
	}
	repo("inner")
	repo("öuter", "inner")
	repo("absent")
	super := repo("super", "öuter", "absent")
	p.git(super, append(allow, "submodule", "--quiet", "update", "--init", "--recursive", "parts/öuter")...)
	p.git(super, "submodule", "--quiet", "deinit", "-f", "parts/absent")
	if err := os.RemoveAll(filepath.Join(super, ".git", "modules", "parts", "absent")); err != nil {
		t.Fatal(err)
	}
	p.write(super, ".reprise/project.yaml", "v: 1\nname: super\n")
	// The recorded commit of one was never pushed.
	outer := filepath.Join(super, "parts", "öuter")
	p.write(outer, "more.txt", "more\n")
	p.commit(outer, "not pushed")
	p.commit(super, "a project")
	for _, gone := range []string{"inner", "öuter", "absent"} {
		if err := os.RemoveAll(filepath.Join(p.dir, gone)); err != nil {
			t.Fatal(err)
		}
	}
	p.from = super
	c := p.create(workspace.CreateOptions{Name: "a"})
	for name, want := range map[string]string{"parts/öuter/öuter.txt": "öuter\n", "parts/öuter/more.txt": "more\n", "parts/öuter/parts/inner/inner.txt": "inner\n"} {
		if got := p.read(c.Dir, name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if notes := strings.Join(c.Notes, "\n"); len(c.Notes) != 1 || !strings.Contains(notes, "submodules parts/absent are not checked out") {
		t.Error(notes)
	}
	if got := p.git(c.Dir, "status", "--porcelain"); got != "" {
		t.Error(got)
	}
	// From within the workspace, another one.
	p.from = c.Dir
	if b := p.create(workspace.CreateOptions{Name: "b", From: c.Dir}); p.read(b.Dir, "parts/öuter/parts/inner/inner.txt") != "inner\n" {
		t.Error(b.Notes)
	}
	p.from = super
	m := p.manager()
	if r, err := m.Remove(ctx, "b", workspace.RemoveOptions{}); err != nil {
		t.Errorf("%+v %v", r, err)
	}
	inner := filepath.Join(c.Dir, "parts", "öuter", "parts", "inner")
	p.write(inner, "own.txt", "own\n")
	p.commit(inner, "of the workspace")
	p.git(filepath.Dir(filepath.Dir(inner)), "add", "parts/inner")
	p.commit(filepath.Dir(filepath.Dir(inner)), "with it")
	p.commit(c.Dir, "with both")
	if _, err := m.Remove(ctx, "a", workspace.RemoveOptions{Save: true}); err == nil || !strings.Contains(err.Error(), "submodule with work") {
		t.Error(err)
	}
	p.git(outer, append(allow, "fetch", "-q", "--no-recurse-submodules", filepath.Join(c.Dir, "parts", "öuter"), "HEAD:refs/heads/brought")...)
	p.git(filepath.Join(outer, "parts", "inner"), append(allow, "fetch", "-q", "--no-recurse-submodules", inner, "HEAD:refs/heads/brought")...)
	if _, err := m.Remove(ctx, "a", workspace.RemoveOptions{Save: true}); err != nil {
		t.Error(err)
	}
}
