package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// locked calls change with the place of an item, under the lock.
func (q *Files) locked(ctx context.Context, id string, change func(p place, it Item) (Item, Change, error)) (Item, error) {
	known, err := q.Get(ctx, id) // it may be a key
	if err != nil {
		return Item{}, err
	}
	unlock, err := q.lock(ctx)
	if err != nil {
		return Item{}, err
	}
	it, c, err := func() (Item, Change, error) {
		defer unlock()
		for range 5 { // a claim needs no lock, and may have been faster
			p, err := q.find(known.ID)
			if err != nil {
				return Item{}, Change{}, err
			}
			it, err := q.read(&p)
			if err == nil {
				it, c, cerr := change(p, it)
				if !errors.Is(cerr, fs.ErrNotExist) {
					c.From = p.state
					return it, c, cerr
				}
			} else if !errors.Is(err, fs.ErrNotExist) {
				return Item{}, Change{}, err
			}
		}
		return Item{}, Change{}, fmt.Errorf("%w: %s is being claimed and given back all the time; try again", ErrState, known.ID)
	}()
	if err == nil && c.Op != "" {
		c.Item, c.Fence, c.By, c.To = it, it.Fence, q.opt.Actor, it.State
		q.record(ctx, c)
	}
	return it, err
}

// WrongState is ErrState, and says who has the item where that is why.
func WrongState(it *Item, what string) error {
	if it.State == Claimed && it.Claim != nil {
		return fmt.Errorf("%w: %s is claimed by %s until %s, so it cannot be %s before that ends: `reprise runs cancel RUN` stops a run of the loop and sets the item aside (`reprise runs list` has it)", ErrState, it.ID, cmp.Or(it.Claim.Worker, "somebody"),
			it.Claim.Until.Format(time.RFC3339), what)
	}
	return fmt.Errorf("%w: %s is %s, so it cannot be %s", ErrState, it.ID, it.State, what)
}

// Park takes an item out of the way.
func (q *Files) Park(ctx context.Context, id string, t Token, reason string) (Item, error) {
	if t != "" {
		if tid, _, err := ParseToken(t); err != nil || tid != id {
			return Item{}, fmt.Errorf("%w: the token is not one of %s", ErrLost, id)
		}
		return q.held(ctx, t, Entry{Op: OpPark}, func(p place, it Item) (Item, Change, error) {
			it.Reason = cut(reason, maxNote)
			to := p.blocked("", it.NotBefore)
			if err := q.settle(&p, &it, &to, Entry{Op: OpPark, Note: reason}); err != nil {
				return Item{}, Change{}, err
			}
			return it, Change{Op: OpPark, To: Blocked, By: p.worker, Note: reason}, nil
		})
	}
	return q.locked(ctx, id, func(p place, it Item) (Item, Change, error) {
		if p.state != Ready && p.state != Blocked {
			return Item{}, Change{}, WrongState(&it, "parked")
		}
		if reason != "" || p.state != Blocked || p.why != whyParked { // else why it is parked stays
			it.Reason = cut(reason, maxNote)
		}
		it.note(Entry{At: q.now(), Op: OpPark, By: q.opt.Actor, Note: reason})
		c := Change{Op: OpPark, Note: reason}
		to := p.blocked("", it.NotBefore)
		if to == p {
			it.moving = nil
			return it, c, q.write(&p, &it)
		}
		it.moving = &moving{To: Blocked, Fence: p.fence}
		at, err := q.writeAside(p, &it)
		if err != nil {
			return Item{}, Change{}, err
		}
		return it, c, q.arrive(&at, &it, &to)
	})
}

// Unpark puts an item back where it belongs.
func (q *Files) Unpark(ctx context.Context, id, reason string) (Item, error) {
	return q.locked(ctx, id, func(p place, it Item) (Item, Change, error) {
		if p.state != Blocked || p.why != whyParked {
			return Item{}, Change{}, WrongState(&it, "unparked: nobody parked it")
		}
		it.Reason = ""
		it.note(Entry{At: q.now(), Op: OpUnpark, By: q.opt.Actor, Note: reason})
		return q.rewrite(&p, it, Change{Op: OpUnpark, Note: reason})
	})
}

// Retry gives a dead item its attempts again.
func (q *Files) Retry(ctx context.Context, id, reason string) (Item, error) {
	return q.locked(ctx, id, func(p place, it Item) (Item, Change, error) {
		if p.state != Dead {
			return Item{}, Change{}, WrongState(&it, "retried: only a dead one can")
		}
		it.retried()
		it.note(Entry{At: q.now(), Op: OpRetry, By: q.opt.Actor, Note: reason})
		it.edits++
		return q.rewrite(&p, it, Change{Op: OpRetry, Note: reason})
	})
}

// rewrite writes an item where no claim can come between, and then moves it to where
// it belongs by what it says now. A crash between the two leaves it where it was: it
// was not said to be moved, and asking again does it.
func (q *Files) rewrite(p *place, it Item, c Change) (Item, Change, error) {
	it.moving = nil
	at := *p
	if p.state == Dead {
		at = place{state: Dead, priority: it.Urgency(), created: max(0, it.Created.UnixMicro()), fence: it.Fence, edits: it.edits, id: p.id}
	}
	to, err := q.belongs(&at, &it)
	if err != nil {
		return Item{}, Change{}, err
	}
	at, err = q.writeAside(*p, &it)
	if err != nil {
		return Item{}, Change{}, err
	}
	return it, c, q.arrive(&at, &it, &to)
}

// writeAside writes an item where no claim and no sweep can come between: one that is
// ready, or waits, is taken out of the way first. What cannot be written is put back, so
// that what failed has changed nothing; should that fail, too, the next sweep does it. It
// says where the item is then.
func (q *Files) writeAside(p place, it *Item) (place, error) {
	if p.state != Ready && (p.state != Blocked || p.why != whyWaits) {
		return p, q.write(&p, it)
	}
	at := p.held()
	err := q.move(&p, &at)
	if err == nil {
		err = q.write(&at, it)
	}
	if err != nil {
		if q.there(&at) {
			_ = q.opt.Disk.Rename(q.path(&at), q.path(&p))
		}
		q.forget()
	}
	return at, err
}

// Drop ends an item that nobody is at, or says of a dead one that it is not needed.
func (q *Files) Drop(ctx context.Context, id, reason string) (Item, error) {
	return q.locked(ctx, id, func(p place, it Item) (Item, Change, error) {
		if p.state == Claimed || p.state == Done {
			return Item{}, Change{}, WrongState(&it, "dropped")
		}
		it.Reason = cut(cmp.Or(reason, "dropped"), maxNote)
		it.note(Entry{At: q.now(), Op: OpDrop, By: q.opt.Actor, Note: reason})
		if p.state == Dead {
			it.edits = max(it.edits, p.edits) + 1
			return it, Change{Op: OpDrop, Note: reason}, q.write(&p, &it)
		}
		it.moving = &moving{To: Dead, Fence: p.fence}
		at, err := q.writeAside(p, &it)
		if err != nil {
			return Item{}, Change{}, err
		}
		to := p.settled(Dead)
		return it, Change{Op: OpDrop, Note: reason}, q.arrive(&at, &it, &to)
	})
}

// Edit changes an item.
func (q *Files) Edit(ctx context.Context, id string, e Edit) (Item, error) {
	return q.locked(ctx, id, func(p place, it Item) (Item, Change, error) {
		if p.state == Claimed || p.state == Done {
			return Item{}, Change{}, WrongState(&it, "edited")
		}
		if err := applyEdit(&it, &e, q.finder()); err != nil {
			return Item{}, Change{}, err
		}
		it.edits = max(it.edits, p.edits) + 1
		it.note(Entry{At: q.now(), Op: OpEdit, By: q.opt.Actor, Note: e.Note})
		c := Change{Op: OpEdit, Note: e.Note}
		if p.state == Dead {
			return it, c, q.write(&p, &it)
		}
		if p.state == Blocked && p.why == whyParked {
			it.moving = nil
			if err := q.write(&p, &it); err != nil {
				return Item{}, Change{}, err
			}
			to := p.blocked("", it.NotBefore)
			to.priority, to.edits = it.Urgency(), it.edits
			return it, c, q.arrive(&p, &it, &to)
		}
		return q.rewrite(&p, it, c)
	})
}

func (i *Item) retried() {
	i.Attempts, i.Lost, i.NotBefore, i.Reason, i.Progress = 0, 0, time.Time{}, "", nil
}

// Lookup finds an item by its id. Where there is none the error is ErrNotFound.
type Lookup func(id string) (Item, error)

// applyEdit makes the change in the item, and checks what it comes to.
func applyEdit(it *Item, e *Edit, lookup Lookup) error {
	if e.Title != nil {
		it.Title = strings.TrimSpace(*e.Title)
	}
	if e.Body != nil {
		it.Body = *e.Body
	}
	if e.Priority != nil {
		p := *e.Priority
		it.Priority = &p
	}
	if e.Labels != nil {
		it.Labels = unique(*e.Labels)
	}
	if e.NotBefore != nil {
		it.NotBefore = time.Time{}
		if !e.NotBefore.IsZero() {
			it.NotBefore = stamp(*e.NotBefore)
		}
	}
	if e.MaxAttempts != nil {
		it.MaxAttempts = *e.MaxAttempts
	}
	if e.Agent != nil {
		if err := CheckAgent(*e.Agent); err != nil {
			return err
		}
		it.Agent = *e.Agent
	}
	if e.DependsOn != nil {
		deps, err := dependencies(it.ID, unique(*e.DependsOn), lookup)
		if err != nil {
			return err
		}
		it.DependsOn = deps
	}
	if err := it.checkNew(); err != nil {
		return err
	}
	data, err := encode(it)
	if err == nil && len(data) > MaxItemBytes {
		err = invalid("%s would have %d bytes, more than %d", it.ID, len(data), MaxItemBytes)
	}
	return err
}

// dependencies turns ids and keys into ids, and refuses what leads back to the item.
func dependencies(id string, deps []string, lookup Lookup) ([]string, error) {
	for i, d := range deps {
		it, err := lookup(d)
		if errors.Is(err, ErrNotFound) {
			it, err = lookup(keyID(d))
		}
		if errors.Is(err, ErrNotFound) {
			return nil, &MissingError{On: d, text: fmt.Sprintf("%s is to depend on %s, which is not in the queue", id, cut(d, maxKey))}
		}
		if err != nil {
			return nil, err
		}
		deps[i] = it.ID
	}
	deps = unique(deps)
	return deps, LeadsBack(id, deps, lookup)
}

// cycle is ErrCycle with the items that wait for each other, in order.
func cycle(way []string) error { return fmt.Errorf("%w: %s", ErrCycle, chain(way, " → ")) }

// chain is a row of ids for people: of a long one its beginning, its end, and how many
// there are between.
func chain(ids []string, sep string) string {
	const few = 5
	if n := len(ids) - 2*few; n > 1 {
		ids = slices.Concat(ids[:few], []string{fmt.Sprintf("… (%d more) …", n)}, ids[len(ids)-few:])
	}
	return strings.Join(ids, sep)
}

// LeadsBack is ErrCycle where an item that depends on others would wait for itself.
func LeadsBack(id string, deps []string, lookup Lookup) error {
	from := map[string]string{} // item → who named it
	next := slices.Clone(deps)
	for _, d := range deps {
		from[d] = id
	}
	for len(next) > 0 {
		d := next[0]
		next = next[1:]
		if d == id {
			way := []string{id}
			for at := from[id]; at != id; at = from[at] {
				way = append(way, at)
			}
			slices.Reverse(way)
			return cycle(append([]string{id}, way...))
		}
		it, err := lookup(d)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if it.State == Done {
			continue
		}
		for _, n := range it.DependsOn {
			if _, ok := from[n]; !ok {
				from[n] = d
				next = append(next, n)
			}
		}
	}
	return nil
}

// Sort puts a listing in its order.
func (l *Listing) Sort() {
	slices.SortFunc(l.Items, inOrder)
	slices.SortFunc(l.Trouble, func(a, b Trouble) int { return strings.Compare(a.Where, b.Where) })
}

// Match reports whether a listing by this filter has the item.
func (f *Filter) Match(it *Item) bool {
	return (len(f.States) == 0 || slices.Contains(f.States, it.State)) && it.has(f.Labels) &&
		(f.Key == "" || f.Key == it.Key) && (f.Task == "" || f.Task == it.Task)
}

// inOrder puts what would be claimed first first, and what is settled last.
func inOrder(a, b Item) int {
	settled := func(s State) bool { return s == Done || s == Dead }
	if sa, sb := slices.Index(States(), a.State), slices.Index(States(), b.State); sa != sb {
		return sa - sb
	}
	if settled(a.State) {
		return cmp.Or(b.Updated.Compare(a.Updated), strings.Compare(a.ID, b.ID))
	}
	return cmp.Or(a.Urgency()-b.Urgency(), a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
}

// GC removes settled items that are old.
func (q *Files) GC(ctx context.Context, r Retention) ([]Item, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	if r.DryRun {
		return q.old(ctx, &r)
	}
	unlock, err := q.lock(ctx)
	if err != nil {
		return nil, err
	}
	gone, err := q.removeOld(ctx, &r)
	unlock()
	for _, it := range gone {
		q.record(ctx, Change{Op: OpRemove, Item: it, From: it.State, By: q.opt.Actor})
	}
	return gone, err
}

// old are the settled items that may go.
func (q *Files) old(ctx context.Context, r *Retention) ([]Item, error) {
	l, err := q.List(ctx, Filter{})
	if err != nil {
		return nil, err
	}
	return r.Old(l.Items, q.now()), nil
}

// Check says what is wrong with it. The error is ErrInvalid.
func (r *Retention) Check() error {
	if r.DoneAfter < 0 || r.DeadAfter < 0 || r.Keep < 0 {
		return invalid("retention is never negative")
	}
	return nil
}

// Old are those of a queue's items, in the order of a listing, that may go.
func (r *Retention) Old(items []Item, now time.Time) []Item {
	var gone []Item
	needed := map[string]bool{}
	for _, it := range items {
		if it.State != Done && it.State != Dead {
			need(needed, it)
		}
	}
	for _, s := range []State{Dead, Done} { // what a dead one that stays depends on stays, too
		after := r.DoneAfter
		if s == Dead {
			after = r.DeadAfter
		}
		n := 0
		for _, it := range items {
			if it.State != s {
				continue
			}
			n++
			if after > 0 && n > r.Keep && now.Sub(it.Updated) > after && !needed[it.ID] {
				gone = append(gone, it)
			} else if s == Dead {
				need(needed, it)
			}
		}
	}
	return gone
}

func (q *Files) removeOld(ctx context.Context, r *Retention) (gone []Item, err error) {
	old, err := q.old(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, s := range []State{Done, Dead} {
		var names []string
		var items []Item
		for _, it := range old {
			if it.State == s {
				names, items = append(names, it.ID+suffix), append(items, it)
			}
		}
		if len(names) == 0 {
			continue
		}
		if err := q.opt.Disk.RemoveSeveral(q.dir(s), names); err != nil {
			return gone, storeError(fmt.Errorf("remove from %s: %w", q.dir(s), err))
		}
		gone = append(gone, items...)
	}
	return gone, nil
}

func need(needed map[string]bool, it Item) {
	for _, d := range it.DependsOn {
		needed[d] = true
	}
}
