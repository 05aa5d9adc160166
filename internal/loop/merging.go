package loop

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/git"
	"reprise/internal/loop/core"
	"reprise/internal/queue"
)

// keyOfMerge is the key of the item that is to merge what an item has made which was done
// under a number.
func keyOfMerge(id string, fence uint64) string { return fmt.Sprintf("%s%s:%d", mergeKey, id, fence) }

// insist adds an item, and again where the queue is away for the moment: what could not be
// merged must not be forgotten. A loop that ends does so for a while only.
func (l *Loop) insist(ctx context.Context, it queue.Item) ([]queue.Added, error) {
	const most = 5
	wait := 100 * time.Millisecond
	for tries := 1; ; tries++ {
		added, err := l.opt.Queue.Add(ctx, it)
		if !passing(err) || tries > most && l.State().Phase == core.Stopping {
			return added, err
		}
		l.warn("add an item, which is tried again", err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
		wait = min(2*wait, 10*time.Second)
	}
}

// Mergeable says why work cannot be merged into what the main checkout has, nil where it can.
func (t *Worktrees) Mergeable(ctx context.Context) error {
	g := t.git(t.Root)
	if why, err := t.behind(ctx, t.Into); err != nil {
		return err
	} else if why != "" {
		return errors.New(why)
	}
	top, err := g.Run(ctx, "rev-parse", "--show-prefix")
	if err != nil {
		return err
	}
	dir := path.Join(strings.TrimSpace(string(top)), ".reprise")
	if out, err := g.LeftOut(ctx, dir+"/project.yaml"); err != nil || !out {
		return err
	}
	return fmt.Errorf("the main checkout is a sparse one that leaves %s out, so the first merge would take it off the disk, and the project with it: `git sparse-checkout add %s`, or use --integrate keep", dir, dir)
}

// PersonalError is of work that no loop merges, whenever it tries: a person does.
type PersonalError struct{ why string }

func (e *PersonalError) Error() string { return e.why }

func personal(format string, args ...any) error { return &PersonalError{fmt.Sprintf(format, args...)} }

// sameRules refuses work that changes the project's own file: what it says of checks, of what
// is guarded and of how agents are run holds for all that comes after, and to change it is for a
// person. base, a branch, is in the work's history.
func (t *Worktrees) sameRules(ctx context.Context, p Place, base, work string) error {
	common := git.CommonDir(t.Root)
	sub, err := filepath.Rel(p.Top, p.Dir)
	if err != nil || common == "" {
		return err
	}
	at := path.Join(filepath.ToSlash(sub), ".reprise/project.yaml")
	two, err := git.NewBare(common, t.Git).Objects(ctx, "refs/heads/"+base+":"+at, work+":"+at)
	if err != nil {
		return err
	}
	if two[0].ID == two[1].ID {
		return nil
	}
	return personal("it changes %s, which says what is checked and what agents may do, so a person looks at that (`git diff %s...%s -- %s`) and merges it: `git merge %s`", at, base, p.Branch, at, p.Branch)
}

// notTakenOut refuses work that would bring back what was in the base, and was taken out there while
// it was worked on, by a reset or an amended commit: that was a person's decision.
func (t *Worktrees) notTakenOut(ctx context.Context, main *git.Git, p Place, base string) error {
	was := git.WasAt(t.Root, base)
	if len(was) == 0 {
		return nil
	}
	out, err := main.Run(ctx, "rev-list", "refs/heads/"+base+"..refs/heads/"+p.Branch)
	if err != nil {
		return err
	}
	for id := range strings.Lines(string(out)) {
		if id = strings.TrimSpace(id); was[id] {
			return personal("%s was at commit %.12s and is not any more, and the work goes on from that, so a merge would bring it back: put the work upon %s (`git rebase --onto %s %.12s %s`), or `git merge %s` where that is meant", base, id, base, base, id, p.Branch, p.Branch)
		}
	}
	return nil
}

// mergingError says that an item is not begun yet, because what it builds on is still to be
// merged, and by which items: begun now, it would be given the same conflict once more.
type mergingError struct{ by []string }

func (e *mergingError) Error() string {
	return "what it builds on is still to be merged, by " + strings.Join(e.by, ", ")
}

// mergedBy are the items that are to merge what these items have made, and are not over.
func (l *Loop) mergedBy(ctx context.Context, on []string) (by []string, err error) {
	for _, id := range on {
		it, err := l.opt.Queue.Get(ctx, id)
		if errors.Is(err, queue.ErrNotFound) || err == nil && it.State != queue.Done {
			continue
		}
		if err != nil {
			return nil, err
		}
		m, err := l.opt.Queue.Get(ctx, keyOfMerge(id, it.Fence))
		switch {
		case errors.Is(err, queue.ErrNotFound):
		case err != nil:
			return nil, err
		case m.Source == sourceLoop && m.State != queue.Done && m.State != queue.Dead:
			by = append(by, m.ID)
		}
	}
	return by, nil
}

// waitForMerge has an item wait for what is to merge what it builds on. Somebody may have it
// by now, or have seen to it: then nothing is to be done.
func (l *Loop) waitForMerge(ctx context.Context, id string) error {
	it, err := l.opt.Queue.Get(ctx, id)
	if err != nil {
		return unlessOver(err)
	}
	by, err := l.mergedBy(ctx, it.DependsOn)
	if err != nil || len(by) == 0 {
		return err
	}
	return l.dependOn(ctx, &it, by...)
}

// waitAllFor has all that nobody has begun of what builds on an item wait for another one, too.
func (l *Loop) waitAllFor(ctx context.Context, id, by string) error {
	list, err := l.opt.Queue.List(ctx, queue.Filter{States: []queue.State{queue.Ready, queue.Blocked}})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if it := &list.Items[i]; slices.Contains(it.DependsOn, id) {
			err = errors.Join(err, l.dependOn(ctx, it, by))
		}
	}
	return err
}

// dependOn adds to what an item depends on.
func (l *Loop) dependOn(ctx context.Context, it *queue.Item, by ...string) error {
	on := slices.Clone(it.DependsOn)
	for _, id := range by {
		if !slices.Contains(on, id) && id != it.ID {
			on = append(on, id)
		}
	}
	if len(on) == len(it.DependsOn) {
		return nil
	}
	_, err := l.opt.Queue.Edit(ctx, it.ID, queue.Edit{DependsOn: &on, Note: "what it builds on is merged by " + strings.Join(by, ", ")})
	return unlessOver(err)
}

// unlessOver is an error, unless it says that an item is in nobody's hands who could change
// it: it vanished, or somebody works on it.
func unlessOver(err error) error {
	if queue.Over(err) {
		return nil
	}
	return err
}
