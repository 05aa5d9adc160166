package queue_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/queue"
	"reprise/internal/queue/queuetest"
)

var _ queue.Queue = (*queue.Files)(nil)

// unsynced does not wait for the disk: what these tests ask needs no power cut.
func unsynced() durable.Disk {
	return durable.NewDisk(func(s durable.Step) *durable.Fault {
		if s.Op == durable.OpSync || s.Op == durable.OpSyncDir {
			return &durable.Fault{Skip: true}
		}
		return nil
	})
}

func TestFiles(t *testing.T) {
	queuetest.Run(t, func(t testing.TB) queuetest.Store {
		dir := filepath.Join(t.TempDir(), "queue")
		return queuetest.Store{Open: func(t testing.TB, now func() time.Time, record func(context.Context, queue.Change)) queue.Queue {
			return queue.Open(queue.Options{Dir: dir, Now: now, Disk: unsynced(), Host: "vm", Actor: "test", Record: record})
		}}
	})
}
