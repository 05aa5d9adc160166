package task

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"reprise/internal/proc"
)

// NextOp is the operation that comes next for a task on its way from an idea to the
// end; "" where there is none.
func (b *Board) NextOp(t *Task) string {
	switch {
	case t.Status.Ended():
		return ""
	case len(t.Plans) > 0:
		return OpImplement
	case len(t.Research) > 0:
		return OpPlan
	}
	return OpResearch
}

// Order are tasks with those first that others among them depend on.
func (b *Board) Order(numbers []int) ([]int, error) {
	deps := map[int][]int{}
	for _, n := range numbers {
		t, err := b.Task(n)
		if err != nil {
			return nil, err
		}
		deps[n] = nil
		for _, d := range numbers {
			if d != n && reaches(b.deps(), t.Number, d) {
				deps[n] = append(deps[n], d)
			}
		}
	}
	if c := cycle(deps); c != nil {
		return nil, fmt.Errorf("tasks wait for each other: %s", arrows(c))
	}
	var out []int
	for len(out) < len(deps) {
		for _, n := range slices.Sorted(maps.Keys(deps)) {
			if !slices.Contains(out, n) && !slices.ContainsFunc(deps[n], func(d int) bool { return !slices.Contains(out, d) }) {
				out = append(out, n)
			}
		}
	}
	return out, nil
}

// Drive works at tasks until each is completed or cannot go on: research, plan, and the
// phases of the plan. Those that others depend on come first, and of one that did not
// come to its end the others that wait for it are left out. At most side of them are
// worked at side by side; 1 is one after the other.
func (f *Flow) Drive(ctx context.Context, numbers []int, side int) ([]StepResult, error) {
	b, err := f.Store.Load(ctx)
	if err != nil {
		return nil, err
	}
	order, err := b.Order(numbers)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var out []StepResult
	var errs []error
	ended := map[int]chan struct{}{} // closed when the work at a task has ended
	for _, n := range order {
		ended[n] = make(chan struct{})
	}
	places := make(chan struct{}, max(side, 1))
	var wg sync.WaitGroup
	for _, n := range order {
		var before []chan struct{}
		for _, d := range order {
			if d != n && reaches(b.deps(), n, d) {
				before = append(before, ended[d])
			}
		}
		if side <= 1 && len(justBefore(order, n)) > 0 {
			before = append(before, ended[justBefore(order, n)[0]])
		}
		wg.Go(func() {
			defer close(ended[n])
			for _, done := range before {
				<-done
			}
			places <- struct{}{}
			defer func() { <-places }()
			list, err := f.whole(ctx, n, side)
			mu.Lock()
			defer mu.Unlock()
			out = append(out, list...)
			if err != nil {
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	return out, errors.Join(errs...)
}

// justBefore is the task that comes right before one, where there is any.
func justBefore(order []int, n int) []int {
	if i := slices.Index(order, n); i > 0 {
		return order[i-1 : i]
	}
	return nil
}

// whole takes one task as far as it goes.
func (f *Flow) whole(ctx context.Context, n, side int) ([]StepResult, error) {
	var out []StepResult
	for {
		b, err := f.Store.Load(ctx)
		if err != nil {
			return out, err
		}
		t, err := b.Task(n)
		if err != nil {
			return out, err
		}
		var r StepResult
		switch op := b.NextOp(t); op {
		case "":
			return out, nil
		case OpImplement:
			list, err := f.Phases(ctx, n, side)
			return append(out, list...), err
		default:
			if r, err = f.do(ctx, Want{Op: op, Number: n}); err != nil {
				return out, err
			}
			out = append(out, r)
			if r.Status != "completed" {
				return out, nil
			}
		}
	}
}

// Phases has all phases of a task's plan carried out. With side above 1, and checkouts
// to be had, those that do not wait for each other are worked at side by side, at most
// so many, and each is brought to the main checkout when it is done.
func (f *Flow) Phases(ctx context.Context, n, side int) ([]StepResult, error) {
	if side <= 1 || f.Places == nil {
		return f.Implement(ctx, n, 0, true)
	}
	switch r, done, err := f.EndLeft(ctx, n); {
	case err != nil:
		return nil, err
	case done:
		return []StepResult{r}, nil
	}
	type ended struct {
		phase int
		r     StepResult
		err   error
	}
	done := make(chan ended)
	running := map[int]bool{}
	tried := map[int]bool{} // phases that did not come to their end, or are at work elsewhere
	var out []StepResult
	var errs []error
	for {
		ready, left, err := f.ready(ctx, n)
		if err != nil {
			errs = append(errs, err)
			ready = nil
		}
		for _, ph := range ready {
			if running[ph] || tried[ph] || len(running) >= side || ctx.Err() != nil {
				continue
			}
			running[ph] = true
			go func() {
				r, err := f.apart(ctx, n, ph)
				done <- ended{ph, r, err}
			}()
		}
		if len(running) == 0 {
			if len(out) == 0 && len(errs) == 0 && left == 0 {
				errs = append(errs, fmt.Errorf("every phase of task %d %w", n, ErrNothingLeft))
			}
			return out, errors.Join(errs...)
		}
		e := <-done
		delete(running, e.phase)
		switch {
		case errors.Is(e.err, ErrLimit) && len(running) > 0:
			side = len(running) // as many as there is room for
		case e.err != nil:
			tried[e.phase] = true
			errs = append(errs, e.err)
		default:
			tried[e.phase] = e.r.Status != "completed"
			out = append(out, e.r)
		}
	}
}

// ready are the phases that can be worked at now, and how many are not completed.
func (f *Flow) ready(ctx context.Context, n int) (ready []int, left int, err error) {
	b, err := f.Store.Load(ctx)
	if err != nil {
		return nil, 0, err
	}
	t, err := b.Task(n)
	if err != nil {
		return nil, 0, err
	}
	p, _, err := b.Plan(t)
	if err != nil {
		return nil, 0, err
	}
	for _, ph := range p.Ready() {
		ready = append(ready, ph.Number)
	}
	for _, ph := range p.Phases {
		if !ph.Status.Ended() {
			left++
		}
	}
	return ready, left, nil
}

// apart has a phase carried out in a checkout of its own.
func (f *Flow) apart(ctx context.Context, n, phase int) (StepResult, error) {
	owner, err := proc.Self()
	if err != nil {
		return StepResult{}, fmt.Errorf("tell who works: %w", err)
	}
	if err := f.able(ctx, n); err != nil {
		return StepResult{}, err
	}
	f.commits.Lock()
	place, err := f.Places.Open(ctx, fmt.Sprintf("task-%03d-p%d", n, phase))
	f.commits.Unlock()
	if err != nil {
		return StepResult{}, fmt.Errorf("a checkout for phase %d of task %d: %w", phase, n, err)
	}
	s, err := f.begin(ctx, Want{Op: OpImplement, Number: n, Phase: phase, Owner: &owner, Place: place.Dir})
	if err != nil {
		_, cerr := f.Places.Close(context.WithoutCancel(ctx), place, false, "")
		return StepResult{}, errors.Join(err, cerr)
	}
	s.vars = place.Vars
	s.integrate = func(ctx context.Context, done bool) (string, error) {
		return f.Places.Close(ctx, place, done, s.message(StepResult{Op: OpImplement, Phase: phase, Status: "completed"}))
	}
	return s.run(ctx)
}
