package cli

import (
	"context"
	"errors"
	"fmt"

	"reprise/internal/relay"
	"reprise/internal/term"
)

// oneHistory refuses a repository that is another one than the fleet knows by the project's
// name: what it has in its queue is not for this one. anew says that it is, as where its history
// was written anew. Where nobody can tell, nothing is refused.
func (a *App) oneHistory(ctx context.Context, project, dir, by string, anew bool) error {
	root := rootCommit(ctx, a, dir)
	if root == "" {
		return nil
	}
	conn, err := a.Fleet(ctx, "worker")
	if err != nil {
		return err
	}
	err = relay.Open(conn, project).SameHistory(ctx, relay.History{Roots: []string{root}, By: by}, anew)
	switch {
	case errors.Is(err, relay.ErrOtherHistory):
		return exitWith(ExitConflict, fmt.Errorf("%s: %w, and %s with %.12s: two projects that share a queue would do each other's items. Give one of them another name, another fleet.namespace or account; where the history was written anew, `reprise worker prepare --history %s` says so", project, err, dir, root, project))
	case err != nil && ctx.Err() == nil:
		fmt.Fprintf(a.Err, "note: whether %s is the project that the fleet knows by its name could not be seen: %s\n", project, term.SafeLine(err.Error()))
	}
	return nil
}
