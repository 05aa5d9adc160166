package workspace_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/proc"
	"reprise/internal/workspace"
)

// A removal beside other work goes on when its caller's time is over, and what stands
// against it leaves a workspace that can be used.
func TestRemoveLater(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	m := p.manager()
	self, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	lease := func(name string) (workspace.Created, *workspace.Lease) {
		c, err := m.Prepare(t.Context(), workspace.CreateOptions{Name: name, Attach: true}, workspace.Holder{Process: self, What: "test"})
		if err != nil {
			t.Fatal(err)
		}
		return c, c.Lease
	}
	c, l := lease("auth")
	p.write(c.Dir, "new.txt", "new\n")
	ctx, cancel := context.WithCancel(t.Context())
	var gone workspace.Removed
	told := errors.New("nobody was told")
	err = l.RemoveLater(ctx, workspace.RemoveOptions{Save: true}, func(r workspace.Removed, err error) { gone, told = r, err })
	cancel()
	m.Wait()
	if err != nil || told != nil || gone.Saved == "" {
		t.Fatalf("%+v %v %v", gone, told, err)
	}
	if _, err := m.Get("auth"); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("its record: %v", err)
	}
	if _, err := os.Stat(c.Dir); err == nil {
		t.Error("its worktree is there")
	}

	// A repository of its own cannot be kept.
	c, l = lease("deep")
	p.git(c.Dir, "init", "-q", "inner")
	p.write(filepath.Join(c.Dir, "inner"), "x", "x")
	if err := l.RemoveLater(t.Context(), workspace.RemoveOptions{Save: true}, func(_ workspace.Removed, err error) { told = err }); err != nil {
		t.Fatal(err)
	}
	m.Wait()
	var loss *workspace.LossError
	if !errors.As(told, &loss) || p.read(c.Dir, "inner/x") != "x" {
		t.Errorf("%v", told)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w, err := m.Get("deep"); err != nil || w.State != workspace.Ready || len(w.Holders) != 0 {
		t.Errorf("%+v %v", w, err)
	}
}

// What the machine stands in the way of is done when it does not any more: by the removal
// itself, or by the next, and none of it is kept twice.
func TestRemoveLaterAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	on(t, dir, durable.Disk{}).prepare()
	var armed, ill atomic.Bool
	var refused atomic.Int64
	disk := durable.NewDisk(func(s durable.Step) *durable.Fault {
		switch {
		case ill.Load():
			if refused.Add(1) == 6 { // after a few tries
				ill.Store(false)
			}
			return &durable.Fault{Err: syscall.EMFILE}
		case armed.Load() && s.Op == durable.OpSyncDir: // it is written down
			armed.Store(false)
			return &durable.Fault{Skip: true, Then: func() { ill.Store(true) }}
		}
		return nil
	})
	p := on(t, dir, disk)
	m := p.manager()
	self, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	c, err := m.Prepare(t.Context(), workspace.CreateOptions{Name: "auth"}, workspace.Holder{Process: self, What: "test"})
	if err != nil {
		t.Fatal(err)
	}
	p.write(c.Dir, "new.txt", "new\n")
	told := errors.New("nobody was told")
	armed.Store(true)
	if err := c.Lease.RemoveLater(t.Context(), workspace.RemoveOptions{Save: true}, func(_ workspace.Removed, err error) { told = err }); err != nil {
		t.Fatal(err)
	}
	m.Wait()
	if refused.Load() == 0 {
		t.Fatal("nothing stood in the way")
	}
	if told != nil {
		t.Errorf("it was not tried again: %v", told)
	}
	if _, err := m.Get("auth"); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("its record: %v", err)
	}
	if saved, err := m.ListSaved(t.Context(), "auth"); err != nil || len(saved) != 1 {
		t.Errorf("kept %d times, %v", len(saved), err)
	}
	p.whole("")
}

// Killed at any step of it, the workspace is there whole or the next command finishes
// what was written down.
func TestCrashWhileRemovingLater(t *testing.T) {
	t.Parallel()
	durabletest.Scenario{
		Sample: sample(12),
		Prepare: func(t *testing.T, dir string) {
			p := on(t, dir, durable.Disk{})
			p.prepare()
			c := p.create(workspace.CreateOptions{Name: "auth"})
			p.write(c.Dir, "new.txt", "new\n")
		},
		Act: func(disk durable.Disk, dir string) error {
			m := on(t, dir, disk).manager()
			self, err := proc.Self()
			if err != nil {
				return err
			}
			l, err := m.Lease(t.Context(), "auth", workspace.Holder{Process: self, What: "test"})
			if err != nil {
				return err
			}
			var told error
			err = l.RemoveLater(t.Context(), workspace.RemoveOptions{Save: true, Ended: true}, func(_ workspace.Removed, err error) { told = err })
			m.Wait()
			return errors.Join(err, told)
		},
		Check: func(t *testing.T, dir string, err error, step string) {
			p := on(t, dir, durable.Disk{})
			p.died("auth")
			m := p.manager()
			if _, merr := m.Mend(t.Context()); merr != nil {
				t.Errorf("%s: %v", step, merr)
			}
			w, gerr := m.Get("auth")
			saved, serr := m.ListSaved(t.Context(), "auth")
			switch {
			case serr != nil:
				t.Errorf("%s: %v", step, serr)
			case gerr == nil && (w.State != workspace.Ready || p.read(w.Dir, "new.txt") != "new\n"):
				t.Errorf("%s: neither there nor gone: %+v", step, w)
			case gerr != nil && len(saved) != 1:
				t.Errorf("%s: what was in it is kept %d times", step, len(saved))
			case gerr == nil && err == nil:
				t.Errorf("%s: it is still there", step)
			}
			p.whole(step)
		},
	}.CrashAtEachStep(t)
}

// What is told from files is what git tells.
func TestBeginsAsGitSays(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	first := strings.TrimSpace(p.git(p.code, "rev-parse", "HEAD"))
	at := func(what, want string) {
		t.Helper()
		m := p.manager()
		c, err := m.Create(t.Context(), workspace.CreateOptions{Name: what})
		if err != nil || c.Base != want {
			t.Fatalf("%s: it begins at %s, want %s (%v)", what, c.Base, want, err)
		}
		if common := strings.TrimSpace(p.git(c.Dir, "rev-parse", "--path-format=absolute", "--git-common-dir")); common != c.Common {
			t.Errorf("%s: common is %s, git says %s", what, c.Common, common)
		}
	}
	refused := func(what string, o workspace.CreateOptions) {
		t.Helper()
		if _, err := p.manager().Create(t.Context(), o); !errors.Is(err, workspace.ErrRefused) {
			t.Errorf("%s: %v", what, err)
		}
	}
	at("loose", first)
	p.write(p.code, "b.txt", "b\n")
	p.commit(p.code, "second")
	second := strings.TrimSpace(p.git(p.code, "rev-parse", "HEAD"))
	p.git(p.code, "pack-refs", "--all")
	p.git(p.code, "gc", "-q")
	at("packed", second)
	p.git(p.code, "branch", "Feature")
	refused("differs in case", workspace.CreateOptions{Name: "feature"})
	refused("is there", workspace.CreateOptions{Name: "x", Branch: "loose"})
	p.git(p.code, "pack-refs", "--all")
	refused("differs in case, packed", workspace.CreateOptions{Name: "feature"})
	p.git(p.code, "update-ref", "refs/remotes/origin/far", first)
	refused("at the remote", workspace.CreateOptions{Name: "far"})
	p.git(p.code, "checkout", "-q", "--detach", first)
	at("detached", first)
	p.git(p.code, "symbolic-ref", "HEAD", "refs/heads/unborn")
	refused("no commit", workspace.CreateOptions{Name: "nothing"})
	p.git(p.code, "symbolic-ref", "HEAD", "refs/heads/trunk")
	p.git(p.code, "reset", "-q", "--hard")
	// From a linked worktree.
	p.from = p.create(workspace.CreateOptions{Name: "linked"}).Dir
	p.write(p.from, "c.txt", "c\n")
	p.commit(p.from, "third")
	at("second-generation", strings.TrimSpace(p.git(p.from, "rev-parse", "HEAD")))
}

// Whether what builds on it is begun before its worktree has gone or after, the branch of
// work that is done is found under its name, where that is asked for.
func TestRemovalKeepsBranch(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	m := p.manager()
	for name, c := range map[string]struct{ work, keep, gone bool }{
		"nothing":      {false, false, true},
		"nothing-kept": {false, true, true},
		"taken-up":     {true, false, true},
		"kept":         {true, true, false},
	} {
		w, err := m.Create(t.Context(), workspace.CreateOptions{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if c.work {
			p.write(w.Dir, name, name)
			p.git(w.Dir, "add", "-A")
			p.git(w.Dir, "branch", "on-"+name, p.commit(w.Dir, "work of "+name))
		}
		r, err := m.Remove(t.Context(), name, workspace.RemoveOptions{Save: true, KeepBranch: c.keep})
		if err != nil || r.BranchGone != c.gone {
			t.Errorf("%s: %+v %v", name, r, err)
		}
	}
}
