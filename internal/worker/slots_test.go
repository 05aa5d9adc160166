package worker_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reprise/internal/queue"
	"reprise/internal/worker"
)

func items(t *testing.T, n int) *queue.Files {
	t.Helper()
	q := queue.Open(queue.Options{Dir: filepath.Join(t.TempDir(), "queue"), Now: time.Now})
	for i := range n {
		if _, err := q.Add(t.Context(), queue.Item{ID: fmt.Sprintf("i%d", i), Title: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	return q
}

// The loops of a machine together hold no more items than there is room for, whichever way
// each of them ends, and all of them are done.
func TestSlotsBoundAllQueues(t *testing.T) {
	const most, each = 2, 12
	slots := worker.NewSlots(most)
	var held, peak, done atomic.Int64
	var all sync.WaitGroup
	for range 3 { // projects
		q := slots.Bound(items(t, each))
		for range 2 { // workers of its loop
			all.Go(func() {
				for {
					c, err := q.Claim(t.Context(), queue.ClaimOptions{})
					if errors.Is(err, queue.ErrEmpty) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					n := held.Add(1)
					for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
					}
					held.Add(-1)
					switch {
					case c.Item.Fence == 1 && c.Item.ID == "i1":
						_, err = q.Release(t.Context(), c.Token, "again")
					case c.Item.ID == "i2":
						_, err = q.Fail(t.Context(), c.Token, queue.Failure{Permanent: true})
						done.Add(1)
					case c.Item.ID == "i3":
						_, err = q.Park(t.Context(), c.Item.ID, c.Token, "asks")
						done.Add(1)
					default:
						_, err = q.Done(t.Context(), c.Token, queue.Outcome{})
						done.Add(1)
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	all.Wait()
	if peak.Load() > most || done.Load() != 3*each {
		t.Errorf("%d held at once, %d ended", peak.Load(), done.Load())
	}
}

// Who waits for room hears of it when there is some, and when there will be none any more.
func TestSlotsWait(t *testing.T) {
	slots := worker.NewSlots(1)
	one, other := slots.Bound(items(t, 1)), slots.Bound(items(t, 2))
	c, err := one.Claim(t.Context(), queue.ClaimOptions{})
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := other.Claim(short, queue.ClaimOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("it did not wait: %v", err)
	}
	got := make(chan error, 1)
	go func() {
		_, err := other.Claim(t.Context(), queue.ClaimOptions{})
		got <- err
	}()
	if _, err := one.Done(t.Context(), c.Token, queue.Outcome{}); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := other.Claim(t.Context(), queue.ClaimOptions{})
		got <- err
	}()
	slots.Close()
	if err := <-got; !errors.Is(err, queue.ErrEmpty) {
		t.Fatalf("after the end: %v", err)
	}
}

// A claim of the worker before counts once it is extended; one that is lost counts no more.
func TestSlotsCountWhatIsTakenOver(t *testing.T) {
	q := items(t, 2)
	before, err := q.Claim(t.Context(), queue.ClaimOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slots := worker.NewSlots(1)
	b := slots.Bound(q)
	for range 2 { // twice is once
		if _, err := b.Extend(t.Context(), before.Token, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := b.Claim(short, queue.ClaimOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("it does not count: %v", err)
	}
	if _, err := q.Release(t.Context(), before.Token, "somebody else"); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Claim(t.Context(), queue.ClaimOptions{ID: before.Item.ID}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Extend(t.Context(), before.Token, time.Minute); !errors.Is(err, queue.ErrLost) {
		t.Fatalf("it is not lost: %v", err)
	}
	if _, err := b.Claim(t.Context(), queue.ClaimOptions{}); err != nil {
		t.Fatalf("its room was not given back: %v", err)
	}
}

// What fits is what the machine can do.
func TestFits(t *testing.T) {
	can := worker.Can{Clients: []string{"claude", "codex"}, Has: []string{"gpu"}, Of: func(it *queue.Item) string {
		if it.Agent != "" {
			return it.Agent
		}
		return "claude"
	}}
	for _, c := range []struct {
		item queue.Item
		want bool
	}{
		{queue.Item{}, true},
		{queue.Item{Agent: "codex"}, true},
		{queue.Item{Agent: "gemini"}, false},
		{queue.Item{Labels: []string{"ui", "needs-gpu"}}, true},
		{queue.Item{Labels: []string{"needs-gpu", "needs-arm"}}, false},
		{queue.Item{Task: "012/2"}, false},
	} {
		if got := can.Fits(&c.item); got != c.want {
			t.Errorf("%+v: %v", c.item, got)
		}
	}
}
