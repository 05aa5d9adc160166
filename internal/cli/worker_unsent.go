package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"reprise/internal/durable"
	"reprise/internal/fleet"
	"reprise/internal/relay"
)

// A file of a run that the servers do not take at the moment is kept in the loop's
// directory, under unsent/RUN/NAME: its own place goes with the worktree. It is sent when
// they take it, by this worker or the next.

// sendEvery is how often what was not sent is tried again.
const sendEvery = 30 * time.Second

// serversFail reports whether an error is the servers', so that the same may be taken later.
func serversFail(err error) bool {
	return errors.Is(err, fleet.ErrUnreachable) || errors.Is(err, fleet.ErrRefused) || errors.Is(err, fleet.ErrSetup) || errors.Is(err, fleet.ErrFull) || errors.Is(err, context.DeadlineExceeded)
}

func (l *telling) unsent() string { return filepath.Join(l.dir, "unsent") }

// keepUnsent keeps a copy of a file that is sent later; why is what the servers said. The
// error says that it is on this machine only, where it cannot be kept either.
func (l *telling) keepUnsent(id, name, path string, why error) error {
	data, err := durable.Read(path)
	if err != nil {
		return err
	}
	to := filepath.Join(l.unsent(), id, filepath.FromSlash(name))
	if err = durable.MkdirAll(filepath.Dir(to), 0o700); err == nil {
		err = durable.WriteFile(to, data, 0o600)
	}
	if err != nil {
		return errors.Join(why, err)
	}
	fmt.Fprintf(l.app.Err, "note: %s of %s is sent later: %v\n", name, id, why)
	return nil
}

// sendAgain sends what was not taken, until ctx ends.
func (l *telling) sendAgain(ctx context.Context) {
	for ctx.Err() == nil {
		l.sendUnsent(ctx)
		_ = pause(ctx, sendEvery) // the end of ctx ends the loop, too
	}
}

// sendUnsent sends what was kept, as far as the servers take it. What they would keep no
// longer goes, and so do copies that were not made whole.
func (l *telling) sendUnsent(ctx context.Context) {
	runs, err := durable.ReadDir(l.unsent())
	if err != nil {
		return // nothing was kept
	}
	old := l.app.Now().Add(-relay.KeepFor)
	for _, r := range runs {
		dir := filepath.Join(l.unsent(), r.Name())
		left := 0
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			name, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			switch part := durable.IsTemp(d.Name()); {
			case info.ModTime().Before(old):
			case part && info.ModTime().After(l.app.Now().Add(-time.Hour)): // being made
				left++
				return nil
			case part:
			default:
				err := l.relay.PutFile(ctx, r.Name(), filepath.ToSlash(name), path)
				if serversFail(err) || ctx.Err() != nil {
					return errors.Join(err, ctx.Err()) // it would be the same with the others
				}
				if err != nil { // it cannot be read now
					left++
					return nil
				}
			}
			return durable.Remove(path)
		})
		if err != nil {
			if serversFail(err) || ctx.Err() != nil {
				return
			}
			if !errors.Is(err, fs.ErrNotExist) {
				fmt.Fprintf(l.app.Err, "note: files of %s that are to be sent: %v\n", r.Name(), err)
			}
			continue
		}
		if left == 0 {
			_ = durable.RemoveAll(dir) // it is empty; else the next look tries it
		}
	}
}
