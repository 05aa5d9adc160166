package jet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"reprise/internal/queue"
)

// Origin is the bucket's name.
func (q *Queue) Origin() string { return q.bucket }

// Still is nothing here: of two who move the same, the servers let one through.
func (q *Queue) Still(context.Context) (func(), error) { return func() {}, nil }

// Stock lists the items with their revisions.
func (q *Queue) Stock(ctx context.Context) ([]queue.Stocked, []queue.Trouble, error) {
	if _, err := q.Reclaim(ctx); err != nil {
		return nil, nil, err
	}
	var out []queue.Stocked
	var trouble []queue.Trouble
	err := q.each(ctx, q.view.all(), func(id string, h *held, err error) {
		switch {
		case errors.Is(err, queue.ErrNotFound):
		case err != nil:
			trouble = append(trouble, queue.Trouble{Where: q.where(id), Why: strings.TrimPrefix(err.Error(), q.where(id)+": ")})
		case h.Arriving == "":
			out = append(out, queue.Stocked{Record: h.Record, Mark: strconv.FormatUint(h.rev, 10)})
		}
	})
	slices.SortFunc(out, func(a, b queue.Stocked) int { return strings.Compare(a.Record.ID, b.Record.ID) })
	return out, trouble, err
}

// Received lists what is being moved here from a queue.
func (q *Queue) Received(ctx context.Context, origin string) ([]string, error) {
	if err := q.view.catchUp(ctx); err != nil {
		return nil, err
	}
	q.view.mu.Lock()
	var rows []row
	for _, r := range q.view.rows {
		if r.brief.Arriving {
			rows = append(rows, r)
		}
	}
	q.view.mu.Unlock()
	var ids []string
	err := q.each(ctx, rows, func(id string, h *held, err error) {
		if err == nil && h.Arriving == origin {
			ids = append(ids, id)
		}
	})
	slices.Sort(ids)
	return ids, err
}

// Receive keeps an item that nobody can have yet.
func (q *Queue) Receive(ctx context.Context, origin string, r queue.Record) error {
	if r.State == queue.Claimed {
		return fmt.Errorf("%w: %s is claimed", queue.ErrState, r.ID)
	}
	for try := 0; ; try++ {
		was, err := q.get(ctx, r.ID)
		if err == nil && was.Arriving != origin {
			return fmt.Errorf("%w: %s is here already", queue.ErrState, r.ID)
		}
		if err != nil && !errors.Is(err, queue.ErrNotFound) {
			return err
		}
		h := held{Record: r, rev: was.rev, large: was.large, asItWas: true}
		h.Arriving = origin
		if err = q.put(ctx, &h); !errors.Is(err, errStale) {
			return err
		}
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
}

// Hand takes an item out, if it is as it was.
func (q *Queue) Hand(ctx context.Context, s queue.Stocked) error {
	rev, err := strconv.ParseUint(s.Mark, 10, 64)
	if err != nil {
		return err
	}
	err = q.remove(ctx, s.Record.ID, rev)
	if errors.Is(err, errStale) {
		return fmt.Errorf("%w: %s has changed", queue.ErrLost, s.Record.ID)
	}
	return err
}

// Admit makes an item that was received one as all others are.
func (q *Queue) Admit(ctx context.Context, origin, id string) error {
	settled := false
	err := q.received(ctx, origin, id, func(h *held) error {
		h.Arriving, h.asItWas = "", true
		settled = h.State == queue.Done
		return q.put(ctx, h)
	})
	if err != nil || !settled {
		return err
	}
	return q.unblock(ctx, id) // what waits for it may have come before
}

// Refuse forgets an item that was received.
func (q *Queue) Refuse(ctx context.Context, origin, id string) error {
	return q.received(ctx, origin, id, func(h *held) error {
		err := q.remove(ctx, id, h.rev)
		if err == nil {
			q.dropLarge(ctx, h.large)
		}
		return err
	})
}

// received does something with an item that is being moved here; there may be none.
func (q *Queue) received(ctx context.Context, origin, id string, do func(h *held) error) error {
	for try := 0; ; try++ {
		h, err := q.get(ctx, id)
		if errors.Is(err, queue.ErrNotFound) || err == nil && h.Arriving != origin {
			return nil
		}
		if err == nil {
			err = do(&h)
		}
		if !errors.Is(err, errStale) {
			return err
		}
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
}
