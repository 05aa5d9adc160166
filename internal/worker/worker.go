package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"reprise/internal/config"
	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/queue"
)

// Options are a worker's world.
type Options struct {
	Projects []config.WorkerProject
	Slots    *Slots
	// Checkout is the clone of a project.
	Checkout func(config.WorkerProject) *Checkout
	// Build makes the loop of a project in its clone; branch is the remote's at which work
	// begins.
	Build func(ctx context.Context, p config.WorkerProject, dir, branch string) (loop.Options, error)
	// Once says that what cannot be reached now is not waited for: the project is left out.
	Once bool
	// Say tells what a person should know of a project; nil is nobody.
	Say func(project, text string)
	Log *slog.Logger
}

// Ended is how the work for a project ended.
type Ended struct {
	Project string
	State   core.State
	Err     error
}

// lookAgain is the longest wait before a project that could not be cloned is tried again.
const lookAgain = 5 * time.Minute

// Run works for all projects side by side, until each of their loops has ended. The first
// value from stop ends them gracefully; the end of ctx, or a second value, leaves everything
// as it is for the next worker on this machine.
func Run(ctx context.Context, o Options, stop <-chan string) []Ended {
	out := make([]Ended, len(o.Projects))
	stops := make([]chan string, len(o.Projects))
	asked := make(chan struct{}) // closed when the first stop has come
	over := make(chan struct{})
	for i := range stops {
		stops[i] = make(chan string, 2)
	}
	var passing sync.WaitGroup
	passing.Go(func() {
		for first := true; ; {
			select {
			case why := <-stop:
				if first {
					o.Slots.Close()
					close(asked)
				}
				first = false
				for _, s := range stops {
					select {
					case s <- why:
					default: // it was told twice already
					}
				}
			case <-over:
				return
			}
		}
	})
	var all sync.WaitGroup
	for i, p := range o.Projects {
		all.Go(func() {
			s, err := o.work(ctx, p, asked, stops[i])
			out[i] = Ended{p.Name, s, err}
		})
	}
	all.Wait()
	close(over)
	passing.Wait()
	return out
}

// work is for one project.
func (o *Options) work(ctx context.Context, p config.WorkerProject, asked <-chan struct{}, stop <-chan string) (core.State, error) {
	c := o.Checkout(p)
	c.Say = func(text string) { o.say(p.Name, text) }
	branch, err := o.ready(ctx, c, asked)
	if err != nil {
		return core.State{}, err
	}
	opt, err := o.Build(ctx, p, c.Dir, branch)
	if err != nil {
		return core.State{}, err
	}
	q := opt.Queue
	opt.Queue = o.Slots.Bound(q)
	s, ok := opt.Places.(*loop.Shared)
	if !ok {
		return loop.New(opt).Run(ctx, stop)
	}
	tidying, over := context.WithCancel(ctx)
	var tidy sync.WaitGroup
	tidy.Go(func() {
		ticker := time.NewTicker(tidyEvery)
		defer ticker.Stop()
		for {
			o.tidy(tidying, p.Name, s, q)
			select {
			case <-tidying.Done():
				return
			case <-ticker.C:
			}
		}
	})
	state, err := loop.New(opt).Run(ctx, stop)
	over()
	tidy.Wait()
	if o.Once && err == nil { // there may be no next hour
		o.tidy(ctx, p.Name, s, q)
	}
	return state, err
}

// tidyEvery is how often branches of settled items are looked for: they do no harm, and are
// many only after a while.
const tidyEvery = time.Hour

// tidy deletes the clone's branches of settled items. What cannot be deleted is tried the
// next time.
func (o *Options) tidy(ctx context.Context, project string, s *loop.Shared, q queue.Queue) {
	gone, err := s.Prune(ctx, q)
	if o.Log != nil && len(gone) > 0 {
		o.Log.Info("worker", "project", project, "branches deleted", gone)
	}
	if o.Log != nil && err != nil && ctx.Err() == nil {
		o.Log.Warn("worker", "project", project, "branches of settled items stay", err)
	}
}

// errStopped says that a worker was stopped before it could begin.
var errStopped = errors.New("stopped before its clone was there")

// ready waits until the clone is there.
func (o *Options) ready(ctx context.Context, c *Checkout, asked <-chan struct{}) (string, error) {
	for wait := 2 * time.Second; ; wait = min(2*wait, lookAgain) {
		branch, err := c.Ensure(ctx)
		if err == nil || o.Once || ctx.Err() != nil {
			return branch, err
		}
		o.say(c.Project.Name, fmt.Sprintf("%v; again in %s", err, wait))
		select {
		case <-ctx.Done():
			return "", errors.Join(err, ctx.Err())
		case <-asked:
			return "", fmt.Errorf("%w: %w", errStopped, err)
		case <-time.After(wait):
		}
	}
}

func (o *Options) say(project, text string) {
	if o.Log != nil {
		o.Log.Warn("worker", "project", project, "text", text)
	}
	if o.Say != nil {
		o.Say(project, text)
	}
}
