package loop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"reprise/internal/git"
	"reprise/internal/loop/core"
	"reprise/internal/queue"
)

// Shared are worktrees whose branches machines share by a remote: an item that another
// machine has begun is gone on with from there, and what is made here is at the remote
// before the queue is told that it is done. A branch at the remote only ever moves forward.
type Shared struct {
	*Worktrees
	Remote string // a name that git has in Root, such as origin
	Main   string // branch of the remote at which work begins
	// State exchanges what agents know with other machines, in before an item's place is
	// made and out when it has ended; nil is nothing. What cannot be exchanged is told by
	// Say, and holds nothing up.
	State func(ctx context.Context, out bool) error
	// Say tells what a person should know; nil is nobody.
	Say func(item, text string)
	// Patience is how long a remote that cannot be reached is tried; 0 is a minute.
	Patience time.Duration

	placing sync.RWMutex // read while a worktree is made; see Prune
}

// errRemote says that what failed needs a remote that could not be reached: it may be, later.
var errRemote = errors.New("what was made waits for the remote")

// errFetch says that what the remote has could not be brought in, whatever the reason: that is
// never the fault of the item that is to be begun, and another machine may be able to.
var errFetch = errors.New("what other machines have made cannot be brought in")

func (s *Shared) say(item, text string) {
	if s.Say != nil {
		s.Say(item, text)
	}
}

// git is for what the remote is asked: with the user's own credentials, and settings of
// how they are found.
func (s *Shared) git() *git.Git { return s.Worktrees.git(s.Root) }

// Fetch brings in what the remote has: its branch to begin at, and those of items. That is
// told apart from what is here by names below refs/remotes, which are only copies.
func (s *Shared) Fetch(ctx context.Context) error {
	there := "refs/remotes/" + s.Remote + "/"
	return s.reach(ctx, func() error {
		return s.git().FetchRefs(ctx, s.Remote, "+refs/heads/"+s.Main+":"+there+s.Main, "+refs/heads/"+placeName("*")+":"+there+placeName("*"))
	})
}

// reach does what needs the remote, again where that cannot be reached for the moment.
func (s *Shared) reach(ctx context.Context, f func() error) error {
	patience := s.Patience
	if patience == 0 {
		patience = time.Minute
	}
	var waited time.Duration
	told := false
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
		err := s.patiently(ctx, f)
		if err == nil || !errors.Is(err, git.ErrNetwork) && !errors.Is(err, git.ErrTimeout) {
			return err
		}
		if waited >= patience {
			return err
		}
		if !told && waited > 0 { // it failed twice
			s.say("", fmt.Sprintf("the git remote %s cannot be reached, and is tried for %s: %s", s.Remote, patience.Round(time.Second), git.Said(err)))
			told = true
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(wait):
			waited += wait
		}
	}
}

func (s *Shared) exchange(ctx context.Context, item string, out bool) {
	if s.State == nil {
		return
	}
	if err := s.State(ctx, out); err != nil && ctx.Err() == nil {
		s.say(item, "what agents know could not be exchanged: "+oneLine(err.Error(), 300))
	}
}

// Mend finishes what a worker was at that died.
func (s *Shared) Mend(ctx context.Context) error { return s.Worktrees.Mend(ctx) }

// Prepare makes the item's worktree from what any machine has made of the item so far.
func (s *Shared) Prepare(ctx context.Context, item queue.Item, fence int64) (Place, error) {
	if err := s.Fetch(ctx); err != nil {
		if ctx.Err() != nil || passing(err) { // a full disk, say, is no matter of the remote
			return Place{}, err
		}
		return Place{}, fmt.Errorf("%w: %s", errFetch, git.Said(err))
	}
	s.exchange(ctx, item.ID, false)
	s.placing.RLock()
	defer s.placing.RUnlock()
	taken, err := s.takeUp(ctx, item.ID)
	if err != nil {
		return Place{}, fmt.Errorf("take up what another machine has made of %s: %w", item.ID, err)
	}
	p, err := s.Worktrees.Prepare(ctx, item, fence)
	if err != nil {
		return p, err
	}
	note, err := s.join(ctx, p, item.ID)
	if err != nil {
		return p, errors.Join(err, s.release(ctx, p))
	}
	p.Note = join(p.Note, note)
	if taken {
		p.Note = join(p.Note, "another machine worked on this item before; what it made is on the branch")
		if p.Base, err = s.began(ctx, p, item); err != nil {
			return p, errors.Join(err, s.release(ctx, p))
		}
	}
	return p, nil
}

// Building is from [Brancher]. A commit that no branch here has may still be at the remote.
func (s *Shared) Building(made func(ctx context.Context, id string) (commit string, err error)) {
	s.Worktrees.Building(made)
	s.commit = func(ctx context.Context, id string) error {
		err := s.reach(ctx, func() error { return s.git().FetchRefs(ctx, s.Remote, id) })
		if errors.Is(err, git.ErrNetwork) || errors.Is(err, git.ErrTimeout) || ctx.Err() != nil {
			return fmt.Errorf("%w: %s", errFetch, git.Said(err))
		}
		return nil // what else it says means that it has none of that name
	}
}

// refs are the item's branch here and its copy of the remote's, "" for none.
func (s *Shared) refs(ctx context.Context, id string) (local, there string, err error) {
	g := s.git()
	if local, err = g.Resolve(ctx, "refs/heads/"+placeName(id)); err != nil {
		return "", "", err
	}
	there, err = g.Resolve(ctx, "refs/remotes/"+s.Remote+"/"+placeName(id))
	return local, there, err
}

// takeUp makes the item's branch here where only the remote has one.
func (s *Shared) takeUp(ctx context.Context, id string) (taken bool, err error) {
	local, there, err := s.refs(ctx, id)
	if err != nil || local != "" || there == "" {
		return false, err
	}
	return true, s.git().MoveRef(ctx, "refs/heads/"+placeName(id), there, "", "loop: taken up from "+s.Remote)
}

// join brings the worktree forward to what the remote has. Where the two went apart, or
// files stand against it, whoever works there is told.
func (s *Shared) join(ctx context.Context, p Place, id string) (note string, err error) {
	local, there, err := s.refs(ctx, id)
	if err != nil || there == "" || local == there {
		return "", err
	}
	g := s.Worktrees.git(p.Top)
	behind, err := g.IsAncestor(ctx, there, local)
	if err != nil || behind {
		return "", err
	}
	err = s.patiently(ctx, func() error {
		return g.FastForward(ctx, p.Branch, there, "merge of another machine's work: Fast-forward")
	})
	if err == nil {
		return "another machine worked on this item meanwhile; what it made is on the branch", nil
	}
	if git.LockedAt(err) != "" || ctx.Err() != nil {
		return "", err
	}
	name := s.Remote + "/" + placeName(id)
	return fmt.Sprintf("another machine worked on this item, too, and what it made is on %s; merge that first (git merge %s), and settle conflicts in the sense of both", name, name), nil
}

// began is the commit that the work on an item began at which another machine has begun:
// where its branch left the remote's and those of the items that it builds on.
func (s *Shared) began(ctx context.Context, p Place, item queue.Item) (string, error) {
	g := s.git()
	tips, err := s.tips(ctx, g, item.DependsOn)
	if err != nil {
		return "", err
	}
	from := []string{"refs/remotes/" + s.Remote + "/" + s.Main}
	for _, t := range tips {
		from = append(from, t.commit)
	}
	base := ""
	for _, ref := range from {
		at, err := g.MergeBase(ctx, ref, "refs/heads/"+p.Branch)
		if err != nil {
			return "", err
		}
		if at == "" {
			continue
		}
		later := base == ""
		if !later {
			if later, err = g.IsAncestor(ctx, base, at); err != nil {
				return "", err
			}
		}
		if later {
			base = at
		}
	}
	if base == "" {
		return p.Base, nil
	}
	return base, nil
}

// Keep has the work on the item's branch, here and at the remote.
func (s *Shared) Keep(ctx context.Context, p Place, item queue.Item) (note string, err error) {
	if note, err = s.Worktrees.Keep(ctx, p, item); err != nil {
		return note, err
	}
	return join(note, s.Workspaces.NotPushed(ctx, s.modules(p))), s.push(ctx, p)
}

// push sends the item's branch. It is never forced: what another machine has sent
// meanwhile is merged first, by who works there.
func (s *Shared) push(ctx context.Context, p Place) error {
	if p.Branch == "" {
		return nil
	}
	ref := "refs/heads/" + p.Branch
	err := s.reach(ctx, func() error { return s.git().PushRefs(ctx, s.Remote, nil, ref+":"+ref) })
	if errors.Is(err, git.ErrRejected) {
		if err = s.Fetch(ctx); err == nil {
			err = git.ErrRejected
		}
	}
	switch {
	case errors.Is(err, git.ErrNetwork), errors.Is(err, git.ErrTimeout):
		return fmt.Errorf("%w: %w", errRemote, err)
	case !errors.Is(err, git.ErrRejected):
		return err
	}
	name := s.Remote + "/" + p.Branch
	return unkept("another machine has sent work on this item, which is on %s: merge it (git merge %s), and settle conflicts in the sense of both", name, name)
}

// Finish sends what was made of an item that is not done, too: the next who works on it may
// be another machine.
func (s *Shared) Finish(ctx context.Context, p Place, item queue.Item, fate core.Fate) (note string, conflict bool, err error) {
	if fate != core.Done && fate != core.Drop {
		if note, err = s.Worktrees.Keep(ctx, p, item); err == nil {
			err = s.push(ctx, p)
		}
		if err != nil && ctx.Err() == nil {
			note = join(note, "what was made is on this machine only: "+oneLine(err.Error(), 300))
			s.say(item.ID, note)
		}
	}
	more, conflict, err := s.Worktrees.Finish(ctx, p, item, fate)
	// An agent that is over is so on all machines: while its worktree goes, it may be sent
	// or not, and one that was sent stays at the remote until somebody clears it away.
	s.gone(ctx, p)
	s.exchange(ctx, item.ID, true)
	return join(note, more), conflict, err
}
