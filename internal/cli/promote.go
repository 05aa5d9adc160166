package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"reprise/internal/memory"
)

// promoteOne promotes one item by its id, whichever command it was given to: an
// entry that is an agent's own becomes the project's, anything else what the next
// wider scope, or to, makes of it.
func promoteOne(ctx context.Context, app *App, id, to string, asJSON bool) error {
	agent, err := app.ownerOf(ctx, id)
	if err != nil {
		return err
	}
	if agent != "" {
		if to == "global" {
			return usagef("promote: %s is agent %s's own: promote it to the project first", id, agent)
		}
		return promoteOwn(ctx, app, agent, []string{id}, false, false, asJSON)
	}
	s, err := app.Scopes()
	if err != nil {
		return err
	}
	c, err := s.PromoteItem(ctx, id, to)
	if errors.Is(err, memory.ErrNotFound) {
		return exitWith(ExitNotFound, fmt.Errorf("promote: nothing has the id %s: `reprise context promote` lists what of the agent that works here can be promoted, `reprise memory list` blocks, `reprise recall` both", clipText(id, 40)))
	}
	if err != nil {
		return memoryError(err)
	}
	app.saveGlobal(ctx, c.Project, savedAs(c))
	return changed(app, c, asJSON)
}

// ownerOf is the agent of this project of whom an entry is the own that is not
// promoted; "" where it is nobody's.
func (a *App) ownerOf(ctx context.Context, id string) (string, error) {
	home, err := a.Home()
	if err != nil || home.Project == nil || !strings.HasPrefix(id, "e-") || len(id) < 4 {
		return "", err
	}
	repo, err := a.stateOf(home, home.Project.Name)
	if err != nil || !repo.Exists() {
		return "", err
	}
	agents, err := repo.Agents(ctx)
	if err != nil {
		return "", stateError(err)
	}
	for _, x := range agents {
		list, err := repo.Unpromoted(ctx, x.Name)
		if err != nil {
			return "", stateError(err)
		}
		for _, e := range list {
			if strings.HasPrefix(e.ID, id) {
				return x.Name, nil
			}
		}
	}
	return "", nil
}
