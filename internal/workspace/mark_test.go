package workspace_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/workspace"
)

// A branch that a person has under the name of an item's is not taken for the item's: with
// commits of its own it is refused and left as it is, without one it makes room. What was made
// for the item is gone on with.
func TestBranchOfSomebodyElse(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	ctx, m := t.Context(), p.manager()
	added := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	options := workspace.CreateOptions{Name: "loop-a", Attach: true, Mark: workspace.Mark("a", added)}
	p.git(p.code, "checkout", "-q", "-b", "loop-a")
	wip := p.commit(p.code, "my own")
	p.git(p.code, "checkout", "-q", "trunk")
	_, err := m.Create(ctx, options)
	if !errors.Is(err, workspace.ErrTaken) || !strings.Contains(err.Error(), "git branch -m loop-a") {
		t.Fatalf("a person's branch: %v", err)
	}
	if at := strings.TrimSpace(p.git(p.code, "rev-parse", "refs/heads/loop-a")); at != wip {
		t.Fatalf("the person's branch is at %s, and was at %s", at, wip)
	}
	if list, err := m.List(); err != nil || len(list) > 0 {
		t.Fatalf("left %v, %v", list, err)
	}
	if workspace.IsMarked(p.code, "loop-a", options.Mark) {
		t.Fatal("it has the item's mark")
	}

	// Once all of it is in what the work begins at, it is in nobody's way.
	p.git(p.code, "merge", "-q", "loop-a")
	head := p.commit(p.code, "and more")
	c, err := m.Create(ctx, options)
	if err != nil || c.Base != head || !strings.Contains(c.Taken, wip[:12]) {
		t.Fatalf("%+v, %v", c, err)
	}
	own := p.commit(c.Dir, "of the item")
	if _, err := m.Remove(ctx, "loop-a", workspace.RemoveOptions{}); err != nil {
		t.Fatal(err)
	}

	// The item's own, which nothing else has, is gone on with,
	c, err = m.Create(ctx, options)
	if err != nil || c.Base != own || c.Taken != "" {
		t.Fatalf("%+v, %v", c, err)
	}
	if _, err := m.Remove(ctx, "loop-a", workspace.RemoveOptions{}); err != nil {
		t.Fatal(err)
	}
	// and it is not that of another item of the name, whether its worktree is there or not.
	again := options
	again.Mark = workspace.Mark("a", added.Add(time.Second))
	if _, err = m.Create(ctx, options); err != nil {
		t.Fatal(err)
	}
	if _, err = m.Prepare(ctx, again, workspace.Holder{Process: self(t), What: "loop"}); !errors.Is(err, workspace.ErrTaken) || !strings.Contains(err.Error(), "workspace remove loop-a") {
		t.Fatalf("another item's worktree: %v", err)
	}
	if l, err := m.Prepare(ctx, options, workspace.Holder{Process: self(t), What: "loop"}); err != nil || l.Base != own {
		t.Fatalf("its own worktree: %+v, %v", l, err)
	} else if err := l.Lease.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Remove(ctx, "loop-a", workspace.RemoveOptions{}); err != nil {
		t.Fatal(err)
	}
	again.Mark = workspace.Mark("a", added.Add(time.Nanosecond))
	if _, err = m.Create(ctx, again); !errors.Is(err, workspace.ErrTaken) {
		t.Fatalf("another item's: %v", err)
	}
	// A person may say that it is to be gone on with.
	if _, err := m.Create(ctx, workspace.CreateOptions{Name: "loop-a", Branch: "loop-a", Attach: true}); err != nil {
		t.Fatal(err)
	}
	w, err := m.Prepare(ctx, again, workspace.Holder{Process: self(t), What: "loop"})
	if err != nil || w.Branch != "loop-a" {
		t.Fatalf("%+v, %v", w, err)
	}
}

// Killed at any step while another one's branch makes room, what is made next is the item's,
// and begins where it should.
func TestCrashWhileMakingRoom(t *testing.T) {
	t.Parallel()
	o := workspace.CreateOptions{Name: "loop-a", Attach: true, Mark: workspace.Mark("a", time.Unix(1, 0))}
	durabletest.Scenario{
		Sample: sample(1),
		Prepare: func(t *testing.T, dir string) {
			p := on(t, dir, durable.Disk{})
			p.prepare()
			p.git(p.code, "branch", "loop-a")
			p.commit(p.code, "and more")
		},
		Act: func(disk durable.Disk, dir string) error {
			_, err := on(t, dir, disk).manager().Create(t.Context(), o)
			return err
		},
		Check: func(t *testing.T, dir string, _ error, step string) {
			p := on(t, dir, durable.Disk{})
			p.died("loop-a")
			m := p.manager()
			if w, err := m.Get("loop-a"); err != nil || w.State != workspace.Ready {
				if _, err := m.Create(t.Context(), o); err != nil {
					t.Errorf("%s: again: %v", step, err)
				}
			}
			w, err := m.Get("loop-a")
			head := strings.TrimSpace(p.git(p.code, "rev-parse", "trunk"))
			if err != nil || w.State != workspace.Ready || w.Base != head || !workspace.IsMarked(p.code, "loop-a", o.Mark) {
				t.Errorf("%s: %+v, %v", step, w, err)
			}
			if _, err := os.Stat(w.AgentDir); err != nil {
				t.Errorf("%s: %v", step, err)
			}
			p.whole(step)
		},
	}.CrashAtEachStep(t)
}
