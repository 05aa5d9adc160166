package session

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/durable"
	"reprise/internal/learn"
	"reprise/internal/memory"
	"reprise/internal/recall"
)

// What is missing of a new version's index is brought in from where it was left, however
// often the process that does it ends before: nothing that is there goes away meanwhile.
func TestFinishGoesOn(t *testing.T) {
	w := newWorld(t)
	const sessions = 30
	for i := range sessions {
		w.fixes(fmt.Sprintf("s%d", i))
	}
	w.env.Now = w.ticking() // each look at the clock takes a second, so that a step is one session
	open := func(told func(learn.Report)) *Memory {
		return Open(Options{Home: w.home, Env: w.env, Access: memory.FullAccess, Build: true, Rebuilt: told})
	}
	count := func(m *Memory) (n int) {
		t.Helper()
		err := m.Index.View(t.Context(), func(tx *recall.Tx) (err error) {
			n, err = tx.Count(recall.Filter{Class: recall.ClassEpisode})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	last := 0
	for i := 1; ; i++ {
		ctx, kill := context.WithCancel(t.Context())
		steps := 0
		m := open(func(learn.Report) {
			if steps++; steps == 5*i { // each later than the one before
				kill()
			}
		})
		err := m.Finish(ctx)
		n := count(m)
		missing, known, merr := m.Organizer.Missing(t.Context())
		m.Close()
		kill()
		if n < last || merr != nil {
			t.Fatalf("%d episodes after %d; %v", n, last, merr)
		}
		last = n
		if err == nil {
			if n < sessions || missing != 0 || known != sessions || i < 3 {
				t.Errorf("at the end %d episodes of %d sessions, %d of %d missing, in %d attempts", n, sessions, missing, known, i)
			}
			break
		}
		if i > 100 {
			t.Fatal(err)
		}
	}
}

// A session that starts while another process writes the index is told what is there, in
// the time that its client grants.
func TestStartBesideAWriter(t *testing.T) {
	w := newWorld(t)
	core := filepath.Join(w.home.MemoryDir(), "core.md")
	if err := os.MkdirAll(filepath.Dir(core), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(core, []byte("# Core\n\nFran writes Go.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if w.start("s2") == "" {
		t.Fatal("nothing is told")
	}
	w.fixes("s3") // which nobody has organised
	unlock, err := durable.TryLock(IndexFile(w.home) + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	d, err := w.teller().Tell(ctx, dialect.Event{Kind: dialect.SessionStart, Client: "claude", Session: "s4", Source: "startup", Cwd: w.env.Dir})
	if err != nil || d.Context == "" {
		t.Errorf("%q, %v", d.Context, err)
	}
}

// ticking is a clock that goes on by a second at each look.
func (w *world) ticking() func() time.Time {
	now := time.Now()
	return func() time.Time { now = now.Add(time.Second); return now }
}
