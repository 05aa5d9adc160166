package queuetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"reprise/internal/queue"
)

// wait: a waiter is woken by what others add, and by what they give back.
func wait(e *env) {
	other := e.open()
	woken := make(chan error)
	go func() { woken <- other.Wait(e.Context(), queue.ClaimOptions{Labels: []string{"ui"}}) }()
	e.one("without the label")
	e.add(queue.Item{ID: "ui", Title: "with the label", Labels: []string{"ui"}})
	e.wakes(woken)
	c := e.claim(queue.ClaimOptions{ID: "ui"})
	go func() { woken <- other.Wait(e.Context(), queue.ClaimOptions{Labels: []string{"ui"}}) }()
	_, err := e.Release(e.Context(), c.Token, "")
	e.ok(err)
	e.wakes(woken)
	e.ok(other.Wait(e.Context(), queue.ClaimOptions{})) // there is something already
	ctx, cancel := context.WithCancel(e.Context())
	go func() { woken <- other.Wait(ctx, queue.ClaimOptions{Labels: []string{"none"}}) }()
	cancel()
	e.is(<-woken, context.Canceled)
}

// waitForNothing: who waits for what others are at is told when the last of it has ended, and
// of nothing before; and when what was to come later does not come any more. Each look costs
// one of the whole queue, so it is not told of every claim that ends.
func waitForNothing(e *env) {
	other := e.open()
	opt := queue.ClaimOptions{Labels: []string{"ui"}, Arrivals: true}
	woken := make(chan error)
	begin := func() {
		e.Helper()
		begun := make(chan bool)
		opt.Begun = func() { close(begun) }
		go func() { woken <- other.Wait(e.Context(), opt) }()
		<-begun
	}
	sleeps := func() {
		e.Helper()
		select {
		case err := <-woken:
			e.Fatalf("woken too early: %v", err)
		default:
		}
	}
	var claims []queue.Claim
	for _, id := range []string{"a", "b", "other"} {
		it := queue.Item{ID: id, Title: id, Labels: []string{"ui"}}
		if id == "other" {
			it.Labels = nil
		}
		e.add(it)
		claims = append(claims, e.claim(queue.ClaimOptions{ID: id}))
	}
	begin()
	for i := range claims {
		sleeps()
		_, err := e.Done(e.Context(), claims[i].Token, queue.Outcome{})
		e.ok(err)
		if i == 1 {
			e.wakes(woken)
			begin() // nothing that fits is left, and so nothing of it can end
		}
	}
	e.add(queue.Item{ID: "later", Title: "later", Labels: []string{"ui"}, NotBefore: e.clock.Now().Add(time.Hour)})
	e.wakes(woken)
	begin()
	sleeps()
	_, err := e.Drop(e.Context(), "later", "not needed")
	e.ok(err)
	e.wakes(woken)
}

func (e *env) wakes(woken chan error) {
	e.Helper()
	select {
	case err := <-woken:
		e.ok(err)
	case <-time.After(20 * time.Second):
		e.Fatal("the waiter was not woken")
	}
}

// waitForTime: a waiter is woken when an item's time comes, and when a lease has run
// out. Here clocks are real.
func waitForTime(e *env) {
	q := e.store.Open(e.T, time.Now, nil)
	e.Cleanup(func() { q.Close() })
	_, err := q.Add(e.Context(), queue.Item{ID: "held", Title: "held"})
	e.ok(err)
	c, err := q.Claim(e.Context(), queue.ClaimOptions{Lease: time.Second})
	e.ok(err)
	due := map[string]time.Time{"held": c.Until, "soon": time.Now().Add(300 * time.Millisecond)}
	_, err = q.Add(e.Context(), queue.Item{ID: "soon", Title: "soon", NotBefore: due["soon"]})
	e.ok(err)
	for range 2 {
		e.ok(q.Wait(e.Context(), queue.ClaimOptions{}))
		c, err = q.Claim(e.Context(), queue.ClaimOptions{Lease: time.Hour})
		e.ok(err)
		if at, ok := due[c.Item.ID]; !ok || time.Now().Before(at) {
			e.Fatalf("claimed %s, again or before its time", c.Item.ID)
		}
		delete(due, c.Item.ID)
	}
}

// together: many workers on handles of their own work off one queue, and each item is
// done once.
func together(e *env) {
	const items, workers = 60, 6
	var all []queue.Item
	for i := range items {
		it := queue.Item{ID: fmt.Sprintf("i%d", i), Title: "x", MaxAttempts: 100}
		if i >= 10 && i%3 == 0 {
			it.DependsOn = []string{fmt.Sprintf("i%d", i-7)}
		}
		all = append(all, it)
	}
	e.add(all...)
	var mu sync.Mutex
	done := map[string]int{}
	fences := map[string]bool{}
	var wg sync.WaitGroup
	for w := range workers {
		q := e.open()
		wg.Go(func() {
			for n := 0; ; n++ {
				c, err := q.Claim(e.Context(), queue.ClaimOptions{Worker: fmt.Sprint("w", w), Lease: queue.MaxLease}) // the idle ones turn the clock
				if errors.Is(err, queue.ErrEmpty) {
					mu.Lock()
					over := len(done) == items
					mu.Unlock()
					if over || e.Failed() {
						return
					}
					e.clock.Add(time.Second) // for those that failed
					continue
				}
				if err != nil {
					e.Error(err)
					return
				}
				key := fmt.Sprintf("%s#%d", c.Item.ID, c.Fence)
				mu.Lock()
				if fences[key] {
					e.Errorf("%s was claimed twice", key)
				}
				fences[key] = true
				mu.Unlock()
				switch {
				case n%9 == 4:
					_, err = q.Fail(e.Context(), c.Token, queue.Failure{Error: "now and then", RetryAfter: time.Second})
				case n%9 == 7:
					_, err = q.Release(e.Context(), c.Token, "")
				default:
					if _, err = q.Done(e.Context(), c.Token, queue.Outcome{}); err == nil {
						mu.Lock()
						done[c.Item.ID]++
						mu.Unlock()
					}
				}
				if err != nil {
					e.Errorf("%s: %v", key, err)
				}
			}
		})
	}
	wg.Wait()
	for id, n := range done {
		if n != 1 {
			e.Errorf("%s was done %d times", id, n)
		}
	}
	e.eq("done", len(e.list(queue.Filter{States: []queue.State{queue.Done}})), items)
}

// sameKeyTogether: those who add the same at once add it once.
func sameKeyTogether(e *env) {
	const adders = 8
	fresh := make([]int, adders)
	var wg sync.WaitGroup
	for a := range adders {
		q := e.open()
		wg.Go(func() {
			for i := range 5 {
				added, err := q.Add(e.Context(), queue.Item{Key: fmt.Sprint("k", i), Title: fmt.Sprint("by ", a)}, queue.Item{Title: "own"})
				if err != nil {
					e.Error(err)
					return
				}
				if added[0].New {
					fresh[a]++
				}
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, n := range fresh {
		sum += n
	}
	e.eq("new items with a key", sum, 5)
	e.eq("items", len(e.list(queue.Filter{})), 5+5*adders)
}
