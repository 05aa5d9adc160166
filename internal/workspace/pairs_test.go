package workspace_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"reprise/internal/proc"
	"reprise/internal/staterepo"
	"reprise/internal/workspace"
)

// Two commands on workspaces at once: whoever is refused is told what it is, nothing is
// left by halves, and nobody works in a place that is taken away.
func TestPairsAtOnce(t *testing.T) {
	t.Parallel()
	self, err := proc.Self()
	if err != nil {
		t.Skip(err)
	}
	create := func(o workspace.CreateOptions) func(context.Context, *workspace.Manager) error {
		return func(ctx context.Context, m *workspace.Manager) error { _, err := m.Create(ctx, o); return err }
	}
	remove := func(ctx context.Context, m *workspace.Manager) error {
		_, err := m.Remove(ctx, "auth", workspace.RemoveOptions{Save: true})
		return err
	}
	enter := func(what string) func(context.Context, *workspace.Manager) error {
		return func(ctx context.Context, m *workspace.Manager) error {
			_, err := m.Lease(ctx, "auth", workspace.Holder{Process: self, What: what})
			return err
		}
	}
	restore := func(ctx context.Context, m *workspace.Manager) error {
		_, err := m.Restore(ctx, workspace.RestoreOptions{Name: "auth"})
		return err
	}
	for name, c := range map[string]struct {
		removed bool // the workspace was removed before, and something of it is kept
		do      []func(context.Context, *workspace.Manager) error
		may     []error
		one     bool // succeeds, and no other
	}{
		"remove and enter":   {do: []func(context.Context, *workspace.Manager) error{remove, enter("shell")}, one: true, may: []error{workspace.ErrLive, workspace.ErrNotFound, workspace.ErrBusy, workspace.ErrMissing, workspace.ErrUnfinished}},
		"enter twice":        {do: []func(context.Context, *workspace.Manager) error{enter("run"), enter("loop")}, one: true, may: []error{workspace.ErrLive}},
		"remove twice":       {do: []func(context.Context, *workspace.Manager) error{remove, remove}, may: []error{workspace.ErrNotFound, workspace.ErrBusy}, one: true},
		"remove and create":  {do: []func(context.Context, *workspace.Manager) error{remove, create(workspace.CreateOptions{Name: "auth", Attach: true})}, may: []error{workspace.ErrExists, workspace.ErrPlace, workspace.ErrRefused, staterepo.ErrBranchExists}},
		"restore twice":      {removed: true, do: []func(context.Context, *workspace.Manager) error{restore, restore}, may: []error{workspace.ErrExists}, one: true},
		"restore and create": {removed: true, do: []func(context.Context, *workspace.Manager) error{restore, create(workspace.CreateOptions{Name: "auth", Attach: true})}, may: []error{workspace.ErrExists}, one: true},
		"others":             {do: []func(context.Context, *workspace.Manager) error{remove, create(workspace.CreateOptions{Name: "b"}), create(workspace.CreateOptions{Name: "c"}), create(workspace.CreateOptions{Name: "d"})}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rounds := 1
			if os.Getenv("REPRISE_LONG_TESTS") != "" {
				rounds = 25
			}
			for range rounds {
				p := newPlace(t)
				w := p.create(workspace.CreateOptions{Name: "auth"})
				p.write(w.Dir, "new.txt", "new\n")
				if c.removed {
					if err := remove(t.Context(), p.manager()); err != nil {
						t.Fatal(err)
					}
				}
				errs := make([]error, len(c.do))
				managers := make([]*workspace.Manager, len(c.do))
				for i := range managers {
					managers[i] = p.manager()
				}
				var begin, done sync.WaitGroup
				begin.Add(1)
				for i, f := range c.do {
					done.Go(func() {
						begin.Wait()
						errs[i] = f(t.Context(), managers[i])
					})
				}
				begin.Done()
				done.Wait()
				good := 0
				for _, err := range errs {
					if err == nil {
						good++
					} else if !slices.ContainsFunc(c.may, func(k error) bool { return errors.Is(err, k) }) {
						t.Error(err)
					}
				}
				if c.one && good != 1 || good == 0 {
					t.Errorf("%d went well: %v", good, errs)
				}
				m := p.manager()
				if notes, err := m.Mend(t.Context()); err != nil || len(notes) > 0 {
					t.Errorf("left by halves: %v %v", notes, err)
				}
				saved, err := m.ListSaved(t.Context(), "auth")
				if err != nil {
					t.Error(err)
				}
				if now, err := m.Get("auth"); err == nil {
					if i := m.Look(now); i.Status != "ready" && i.Status != "live" {
						t.Errorf("%+v", i)
					}
					if len(saved) == 0 && p.read(now.Dir, "new.txt") != "new\n" {
						t.Error("what was in it is nowhere")
					}
				} else if len(saved) != 1 {
					t.Errorf("what was in it is kept so: %+v", saved)
				}
				if left, _ := filepath.Glob(filepath.Join(p.dir, "shop.workspaces", ".*")); len(left) > 0 {
					t.Errorf("left %v", left)
				}
				if list := p.git(p.code, "worktree", "list"); strings.Contains(list, "prunable") {
					t.Error(list)
				}
				p.whole(name)
				if t.Failed() {
					return
				}
			}
		})
	}
}
