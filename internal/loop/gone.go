package loop

import (
	"cmp"
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

// lost has the core know that a claim is the loop's no more, and what became of its item.
func (l *Loop) lost(ctx context.Context, slot int, c core.Claim) {
	l.send(ctx, core.LeaseLost{Slot: slot, Item: c.Item.ID, Fence: c.Fence, Why: l.wentTo(ctx, c)})
}

// wentTo is what became of an item whose claim is the loop's no more; "" where that cannot be
// told.
func (l *Loop) wentTo(ctx context.Context, c core.Claim) string {
	it, err := l.opt.Queue.Get(ctx, c.Item.ID)
	switch {
	case errors.Is(err, queue.ErrNotFound):
		return "the queue has the item no more: a hand took it out"
	case errors.Is(err, queue.ErrDamaged):
		return oneLine(err.Error(), 300)
	case err != nil:
		return ""
	}
	lost := "its lease ran out"
	for _, e := range slices.Backward(it.History) {
		if int64(e.Fence) == c.Fence && e.Op == queue.OpLose { // nobody said so
			lost = cmp.Or(oneLine(e.Note, 200), lost)
			break
		}
		if took := taken(&e, c.Fence); took != "" {
			return join(took, oneLine(e.Note, 200))
		}
		if int64(e.Fence) == c.Fence && e.Op == queue.OpClaim {
			break
		}
	}
	if it.Claim != nil && int64(it.Claim.Fence) > c.Fence {
		return lost + ", and " + cmp.Or(it.Claim.Worker, "somebody else") + " has it now"
	}
	return lost + ", and the item is " + string(it.State) + " again"
}

// taken is what somebody did with an item that was claimed under a number, by a line of its
// history; "" is nothing that ends a claim.
func taken(e *queue.Entry, number int64) string {
	if int64(e.Fence) != number && e.Fence != 0 {
		return ""
	}
	switch e.Op {
	case queue.OpDrop:
		return "the item was dropped"
	case queue.OpDone:
		return "the item was called done by somebody else"
	case queue.OpFail:
		return "the item was called failed by somebody else"
	case queue.OpPark:
		return "somebody has set the item aside"
	case queue.OpRelease:
		return "somebody has put the item back"
	}
	return ""
}
