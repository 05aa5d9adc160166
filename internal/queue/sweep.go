package queue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// grace is how much longer a claim whose lease ran out is left to a holder that is
// known to live on this machine. After a sleep or a step of the clock all leases have
// run out at once, and their holders need a moment to extend them.
const grace = 2 * DefaultRenew

// sweepSometimes sweeps when that was not done lately; done says that it was.
func (q *Files) sweepSometimes(ctx context.Context) (done bool, err error) {
	now := q.now()
	q.mu.Lock()
	age, every := now.Sub(q.swept), max(sweepEvery, seldom*q.sweepTook)
	q.mu.Unlock()
	if age >= 0 && age < every {
		return false, nil
	}
	_, err = q.Reclaim(ctx)
	return err == nil, err
}

// Reclaim sweeps: claims that are over, what a crash left half done, and items that
// wait for one that is done by now.
func (q *Files) Reclaim(ctx context.Context) ([]Item, error) {
	began := q.now()
	q.mu.Lock()
	q.swept = began
	q.mu.Unlock()
	over, err := q.over()
	if err != nil {
		return nil, err
	}
	stuck, err := q.stuck()
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	q.sweepTook = q.since(began)
	q.mu.Unlock()
	if len(over)+len(stuck) == 0 {
		return nil, nil // and the lock was not needed
	}
	unlock, err := q.lock(ctx)
	if err != nil {
		return nil, err
	}
	items, changes, err := q.sweep()
	unlock()
	for _, c := range changes {
		q.record(ctx, c)
	}
	return items, err
}

// sweep does it, under the lock. What is damaged is passed over.
func (q *Files) sweep() (items []Item, changes []Change, err error) {
	over, err := q.over()
	if err != nil {
		return nil, nil, err
	}
	var failed []error
	for _, p := range over {
		it, c, err := q.reclaim(p)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, ErrDamaged):
			q.pass(&p, err)
		case err != nil:
			failed = append(failed, err)
		case c.Op != "":
			changes = append(changes, c)
			items = append(items, it)
		}
	}
	stuck, err := q.stuck()
	if err != nil {
		return items, changes, errors.Join(append(failed, err)...)
	}
	moved, err := q.advanceAll(stuck)
	return items, append(changes, moved...), errors.Join(append(failed, err)...)
}

// over lists the claims whose holders may be taken to be gone.
func (q *Files) over() ([]place, error) {
	list, _, err := q.unordered(Claimed)
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	list = slices.DeleteFunc(list, func(p place) bool { return q.index.damaged[p.name()] != "" })
	q.mu.Unlock()
	claims := make([]Holding, len(list))
	for i, p := range list {
		// A name has whole milliseconds; rounding now down keeps to them.
		claims[i] = Holding{Name: p.name(), Until: time.UnixMilli(p.until), Length: time.Duration(p.lease) * time.Millisecond, Holder: p.holder}
	}
	var over []place
	for i, is := range q.overdue.Judge(time.UnixMilli(q.now().UnixMilli()), claims) {
		if is {
			over = append(over, list[i])
		}
	}
	return over, nil
}

// stuck lists blocked items that need not be: what they wait for is done, or they
// were being changed when the one who did that died. Without the lock some of them
// may be in the middle of that.
func (q *Files) stuck() ([]place, error) {
	list, _, err := q.places(Blocked)
	if err != nil {
		return nil, err
	}
	isDone := func(id string) (bool, error) { return q.exists(Done, id) }
	if len(list) > fewNames {
		done, err := names(q.dir(Done)) // one look for all
		if err != nil {
			return nil, err
		}
		all := make(map[string]bool, len(done))
		for _, n := range done {
			all[strings.TrimSuffix(n, suffix)] = true
		}
		isDone = func(id string) (bool, error) { return all[id], nil }
	}
	var stuck []place
	for _, p := range list {
		is := p.why == whyHeld
		if p.why == whyWaits {
			if is, err = isDone(p.waits); err != nil {
				return nil, err
			}
		}
		if is && !q.passed(&p) {
			stuck = append(stuck, p)
		}
	}
	return stuck, nil
}

// fewNames is how many names are asked for one by one; of more the directory is listed.
const fewNames = 100

func (q *Files) passed(p *place) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.index.damaged[p.name()] != ""
}

// reclaim ends a claim whose holder is gone, or finishes what that had begun.
func (q *Files) reclaim(p place) (Item, Change, error) {
	it, err := q.read(&p)
	if err != nil {
		return Item{}, Change{}, err
	}
	if is, err := q.settledAlready(&p); is || err != nil {
		return Item{}, Change{}, err
	}
	if op := it.unfinished(&p); op != "" {
		to := p.ready(it.NotBefore)
		switch it.moving.To {
		case Done, Dead:
			to = p.settled(it.moving.To)
		case Blocked:
			to = p.blocked(it.moving.Waits, it.NotBefore)
		}
		if err := q.arrive(&p, &it, &to); err != nil {
			return Item{}, Change{}, err
		}
		return it, Change{Op: op, Item: it, From: Claimed, To: to.state, Fence: p.fence, By: p.worker}, nil
	}
	it.Lost++
	note := q.overdue.Why(p.holder)
	to := p.ready(it.NotBefore)
	if it.Lost >= MaxLost {
		to = p.settled(Dead)
		it.Reason = fmt.Sprintf("its worker vanished %d times", it.Lost)
	}
	if err := q.settle(&p, &it, &to, Entry{Op: OpLose, Note: note}); err != nil {
		return Item{}, Change{}, err
	}
	return it, Change{Op: OpLose, Item: it, From: Claimed, To: to.state, Fence: p.fence, By: p.worker, Note: note}, nil
}

// unblock looks at the items that wait for one that was settled.
func (q *Files) unblock(ctx context.Context, id string) error {
	waits := func() ([]place, error) {
		all, err := names(q.dir(Blocked))
		var list []place
		for _, n := range all {
			if !strings.HasPrefix(n, string(whyWaits)+id+"~") {
				continue
			}
			if p, ok := parsePlace(Blocked, n); ok && p.waits == id {
				list = append(list, p)
			}
		}
		slices.SortFunc(list, func(a, b place) int { return a.less(&b) })
		return list, err
	}
	if list, err := waits(); err != nil || len(list) == 0 {
		return err
	}
	unlock, err := q.lock(ctx)
	if err != nil {
		return err
	}
	list, err := waits()
	var changes []Change
	if err == nil {
		changes, err = q.advanceAll(list)
	}
	unlock()
	for _, c := range changes {
		q.record(ctx, c)
	}
	return err
}

func (q *Files) advanceAll(list []place) (changes []Change, err error) {
	var failed []error
	for _, p := range list {
		c, err := q.advance(&p)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, ErrDamaged):
			q.pass(&p, err)
		case err != nil:
			failed = append(failed, err)
		case c.Op != "":
			changes = append(changes, c)
		}
	}
	return changes, errors.Join(failed...)
}

// advance puts a blocked item where it belongs, under the lock: among the ready ones,
// or to wait for the next of its dependencies.
func (q *Files) advance(p *place) (Change, error) {
	it, err := q.read(p)
	if err != nil {
		return Change{}, err
	}
	if is, err := q.settledAlready(p); is || err != nil {
		return Change{}, err
	}
	to, err := q.belongs(p, &it)
	if err != nil || to == *p {
		return Change{}, err
	}
	if p.why == whyHeld && it.moving != nil && it.moving.Fence == p.fence {
		switch it.moving.To {
		case Dead: // it was being dropped
			to = p.settled(Dead)
		case Blocked: // it was being parked
			to = p.blocked("", it.NotBefore)
		}
	}
	if err := q.arrive(p, &it, &to); err != nil {
		return Change{}, err
	}
	if to.state != Ready || p.why == whyHeld {
		return Change{}, nil
	}
	return Change{Op: OpUnblock, Item: it, From: Blocked, To: Ready, Fence: it.Fence}, nil
}

// belongs is where an item that nobody parked belongs: it waits for the first of its
// dependencies that is not done, or is ready.
func (q *Files) belongs(p *place, it *Item) (place, error) {
	waits, err := q.waitsFor(it)
	if err != nil {
		return place{}, err
	}
	at := *p
	at.priority, at.edits = it.Urgency(), max(at.edits, it.edits)
	if waits != "" {
		return at.blocked(waits, it.NotBefore), nil
	}
	return at.ready(it.NotBefore), nil
}

func (q *Files) waitsFor(it *Item) (string, error) {
	for _, d := range it.DependsOn {
		done, err := q.exists(Done, d)
		if err != nil {
			return "", err
		}
		if !done {
			return d, nil
		}
	}
	return "", nil
}

// settledAlready reports whether an item that is not settled by its place is so by another,
// which counts: a hand made a copy, or gave its file a second name. It is passed over.
func (q *Files) settledAlready(p *place) (bool, error) {
	for _, s := range []State{Done, Dead} {
		if is, err := q.exists(s, p.id); err != nil || is {
			if is {
				q.pass(p, fmt.Errorf("an item of this id is %s already", s))
			}
			return is, err
		}
	}
	return false, nil
}

// asNamed compares what the name of a ready item says with what its file says. Where
// a hand changed the file, the item is filed anew by what it says now, and ok is
// false. It is false too for a copy of an item that is settled.
func (q *Files) asNamed(ctx context.Context, p *place, it *Item) (ok bool, err error) {
	if is, err := q.settledAlready(p); is || err != nil {
		return false, err
	}
	to, err := q.belongs(p, it)
	if err != nil || to == *p {
		return err == nil, err
	}
	unlock, err := q.lock(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	now, err := q.read(p)
	if err == nil {
		if to, err = q.belongs(p, &now); err == nil && to != *p {
			err = q.arrive(p, &now, &to)
		}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged) {
		err = nil
	}
	q.forget()
	return false, err
}
