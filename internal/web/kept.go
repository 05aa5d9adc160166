package web

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"reprise/internal/queue"
	"reprise/internal/run"
	"reprise/internal/web/watch"
)

// kept is something that was read from files, for as long as these are the same: to
// look at names, sizes and times costs a tenth of reading.
type kept[T any] struct {
	mu    sync.Mutex
	sign  uint64
	good  bool
	value T
}

// get is the value as it is on disk. read says whether it may be kept. What is returned
// is shared, and must not be changed.
func (k *kept[T]) get(look func(*watch.Look), read func() (value T, keep bool, err error)) (T, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := watch.NewLook()
	look(&l)
	sign := l.Sum() // looked at before it is read: what is written meanwhile is read the next time
	if k.good && sign == k.sign {
		return k.value, nil
	}
	value, keep, err := read()
	k.value, k.sign, k.good = value, sign, keep && err == nil
	return value, err
}

// allRuns is every run, the newest first. One that has not ended is looked at each
// time, for its supervisor may have died.
func (s *Server) allRuns(ctx context.Context) ([]run.Record, error) {
	return s.keptRuns.get(s.runLook, func() ([]run.Record, bool, error) {
		list, err := s.deps.Runs.List(ctx)
		return list, !slices.ContainsFunc(list, func(r run.Record) bool { return !r.Status.Settled() }), err
	})
}

// runLook looks at the record of every run.
func (s *Server) runLook(l *watch.Look) {
	dirs := []string{s.deps.Runs.Dir()}
	if s.deps.RunDirs != nil {
		dirs = append(dirs, s.deps.RunDirs()...)
	}
	for _, dir := range dirs {
		l.Each(dir, "run.json")
	}
}

// allItems is the whole queue, in the order in which items are claimed.
func (s *Server) allItems(ctx context.Context) (queue.Listing, error) {
	if s.deps.LoopDir == "" || s.deps.Fleet != nil { // on servers there is no file to look at
		var list queue.Listing
		err := s.queueGone.unless(s.deps.Now, func() (err error) {
			list, err = s.deps.Queue.List(ctx, queue.Filter{})
			return err
		})
		return list, err
	}
	return s.keptItems.get(s.queueLook(), func() (queue.Listing, bool, error) {
		list, err := s.deps.Queue.List(ctx, queue.Filter{})
		return list, len(list.Trouble) == 0, err
	})
}

// gone remembers for a moment that the queue's servers are away, so that what asks them
// several times for one page waits once.
type gone struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// unless does what asks the queue, unless that has just been away.
func (g *gone) unless(now func() time.Time, ask func() error) error {
	g.mu.Lock()
	at, err := g.at, g.err
	g.mu.Unlock()
	if err != nil && now().Sub(at) < fleetAway {
		return err
	}
	err = ask()
	if err != nil && !queue.ForNow(err) {
		return err
	}
	g.mu.Lock()
	g.at, g.err = now(), err
	g.mu.Unlock()
	return err
}

// queueLook looks at every item's file: its name, size and time. Of a queue on servers it
// is the number of their last change.
func (s *Server) queueLook() func(*watch.Look) {
	if s.deps.Fleet != nil {
		return func(l *watch.Look) {
			_, items := s.fleetSigns()
			l.Number(items)
		}
	}
	dir := filepath.Join(filepath.Dir(s.deps.LoopDir), "queue")
	return func(l *watch.Look) {
		l.File(filepath.Join(dir, "arrivals"))
		for _, state := range queueStates() {
			l.Dir(filepath.Join(dir, state), true)
		}
	}
}
