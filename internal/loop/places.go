package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/loop/checkout"
	"reprise/internal/loop/core"
	"reprise/internal/loop/report"
	"reprise/internal/proc"
	"reprise/internal/queue"
	"reprise/internal/workspace"
)

// What becomes of the branch of an item that is done.
const (
	KeepBranch  = "keep"
	MergeBranch = "merge" // into the branch that the main checkout has, after the checks have passed on the merge
	PullRequest = "pr"    // pushed, and a pull request by the gh program
)

const (
	maxDiff      = 64 << 10
	maxFilesTold = 100
)

// Worktrees gives each item a worktree of its own.
type Worktrees struct {
	Workspaces *workspace.Manager
	Git        git.Options
	Root       string   // the project's, from which worktrees come
	Base       string   // revision that work begins at; "" is the HEAD of Root
	Carry      []string // directories that git ignores and that come along
	Integrate  string
	// Into is the branch that work is merged into, and only that; "" is whichever the main
	// checkout is on.
	Into string
	// Check has the project's checks run, for a merge; nil: there are none.
	Check func(ctx context.Context, p Place) (Checked, error)
	// Belongs says why a worktree is no part of the project any more, such as
	// [workspace.Manager.Belongs]; nil: it always is.
	Belongs func(name string) error
	// KeepConflicting leaves the worktree of what could not be merged, for who goes on with
	// it there. Otherwise only its branch stays.
	KeepConflicting bool
	// GH makes a pull request of a branch that was pushed; nil: it cannot be made.
	GH func(ctx context.Context, p Place, item queue.Item) (url string, err error)

	// Left is told of a worktree that could not be taken away when its item was done;
	// nil is nobody.
	Left func(name string, err error)
	// Sweep stops what is left of runs that have ended, of those whose supervisor could not
	// do it, too. It is asked for where somebody works in a worktree that is to go; nil: what is
	// left stays.
	Sweep func(ctx context.Context) error
	// Unlocked is told of a lock file of a killed git that was taken away; nil is nobody.
	Unlocked func(path string)
	// Waiting is told, once each time, that somebody else's lock is waited for; nil is nobody.
	Waiting func(err error)
	// Now is the clock by which a lock is old.
	Now func() time.Time
	// Patience is how long a lock of another git is waited for; 0 is a little longer than
	// it takes to tell one that was left.
	Patience time.Duration

	// made is what an item has made which is done; see Building.
	made func(ctx context.Context, id string) (commit string, err error)
	// commit brings a commit from where others have it, which is no error where nobody does; nil:
	// what is here is all that there is.
	commit func(ctx context.Context, id string) error

	merging  sync.Mutex // held while one is merged
	mu       sync.Mutex // of what follows
	leases   map[string]*workspace.Lease
	seen     map[string]checkout.Status // places as git saw them after the last run there
	kept     map[string]bool            // places in which nobody has worked since they were kept
	put      map[string]brought         // places whose work is where it belongs, and that could not be taken away yet
	at       map[string]brought         // work of which it is known where it was put
	going    map[string]chan struct{}   // worktrees that are being taken away; closed when they are
	identity []string                   // of who commits what was left, once it was asked for
	asked    bool
}

// errHeld says that nothing can be done in the repository until a person has looked at it: no item
// is to blame for what another has made of it.
var errHeld = errors.New("the repository waits for a person")

// held is the error where the repository waits for a person because of a setting by which git runs
// a program, and which was not there when the work began.
func held(ctx context.Context, g *git.Git, known *git.Programs) error {
	if known == nil {
		return nil
	}
	if err := known.Check(ctx, g); err != nil {
		return fmt.Errorf("%w: %w", errHeld, err)
	}
	return nil
}

// heldWhy is why the repository waits, in a line.
func heldWhy(err error) string {
	if new, ok := errors.AsType[*git.ProgramsError](err); ok {
		err = new
	}
	return oneLine(err.Error(), 500)
}

// Holder is for places in whose repository nothing is done until a person has looked at it.
type Holder interface {
	// Held is the error where that is so.
	Held(ctx context.Context) error
}

// Held is from [Holder].
func (t *Worktrees) Held(ctx context.Context) error { return held(ctx, t.git(t.Root), t.Git.Programs) }

// Held is from [Holder].
func (t *InPlace) Held(ctx context.Context) error {
	return held(ctx, git.New(t.top(), t.Git).OfUser(), t.Git.Programs)
}

// mended tells the core that the repository waits for a person no longer, where the loop does for
// that reason.
func (l *Loop) mended(ctx context.Context) {
	t, ok := l.opt.Places.(Holder)
	if s := l.State(); !ok || s.Phase != core.Waiting || s.Interrupt.Kind != core.ByRepo || l.away() != nil || t.Held(ctx) != nil {
		return
	}
	l.tell("mended", -1, "nothing stands in the way of work in the repository any more, and the loop goes on")
	l.send(ctx, core.Cleared{Kind: core.ByRepo})
}

// Mend finishes what a loop was at that died, such as the removal of a worktree.
func (t *Worktrees) Mend(ctx context.Context) error {
	_, err := t.Workspaces.Mend(ctx)
	return err
}

// Wait waits for the worktrees that are being taken away.
func (t *Worktrees) Wait() { t.Workspaces.Wait() }

// placeName is the name of an item's workspace and of the agent in it.
func placeName(id string) string { return "loop-" + id }

// Prepare makes the item's worktree, or takes up the one that an earlier try has left.
func (t *Worktrees) Prepare(ctx context.Context, item queue.Item, _ int64) (Place, error) {
	self, err := proc.Self()
	if err != nil {
		return Place{}, err
	}
	if err := t.Held(ctx); err != nil {
		return Place{}, err
	}
	base, left, lacks, err := t.begin(ctx, item)
	if err != nil {
		return Place{}, fmt.Errorf("find where the work on %s begins: %w", item.ID, err)
	}
	note, err := t.renewed(ctx, placeName(item.ID))
	if err != nil {
		return Place{}, fmt.Errorf("make the worktree of %s anew: %w", item.ID, err)
	}
	var made workspace.Created
	err = t.patiently(ctx, func() error {
		made, err = t.Workspaces.Prepare(ctx, workspace.CreateOptions{
			Name: placeName(item.ID), From: t.Root, Base: base, Attach: true, Mark: workspace.Mark(item.ID, item.Created), Carry: t.Carry, Unread: true,
		}, workspace.Holder{Process: self, What: "loop"})
		return err
	})
	if err != nil {
		return Place{}, err
	}
	t.locks().Unlock(made.Admin)
	t.mu.Lock()
	if t.leases == nil {
		t.leases = map[string]*workspace.Lease{}
	}
	t.leases[made.Name] = made.Lease
	delete(t.kept, made.Name)
	delete(t.seen, made.Name)
	t.mu.Unlock()
	w := made.Workspace
	p := Place{Name: w.Name, Dir: w.Root(), Top: w.Dir, Base: w.Base, Branch: w.Branch, Unmerged: left, Lacks: lacks, Note: join(join(note, made.Taken), lacks), Vars: map[string]string{}}
	for _, v := range w.Vars() {
		p.Vars[v[0]] = v[1]
	}
	return p, nil
}

// Began adds the run to the lease.
func (t *Worktrees) Began(ctx context.Context, p Place, run string) error {
	t.mu.Lock()
	l := t.leases[p.Name]
	t.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.Add(ctx, workspace.Holder{Run: run, What: "loop"})
}

// Look compares the worktree with where the work began.
func (t *Worktrees) Look(ctx context.Context, p Place, detail bool) (Work, error) {
	if _, err := os.Lstat(p.Top); errors.Is(err, fs.ErrNotExist) {
		return Work{}, fmt.Errorf("its worktree %s is gone", p.Top)
	}
	g := t.git(p.Top)
	if detail {
		return compare(ctx, g, p.Base)
	}
	s, err := t.status(ctx, p)
	if err != nil {
		return Work{}, err
	}
	t.mu.Lock()
	if t.seen == nil {
		t.seen = map[string]checkout.Status{}
	}
	t.seen[p.Name] = s // nobody works there after a run, so it is good for Keep
	t.mu.Unlock()
	changed, err := s.Differs(ctx, g, p.Base)
	return Work{Changed: changed}, err
}

// status asks git how a worktree stands.
func (t *Worktrees) status(ctx context.Context, p Place) (checkout.Status, error) {
	o := t.Git
	o.MaxOut = checkout.MaxStatus
	return checkout.Look(ctx, git.New(p.Top, o).OfUser(), t.agentPath(p))
}

// lastStatus is what git has said after the last run there, asked anew where that was used
// before, or nobody has asked.
func (t *Worktrees) lastStatus(ctx context.Context, p Place) (checkout.Status, error) {
	t.mu.Lock()
	s, ok := t.seen[p.Name]
	delete(t.seen, p.Name)
	t.mu.Unlock()
	if ok {
		return s, nil
	}
	return t.status(ctx, p)
}

// compare is what differs from a commit, cut to what is told.
func compare(ctx context.Context, g *git.Git, base string) (w Work, err error) {
	files, patch, err := checkout.Compare(ctx, g, base)
	return Work{Changed: len(files) > 0, Files: files[:min(len(files), maxFilesTold)], Diff: clip(patch, maxDiff)}, err
}

// git is for a checkout of the project. The user's settings of how bytes get into files count,
// as they did when it was made: without them each of its files may look changed.
func (t *Worktrees) git(dir string) *git.Git { return git.New(dir, t.Git).OfUser() }

// locks is how locks of other gits are met.
func (t *Worktrees) locks() *checkout.Locks {
	return &checkout.Locks{Now: t.Now, Patience: t.Patience, Unlocked: t.Unlocked, Waiting: t.Waiting}
}

// patiently does what git refuses while somebody else's git is at work.
func (t *Worktrees) patiently(ctx context.Context, f func() error) error {
	return t.locks().Patiently(ctx, f)
}

// Finish keeps what was made. The worktree of an item that is done goes, its branch
// stays; that of one which is not done stays, for who goes on.
func (t *Worktrees) Finish(ctx context.Context, p Place, item queue.Item, fate core.Fate) (note string, conflict bool, err error) {
	if fate == core.GiveUp {
		if w, err := t.Look(ctx, p, false); err == nil && !w.Changed { // nobody has anything of it
			return "", false, t.remove(ctx, p, workspace.RemoveOptions{})
		}
	}
	if fate != core.Done {
		return "", false, t.release(ctx, p)
	}
	t.mu.Lock()
	kept := t.kept[p.Name]
	t.mu.Unlock()
	if !kept { // by a loop that died, or nobody asked
		if note, err = t.Keep(ctx, p, item); err != nil {
			return note, false, errors.Join(err, t.release(ctx, p))
		}
	}
	t.mu.Lock()
	b, was := t.put[p.Name]
	t.mu.Unlock()
	if !was {
		if b, err = t.bring(ctx, p, item); err != nil {
			return note, false, errors.Join(err, t.release(ctx, p))
		}
		b.note = join(note, b.note)
		if b.conflict && t.KeepConflicting {
			return b.note, true, t.release(ctx, p)
		}
	}
	// What builds on it may have taken its commits up by now: that is no reason for its
	// branch to go.
	err = t.remove(ctx, p, workspace.RemoveOptions{DeleteBranch: b.merged, KeepBranch: !b.merged && !b.pushed})
	t.mu.Lock()
	defer t.mu.Unlock()
	if workspace.Passing(err) { // it is tried again, and nobody would come back to it later
		if t.put == nil {
			t.put = map[string]brought{}
		}
		t.put[p.Name] = b
		return b.note, false, err
	}
	delete(t.put, p.Name)
	if t.at == nil {
		t.at = map[string]brought{}
	}
	t.at[p.Name] = b
	if err != nil {
		b.note = join(b.note, "its worktree stays: "+oneLine(err.Error(), 200))
	}
	return b.note, b.conflict, nil
}

// brought is what came of bringing work to where it belongs.
type brought struct {
	note                     string
	merged, pushed, conflict bool
	// alone says that it was pushed, and that nobody was asked to take it.
	alone bool
}

// PutAt is where the work of a place was put when it was finished.
func (t *Worktrees) PutAt(p Place) report.Put {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch b := t.at[p.Name]; {
	case b.merged:
		return report.Merged
	case b.alone:
		return report.Personal
	case b.pushed:
		return report.Offered
	}
	return ""
}

// bring merges work, or offers it, as the loop was told to.
func (t *Worktrees) bring(ctx context.Context, p Place, item queue.Item) (b brought, err error) {
	switch t.Integrate {
	case MergeBranch:
		into, why, err := t.merge(ctx, p)
		if err != nil {
			return b, err
		}
		b.merged, b.conflict, b.note = why == "", why != "", why
		if b.merged {
			b.note = strings.TrimSpace("merged into " + into)
		}
	case PullRequest:
		b.note, b.pushed, b.alone = t.pull(ctx, p, item)
	}
	return b, nil
}

// who are the arguments of a commit by the loop. All worktrees have the same settings.
func (t *Worktrees) who(ctx context.Context) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.asked {
		t.identity = t.git(t.Root).Identity(ctx)
		t.asked = ctx.Err() == nil
	}
	return slices.Clone(t.identity)
}

// merge brings the base into the work, has that checked, and moves the base's branch
// forward. The main checkout is touched by a fast-forward only, which git refuses where
// somebody has changed the same files there. into is the base's branch, and why says what
// stands against it, "" when it was done. Branches are named in full: a tag may be called like one.
func (t *Worktrees) merge(ctx context.Context, p Place) (into, why string, err error) {
	t.merging.Lock()
	defer t.merging.Unlock()
	main := t.git(t.Root)
	base, err := main.Branch(ctx)
	if err != nil {
		return "", "", fmt.Errorf("the main checkout is on no branch, so there is nothing to merge into: %w", err)
	}
	if base == p.Branch {
		return base, "", nil
	}
	if t.Into != "" && base != t.Into {
		return "", "", fmt.Errorf("the main checkout is on %s by now, and the loop merges into %s, on which it was when the loop began: nothing is merged; `git switch %s` and `git merge %s` do it", base, t.Into, t.Into, p.Branch)
	}
	for range mergeTries {
		moved, why, err := t.mergeOnce(ctx, p, main, base)
		if !moved || err != nil {
			return base, why, err
		}
	}
	return base, fmt.Sprintf("%s moved on while the checks ran on the merge, %d times", base, mergeTries), nil
}

// mergeTries is how often the base may move on while the checks run on a merge.
const mergeTries = 3

// mergeOnce is merge with the base as it is; moved says that it moved on meanwhile.
func (t *Worktrees) mergeOnce(ctx context.Context, p Place, main *git.Git, base string) (moved bool, why string, err error) {
	if why, err := t.behind(ctx, base); err != nil || why != "" {
		if err == nil {
			err = fmt.Errorf("nothing is merged until a person has looked: %s", why)
		}
		return false, "", err
	}
	if err := t.notTakenOut(ctx, main, p, base); err != nil {
		return false, "", err
	}
	here := t.git(p.Top)
	args := slices.Concat(t.who(ctx), git.MergeArgs(p.Branch), []string{"--ff", "-m", fmt.Sprintf("Merge branch '%s' into %s", base, p.Branch), "refs/heads/" + base})
	err = t.patiently(ctx, func() error { _, err := here.Run(ctx, args...); return err })
	if git.LockedAt(err) != "" {
		return false, "", err
	}
	if err != nil {
		if _, abortErr := here.Run(ctx, "merge", "--abort"); abortErr != nil {
			return false, "", errors.Join(err, abortErr)
		}
		return false, "it conflicts", nil
	}
	work, err := here.Resolve(ctx, "HEAD") // which the checks see, and nothing else
	if err != nil {
		return false, "", err
	}
	if err := t.sameRules(ctx, p, base, work); err != nil {
		return false, "", err
	}
	if t.Check != nil {
		got, err := t.Check(ctx, p)
		if err != nil {
			return false, "", err
		}
		if got.Gate == core.GateFailed {
			return false, "the checks fail on the merge: " + oneLine(got.Text, 600), nil
		}
	}
	err = t.patiently(ctx, func() error {
		return main.FastForward(ctx, base, work, fmt.Sprintf("merge %s: Fast-forward", p.Branch))
	})
	if errors.Is(err, git.ErrMoved) {
		return true, "", nil
	}
	if err != nil {
		return false, "", fmt.Errorf("move %s forward: %w", base, err)
	}
	// What is called merged is there: anybody may have moved the branch meanwhile.
	if ok, err := main.IsAncestor(ctx, work, "HEAD"); err != nil || !ok {
		return false, "", errors.Join(fmt.Errorf("%s has not got %s of %s after the merge", base, work, p.Branch), err)
	}
	return false, "", nil
}

// pull pushes the branch and asks for it to be taken. What cannot be done is said; the
// branch is there all the same. alone says that it was pushed, and nobody asked.
func (t *Worktrees) pull(ctx context.Context, p Place, item queue.Item) (said string, pushed, alone bool) {
	if t.GH == nil {
		return "no pull request: gh is not there", false, false
	}
	if _, err := t.git(t.Root).AsUser().Run(ctx, "push", "--quiet", "--set-upstream", "origin", "refs/heads/"+p.Branch+":refs/heads/"+p.Branch); err != nil {
		return "no pull request, the branch could not be pushed: " + oneLine(err.Error(), 200), false, false
	}
	lack := t.Workspaces.NotPushed(ctx, t.modules(p))
	url, err := t.GH(ctx, p, item)
	if err != nil {
		return join(fmt.Sprintf("no pull request: %s (`gh pr create --head %s` asks for it)", oneLine(err.Error(), 200), p.Branch), lack), true, true
	}
	return join("pull request "+url, lack), true, false
}

func (t *Worktrees) lease(p Place) *workspace.Lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.leases[p.Name]
}

// over forgets a lease that was given up.
func (t *Worktrees) over(p Place, l *workspace.Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leases[p.Name] == l {
		delete(t.leases, p.Name)
	}
}

// Leave gives up a place whose claim was lost: it stays as it is, for whoever has the item.
func (t *Worktrees) Leave(ctx context.Context, p Place) error { return t.release(ctx, p) }

// release gives a lease up. One that could not be given up is kept: forgotten, it would be
// somebody else's, who keeps everybody from the worktree for as long as this process lives.
func (t *Worktrees) release(ctx context.Context, p Place) error {
	l := t.lease(p)
	if l == nil {
		return nil
	}
	if err := l.Release(ctx); err != nil {
		return err
	}
	t.over(p, l)
	return nil
}

// remove takes a worktree away beside what comes next: nothing that an item needs waits
// for it, and should the loop die, the next one finishes it.
func (t *Worktrees) remove(ctx context.Context, p Place, o workspace.RemoveOptions) error {
	err := t.removeNow(ctx, p, o)
	if t.Sweep == nil || !errors.Is(err, workspace.ErrLive) {
		return err
	}
	if serr := t.Sweep(ctx); serr != nil {
		return errors.Join(err, serr)
	}
	return t.removeNow(ctx, p, o)
}

func (t *Worktrees) removeNow(ctx context.Context, p Place, o workspace.RemoveOptions) error {
	o.Save, o.Ended = true, true
	if l := t.lease(p); l != nil {
		over := t.goes(p)
		err := l.RemoveLater(ctx, o, func(_ workspace.Removed, err error) {
			defer over()
			if err == nil {
				return
			}
			if t.Left != nil {
				t.Left(p.Name, err)
			}
			_ = l.Release(context.WithoutCancel(ctx)) // of one that stays nobody is the holder any more
		})
		if err != nil {
			over()
			return errors.Join(err, t.release(ctx, p))
		}
		t.over(p, l)
		return nil
	}
	_, err := t.Workspaces.Remove(ctx, p.Name, o)
	if errors.Is(err, workspace.ErrNotFound) {
		return nil // done before
	}
	return err
}

// goes notes that a worktree is being taken away, until over is called.
func (t *Worktrees) goes(p Place) (over func()) {
	away := make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.going == nil {
		t.going = map[string]chan struct{}{}
	}
	t.going[p.Name] = away
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.going, p.Name)
		close(away)
	}
}

// gone waits until the worktree of a place that is being taken away is away, and with it
// its agent, where that has nothing to hand on.
func (t *Worktrees) gone(ctx context.Context, p Place) {
	t.mu.Lock()
	away := t.going[p.Name]
	t.mu.Unlock()
	if away == nil {
		return
	}
	select {
	case <-away:
	case <-ctx.Done():
	}
}

// InPlace has every item worked on in one directory. There can be one worker only.
type InPlace struct {
	Dir  string // the project's
	Top  string // of the working tree that it is in; "" is Dir
	Git  git.Options
	Keep string // directory for what the directory looked like before
	Disk durable.Disk
}

func (t *InPlace) top() string { return cmp.Or(t.Top, t.Dir) }

func (t *InPlace) before(p Place) string { return filepath.Join(t.Keep, p.Name+".before") }

// Prepare notes what the directory is like.
func (t *InPlace) Prepare(ctx context.Context, item queue.Item, _ int64) (Place, error) {
	p := Place{Name: placeName(item.ID), Dir: t.Dir, Top: t.top()}
	if err := t.Held(ctx); err != nil {
		return p, err
	}
	g := git.New(t.top(), t.Git).OfUser()
	if head, err := g.Run(ctx, "rev-parse", "--verify", "--quiet", "HEAD"); err == nil {
		p.Base = strings.TrimSpace(string(head))
		p.Branch, _ = g.Branch(ctx) // "" is a checkout of no branch
	}
	before := t.before(p)
	if _, err := os.Lstat(before); err == nil {
		return p, nil // what an earlier try has changed counts, too
	}
	sum, err := checkout.Print(ctx, git.New(t.top(), t.Git).OfUser(), t.top())
	if err != nil {
		return p, err
	}
	if err := t.Disk.MkdirAll(t.Keep, 0o700); err != nil {
		return p, err
	}
	return p, t.Disk.WriteFile(before, []byte(sum), 0o600)
}

// Began has nothing to do: there is one worker.
func (t *InPlace) Began(context.Context, Place, string) error { return nil }

// Look compares the directory with what it was like.
func (t *InPlace) Look(ctx context.Context, p Place, detail bool) (Work, error) {
	var w Work
	now, err := checkout.Print(ctx, git.New(t.top(), t.Git).OfUser(), t.top())
	if err != nil {
		return w, err
	}
	was, err := durable.Read(t.before(p))
	if err != nil {
		return w, err
	}
	w.Changed = string(was) != now
	if detail && w.Changed && p.Base != "" {
		if seen, err := compare(ctx, git.New(p.Top, t.Git).OfUser(), p.Base); err == nil {
			w.Files, w.Diff = seen.Files, seen.Diff
		}
	}
	return w, nil
}

// Finish has nothing to put anywhere: the work is where it should be.
func (t *InPlace) Finish(_ context.Context, p Place, _ queue.Item, fate core.Fate) (string, bool, error) {
	if fate != core.Done && fate != core.GiveUp {
		return "", false, nil
	}
	err := t.Disk.Remove(t.before(p))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return "", false, err
}
