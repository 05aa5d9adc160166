package queue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// Fill fills in the defaults. The error is ErrInvalid.
func (o *ClaimOptions) Fill() error {
	if o.Lease == 0 {
		o.Lease = DefaultLease
	}
	return checkLease(o.Lease)
}

// Want reports whether an item is one that is asked for, whatever its state.
func (o *ClaimOptions) Want(it *Item) bool {
	return (o.ID == "" || o.ID == it.ID) && it.has(o.Labels) && it.suits(o.Agent) && (o.Fits == nil || o.Fits(it))
}

// CheckExtension says what is wrong with a length that a lease is to be extended by; 0
// is as long as before.
func CheckExtension(lease time.Duration) error {
	if lease == 0 {
		return nil
	}
	return checkLease(lease)
}

// sweepEvery is how often a worker that finds enough to do looks for claims of
// vanished workers.
const sweepEvery = time.Second

// lookAnew is how many names a claim may find taken by others before it looks whether
// something more urgent has come.
const lookAnew = 16

// Claim takes the first item that fits, by one rename.
func (q *Files) Claim(ctx context.Context, opt ClaimOptions) (Claim, error) {
	if err := opt.Fill(); err != nil {
		return Claim{}, err
	}
	swept, err := q.sweepSometimes(ctx)
	if err != nil {
		return Claim{}, err
	}
	for try := 0; ; try++ {
		if err := ctx.Err(); err != nil {
			return Claim{}, fmt.Errorf("claim: %w", err)
		}
		p, found, err := q.pick(&opt, q.now(), true, try%lookAnew != 0)
		if err != nil {
			return Claim{}, err
		}
		if !found {
			if swept {
				return Claim{}, q.empty(&opt)
			}
			if _, err := q.Reclaim(ctx); err != nil {
				return Claim{}, err
			}
			swept = true
			continue
		}
		c, ok, err := q.take(ctx, &p, &opt)
		if err != nil || ok {
			return c, err
		}
	}
}

// take claims one item; ok is false when another was faster, or it is damaged.
func (q *Files) take(ctx context.Context, p *place, opt *ClaimOptions) (Claim, bool, error) {
	it, err := q.read(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Claim{}, false, nil
	case errors.Is(err, ErrDamaged):
		q.pass(p, err)
		return Claim{}, false, nil
	case err != nil:
		q.forget()
		return Claim{}, false, err
	}
	if ok, err := q.asNamed(ctx, p, &it); err != nil || !ok {
		return Claim{}, false, err
	}
	if err := q.make(); err != nil {
		return Claim{}, false, err
	}
	holder := ""
	if opt.Bound && !q.opt.Process.IsZero() {
		holder = holderName(q.machine, q.opt.Process)
	}
	to := p.claimed(q.now(), opt.Lease, holder, workerName(opt.Worker))
	// One wait for the disk is enough: a claim that stands in claimed/ counts for more than
	// what may still stand in ready/ after a power cut (see index.twice).
	if err := q.renamed(q.opt.Disk.RenameInto, p, &to); err != nil {
		if errors.Is(err, fs.ErrNotExist) && !q.there(p) {
			q.contended(true)
			return Claim{}, false, nil
		}
		_ = q.opt.Disk.Rename(q.path(&to), q.path(p)) // it may have moved before the disk failed
		q.forget()
		return Claim{}, false, err
	}
	q.contended(false)
	q.locate(&it, &to)
	q.record(ctx, Change{Op: OpClaim, Item: it, From: Ready, To: Claimed, Fence: to.fence, By: opt.Worker})
	return Claim{Item: it, Token: NewToken(it.ID, to.fence), Fence: to.fence, Until: time.UnixMilli(to.until).UTC()}, true, nil
}

// forget makes the next look list the directory.
func (q *Files) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.index.known = false
}

// empty says why nothing was claimed.
func (q *Files) empty(opt *ClaimOptions) error {
	if opt.ID == "" {
		return ErrEmpty
	}
	p, it, err := q.get(opt.ID)
	switch {
	case err != nil:
		return err
	case p.state == Ready && it.NotBefore.After(q.now()):
		return fmt.Errorf("%w: %s has to wait until %s", ErrEmpty, it.ID, it.NotBefore.Format(time.RFC3339))
	case p.state == Ready:
		return fmt.Errorf("%w: %s does not fit", ErrEmpty, it.ID)
	}
	return fmt.Errorf("%w: %s is %s", ErrState, it.ID, p.state)
}

// Next is the item that a claim would take. It changes nothing.
func (q *Files) Next(ctx context.Context, opt ClaimOptions) (Item, error) {
	for {
		if err := ctx.Err(); err != nil {
			return Item{}, err
		}
		p, found, err := q.pick(&opt, q.now(), false, false)
		if err != nil {
			return Item{}, err
		}
		if !found {
			return Item{}, q.empty(&opt)
		}
		it, err := q.read(&p)
		if err == nil {
			var settled bool
			if settled, err = q.settledAlready(&p); settled {
				continue // a copy, which no claim takes
			}
		}
		switch {
		case err == nil:
			return it, nil
		case errors.Is(err, ErrDamaged):
			q.pass(&p, err)
		case errors.Is(err, fs.ErrNotExist):
			q.forget()
		default:
			return Item{}, err
		}
	}
}

// held calls change with the place of a claim whose token is good, under the lock.
// said is what is said of it, where it ends the claim: an item whose claim ended in just
// that way stays as it is.
func (q *Files) held(ctx context.Context, t Token, said Entry, change func(p place, it Item) (Item, Change, error)) (Item, error) {
	id, fence, err := ParseToken(t)
	if err != nil {
		return Item{}, err
	}
	if _, err := os.Lstat(q.opt.Dir); errors.Is(err, fs.ErrNotExist) {
		return Item{}, Gone(id) // and with it the queue, which is not begun anew for that
	}
	unlock, err := q.lock(ctx)
	if err != nil {
		return Item{}, err
	}
	it, c, err := func() (Item, Change, error) {
		defer unlock()
		p, it, err := q.claimed(id, fence)
		if err != nil {
			return Item{}, Change{}, err
		}
		if p.state != Claimed || p.fence != fence {
			if it.settled(said, fence) {
				return it, Change{}, nil
			}
			return Item{}, Change{}, it.lost(p.state, fence, max(p.fence, it.Fence), said)
		}
		it, c, err := change(p, it)
		if errors.Is(err, fs.ErrNotExist) && !q.there(&p) {
			err = Gone(id) // a hand took it away meanwhile
		}
		return it, c, err
	}()
	if err == nil && c.Op != "" {
		c.Item, c.Fence, c.From = it, fence, Claimed
		q.record(ctx, c)
	}
	return it, err
}

// claimed is the item of a claim, or what else there is of that id. The lock is held. What
// is nowhere is ErrLost.
func (q *Files) claimed(id string, fence uint64) (p place, it Item, err error) {
	for range 3 { // a claim needs no lock, and hands take none
		if p, err = q.claimOf(id, fence); err == nil {
			it, err = q.read(&p)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if errors.Is(err, ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		err = Gone(id)
	}
	return p, it, err
}

// claimOf is where the claimed item is, or where else an item of that id is.
func (q *Files) claimOf(id string, fence uint64) (place, error) {
	list, err := names(q.dir(Claimed))
	if err != nil {
		return place{}, err
	}
	end := "~" + id + suffix
	for _, n := range list {
		if !strings.HasSuffix(n, end) {
			continue
		}
		if p, ok := parsePlace(Claimed, n); ok && p.id == id && p.fence == fence {
			return p, nil
		}
	}
	return q.find(id)
}

// Extend renews a lease by a rename. A claim that ends with a process ends, from then on,
// with the one of this queue where there is one: it was taken over.
func (q *Files) Extend(ctx context.Context, t Token, lease time.Duration) (time.Time, error) {
	if err := CheckExtension(lease); err != nil {
		return time.Time{}, err
	}
	it, err := q.held(ctx, t, Entry{}, func(p place, it Item) (Item, Change, error) {
		to := p
		if lease != 0 {
			to.lease = lease.Milliseconds()
		} else if to.lease <= 0 {
			to.lease = DefaultLease.Milliseconds()
		}
		to.until = millis(q.now().Add(time.Duration(to.lease) * time.Millisecond))
		if p.holder != "" && !q.opt.Process.IsZero() {
			to.holder = holderName(q.machine, q.opt.Process)
		}
		if to != p {
			if err := q.move(&p, &to); err != nil {
				return Item{}, Change{}, err
			}
		}
		q.locate(&it, &to)
		return it, Change{}, nil
	})
	if err != nil {
		return time.Time{}, err
	}
	return it.Claim.Until, nil
}

// Progress notes how far the work is, in the item's own file.
func (q *Files) Progress(ctx context.Context, t Token, pr Progress) error {
	if err := pr.check(); err != nil {
		return err
	}
	_, err := q.held(ctx, t, Entry{}, func(p place, it Item) (Item, Change, error) {
		pr.CurrentStep, pr.Updated = cut(pr.CurrentStep, maxTitle), stamp(q.now())
		it.Progress = &pr
		if err := q.write(&p, &it); err != nil {
			return Item{}, Change{}, err
		}
		return it, Change{Op: OpProgress, To: Claimed, By: p.worker, Note: pr.CurrentStep}, nil
	})
	return err
}

// settle ends a claim: the item is written where it is, with where it goes, and then
// moved there. A crash between the two leaves a claimed item that says the rest.
func (q *Files) settle(p *place, it *Item, to *place, e Entry) error {
	e.Fence, e.By, e.At = p.fence, p.worker, q.now()
	if it.unfinished(p) != "" {
		it.History = it.History[:len(it.History)-1] // what was said before, and did not come to be
	} else {
		it.note(Entry{At: time.UnixMilli(p.since), Op: OpClaim, By: p.worker, Fence: p.fence})
	}
	it.note(e)
	it.Fence = p.fence
	it.moving = &moving{To: to.state, Fence: p.fence, Waits: to.waits}
	if to.state == Ready {
		it.Progress = nil
	}
	if err := q.write(p, it); err != nil {
		return err
	}
	return q.arrive(p, it, to)
}

// unfinished is how the claim was said to end by a settling that did not come to its
// end; empty if there was none.
func (i *Item) unfinished(p *place) string {
	if p.state != Claimed || i.moving == nil || i.moving.Fence != p.fence || len(i.History) == 0 {
		return ""
	}
	return i.History[len(i.History)-1].Op
}

// arrive moves an item to where it goes, and tells those who wait.
func (q *Files) arrive(from *place, it *Item, to *place) error {
	if err := q.move(from, to); err != nil {
		return err
	}
	q.locate(it, to)
	if to.state == Ready || to.state == Blocked {
		return q.arrived()
	}
	return nil
}

// Done ends an item.
func (q *Files) Done(ctx context.Context, t Token, o Outcome) (Item, error) {
	if err := o.check(); err != nil {
		return Item{}, err
	}
	it, err := q.held(ctx, t, Entry{Op: OpDone}, func(p place, it Item) (Item, Change, error) {
		it.Result, it.LastError, it.Reason = o.kept(), "", ""
		to := p.settled(Done)
		if err := q.settle(&p, &it, &to, Entry{Op: OpDone, Note: o.Summary}); err != nil {
			return Item{}, Change{}, err
		}
		return it, Change{Op: OpDone, To: Done, By: p.worker, Note: o.Summary}, nil
	})
	if err != nil {
		return it, err
	}
	// The item is done whatever becomes of this; the next sweep makes it good.
	_ = q.unblock(ctx, it.ID)
	return it, nil
}

// Fail gives an item back for later, or ends it.
func (q *Files) Fail(ctx context.Context, t Token, f Failure) (Item, error) {
	if err := f.check(); err != nil {
		return Item{}, err
	}
	said := f.Said()
	return q.held(ctx, t, said, func(p place, it Item) (Item, Change, error) {
		if it.unfinished(&p) == OpFail {
			f.Free = true // it has been counted
		}
		to := p.settled(Dead)
		if !it.failed(q.now(), &f) {
			to = p.ready(it.NotBefore)
		}
		e := Entry{Op: OpFail, How: said.How, Attempt: it.Attempts, Note: f.Error}
		if err := q.settle(&p, &it, &to, e); err != nil {
			return Item{}, Change{}, err
		}
		return it, Change{Op: OpFail, To: to.state, By: p.worker, Note: it.LastError}, nil
	})
}

// Release gives an item back.
func (q *Files) Release(ctx context.Context, t Token, reason string) (Item, error) {
	return q.held(ctx, t, Entry{Op: OpRelease}, func(p place, it Item) (Item, Change, error) {
		to := p.ready(it.NotBefore)
		if err := q.settle(&p, &it, &to, Entry{Op: OpRelease, Note: reason}); err != nil {
			return Item{}, Change{}, err
		}
		return it, Change{Op: OpRelease, To: Ready, By: p.worker, Note: reason}, nil
	})
}

// failed counts a failure, and says whether the item is dead by it.
func (i *Item) failed(now time.Time, f *Failure) (dead bool) {
	if !f.Free {
		i.Attempts++
	}
	i.LastError = cut(f.Error, maxNote)
	i.Result = f.Outcome.kept()
	if !f.Permanent && i.Attempts < i.Limit() {
		wait := Backoff(i.Attempts)
		if f.RetryAfter > 0 {
			wait = f.RetryAfter
		}
		i.NotBefore = stamp(now.Add(wait))
		return false
	}
	switch {
	case f.Permanent:
		i.Reason = "failed for good"
	case i.Attempts == 1:
		i.Reason = "failed once"
	default:
		i.Reason = fmt.Sprintf("failed %d times", i.Attempts)
	}
	return true
}

func (f *Failure) check() error {
	if f.RetryAfter < 0 {
		return invalid("retry after %s", f.RetryAfter)
	}
	return f.Outcome.check()
}

func (p *Progress) check() error {
	if p.StepsCompleted < 0 || p.StepsTotal < 0 || p.StepsTotal > 0 && p.StepsCompleted > p.StepsTotal {
		return invalid("%d of %d steps", p.StepsCompleted, p.StepsTotal)
	}
	return nil
}

// checkLease says what is wrong with a length that is asked for.
func checkLease(d time.Duration) error {
	if d < time.Second || d > MaxLease {
		return invalid("a lease of %s; it is from 1s to %s", d, MaxLease)
	}
	return nil
}

func (o *Outcome) check() error {
	if len(o.Data) > 0 && !jsonValid(o.Data) {
		return invalid("the outcome's data is no JSON")
	}
	if n := len(o.Summary) + len(o.Data); n > MaxItemBytes {
		return invalid("the outcome has %d bytes, more than %d: keep it in a file and name that", n, MaxItemBytes)
	}
	return nil
}

// kept is the outcome as it is kept, nil for an empty one.
func (o *Outcome) kept() *Outcome {
	if o.Summary == "" && o.Run == "" && o.Session == "" && len(o.Artifacts) == 0 && len(o.Data) == 0 {
		return nil
	}
	k := *o
	return &k
}
