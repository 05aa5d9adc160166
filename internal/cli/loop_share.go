package cli

import (
	"context"
	"fmt"
	"strings"

	"reprise/internal/clip"
	"reprise/internal/config"
	"reprise/internal/git"
	"reprise/internal/loop"
	"reprise/internal/queue"
	"reprise/internal/term"
	machine "reprise/internal/worker"
)

// shareLoop makes the loop of a checkout one among others where the queue lies on servers: it
// takes what this machine can do, and what it makes is at the remote before the queue is told
// that it is done, for another machine may go on with what builds on it.
func (a *App) shareLoop(ctx context.Context, home *config.Home, opt *loop.Options) error {
	if home.Settings.Queue == config.QueueFiles {
		return nil
	}
	if err := a.oneHistory(ctx, home.Project.Name, home.Project.Root, a.Hostname, false); err != nil {
		return err
	}
	can := home.Settings.Worker.Can
	opt.Fits = func(it *queue.Item) bool { return machine.Has(can, it.Labels) }
	if name, err := (&workerFlags{}).workerName(a, home.Settings.Worker); err == nil { // else it is a loop like others
		opt.Worker = "loop-" + name
	}
	trees, ok := opt.Places.(*loop.Worktrees)
	if !ok {
		return nil // nothing is committed, so nobody else can have it
	}
	remote, branch, err := upstream(ctx, git.New(trees.Root, trees.Git))
	if err != nil {
		return err
	}
	if remote == "" {
		fmt.Fprintln(a.Err, "note: other machines work off this queue, too, and what is made here stays here: the branch that is checked out follows none of a remote (`git push --set-upstream origin HEAD`)")
		return nil
	}
	log := opt.Log
	opt.Places = &loop.Shared{Worktrees: trees, Remote: remote, Main: branch, Say: func(item, text string) {
		log.Warn("share work with other machines", "item", item, "what", text)
		if item != "" {
			text = item + ": " + text
		}
		fmt.Fprintf(a.Err, "note: %s\n", term.SafeLine(clip.Line(text)))
	}}
	return nil
}

// upstream is the branch of a remote that the one which is checked out follows, "" for none, as
// where no branch is.
func upstream(ctx context.Context, g *git.Git) (remote, branch string, err error) {
	out, err := g.Run(ctx, "for-each-ref", "--format=%(if)%(HEAD)%(then)%(upstream:remotename)%00%(upstream:remoteref)%(end)", "refs/heads")
	if err != nil {
		return "", "", fmt.Errorf("see which branch of a remote is followed: %w", err)
	}
	remote, ref, _ := strings.Cut(strings.TrimSpace(string(out)), "\x00")
	branch, ok := strings.CutPrefix(ref, "refs/heads/")
	if !ok || remote == "" || remote == "." { // "." is this repository
		return "", "", nil
	}
	return remote, branch, nil
}
