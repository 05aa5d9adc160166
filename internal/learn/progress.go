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

// Progress is how far organising has come.
type Progress struct {
	// Other says that another version of reprise has worked out what is there: it is
	// taken out first.
	Other bool
	// Read is how many bytes of the logs, of Total, were taken in.
	Read, Total int64
	// Work is how many sessions, patterns and the like are to be worked out, as far
	// as that is known.
	Work int
}

// Progress looks at how far organising has come. It writes nothing.
func (o *Organizer) Progress(ctx context.Context) (Progress, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var p Progress
	err := o.store.View(ctx, func(tx Tx) error {
		p = Progress{}
		version, ok, err := tx.Load(bucketMeta, "version")
		if err != nil {
			return err
		}
		p.Other = ok && string(version) != o.version()
		for _, log := range o.o.Logs {
			from, err := cursors(tx, log)
			if err != nil {
				return err
			}
			names, err := event.FileNames(log.Dir)
			if err != nil {
				return err
			}
			for _, name := range names {
				info, err := os.Stat(filepath.Join(log.Dir, name))
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				if err != nil {
					return err
				}
				p.Total += info.Size()
				if !p.Other {
					p.Read += min(from[name].Offset, info.Size())
				}
			}
		}
		return tx.EachKV(bucketWork, "", func(string, []byte) bool { p.Work++; return true })
	})
	if err != nil {
		return Progress{}, fmt.Errorf("look at how far organising has come: %w", err)
	}
	return p, nil
}
