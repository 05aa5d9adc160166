package jet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"reprise/internal/queue"
)

const (
	// sweepEvery is how often a worker that finds enough to do looks for claims of
	// vanished workers.
	sweepEvery = time.Second
	// maxSpread bounds how many items behind the first are as good when several try for
	// the same.
	maxSpread = 31
)

// Claim takes the first item that fits, by one publication that names what it was read
// as: of several who try, the servers let one through.
func (q *Queue) Claim(ctx context.Context, opt queue.ClaimOptions) (queue.Claim, error) {
	if err := opt.Fill(); err != nil {
		return queue.Claim{}, err
	}
	swept, err := q.sweepSometimes(ctx)
	if err != nil {
		return queue.Claim{}, err
	}
	for {
		if err := q.view.catchUp(ctx); err != nil {
			return queue.Claim{}, fmt.Errorf("nothing was claimed: %w", err)
		}
		list := q.view.due(&opt, q.now())
		c, tried, err := q.takeOne(ctx, list, &opt)
		if err != nil || c.Token != "" {
			return c, err
		}
		if tried {
			continue // others were faster: look what there is now
		}
		if swept {
			return queue.Claim{}, q.empty(ctx, &opt)
		}
		if _, err := q.Reclaim(ctx); err != nil {
			return queue.Claim{}, err
		}
		swept = true
	}
}

// takeOne tries for one of the first of those that are due, and for others while it is
// as likely as not that somebody was faster. tried says that there was something.
func (q *Queue) takeOne(ctx context.Context, list []row, opt *queue.ClaimOptions) (c queue.Claim, tried bool, err error) {
	for len(list) > 0 {
		i := q.pick(list)
		r := list[i]
		list = append(list[:i], list[i+1:]...)
		h, err := q.get(ctx, r.id)
		switch {
		case errors.Is(err, queue.ErrDamaged):
			continue // `queue list` and `queue check` name it
		case errors.Is(err, queue.ErrNotFound):
			tried = true
			continue
		case err != nil:
			return queue.Claim{}, tried, err
		}
		if h.State != queue.Ready || h.Arriving != "" || h.NotBefore.After(q.now()) {
			tried = true
			b := briefOf(&h.Record)
			q.view.wrote(r.id, h.rev, &b)
			q.contended(true)
			continue
		}
		if !opt.Want(&h.Item) {
			continue
		}
		tried = true
		c, err := q.take(ctx, &h, opt)
		if errors.Is(err, errStale) {
			q.contended(true)
			continue
		}
		q.contended(false)
		return c, tried, err
	}
	return queue.Claim{}, tried, nil
}

func (q *Queue) take(ctx context.Context, h *held, opt *queue.ClaimOptions) (queue.Claim, error) {
	now, err := q.time(ctx)
	if err != nil {
		return queue.Claim{}, fmt.Errorf("nothing was claimed: %w", err)
	}
	holder := ""
	if opt.Bound {
		holder = q.holder()
	}
	h.Take(now, opt.Lease, opt.Worker, holder)
	if err := q.put(ctx, h); err != nil {
		return queue.Claim{}, err
	}
	q.show(h)
	q.record(ctx, queue.Change{Op: queue.OpClaim, Item: h.Item, From: queue.Ready, To: queue.Claimed, Fence: h.Fence, By: opt.Worker})
	return queue.Claim{Item: h.Item, Token: queue.NewToken(h.ID, h.Fence), Fence: h.Fence, Until: h.Lease.Until}, nil
}

// show fills in what the item tells of its claim.
func (q *Queue) show(h *held) { h.Show(q.machine, q.opt.Boot) }

// pick is which of those that are due is tried for: the first, or where others try, too,
// one of the next that are as urgent.
func (q *Queue) pick(list []row) int {
	q.mu.Lock()
	behind := q.spread
	q.mu.Unlock()
	n := 1
	for n < len(list) && n <= behind && list[n].brief.Priority == list[0].brief.Priority {
		n++
	}
	return rand.IntN(n)
}

// contended keeps how often others were faster.
func (q *Queue) contended(lost bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if lost {
		q.spread = min(2*q.spread+1, maxSpread)
	} else if q.spread > 0 && rand.IntN(8) == 0 {
		q.spread--
	}
}

// empty says why nothing was claimed.
func (q *Queue) empty(ctx context.Context, opt *queue.ClaimOptions) error {
	if opt.ID == "" {
		return queue.ErrEmpty
	}
	it, err := q.Get(ctx, opt.ID)
	switch {
	case err != nil:
		return err
	case it.State == queue.Ready && it.NotBefore.After(q.now()):
		return fmt.Errorf("%w: %s has to wait until %s", queue.ErrEmpty, it.ID, it.NotBefore.Format(time.RFC3339))
	case it.State == queue.Ready && q.view.bad(it.ID):
		return fmt.Errorf("%w: %s: %s", queue.ErrEmpty, it.ID, byHand)
	case it.State == queue.Ready:
		return fmt.Errorf("%w: %s does not fit", queue.ErrEmpty, it.ID)
	}
	return fmt.Errorf("%w: %s is %s", queue.ErrState, it.ID, it.State)
}

// Next is the item that a claim would take. It changes nothing.
func (q *Queue) Next(ctx context.Context, opt queue.ClaimOptions) (queue.Item, error) {
	if err := q.view.catchUp(ctx); err != nil {
		return queue.Item{}, err
	}
	for _, r := range q.view.due(&opt, q.now()) {
		h, err := q.get(ctx, r.id)
		if errors.Is(err, queue.ErrDamaged) || errors.Is(err, queue.ErrNotFound) {
			continue
		}
		if err != nil {
			return queue.Item{}, err
		}
		if h.State == queue.Ready && h.Arriving == "" && opt.Want(&h.Item) {
			return h.Item, nil
		}
	}
	return queue.Item{}, q.empty(ctx, &opt)
}

// held calls decide with the record of a claim whose token is good. word, when it ends the
// claim, may have been said before, and then changes nothing.
func (q *Queue) held(ctx context.Context, t queue.Token, word queue.Entry, decide func(h *held, now time.Time) (queue.Change, error)) (queue.Item, error) {
	id, fence, err := queue.ParseToken(t)
	if err != nil {
		return queue.Item{}, err
	}
	for began := q.opt.Now(); ; {
		var older error
		item, err := q.change(ctx, id, func(h *held) (queue.Change, error) {
			said, stale, err := h.Standing(fence, word)
			switch {
			case stale:
				older = err
				return queue.Change{}, fmt.Errorf("%w: %w", errBehind, err)
			case err != nil || said:
				return queue.Change{}, err
			}
			now, err := q.time(ctx)
			if err != nil {
				return queue.Change{}, err
			}
			return decide(h, now)
		})
		if errors.Is(err, queue.ErrNotFound) {
			err = queue.Gone(id)
		}
		if !errors.Is(err, errBehind) || q.opt.Now().Sub(began) > q.opt.Patience {
			return item, err
		}
		// A leader that was deposed and does not know it yet has answered: ask again. With one
		// replica there is none; then the item is older than the claim because the server was
		// set back, or the token is made up, and the answer stays what it is.
		if one, err := q.alone(ctx); err != nil {
			return item, err
		} else if one {
			return item, older
		}
		if err := pause(ctx, 7); err != nil {
			return queue.Item{}, err
		}
	}
}

// alone reports whether one server alone keeps the queue. The servers are asked, for what they
// keep may have been given more replicas since the queue was opened.
func (q *Queue) alone(ctx context.Context) (one bool, err error) {
	err = q.patiently(ctx, "look at the queue", func(ctx context.Context) error {
		info, err := q.stream.Info(ctx)
		if err == nil {
			one = info.Config.Replicas <= 1
		}
		return err
	})
	return one, err
}

// Extend renews a lease.
func (q *Queue) Extend(ctx context.Context, t queue.Token, lease time.Duration) (until time.Time, err error) {
	if err := queue.CheckExtension(lease); err != nil {
		return time.Time{}, err
	}
	_, err = q.held(ctx, t, queue.Entry{}, func(h *held, now time.Time) (queue.Change, error) {
		h.Hold(now, lease, q.holder())
		until = h.Lease.Until
		return queue.Change{Op: opSilent}, nil
	})
	if err != nil {
		return time.Time{}, err
	}
	return until, nil
}

// Progress notes how far the work is.
func (q *Queue) Progress(ctx context.Context, t queue.Token, p queue.Progress) error {
	_, err := q.held(ctx, t, queue.Entry{}, func(h *held, now time.Time) (queue.Change, error) {
		if err := h.Note(now, p); err != nil {
			return queue.Change{}, err
		}
		return queue.Change{Op: queue.OpProgress, By: h.Lease.Worker, Note: h.Item.Progress.CurrentStep}, nil
	})
	return err
}

// Done ends an item.
func (q *Queue) Done(ctx context.Context, t queue.Token, o queue.Outcome) (queue.Item, error) {
	it, err := q.held(ctx, t, queue.Entry{Op: queue.OpDone}, func(h *held, now time.Time) (queue.Change, error) {
		by := h.Lease.Worker
		return queue.Change{Op: queue.OpDone, By: by, Note: o.Summary}, h.Finish(now, o)
	})
	if err != nil {
		return it, err
	}
	// The item is done whatever becomes of this; the next sweep makes it good.
	_ = q.unblock(ctx, it.ID)
	return it, nil
}

// Fail gives an item back for later, or ends it.
func (q *Queue) Fail(ctx context.Context, t queue.Token, f queue.Failure) (queue.Item, error) {
	return q.held(ctx, t, f.Said(), func(h *held, now time.Time) (queue.Change, error) {
		by := h.Lease.Worker
		err := h.GiveUp(now, f)
		return queue.Change{Op: queue.OpFail, By: by, Note: h.LastError}, err
	})
}

// Release gives an item back.
func (q *Queue) Release(ctx context.Context, t queue.Token, reason string) (queue.Item, error) {
	return q.held(ctx, t, queue.Entry{Op: queue.OpRelease}, func(h *held, now time.Time) (queue.Change, error) {
		by := h.Lease.Worker
		h.GiveBack(now, reason)
		return queue.Change{Op: queue.OpRelease, By: by, Note: reason}, nil
	})
}

// sweepSometimes sweeps when that was not done lately; done says that it was.
func (q *Queue) sweepSometimes(ctx context.Context) (done bool, err error) {
	now := q.now()
	q.mu.Lock()
	age := now.Sub(q.swept)
	q.mu.Unlock()
	if age >= 0 && age < sweepEvery {
		return false, nil
	}
	_, err = q.Reclaim(ctx)
	return err == nil, err
}

// Reclaim sweeps: claims that are over, and items that wait for one that is done by now.
func (q *Queue) Reclaim(ctx context.Context) ([]queue.Item, error) {
	if err := q.view.catchUp(ctx); err != nil {
		return nil, err
	}
	now := q.now()
	q.mu.Lock()
	q.swept = now
	q.mu.Unlock()
	var claimed, blocked []row
	done := map[string]bool{}
	for _, r := range q.view.all() {
		switch r.brief.State {
		case queue.Claimed:
			claimed = append(claimed, r)
		case queue.Blocked:
			blocked = append(blocked, r)
		case queue.Done:
			done[r.id] = true
		}
	}
	claims := make([]queue.Holding, len(claimed))
	for i, r := range claimed {
		claims[i] = r.holding()
	}
	var items []queue.Item
	var failed []error
	for i, over := range q.overdue.Judge(now, claims) {
		if !over {
			continue
		}
		it, lost, err := q.reclaim(ctx, claimed[i])
		if err != nil && !errors.Is(err, queue.ErrDamaged) && !errors.Is(err, queue.ErrNotFound) {
			failed = append(failed, err)
		} else if lost {
			items = append(items, it)
		}
	}
	for _, r := range blocked {
		if r.brief.Waits != "" && done[r.brief.Waits] {
			if err := q.advance(ctx, r.id); err != nil && !errors.Is(err, queue.ErrDamaged) && !errors.Is(err, queue.ErrNotFound) {
				failed = append(failed, err)
			}
		}
	}
	return items, errors.Join(failed...)
}

func (r *row) holding() queue.Holding {
	return queue.Holding{
		Name: fmt.Sprintf("%s@%d %d", r.id, r.brief.Fence, r.brief.Until), Until: time.UnixMilli(r.brief.Until), Length: r.brief.Length, Holder: r.brief.Holder,
	}
}

// reclaim ends a claim that is over, if it is still as it was when that was found.
func (q *Queue) reclaim(ctx context.Context, r row) (it queue.Item, lost bool, err error) {
	it, err = q.change(ctx, r.id, func(h *held) (queue.Change, error) {
		lost = false
		if h.State != queue.Claimed || h.Fence != r.brief.Fence || h.Lease.Until.UnixMilli() != r.brief.Until || h.Lease.Holder != r.brief.Holder {
			return queue.Change{}, nil // it was extended, or settled
		}
		lost = true
		by, why := h.Lease.Worker, q.overdue.Why(h.Lease.Holder)
		h.Lose(q.now(), why)
		return queue.Change{Op: queue.OpLose, By: by, Note: why}, nil
	})
	return it, lost, err
}

// unblock looks at the items that wait for one that was settled.
func (q *Queue) unblock(ctx context.Context, id string) error {
	r, _ := q.view.row(id)
	if err := q.view.reach(ctx, r.rev); err != nil {
		return err
	}
	var failed []error
	for _, r := range q.view.all() {
		if r.brief.State == queue.Blocked && r.brief.Waits == id {
			failed = append(failed, q.advance(ctx, r.id))
		}
	}
	return errors.Join(failed...)
}

// advance puts a blocked item where it belongs.
func (q *Queue) advance(ctx context.Context, id string) error {
	_, err := q.change(ctx, id, func(h *held) (queue.Change, error) {
		if h.State != queue.Blocked || h.IsParked() {
			return queue.Change{}, nil
		}
		was := h.Waits
		if err := h.File(q.isDone(ctx)); err != nil || h.State == queue.Blocked && h.Waits == was {
			return queue.Change{}, err
		}
		if h.State == queue.Blocked {
			return queue.Change{Op: opSilent}, nil
		}
		return queue.Change{Op: queue.OpUnblock}, nil
	})
	return err
}

// isDone answers whether an item is done, from the servers: what waits for it goes by the
// answer.
func (q *Queue) isDone(ctx context.Context) queue.IsDone {
	return func(id string) (bool, error) {
		if r, ok := q.view.row(id); ok && !r.bad && !r.brief.Arriving && r.brief.State == queue.Done {
			return true, nil // and stays so
		}
		h, err := q.get(ctx, id)
		if errors.Is(err, queue.ErrNotFound) || errors.Is(err, queue.ErrDamaged) {
			return false, nil
		}
		return err == nil && h.State == queue.Done && h.Arriving == "", err
	}
}
