package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/workspace"
)

// What was committed in submodules of a worktree was nowhere once that was gone: the
// branch that was merged named commits which no repository had.
func TestBringSubmodules(t *testing.T) {
	t.Parallel()
	const outer, inner = "parts/outer", "parts/outer/parts/inner"
	// Each is done in a workspace in which outer has a commit, and inner where that is named.
	for name, c := range map[string]struct {
		inner  bool
		do     func(p *place, dir, id string)
		branch string // where outer's commit is then in the main checkout, "ID" stands for it; "" for not by this
		remote bool
		bad    string // of the StrandedError
	}{
		"one":                                  {branch: "work"},
		"one in one":                           {inner: true, branch: "work"},
		"on a branch of its":                   {do: func(p *place, dir, _ string) { p.git(filepath.Join(dir, outer), "checkout", "-q", "-b", "theirs") }, branch: "work"},
		"not checked out now":                  {do: func(p *place, dir, _ string) { p.git(dir, "submodule", "--quiet", "deinit", "-f", outer) }, branch: "work"},
		"not checked out in the main checkout": {do: func(p *place, _, _ string) { p.git(p.code, "submodule", "--quiet", "deinit", "-f", outer) }, branch: "work"},
		"the main checkout has it": {do: func(p *place, dir, _ string) {
			p.git(filepath.Join(p.code, outer), "-c", "protocol.file.allow=always", "fetch", "-q", filepath.Join(dir, outer), "HEAD:refs/heads/mine")
		}},
		"pushed": {do: func(p *place, dir, _ string) {
			p.git(filepath.Join(dir, outer), "push", "-q", "origin", "HEAD:refs/heads/pushed")
		}, remote: true},
		"the branch goes on": {do: func(p *place, _, _ string) { p.git(filepath.Join(p.code, outer), "branch", "work", "HEAD") }, branch: "work"},
		"another branch of that name": {do: func(p *place, _, _ string) {
			at := filepath.Join(p.code, outer)
			p.git(at, "checkout", "-q", "-b", "work")
			p.write(at, "other", "mine\n")
			p.commit(at, "mine")
			p.git(at, "checkout", "-q", "--detach")
		}, branch: "work-ID"},
		"the branch is checked out": {do: func(p *place, _, _ string) { p.git(filepath.Join(p.code, outer), "checkout", "-q", "-b", "work") }, branch: "work-ID"},
		"the main checkout has none": {do: func(p *place, _, _ string) {
			p.git(p.code, "submodule", "--quiet", "deinit", "-f", outer)
			if err := os.RemoveAll(filepath.Join(p.code, ".git", "modules")); err != nil {
				p.t.Error(err)
			}
		}, bad: "submodule " + outer + " is at "},
		"it has none, and it was pushed": {do: func(p *place, dir, _ string) {
			p.git(filepath.Join(dir, outer), "push", "-q", "origin", "HEAD:refs/heads/pushed")
			p.git(p.code, "submodule", "--quiet", "deinit", "-f", outer)
			if err := os.RemoveAll(filepath.Join(p.code, ".git", "modules")); err != nil {
				p.t.Error(err)
			}
		}, remote: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := modular(t)
			m := p.manager()
			w := p.create(workspace.CreateOptions{Name: "auth"})
			at := filepath.Join(w.Dir, outer)
			innerID := ""
			if c.inner {
				p.write(filepath.Join(w.Dir, inner), "in", "inner\n")
				innerID = p.commit(filepath.Join(w.Dir, inner), "inner")
			}
			p.write(at, "out", "outer\n")
			id := p.commit(at, "outer")
			p.commit(w.Dir, "with it")
			if c.do != nil {
				c.do(p, w.Dir, id)
			}
			head := p.git(p.code, "rev-parse", "HEAD")
			files := p.git(p.code, "status", "--porcelain")
			o := workspace.BringOptions{Dir: w.Dir, Main: p.code, Base: w.Base, Branch: "work"}
			list, err := m.BringSubmodules(t.Context(), o)
			var stranded *workspace.StrandedError
			if c.bad != "" {
				if !errors.As(err, &stranded) || !strings.Contains(err.Error(), c.bad) || !strings.Contains(err.Error(), "git push origin") {
					t.Errorf("%+v %v", list, err)
				}
				return
			}
			if err != nil || len(list) == 0 {
				t.Fatal(list, err)
			}
			got := list[len(list)-1]
			want := strings.ReplaceAll(c.branch, "ID", id[:12])
			if got.Path != outer || got.Commit != id || got.Brought != want || got.Remote != c.remote {
				t.Errorf("%+v, want %s at %s on %q", got, outer, id, want)
			}
			if now := p.git(p.code, "rev-parse", "HEAD"); now != head || p.git(p.code, "status", "--porcelain") != files {
				t.Errorf("the main checkout was touched: %s", now)
			}
			if c.inner && (len(list) != 2 || list[0].Path != inner || list[0].Commit != innerID || list[0].Brought != "work") {
				t.Errorf("%+v", list)
			}
			again, err := m.BringSubmodules(t.Context(), o)
			if err != nil || len(again) != len(list) || again[len(again)-1].Brought != "" {
				t.Errorf("done twice: %+v %v", again, err)
			}
			if _, err := m.Remove(t.Context(), "auth", workspace.RemoveOptions{Save: true, KeepBranch: true}); err != nil {
				t.Error(err)
			}
			// Whoever takes the branch has its submodules.
			p.git(p.code, "merge", "-q", "--ff-only", w.Branch)
			p.git(p.code, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive")
			if text := p.read(filepath.Join(p.code, outer), "out"); text != "outer\n" {
				t.Error(text)
			}
			if text := p.read(filepath.Join(p.code, inner), "in"); c.inner && text != "inner\n" {
				t.Error(text)
			}
		})
	}
}

// What the work did not change, or somebody else made, is nobody's to bring; a remote is
// asked where that is wanted.
func TestBringNothing(t *testing.T) {
	t.Parallel()
	p := modular(t)
	m := p.manager()
	w := p.create(workspace.CreateOptions{Name: "auth"})
	o := workspace.BringOptions{Dir: w.Dir, Main: p.code, Base: w.Base, Branch: "work"}
	p.write(w.Dir, "x", "x\n")
	p.commit(w.Dir, "no submodule")
	if list, err := m.BringSubmodules(t.Context(), o); err != nil || len(list) > 0 {
		t.Errorf("%+v %v", list, err)
	}
	// As a branch of others that was merged names it.
	p.git(w.Dir, "update-index", "--cacheinfo", "160000,"+strings.Repeat("12", 20)+",parts/outer")
	p.git(w.Dir, "commit", "-q", "-m", "somebody else's")
	if list, err := m.BringSubmodules(t.Context(), o); err != nil || len(list) > 0 {
		t.Errorf("%+v %v", list, err)
	}
	at := filepath.Join(w.Dir, "parts", "outer")
	p.write(at, "out", "outer\n")
	p.commit(at, "outer")
	p.commit(w.Dir, "with it")
	p.git(at, "push", "-q", filepath.Join(p.dir, "outer"), "HEAD:refs/heads/pushed") // which no ref here tells
	if said := m.NotPushed(t.Context(), o); said != "" {
		t.Error(said)
	}
	if list, err := m.BringSubmodules(t.Context(), o); err != nil || len(list) != 1 || !list[0].Remote || list[0].Brought != "" {
		t.Errorf("%+v %v", list, err)
	}
	p.write(at, "out", "more\n")
	id := p.commit(at, "more")
	p.commit(w.Dir, "with it")
	if said := m.NotPushed(t.Context(), o); !strings.Contains(said, "`git push origin "+id[:12]+":refs/heads/work` in ") {
		t.Error(said)
	}
	p.git(filepath.Join(p.code, "parts", "outer"), "push", "-q", "origin", id[:12]+":refs/heads/work")
	if said := m.NotPushed(t.Context(), o); said != "" {
		t.Error(said)
	}
}

// Killed at any step, the next time brings it.
func TestCrashWhileBringing(t *testing.T) {
	t.Parallel()
	bring := func(p *place) error {
		m := p.manager()
		w, err := m.Get("auth")
		if err != nil {
			return err
		}
		_, err = m.BringSubmodules(p.t.Context(), workspace.BringOptions{Dir: w.Dir, Main: p.code, Base: w.Base, Branch: "work"})
		return err
	}
	durabletest.Scenario{
		Prepare: func(t *testing.T, dir string) {
			p := on(t, dir, durable.Disk{})
			p.prepare()
			lib := filepath.Join(p.dir, "lib")
			p.git(p.dir, "init", "-q", "-b", "trunk", lib)
			p.commit(lib, "first")
			p.sub(p.code, lib, "lib")
			p.commit(p.code, "with a submodule")
			w := p.create(workspace.CreateOptions{Name: "auth"})
			p.write(filepath.Join(w.Dir, "lib"), "x", "precious\n")
			p.commit(filepath.Join(w.Dir, "lib"), "precious")
			p.commit(w.Dir, "with it")
		},
		Act: func(disk durable.Disk, dir string) error { return bring(on(t, dir, disk)) },
		Check: func(t *testing.T, dir string, _ error, step string) {
			p := on(t, dir, durable.Disk{})
			if err := bring(p); err != nil {
				t.Errorf("%s: %v", step, err)
			}
			if got := p.git(filepath.Join(p.code, "lib"), "show", "work:x"); got != "precious\n" {
				t.Errorf("%s: %q", step, got)
			}
		},
	}.CrashAtEachStep(t)
}
