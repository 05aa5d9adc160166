package session

import (
	"context"
	"time"

	"reprise/internal/config"
	"reprise/internal/learn"
	"reprise/internal/recall"
)

// IndexFile is the file of the search index as this program keeps it: each version has its
// own, so that a program that was replaced and still runs, and the new one, never throw away
// what the other has made.
func IndexFile(home *config.Home) string { return recall.FileFor(home.IndexBase(), learn.Version) }

// Finish brings all that is missing into the index, from where it was left: a kill at any
// step leaves the steps before. It is for a Memory that was opened with Build.
func (m *Memory) Finish(ctx context.Context) error {
	if err := m.Index.Finish(ctx); err != nil {
		return err
	}
	return m.organize(ctx) // what came since the index was made whole
}

const (
	// oneStep is about how long organising keeps the index's lock.
	oneStep = 250 * time.Millisecond
	// between is how long it is then free: longer than anybody who waits for it takes to
	// look again, so that hooks come in while a large memory is made anew.
	between = 20 * time.Millisecond
)

// organize works out all that is left to do, by steps.
func (m *Memory) organize(ctx context.Context) error {
	var total learn.Report
	for {
		r, err := m.Organizer.Run(ctx, oneStep)
		if err != nil {
			return err
		}
		total.Events += r.Events
		total.Sessions += r.Sessions
		if m.o.Rebuilt != nil {
			m.o.Rebuilt(total)
		}
		if !r.More {
			return nil
		}
		pause := time.NewTimer(between)
		select {
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		case <-pause.C:
		}
	}
}
