package queue

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// index is what one process knows of ready/: the names in their order, so that a
// claim neither lists the directory nor reads other items' files. It is derived and
// checked: whoever puts something into ready/ or blocked/ moves the time of the file
// arrivals, which is used as a counter, and then the directory is listed anew. Names
// that another worker has claimed since are found to be gone when they are tried.
type index struct {
	known    bool
	arrivals time.Time // of the counter, when the directory was listed
	dirTime  time.Time // of the directory, at the same moment
	listed   time.Time
	took     time.Duration // to list it
	due      []place       // in order
	later    []place       // that had to wait when they were listed, the soonest first
	labels   map[string]*Item
	damaged  map[string]string // name → why it is passed over
	spread   int               // how many names behind the first are as good, because others try for that
}

// maxSpread bounds it. Of twice as many names as there are workers hardly two take the
// same.
const maxSpread = 31

// recheck is how long a change of ready/ that was not made by this program may stay
// unseen while there is something to claim; in a large queue it is longer, so that no
// worker spends more than a hundredth of its time with listing.
const (
	recheck = 2 * time.Second
	seldom  = 100
)

// arrivals is the counter. A queue without one has had no arrivals.
func (q *Files) arrivals() (time.Time, error) {
	fi, err := os.Lstat(filepath.Join(q.opt.Dir, arrivalsName))
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, storeError(err)
	}
	return fi.ModTime(), nil
}

// arrived counts an arrival. The lock is held. Two seconds are the coarsest step that
// a file system in use has for times, so each step can be told from the one before.
func (q *Files) arrived() error {
	path := filepath.Join(q.opt.Dir, arrivalsName)
	was, err := q.arrivals()
	if err == nil && was.IsZero() {
		was = time.Unix(1_000_000_000, 0)
		err = q.opt.Disk.WriteFileHot(path, nil, filePerm)
	}
	if err == nil {
		err = q.opt.Disk.Touch(path, was.Add(2*time.Second))
	}
	if err != nil {
		return storeError(err)
	}
	return nil
}

// refresh brings the index up to date. q.mu is held.
func (q *Files) refresh(now time.Time, empty bool) error {
	x := &q.index
	count, err := q.arrivals()
	if err != nil {
		return err
	}
	if x.known && count.Equal(x.arrivals) {
		if age := now.Sub(x.listed); !empty && age >= 0 && age < max(recheck, seldom*x.took) {
			return nil
		}
		fi, err := os.Stat(q.dir(Ready))
		if err == nil && fi.ModTime().Equal(x.dirTime) || errors.Is(err, fs.ErrNotExist) {
			x.listed = now
			return nil
		}
	}
	var dirTime time.Time
	if fi, err := os.Stat(q.dir(Ready)); err == nil {
		dirTime = fi.ModTime()
	}
	began := q.now()
	list, _, err := q.places(Ready)
	if err != nil {
		return err
	}
	was, err := q.twice(list)
	if err != nil {
		return err
	}
	for name, why := range x.damaged {
		was[name] = why
	}
	*x = index{known: true, arrivals: count, dirTime: dirTime, listed: now, labels: x.labels, damaged: map[string]string{}, spread: x.spread}
	defer func() { x.took = q.since(began) }()
	for _, p := range list {
		if why, ok := was[p.name()]; ok {
			x.damaged[p.name()] = why // looked at again below, when nothing else is there
		}
		if p.notBefor > now.UnixMilli() {
			x.later = append(x.later, p)
		} else {
			x.due = append(x.due, p)
		}
	}
	slices.SortFunc(x.later, func(a, b place) int { return int(min(max(a.notBefor-b.notBefor, -1), 1)) })
	return nil
}

// twice names the ready places that do not count: of items that are claimed under a higher
// number, and of those that are ready under another name that is newer. A claim waits for
// the disk in claimed/ only, and after a power cut on a file system without a journal the
// name that it had before may be there, too; and hands make copies. Such names are passed
// over.
func (q *Files) twice(ready []place) (map[string]string, error) {
	out := map[string]string{}
	claimed, _, err := q.unordered(Claimed)
	if err != nil || len(ready) == 0 {
		return out, err
	}
	number := make(map[string]uint64, len(claimed))
	for i := range claimed {
		p := &claimed[i]
		number[p.id] = max(number[p.id], p.fence)
	}
	first := make(map[string]*place, len(ready))
	for i := range ready {
		p := &ready[i]
		if n := number[p.id]; n > p.fence {
			out[p.name()] = fmt.Sprintf("the item is claimed under number %d", n)
			continue
		}
		switch f := first[p.id]; {
		case f == nil:
			first[p.id] = p
		case f.fence < p.fence || f.fence == p.fence && f.edits < p.edits:
			out[f.name()] = copyOf(p)
			first[p.id] = p
		default:
			out[p.name()] = copyOf(f)
		}
	}
	return out, nil
}

// since is how long something took, as far as a clock that may be set tells.
func (q *Files) since(began time.Time) time.Duration {
	return min(max(q.now().Sub(began), 0), time.Second)
}

// ripen moves what had to wait among what is due.
func (x *index) ripen(now time.Time) {
	for len(x.later) > 0 && x.later[0].notBefor <= now.UnixMilli() {
		p := x.later[0]
		x.later = x.later[1:]
		at, _ := slices.BinarySearchFunc(x.due, p, func(a, b place) int { return a.less(&b) })
		x.due = slices.Insert(x.due, at, p)
	}
}

// pick takes the first name that fits out of the index. found is false when there is
// none. Where others were faster lately it is one of the first names, by chance, and of
// the same priority: else all workers would try for one name, of whom one gets it. With
// fresh the index is as it was a moment ago, and is looked up to date only when nothing
// is found.
func (q *Files) pick(opt *ClaimOptions, now time.Time, take, fresh bool) (p place, found bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, empty := range []bool{false, true} {
		if !fresh || empty || !q.index.known {
			if err := q.refresh(now, empty); err != nil {
				return p, false, err
			}
		}
		x := &q.index
		x.ripen(now)
		at, behind := -1, 0
		if take && x.spread > 0 {
			behind = rand.IntN(x.spread + 1)
		}
		for i := 0; i < len(x.due); i++ {
			p := &x.due[i]
			if at >= 0 && p.priority != x.due[at].priority {
				break
			}
			if p.notBefor > now.UnixMilli() || len(x.damaged) > 0 && x.damaged[p.name()] != "" || opt.ID != "" && opt.ID != p.id {
				continue
			}
			ok, gone := q.fits(p, opt)
			if gone {
				x.drop(i)
				i--
			}
			if ok {
				if at = i; behind == 0 {
					break
				}
				behind--
			}
		}
		if at >= 0 {
			p := x.due[at]
			if take {
				x.drop(at)
			}
			return p, true, nil
		}
	}
	return p, false, nil
}

// drop takes a name out, which is one of the first.
func (x *index) drop(i int) {
	copy(x.due[1:i+1], x.due[:i])
	x.due = x.due[1:]
}

// contended keeps how often others were faster.
func (q *Files) contended(lost bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if lost {
		q.index.spread = min(2*q.index.spread+1, maxSpread)
	} else {
		q.index.spread -= (q.index.spread + 7) / 8
	}
}

// fits looks whether an item has the labels that are asked for. What a file of one
// name holds does not change, so each is read once.
func (q *Files) fits(p *place, opt *ClaimOptions) (ok, gone bool) {
	if len(opt.Labels) == 0 && opt.Agent == "" && opt.Fits == nil {
		return true, false
	}
	x := &q.index
	name := p.name()
	it := x.labels[name]
	if it == nil {
		read, err := q.read(p)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return false, true
		case errors.Is(err, ErrDamaged):
			x.damaged[name] = err.Error()
			return false, false
		case err != nil:
			return true, false // the claim finds out what is wrong
		}
		it = &Item{ID: read.ID, Labels: read.Labels, Agent: read.Agent, Task: read.Task}
		if x.labels == nil || len(x.labels) > 100_000 {
			x.labels = map[string]*Item{}
		}
		x.labels[name] = it
	}
	return opt.Want(it), false
}

func (i *Item) has(labels []string) bool {
	for _, l := range labels {
		if !slices.Contains(i.Labels, l) {
			return false
		}
	}
	return true
}

func (i *Item) suits(agent string) bool { return agent == "" || i.Agent == "" || i.Agent == agent }

// pass makes the index pass over an item that cannot be read.
func (q *Files) pass(p *place, why error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.index.damaged == nil {
		q.index.damaged = map[string]string{}
	}
	q.index.damaged[p.name()] = why.Error()
}
