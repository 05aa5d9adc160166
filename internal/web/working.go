package web

import (
	"context"
	"sync"
	"time"

	"reprise/internal/learn"
	"reprise/internal/web/watch"
)

const (
	// workPatience is how long a page of figures waits for what the log has new to be
	// worked out; what takes longer is shown as far as it has come, and drawn anew.
	workPatience = 20 * time.Millisecond
	// policyPatience is that of a page which shows what a person has just changed.
	policyPatience = 2 * time.Second
	// workStep is how long memory is held at a time, for pages that ask it wait.
	workStep = 50 * time.Millisecond
	// figuresTopic is told when something was worked out.
	figuresTopic = "figures"
)

// working works out what the log has new beside the requests, one at a time: after a
// night, or once the index was lost, that takes seconds.
type working struct {
	mu    sync.Mutex
	list  []learn.Stats // of sessions, as far as they are worked out
	sign  uint64        // of the logs that list is of
	whole bool          // nothing of those logs is left
	err   error
	done  chan struct{} // closed when it has ended; nil while nothing works
	stop  context.CancelFunc
	early bool // a page was answered before all was there
	over  bool // the dashboard ends
}

// sessions are the figures of sessions, the oldest first. more says that some are being
// worked out: those who listen are told when there are others. The list is shared, and
// must not be changed.
func (s *Server) sessions(ctx context.Context) (list []learn.Stats, more bool, err error) {
	if s.deps.Memory == nil || s.deps.Memory.Sessions == nil {
		return nil, false, nil
	}
	more, err = s.workedOut(ctx, workPatience)
	s.working.mu.Lock()
	defer s.working.mu.Unlock()
	return s.working.list, more, err
}

// workedOut waits so long for what the logs have new to be worked out; more says that it
// takes longer.
func (s *Server) workedOut(ctx context.Context, patience time.Duration) (more bool, err error) {
	if s.deps.Memory == nil || s.deps.Memory.WorkOut == nil {
		return false, nil
	}
	w := &s.working
	w.mu.Lock()
	if w.whole && w.sign == s.logSign() || w.over {
		w.mu.Unlock()
		return false, nil
	}
	if w.done == nil {
		w.done = make(chan struct{})
		var life context.Context
		life, w.stop = context.WithCancel(context.WithoutCancel(ctx)) // it goes on when the page was answered
		go s.work(life, w.done)
	}
	done := w.done
	w.mu.Unlock()
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case <-done:
	case <-wait.C:
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done == done { // it works yet
		w.early = true
		return true, nil
	}
	return false, w.err
}

// work works out what is new until nothing is left, or something goes wrong.
func (s *Server) work(ctx context.Context, done chan struct{}) {
	w := &s.working
	for {
		sign := s.logSign() // before it is read: what is written meanwhile is worked out the next time
		list, more, err := s.workOne(ctx)
		w.mu.Lock()
		w.err, w.sign, w.whole = err, sign, err == nil && !more
		if err == nil {
			w.list = list
		}
		if more && err == nil && ctx.Err() == nil {
			w.mu.Unlock()
			continue
		}
		early := w.early
		w.stop()
		w.done, w.early = nil, false
		w.mu.Unlock()
		close(done)
		if early {
			s.watch.Tell(figuresTopic)
		}
		return
	}
}

// workOne is one step, with what has been worked out after it.
func (s *Server) workOne(ctx context.Context) (list []learn.Stats, more bool, err error) {
	s.thinking.Lock()
	defer s.thinking.Unlock()
	more, err = s.deps.Memory.WorkOut(ctx, workStep)
	if err != nil || s.deps.Memory.Sessions == nil {
		return nil, more, err
	}
	err = s.deps.Memory.Sessions(ctx, func(st learn.Stats) bool {
		list = append(list, st)
		return true
	})
	return list, more, err
}

// endWork ends what is being worked out: it goes on from there the next time.
func (s *Server) endWork() {
	w := &s.working
	w.mu.Lock()
	w.over = true
	done := w.done
	if done != nil {
		w.stop()
	}
	w.mu.Unlock()
	if done != nil {
		<-done
	}
}

// logSign is another number when a log has changed, or a day has ended: what sessions
// are worth depends on the day.
func (s *Server) logSign() uint64 {
	l := watch.NewLook()
	l.Number(uint64(s.deps.Now().Unix() / int64(24*time.Hour/time.Second)))
	for _, dir := range s.deps.Memory.Logs {
		l.Dir(dir, true)
	}
	return l.Sum()
}
