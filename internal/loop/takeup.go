package loop

import (
	"context"
	"errors"
	"fmt"

	"reprise/internal/loop/core"
	"reprise/internal/loop/report"
	"reprise/internal/queue"
)

// Merger puts the work of items where it belongs; *[Worktrees] do.
type Merger interface {
	// MergesInto is the branch that work is merged into, "" where none is.
	MergesInto() string
	// PutAt is where the work of a place was put when it was finished.
	PutAt(p Place) report.Put
	// Lies says that a branch is there and that what work is merged into has not got it.
	Lies(ctx context.Context, branch string) (bool, error)
}

// MergesInto is from [Merger].
func (t *Worktrees) MergesInto() string {
	if t.Integrate != MergeBranch {
		return ""
	}
	return t.Into
}

// Lies is from [Merger].
func (t *Worktrees) Lies(ctx context.Context, branch string) (bool, error) {
	tip, err := t.Tip(ctx, branch)
	if err != nil || tip == "" {
		return false, err
	}
	in, err := t.git(t.Root).IsAncestor(ctx, tip, "refs/heads/"+t.Into)
	return err == nil && !in, err
}

// mergesInto is the branch that the loop's places merge into, "" where they merge nothing.
func (l *Loop) mergesInto() string {
	if l.opt.Merges == nil {
		return ""
	}
	return l.opt.Merges.MergesInto()
}

// takeUp merges what earlier loops have done and could not merge: the main checkout had been
// switched, or had changes of the same files, and nobody but a person would come back to it. It
// goes on beside the loop's own work, one after the other, until somebody wants the loop to end.
func (l *Loop) takeUp(ctx context.Context) {
	into := l.mergesInto()
	if into == "" {
		return
	}
	its, _, err := Iterations(l.opt.Dir, "")
	if err != nil {
		l.warn("look for what is still to be merged", err)
		return
	}
	for _, it := range report.OwedMerges(its) {
		if ctx.Err() != nil || l.ending.Load() {
			return
		}
		if err := l.takeUpOne(ctx, it, into); err != nil && ctx.Err() == nil {
			l.warn("merge "+it.Branch, err)
			l.tellOf("keep", it.Item, fmt.Sprintf("%s, which is done, is still not merged into %s: %s", it.Branch, into, oneLine(err.Error(), 400)))
			if _, ok := errors.AsType[*PersonalError](err); ok { // the next loop would only find the same
				if err := l.recordLater(ctx, it, report.Personal, oneLine(err.Error(), 400)); err != nil {
					l.warn("note that a person merges "+it.Branch, err)
				}
			}
		}
	}
}

// takeUpOne merges one branch. What stands against it is the error, or is told.
func (l *Loop) takeUpOne(ctx context.Context, it Iteration, into string) error {
	if lies, err := l.opt.Merges.Lies(ctx, it.Branch); err != nil || !lies {
		return err // somebody has merged it, or did not want it
	}
	if it.Into != into {
		return fmt.Errorf("it was to be merged into %s, and this loop merges into %s: begin one on %s (`git switch %s`), or `git merge %s` there", it.Into, into, it.Into, it.Into, it.Branch)
	}
	item, err := l.opt.Queue.Get(ctx, it.Item)
	switch {
	case errors.Is(err, queue.ErrNotFound):
		return fmt.Errorf("the queue has its item no more: `git merge %s` does it", it.Branch)
	case err != nil:
		return err
	case item.State != queue.Done || item.Fence != uint64(it.Fence):
		return nil // it is worked on again, and merged with what comes of that
	}
	by, err := l.opt.Queue.Get(ctx, keyOfMerge(it.Item, item.Fence))
	switch {
	case errors.Is(err, queue.ErrNotFound):
	case err != nil:
		return err
	case by.State == queue.Dead:
		return fmt.Errorf("%s, which was to merge it, was given up: `git merge %s`, and settle it by hand", by.ID, it.Branch)
	default:
		return nil // that item does it, or has it in its own branch
	}
	return l.mergeLater(ctx, it, item)
}

// mergeLater brings the work of an item that is done to where it belongs, as at the end of its
// iteration.
func (l *Loop) mergeLater(ctx context.Context, it Iteration, item queue.Item) error {
	var p Place
	var note string
	var conflict bool
	l.touch(it.Item)
	defer l.touch(it.Item)
	err := l.inProject(func() (err error) {
		if p, err = l.opt.Places.Prepare(ctx, item, it.Fence); err != nil {
			return err
		}
		note, conflict, err = l.opt.Places.Finish(ctx, p, item, core.Done)
		return err
	})
	if err != nil {
		return err
	}
	if conflict {
		if note = join(note, l.conflict(ctx, item, p, it.Fence, note)); ctx.Err() == nil {
			l.tellOf("keep", it.Item, fmt.Sprintf("%s, which is done, is not merged: %s", it.Branch, oneLine(note, 400)))
		}
		return nil
	}
	l.tellOf("keep", it.Item, fmt.Sprintf("%s, which was done before: %s", it.Branch, note))
	return l.recordLater(ctx, it, report.Merged, note)
}

// recordLater notes of an iteration of an earlier loop what has become of its work now.
func (l *Loop) recordLater(ctx context.Context, it Iteration, put report.Put, note string) error {
	return l.store.record(ctx, Iteration{
		V: 1, Loop: l.State().Loop, Item: it.Item, Title: it.Title, Fence: it.Fence, Run: it.Run, Session: it.Session, Ended: l.opt.Now().UTC(), Fate: core.Done,
		Completed: true, Succeeded: true, Verified: it.Verified, Branch: it.Branch, Note: note, Put: put, Into: it.Into, Later: true, Changed: it.Changed,
	})
}

// mergesToo waits, at the end of a loop that has nothing else to do, for what is being merged.
// Who wants it to end waits for the one that is at hand, and who says so twice for nothing.
func (l *Loop) mergesToo(over <-chan struct{}) error {
	for {
		select {
		case <-over:
			return nil
		case why := <-l.ends:
			if err := l.askedToStop(why); err != nil {
				return err
			}
			l.ending.Store(true)
		case e := <-l.events:
			if _, ok := e.(core.StopAsked); ok {
				l.ending.Store(true)
			}
		}
	}
}
