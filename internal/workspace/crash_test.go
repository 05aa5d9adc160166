package workspace_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/workspace"
)

// sample is how many steps are tried in the short length; the long one tries all.
func sample(n int) int {
	if os.Getenv("REPRISE_LONG_TESTS") != "" {
		return 0
	}
	return n
}

func on(t testing.TB, dir string, disk durable.Disk) *place {
	p := at(t, dir)
	p.disk = disk
	return p
}

// whole wants that git finds nothing wrong with either repository.
func (p *place) whole(step string) {
	p.t.Helper()
	for _, dir := range []string{p.code, filepath.Join(p.dir, "reprise", "projects", "shop", "state.git")} {
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		if out := p.git(dir, "fsck", "--no-dangling"); strings.Contains(out, "error") || strings.Contains(out, "missing") {
			p.t.Errorf("%s: %s", step, out)
		}
	}
	if list, err := p.options().State.Fsck(p.t.Context(), false); err != nil || len(list) > 0 {
		p.t.Errorf("%s: fsck: %v %v", step, list, err)
	}
	if out := p.git(p.code, "worktree", "prune", "--dry-run", "--verbose"); out != "" {
		p.t.Errorf("%s: git would prune %s", step, out)
	}
}

// Killed at any step, a making leaves nothing that the next one does not take back;
// and it says so.
func TestCrashWhileCreating(t *testing.T) {
	t.Parallel()
	o := workspace.CreateOptions{Name: "auth", Branch: "feature/auth", Carry: []string{"node_modules"}}
	durabletest.Scenario{
		Sample: sample(1),
		Prepare: func(t *testing.T, dir string) {
			p := on(t, dir, durable.Disk{})
			p.prepare()
			p.write(p.code, "node_modules/x.js", "x\n")
		},
		Act: func(disk durable.Disk, dir string) error {
			_, err := on(t, dir, disk).manager().Create(t.Context(), o)
			return err
		},
		Check: func(t *testing.T, dir string, err error, step string) {
			p := on(t, dir, durable.Disk{})
			m := p.manager()
			w, gerr := m.Get("auth")
			if err == nil && (gerr != nil || w.State != workspace.Ready || p.read(w.Dir, "node_modules/x.js") != "x\n") {
				t.Errorf("%s: it is not there: %+v %v", step, w, gerr)
			}
			if err != nil && gerr == nil && w.State != workspace.Ready {
				if i := m.Look(w); i.Status != "unfinished" || i.Note == "" {
					t.Errorf("%s: %+v", step, i)
				}
				notes, err := m.Mend(t.Context())
				if err != nil || !strings.Contains(strings.Join(notes, "\n"), "was taken back") {
					t.Errorf("%s: %v %v", step, notes, err)
				}
				p.nothing("auth", step)
			} else if gerr != nil {
				p.nothing("auth", step)
			}
			if gerr == nil && w.State == workspace.Ready {
				if _, err := m.Remove(t.Context(), "auth", workspace.RemoveOptions{}); err != nil {
					t.Errorf("%s: %v", step, err)
				}
			}
			o := o
			o.Attach = true // of an agent that had been finished
			c, cerr := m.Create(t.Context(), o)
			if cerr != nil {
				t.Errorf("%s: again: %v", step, cerr)
				return
			}
			if got := p.git(c.Dir, "status", "--porcelain") + p.git(c.AgentDir, "status", "--porcelain"); got != "" || p.read(c.Dir, "main.go") != "package main\n" {
				t.Errorf("%s: %s", step, got)
			}
			p.whole(step)
		},
	}.CrashAtEachStep(t)
}

// died has a record say that whoever made or removed the workspace has ended since:
// where not even that can be written down, it has to.
func (p *place) died(name string) {
	p.t.Helper()
	dir := filepath.Join(p.dir, "reprise", "projects", "shop", "workspaces")
	data, err := os.ReadFile(filepath.Join(dir, name+".json"))
	if err != nil {
		return
	}
	p.write(dir, name+".json", strings.Replace(string(data), `"start": `, `"start": 1`, 1))
}

// A making that fails at a step leaves nothing by itself.
func TestFailingWhileCreating(t *testing.T) {
	t.Parallel()
	durabletest.Scenario{
		Sample:  sample(1),
		Prepare: func(t *testing.T, dir string) { on(t, dir, durable.Disk{}).prepare() },
		Act: func(disk durable.Disk, dir string) error {
			_, err := on(t, dir, disk).manager().Create(t.Context(), workspace.CreateOptions{Name: "auth"})
			return err
		},
		Check: func(t *testing.T, dir string, err error, step string) {
			p := on(t, dir, durable.Disk{})
			m := p.manager()
			if err == nil {
				if _, err := m.Remove(t.Context(), "auth", workspace.RemoveOptions{}); err != nil {
					t.Errorf("%s: %v", step, err)
				}
				return
			}
			p.died("auth")
			if _, err := m.Mend(t.Context()); err != nil {
				t.Errorf("%s: %v", step, err)
			}
			p.nothing("auth", step)
			p.whole(step)
		},
	}.FailAtEachStep(t, os.ErrDeadlineExceeded)
}

// Killed at any step, a removal has everything either in the workspace or under the
// ref and in the directory, and the next command finishes it.
func TestCrashWhileRemoving(t *testing.T) {
	t.Parallel()
	durabletest.Scenario{
		Sample: sample(1),
		Prepare: func(t *testing.T, dir string) {
			p := on(t, dir, durable.Disk{})
			p.prepare()
			c := p.create(workspace.CreateOptions{Name: "auth"})
			p.write(c.Dir, "own.go", "package own\n")
			p.commit(c.Dir, "own")
			p.write(c.Dir, "main.go", "changed\n")
			p.write(c.Dir, "new.txt", "new\n")
			p.write(c.Dir, "x.log", "ignored\n")
			tree, err := p.options().State.Open(t.Context(), c.AgentDir)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tree.Add(t.Context(), memory.FullAccess, mdfile.Entry{Type: mdfile.TypeLearning, Text: "Known."}); err != nil {
				t.Fatal(err)
			}
		},
		Act: func(disk durable.Disk, dir string) error {
			_, err := on(t, dir, disk).manager().Remove(t.Context(), "auth", workspace.RemoveOptions{Save: true, DeleteBranch: true})
			return err
		},
		Check: func(t *testing.T, dir string, _ error, step string) {
			p := on(t, dir, durable.Disk{})
			m := p.manager()
			if w, err := m.Get("auth"); err == nil && w.State == workspace.Ready {
				if p.read(w.Dir, "new.txt") != "new\n" {
					t.Errorf("%s: the workspace is damaged", step)
				}
			}
			if _, err := m.Get("auth"); err == nil {
				if _, err := m.Remove(t.Context(), "auth", workspace.RemoveOptions{Save: true, DeleteBranch: true}); err != nil {
					t.Errorf("%s: again: %v", step, err)
				}
			}
			list, err := m.ListSaved(t.Context(), "auth")
			if err != nil || len(list) != 1 {
				t.Errorf("%s: kept %v %v", step, list, err)
				return
			}
			if got := p.git(p.code, "worktree", "list"); strings.Count(got, "\n") != 1 {
				t.Errorf("%s: %s", step, got)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "shop.workspaces", ".*")); len(left) > 0 {
				t.Errorf("%s: left %v", step, left)
			}
			if refs := p.git(p.code, "for-each-ref", "--format=%(refname)", "refs/heads"); refs != "refs/heads/trunk\n" {
				t.Errorf("%s: %s", step, refs)
			}
			r, err := m.Restore(t.Context(), workspace.RestoreOptions{Name: "auth"})
			if err != nil {
				t.Errorf("%s: %v", step, err)
				return
			}
			for name, want := range map[string]string{"own.go": "package own\n", "main.go": "changed\n", "new.txt": "new\n", "x.log": "ignored\n"} {
				if got := p.read(r.Dir, name); got != want {
					t.Errorf("%s: %s: %q", step, name, got)
				}
			}
			if !strings.Contains(p.read(r.AgentDir, "learnings.md"), "Known.") {
				t.Errorf("%s: what was learnt is lost", step)
			}
			p.whole(step)
		},
	}.CrashAtEachStep(t)
}

// Git itself is killed in the middle of a checkout: what it leaves then.
func TestGitKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	c := p.create(workspace.CreateOptions{Name: "auth"})
	admin := strings.TrimSpace(p.git(c.Dir, "rev-parse", "--absolute-git-dir"))
	p.write(admin, "locked", "initializing\n")
	p.write(admin, "index.lock", "half")
	if err := os.Remove(filepath.Join(admin, "index")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(c.Dir, "main.go")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(p.dir, "reprise", "projects", "shop", "workspaces")
	record := strings.Replace(p.read(file, "auth.json"), `"state": "ready"`, `"state": "making"`, 1)
	p.write(file, "auth.json", record)
	// Any name: what is cut off is in nobody's way.
	o, err := p.manager().Create(t.Context(), workspace.CreateOptions{Name: "other"})
	if err != nil || !strings.Contains(strings.Join(o.Notes, "\n"), "workspace auth had been cut off") {
		t.Fatal(o, err)
	}
	if _, err := p.manager().Remove(t.Context(), "other", workspace.RemoveOptions{}); err != nil {
		t.Fatal(err)
	}
	p.nothing("auth", "killed")
	p.whole("killed")
}

// One workspace that cannot be taken back is in nobody's way but its own: before, a lock
// that a killed git had left in the code's repository kept all others from being made.
func TestOneThatStaysUnfinished(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	m := p.manager()
	ctx := t.Context()
	if _, err := m.Create(ctx, workspace.CreateOptions{Name: "stuck"}); err != nil {
		t.Fatal(err)
	}
	p.record("stuck", func(w map[string]any) { w["state"], w["by"] = "making", nil })
	lock := filepath.Join(p.code, ".git", "refs", "heads", "stuck.lock")
	p.write(filepath.Dir(lock), filepath.Base(lock), "")
	c, err := m.Create(ctx, workspace.CreateOptions{Name: "other"})
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(c.Notes, "\n"); !strings.Contains(notes, "workspace stuck stays unfinished") || !strings.Contains(notes, lock) {
		t.Error(notes)
	}
	if out, err := m.Remove(ctx, "other", workspace.RemoveOptions{}); err != nil || !strings.Contains(strings.Join(out.Notes, "\n"), lock) {
		t.Error(out, err)
	}
	// Whoever wants just this one is told what it is that stands in the way.
	if _, err := m.Create(ctx, workspace.CreateOptions{Name: "stuck"}); err == nil || !strings.Contains(err.Error(), lock) {
		t.Error(err)
	}
	if _, err := m.Remove(ctx, "stuck", workspace.RemoveOptions{}); err == nil || !strings.Contains(err.Error(), lock) || !strings.Contains(err.Error(), "remove that file") {
		t.Error(err)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Remove(ctx, "stuck", workspace.RemoveOptions{}); err != nil {
		t.Error(err)
	}
	p.nothing("stuck", "at last")
}

// record changes a workspace's record, as a crash would have left it.
func (p *place) record(name string, change func(map[string]any)) {
	p.t.Helper()
	file := filepath.Join(p.dir, "reprise", "projects", "shop", "workspaces", name+".json")
	data, err := os.ReadFile(file)
	w := map[string]any{}
	if err == nil {
		err = json.Unmarshal(data, &w)
	}
	change(w)
	if data, merr := json.Marshal(w); merr != nil || err != nil || os.WriteFile(file, data, 0o600) != nil {
		p.t.Fatal(err, merr)
	}
}

// Of several that make one workspace, one does, and the others are told that it is there
// or being made: not that there is a branch of that name.
func TestManyMakersOfOne(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, name := range []string{"a1", "a2", "a3"} {
		errs := make(chan error)
		for range 6 {
			go func() {
				_, err := p.manager().Create(t.Context(), workspace.CreateOptions{Name: name})
				errs <- err
			}()
		}
		made := 0
		for range 6 {
			if err := <-errs; err == nil {
				made++
			} else if !errors.Is(err, workspace.ErrExists) {
				t.Error(err)
			}
		}
		if made != 1 {
			t.Errorf("%s was made %d times", name, made)
		}
	}
}
