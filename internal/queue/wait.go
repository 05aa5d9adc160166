package queue

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"reprise/internal/durable"
)

const (
	// lookAgain is the longest that a waiter sleeps: file systems of other machines
	// tell nothing of changes, and clocks are set.
	lookAgain = 30 * time.Second
	// lookAlive is how often it looks whether another process of this machine that
	// has a claim still runs.
	lookAlive = 5 * time.Second
	// lookPoll is how often it looks where the system cannot watch the directory.
	lookPoll = 2 * time.Second
)

// Watched are what somebody is told of directories.
type Watched struct {
	Events <-chan fsnotify.Event
	Errors <-chan error // more came than could be told
	Close  func() error
}

// WatchDirs has the system tell of what comes into directories.
func WatchDirs(dirs ...string) (Watched, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return Watched{}, err
	}
	for _, dir := range dirs {
		if err := w.Add(dir); err != nil {
			return Watched{}, errors.Join(err, w.Close())
		}
	}
	return Watched{w.Events, w.Errors, w.Close}, nil
}

// Left is what a wait sees of the items that fit and are not settled: whether one is ready,
// be it for later, and whether one is claimed.
type Left struct{ Ready, Claimed bool }

// Less reports whether something that was left is no more: who waits for it has to look anew
// what there is to wait for.
func (l Left) Less(was Left) bool { return was.Ready && !l.Ready || was.Claimed && !l.Claimed }

// left is what is left at the moment. An item that moves meanwhile may be missed, so that
// who waits looks once too often.
func (q *Files) left(opt *ClaimOptions) (l Left, err error) {
	for s, found := range map[State]*bool{Ready: &l.Ready, Claimed: &l.Claimed} {
		list, _, err := q.unordered(s)
		if err != nil {
			return Left{}, err
		}
		q.mu.Lock()
		for i := 0; i < len(list) && !*found; i++ {
			*found, _ = q.fits(&list[i], opt)
		}
		q.mu.Unlock()
	}
	return l, nil
}

// Wait waits until something may be claimed, or with opt.Arrivals until something has come
// that may not yet, or nothing is left of what was waited for. The system tells it of files
// that come and go, and timers of the times that names have.
func (q *Files) Wait(ctx context.Context, opt ClaimOptions) error {
	longest := lookAgain
	var told <-chan fsnotify.Event
	var failed <-chan error
	if err := q.make(); err != nil {
		return err
	}
	watch := q.opt.Watch
	if watch == nil {
		watch = WatchDirs
	}
	dirs := []string{q.dir(Ready)}
	if opt.Arrivals {
		dirs = append(dirs, q.dir(Claimed))
	}
	if w, err := watch(dirs...); err == nil {
		defer w.Close()
		told, failed = w.Events, w.Errors
	} else {
		longest = lookPoll // such as no watches left: then by looking
	}
	var was Left
	if opt.Arrivals {
		var err error
		if was, err = q.left(&opt); err != nil {
			return err
		}
	}
	if opt.Begun != nil {
		opt.Begun()
	}
	arrived := false
	for {
		if _, err := q.Reclaim(ctx); err != nil {
			return err
		}
		_, err := q.Next(ctx, opt)
		if !errors.Is(err, ErrEmpty) {
			return err
		}
		if opt.Arrivals {
			now, err := q.left(&opt)
			if err != nil || arrived || now.Less(was) {
				return err
			}
		}
		sleep, err := q.until(longest)
		if err != nil {
			return err
		}
		t := time.NewTimer(sleep)
		for again := false; !again; {
			select {
			case <-ctx.Done():
				t.Stop()
				return fmt.Errorf("wait for work: %w", context.Cause(ctx))
			case <-t.C:
				again = true
			case e, ok := <-told:
				if !ok {
					told, longest = nil, lookPoll
				}
				if durable.IsTemp(filepath.Base(e.Name)) {
					break
				}
				arrived = ok && e.Has(fsnotify.Create) && filepath.Dir(e.Name) == dirs[0]
				again = !ok || arrived || opt.Arrivals && e.Has(fsnotify.Remove|fsnotify.Rename)
			case <-failed: // more came than could be told
				arrived, again = true, true
			}
		}
		t.Stop()
	}
}

// until is how long nothing can become ready by time alone, and no more than longest.
func (q *Files) until(longest time.Duration) (time.Duration, error) {
	now := q.now().UnixMilli()
	sleep := longest
	sooner := func(ms int64) { sleep = min(sleep, max(time.Duration(ms-now)*time.Millisecond, 0)+10*time.Millisecond) }
	ready, _, err := q.places(Ready)
	if err != nil {
		return 0, err
	}
	for _, p := range ready {
		if p.notBefor > now {
			sooner(p.notBefor)
		}
	}
	claimed, _, err := q.places(Claimed)
	if err != nil {
		return 0, err
	}
	for _, p := range claimed {
		if q.passed(&p) {
			continue
		}
		if m, id, ok := parseHolder(p.holder, q.opt.Boot); ok && m == q.machine && id != q.opt.Process {
			sleep = min(sleep, lookAlive)
		} else if p.until > now {
			sooner(p.until)
		} else {
			sleep = min(sleep, lookAlive)
		}
	}
	return sleep, nil
}
