package loop

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"reprise/internal/loop/core"
	"reprise/internal/queue"
)

// stuckQueue answers for one claim only once another was asked about, as servers that are
// away for a while keep whoever asks first waiting.
type stuckQueue struct {
	queue.Queue
	first, asked chan struct{}
}

func (q *stuckQueue) Extend(ctx context.Context, t queue.Token, _ time.Duration) (time.Time, error) {
	if t == "a@1" {
		close(q.first)
		select {
		case <-q.asked:
		case <-time.After(time.Minute):
			return time.Time{}, context.DeadlineExceeded
		}
		return time.Time{}, queue.ErrLost
	}
	<-q.first
	close(q.asked)
	return time.Time{}, nil
}

func (q *stuckQueue) Get(context.Context, string) (queue.Item, error) {
	return queue.Item{}, queue.ErrNotFound
}

// A lease that cannot be renewed for the moment does not keep the others from it: a worker
// with several items must not lose all of them by an outage that each would have outlived.
func TestLeasesAreRenewedSideBySide(t *testing.T) {
	t.Parallel()
	s := core.State{Slots: []core.Slot{
		{Step: core.Running, Claim: core.Claim{Item: core.Item{ID: "a"}, Fence: 1, Token: "a@1"}},
		{Step: core.Idle},
		{Step: core.Running, Claim: core.Claim{Item: core.Item{ID: "b"}, Fence: 2, Token: "b@2"}},
	}}
	l := &Loop{opt: Options{Queue: &stuckQueue{first: make(chan struct{}), asked: make(chan struct{})}, Log: slog.New(slog.DiscardHandler)}, s: s, events: make(chan core.Event, 4)}
	l.renewAll(t.Context())
	select {
	case e := <-l.events:
		if lost, ok := e.(core.LeaseLost); !ok || lost.Item != "a" || lost.Fence != 1 || lost.Slot != 0 {
			t.Errorf("%+v", e)
		}
	default:
		t.Error("nobody was told that a lease is lost")
	}
}
