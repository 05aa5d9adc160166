package checkout

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/pathname"
)

// A git that was killed leaves its lock, and every later one fails at that: an agent is
// killed with its git, and a person's may be, too.
const (
	// lockAge is how old a lock must be before anybody may think of taking it away, and
	// ownLockAge the same in a worktree of an item, where nobody else has anything to do.
	lockAge    = time.Minute
	ownLockAge = 2 * time.Second
	// lockPatience is how long a lock is waited for that is somebody's, or too new to tell.
	lockPatience = lockAge + 15*time.Second
)

// Locks is how locks of other gits are met.
type Locks struct {
	Now      func() time.Time  // the clock by which a lock is old; nil: none is taken away
	Patience time.Duration     // how long one is waited for; 0 is a little longer than it takes to tell one that was left
	Unlocked func(path string) // is told of one that was taken away; nil is nobody
	Waiting  func(err error)   // is told once that one is waited for; nil is nobody
	// Own is the git directory of a worktree in which nobody is at work any more, "" for none:
	// a lock in it was left.
	Own string
}

// Patiently does what git refuses while somebody else's git is at work: it waits for that,
// and takes away a lock that was left.
func (t *Locks) Patiently(ctx context.Context, f func() error) error {
	patience := t.Patience
	if patience == 0 {
		patience = lockPatience
	}
	var waited time.Duration
	told := t.Waiting == nil
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := f()
		if !errors.Is(err, git.ErrLocked) && git.LockedAt(err) == "" {
			return err
		}
		path := git.LockedAt(err)
		least := lockAge
		if t.Own != "" && pathname.Same(filepath.Dir(path), t.Own) {
			least = ownLockAge
		}
		if path != "" && t.takeLeft(path, least) {
			continue
		}
		if waited >= patience {
			return err
		}
		if !told {
			told = true
			t.Waiting(err)
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(wait):
			waited += wait
		}
	}
}

// takeLeft takes a lock away that a killed git has left, and says so.
func (t *Locks) takeLeft(path string, least time.Duration) bool {
	if t.Now == nil {
		return false // how old it is cannot be told
	}
	gone, err := git.TakeLeft(path, least, t.Now())
	if gone && err == nil && t.Unlocked != nil {
		t.Unlocked(path)
	}
	return gone && err == nil
}

// Unlock takes away the locks that gits of an earlier try have left in an item's worktree:
// an agent whose git fails at one could not do anything.
func (t *Locks) Unlock(admin string) {
	if admin == "" {
		return
	}
	list, err := durable.ReadDir(admin)
	if err != nil {
		return // whoever works there finds out
	}
	for _, e := range list {
		if strings.HasSuffix(e.Name(), ".lock") && e.Type().IsRegular() {
			t.takeLeft(filepath.Join(admin, e.Name()), ownLockAge)
		}
	}
}
