package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// addTogether is how many items are added under one holding of the lock, so that
	// a long list does not keep workers from settling.
	addTogether = 64
	// addWriters is how many of them are written at once: file systems sync several
	// files for little more than the price of one.
	addWriters = 16
)

func jsonValid(b []byte) bool { return json.Valid(b) }

// Add adds items.
func (q *Files) Add(ctx context.Context, items ...Item) ([]Added, error) {
	items = slices.Clone(items)
	now := stamp(q.now())
	find := q.finder()
	order, err := Prepare(items, now, q.opt.Actor, func(name string) (Item, error) { // by id, or by key
		it, err := find(name)
		if errors.Is(err, ErrNotFound) {
			if byKey, kerr := find(keyID(name)); kerr == nil && byKey.Key == name {
				return byKey, nil
			}
		}
		return it, err
	})
	if err != nil {
		return nil, err
	}
	a := adder{q: q, items: items, out: make([]Added, len(items))}
	for wave := range slices.Chunk(order, addTogether) {
		if err := a.some(ctx, wave); err != nil {
			return nil, err
		}
	}
	return a.out, nil
}

// adder adds the items of one call.
type adder struct {
	q     *Files
	items []Item
	out   []Added
	// ids are those of all items that are not settled, as of the count of arrivals.
	ids   map[string]bool
	count time.Time
}

// Prepare fills in what a queue knows of new items, and checks them. It gives the order
// in which they are added: what is depended on first. lookup finds what is in the queue
// by id or key. The error is ErrInvalid or ErrCycle.
func Prepare(items []Item, now time.Time, actor string, lookup Lookup) ([]int, error) {
	at := make([]string, len(items))
	for i := range items {
		at[i] = cmp.Or(items[i].at, fmt.Sprintf("item %d of %d", i+1, len(items)))
		if err := prepare(&items[i], stamp(now).Add(time.Duration(i)*time.Microsecond), actor); err != nil {
			if len(items) == 1 && items[i].at == "" {
				return nil, err // which is the one that was given
			}
			return nil, fmt.Errorf("%s: %w", at[i], err)
		}
	}
	// The same item twice in a list is one; two that were given one id are not, and one of them
	// would be lost. A key says that whatever has it is the same.
	first := map[string]int{}
	for i := range items {
		n, twice := first[items[i].ID]
		switch {
		case !twice:
			first[items[i].ID] = i
		case items[i].Key == "" && (items[n].Title != items[i].Title || items[n].Body != items[i].Body):
			return nil, invalid("%s: the id %s is that of %s too, which is another item (%s): only one of them would be added",
				at[i], items[i].ID, at[n], cut(items[n].Title, 100))
		}
	}
	return sorted(items, lookup)
}

func prepare(it *Item, created time.Time, actor string) error {
	n := Item{
		V: version, ID: it.ID, Key: it.Key, Title: strings.TrimSpace(it.Title), Body: it.Body, Labels: unique(it.Labels),
		DependsOn: unique(it.DependsOn), MaxAttempts: it.MaxAttempts, Source: it.Source, Task: it.Task, Agent: it.Agent,
		NoChangeOK: it.NoChangeOK, Data: it.Data, Created: created, Parked: it.Parked,
	}
	if it.Priority != nil {
		p := *it.Priority
		n.Priority = &p
	}
	if !it.NotBefore.IsZero() {
		n.NotBefore = stamp(it.NotBefore)
	}
	switch {
	case n.ID != "" && n.Key != "":
		return invalid("%s has the key %s, too: one of them names it, and makes adding it again harmless", n.ID, cut(n.Key, 100))
	case n.ID != "":
	case n.Key != "":
		n.ID = keyID(n.Key)
	default:
		n.ID = newID()
	}
	for _, d := range n.DependsOn {
		if d == "" || strings.ContainsAny(d, "\r\n\x00") || len(d) > maxKey {
			return invalid("%q is no id or key to depend on", cut(d, 100))
		}
	}
	deps := n.DependsOn
	n.DependsOn = nil // they may be keys, which are not yet ids
	if err := cmp.Or(checkNewID(n.ID), CheckAgent(n.Agent), n.checkNew()); err != nil {
		return err
	}
	n.DependsOn = deps
	if n.Parked {
		n.Reason = "waits for somebody to look at it"
	}
	n.note(Entry{At: created, Op: OpAdd, By: actor})
	data, err := encode(&n)
	if err != nil {
		return invalid("%s: %w", n.ID, err)
	}
	if len(data) > MaxItemBytes {
		return invalid("%s has %d bytes, more than %d: keep the long part in a file and name that", n.ID, len(data), MaxItemBytes)
	}
	*it = n
	return nil
}

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// sorted turns what is depended on into ids and gives the order in which the items
// are added: what is depended on first, else as they came.
func sorted(items []Item, lookup Lookup) ([]int, error) {
	byName := map[string]int{}
	for i, it := range items {
		if _, ok := byName[it.ID]; !ok {
			byName[it.ID] = i
		}
		if _, ok := byName[it.Key]; !ok && it.Key != "" {
			byName[it.Key] = i
		}
	}
	within := make([][]int, len(items))
	known := map[string]string{}
	for i := range items {
		it := &items[i]
		for n, d := range it.DependsOn {
			if j, ok := byName[d]; ok {
				within[i] = append(within[i], j)
				it.DependsOn[n] = items[j].ID
				continue
			}
			id, ok := known[d]
			if !ok {
				dep, err := lookup(d)
				if err != nil {
					if errors.Is(err, ErrNotFound) {
						err = &MissingError{On: d, text: fmt.Sprintf("%s depends on %s, which is neither in the queue nor added with it", it.ID, cut(d, maxKey))}
					}
					return nil, err
				}
				id = dep.ID
				known[d] = id
			}
			it.DependsOn[n] = id
		}
		it.DependsOn = unique(it.DependsOn)
	}
	return topological(items, within)
}

// topological orders items by their dependencies among themselves.
func topological(items []Item, within [][]int) ([]int, error) {
	order := make([]int, 0, len(items))
	state := make([]byte, len(items)) // 1 on the way, 2 done
	type frame struct{ item, next int }
	for root := range items {
		if state[root] != 0 {
			continue
		}
		state[root] = 1
		stack := []frame{{item: root}}
		for len(stack) > 0 {
			f := &stack[len(stack)-1]
			if f.next == len(within[f.item]) {
				state[f.item] = 2
				order = append(order, f.item)
				stack = stack[:len(stack)-1]
				continue
			}
			dep := within[f.item][f.next]
			f.next++
			switch state[dep] {
			case 1:
				var way []string
				for i, s := range stack {
					if s.item == dep {
						for _, s := range stack[i:] {
							way = append(way, items[s.item].ID)
						}
					}
				}
				return nil, cycle(append(way, items[dep].ID))
			case 0:
				state[dep] = 1
				stack = append(stack, frame{item: dep})
			}
		}
	}
	return order, nil
}

// some adds a few items under the lock.
func (a *adder) some(ctx context.Context, wave []int) error {
	unlock, err := a.q.lock(ctx)
	if err != nil {
		return err
	}
	changes, err := a.locked(wave)
	unlock()
	for _, c := range changes {
		a.q.record(ctx, c)
	}
	return err
}

func (a *adder) locked(wave []int) ([]Change, error) {
	q, items, out := a.q, a.items, a.out
	if err := a.look(); err != nil {
		return nil, err
	}
	var fresh []int
	again := map[int]int{} // the same item, a second time in the list: which of fresh it is
	for _, i := range wave {
		id := items[i].ID
		if is, err := q.present(a.ids, id); err != nil {
			return nil, err
		} else if !is {
			a.ids[id] = true
			fresh = append(fresh, i)
			continue
		}
		if n := slices.IndexFunc(fresh, func(n int) bool { return items[n].ID == id }); n >= 0 {
			again[i] = fresh[n]
			continue
		}
		_, it, err := q.get(id)
		if err != nil {
			return nil, err
		}
		out[i] = Added{Item: it}
	}
	places := make([]place, len(fresh))
	var changes []Change
	var err error
	// Those that wait come last: what they wait for is then in the queue.
	for _, blocked := range []bool{false, true} {
		var now []int
		for n, i := range fresh {
			it := &items[i]
			waits, err := q.waitsFor(it)
			if err != nil {
				return changes, err
			}
			if (waits != "" || it.Parked) != blocked {
				continue
			}
			if it.Parked {
				waits = ""
			}
			p := place{priority: it.Urgency(), created: max(0, it.Created.UnixMicro()), id: it.ID}
			if places[n] = p.ready(it.NotBefore); blocked {
				places[n] = p.blocked(waits, it.NotBefore)
			}
			now = append(now, n)
		}
		if err := q.writeAll(items, fresh, places, now); err != nil {
			return changes, err
		}
		for _, n := range now {
			it := items[fresh[n]]
			q.locate(&it, &places[n])
			out[fresh[n]] = Added{Item: it, New: true}
			changes = append(changes, Change{Op: OpAdd, Item: it, To: it.State, By: q.opt.Actor})
		}
	}
	for i, n := range again {
		out[i] = Added{Item: out[n].Item}
	}
	if len(changes) == 0 {
		return nil, nil
	}
	if err := q.arrived(); err != nil {
		return changes, err
	}
	a.count, err = q.arrivals()
	return changes, err
}

// writeAll writes some new items side by side, and waits until they last.
func (q *Files) writeAll(items []Item, fresh []int, places []place, now []int) error {
	if len(now) == 0 {
		return nil
	}
	last := now[len(now)-1]
	errs := make([]error, len(now))
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(addWriters, len(now)-1) {
		wg.Go(func() {
			for i := range next {
				errs[i] = q.write(&places[now[i]], &items[fresh[now[i]]])
			}
		})
	}
	for i := range len(now) - 1 {
		next <- i
	}
	close(next)
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	// The last one's directory is synced, and with it the names of all.
	it := &items[fresh[last]]
	it.Updated = stamp(q.now())
	data, err := encode(it)
	if err != nil {
		return err
	}
	return q.put(q.opt.Disk.WriteFile, &places[last], data)
}

// look lists the ids that there are, by names alone, unless nothing has arrived since
// the last look: who moves on without arriving keeps its id.
func (a *adder) look() error {
	count, err := a.q.arrivals()
	if err != nil {
		return err
	}
	if a.ids != nil && count.Equal(a.count) {
		return nil
	}
	a.ids, a.count = map[string]bool{}, count
	for _, s := range []State{Ready, Claimed, Blocked, Ready} { // one that moves meanwhile is seen
		list, err := names(a.q.dir(s))
		if err != nil {
			return err
		}
		for _, n := range list {
			if id, ok := strings.CutSuffix(n[strings.LastIndexByte(n, '~')+1:], suffix); ok {
				a.ids[id] = true
			}
		}
	}
	return nil
}

func (q *Files) present(known map[string]bool, id string) (bool, error) {
	if known[id] {
		return true, nil
	}
	for _, s := range []State{Done, Dead} {
		if is, err := q.exists(s, id); err != nil || is {
			return is, err
		}
	}
	return false, nil
}
