package loop

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/loop/core"
)

// On a disk that is full, who looks at the loop sees that its state cannot be written, since when
// and why; not any more once it can, and not of a loop that has ended.
func TestUnsavedOnAFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "disk")
	fill := durabletest.SmallDisk(t, dir, 256)
	now := time.Now()
	l := New(Options{Dir: filepath.Join(dir, "loop"), Now: func() time.Time { return now }})
	unlock, err := l.store.lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	l.s = core.New("loop-1", core.DefaultLimits(), core.Time{Wall: now})
	if err := errors.Join(l.store.own(l.s.Loop), l.store.room()); err != nil {
		t.Fatal(err)
	}
	see := func() string { return Unsaved(l.opt.Dir, &l.s, now) }
	l.s.Rev++
	if err := l.save(t.Context()); err != nil || see() != "" {
		t.Fatal(err, see())
	}

	fill(0)
	l.s.Rev++
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.save(over); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if got := see(); !strings.Contains(got, now.Format("15:04")) || !strings.Contains(got, syscall.ENOSPC.Error()) || !strings.Contains(got, "goes on by itself") {
		t.Errorf("%q", got)
	}
	fill(-1)
	if err := l.save(t.Context()); err != nil || see() != "" {
		t.Error(err, see())
	}

	// How long it has worked is written beside everything else, and shows it, too.
	fill(0)
	l.s.Worked += time.Hour
	if err := l.save(t.Context()); err != nil {
		t.Error(err)
	}
	if !strings.Contains(see(), syscall.ENOSPC.Error()) {
		t.Errorf("%q", see())
	}
	fill(-1)
	if err := l.store.room(); err != nil || see() != "" { // as the next one begins
		t.Error(err, see())
	}
}

// A state that is old although the loop works says that, where nothing else could.
func TestUnsavedForLong(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		since time.Duration
		edit  func(s *core.State)
		says  bool
	}{
		"old":        {time.Hour, func(s *core.State) { s.Now.Wall = now.Add(-4 * time.Minute) }, true},
		"new":        {time.Hour, func(s *core.State) { s.Now.Wall = now.Add(-time.Minute) }, false},
		"just begun": {time.Minute, func(s *core.State) { s.Now.Wall = now.Add(-4 * time.Minute) }, false},
		"waits":      {time.Hour, func(s *core.State) { s.Now.Wall, s.Phase = now.Add(-4*time.Hour), core.Waiting }, false},
		"waits and works": {time.Hour, func(s *core.State) {
			s.Now.Wall, s.Phase, s.Slots[0].Step = now.Add(-4*time.Hour), core.Waiting, core.Running
		}, true},
		"another": {time.Hour, func(s *core.State) { s.Now.Wall, s.Loop = now.Add(-4*time.Hour), "loop-2" }, false},
	} {
		dir := t.TempDir()
		st := newStore(dir, durable.Disk{}, func() time.Time { return now.Add(-c.since) })
		if err := errors.Join(st.own("loop-1"), st.room()); err != nil {
			t.Fatal(err)
		}
		s := core.New("loop-1", core.DefaultLimits(), core.Time{Wall: now})
		if c.edit(&s); (Unsaved(dir, &s, now) != "") != c.says {
			t.Errorf("%s: %q", name, Unsaved(dir, &s, now))
		}
		if err := os.WriteFile(filepath.Join(dir, unsavedFile), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		if (Unsaved(dir, &s, now) != "") != c.says {
			t.Errorf("%s, and the file is damaged: %q", name, Unsaved(dir, &s, now))
		}
	}
}
