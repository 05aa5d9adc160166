package queue_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"reprise/internal/queue"
	"reprise/internal/queue/queuetest"
)

func TestFiles(t *testing.T) {
	queuetest.Run(t, func(t testing.TB) queuetest.Store {
		dir := filepath.Join(t.TempDir(), "queue")
		return queuetest.Store{Open: func(t testing.TB, now func() time.Time, record func(context.Context, queue.Change)) queue.Queue {
			return queue.Open(queue.Options{Dir: dir, Now: now, Host: "vm", Actor: "test", Record: record})
		}}
	})
}
