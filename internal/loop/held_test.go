package loop

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"reprise/internal/git"
	"reprise/internal/loop/core"
	"reprise/internal/loop/report"
	"reprise/internal/queue"
)

// heldPlaces are places in whose repository nothing is done while held.
type heldPlaces struct {
	*fakePlaces
	held atomic.Bool
}

func (h *heldPlaces) Held(context.Context) error {
	if h.held.Load() {
		return fmt.Errorf("%w: %w", errHeld, &git.ProgramsError{Key: "filter.evil.clean", File: "config"})
	}
	return nil
}

func (h *heldPlaces) Prepare(ctx context.Context, it queue.Item, fence int64) (Place, error) {
	if err := h.Held(ctx); err != nil {
		return Place{}, err
	}
	return h.fakePlaces.Prepare(ctx, it, fence)
}

// While a person has to look at the repository nothing is begun: that is told once, and waited for,
// and once it is seen to the loop goes on by itself. Where nobody is waited for it ends, and says
// that it could not go on.
func TestNightHeld(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	places := &heldPlaces{fakePlaces: n.place}
	places.held.Store(true)
	n.opt.Places, n.opt.Limits.Workers = places, 2
	n.add("a", "b")
	n.begin()
	n.waits(core.ByRepo)
	n.until("its workers are free", func(s core.State) bool { return s.Busy() == 0 })
	n.want("a ready, b ready")
	n.whole("a", "b")
	n.loop.mended(t.Context())
	if s := n.loop.State(); s.Phase != core.Waiting {
		t.Errorf("it is %s while a person has to look", s.Phase)
	}
	places.held.Store(false)
	n.loop.mended(t.Context())
	s := n.end()
	n.want("a done, b done")
	if told := n.told(); len(told) != 1 || told[0] != core.ByRepo || s.Unable || len(n.lines("put off")) > 0 {
		t.Errorf("told %q, %q, could not go on: %v", told, n.lines("put off"), s.Unable)
	}

	n = newNight(t)
	places = &heldPlaces{fakePlaces: n.place}
	places.held.Store(true)
	n.opt.Places, n.opt.Limits.OnInterrupt, n.opt.Limits.Workers = places, core.Skip, 2
	n.add("a", "b")
	if s := n.all(); !s.Unable || !strings.HasPrefix(s.Reason, core.ByRepo+": the setting filter.evil.clean") {
		t.Errorf("%+v", s)
	}
	n.want("a ready, b ready")
	n.whole("a", "b")
}

// What cannot be done and is tried again all night is told when that begins, and when it has gone
// on for a while; the audit has each time.
func TestNightPutOffIsToldTwice(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	full := make([]error, 9)
	for i := range full {
		full[i] = syscall.ENOSPC
	}
	n.place.fail = full
	var said []string
	n.opt.Say = func(l report.Line) {
		if strings.Contains(l.Text, "cannot be done yet") {
			said = append(said, l.Text) // by the driver alone
		}
	}
	n.add("a")
	n.begin()
	n.end()
	n.want("a done")
	if len(said) != 2 || !strings.Contains(said[1], "without a word") || len(n.lines("put off")) != len(full) {
		t.Errorf("%q, and %d lines in the audit", said, len(n.lines("put off")))
	}
	if told := n.told(); !slices.Equal(told, []string{"cannot go on"}) {
		t.Errorf("a person is told %q", told)
	}
}
