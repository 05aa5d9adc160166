package queue_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
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
		}, Vanish: func(t testing.TB, id string) {
			list, err := filepath.Glob(filepath.Join(dir, "*", "*~"+id+".json"))
			if err != nil || len(list) != 1 {
				t.Fatalf("files of %s: %v %v", id, list, err)
			}
			if err := os.Remove(list[0]); err != nil {
				t.Fatal(err)
			}
		}, Damage: func(t testing.TB, id string, data []byte) {
			list, err := filepath.Glob(filepath.Join(dir, "*", "*~"+id+".json"))
			if err != nil || len(list) != 1 {
				t.Fatalf("files of %s: %v %v", id, list, err)
			}
			if err := os.WriteFile(list[0], data, 0o600); err != nil {
				t.Fatal(err)
			}
		}, Away: func(t testing.TB, now func() time.Time) queue.Queue {
			full, _ := durabletest.Full(0, syscall.ENOSPC)
			return queue.Open(queue.Options{Dir: dir, Now: now, Disk: full, Host: "vm", Actor: "test"})
		}}
	})
}
