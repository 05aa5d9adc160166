package queue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// all lists the places of all items. One that moves meanwhile is seen once, where it
// was seen last. Of one that a hand made a copy of, or gave a second name, the place that
// counts is listed, and the others are trouble.
func (q *Files) all() ([]place, []Trouble, error) {
	index := map[string]int{} // id → in places
	var places []place
	several := map[string][]place{}
	var trouble []Trouble
	told := map[string]bool{}
	for _, s := range []State{Ready, Claimed, Blocked, Done, Dead, Ready, Claimed, Blocked} {
		list, bad, err := q.unordered(s)
		if err != nil {
			return nil, nil, err
		}
		for _, t := range bad {
			if !told[t.Where] {
				told[t.Where] = true
				trouble = append(trouble, t)
			}
		}
		if places == nil {
			places = slices.Grow(places, 2*len(list))
		}
		for _, p := range list {
			i, seen := index[p.id]
			switch {
			case !seen:
				index[p.id] = len(places)
				places = append(places, p)
			case places[i] != p:
				if several[p.id] == nil {
					several[p.id] = []place{places[i]}
				}
				if !slices.Contains(several[p.id], p) {
					several[p.id] = append(several[p.id], p)
				}
				places[i] = p
			}
		}
	}
	for id, list := range several {
		now, copies := q.counts(list)
		if now.id != "" {
			places[index[id]] = now
		}
		for _, c := range copies {
			trouble = append(trouble, Trouble{Where: q.path(&c), Why: copyOf(&now)})
		}
	}
	return places, trouble, nil
}

// copyOf says of a place that it is not the one that counts.
func copyOf(now *place) string {
	return fmt.Sprintf("a copy of %s, which is %s; remove it if it is not wanted", now.id, now.state)
}

// counts tells of places at which one item was seen which of them counts, and which are
// copies that a hand made. Those that it has left meanwhile are neither.
func (q *Files) counts(list []place) (now place, copies []place) {
	gone := func(p place) bool { return !q.there(&p) }
	list = slices.DeleteFunc(slices.Clone(list), gone)
	if len(list) == 0 {
		return place{}, nil
	}
	now = q.newest(list)
	// It may have moved from one to the other between the two looks.
	return now, slices.DeleteFunc(list, func(p place) bool { return p == now || gone(p) })
}

// List lists items. Files are read side by side.
func (q *Files) List(ctx context.Context, f Filter) (Listing, error) {
	places, trouble, err := q.all()
	if err != nil {
		return Listing{}, err
	}
	state := make(map[string]State, len(places))
	for i := range places {
		state[places[i].id] = places[i].state
	}
	if len(f.States) > 0 {
		places = slices.DeleteFunc(places, func(p place) bool { return !slices.Contains(f.States, p.state) })
	}
	items, errs := make([]Item, len(places)), make([]error, len(places))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(2*runtime.GOMAXPROCS(0), 1+len(places)/16) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(places) {
					return
				}
				items[i], errs[i] = q.listed(&places[i])
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return Listing{}, err
	}
	l := Listing{Trouble: trouble}
	for i := range items {
		switch it := &items[i]; {
		case errors.Is(errs[i], ErrNotFound): // removed meanwhile
		case errs[i] != nil:
			l.Trouble = append(l.Trouble, Trouble{Where: q.path(&places[i]), Why: withoutPath(errs[i].Error(), q.path(&places[i]))})
		case f.Match(it):
			if on := state[it.Waits]; it.Waits != "" {
				it.WaitsForDead, it.WaitsForNone = on == Dead, on == ""
			}
			l.Items = append(l.Items, *it)
		}
	}
	l.Sort()
	return l, nil
}

// withoutPath is what an error says of a file whose path is told beside it.
func withoutPath(said, path string) string { return strings.Replace(said, path+": ", "", 1) }

// listed is the item that was seen at a place, where it is by now.
func (q *Files) listed(p *place) (Item, error) {
	it, err := q.read(p)
	if errors.Is(err, fs.ErrNotExist) {
		_, it, err = q.get(p.id)
	}
	return it, err
}

// Count is how many items are in each state, told from the names of the files alone: a
// look that costs no more with long items. Files whose names the queue does not give are
// left out; Check tells of them.
func (q *Files) Count(context.Context) (map[State]int, error) {
	n := map[State]int{}
	places, _, err := q.all()
	for i := range places {
		n[places[i].state]++
	}
	return n, err
}

// fewFinds is how many items are found one by one, each by a look at the names of all that
// are not settled, before it is cheaper to keep those.
const fewFinds = 8

// finder finds items by id, as get does, for who asks for many: after a few it looks at all
// names once, and goes by that as long as the items are where they were.
func (q *Files) finder() func(id string) (Item, error) {
	asked := 0
	var at map[string]place
	return func(id string) (Item, error) {
		if asked++; asked > fewFinds && at == nil {
			places, _, err := q.all()
			if err != nil {
				return Item{}, err
			}
			at = make(map[string]place, len(places))
			for _, p := range places {
				at[p.id] = p
			}
		}
		if p, ok := at[id]; ok {
			return q.listed(&p)
		} else if at != nil {
			return Item{}, fmt.Errorf("%w: %s", ErrNotFound, id)
		}
		_, it, err := q.get(id)
		return it, err
	}
}
