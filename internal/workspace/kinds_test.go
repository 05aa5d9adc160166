package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/workspace"
)

// Whatever kind of repository the code is in, a workspace is made there, what is in it
// and nowhere else is kept, and comes back.
func TestEveryKindOfClone(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]struct {
		// make has the code in p.code; up is a repository with two commits.
		make func(p *place, up string)
		vars map[string]string
	}{
		"sha256": {make: func(p *place, _ string) {
			p.git(p.dir, "init", "-q", "-b", "trunk", "--object-format=sha256", p.code)
			p.fill(p.code)
		}},
		"shallow": {make: func(p *place, up string) { p.git(p.dir, "clone", "-q", "--depth=1", "file://"+up, p.code) }},
		"without blobs": {make: func(p *place, up string) {
			p.git(p.dir, "clone", "-q", "--filter=blob:none", "file://"+up, p.code)
		}},
		"sparse": {make: func(p *place, up string) {
			p.git(p.dir, "clone", "-q", "--sparse", up, p.code)
			p.git(p.code, "sparse-checkout", "set", "src", ".reprise")
		}},
		"borrowed objects": {make: func(p *place, up string) { p.git(p.dir, "clone", "-q", "--shared", up, p.code) }},
		"separate": {make: func(p *place, up string) {
			p.git(p.dir, "clone", "-q", "--separate-git-dir="+filepath.Join(p.dir, "its git"), up, p.code)
		}},
		"core.worktree": {make: func(p *place, up string) {
			p.git(p.dir, "clone", "-q", "--separate-git-dir="+filepath.Join(p.dir, "its git"), up, p.code)
			p.git(p.code, "config", "core.worktree", p.code)
		}},
		"settings of its worktrees": {make: func(p *place, up string) {
			p.git(p.dir, "clone", "-q", up, p.code)
			p.git(p.code, "config", "extensions.worktreeConfig", "true")
			p.git(p.code, "config", "--worktree", "core.hooksPath", p.dir)
		}},
		"packed": {make: func(p *place, up string) {
			p.git(p.dir, "clone", "-q", up, p.code)
			p.git(p.code, "pack-refs", "--all")
			p.git(p.code, "repack", "-adq")
		}},
		// What git sets for its hooks, and more of that kind, names another repository.
		"inside a hook": {
			make: func(p *place, up string) { p.git(p.dir, "clone", "-q", up, p.code) },
			vars: map[string]string{
				"GIT_DIR": "/nowhere", "GIT_COMMON_DIR": "/nowhere", "GIT_WORK_TREE": "/nowhere", "GIT_INDEX_FILE": "/nowhere/index.lock", "GIT_OBJECT_DIRECTORY": "/nowhere",
				"GIT_NAMESPACE": "x", "GIT_PREFIX": "x/", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.bare", "GIT_CONFIG_VALUE_0": "true", "GIT_CONFIG_PARAMETERS": "'core.bare'='true'",
				"GIT_DEFAULT_HASH": "sha256", "GIT_LITERAL_PATHSPECS": "1", "GIT_EXEC_PATH": "/nowhere", "GIT_TEMPLATE_DIR": "/nowhere", "GIT_EXTERNAL_DIFF": "/nowhere",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			up := filepath.Join(p.dir, "up stream")
			p.git(p.dir, "init", "-q", "-b", "trunk", up)
			p.git(up, "config", "uploadpack.allowFilter", "true")
			p.commit(up, "older")
			p.fill(up)
			if err := os.RemoveAll(p.code); err != nil {
				t.Fatal(err)
			}
			kind.make(p, up)
			for k, v := range kind.vars {
				p.vars[k] = v
			}
			p.cycle()
		})
	}
}

// fill makes the project, with a directory that a sparse checkout does not have.
func (p *place) fill(dir string) {
	p.t.Helper()
	p.write(dir, ".reprise/project.yaml", "v: 1\nname: shop\n")
	p.write(dir, ".gitignore", "*.log\n")
	p.write(dir, "src/a.txt", "a\n")
	p.write(dir, "other/o.txt", "o\n")
	p.commit(dir, "first")
}

// cycle makes a workspace, works in it, takes it away twice and brings it back once.
func (p *place) cycle() {
	t := p.t
	t.Helper()
	ctx := t.Context()
	m := p.manager()
	c := p.create(workspace.CreateOptions{Name: "auth"})
	if got := p.git(c.Dir, "status", "--porcelain"); got != "" {
		t.Errorf("new, and not clean: %s", got)
	}
	files := map[string]string{"src/a.txt": "changed\n", "other/o.txt": "changed too\n", "src/new.txt": "new\n", "other/n.txt": "new too\n", "x.log": "ignored\n"}
	for name, text := range files {
		p.write(c.Dir, name, text)
	}
	p.git(c.Dir, "add", "src/new.txt")
	p.write(c.AgentDir, "scratch.md", "thinking\n")
	if d, err := m.Detail(ctx, "auth"); err != nil || d.Changed != 3 || d.Untracked != 1 {
		t.Errorf("%+v %v", d, err)
	}
	if _, err := m.Remove(ctx, "auth", workspace.RemoveOptions{}); err == nil || !strings.Contains(err.Error(), "other/o.txt") {
		t.Error(err)
	}
	r, err := m.Remove(ctx, "auth", workspace.RemoveOptions{Save: true})
	if err != nil || r.Saved == "" || !r.BranchGone {
		t.Fatalf("%+v %v", r, err)
	}
	if got := p.git(p.code, "worktree", "list", "--porcelain"); strings.Count(got, "worktree ") != 1 {
		t.Error(got)
	}
	back, err := m.Restore(ctx, workspace.RestoreOptions{Name: "auth"})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if got := p.read(back.Dir, name); got != text {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := p.git(back.Dir, "diff", "--cached", "--name-only"); got != "src/new.txt\n" {
		t.Errorf("staged: %q", got)
	}
	if got := p.read(back.AgentDir, "scratch.md"); got != "thinking\n" {
		t.Errorf("%q", got)
	}
	p.git(back.Dir, "add", "--sparse", "-A")
	own := p.commit(back.Dir, "of the workspace")
	r, err = m.Remove(ctx, "auth", workspace.RemoveOptions{Save: true, DeleteBranch: true})
	if err != nil || r.Saved == "" || !r.BranchGone || r.BranchAt != own {
		t.Fatalf("%+v %v", r, err)
	}
	if got := p.git(p.code, "show", r.Saved+":other/o.txt"); got != "changed too\n" {
		t.Errorf("%q", got)
	}
	if got := p.git(p.code, "worktree", "prune", "--dry-run", "--verbose") + p.git(p.code, "status", "--porcelain"); got != "" {
		t.Error(got)
	}
}

// Where git would look at the main checkout in every worktree, none is made, and one that there
// is already is not taken for empty.
func TestWorktreeElsewhereIsRefused(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	m := p.manager()
	c := p.create(workspace.CreateOptions{Name: "auth"})
	p.write(c.Dir, "precious.txt", "work\n")
	p.git(p.code, "config", "extensions.worktreeConfig", "true")
	p.git(p.code, "config", "core.worktree", p.code)
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, workspace.ErrRefused) || !strings.Contains(err.Error(), "git config --local --unset core.worktree") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := m.Create(t.Context(), workspace.CreateOptions{Name: "other"})
	refused("create", err)
	if _, err := m.Get("other"); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("what was refused is there: %v", err)
	}
	_, err = m.Remove(t.Context(), "auth", workspace.RemoveOptions{Save: true})
	refused("remove", err)
	_, err = m.Detail(t.Context(), "auth")
	refused("show", err)
	if _, err := os.Stat(filepath.Join(c.Dir, "precious.txt")); err != nil {
		t.Fatal(err)
	}
	p.git(p.code, "config", "--worktree", "core.worktree", p.code)
	p.git(p.code, "config", "--local", "--unset", "core.worktree")
	if d, err := m.Detail(t.Context(), "auth"); err != nil || d.Untracked != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	if r, err := m.Remove(t.Context(), "auth", workspace.RemoveOptions{Save: true}); err != nil || r.Saved == "" {
		t.Errorf("%+v, %v", r, err)
	}
}

// A repository whose refs are in a reftable is refused with what to do: its files say that
// every worktree is on a branch that there is not. (Git makes such a one from 2.45 on; of it
// only the directory is seen here.)
func TestReftableIsRefused(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(p.code, ".git/reftable/tables.list", "")
	if _, err := p.manager().Create(t.Context(), workspace.CreateOptions{Name: "auth"}); !errors.Is(err, workspace.ErrRefused) || !strings.Contains(err.Error(), "git refs migrate") {
		t.Error(err)
	}
	if err := os.RemoveAll(filepath.Join(p.code, ".git", "reftable")); err != nil {
		t.Fatal(err)
	}
	p.nothing("auth", "refused")
}
