package loop

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/internal/loop/core"
	"reprise/internal/loop/report"
	"reprise/internal/queue"
	"reprise/internal/run"
)

// An item that fails by itself waits alone, as long as is said of it: the others go on, however
// long all would have to wait for what is no item's fault.
func TestNightFailsAlone(t *testing.T) {
	t.Parallel()
	n := newNight(t, play{status: run.Failed, reason: "ended without a result (exit code 3)"}, play{change: true}, play{change: true})
	n.opt.Limits.BackoffUnit, n.opt.Limits.BackoffMax = time.Hour, time.Hour
	var mu sync.Mutex
	var said []string
	n.opt.Say = func(l report.Line) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, l.Text)
	}
	n.add("a", "b")
	n.all()
	n.want("a done, b done")
	var order []string
	for _, r := range n.runs.requests() {
		order = append(order, r.IdempotencyKey[:len("loop:a")])
	}
	if !slices.Equal(order, []string{"loop:a", "loop:b", "loop:a"}) {
		t.Errorf("%q", order)
	}
	if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, "; tried again in 2 s (1 of ") }) {
		t.Errorf("%q", said)
	}
}

// TestAgain: what is said of when an item is begun again is when it can be.
func TestAgain(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC)
	n := newNight(t)
	n.opt.Now = func() time.Time { return at }
	for _, c := range []struct {
		ready, delay, hold, want time.Duration
		workers                  int
	}{
		{ready: 2 * time.Second, workers: 1, want: 2 * time.Second},
		{ready: 2 * time.Second, delay: 5 * time.Second, workers: 1, want: 5 * time.Second}, // its only worker rests
		{ready: 2 * time.Second, delay: 5 * time.Second, workers: 2, want: 2 * time.Second}, // another may be free
		{ready: 2 * time.Second, hold: time.Minute, workers: 2, want: time.Minute},
		{workers: 1},
	} {
		l := New(n.opt)
		l.began = at
		limits := core.DefaultLimits()
		limits.Workers, limits.Delay = c.workers, c.delay
		l.s = core.New("loop-1", limits, core.Time{Wall: at})
		l.s.HoldUntil = c.hold
		if got := l.again(&queue.Item{NotBefore: at.Add(c.ready)}); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestWorkedIsKept: a loop that is killed while it works has lost at most the time between two
// looks at its leases, also where these come a little sooner or later than they should.
func TestWorkedIsKept(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	at := time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC)
	n.opt.Now = func() time.Time { return at }
	l := New(n.opt)
	l.store.dir, l.began = n.opt.Dir, at
	if err := os.MkdirAll(filepath.Join(n.opt.Dir, requestsDir), 0o700); err != nil {
		t.Fatal(err)
	}
	l.s = core.New("loop-1", core.DefaultLimits(), core.Time{Wall: at})
	l.s.Slots[0] = core.Slot{Step: core.Running, Run: "run-1", Claim: core.Claim{Item: core.Item{ID: "a"}, Fence: 1}, StallAt: 100 * time.Hour}
	l.s.Limits.ItemTimeout, l.s.Rev = 100*time.Hour, 1
	late := []time.Duration{0, 3 * time.Millisecond, -2 * time.Millisecond, 0, -time.Nanosecond, time.Millisecond}
	for i := range 60 {
		before := at
		at = at.Add(renewEvery + late[i%len(late)])
		if s, err := ReadState(n.opt.Dir); i > 0 && (err != nil || l.s.Worked-s.Worked > 0) { // killed just now, what came since the last look is lost
			t.Fatalf("at %s it has worked %s, and %s are written down (%v)", before, l.s.Worked, s.Worked, err)
		}
		if err := l.step(t.Context(), core.Tick{}); err != nil {
			t.Fatal(err)
		}
	}
	if l.s.Worked < 59*renewEvery {
		t.Errorf("it has worked %s", l.s.Worked)
	}
	l.actions.Wait()
}
