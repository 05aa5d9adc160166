package loop

import (
	"context"
	"errors"
	"slices"
	"time"

	"reprise/internal/loop/core"
	"reprise/internal/queue"
)

// askers looks whether what is set aside is so still: somebody may see to an item beside the
// loop, which then waits for nothing.
func (l *Loop) askers(ctx context.Context) {
	ticker := time.NewTicker(WatchEvery)
	defer ticker.Stop()
	for n := time.Duration(0); ; n++ {
		l.seenTo(ctx)
		if n%(awayLook/WatchEvery) == 0 {
			l.mended(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// seenTo tells the core of each item that is set aside no more by the loop.
func (l *Loop) seenTo(ctx context.Context) {
	l.mu.Lock()
	aside := map[string]int64{}
	for id, m := range l.s.Items {
		if m.Parked && !slices.Contains(l.s.Unpark, id) {
			aside[id] = m.Number
		}
	}
	l.mu.Unlock()
	for id, number := range aside {
		it, err := l.opt.Queue.Get(ctx, id)
		if err != nil && !errors.Is(err, queue.ErrNotFound) {
			continue // it is looked for again
		}
		if what, ended := becameOf(&it, err); what != "" {
			l.send(ctx, core.Gone{Item: id, Number: number, Ended: ended, What: what})
		}
	}
}

// becameOf is what somebody has done beside the loop with an item that the loop has set
// aside; "" is nothing. gone is the error of who looked for it.
func becameOf(it *queue.Item, gone error) (what string, ended bool) {
	switch {
	case gone != nil:
		return "the queue has it no more", true
	case it.State == queue.Dead:
		return "it was dropped", true
	case it.State == queue.Done:
		return "it was done by hand", true
	case it.State != queue.Blocked:
		return "it was put back by hand", false
	}
	for _, e := range slices.Backward(it.History) {
		if e.Op == queue.OpPark && e.Fence == 0 {
			return "a person has set it aside: " + oneLine(it.Reason, 200), false
		} else if e.Op == queue.OpPark {
			break
		}
	}
	return "", false
}
