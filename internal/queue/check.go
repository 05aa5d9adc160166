package queue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Problem is something in the queue's directory that is not as it should be.
type Problem struct {
	Where string `json:"where"`
	What  string `json:"what"`
	// Mended says that it was put right.
	Mended bool `json:"mended"`
}

// Report is what Check found.
type Report struct {
	Items    int           `json:"items"`
	States   map[State]int `json:"states"`
	Problems []Problem     `json:"problems"`
}

// staleTemp is how old a half-written file is that nobody writes any more.
const staleTemp = time.Hour

// Check looks at every file of the queue, which nothing else does. With mend it puts
// right what can be put right without losing anything: changes that a crash left half
// done, items whose file says another thing than its name, and temporary files that
// killed processes left. What is foreign or damaged is named and left alone.
func (q *Files) Check(ctx context.Context, mend bool) (Report, error) {
	rep := Report{States: map[State]int{}}
	if mend {
		if _, err := q.Reclaim(ctx); err != nil {
			return rep, err
		}
		unlock, err := q.lock(ctx)
		if err != nil {
			return rep, err
		}
		defer unlock()
	}
	c := &checker{q: q, rep: &rep, mend: mend, items: map[string]Item{}, places: map[string][]place{}}
	for _, s := range States() {
		if err := ctx.Err(); err != nil {
			return rep, err
		}
		if err := c.directory(s); err != nil {
			return rep, err
		}
	}
	for _, id := range slices.Sorted(keys(c.places)) {
		c.item(id)
	}
	c.cycles()
	return rep, nil
}

// TakeOut removes an item that is damaged, once keep has kept what its file holds.
func (q *Files) TakeOut(ctx context.Context, id string, keep func(data []byte) error) error {
	unlock, err := q.lock(ctx)
	if err != nil {
		return err
	}
	err = func() error {
		defer unlock()
		p, err := q.find(id)
		if err != nil {
			return err
		}
		if it, err := q.read(&p); err == nil {
			return Readable(&it)
		} else if !errors.Is(err, ErrDamaged) || errors.Is(err, ErrNewer) {
			return err
		}
		data, err := readRegular(q.path(&p), maxReadBytes)
		if err != nil {
			return fmt.Errorf("%w: %s cannot be read at all (%w), so it is kept: look at it, and remove it by hand", ErrDamaged, q.path(&p), err)
		}
		if err := keep(data); err != nil {
			return err
		}
		return storeError(q.opt.Disk.RemoveSeveral(q.dir(p.state), []string{p.name()}))
	}()
	if err == nil {
		q.forget()
		q.record(ctx, Change{Op: OpRemove, Item: Item{ID: id}, Note: "damaged", By: q.opt.Actor})
	}
	return err
}

// Readable is ErrState about an item that is to be taken out as a damaged one and is none, for
// backends.
func Readable(it *Item) error {
	return fmt.Errorf("%w: %s is not damaged, it is %s; `reprise queue drop %s` ends it", ErrState, it.ID, it.State, it.ID)
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

type checker struct {
	q      *Files
	rep    *Report
	mend   bool
	items  map[string]Item
	places map[string][]place
}

func (c *checker) problem(where, format string, args ...any) *Problem {
	c.rep.Problems = append(c.rep.Problems, Problem{Where: where, What: fmt.Sprintf(format, args...)})
	return &c.rep.Problems[len(c.rep.Problems)-1]
}

// directory looks at the names of one state.
func (c *checker) directory(s State) error {
	list, trouble, err := c.q.places(s)
	if errors.Is(err, syscall.ENOTDIR) { // the others are looked at all the same
		c.problem(c.q.dir(s), "something else lies in the place of this directory, and nothing is claimed or added until that is moved away")
		return nil
	}
	if err != nil {
		return err
	}
	for _, t := range trouble {
		c.problem(t.Where, "%s; it is left alone", t.Why)
	}
	if c.mend {
		removed, err := c.q.opt.Disk.RemoveStale(c.q.dir(s), c.q.now().Add(-staleTemp))
		for _, n := range removed {
			c.problem(filepath.Join(c.q.dir(s), n), "half written by a process that was killed").Mended = true
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, p := range list {
		it, err := c.q.read(&p)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has moved on
		}
		if err != nil {
			// The path stands in front of it already.
			what := strings.ReplaceAll(err.Error(), c.q.path(&p)+": ", "")
			if errors.Is(err, ErrNewer) {
				c.problem(c.q.path(&p), "%s; it is left alone", what)
				continue
			}
			c.problem(c.q.path(&p), "%s; it is left alone: restore or mend the file (its format is in docs/format.md), or give the item up: `reprise queue check --take-out %s` moves the file out of the queue", what, p.id)
			continue
		}
		c.rep.Items++
		c.rep.States[s]++
		c.items[p.id] = it
		c.places[p.id] = append(c.places[p.id], p)
	}
	return nil
}

// item compares what an item's file says with where it is.
func (c *checker) item(id string) {
	q := c.q
	places := c.places[id]
	if len(places) > 1 {
		now := q.newest(places) // one that moved while we looked is in one place only
		for _, p := range places {
			if is, err := q.read(&p); err == nil && is.ID == id && p != now && c.stays(&p) {
				c.problem(q.path(&p), "%s", copyOf(&now))
			}
		}
		return
	}
	p, it := places[0], c.items[id]
	if p.state != Ready && (p.state != Blocked || p.why == whyParked) {
		return
	}
	to, err := q.belongs(&p, &it)
	if err != nil {
		c.problem(q.path(&p), "%v", err)
		return
	}
	if p.state == Blocked && to.state == Blocked {
		// One that the look at the directories has not found may be damaged, or new.
		if _, seen := c.places[p.waits]; !seen {
			_, err = q.find(p.waits)
		}
		if errors.Is(err, ErrNotFound) {
			c.problem(q.path(&p), "%s", waitsInVain(id, p.waits))
		}
	}
	if to == p || !c.stays(&p) {
		return
	}
	pr := c.problem(q.path(&p), "its file says that it should be %s", filepath.Join(string(to.state), to.name()))
	if c.mend {
		if err := q.arrive(&p, &it, &to); err != nil {
			pr.What += ": " + err.Error()
		} else {
			pr.Mended = true
		}
	}
}

// stays reports whether an item is still where it was.
func (c *checker) stays(p *place) bool {
	_, err := c.q.read(p)
	return err == nil
}

// cycles finds items that wait for each other, which only a hand can have made.
func (c *checker) cycles() {
	c.rep.Problems = append(c.rep.Problems, circles(c.items, func(id string) string { return filepath.Join(c.q.dir(Blocked), id) })...)
}

// Waiting finds items that wait for what is not there, or for each other; where says how a
// person finds an item.
func Waiting(items map[string]Item, where func(id string) string) []Problem {
	var out []Problem
	for _, id := range slices.Sorted(keys(items)) {
		it := items[id]
		if _, ok := items[it.Waits]; it.State == Blocked && it.Waits != "" && !ok {
			out = append(out, Problem{Where: where(id), What: waitsInVain(id, it.Waits)})
		}
	}
	return append(out, circles(items, where)...)
}

func waitsInVain(id, on string) string {
	return fmt.Sprintf("it waits for %s, which is not in the queue: add that, or edit what %s depends on", on, id)
}

func circles(items map[string]Item, where func(id string) string) []Problem {
	var out []Problem
	state := map[string]int{} // 1 on the way, 2 looked at
	for _, root := range slices.Sorted(keys(items)) {
		var way []string
		at := root
		for at != "" && state[at] == 0 {
			state[at] = 1
			way = append(way, at)
			it := items[at]
			at = ""
			if it.State == Blocked {
				at = it.Waits
			}
		}
		if i := slices.Index(way, at); at != "" && i >= 0 {
			out = append(out, Problem{Where: where(at), What: fmt.Sprintf("%s wait for each other: edit what one of them depends on", chain(way[i:], ", "))})
		}
		for _, w := range way {
			state[w] = 2
		}
	}
	return out
}
