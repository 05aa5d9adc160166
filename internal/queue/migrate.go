package queue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Stocked is an item as it stands in a queue that is moved from. Mark is the backend's own,
// by which it knows whether the item has been changed since.
type Stocked struct {
	Record Record
	Mark   string
}

// Mover is a queue that items can be moved from and to. Between the two an item is never
// such that both would give it to somebody: it is received, which keeps a copy that
// nobody can have; then it is taken out of where it was; then it is admitted. Whoever is
// killed between two of these leaves what another [Migrate] goes on with.
type Mover interface {
	// Origin names the queue among all others.
	Origin() string
	// Still keeps other moves out until the function is called.
	Still(ctx context.Context) (end func(), err error)
	// Stock are all items but those that are being moved here.
	Stock(ctx context.Context) ([]Stocked, []Trouble, error)
	// Received are the ids of those that are being moved here from a queue.
	Received(ctx context.Context, origin string) ([]string, error)
	// Receive keeps an item that comes from a queue; one received from there before is
	// replaced. ErrState: there is an item of that id.
	Receive(ctx context.Context, origin string, r Record) error
	// Hand takes an item out. ErrLost: it is not as it was.
	Hand(ctx context.Context, s Stocked) error
	// Admit makes an item that was received one as all others are; once more does no harm.
	Admit(ctx context.Context, origin, id string) error
	// Refuse forgets an item that was received.
	Refuse(ctx context.Context, origin, id string) error
}

// Moved says what became of a move.
type Moved struct {
	Moved []Item
	// Claimed were left where they are: somebody is at them.
	Claimed []Item
	// There were left because the other queue has an item of that id.
	There []Item
	// Left were changed while they were moved, and stay.
	Left    []Item
	Trouble []Trouble // what cannot be read, and stays
}

// Whole reports whether nothing was left.
func (m *Moved) Whole() bool { return len(m.Claimed)+len(m.There)+len(m.Left)+len(m.Trouble) == 0 }

// Migrate moves all items that nobody is at from one queue to another. It can be killed at
// any moment and called again; called once more it moves what has come since. Numbers of
// claims go on from what they were. With dry nothing is changed. step, where it is not
// nil, is called before each change, with what it is.
func Migrate(ctx context.Context, from, to Mover, dry bool, step func(string)) (Moved, error) {
	if step == nil {
		step = func(string) {}
	}
	var m Moved
	for _, side := range []Mover{from, to} {
		end, err := side.Still(ctx)
		if err != nil {
			return m, err
		}
		defer end()
	}
	stock, trouble, err := from.Stock(ctx)
	if err != nil {
		return m, err
	}
	m.Trouble = trouble
	received, err := to.Received(ctx, from.Origin())
	if err != nil {
		return m, err
	}
	t := transfer{ctx: ctx, from: from, to: to, step: step, m: &m}
	here := map[string]bool{}
	for _, s := range stock {
		here[s.Record.ID] = true
	}
	// What was taken out of there by a move that did not come to its end has no other
	// place than here.
	var orphans []string
	for _, id := range received {
		if !here[id] {
			orphans = append(orphans, id)
		}
	}
	return m, t.run(stock, received, orphans, dry)
}

type transfer struct {
	ctx      context.Context
	from, to Mover
	step     func(string)
	m        *Moved
}

func (t *transfer) run(stock []Stocked, received, orphans []string, dry bool) error {
	var ready []Stocked
	for _, s := range stock {
		it := s.Record.Item
		if it.State == Claimed {
			t.m.Claimed = append(t.m.Claimed, it)
			if !dry && slices.Contains(received, it.ID) { // it was claimed after a move was killed
				t.step("refuse " + it.ID)
				if err := t.to.Refuse(t.ctx, t.from.Origin(), it.ID); err != nil {
					return err
				}
			}
			continue
		}
		if dry {
			t.m.Moved = append(t.m.Moved, it)
			continue
		}
		t.step("receive " + it.ID)
		switch err := t.to.Receive(t.ctx, t.from.Origin(), s.Record); {
		case errors.Is(err, ErrState):
			t.m.There = append(t.m.There, it)
		case err != nil:
			return err
		default:
			ready = append(ready, s)
		}
	}
	if dry {
		return nil
	}
	var handed []Stocked
	for _, s := range ready {
		id := s.Record.ID
		t.step("hand " + id)
		switch err := t.from.Hand(t.ctx, s); {
		case errors.Is(err, ErrLost):
			t.m.Left = append(t.m.Left, s.Record.Item)
			t.step("refuse " + id)
			if err := t.to.Refuse(t.ctx, t.from.Origin(), id); err != nil {
				return err
			}
		case err != nil:
			return err
		default:
			handed = append(handed, s)
		}
	}
	for _, id := range orphans {
		t.step("admit " + id)
		if err := t.to.Admit(t.ctx, t.from.Origin(), id); err != nil {
			return err
		}
	}
	for _, s := range handed {
		t.step("admit " + s.Record.ID)
		if err := t.to.Admit(t.ctx, t.from.Origin(), s.Record.ID); err != nil {
			return err
		}
		t.m.Moved = append(t.m.Moved, s.Record.Item)
	}
	return nil
}

// Where files are that are moved to or from another queue.
const (
	arrivingName = "arriving" // arriving/<origin>/<state>/<name>
	movedName    = "moved"    // moved/<id>.json, as it was when it went
)

// Origin is the directory, and whose it is.
func (q *Files) Origin() string { return "files-" + machine(q.opt.Host, q.opt.Dir) }

// Went reports whether an item was moved from here to another queue.
func (q *Files) Went(id string) bool {
	if CheckID(id) != nil {
		return false
	}
	_, err := os.Stat(filepath.Join(q.opt.Dir, movedName, id+".json"))
	return err == nil
}

// Still holds the queue's lock.
func (q *Files) Still(ctx context.Context) (func(), error) {
	if _, err := q.Reclaim(ctx); err != nil {
		return nil, err
	}
	return q.lock(ctx)
}

// Stock lists the files. The lock is held.
func (q *Files) Stock(ctx context.Context) ([]Stocked, []Trouble, error) {
	places, trouble, err := q.all()
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(places, func(a, b place) int { return a.less(&b) })
	var out []Stocked
	for _, p := range places {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		it, err := q.read(&p)
		switch {
		case errors.Is(err, fs.ErrNotExist): // claimed or given back at this moment
			if p, it, err = q.get(p.id); err != nil {
				trouble = append(trouble, Trouble{Where: q.path(&p), Why: err.Error()})
				continue
			}
		case err != nil:
			trouble = append(trouble, Trouble{Where: q.path(&p), Why: err.Error()})
			continue
		}
		r := Record{Item: it}
		r.moving = nil
		r.edits = max(r.edits, p.edits)
		if p.state == Blocked && p.why == whyHeld {
			trouble = append(trouble, Trouble{Where: q.path(&p), Why: "it is being changed; try again"})
			continue
		}
		out = append(out, Stocked{Record: r, Mark: filepath.Join(string(p.state), p.name())})
	}
	return out, trouble, nil
}

// Hand moves a file out of the queue, by its exact name: one that was claimed since has
// another.
func (q *Files) Hand(_ context.Context, s Stocked) error {
	from := filepath.Join(q.opt.Dir, s.Mark)
	dir := filepath.Join(q.opt.Dir, movedName)
	if err := q.opt.Disk.MkdirAll(dir, dirPerm); err != nil {
		return storeError(err)
	}
	err := q.opt.Disk.Rename(from, filepath.Join(dir, s.Record.ID+suffix))
	q.forget()
	if errors.Is(err, fs.ErrNotExist) {
		if _, serr := os.Lstat(from); errors.Is(serr, fs.ErrNotExist) {
			return fmt.Errorf("%w: %s has changed", ErrLost, s.Record.ID)
		}
	}
	if err != nil {
		return storeError(err)
	}
	return nil
}

func (q *Files) arriving(origin string) string { return filepath.Join(q.opt.Dir, arrivingName, origin) }

// received maps ids to the files that wait to be admitted, from the directory.
func (q *Files) received(origin string) (map[string]place, error) {
	out := map[string]place{}
	for _, s := range States() {
		list, err := names(filepath.Join(q.arriving(origin), string(s)))
		if err != nil {
			return nil, err
		}
		for _, n := range list {
			if p, ok := parsePlace(s, n); ok {
				out[p.id] = p
			}
		}
	}
	return out, nil
}

// Received lists the files that wait to be admitted.
func (q *Files) Received(_ context.Context, origin string) ([]string, error) {
	all, err := q.received(origin)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(keys(all)), nil
}

// Receive writes a file beside the queue, under the name that it will have in it. The lock
// is held.
func (q *Files) Receive(ctx context.Context, origin string, r Record) error {
	if strings.ContainsAny(origin, `/\`) || origin == "" {
		return invalid("%q names no queue", origin)
	}
	switch _, err := q.find(r.ID); {
	case err == nil:
		return fmt.Errorf("%w: %s is here already", ErrState, r.ID)
	case !errors.Is(err, ErrNotFound):
		return err
	}
	p := place{priority: r.Urgency(), created: max(0, r.Created.UnixMicro()), fence: r.Fence, edits: r.edits, id: r.ID}
	switch r.State {
	case Ready:
		p = p.ready(r.NotBefore)
	case Blocked:
		p = p.blocked(r.Waits, r.NotBefore)
	case Done, Dead:
		p = p.settled(r.State)
	default:
		return fmt.Errorf("%w: %s is %s", ErrState, r.ID, r.State)
	}
	if err := q.Refuse(ctx, origin, r.ID); err != nil {
		return err
	}
	it := r.Item
	it.V, it.moving = version, nil
	data, err := encode(&it)
	if err != nil {
		return fmt.Errorf("write item %s: %w", r.ID, err)
	}
	dir := filepath.Join(q.arriving(origin), string(p.state))
	if err := q.opt.Disk.MkdirAll(dir, dirPerm); err != nil {
		return storeError(err)
	}
	if err := q.opt.Disk.WriteFile(filepath.Join(dir, p.name()), data, filePerm); err != nil {
		return storeError(err)
	}
	return nil
}

// Admit moves a file to its place in the queue. The lock is held.
func (q *Files) Admit(_ context.Context, origin, id string) error {
	all, err := q.received(origin)
	if err != nil {
		return err
	}
	p, ok := all[id]
	if !ok {
		return nil
	}
	if err := q.opt.Disk.Rename(filepath.Join(q.arriving(origin), string(p.state), p.name()), q.path(&p)); err != nil {
		return storeError(err)
	}
	q.forget()
	if p.state == Ready || p.state == Blocked {
		return q.arrived()
	}
	return nil
}

// Refuse removes a file that waits to be admitted. The lock is held.
func (q *Files) Refuse(_ context.Context, origin, id string) error {
	all, err := q.received(origin)
	if err != nil {
		return err
	}
	p, ok := all[id]
	if !ok {
		return nil
	}
	if err := q.opt.Disk.RemoveSeveral(filepath.Join(q.arriving(origin), string(p.state)), []string{p.name()}); err != nil {
		return storeError(err)
	}
	return nil
}
