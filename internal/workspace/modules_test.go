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

// modular is a project with a submodule, which has one in it.
func modular(t *testing.T) *place {
	t.Helper()
	p := newPlace(t)
	for _, name := range []string{"inner", "outer"} {
		dir := filepath.Join(p.dir, name)
		p.write(dir, ".gitignore", "*.ig\nbuild/\n")
		p.write(dir, "marked.txt", "as it came\n")
		p.git(dir, "init", "-q", "-b", "trunk", ".")
		if name == "outer" {
			p.sub(dir, filepath.Join(p.dir, "inner"), "parts/inner")
		}
		p.commit(dir, "first")
	}
	p.sub(p.code, filepath.Join(p.dir, "outer"), "parts/outer")
	p.git(p.code, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive")
	p.commit(p.code, "with submodules")
	return p
}

func (p *place) sub(dir, from, path string) {
	p.t.Helper()
	p.git(dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", from, path)
}

// What a submodule has and nothing names in the end: a stash, what was amended or reset
// away, branches where it is not checked out any more, files that it ignores. All of it
// went with the git directory of the worktree.
func TestWhatSubmodulesHave(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"parts/outer", "parts/outer/parts/inner"} {
		t.Run(filepath.Base(at), func(t *testing.T) {
			t.Parallel()
			p := modular(t)
			ctx, m := t.Context(), p.manager()
			c := p.create(workspace.CreateOptions{Name: "auth"})
			sub := filepath.Join(c.Dir, filepath.FromSlash(at))
			for _, name := range []string{"older", "newer"} {
				p.write(sub, name, "stashed\n")
				p.git(sub, "stash", "-q", "-u")
			}
			p.write(sub, "lost", "reset away\n")
			lost := p.commit(sub, "lost")
			p.git(sub, "reset", "-q", "--hard", "HEAD~1")
			p.write(sub, "x.ig", "ignored\n")
			p.write(sub, "deep/y.ig", "ignored too\n")

			_, err := m.Remove(ctx, "auth", workspace.RemoveOptions{})
			var l *workspace.LossError
			if !errors.As(err, &l) || !strings.Contains(err.Error(), "2 stashes of submodules") || !strings.Contains(err.Error(), at+": stash@{1}") {
				t.Fatal(err)
			}
			r, err := m.Remove(ctx, "auth", workspace.RemoveOptions{Save: true})
			if err != nil || r.Kept == "" || !strings.Contains(strings.Join(r.Notes, "\n"), at) {
				t.Fatalf("%+v %v", r, err)
			}
			back, err := m.Restore(ctx, workspace.RestoreOptions{Name: "auth"})
			if err != nil || len(back.Notes) > 0 {
				t.Fatal(back.Notes, err)
			}
			sub = filepath.Join(back.Dir, filepath.FromSlash(at))
			for name, want := range map[string]string{"x.ig": "ignored\n", "deep/y.ig": "ignored too\n"} {
				if got := p.read(sub, name); got != want {
					t.Errorf("%s: %q", name, got)
				}
			}
			for i, name := range []string{"newer", "older"} {
				if got := p.git(sub, "show", "stash@{"+string(rune('0'+i))+"}^3:"+name); got != "stashed\n" {
					t.Errorf("%s: %q", name, got)
				}
			}
			if got := p.git(sub, "show", lost+":lost"); got != "reset away\n" || p.git(sub, "for-each-ref", "--contains="+lost) == "" {
				t.Errorf("%q", got)
			}
			if got := p.git(back.Dir, "status", "--porcelain"); got != "" {
				t.Error(got)
			}
			// And a second time, of what came back.
			if r, err = m.Remove(ctx, "auth", workspace.RemoveOptions{Save: true}); err != nil || r.Kept == "" {
				t.Fatalf("%+v %v", r, err)
			}
			back, err = m.Restore(ctx, workspace.RestoreOptions{Name: "auth", Newest: true})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(p.git(sub, "stash", "list"), "\n"); got != 2 || p.git(sub, "show", lost+":lost") != "reset away\n" {
				t.Error(got)
			}
		})
	}
}

// What was reset away alone is kept without a question, as in the workspace itself.
func TestResetAwayInSubmodule(t *testing.T) {
	t.Parallel()
	p := modular(t)
	c := p.create(workspace.CreateOptions{Name: "auth"})
	sub := filepath.Join(c.Dir, "parts", "outer")
	p.write(sub, "lost", "precious\n")
	lost := p.commit(sub, "lost")
	p.git(sub, "reset", "-q", "--hard", "HEAD~1")
	r, err := p.manager().Remove(t.Context(), "auth", workspace.RemoveOptions{})
	if err != nil || r.Kept == "" {
		t.Fatalf("%+v %v", r, err)
	}
	// Also without reprise.
	main := filepath.Join(p.code, "parts", "outer")
	p.git(main, "fetch", "-q", filepath.Join(r.Kept, ".git", "modules", "parts", "outer.bundle"), "refs/reprise/kept/*:refs/reprise/kept/*")
	if got := p.git(main, "show", lost+":lost"); got != "precious\n" {
		t.Error(got)
	}
	// What the main checkout's has is in no danger.
	p.git(main, "branch", "brought", lost)
	sub = filepath.Join(p.create(workspace.CreateOptions{Name: "next"}).Dir, "parts", "outer")
	p.git(sub, "-c", "protocol.file.allow=always", "fetch", "-q", main, "brought:once")
	p.git(sub, "branch", "-q", "-D", "once")
	p.git(sub, "reset", "-q", "--hard", lost)
	p.git(sub, "reset", "-q", "--hard", "HEAD~1")
	if r, err := p.manager().Remove(t.Context(), "next", workspace.RemoveOptions{}); err != nil || r.Kept != "" {
		t.Errorf("%+v %v", r, err)
	}
}

// A submodule that is not checked out any more has its branches still, also where the
// workspace's directory went by hand.
func TestBranchesOfSubmodules(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(p *place, dir string){
		"deinit": func(p *place, dir string) { p.git(dir, "submodule", "--quiet", "deinit", "-f", "parts/outer") },
		"taken out": func(p *place, dir string) {
			p.git(dir, "rm", "-q", "parts/outer")
			p.commit(dir, "without it")
		},
		"gone": func(p *place, dir string) {
			if err := os.RemoveAll(dir); err != nil {
				p.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := modular(t)
			c := p.create(workspace.CreateOptions{Name: "auth"})
			sub := filepath.Join(c.Dir, "parts", "outer")
			p.git(sub, "checkout", "-q", "-b", "mine")
			p.write(sub, "own", "precious\n")
			p.commit(sub, "own")
			p.git(sub, "checkout", "-q", "trunk")
			leave(p, c.Dir)
			m := p.manager()
			if name != "gone" {
				if _, err := m.Remove(t.Context(), "auth", workspace.RemoveOptions{}); err == nil || !strings.Contains(err.Error(), "parts/outer: mine") {
					t.Error(err)
				}
			}
			r, err := m.Remove(t.Context(), "auth", workspace.RemoveOptions{Save: true})
			if err != nil || r.Kept == "" {
				t.Fatalf("%+v %v", r, err)
			}
			main := filepath.Join(p.code, "parts", "outer")
			p.git(main, "fetch", "-q", filepath.Join(r.Kept, ".git", "modules", "parts", "outer.bundle"), "mine:brought")
			if got := p.git(main, "show", "brought:own"); got != "precious\n" {
				t.Error(got)
			}
		})
	}
}

// What cannot be kept is refused: files that git was told to pass over, a submodule whose
// git directory is in the worktree itself, one that .gitmodules does not name, one with a
// worktree of its own.
func TestSubmodulesThatAreRefused(t *testing.T) {
	t.Parallel()
	p := modular(t)
	c := p.create(workspace.CreateOptions{Name: "auth"})
	m := p.manager()
	sub := filepath.Join(c.Dir, "parts", "outer")
	refused := func(path string) {
		t.Helper()
		if _, err := m.Remove(t.Context(), "auth", workspace.RemoveOptions{Save: true}); err == nil || !strings.Contains(err.Error(), "submodule") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, mark := range []string{"assume-unchanged", "skip-worktree"} {
		p.git(sub, "update-index", "--"+mark, "marked.txt")
		p.write(sub, "marked.txt", "changed\n")
		refused("parts/outer")
		p.git(sub, "update-index", "--no-"+mark, "marked.txt")
		p.git(sub, "checkout", "-q", "marked.txt")
	}
	elsewhere := filepath.Join(p.dir, "elsewhere")
	p.git(sub, "worktree", "add", "-q", "--detach", elsewhere)
	refused(elsewhere)
	p.git(sub, "worktree", "remove", elsewhere)

	own := filepath.Join(c.Dir, "own")
	p.write(own, "x", "precious\n")
	p.git(own, "init", "-q", "-b", "trunk", ".")
	p.commit(own, "nowhere else")
	p.git(c.Dir, "-c", "advice.addEmbeddedRepo=false", "add", "own")
	p.commit(c.Dir, "a repository without a name")
	refused("own")
	if got := p.read(own, "x"); got != "precious\n" {
		t.Error(got)
	}
}

// A repository whose git directory was never moved out of the worktree keeps its stash
// too, where the rest of it is at its remote.
func TestStashOfEmbedded(t *testing.T) {
	t.Parallel()
	p := modular(t)
	c := p.create(workspace.CreateOptions{Name: "auth"})
	own := filepath.Join(c.Dir, "own")
	p.git(c.Dir, "-c", "protocol.file.allow=always", "clone", "-q", filepath.Join(p.dir, "inner"), own)
	p.git(c.Dir, "-c", "advice.addEmbeddedRepo=false", "add", "own")
	p.commit(c.Dir, "a repository without a name")
	p.write(own, "x", "precious\n")
	p.git(own, "stash", "-q", "-u")
	m := p.manager()
	if _, err := m.Remove(t.Context(), "auth", workspace.RemoveOptions{}); err == nil || !strings.Contains(err.Error(), "own: stash@{0}") {
		t.Error(err)
	}
	r, err := m.Remove(t.Context(), "auth", workspace.RemoveOptions{Save: true})
	if err != nil || r.Kept == "" {
		t.Fatalf("%+v %v", r, err)
	}
	main := filepath.Join(p.dir, "inner")
	p.git(main, "fetch", "-q", filepath.Join(r.Kept, ".git", "in", "own.bundle"), "refs/reprise/kept/stash-0000:refs/brought")
	if got := p.git(main, "show", "refs/brought^3:x"); got != "precious\n" {
		t.Error(got)
	}
	// There is nothing to put it back into.
	back, err := m.Restore(t.Context(), workspace.RestoreOptions{Name: "auth"})
	if notes := strings.Join(back.Notes, "\n"); err != nil || !strings.Contains(notes, "own.bundle") {
		t.Error(notes, err)
	}
}

// Killed at any step of a removal, a submodule's stash is in the submodule still or in a
// bundle that another clone can read.
func TestCrashWhileKeepingSubmodules(t *testing.T) {
	t.Parallel()
	durabletest.Scenario{
		Sample: sample(2),
		Prepare: func(t *testing.T, dir string) {
			p := on(t, dir, durable.Disk{})
			p.prepare()
			inner := filepath.Join(p.dir, "inner")
			p.git(p.dir, "init", "-q", "-b", "trunk", inner)
			p.commit(inner, "first")
			p.sub(p.code, inner, "lib")
			p.commit(p.code, "with a submodule")
			sub := filepath.Join(p.create(workspace.CreateOptions{Name: "auth"}).Dir, "lib")
			p.write(sub, "x", "precious\n")
			p.git(sub, "stash", "-q", "-u")
		},
		Act: func(disk durable.Disk, dir string) error {
			_, err := on(t, dir, disk).manager().Remove(t.Context(), "auth", workspace.RemoveOptions{Save: true})
			return err
		},
		Check: func(t *testing.T, dir string, _ error, step string) {
			p := on(t, dir, durable.Disk{})
			m := p.manager()
			p.died("auth")
			if _, err := m.Mend(t.Context()); err != nil {
				t.Errorf("%s: %v", step, err)
			}
			if w, err := m.Get("auth"); err == nil {
				if got := p.git(filepath.Join(w.Dir, "lib"), "show", "stash^3:x"); got != "precious\n" {
					t.Errorf("%s: %q", step, got)
				}
				if _, err := m.Remove(t.Context(), "auth", workspace.RemoveOptions{Save: true}); err != nil {
					t.Errorf("%s: %v", step, err)
				}
			}
			list, err := m.ListSaved(t.Context(), "auth")
			if err != nil || len(list) == 0 || list[0].Kept == "" {
				t.Fatalf("%s: %+v %v", step, list, err)
			}
			inner := filepath.Join(p.dir, "inner")
			p.git(inner, "fetch", "-q", filepath.Join(list[0].Kept, ".git", "modules", "lib.bundle"), "refs/reprise/kept/stash-0000:refs/brought")
			if got := p.git(inner, "show", "refs/brought^3:x"); got != "precious\n" {
				t.Errorf("%s: %q", step, got)
			}
		},
	}.CrashAtEachStep(t)
}
