package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/agent"
	"reprise/internal/durable"
	"reprise/internal/proc"
)

// counter is a stream that counts.
type counter struct {
	lines   []string
	bytes   int64
	skipped int64
}

func (c *counter) Line(line []byte, _ bool) {
	c.bytes += int64(len(line)) + 1
	c.lines = append(c.lines, string(line[:min(len(line), 20)]))
}
func (c *counter) Skip(n int64)                 { c.skipped += n }
func (*counter) Progress() agent.Progress       { return agent.Progress{} }
func (*counter) Finish(agent.Exit) agent.Result { return agent.Result{} }

// An agent that writes faster than it is read must not keep its supervisor from
// anything else: a look reads so much and no more.
func TestLookIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	line := strings.Repeat("y", 1<<20-1) + "\n"
	if err := os.WriteFile(path, []byte(strings.Repeat(line, 3*lookBytes>>20)), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := durable.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &supervisor{tail: proc.NewTail(f, lineCap)}
	defer s.tail.Close()
	c := &counter{}
	s.stream = c
	for i := 1; i <= 4; i++ {
		s.drain(lookBytes)
		if most := int64(min(i, 3) * lookBytes); c.bytes > most || s.tail.Offset() > most || s.behind != (i < 4) || s.unread != nil {
			t.Fatalf("look %d: %d bytes of lines, at %d, behind %v, %v", i, c.bytes, s.tail.Offset(), s.behind, s.unread)
		}
	}
	if c.bytes != 3*lookBytes {
		t.Errorf("read %d bytes", c.bytes)
	}
}

// Of an output that nobody could read in time the two ends are read.
func TestLongOutputIsReadAtItsEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size = 200 << 30 // a hole
	for at, text := range map[int64]string{0: "first\n", size - 6: "\nlast\n"} {
		if _, err := f.WriteAt([]byte(text), at); err != nil {
			t.Skipf("no file with a hole here: %v", err)
		}
	}
	in, err := durable.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	tail := proc.NewTail(in, lineCap)
	defer tail.Close()
	c := &counter{}
	if err := feedEnds(c, tail); err != nil {
		t.Fatal(err)
	}
	if n := len(c.lines); n < 2 || c.lines[0] != "first" || c.lines[n-1] != "last" || c.skipped < size-3*endBytes {
		t.Errorf("%d lines, %q … %q, %d bytes skipped", n, c.lines[0], c.lines[len(c.lines)-1], c.skipped)
	}
}

func TestTimeLeft(t *testing.T) {
	now := time.Date(2026, 11, 28, 5, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name          string
		age, limit, w time.Duration
	}{
		{"just started", 0, time.Minute, time.Minute},
		{"a slow start counts", time.Second, time.Minute, 59 * time.Second},
		{"the clock was set back", -time.Hour, time.Minute, time.Minute},
		{"the clock was set forward", 24 * time.Hour, time.Minute, 0},
	} {
		if got := timeLeft(now, now.Add(-c.age), c.limit); got != c.w {
			t.Errorf("%s: %s, want %s", c.name, got, c.w)
		}
	}
}

// A clock that was set back must not make a dead run look young until it has
// caught up.
func TestStartingIsNotForEver(t *testing.T) {
	now := time.Date(2026, 11, 28, 5, 0, 0, 0, time.UTC)
	m := New(Options{Now: func() time.Time { return now }})
	for age, want := range map[time.Duration]bool{0: true, time.Second: true, -time.Second: true, time.Minute: false, -time.Hour: false} {
		if got := m.starting(Record{Status: Spawning, StartedAt: now.Add(-age)}); got != want {
			t.Errorf("started %s ago: %v", age, got)
		}
	}
}
