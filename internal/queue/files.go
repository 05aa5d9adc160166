package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/internal/durable"
	"reprise/internal/proc"
)

// Options say where a queue of files is, and who works with it.
type Options struct {
	Dir  string
	Now  func() time.Time
	Disk durable.Disk
	// Host is this machine's name. With Process it makes out whose claims are whose.
	Host string
	// Process is the process that this queue's bound claims end with; the zero ID is
	// none, and then only leases count.
	Process proc.ID
	// Boot is this boot's name (proc.ID.Boot of any process here), for telling
	// whether the holder of a claim lives; it is taken from Process where that is set.
	Boot string
	// Alive tells whether a process runs; nil asks the system.
	Alive func(proc.ID) bool
	// Actor is who does what needs no claim, for the history.
	Actor string
	// Record is told of each change once it has been made. nil is nobody. What it
	// does is its own affair: the change stands.
	Record func(context.Context, Change)
	// Watch is told of new files in directories; nil is [WatchDirs]. It is for tests whose
	// time is not the machine's.
	Watch func(dirs ...string) (Watched, error)
}

// Files is a queue of plain files in one directory. It is made by [Open], which
// touches nothing.
type Files struct {
	opt     Options
	machine string
	at      map[State]string // the directories, each with a separator at its end

	mu    sync.Mutex
	index index
	dirs  bool // the directories are there
	swept time.Time
	// sweepTook is how long the last look for something to sweep took.
	sweepTook time.Duration
	overdue   *Overdue
}

const (
	dirPerm  = 0o700
	filePerm = 0o600

	lockName     = "queue.lock"
	arrivalsName = "arrivals"
)

// Open is the queue in a directory, which the first item that is added makes.
func Open(opt Options) *Files {
	if opt.Alive == nil {
		opt.Alive = proc.ID.Alive
	}
	if opt.Boot == "" {
		opt.Boot = opt.Process.Boot
	}
	m := machine(opt.Host, opt.Boot)
	at := make(map[State]string, len(States()))
	for _, s := range States() {
		at[s] = filepath.Join(opt.Dir, string(s)) + string(filepath.Separator)
	}
	return &Files{opt: opt, machine: m, at: at, overdue: &Overdue{Machine: m, Boot: opt.Boot, Alive: opt.Alive}}
}

// Close frees nothing at the moment; claims stay.
func (q *Files) Close() error { return nil }

func (q *Files) path(p *place) string {
	var room [nameRoom]byte
	return q.at[p.state] + string(p.appendName(room[:0]))
}

func (q *Files) dir(s State) string { return strings.TrimSuffix(q.at[s], string(filepath.Separator)) }

func (q *Files) now() time.Time { return q.opt.Now() }

// lock takes the queue's lock, and makes the queue if it is not there.
func (q *Files) lock(ctx context.Context) (func(), error) {
	if err := q.make(); err != nil {
		return nil, err
	}
	name := filepath.Join(q.opt.Dir, lockName)
	unlock, err := q.opt.Disk.Lock(ctx, name)
	if errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil { // a hand removed the queue, and it is begun anew
		if err = q.makeAgain(); err != nil {
			return nil, err
		}
		unlock, err = q.opt.Disk.Lock(ctx, name)
	}
	if err != nil {
		return nil, storeError(err)
	}
	return func() { _ = unlock() }, nil
}

// makeAgain makes the directories whether or not they were there before.
func (q *Files) makeAgain() error {
	q.mu.Lock()
	q.dirs = false
	q.mu.Unlock()
	return q.make()
}

func (q *Files) make() error {
	q.mu.Lock()
	made := q.dirs
	q.mu.Unlock()
	if made {
		return nil
	}
	for _, s := range States() {
		if err := q.opt.Disk.MkdirAll(q.dir(s), dirPerm); err != nil {
			return storeError(err)
		}
	}
	q.mu.Lock()
	q.dirs = true
	q.mu.Unlock()
	return nil
}

// read is the item at a place, with its place filled in.
func (q *Files) read(p *place) (Item, error) {
	path := q.path(p)
	data, err := readRegular(path, maxReadBytes)
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		return Item{}, err // as usual as can be: another worker has it
	case errors.Is(err, errNoItem):
		return Item{}, fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	case errors.Is(err, fs.ErrPermission): // one that may not be read is in nobody's way
		return Item{}, fmt.Errorf("%w: %w; check its permissions", ErrDamaged, err)
	default:
		return Item{}, storeError(fmt.Errorf("read item: %w", err))
	}
	it, err := decode(data)
	if err != nil {
		return Item{}, fmt.Errorf("%s: %w", path, err)
	}
	if it.ID != p.id {
		return Item{}, fmt.Errorf("%w: %s: it says that its id is %s", ErrDamaged, path, it.ID)
	}
	q.locate(&it, p)
	return it, nil
}

// locate fills in what an item's place tells.
func (q *Files) locate(it *Item, p *place) {
	it.State, it.Claim, it.Waits, it.WaitsForDead, it.WaitsForNone = p.state, nil, "", false, false
	if p.state != Done && p.state != Dead {
		it.Fence = max(it.Fence, p.fence)
	}
	if p.state == Blocked {
		it.Waits = p.waits
	}
	if p.state == Claimed {
		h := &Holder{Worker: p.worker, Fence: p.fence, Since: time.UnixMilli(p.since).UTC(), Until: time.UnixMilli(p.until).UTC()}
		if m, id, ok := parseHolder(p.holder, q.opt.Boot); ok {
			h.PID, h.Here = id.PID, m == q.machine
		}
		it.Claim = h
	}
}

// write puts an item where p says, replacing what is there. It lasts with the next
// change of the directory that is waited for.
func (q *Files) write(p *place, it *Item) error {
	it.V = version
	it.Updated = stamp(q.now())
	data, err := encode(it)
	if err != nil {
		return fmt.Errorf("write item %s: %w", it.ID, err)
	}
	if len(data) > maxReadBytes {
		return invalid("%s would have %d bytes, more than %d", it.ID, len(data), maxReadBytes)
	}
	return q.put(q.opt.Disk.WriteFileHot, p, data)
}

// put writes by one of a disk's ways. A directory that a hand removed is made again.
func (q *Files) put(write func(path string, data []byte, perm fs.FileMode) error, p *place, data []byte) error {
	err := write(q.path(p), data, filePerm)
	if errors.Is(err, fs.ErrNotExist) {
		if err := q.makeAgain(); err != nil {
			return err
		}
		err = write(q.path(p), data, filePerm)
	}
	return storeError(err)
}

// move is one rename of an item, which lasts when it returns nil.
func (q *Files) move(from, to *place) error { return q.renamed(q.opt.Disk.Rename, from, to) }

// renamed renames by one of a disk's ways. Where a hand removed the directory that the item
// goes to, that is made again.
func (q *Files) renamed(rename func(old, new string) error, from, to *place) error {
	err := rename(q.path(from), q.path(to))
	if errors.Is(err, fs.ErrNotExist) && q.there(from) {
		if err := q.makeAgain(); err != nil {
			return err
		}
		err = rename(q.path(from), q.path(to))
	}
	return storeError(err)
}

// there reports whether something is at a place.
func (q *Files) there(p *place) bool {
	is, err := something(q.path(p))
	return is && err == nil
}

// places lists a directory by its names alone, in the order in which items are claimed. A
// directory that is missing is empty.
func (q *Files) places(s State) ([]place, []Trouble, error) {
	list, trouble, err := q.unordered(s)
	slices.SortFunc(list, func(a, b place) int { return a.less(&b) })
	return list, trouble, err
}

// unordered is places as they come.
func (q *Files) unordered(s State) ([]place, []Trouble, error) {
	names, err := names(q.dir(s))
	if err != nil {
		return nil, nil, err
	}
	list := make([]place, 0, len(names))
	var trouble []Trouble
	for _, n := range names {
		p, ok := parsePlace(s, n)
		if !ok {
			if !durable.IsTemp(n) { // of a write that is under way, or was killed
				trouble = append(trouble, Trouble{Where: filepath.Join(q.dir(s), n), Why: "its name is not one that the queue gives"})
			}
			continue
		}
		list = append(list, p)
	}
	return list, trouble, nil
}

func names(dir string) ([]string, error) {
	d, err := durable.OpenDirectory(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, storeError(err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, storeError(fmt.Errorf("list %s: %w", dir, err))
	}
	return names, nil
}

// exists reports whether an item is settled as s.
func (q *Files) exists(s State, id string) (bool, error) {
	is, err := something(q.at[s] + id + suffix)
	return is, storeError(err)
}

// find is where an item is, by id. With the lock in hand the answer holds; without
// it the item may have moved since.
func (q *Files) find(id string) (place, error) {
	if err := CheckID(id); err != nil {
		return place{}, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	for range 3 { // it may move from a directory not yet looked at to one that was
		var found []place
		for _, s := range []State{Ready, Claimed, Blocked} {
			list, err := names(q.dir(s))
			if err != nil {
				return place{}, err
			}
			for _, n := range list {
				if !strings.HasSuffix(n, "~"+id+suffix) {
					continue
				}
				if p, ok := parsePlace(s, n); ok && p.id == id {
					found = append(found, p)
				}
			}
		}
		for _, s := range []State{Done, Dead} {
			is, err := q.exists(s, id)
			if err != nil {
				return place{}, err
			}
			if is {
				found = append(found, place{state: s, id: id})
			}
		}
		if len(found) > 0 {
			return q.newest(found), nil
		}
	}
	return place{}, fmt.Errorf("%w: %s", ErrNotFound, id)
}

// newest is the one of an item's places that counts, should a hand have made a copy:
// the one with the highest number, and of two with the same the settled one.
func (q *Files) newest(list []place) place {
	if len(list) == 1 {
		return list[0]
	}
	number := func(p *place) uint64 {
		n := 2 * p.fence
		if p.state == Done || p.state == Dead {
			if it, err := q.read(p); err == nil {
				n = 2*it.Fence + 1
			}
		}
		return n
	}
	return slices.MaxFunc(list, func(a, b place) int { return cmp.Compare(number(&a), number(&b)) })
}

// IsToken reports whether a text looks like a token, and not like an id or a key.
func IsToken(s string) bool {
	_, _, err := ParseToken(Token(s))
	return err == nil
}

// record tells of a change that was made.
func (q *Files) record(ctx context.Context, c Change) {
	if q.opt.Record != nil {
		q.opt.Record(context.WithoutCancel(ctx), c)
	}
}

// Get is an item by its id, or by its key.
func (q *Files) Get(_ context.Context, id string) (Item, error) {
	_, it, err := q.get(id)
	if errors.Is(err, ErrNotFound) {
		if _, byKey, kerr := q.get(keyID(id)); kerr == nil && byKey.Key == id {
			return byKey, nil
		}
	}
	return it, err
}

func (q *Files) get(id string) (place, Item, error) {
	for range 5 { // it may move between the two looks
		p, err := q.find(id)
		if err != nil {
			return p, Item{}, err
		}
		it, err := q.read(&p)
		if !errors.Is(err, fs.ErrNotExist) {
			if err == nil && it.Waits != "" {
				on, ferr := q.find(it.Waits)
				it.WaitsForDead, it.WaitsForNone = ferr == nil && on.state == Dead, errors.Is(ferr, ErrNotFound)
				if ferr != nil && !it.WaitsForNone {
					err = ferr
				}
			}
			return p, it, err
		}
	}
	return place{}, Item{}, fmt.Errorf("%w: %s moves faster than it can be looked at; try again", ErrNotFound, id)
}
