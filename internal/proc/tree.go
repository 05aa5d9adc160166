package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Stopped says what StopTree did.
type Stopped struct {
	// Asked is the number of processes that got the polite signal.
	Asked int
	// Killed is the number of processes that were killed, or ended while the
	// others were.
	Killed int
	// Left is the number of processes that still run; not 0 only with an error.
	Left int
}

// StopTree ends a process and everything that came from it, and returns when
// none is left or ctx ends. Give ctx a deadline: a process stuck in the kernel
// cannot be killed by anyone.
//
// What belongs to the tree: root; all descendants of a member; the members of
// a group or session that a member leads; every process whose environment has
// exactly RunIDVar=marker; and, if the caller is a subreaper, the orphans it
// inherited (so a subreaper should look after one tree only). What has been
// seen once stays a member when its parent dies. The caller itself is never
// one. Zero root or empty marker leave that part out.
//
// All members get SIGTERM and have grace to end; what is left, and what they
// start meanwhile, is killed until a scan finds nothing. grace 0 kills at once.
// If ctx ends first, everything known is killed once before returning.
//
// What can escape: a process that left group, session and parent, and also
// started with an environment without the marker or that this user may not
// read — and only if no subreaper inherited it. On Windows the job object
// named after the marker is ended, and there is no polite signal.
func StopTree(ctx context.Context, root ID, marker string, grace time.Duration) (Stopped, error) {
	t := newTree(root, marker)
	defer t.reap()
	if grace > 0 && politeSignal != nil {
		if err := t.ask(ctx, grace); err != nil {
			return t.result, err
		}
	}
	return t.result, t.kill(ctx)
}

// Sweep lists the processes whose environment has exactly RunIDVar=marker, the
// caller excluded. It needs no parent, group or record, and works after a
// supervisor was killed. It sees the environment a process was started with;
// one that wiped its own, or belongs to another user, is not found. On Windows
// it lists the members of the run's job object.
func Sweep(marker string) ([]ID, error) {
	if err := checkMarker(marker); err != nil {
		return nil, err
	}
	return sweep(marker)
}

func checkMarker(marker string) error {
	if marker == "" || strings.ContainsRune(marker, 0) {
		return fmt.Errorf("sweep processes: %q is no run id", marker)
	}
	return nil
}

// tree is one StopTree at work.
type tree struct {
	root   ID
	marker string
	boot   string
	self   int
	// seen are all members ever found, true once killed.
	seen   map[ID]bool
	asked  map[ID]bool
	denied map[ID]error
	result Stopped
	env    []byte
	// table are the numbers the last scan could ask, members or not; doubt says
	// that the last chase met another, which could not be asked.
	table map[int]bool
	doubt bool
}

func newTree(root ID, marker string) *tree {
	return &tree{
		root: root, marker: marker, boot: bootName(), self: os.Getpid(),
		seen: map[ID]bool{}, asked: map[ID]bool{}, denied: map[ID]error{},
	}
}

// scan returns the members that run now, and remembers them.
func (t *tree) scan() ([]ID, error) {
	t.reap()
	all, err := table()
	if err != nil {
		return nil, err
	}
	members := t.seeds(all)
	grow(members, all, t.self)
	var ids []ID
	for _, p := range all {
		if !members[p.pid] || p.ended || p.pid == t.self || p.pid <= 1 {
			continue
		}
		id := ID{PID: p.pid, Start: p.start, Boot: t.boot}
		ids = append(ids, id)
		if _, ok := t.seen[id]; !ok {
			t.seen[id] = false
		}
	}
	t.result.Left = len(ids)
	return ids, nil
}

// seeds marks the processes that belong by themselves, without looking at
// their parents.
func (t *tree) seeds(all []info) map[int]bool {
	members := map[int]bool{}
	t.table = make(map[int]bool, len(all))
	adopted := adoptedBy(t.self, all)
	for _, p := range all {
		id := ID{PID: p.pid, Start: p.start, Boot: t.boot}
		_, known := t.seen[id]
		t.table[p.pid] = true
		switch {
		case p.pid == t.self:
		case known || id == t.root || adopted[p.pid]:
			members[p.pid] = true
		case t.marker == "" || p.ended:
		default:
			env, err := environOf(p, &t.env)
			if err == nil && markerIn(env) == t.marker {
				members[p.pid] = true
			}
			t.table[p.pid] = !errors.Is(err, ErrGone)
		}
	}
	return members
}

// grow adds children of members and the members of groups and sessions led by
// one, until nothing is new. A group's number cannot be given out again while
// its leader is in the table, so a leader that is a member vouches for it.
func grow(members map[int]bool, all []info, self int) {
	for again := true; again; {
		again = false
		for _, p := range all {
			if members[p.pid] || p.pid == self {
				continue
			}
			if members[p.ppid] || members[p.pgrp] || members[p.session] {
				members[p.pid] = true
				again = true
			}
		}
	}
}

// ask sends the polite signal to all members and waits for their end, the end
// of grace or of ctx. What is left then is kill's.
func (t *tree) ask(ctx context.Context, grace time.Duration) error {
	over := time.NewTimer(grace)
	defer over.Stop()
	for pause := time.Millisecond; ; pause = min(2*pause, 40*time.Millisecond) {
		ids, err := t.scan()
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			if t.asked[id] {
				continue
			}
			t.asked[id] = true
			if err := id.Signal(politeSignal); err == nil {
				t.result.Asked++
			}
		}
		// The table is read again only when those known have ended, or now
		// and then for those they started.
		for range 4 {
			select {
			case <-ctx.Done():
				return nil
			case <-over.C:
				return nil
			case <-time.After(pause):
			}
			t.reap()
			if !slices.ContainsFunc(ids, ID.Alive) {
				break
			}
		}
	}
}

// maxDoubt is how often in a row nothing may be found, but not for certain,
// before that is believed: on a busy machine strangers end all the time.
const maxDoubt = 40

// kill kills all members until a scan finds none, and did not miss any.
func (t *tree) kill(ctx context.Context) error {
	doubts := 0
	for pause := time.Millisecond; ; pause = min(2*pause, 40*time.Millisecond) {
		if err := t.killOnce(); err != nil {
			return err
		}
		if t.result.Left > 0 {
			doubts = 0
		} else if doubts++; !t.doubt || doubts > maxDoubt {
			return nil
		} else {
			pause = time.Millisecond
		}
		if err := t.allDenied(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			if ids, err := t.scan(); err != nil || len(ids) == 0 {
				return err
			}
			return fmt.Errorf("stop process tree %s: %d processes left: %w", t.root, t.result.Left, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// killOnce kills every member there is now: first those a scan finds, since
// killing a parent hides its kin; then chase kills who appeared meanwhile, each
// at the moment it is found, which is what catches a process that forks and
// ends faster than the table can be read.
func (t *tree) killOnce() error {
	ids, err := t.scan()
	if err != nil {
		return fmt.Errorf("stop process tree %s: %w", t.root, err)
	}
	if len(ids) > 0 {
		killGroup(t.root)
	}
	for _, id := range ids {
		t.killMember(id)
	}
	found, err := t.chase()
	if err != nil {
		return fmt.Errorf("stop process tree %s: %w", t.root, err)
	}
	t.result.Left += found
	return nil
}

func (t *tree) killMember(id ID) {
	if err := id.Signal(os.Kill); err != nil && !errors.Is(err, ErrGone) {
		t.denied[id] = err
		return
	}
	if !t.seen[id] {
		t.seen[id] = true
		t.result.Killed++
	}
}

// allDenied returns an error if every process left refused the signal: then
// trying again is no use.
func (t *tree) allDenied() error {
	if len(t.denied) == 0 {
		return nil
	}
	ids, err := t.scan()
	if err != nil || len(ids) == 0 {
		return err
	}
	var errs []error
	for _, id := range ids {
		err, ok := t.denied[id]
		if !ok {
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("stop process tree %s: %d processes left: %w", t.root, len(ids), errors.Join(errs...))
}

// reap collects the orphans that ended, or their zombies would count.
func (t *tree) reap() { _, _ = ReapOrphans() }
