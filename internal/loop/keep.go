package loop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/loop/checkout"
	"reprise/internal/loop/core"
	"reprise/internal/queue"
	"reprise/internal/term"
	"reprise/internal/workspace"
)

// Keeper is for places from which work has to be brought somewhere before anybody may
// call it done. A [Places] that is none has nothing of the kind.
type Keeper interface {
	// Keep brings all of the work to the item's branch. note says what had to be done for
	// that. An [UnkeptError], or workspace.StrandedError, says why it cannot be: then nothing
	// is lost, and at most what was left uncommitted is committed.
	Keep(ctx context.Context, p Place, item queue.Item) (note string, err error)
}

// UnkeptError is work that is not as it can be kept.
type UnkeptError struct{ Why string }

func (e *UnkeptError) Error() string { return e.Why }

func unkept(format string, args ...any) error { return &UnkeptError{fmt.Sprintf(format, args...)} }

// Leaver is for places that somebody holds while they are worked in.
type Leaver interface {
	// Leave has a place be nobody's, and changes nothing in it.
	Leave(ctx context.Context, p Place) error
}

// leave gives up the place of a claim that was lost. The error is one that passes.
func (l *Loop) leave(ctx context.Context, p Place) error {
	t, ok := l.opt.Places.(Leaver)
	if !ok {
		return nil
	}
	err := t.Leave(ctx, p)
	if err != nil && !passing(err) && ctx.Err() == nil {
		l.warn("leave "+p.Name, err)
		return nil
	}
	return err
}

// keep has the work of a claim kept, and says what is wrong with it where it cannot be:
// what is done in the queue is what others build on.
func (l *Loop) keep(ctx context.Context, c core.Claim, slot int, p Place) (wrong string, err error) {
	k, ok := l.opt.Places.(Keeper)
	if !ok {
		return "", nil
	}
	item, err := l.opt.Queue.Get(ctx, c.Item.ID)
	if err != nil {
		return "", err
	}
	if item.State != queue.Claimed || item.Claim == nil || int64(item.Claim.Fence) != c.Fence {
		// Whoever has the item now works on the same branch, perhaps on another machine.
		return "", fmt.Errorf("%w: %s is %s", queue.ErrLost, item.ID, item.State)
	}
	var note string
	err = l.inProject(func() error { note, err = k.Keep(ctx, p, item); return err })
	if note != "" {
		l.enter("keep", slot, note)
	}
	if err == nil {
		return "", nil
	}
	if ctx.Err() != nil || passing(err) {
		return "", err
	}
	l.warn("keep the work on "+item.ID, err)
	wrong = "what was made cannot be kept: " + oneLine(err.Error(), 600)
	l.enter("keep", slot, wrong)
	return wrong, nil
}

// Keep brings the item's branch to where the work is, and commits what was left.
func (t *Worktrees) Keep(ctx context.Context, p Place, item queue.Item) (note string, err error) {
	locks := t.locks()
	locks.Own = git.LinkedDir(p.Top) // nobody is at work there any more
	locks.Unlocked = func(path string) {
		note = join(note, "a lock that a git in its worktree left was removed: "+filepath.Base(path))
		if t.Unlocked != nil {
			t.Unlocked(path)
		}
	}
	err = locks.Patiently(ctx, func() error {
		said, err := t.keepNow(ctx, p, item)
		note = join(note, said)
		return err
	})
	if errors.Is(err, git.ErrPrograms) { // it is what this work, or one beside it, has made of the repository
		err = unkept("%s", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept == nil {
		t.kept = map[string]bool{}
	}
	t.kept[p.Name] = err == nil
	return note, err
}

func (t *Worktrees) keepNow(ctx context.Context, p Place, item queue.Item) (string, error) {
	g := t.git(p.Top)
	if _, err := os.Lstat(p.Top); errors.Is(err, fs.ErrNotExist) {
		return "", unkept("its worktree %s is gone", p.Top)
	}
	own := t.agentPath(p)
	s, err := t.lastStatus(ctx, p)
	if err != nil {
		return "", err
	}
	if len(s.Unmerged) > 0 {
		return "", unkept("a merge in its worktree is not settled; these have conflicts: %s", strings.Join(s.Unmerged[:min(len(s.Unmerged), 10)], ", "))
	}
	if len(s.Dirty) > 0 {
		return "", unkept("submodules have changes that are not committed in them: %s; commit them there, and have git ignore, or remove, what is not to be kept", strings.Join(s.Dirty[:min(len(s.Dirty), 10)], ", "))
	}
	if err := t.inProject(p); err != nil {
		return "", err
	}
	if err := goesOn(ctx, g, p, s); err != nil {
		return "", err
	}
	note, err := t.onBranch(ctx, g, p, s)
	if err != nil {
		return note, err
	}
	left, err := t.commitLeft(ctx, p, item, s, own)
	if note = join(note, left); err != nil {
		return note, err
	}
	if err := t.settled(ctx, g, p, item); err != nil {
		return note, err
	}
	brought, err := t.Workspaces.BringSubmodules(ctx, t.modules(p)) // they go with the worktree
	return join(note, brought.Note()), err
}

// inProject wants the place to be part of the project still. Once what makes it so is removed
// from the branch that others begin at, nothing can be made there any more.
func (t *Worktrees) inProject(p Place) error {
	if t.Belongs == nil {
		return nil
	}
	if err := t.Belongs(p.Name); err != nil && !errors.Is(err, workspace.ErrNotFound) {
		return unkept("it would be no place of this project any more, and whatever is begun after it neither: %s; bring .reprise/project.yaml back as it was", oneLine(err.Error(), 300))
	}
	return nil
}

// goesOn wants the work to go on from where it began: a history that was written anew, or
// begun anew, leaves out what others have made, and git merges it with conflicts or not at all.
func goesOn(ctx context.Context, g *git.Git, p Place, s checkout.Status) error {
	if p.Base == "" || s.Head == "" || s.Head == p.Base {
		return nil
	}
	base, err := g.Resolve(ctx, p.Base)
	if err != nil || base == "" {
		return err // it is not known here any more; what merges it says more
	}
	if ok, err := g.IsAncestor(ctx, base, s.Head); err != nil || ok {
		return err
	}
	return unkept("its history does not go on from commit %.12s, at which the work began: commits of others would be left out; put the work upon that one (`git reset --soft %.12s`, then look at `git diff --cached` and commit)", base, base)
}

func (t *Worktrees) modules(p Place) workspace.BringOptions {
	return workspace.BringOptions{Dir: p.Top, Main: t.Root, Base: p.Base, Branch: p.Branch}
}

// onBranch brings the place's branch to what is checked out there: who worked there may
// have left it, and what is merged is the branch. It only ever moves forward.
func (t *Worktrees) onBranch(ctx context.Context, g *git.Git, p Place, s checkout.Status) (note string, err error) {
	if p.Branch == "" || s.Branch == p.Branch && s.Head != "" {
		return "", nil
	}
	if s.Head == "" {
		return "", unkept("its worktree is on a branch without a commit; the work belongs on %s", p.Branch)
	}
	ref, head := "refs/heads/"+p.Branch, s.Head
	now := "no branch, at " + head[:min(len(head), 12)]
	if s.Branch != "" {
		now = "the branch " + s.Branch
	}
	tip, err := g.Resolve(ctx, ref)
	if err != nil {
		return "", err
	}
	from, name := tip, p.Branch
	if tip == "" { // the branch is gone: then it counts where the work began
		from, name = p.Base, "the commit that it began at"
	}
	ok, err := g.IsAncestor(ctx, from, head)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", unkept("its worktree is on %s, which does not go on from %s; bring the work to the branch %s", now, name, p.Branch)
	}
	was := tip
	if was == "" {
		was = strings.Repeat("0", len(head))
	}
	if _, err := g.Run(ctx, "update-ref", "-m", "loop: work that was done elsewhere", ref, head, was); err != nil {
		return "", err
	}
	// What is checked out is the same commit: neither files nor index change.
	if _, err := g.Run(ctx, "symbolic-ref", "-m", "loop: back on the branch", "HEAD", ref); err != nil {
		return "", err
	}
	return fmt.Sprintf("its worktree was on %s; %s was brought there", now, p.Branch), nil
}

// agentPath is where the state of the agent is checked out in a worktree, as git spells
// it. It has a repository of its own, and is never part of the work.
func (t *Worktrees) agentPath(p Place) string {
	sub, err := filepath.Rel(p.Top, config.AgentDirIn(p.Dir))
	if err != nil {
		return ""
	}
	return filepath.ToSlash(sub)
}

// commitLeft commits what the agent did not, so that its branch has all of the work.
func (t *Worktrees) commitLeft(ctx context.Context, p Place, item queue.Item, s checkout.Status, own string) (string, error) {
	g := t.git(p.Top)
	committed, err := t.committedAgent(ctx, g, p, s, own)
	if err != nil || !s.Changed && !committed {
		return "", err
	}
	if _, err := os.Lstat(filepath.Join(p.Top, ".gitmodules")); len(s.Inner) > 0 && err != nil {
		// Of them git keeps the name of a commit only; with that file they are submodules.
		return "", unkeptInner(strings.Join(s.Inner, ", "))
	}
	how := "--all" // of files that git knows: no other git is asked for that
	if s.New || committed || s.Own || len(s.Fresh) > 0 {
		how = "--no-all"
		// All of it, also what is outside of a sparse checkout: to exclude a path that is
		// ignored is an error to git.
		if _, err := g.Run(ctx, "add", "--all", "--sparse"); err != nil {
			if name, ok := checkout.NoCommitIn(err); ok {
				return "", unkeptInner(name)
			}
			return "", err
		}
	}
	if committed || s.Own {
		if _, err := g.Run(ctx, "rm", "-r", "--cached", "--quiet", "--force", "--ignore-unmatch", "--", ":(top,literal)"+own); err != nil {
			return "", err
		}
	}
	if len(s.Fresh) > 0 { // what git makes of files that nobody has changed is no work
		in := []byte(strings.Join(s.Fresh, "\x00"))
		if _, err := g.RunInput(ctx, in, "--literal-pathspecs", "reset", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul"); err != nil {
			return "", err
		}
	}
	args := append(t.who(ctx), "commit", "--quiet", how, "--message="+term.SafeLine(item.Title)+"\n\nWhat the session for "+item.ID+" left uncommitted.")
	if _, err := g.Run(ctx, args...); err != nil {
		if staged, serr := g.Staged(ctx); serr == nil && len(staged) == 0 {
			return "", nil // it differed in what git does not keep
		}
		return "", err
	}
	return "what was left uncommitted is committed", nil
}

func unkeptInner(names string) error {
	return unkept("there is a repository of its own in it, whose files git would not keep: %s; remove its .git, or move it away", names)
}

// committedAgent reports whether the agent has committed the place of its own state, such
// as when it had put a link there, or had git ignore other things than before.
func (t *Worktrees) committedAgent(ctx context.Context, g *git.Git, p Place, s checkout.Status, own string) (bool, error) {
	if info, err := os.Lstat(filepath.Join(p.Top, filepath.FromSlash(own))); err == nil && info.IsDir() && s.Head == p.Base {
		return false, nil // as it was made, and nothing was committed
	}
	out, err := g.Run(ctx, "ls-tree", "--name-only", "-z", "HEAD", "--", own)
	return len(out) > 0, err
}

// renewed joins a worktree again that was cut off by a move, and takes one away that is gone, or
// is none any more, so that it can be made
// anew: what git still has of it is kept, and what lies in its place is moved aside. note
// says what who goes on there should know, "" where nothing was done.
func (t *Worktrees) renewed(ctx context.Context, name string) (note string, err error) {
	if found, err := t.Workspaces.Refind(ctx, name); err != nil && !errors.Is(err, workspace.ErrNotFound) {
		return "", err
	} else if found {
		return "the repository, or its worktree, was moved; git has joined them again, with all that was in the worktree", nil
	}
	w, err := t.Workspaces.Get(name)
	if err != nil || t.Workspaces.Look(w).Status != "missing" {
		return "", nil // Prepare says what is wrong with it
	}
	note = fmt.Sprintf("its worktree was gone, and was made anew from the branch %s", w.Branch)
	if _, err := os.Lstat(w.Dir); err == nil {
		to, err := t.aside(w.Dir)
		if err != nil {
			return "", err
		}
		note = fmt.Sprintf("its worktree was none any more, and was made anew from the branch %s; the files as they were, with what had not been committed, are in %s", w.Branch, to)
	}
	gone, err := t.Workspaces.Remove(ctx, name, workspace.RemoveOptions{Save: true})
	if errors.Is(err, workspace.ErrNotFound) {
		return "", nil
	}
	if gone.Saved != "" {
		note += "; what was staged is kept as " + gone.Saved
	}
	return note, err
}

// aside renames a directory to a name that is free.
func (t *Worktrees) aside(dir string) (to string, err error) {
	for n := 1; n < 1000; n++ {
		to = fmt.Sprintf("%s.broken-%d", dir, n)
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			return to, durable.Rename(dir, to)
		}
	}
	return "", fmt.Errorf("%s is no worktree any more, and there are too many copies of it beside it", dir)
}
