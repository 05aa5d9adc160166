package loop

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"reprise/internal/loop/core"
)

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
