package event_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/event"
)

// appending is one event more, on a disk that may fail or on which the process
// may die.
var appending = durabletest.Scenario{
	Prepare: func(t *testing.T, dir string) {
		l := event.Open(dir, "h", clock(time.Second))
		add(t, l, event.Event{})
		add(t, l, event.Event{})
	},
	Act: func(disk durable.Disk, dir string) error {
		_, err := event.OpenOn(disk, dir, "h", clock(time.Minute)).Append(context.Background(), event.Event{Type: event.ToolFailed})
		return err
	},
	Check: func(t *testing.T, dir string, err error, at string) {
		t.Helper()
		// The next writer repairs what the last one left, and its chain holds.
		add(t, event.Open(dir, "h", clock(time.Hour)), event.Event{})
		r := verify(t, dir)
		if !r.OK() || r.Events < 3 || r.Events > 4 || err == nil && r.Events != 4 {
			t.Errorf("%s: append said %v, then %d events: %+v", at, err, r.Events, r)
		}
	},
}

func TestKilledAtEachStep(t *testing.T) { appending.CrashAtEachStep(t) }

func TestFailsAtEachStep(t *testing.T) { appending.FailAtEachStep(t, syscall.ENOSPC, syscall.EIO) }
