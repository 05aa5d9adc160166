package jet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/internal/queue"
)

// errBehind: what was read is older than what is asked about.
var errBehind = errors.New("the servers are behind")

// Add adds items.
func (q *Queue) Add(ctx context.Context, items ...queue.Item) ([]queue.Added, error) {
	items = slices.Clone(items)
	if len(items) == 0 {
		return nil, nil
	}
	now, err := q.time(ctx)
	if err != nil {
		return nil, fmt.Errorf("nothing was added: %w", err)
	}
	order, err := queue.Prepare(items, now, q.opt.Actor, func(name string) (queue.Item, error) { return q.Get(ctx, name) })
	if err != nil {
		return nil, err
	}
	out := make([]queue.Added, len(items))
	for wave := range waves(items, order) {
		if err := q.addTogether(ctx, items, wave, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// addAtOnce is how many items are added at once, so that a long list does not wait for the
// servers once an item.
const addAtOnce = 64

// waves divides the order into parts of which no item needs another of the same.
func waves(items []queue.Item, order []int) func(yield func([]int) bool) {
	return func(yield func([]int) bool) {
		var wave []int
		within := map[string]bool{}
		for _, i := range order {
			if len(wave) == addAtOnce || within[items[i].ID] || slices.ContainsFunc(items[i].DependsOn, func(d string) bool { return within[d] }) {
				if !yield(wave) {
					return
				}
				wave, within = nil, map[string]bool{}
			}
			wave = append(wave, i)
			within[items[i].ID] = true
		}
		if len(wave) > 0 {
			yield(wave)
		}
	}
}

func (q *Queue) addTogether(ctx context.Context, items []queue.Item, wave []int, out []queue.Added) error {
	errs := make([]error, len(wave))
	var wg sync.WaitGroup
	for n, i := range wave {
		wg.Go(func() { out[i], errs[n] = q.addOne(ctx, items[i]) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// addOne adds one item, unless one of its id is there.
func (q *Queue) addOne(ctx context.Context, it queue.Item) (queue.Added, error) {
	r, err := queue.NewRecord(it, q.isDone(ctx))
	if err != nil {
		return queue.Added{}, err
	}
	for try, rev := 0, uint64(0); ; try++ {
		h := held{Record: r, rev: rev}
		err := q.put(ctx, &h)
		if err == nil {
			q.record(ctx, queue.Change{Op: queue.OpAdd, Item: h.Item, To: h.State, By: q.opt.Actor})
			return queue.Added{Item: h.Item, New: true}, nil
		}
		if !errors.Is(err, errStale) {
			return queue.Added{}, err
		}
		was, err := q.get(ctx, it.ID)
		if err == nil {
			return queue.Added{Item: was.Item}, nil
		}
		if !errors.Is(err, queue.ErrNotFound) {
			return queue.Added{}, err
		}
		rev = was.rev // of the word that it was removed, if any
		if err := pause(ctx, try); err != nil {
			return queue.Added{}, err
		}
	}
}

// Get is an item by its id, or by its key.
func (q *Queue) Get(ctx context.Context, id string) (queue.Item, error) {
	h, err := q.get(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		if byKey, kerr := q.get(ctx, queue.KeyID(id)); kerr == nil && byKey.Key == id {
			h, err = byKey, nil
		}
	}
	if err == nil && h.Arriving != "" {
		return queue.Item{}, fmt.Errorf("%w: %s is being moved here; `reprise queue migrate` again finishes that", queue.ErrNotFound, id)
	}
	if err == nil && h.Waits != "" {
		on, oerr := q.get(ctx, h.Waits)
		if oerr != nil && !queue.Over(oerr) {
			return queue.Item{}, oerr
		}
		h.WaitsForDead, h.WaitsForNone = oerr == nil && on.State == queue.Dead, errors.Is(oerr, queue.ErrNotFound)
	}
	return h.Item, err
}

// named calls decide with the record of an item that was named by its id or key.
func (q *Queue) named(ctx context.Context, id string, decide func(h *held, now time.Time) (queue.Change, error)) (queue.Item, error) {
	it, err := q.Get(ctx, id)
	if err != nil {
		return queue.Item{}, err
	}
	now, err := q.time(ctx)
	if err != nil {
		return queue.Item{}, err
	}
	return q.change(ctx, it.ID, func(h *held) (queue.Change, error) {
		c, err := decide(h, now)
		c.By = q.opt.Actor
		return c, err
	})
}

// Park takes an item out of the way.
func (q *Queue) Park(ctx context.Context, id string, t queue.Token, reason string) (queue.Item, error) {
	if t == "" {
		return q.named(ctx, id, func(h *held, now time.Time) (queue.Change, error) {
			if h.State == queue.Claimed {
				return queue.Change{}, queue.WrongState(&h.Item, "parked")
			}
			return queue.Change{Op: queue.OpPark, Note: reason}, h.Aside(now, q.opt.Actor, reason)
		})
	}
	if tid, _, err := queue.ParseToken(t); err != nil || tid != id {
		return queue.Item{}, fmt.Errorf("%w: the token is not one of %s", queue.ErrLost, id)
	}
	return q.held(ctx, t, queue.Entry{Op: queue.OpPark}, func(h *held, now time.Time) (queue.Change, error) {
		by := h.Lease.Worker
		return queue.Change{Op: queue.OpPark, By: by, Note: reason}, h.Aside(now, q.opt.Actor, reason)
	})
}

// Unpark puts an item back where it belongs.
func (q *Queue) Unpark(ctx context.Context, id, reason string) (queue.Item, error) {
	return q.named(ctx, id, func(h *held, now time.Time) (queue.Change, error) {
		return queue.Change{Op: queue.OpUnpark, Note: reason}, h.Back(now, q.opt.Actor, reason, q.isDone(ctx))
	})
}

// Retry gives a dead item its attempts again.
func (q *Queue) Retry(ctx context.Context, id, reason string) (queue.Item, error) {
	return q.named(ctx, id, func(h *held, now time.Time) (queue.Change, error) {
		return queue.Change{Op: queue.OpRetry, Note: reason}, h.Again(now, q.opt.Actor, reason, q.isDone(ctx))
	})
}

// Drop ends an item that nobody is at, or says of a dead one that it is not needed.
func (q *Queue) Drop(ctx context.Context, id, reason string) (queue.Item, error) {
	return q.named(ctx, id, func(h *held, now time.Time) (queue.Change, error) {
		return queue.Change{Op: queue.OpDrop, Note: reason}, h.End(now, q.opt.Actor, reason)
	})
}

// Edit changes an item. Two people who make two items wait for each other at once are both
// refused, or one of them: who has written looks again, and takes it back.
func (q *Queue) Edit(ctx context.Context, id string, e queue.Edit) (queue.Item, error) {
	lookup := func(id string) (queue.Item, error) { return q.Get(ctx, id) }
	var before []string
	it, err := q.named(ctx, id, func(h *held, now time.Time) (queue.Change, error) {
		before = slices.Clone(h.DependsOn)
		return queue.Change{Op: queue.OpEdit, Note: e.Note}, h.Alter(now, q.opt.Actor, &e, lookup, q.isDone(ctx))
	})
	if err != nil || e.DependsOn == nil {
		return it, err
	}
	cycle := queue.LeadsBack(it.ID, it.DependsOn, lookup)
	if !errors.Is(cycle, queue.ErrCycle) {
		return it, nil
	}
	_, err = q.named(ctx, id, func(h *held, now time.Time) (queue.Change, error) {
		if !slices.Equal(h.DependsOn, it.DependsOn) {
			return queue.Change{}, nil // somebody else has changed it since
		}
		undo := queue.Edit{DependsOn: &before, Note: "taken back: it would have waited for itself"}
		return queue.Change{Op: queue.OpEdit, Note: undo.Note}, h.Alter(now, q.opt.Actor, &undo, lookup, q.isDone(ctx))
	})
	if err != nil {
		return it, errors.Join(cycle, err)
	}
	return it, cycle
}

// readTogether is how many items are read at once.
const readTogether = 16

// List lists items.
func (q *Queue) List(ctx context.Context, f queue.Filter) (queue.Listing, error) {
	if err := q.view.catchUp(ctx); err != nil {
		return queue.Listing{}, err
	}
	var rows []row
	for _, r := range q.view.all() {
		if r.bad || (len(f.States) == 0 || slices.Contains(f.States, r.brief.State)) && (f.Task == "" || f.Task == r.brief.Task) {
			rows = append(rows, r)
		}
	}
	var l queue.Listing
	err := q.each(ctx, rows, func(id string, h *held, err error) {
		switch {
		case errors.Is(err, queue.ErrNotFound): // removed meanwhile
		case err != nil:
			l.Trouble = append(l.Trouble, queue.Trouble{Where: q.where(id), Why: strings.TrimPrefix(err.Error(), q.where(id)+": ")})
		case q.view.bad(id):
			l.Trouble = append(l.Trouble, queue.Trouble{Where: q.where(id), Why: byHand})
		case h.Arriving == "" && f.Match(&h.Item):
			if r, ok := q.view.row(h.Waits); ok && !r.bad {
				h.WaitsForDead = r.brief.State == queue.Dead
			} else if !ok && h.Waits != "" {
				h.WaitsForNone = true
			}
			l.Items = append(l.Items, h.Item)
		}
	})
	l.Sort()
	return l, err
}

// byHand is said of an item whose value can be read and whose header says nothing.
const byHand = "it was changed by hand: its header Reprise-Item is not there or damaged, so nobody is given it; `reprise queue edit ITEM` with any change writes it anew"

// each reads the items of rows, several at once, and calls visit with one after the other.
// An error that is not one of an item ends it.
func (q *Queue) each(ctx context.Context, rows []row, visit func(id string, h *held, err error)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan string)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range min(readTogether, len(rows)) {
		wg.Go(func() {
			for id := range next {
				h, err := q.get(ctx, id)
				mu.Lock()
				if err != nil && !errors.Is(err, queue.ErrNotFound) && !errors.Is(err, queue.ErrDamaged) {
					cancel(err)
				} else {
					visit(id, &h, err)
				}
				mu.Unlock()
			}
		})
	}
feed:
	for _, r := range rows {
		select {
		case next <- r.id:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}

// Count is how many items are in each state, by the picture alone.
func (q *Queue) Count(ctx context.Context) (map[queue.State]int, error) {
	if err := q.view.catchUp(ctx); err != nil {
		return nil, err
	}
	n := map[queue.State]int{}
	for _, r := range q.view.all() {
		if !r.bad {
			n[r.brief.State]++
		}
	}
	return n, nil
}

// GC removes settled items that are old.
func (q *Queue) GC(ctx context.Context, r queue.Retention) ([]queue.Item, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	l, err := q.List(ctx, queue.Filter{})
	if err != nil {
		return nil, err
	}
	old := r.Old(l.Items, q.now())
	if r.DryRun {
		return old, nil
	}
	var gone []queue.Item
	for _, it := range old {
		h, err := q.get(ctx, it.ID)
		if errors.Is(err, queue.ErrNotFound) {
			continue
		}
		if err == nil {
			if h.State != it.State || !h.Updated.Equal(it.Updated) {
				continue // somebody retried it meanwhile
			}
			err = q.remove(ctx, it.ID, h.rev)
		}
		if errors.Is(err, errStale) {
			continue
		}
		if err != nil {
			return gone, err
		}
		q.dropLarge(ctx, h.large)
		gone = append(gone, it)
		q.record(ctx, queue.Change{Op: queue.OpRemove, Item: it, From: it.State, By: q.opt.Actor})
	}
	return gone, nil
}

// Check looks at every value of the queue. With mend it finishes what was left half done,
// and removes what no item needs.
func (q *Queue) Check(ctx context.Context, mend bool) (queue.Report, error) {
	rep := queue.Report{States: map[queue.State]int{}}
	if mend {
		if _, err := q.Reclaim(ctx); err != nil {
			return rep, err
		}
	}
	if err := q.view.catchUp(ctx); err != nil {
		return rep, err
	}
	q.view.mu.Lock()
	rows := make([]row, 0, len(q.view.rows))
	for _, r := range q.view.rows {
		rows = append(rows, r)
	}
	q.view.mu.Unlock()
	items := map[string]queue.Item{}
	used := map[string]bool{}
	err := q.each(ctx, rows, func(id string, h *held, err error) {
		switch {
		case errors.Is(err, queue.ErrNotFound):
		case err != nil:
			what := strings.TrimPrefix(err.Error(), q.where(id)+": ") + "; it is left alone"
			if !errors.Is(err, queue.ErrNewer) {
				what += ": `reprise queue check --take-out " + id + "` keeps what it holds in a file, and gives it up"
			}
			rep.Problems = append(rep.Problems, queue.Problem{Where: q.where(id), What: what})
		case q.view.bad(id):
			rep.Problems = append(rep.Problems, queue.Problem{Where: q.where(id), What: byHand})
			used[h.large] = true
		case h.Arriving != "":
			rep.Problems = append(rep.Problems, queue.Problem{Where: q.where(id), What: "it is being moved here, which has not come to its end: `reprise queue migrate` again finishes that"})
			used[h.large] = true
		default:
			items[id] = h.Item
			used[h.large] = true
			rep.Items++
			rep.States[h.State]++
		}
	})
	if err != nil {
		return rep, err
	}
	rep.Problems = append(rep.Problems, queue.Waiting(items, q.where)...)
	q.unused(ctx, used, mend, &rep)
	slices.SortFunc(rep.Problems, func(a, b queue.Problem) int { return strings.Compare(a.Where, b.Where) })
	return rep, nil
}

// TakeOut removes an item that is damaged, once keep has kept what its value holds, and after
// that what lies beside it, where that is there.
func (q *Queue) TakeOut(ctx context.Context, id string, keep func(data []byte) error) error {
	h, msg, err := q.raw(ctx, id)
	if err != nil {
		return err
	}
	if read, err := q.decode(ctx, id, msg, h.rev); err == nil {
		return queue.Readable(&read.Item)
	} else if !errors.Is(err, queue.ErrDamaged) || errors.Is(err, queue.ErrNewer) {
		return err
	}
	data := msg.Data
	if large := msg.Header.Get(largeHeader); large != "" {
		beside, err := q.getLarge(ctx, large)
		if err == nil {
			data = slices.Concat(data, []byte("\n"), beside)
		} else if !errors.Is(err, queue.ErrDamaged) {
			return err
		}
	}
	if err := keep(data); err != nil {
		return err
	}
	err = q.remove(ctx, id, h.rev)
	if errors.Is(err, errStale) {
		return fmt.Errorf("%w: %s was changed meanwhile, and is left as it is now", queue.ErrState, id)
	}
	if err == nil { // what lay beside it goes with the next mending, which knows that nobody needs it
		q.record(ctx, queue.Change{Op: queue.OpRemove, Item: queue.Item{ID: id}, Note: "damaged", By: q.opt.Actor})
	}
	return err
}

// staleLarge is how old an object is that no item names and nobody is about to.
const staleLarge = time.Hour

// unused finds long parts of items that are there no more: a change was refused after
// they were stored, or another took its place.
func (q *Queue) unused(ctx context.Context, used map[string]bool, mend bool, rep *queue.Report) {
	name := q.opt.Conn.Names(q.opt.Project).Large
	store, err := q.opt.Conn.JS.ObjectStore(ctx, name)
	if err != nil {
		return // there is none
	}
	list, err := store.List(ctx)
	if err != nil {
		return
	}
	for _, o := range list {
		if used[o.Name] || q.now().Sub(o.ModTime) < staleLarge {
			continue
		}
		p := queue.Problem{Where: "object store " + name + ", " + o.Name, What: "no item needs it"}
		if mend {
			p.Mended = store.Delete(ctx, o.Name) == nil
		}
		rep.Problems = append(rep.Problems, p)
	}
}

// lookAgain is the longest that a waiter sleeps, lookAlive how often it looks at claims of
// this machine's processes.
const (
	lookAgain = 30 * time.Second
	lookAlive = 5 * time.Second
)

// Wait waits until something may be claimed, or with opt.Arrivals until something has come
// that may not yet, or nothing is left of what was waited for. The watch tells it of changes,
// and timers of the times that items have.
func (q *Queue) Wait(ctx context.Context, opt queue.ClaimOptions) error {
	if err := q.view.catchUp(ctx); err != nil {
		return err
	}
	came, was := false, q.view.left(&opt)
	for {
		if _, err := q.Reclaim(ctx); err != nil {
			return err
		}
		changed, arrived := q.view.next()
		if opt.Begun != nil {
			opt.Begun()
			opt.Begun = nil
		}
		_, err := q.Next(ctx, opt)
		if !errors.Is(err, queue.ErrEmpty) {
			return err
		}
		if opt.Arrivals && (came || q.view.left(&opt).Less(was)) {
			return nil
		}
		t := time.NewTimer(q.sleep())
		for again := false; !again; {
			select {
			case <-ctx.Done():
				t.Stop()
				return fmt.Errorf("wait for work: %w", context.Cause(ctx))
			case <-t.C:
				again = true
			case <-changed:
				var now uint64
				changed, now = q.view.next()
				came = now != arrived
				again = came || opt.Arrivals && q.view.left(&opt).Less(was)
			}
		}
		t.Stop()
	}
}

// sleep is how long nothing can become ready by time alone.
func (q *Queue) sleep() time.Duration {
	now, sleep := q.now(), lookAgain
	sooner := func(at time.Time) {
		if left := at.Sub(now); left > 0 {
			sleep = min(sleep, left+10*time.Millisecond)
		} else {
			sleep = min(sleep, lookAlive)
		}
	}
	for _, r := range q.view.all() {
		switch r.brief.State {
		case queue.Ready:
			if at := time.UnixMicro(r.brief.NotBefore); at.After(now) {
				sooner(at)
			}
		case queue.Claimed:
			sooner(time.UnixMilli(r.brief.Until))
			if r.brief.Holder != "" {
				sleep = min(sleep, lookAlive)
			}
		}
	}
	return sleep
}
