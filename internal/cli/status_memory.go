package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"reprise/internal/config"
	"reprise/internal/event"
	"reprise/internal/memory"
	"reprise/internal/recall"
	"reprise/internal/session"
)

// standMemory is what there is of memory: files are counted as they stand, and what was
// worked out from sessions as far as the index has it.
type standMemory struct {
	Blocks   int  `json:"blocks"`
	Entries  int  `json:"entries"`            // learnings and decisions that hold, of the project's and the user's
	Sessions int  `json:"sessions"`           // that are remembered of this project, or outside one of this directory; those that a month's digest tells of, too
	Episodes int  `json:"episodes"`           // what happened in them: failures and what helped, corrections, turns
	Partial  bool `json:"partial,omitempty"`  // the index is not complete: there are more sessions and episodes than are counted
	Recorded int  `json:"recorded,omitempty"` // sessions in the project's log then, where they could be counted in time
}

func (m standMemory) text() string {
	worked := count(m.Sessions, "session") + ", " + count(m.Episodes, "episode")
	switch {
	case m.Partial && m.Recorded > m.Sessions:
		worked = fmt.Sprintf("%d of %s worked out yet, %s", m.Sessions, count(m.Recorded, "session"), count(m.Episodes, "episode"))
	case m.Sessions == 0 && m.Episodes > 0 && !m.Partial: // a session counts once it has ended
		worked = "no session that has ended, " + count(m.Episodes, "episode")
	case m.Partial:
		worked = fmt.Sprintf("sessions being worked out anew (%d so far, %s)", m.Sessions, count(m.Episodes, "episode"))
	}
	return worked + ", " + count(m.Blocks, "block") + ", " + lasting(m.Entries)
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
	if err == nil {
		defer func() { s.Memory.besideLog(ctx, home, rest) }()
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

// besideLog says where there is more than the index has: nobody shall read that all is gone.
func (m *standMemory) besideLog(ctx context.Context, home *config.Home, rest indexRest) {
	missing := rest.lacking() || !rest.Built && rest.Bytes > 0 || rest.Missing > 0 && m.Sessions == 0
	if !missing {
		return
	}
	m.Partial = rest.lacking()
	if home.Project == nil { // the global log has the sessions of all directories
		return
	}
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	seen := map[string]bool{}
	for e, err := range event.Read(home.Paths.Events(home.Project.Name)) {
		if ctx.Err() != nil {
			return
		}
		if err == nil && e.Type == event.SessionStarted { // what is wrong with a line says the doctor
			seen[e.Session] = true
		}
	}
	m.Recorded = len(seen)
	m.Partial = m.Partial || m.Recorded > m.Sessions
}
