package quick

import (
	"context"
	"testing"
	"time"
)

// Who records is told of a clock that went back, within a month by the line
// before and across months by the event that another belongs to; corrections by
// less than the slack, and times that go on, are nothing.
func TestClockBack(t *testing.T) {
	start := time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)
	now := start
	var told []time.Duration
	b := &Broker{
		Events: func(string) string { return t.TempDir() }, Host: "h", Now: func() time.Time { return now },
		Back: func(before, now time.Time) { told = append(told, before.Sub(now)) },
	}
	dir := t.TempDir()
	b.Events = func(string) string { return dir }
	record := func(at time.Time, parent string) string {
		t.Helper()
		now = at
		e := Event{Type: "session.started", Session: "s", Parent: parent, Data: []byte(`{}`)}
		if _, err := b.Record(context.Background(), &e, false); err != nil {
			t.Fatal(err)
		}
		return e.ID
	}
	first := record(start, "")
	for _, c := range []struct {
		at     time.Time
		parent string
		want   time.Duration // how far ahead what was recorded is, 0 = nothing is told
	}{
		{start.Add(time.Second), first, 0},
		{start, first, 0},
		{start.Add(-time.Hour), first, time.Hour},
		{start.Add(-time.Hour + time.Second), first, 0}, // said once
		{start.Add(-31 * 24 * time.Hour), first, 31 * 24 * time.Hour},
		{start.Add(-31 * 24 * time.Hour), "not an id of these", 0},
		{start.Add(40 * 24 * time.Hour), first, 0},
	} {
		told = nil
		record(c.at, c.parent)
		switch {
		case c.want == 0 && len(told) > 0, c.want > 0 && (len(told) != 1 || told[0].Round(time.Second) != c.want):
			t.Errorf("at %s: told %v, want %s", c.at, told, c.want)
		}
	}
}

func TestLineTime(t *testing.T) {
	for line, want := range map[string]string{
		`{"v":1,"id":"x","ts":"2026-03-01T01:02:03.5Z","scope":"global"}`: "2026-03-01T01:02:03.5Z",
		``: "0001-01-01T00:00:00Z", `{"ts":"`: "0001-01-01T00:00:00Z", `{"ts":"soon"}`: "0001-01-01T00:00:00Z",
	} {
		if got := lineTime([]byte(line)).Format(time.RFC3339Nano); got != want {
			t.Errorf("%s: %s", line, got)
		}
	}
}
