package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"reprise/internal/git"
	"reprise/internal/loop/checkout"
	"reprise/internal/loop/core"
	"reprise/internal/loop/said"
	"reprise/internal/run"
)

// Sharer knows what all worktrees of a project's repository share, and an agent can change from
// its own; *[Worktrees] does.
type Sharer interface {
	Shared(ctx context.Context) (checkout.Shared, error)
	// SharedSince is how it differs from what it was before, but for what was done in the main
	// checkout, which is told otherwise.
	SharedSince(ctx context.Context, before *checkout.Shared) ([]checkout.Change, error)
	// PutBack undoes a change of a setting, unless that was changed again.
	PutBack(ctx context.Context, c checkout.Change) error
}

// Shared is from [Sharer].
func (t *Worktrees) Shared(ctx context.Context) (checkout.Shared, error) {
	return checkout.ReadShared(ctx, git.CommonDir(t.Root), t.Git)
}

// SharedSince is from [Sharer].
func (t *Worktrees) SharedSince(ctx context.Context, before *checkout.Shared) (list []checkout.Change, err error) {
	now, err := t.Shared(ctx)
	if err != nil {
		return nil, err
	}
	all, err := now.Changed(ctx, t.plainGit(), before)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	base := sync.OnceValue(func() string {
		name, _ := t.git(t.Root).Branch(ctx) // "" where none is checked out
		return name
	})
	for _, c := range all {
		name, branch := strings.CutPrefix(c.Ref, "refs/heads/")
		if branch && !strings.HasPrefix(name, placeName("")) && name == base() {
			why, err := t.behind(ctx, name)
			if err != nil && !errors.Is(err, git.ErrPrograms) {
				return nil, err
			}
			if why == "" {
				continue // in the main checkout, by the loop itself or as [Worktrees.Strayed] has it
			}
			c.What += "; " + why
		}
		list = append(list, c)
	}
	return list, nil
}

// plainGit is for reading and writing settings, which runs none of their programs.
func (t *Worktrees) plainGit() *git.Git {
	o := t.Git
	o.Programs = nil
	return git.New(t.Root, o).OfUser()
}

// PutBack is from [Sharer].
func (t *Worktrees) PutBack(ctx context.Context, c checkout.Change) error {
	return c.PutBack(ctx, t.plainGit(), git.CommonDir(t.Root))
}

// behind says that the branch of the main checkout was moved by somebody who does not work there,
// "" where it was not. What is there then is nobody's word for what the project is: an agent can
// do that from its own worktree.
func (t *Worktrees) behind(ctx context.Context, base string) (why string, err error) {
	tip, err := t.Tip(ctx, base)
	if err != nil {
		return "", err
	}
	was := git.MovedBehind(t.Root, base, tip)
	if was == "" {
		return "", nil
	}
	return fmt.Sprintf("%s was moved to %.12s from outside of the main checkout, which had it at %.12s: look at `git log -p %.12s..%.12s` there; `git reset --soft %.12s` takes it back, and `git merge %.12s` after that says that it is right",
		base, tip, was, was, tip, was, tip), nil
}

// maxHands are told of one run.
const maxHands = 8

// sharedBefore is what worktrees shared when a run was begun.
type sharedBefore struct {
	what checkout.Shared
	at   time.Time
}

// lookBefore remembers what worktrees share, before a run of a claim begins.
func (l *Loop) lookBefore(ctx context.Context, c core.Claim) {
	if l.opt.Shares == nil {
		return
	}
	what, err := l.opt.Shares.Shared(ctx)
	if err != nil {
		l.warn("look at what worktrees share", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before[placeKey(c)] = sharedBefore{what, l.opt.Now()}
}

// touch notes that the loop itself does something with the branch of an item.
func (l *Loop) touch(item string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.touched[placeName(item)] = l.opt.Now()
}

// oursOf says that a change is of a branch that the loop itself makes, moves and takes away.
func (l *Loop) oursOf(c checkout.Change, since time.Time) bool {
	name, ok := strings.CutPrefix(c.Ref, "refs/heads/")
	if !ok {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.s.Slots {
		if p := &l.s.Slots[i]; p.Claim.Fence != 0 && placeName(p.Claim.Item.ID) == name {
			return true
		}
	}
	// A worktree goes beside what comes next, and its branch with it.
	at, ok := l.touched[name]
	return ok && !at.Before(since.Add(-time.Minute))
}

// hands says what has changed, since a run began, of what all worktrees share, "" for nothing. It
// is told once, and nothing is undone, for a person may have done it. What its own calls name was
// done by the run, and of that is undone what has everybody's git run a program.
func (l *Loop) hands(ctx context.Context, c core.Claim, r run.Record) (text string) {
	key := placeKey(c)
	l.mu.Lock()
	before, ok := l.before[key]
	delete(l.before, key)
	l.mu.Unlock()
	if !ok {
		return ""
	}
	list, err := l.opt.Shares.SharedSince(ctx, &before.what)
	if err != nil {
		l.warn("see what has changed that worktrees share", err)
		return ""
	}
	var its, others, undone []string
	var out *said.Stream
	for _, ch := range list {
		if l.oursOf(ch, before.at) || l.knownHand(ch.What) {
			continue
		}
		if out == nil {
			out = said.Read(r.Client, r.Logs.Stdout)
		}
		switch {
		case ch.NamedIn(out.Tools.Bytes()) && ch.Runs():
			what := ch.What
			if err := l.opt.Shares.PutBack(ctx, ch); err != nil {
				its = append(its, what+", and could not be put back: "+oneLine(err.Error(), 200))
			} else {
				undone = append(undone, what)
			}
		case ch.NamedIn(out.Tools.Bytes()):
			its = append(its, ch.What)
		case !ch.Made: // who makes a branch beside the loop takes nothing from anybody
			others = append(others, ch.What)
		}
	}
	say := func(before string, list []string) {
		if n := len(list); n > maxHands {
			list = append(list[:maxHands:maxHands], fmt.Sprintf("and %d more", n-maxHands))
		}
		if len(list) > 0 {
			text = join(text, before+strings.Join(list, "; "))
		}
	}
	say("it changed by which settings every git here runs programs, and these were put back: ", undone)
	say("it changed what all worktrees share, and nothing of that is undone: ", its)
	say("while it worked, somebody changed what all worktrees share: ", others)
	return text
}

// knownHand notes that a change was told, and says whether it was before: runs that go on side by
// side see the same.
func (l *Loop) knownHand(what string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.toldHands[what]
	l.toldHands[what] = true
	return known
}
