package learn

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"reprise/internal/event"
)

// Logged is how many bytes there are in the logs. It needs no index.
func (o *Organizer) Logged() (int64, error) {
	total := int64(0)
	for _, log := range o.o.Logs {
		names, err := event.FileNames(log.Dir)
		if err != nil {
			return 0, fmt.Errorf("look at the logs: %w", err)
		}
		for _, name := range names {
			info, err := os.Stat(filepath.Join(log.Dir, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return 0, fmt.Errorf("look at the logs: %w", err)
			}
			total += info.Size()
		}
	}
	return total, nil
}

// Missing is how many of the sessions that the index knows of are not worked out in it yet,
// and how many it knows of. It writes nothing.
func (o *Organizer) Missing(ctx context.Context) (missing, known int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	err = o.store.View(ctx, func(tx Tx) error {
		missing, known = 0, 0
		var work []string
		err := tx.EachKV(bucketWork, "s", func(key string, _ []byte) bool {
			work = append(work, key)
			return true
		})
		if err != nil {
			return err
		}
		for _, key := range work { // one that goes on is worked out again, and is there meanwhile
			_, made, err := tx.Load(bucketMade, key)
			if err != nil {
				return err
			}
			if !made {
				missing++
			}
		}
		return tx.EachKV(bucketName, "", func(string, []byte) bool { known++; return true })
	})
	if err != nil {
		return 0, 0, fmt.Errorf("look at how far organising has come: %w", err)
	}
	return missing, known, nil
}
