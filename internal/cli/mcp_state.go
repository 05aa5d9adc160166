package cli

import (
	"context"
	"sync"
	"time"

	"reprise/internal/config"
	"reprise/internal/memory"
	"reprise/internal/proc"
	"reprise/internal/recall"
	"reprise/internal/session"
	"reprise/internal/staterepo"
)

// turnAtMost is how long a turn of a client is looked back for that has started a
// command.
const turnAtMost = time.Hour

// clientSession tells the client's session of a call or a command, of those that have
// been at work since.
func (a *App) clientSession(since time.Time) func(ctx context.Context) string {
	return func(ctx context.Context) string {
		paths, err := config.FindPaths(a.Env)
		if err != nil {
			return ""
		}
		return session.ClientSession(ctx, a.Env.Get, paths.State, since)
	}
}

// desk is the state of the agent that works here, for tools.
func (a *App) desk(home *config.Home, access memory.Access) *session.Desk {
	var mu sync.Mutex // what the app opens once it opens for one at a time
	return &session.Desk{
		Memory: func() (*session.Memory, error) {
			mu.Lock()
			defer mu.Unlock()
			if err := access.MayRead(); err != nil {
				return nil, err
			}
			return a.anyKnown()
		},
		Open: func(ctx context.Context) (*staterepo.Repo, *staterepo.Tree, error) {
			mu.Lock()
			defer mu.Unlock()
			j, err := a.journal(ctx)
			if err != nil {
				return nil, nil, err
			}
			return j.repo, j.tree, nil
		},
		Access: access, Since: a.Now(), Redact: redacted,
		Session: a.clientSession(a.Now().Add(-time.Minute)), // a session's start and that of its servers are one
		Reader:  func() recall.Reader { return session.Reader(home, a.Env) },
		Code:    a.codeHead,
	}
}

// stateAccess is what this process may do with the state of the agent that works
// here: a run only what it was given.
func (a *App) stateAccess() (memory.Access, error) {
	access, err := a.memoryAccess()
	if err != nil || access == memory.FullAccess {
		return access, err
	}
	runs, err := a.Runs()
	if err != nil {
		return memory.NoAccess, err
	}
	if r, err := runs.Get(a.Env.Get(proc.RunIDVar)); err == nil && r.AllowStateWrite {
		return memory.FullAccess, nil
	}
	return access, nil
}
