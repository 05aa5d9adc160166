package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/proc"
	"reprise/internal/workspace"
)

// move renames a directory of a place.
func (p *place) move(from, to string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(from, to); err != nil {
		p.t.Fatal(err)
	}
}

// worked is a workspace in which there is work of every kind: committed, staged, in files,
// new, and in its agent's state.
func (p *place) worked(o workspace.CreateOptions) workspace.Created {
	p.t.Helper()
	c := p.create(o)
	p.write(c.Dir, "done.txt", "committed\n")
	p.commit(c.Dir, "work")
	p.write(c.Dir, "staged.txt", "staged\n")
	p.git(c.Dir, "add", "staged.txt")
	p.write(c.Dir, "main.go", "package other\n")
	p.write(c.Dir, "new.txt", "new\n")
	p.write(c.AgentDir, "scratch.md", "thinking\n")
	return c
}

// moveCode moves the repository, moveHome what reprise keeps, to a path below the place.
func (p *place) moveCode(to string) {
	p.t.Helper()
	from := p.code
	p.code = filepath.Join(p.dir, filepath.FromSlash(to))
	p.move(from, p.code)
}

func (p *place) moveHome(to string) {
	p.t.Helper()
	from := p.vars["REPRISE_HOME"]
	p.vars["REPRISE_HOME"] = filepath.Join(p.dir, filepath.FromSlash(to))
	p.move(from, p.vars["REPRISE_HOME"])
}

// as wants the workspace to be whole, at dir, with the work of [place.worked] in it.
func (p *place) as(dir, step string) {
	p.t.Helper()
	const name = "auth"
	w, err := p.manager().Get(name)
	if err != nil || w.State != workspace.Ready || w.Dir != dir || p.manager().Look(w).Status == "missing" {
		p.t.Fatalf("%s: %+v %v; want it at %s", step, w, err, dir)
	}
	if w.AgentDir != filepath.Join(dir, ".reprise", "agent") || w.StateRepo != p.options().State.Dir() {
		p.t.Errorf("%s: the state of its agent is in %s, of %s", step, w.AgentDir, w.StateRepo)
	}
	if got := p.git(dir, "status", "--porcelain"); got != " M main.go\nA  staged.txt\n?? new.txt\n" {
		p.t.Errorf("%s: its work is %q", step, got)
	}
	if got := p.git(dir, "log", "-1", "--format=%s %D"); got != "work HEAD -> "+name+"\n" {
		p.t.Errorf("%s: it is at %q", step, got)
	}
	if got := strings.TrimSpace(p.git(w.AgentDir, "status", "--porcelain")); got != "M scratch.md" {
		p.t.Errorf("%s: the state of its agent is %q", step, got)
	}
	p.whole(step)
}

// TestMoved: whoever renames or moves a project's directory, its worktrees with it, or all that
// reprise keeps, goes on with the workspaces as they were.
func TestMoved(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		dir string              // where it is made, "" for the usual place
		do  func(p *place)      // moves what is moved
		at  func(*place) string // where it is then
	}{
		"the repository":                        {do: func(p *place) { p.moveCode("Other é") }, at: usual},
		"the repository, away":                  {do: func(p *place) { p.moveCode("deep/er/Other é") }, at: usual},
		"the repository and what reprise keeps": {do: func(p *place) { p.moveCode("Other é"); p.moveHome("home of it") }, at: usual},
		"the worktrees, to where they would be made": {do: func(p *place) {
			p.moveCode("up/code")
			p.move(filepath.Join(p.dir, "shop.workspaces"), filepath.Join(p.dir, "up", "shop.workspaces"))
		}, at: func(p *place) string { return filepath.Join(p.dir, "up", "shop.workspaces", "auth") }},
		"all that is above them": {dir: "sub/ways/auth", do: func(p *place) {
			p.move(filepath.Join(p.dir, "sub"), filepath.Join(p.dir, "up", "sub"))
			p.moveCode("up/My Shop é")
			p.moveHome("up/reprise")
		}, at: func(p *place) string { return filepath.Join(p.dir, "up", "sub", "ways", "auth") }},
		"both, renamed alike": {dir: "My Shop é.workspaces/auth", do: func(p *place) {
			p.moveCode("Other")
			p.move(filepath.Join(p.dir, "My Shop é.workspaces"), filepath.Join(p.dir, "Other.workspaces"))
		}, at: func(p *place) string { return filepath.Join(p.dir, "Other.workspaces", "auth") }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			if c.dir != "" {
				c.dir = filepath.Join(p.dir, filepath.FromSlash(c.dir))
			}
			p.worked(workspace.CreateOptions{Name: "auth", Dir: c.dir})
			c.do(p)
			if found, err := p.manager().Refind(t.Context(), "auth"); !found || err != nil {
				t.Fatalf("it was not found: %v", err)
			}
			p.as(c.at(p), what)
			if found, err := p.manager().Refind(t.Context(), "auth"); found || err != nil {
				t.Errorf("it was found once more: %v", err)
			}
			if r, err := p.manager().Remove(t.Context(), "auth", workspace.RemoveOptions{Save: true}); err != nil || r.Saved == "" {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
}

func usual(p *place) string { return filepath.Join(p.dir, "shop.workspaces", "auth") }

// Whoever asks for a workspace finds it again: a command that makes or removes one, and one
// that works in it. Twice in a row, too.
func TestMovedIsFoundByWhoAsks(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.worked(workspace.CreateOptions{Name: "auth"})
	self, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	for i, ask := range []func() error{
		func() error { _, err := p.manager().Mend(t.Context()); return err },
		func() error {
			l, err := p.manager().Lease(t.Context(), "auth", workspace.Holder{Process: self, What: "test"})
			if err == nil {
				err = l.Release(t.Context())
			}
			return err
		},
		func() error {
			c, err := p.manager().Prepare(t.Context(), workspace.CreateOptions{Name: "auth", Attach: true}, workspace.Holder{Process: self, What: "test"})
			if err == nil {
				err = c.Lease.Release(t.Context())
			}
			return err
		},
	} {
		p.moveCode([]string{"one", "two", "three"}[i])
		if err := ask(); err != nil {
			t.Error(err)
		}
		p.as(usual(p), p.code)
	}
}

// Submodules are cut off, too, and theirs.
func TestMovedSubmodules(t *testing.T) {
	t.Parallel()
	p := modular(t)
	c := p.create(workspace.CreateOptions{Name: "auth"})
	p.write(c.Dir, "parts/outer/parts/inner/deep.txt", "not committed\n")
	p.moveCode("deep/er/Other é")
	if found, err := p.manager().Refind(t.Context(), "auth"); !found || err != nil {
		t.Fatalf("it was not found: %v", err)
	}
	for dir, want := range map[string]string{"": " M parts/outer\n", "parts/outer": " M parts/inner\n", "parts/outer/parts/inner": "?? deep.txt\n"} {
		if got := p.git(filepath.Join(c.Dir, dir), "status", "--porcelain", "--ignore-submodules=none"); strings.ReplaceAll(got, "?", "M") != strings.ReplaceAll(want, "?", "M") {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}

// What is nobody's but its own is left alone: a copy of the project does not take the worktrees of
// the first one, and of what is nowhere the branch and what was staged are kept.
func TestMovedElsewhere(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	c := p.worked(workspace.CreateOptions{Name: "auth"})
	first := p.code
	p.code = filepath.Join(p.dir, "copy")
	if err := os.CopyFS(p.code, os.DirFS(first)); err != nil {
		t.Fatal(err)
	}
	if found, err := p.manager().Refind(t.Context(), "auth"); found || err != nil {
		t.Errorf("the copy has taken it: %v", err)
	}
	if _, err := p.manager().Mend(t.Context()); err != nil {
		t.Error(err)
	}
	p.code = first
	p.as(c.Dir, "beside a copy")

	p.move(c.Dir, filepath.Join(p.dir, "nobody", "knows"))
	p.moveCode("Other é")
	if found, err := p.manager().Refind(t.Context(), "auth"); found || err != nil {
		t.Errorf("it was found: %v", err)
	}
	r, err := p.manager().Remove(t.Context(), "auth", workspace.RemoveOptions{Save: true})
	if err != nil || r.Saved == "" || r.BranchGone {
		t.Fatalf("%+v %v", r, err)
	}
	if got := p.git(p.code, "show", r.Saved+":staged.txt"); got != "staged\n" {
		t.Errorf("what was staged: %q", got)
	}
	if again := p.create(workspace.CreateOptions{Name: "auth", Attach: true}); p.read(again.Dir, "done.txt") != "committed\n" {
		t.Errorf("%+v", again)
	}
	p.whole("made anew")
}

// Killed at any step, or in the middle of a removal, it is found by the next.
func TestCrashWhileFinding(t *testing.T) {
	t.Parallel()
	durabletest.Scenario{
		Sample: sample(4),
		Prepare: func(t *testing.T, dir string) {
			p := on(t, dir, durable.Disk{})
			p.prepare()
			p.worked(workspace.CreateOptions{Name: "auth"})
			p.moveCode("Other é")
		},
		Act: func(disk durable.Disk, dir string) error {
			p := on(t, dir, disk)
			p.code = filepath.Join(dir, "Other é")
			_, err := p.manager().Refind(t.Context(), "auth")
			return err
		},
		Check: func(t *testing.T, dir string, _ error, step string) {
			p := on(t, dir, durable.Disk{})
			p.code = filepath.Join(dir, "Other é")
			if _, err := p.manager().Mend(t.Context()); err != nil {
				t.Errorf("%s: %v", step, err)
			}
			if w, err := p.manager().Get("auth"); err == nil {
				if _, err := p.options().State.Open(t.Context(), w.AgentDir); err != nil {
					t.Errorf("%s: %v", step, err)
				}
			}
			p.as(usual(p), step)
		},
	}.CrashAtEachStep(t)
}

// A repository that was moved after a removal, or a making, had been cut off is no reason for what
// is left of it to stay.
func TestMovedWhileUnfinished(t *testing.T) {
	t.Parallel()
	durabletest.Scenario{
		Sample: sample(12),
		Prepare: func(t *testing.T, dir string) {
			p := on(t, dir, durable.Disk{})
			p.prepare()
			p.worked(workspace.CreateOptions{Name: "auth"})
		},
		Act: func(disk durable.Disk, dir string) error {
			p := on(t, dir, disk)
			if _, err := p.manager().Remove(t.Context(), "auth", workspace.RemoveOptions{Save: true}); err != nil {
				return err
			}
			_, err := p.manager().Create(t.Context(), workspace.CreateOptions{Name: "next"})
			return err
		},
		Check: func(t *testing.T, dir string, _ error, step string) {
			p := on(t, dir, durable.Disk{})
			p.moveCode("Other é")
			if _, err := p.manager().Mend(t.Context()); err != nil {
				t.Errorf("%s: %v", step, err)
			}
			list, err := p.manager().List()
			if err != nil {
				t.Errorf("%s: %v", step, err)
			}
			for _, i := range list {
				if i.Status != string(workspace.Ready) {
					t.Errorf("%s: %s is %s: %s", step, i.Name, i.Status, i.Note)
				}
			}
			p.whole(step)
		},
	}.CrashAtEachStep(t)
}

// A workspace of another clone of the project is not gone on with, and one whose files are no part
// of the project any more is known to be none.
func TestBelongs(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	self, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	c := p.create(workspace.CreateOptions{Name: "auth"})
	if err := p.manager().Belongs("auth"); err != nil {
		t.Error(err)
	}
	p.write(c.Dir, ".reprise/project.yaml", "v: 1\nname: other\n")
	if err := p.manager().Belongs("auth"); err == nil || !strings.Contains(err.Error(), `called "other"`) {
		t.Errorf("another project: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(c.Dir, ".reprise")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(os.TempDir(), filepath.Join(c.Dir, ".reprise")); err != nil {
		t.Skip("no links here")
	}
	if err := p.manager().Belongs("auth"); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("a link: %v", err)
	}
	p.create(workspace.CreateOptions{Name: "next"})
	first := p.code
	p.code = filepath.Join(p.dir, "clone")
	p.git(p.dir, "clone", "-q", first, p.code)
	_, err = p.manager().Prepare(t.Context(), workspace.CreateOptions{Name: "next", Attach: true}, workspace.Holder{Process: self, What: "test"})
	if err == nil || !strings.Contains(err.Error(), "another clone of this project, "+first) {
		t.Errorf("%v", err)
	}
}
