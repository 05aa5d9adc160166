package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"reprise/internal/config"
	"reprise/internal/memory"
	"reprise/internal/recall"
	"reprise/internal/session"
)

// standMemory is what there is of memory: files are counted as they stand, and what was
// worked out from sessions as far as the index has it.
type standMemory struct {
	Blocks   int `json:"blocks"`
	Entries  int `json:"entries"`  // learnings and decisions that hold, of the project's and the user's
	Sessions int `json:"sessions"` // that are remembered of this project, or outside one of this directory; those that a month's digest tells of, too
	Episodes int `json:"episodes"` // what happened in them: failures and what helped, corrections, turns
}

func (m standMemory) text() string {
	return count(m.Sessions, "session") + ", " + count(m.Episodes, "episode") + ", " + count(m.Blocks, "block") + ", " + lasting(m.Entries)
}

// oneSession is how the id of a session's summary begins: those of months are others.
const oneSession = "sm-"

// countTime is how long a page waits for the index, which another process may be at.
const countTime = time.Second

// standMemory counts. Of the index nothing is made or brought up to date for it.
func (a *App) standMemory(ctx context.Context, s *standing, home *config.Home) error {
	s.Memory = standMemory{Blocks: blocksIn(home), Entries: entriesIn(home)}
	rest, err := a.indexRest(ctx, home)
	if err == nil && rest.lacking() {
		s.Notes = append(s.Notes, "memory is being made anew, so that sessions are not counted in full: "+rest.text()+"; "+atOnce)
	}
	if _, err := os.Stat(session.IndexFile(home)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	m := session.Open(session.Options{Home: home, Env: a.Env, Access: memory.FullAccess, Look: true})
	defer m.Close()
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	of := m.Reader().Places
	if home.Project != nil {
		of = append(of, home.Project.Name)
	}
	err = m.Index.View(ctx, func(tx *recall.Tx) error {
		for _, project := range of {
			sessions, err := tx.Count(recall.Filter{Class: recall.ClassSummary, Project: project, Prefix: oneSession})
			if err != nil {
				return err
			}
			episodes, err := tx.Count(recall.Filter{Class: recall.ClassEpisode, Project: project})
			if err != nil {
				return err
			}
			s.Memory.Sessions += sessions
			s.Memory.Episodes += episodes
		}
		return nil
	})
	if errors.Is(err, recall.ErrNotBuilt) { // of another version: what needs it makes it anew
		return nil
	}
	return err
}
