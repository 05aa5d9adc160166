package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"reprise/internal/agent"
	"reprise/internal/durable"
	"reprise/internal/proc"
)

// buryGrace is the time that processes without a supervisor get to end. Short:
// "no process is left within a second of the next command" is the promise.
const buryGrace = 500 * time.Millisecond

// settle looks after a run whose supervisor may be dead. If it lives, or the
// run is settled already, the record is returned as it is. Otherwise every
// process with the run's id is stopped and the record is brought to the state
// that the run's output shows. Holding supervisor.lock is what makes the caller
// the record's owner for that time.
func (m *Manager) settle(ctx context.Context, id string) (Record, error) {
	dir, err := m.find(id)
	if err != nil {
		return Record{}, err
	}
	r, err := readRecord(m.opt.Disk, dir)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Record{}, m.stopUnread(ctx, dir, id, err)
	}
	if err != nil || r.Status.Settled() || m.starting(r) {
		return r, err
	}
	unlock, err := lockDead(ctx, r)
	if errors.Is(err, durable.ErrLocked) {
		return r, nil // its supervisor lives
	}
	if err != nil {
		return r, fmt.Errorf("settle run %s: %w", id, err)
	}
	defer unlock()
	// Read again: the supervisor may have ended between the first read and
	// the lock.
	if r, err = readRecord(m.opt.Disk, dir); err != nil || r.Status.Settled() {
		return r, err
	}
	return m.bury(ctx, r)
}

// stopUnread stops what is left of a run whose record cannot be read, and adds
// it to the error that says so. What the record holds does not matter to that: a
// run whose lock is free has no supervisor, and nobody else would stop it.
func (m *Manager) stopUnread(ctx context.Context, dir, id string, unread error) error {
	unlock, err := m.opt.Disk.TryLock(filepath.Join(dir, lockFile))
	if err != nil {
		return unread // its supervisor lives, or the directory is not what it was
	}
	defer unlock()
	stopped, err := proc.StopTree(ctx, proc.ID{}, id, buryGrace)
	if err != nil {
		return errors.Join(unread, fmt.Errorf("stop what %s left: %w", id, err))
	}
	if stopped.Asked+stopped.Killed > 0 {
		return fmt.Errorf("%w; the processes that it had left (%d) were stopped", unread, max(stopped.Asked, stopped.Killed))
	}
	return unread
}

// lockDead takes the lock of a run unless its supervisor lives. A process that
// was killed may hold its files for a moment after it has ceased to run, while
// its last threads end, so a lock held by a dead supervisor is waited for.
func lockDead(ctx context.Context, r Record) (func() error, error) {
	path := filepath.Join(r.dir, lockFile)
	unlock, err := r.disk.TryLock(path)
	if !errors.Is(err, durable.ErrLocked) || r.Supervisor == nil || r.Supervisor.Alive() {
		return unlock, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	unlock, err = r.disk.Lock(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", durable.ErrLocked, err) // somebody else is settling it
	}
	return unlock, nil
}

// starting reports whether the run's supervisor may be about to take its lock.
// Of a run that this process started it knows; another's gets some patience,
// for the starter of a detached run is gone long before a supervisor on a busy
// machine has come up.
func (m *Manager) starting(r Record) bool {
	if r.Status != Spawning {
		return false
	}
	m.mu.Lock()
	s, ours := m.attached[r.ID]
	m.mu.Unlock()
	if ours {
		select {
		case <-s.process.Done():
			return false
		default:
			return true
		}
	}
	// A clock that was set back must not make this wait for the time it lost.
	return m.opt.Now().Sub(r.StartedAt).Abs() < spawnPatience
}

// bury brings the record of a run without a supervisor to its end.
func (m *Manager) bury(ctx context.Context, r Record) (Record, error) {
	left, err := proc.StopTree(ctx, proc.ID{}, r.ID, buryGrace)
	if err != nil {
		return r, fmt.Errorf("settle run %s: stop what it left: %w", r.ID, err)
	}
	r.Collected += left.Asked
	reason := "its supervisor ended before it"
	if own := headOf(r.path(ownLogFile), 500); own != "" {
		reason += ": " + own
	}
	if r.Status == Spawning {
		to := Failed
		if asked, why, ok := pendingStop(r); ok && asked == Killed {
			to, reason = asked, why
		}
		err = r.move(to, reason, m.opt.Now())
		r.keepResult(agent.Result{})
	} else {
		err = m.conclude(&r, replay(r), reason)
	}
	if err != nil {
		return r, err
	}
	if err := r.write(); err != nil {
		return r, fmt.Errorf("settle run %s: %w", r.ID, err)
	}
	if err := recordEvent(ctx, m.opt.Hostname, r, m.opt.Now); err != nil {
		m.opt.Log.Warn("record event", "run", r.ID, "error", err.Error())
	}
	m.opt.Log.Warn("run settled", "run", r.ID, "status", string(r.Status), "stopped_processes", left.Asked)
	return r, nil
}

// conclude judges a run by its output alone: nobody saw its exit code.
func (m *Manager) conclude(r *Record, res agent.Result, reason string) error {
	to := Failed
	asked, why, stopping := pendingStop(*r)
	switch {
	case res.OK:
		to, reason = Completed, reason+", but its result had come"
	case stopping && Allowed(r.Status, asked):
		to, reason = asked, join(why, reason)
	default:
		reason = join(reason, res.Reason)
	}
	reason = join(reason, r.keepResult(res))
	if r.Status == Running && to == Completed {
		if err := r.move(Completing, "", m.opt.Now()); err != nil {
			return err
		}
	}
	return r.move(to, reason, m.opt.Now())
}

// replay reads a run's output through its adapter: all, or both ends of one too
// long to be read whole. An output that cannot be read is no result.
func replay(r Record) agent.Result {
	adapter, err := agent.For(r.Client)
	if err != nil {
		return agent.Result{Reason: err.Error()}
	}
	stream := adapter.NewStream()
	exit := agent.Exit{Code: -1, Stderr: tailOf(r.Logs.Stderr, stderrTail)}
	f, err := durable.Open(r.Logs.Stdout)
	if err == nil {
		defer f.Close()
		err = feedEnds(stream, proc.NewTail(f, lineCap))
	}
	if stream.Progress().ResultSeen {
		exit.Code = 0 // it had said its last word; only its exit is unknown
	}
	res := stream.Finish(exit)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		res.OK, res.Reason = false, fmt.Sprintf("its output can no longer be read: %v", err)
	}
	return res
}

// Sweep settles every run whose supervisor is dead and stops what is left of
// runs that have ended. It is what "the next command" does after everything
// was killed at once.
func (m *Manager) Sweep(ctx context.Context) ([]Record, error) {
	runs, err := m.List(ctx)
	orphans, orphanErr := m.Orphans()
	if orphanErr != nil {
		return runs, errors.Join(err, orphanErr)
	}
	for id := range orphans {
		if _, stopErr := proc.StopTree(ctx, proc.ID{}, id, buryGrace); stopErr != nil {
			err = errors.Join(err, fmt.Errorf("stop what %s left: %w", id, stopErr))
		}
	}
	return runs, err
}

// Orphans lists the live processes that carry the id of a run of ours that has
// ended. There should be none.
func (m *Manager) Orphans() (map[string][]proc.ID, error) {
	marked, err := proc.Marked()
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil // Windows: the kernel ends a run's job with its supervisor
	}
	if err != nil {
		return nil, fmt.Errorf("look for orphans: %w", err)
	}
	for id := range marked {
		r, err := m.Get(id)
		if err != nil || !r.Status.Settled() {
			delete(marked, id) // somebody else's, or alive
			continue
		}
		if held, err := durable.IsLocked(filepath.Join(r.dir, lockFile)); err != nil || held {
			delete(marked, id) // its supervisor is still at it
		}
	}
	return marked, nil
}
