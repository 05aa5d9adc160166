package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reprise/internal/git"
	"reprise/internal/loop"
	"reprise/internal/loop/report"
	"reprise/internal/term"
)

// worked are the iterations of loops here, from a directory, with what other machines of the
// fleet have done of the project's items, in the order in which they ended. Servers that are
// away are noted, and what is here is told.
func (a *App) worked(ctx context.Context, dir string) (its []loop.Iteration, bad int, err error) {
	if its, bad, err = loop.Iterations(dir, ""); err != nil {
		return nil, bad, err
	}
	away, err := a.workedThere(ctx, its)
	if err != nil {
		if ctx.Err() != nil {
			return nil, bad, err
		}
		fmt.Fprintf(a.Err, "note: what other machines of the fleet have done is not known: %s\n", term.SafeLine(err.Error()))
		return its, bad, nil
	}
	return together(its, away), bad, nil
}

// together are iterations of here and of other machines, in the order in which they ended.
func together(its, away []loop.Iteration) []loop.Iteration {
	all := append(slices.Clone(its), away...)
	slices.SortStableFunc(all, func(x, y loop.Iteration) int { return x.Ended.Compare(y.Ended) })
	return all
}

// workedThere is what other machines of the fleet have done of the project's items; its are
// the iterations of here. None where there is no fleet.
func (a *App) workedThere(ctx context.Context, its []loop.Iteration) ([]loop.Iteration, error) {
	f, err := a.elsewhere(ctx, "queue")
	if f == nil || err != nil || f.Project == "" {
		return nil, err
	}
	here := map[string]bool{}
	name := func(item string, fence int64) string { return fmt.Sprintf("%s@%d", item, fence) }
	for _, it := range its {
		here[name(it.Item, it.Fence)] = true
	}
	return f.Worked(ctx, func(item string, fence int64) bool { return here[name(item, fence)] })
}

// unmergedThere adds to what is not merged the commits with which other machines' work ends
// and that nothing which is checked out has: those that this repository has not got, and those
// that a branch has which is not merged, one of a remote or of its own. What was merged in
// another way is told no more once its branch is gone (`git fetch --prune`).
func (a *App) unmergedThere(ctx context.Context, its []loop.Iteration, into map[string]bool) error {
	var commits []string
	for _, it := range report.Unmerged(its, nil) {
		if it.On != "" && len(it.Commit) >= 40 && strings.Trim(it.Commit, "0123456789abcdef") == "" {
			commits = append(commits, it.Commit)
		}
	}
	home, err := a.Home()
	if err != nil || home.Project == nil || len(commits) == 0 {
		return err
	}
	g := git.New(checkoutOf(home.Project), git.Options{Vars: a.Env.Vars})
	known, err := g.RunInput(ctx, []byte(strings.Join(commits, "\n")+"\n"), "cat-file", "--batch-check=%(objectname)")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(known)) {
		if c, missing := strings.CutSuffix(strings.TrimSpace(line), " missing"); missing {
			into[c] = true
		}
	}
	open, err := g.Run(ctx, "rev-list", "--branches", "--remotes", "--not", "HEAD")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(open)) {
		if c := strings.TrimSpace(line); slices.Contains(commits, c) {
			into[c] = true
		}
	}
	return nil
}

// remoteOf is the remote that what is checked out follows, where other machines have sent what
// they made; "" where that is not known.
func (a *App) remoteOf(ctx context.Context) string {
	home, err := a.Home()
	if err != nil || home.Project == nil {
		return ""
	}
	remote, _, _ := upstream(ctx, git.New(checkoutOf(home.Project), git.Options{Vars: a.Env.Vars})) // then the usual name is told
	return remote
}

// questionsThere are what the loops of other machines ask, but for the loop whose id is own.
// Where it is not known, the items are told as set aside all the same.
func (a *App) questionsThere(ctx context.Context, own string) (out []loop.Question) {
	_, all, err := a.statesElsewhere(ctx)
	if err != nil {
		fmt.Fprintf(a.Err, "note: what workers on other machines ask is not known: %s\n", term.SafeLine(err.Error()))
	}
	for _, l := range all {
		if own == "" || l.State.Loop != own {
			out = append(out, l.Questions...)
		}
	}
	return out
}
