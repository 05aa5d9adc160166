package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// linkedAt makes dir a linked worktree of the checkout at main.
func linkedAt(t *testing.T, main, dir, id string) {
	t.Helper()
	admin := filepath.Join(main, ".git", "worktrees", id)
	put(t, filepath.Join(admin, "commondir"), "../..\n")
	put(t, filepath.Join(admin, "gitdir"), filepath.Join(dir, ".git")+"\n")
	put(t, filepath.Join(dir, ".git"), "gitdir: "+admin+"\n")
}

// The agent's state is in the checkout that is worked in, whatever lies around it.
func TestAgentDir(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	main := filepath.Join(base, "main")
	put(t, filepath.Join(main, ".git", "HEAD"), "ref: refs/heads/trunk\n")
	root := filepath.Join(main, "services", "shop")
	put(t, filepath.Join(root, ".reprise", "project.yaml"), "v: 1\nname: shop\n")
	put(t, filepath.Join(root, "deep", "x"), "")
	beside := filepath.Join(base, "worktree")
	linkedAt(t, main, beside, "beside")
	put(t, filepath.Join(beside, "services", "shop", "x"), "")
	within := filepath.Join(main, "services", "shop", "trees", "within") // as some clients make them
	linkedAt(t, main, within, "within")
	put(t, filepath.Join(within, "services", "shop", "deep", "x"), "")
	agent := filepath.Join(root, ".reprise", "agent")
	put(t, filepath.Join(agent, ".git"), "gitdir: "+filepath.Join(base, "data", "state.git", "worktrees", "agent-one")+"\n")
	put(t, filepath.Join(agent, "notes", "x"), "")
	env := Env{Vars: map[string]string{"HOME": filepath.Join(base, "home")}, Dir: base}
	for dir, want := range map[string]string{
		root:                              root,
		filepath.Join(root, "deep"):       root,
		agent:                             root,
		filepath.Join(agent, "notes"):     root,
		filepath.Join(beside, "services"): filepath.Join(beside, "services", "shop"),
		filepath.Join(within, "services", "shop", "deep"): filepath.Join(within, "services", "shop"),
	} {
		p, err := FindProject(env, dir)
		if dir == filepath.Join(beside, "services") {
			p, err = FindProject(env, filepath.Join(dir, "shop"))
		}
		if err != nil || p == nil {
			t.Errorf("%s: %v %v", dir, p, err)
			continue
		}
		if got := AgentDir(p, dir); got != filepath.Join(want, ".reprise", "agent") {
			t.Errorf("%s: %s", dir, got)
		}
	}
}

// The line is written once, where git reads it for that checkout.
func TestHideAgentDir(t *testing.T) {
	base := t.TempDir()
	main := filepath.Join(base, "main")
	exclude := filepath.Join(main, ".git", "info", "exclude")
	put(t, filepath.Join(main, ".git", "HEAD"), "ref: refs/heads/trunk\n")
	put(t, filepath.Join(main, ".gitignore"), "x\n.reprise/agent\n")
	beside := filepath.Join(base, "worktree")
	linkedAt(t, main, beside, "beside")
	module := filepath.Join(main, "module")
	put(t, filepath.Join(module, ".git"), "gitdir: ../.git/modules/module\n")
	put(t, filepath.Join(main, ".git", "modules", "module", "HEAD"), "")
	read := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(data)
	}
	if err := HideAgentDir(main); err != nil || read(exclude) != "" {
		t.Errorf("%v %q", err, read(exclude))
	}
	for range 2 {
		for _, dir := range []string{beside, module} {
			if err := HideAgentDir(dir); err != nil {
				t.Error(err)
			}
		}
	}
	for _, file := range []string{exclude, filepath.Join(main, ".git", "modules", "module", "info", "exclude")} {
		if strings.Count(read(file), ".reprise/agent\n") != 1 {
			t.Errorf("%s: %q", file, read(file))
		}
	}
	plain := filepath.Join(base, "plain")
	put(t, filepath.Join(plain, "x"), "")
	if err := HideAgentDir(plain); err != nil {
		t.Error(err)
	}
	if err := IgnoreAgentDir(plain); err != nil || read(filepath.Join(plain, ".gitignore")) != ".reprise/agent\n" {
		t.Errorf("%v", err)
	}
}
