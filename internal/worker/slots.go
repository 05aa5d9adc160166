package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"reprise/internal/queue"
)

// Slots bound how many items the loops of a machine work on at once, whichever queues these
// are of. The zero value has no bound; use [NewSlots].
type Slots struct {
	most int

	mu     sync.Mutex
	taken  int
	freed  chan struct{} // closed, and made anew, when something changes
	closed bool
}

// NewSlots has room for so many items.
func NewSlots(most int) *Slots { return &Slots{most: most, freed: make(chan struct{})} }

// Close has nothing more be claimed: whoever waits for room hears that nothing is ready.
func (s *Slots) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.changed()
}

func (s *Slots) changed() {
	close(s.freed)
	s.freed = make(chan struct{})
}

// take waits for room; false where there will be none any more.
func (s *Slots) take(ctx context.Context) (bool, error) {
	for {
		s.mu.Lock()
		freed := s.freed
		switch {
		case s.closed:
			s.mu.Unlock()
			return false, nil
		case s.taken < s.most:
			s.taken++
			s.mu.Unlock()
			return true, nil
		}
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-freed:
		}
	}
}

// adopt counts what is held already, even where that is more than there is room for.
func (s *Slots) adopt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken++
}

func (s *Slots) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	s.changed()
}

// Bounded is a queue from which no more is claimed than there is room for.
type Bounded struct {
	queue.Queue
	slots *Slots

	mu   sync.Mutex
	held map[queue.Token]bool
}

// Bound bounds a queue by slots that it may share with others.
func (s *Slots) Bound(q queue.Queue) *Bounded {
	return &Bounded{Queue: q, slots: s, held: map[queue.Token]bool{}}
}

// Claim implements [queue.Queue]. It waits for room.
func (b *Bounded) Claim(ctx context.Context, opt queue.ClaimOptions) (queue.Claim, error) {
	ok, err := b.slots.take(ctx)
	if err != nil {
		return queue.Claim{}, err
	}
	if !ok {
		return queue.Claim{}, queue.ErrEmpty
	}
	c, err := b.Queue.Claim(ctx, opt)
	if err != nil {
		b.slots.free()
		return c, err
	}
	b.mu.Lock()
	b.held[c.Token] = true
	b.mu.Unlock()
	return c, nil
}

// Extend implements [queue.Queue]. A claim of a worker before this one counts from then on.
func (b *Bounded) Extend(ctx context.Context, t queue.Token, lease time.Duration) (time.Time, error) {
	until, err := b.Queue.Extend(ctx, t, lease)
	if err == nil {
		b.mu.Lock()
		if !b.held[t] {
			b.held[t] = true
			b.slots.adopt()
		}
		b.mu.Unlock()
		return until, nil
	}
	b.over(t, err)
	return until, err
}

// over gives the room of a claim back that is over: by what was said of it, or because it
// is somebody else's.
func (b *Bounded) over(t queue.Token, err error) {
	if err != nil && !errors.Is(err, queue.ErrLost) && !errors.Is(err, queue.ErrNotFound) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held[t] {
		delete(b.held, t)
		b.slots.free()
	}
}

// Done implements [queue.Queue].
func (b *Bounded) Done(ctx context.Context, t queue.Token, o queue.Outcome) (queue.Item, error) {
	it, err := b.Queue.Done(ctx, t, o)
	b.over(t, err)
	return it, err
}

// Fail implements [queue.Queue].
func (b *Bounded) Fail(ctx context.Context, t queue.Token, f queue.Failure) (queue.Item, error) {
	it, err := b.Queue.Fail(ctx, t, f)
	b.over(t, err)
	return it, err
}

// Release implements [queue.Queue].
func (b *Bounded) Release(ctx context.Context, t queue.Token, reason string) (queue.Item, error) {
	it, err := b.Queue.Release(ctx, t, reason)
	b.over(t, err)
	return it, err
}

// Park implements [queue.Queue].
func (b *Bounded) Park(ctx context.Context, id string, t queue.Token, reason string) (queue.Item, error) {
	it, err := b.Queue.Park(ctx, id, t, reason)
	b.over(t, err)
	return it, err
}
