package loop

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"reprise/internal/durable"
	"reprise/internal/loop/core"
)

// A session that a person has stopped has asked nothing: when it goes on it is told that it
// was stopped, why, and what the person says now. That of a session that asked is told so.
func TestWordsOfAStoppedSession(t *testing.T) {
	n := newNight(t, play{hang: true, change: true})
	n.add("a")
	n.begin()
	n.until("running", func(s core.State) bool { return len(s.Slots) > 0 && s.Slots[0].Step == core.Running })
	n.ask(Request{Kind: "interrupt", Why: "look at this"})
	n.waits(core.ByPerson, "a")
	n.ask(Request{Kind: "resume", Answer: "the other file"})
	n.end()
	r := n.runs.requests()
	if len(r) != 2 {
		t.Fatalf("%d runs", len(r))
	}
	if text := r[1].Task; !strings.Contains(text, "Why a person stopped the work:\n   > look at this\n") ||
		!strings.Contains(text, "A person says, now that it goes on:\nthe other file\n") || strings.Contains(text, "asked") {
		t.Errorf("it goes on with\n%s", text)
	}
	l := New(n.opt)
	for why, want := range map[core.Class]string{
		core.Halted:      "Why a person stopped the work",
		core.Cancelled:   "Why a person stopped the work",
		core.Asked:       "What a person was asked",
		core.Reported:    "What a person was asked",
		core.GateFail:    "Why a person was to decide how it goes on",
		core.Crashed:     "Why a person was to decide how it goes on",
		core.RateLimited: "Why a person was to decide how it goes on",
		core.ContextFull: "Why a person was to decide how it goes on",
	} {
		text := l.previous(&core.Continuation{Why: string(why), Asked: "these words", Answer: "those"})
		if !strings.Contains(text, "\n"+want+":\n\n   > these words\n") || strings.Count(text, "these words") != 1 {
			t.Errorf("a new session after %s is told\n%s", why, text)
		}
	}
}

// What was asked of a loop and it has not read yet is there to be shown: each kind once, the
// oldest first, no answers, and nothing that was asked of another loop.
func TestPending(t *testing.T) {
	dir := t.TempDir()
	s := core.State{Loop: "loop-aaaaaaaaaa"}
	if kinds, err := Pending(dir, &s); err != nil || len(kinds) > 0 {
		t.Errorf("of a loop of which nothing was asked: %v, %v", kinds, err)
	}
	st := newStore(dir, durable.Disk{}, time.Now)
	unlock, err := st.lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, r := range []Request{
		{Kind: "pause", Loop: s.Loop}, {Kind: "resume", Answer: "yes"}, {Kind: "interrupt", Loop: "loop-bbbbbbbbbb"},
		{Kind: "stop"}, {Kind: "pause", Loop: s.Loop},
	} {
		r.At = at.Add(time.Duration(i) * time.Second)
		if err := Ask(durable.Disk{}, dir, r); err != nil {
			t.Fatal(err)
		}
	}
	if kinds, err := Pending(dir, &s); err != nil || strings.Join(kinds, " ") != "pause stop" {
		t.Errorf("asked: %v, %v", kinds, err)
	}
	if _, bad := st.take(); len(bad) > 0 {
		t.Fatal(bad)
	}
	if kinds, err := Pending(dir, &s); err != nil || strings.Join(kinds, " ") != "" {
		t.Errorf("once it has read them: %v, %v", kinds, err)
	}
}

// A state that cannot be written is tried again without end, and for no longer than the
// patience after somebody has asked for the loop's end, whether that came before or while it
// was tried.
func TestPatienceWithAStateThatCannotBeKept(t *testing.T) {
	full := durable.NewDisk(func(s durable.Step) *durable.Fault {
		if strings.Contains(filepath.Base(s.Path), stateFile) {
			return &durable.Fault{Err: syscall.ENOSPC}
		}
		return nil
	})
	for name, test := range map[string]struct {
		after time.Duration // the signal comes so long after the first try; less than 0: before it
		tries time.Duration
	}{"before": {-1, savePatience}, "an hour later": {time.Hour, time.Hour + savePatience}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				l := New(Options{Dir: dir, Disk: full, Now: time.Now})
				stop := make(chan string, 1)
				l.ends, l.s.Rev = stop, 1
				began := time.Now()
				if test.after < 0 {
					if err := l.askedToStop("told to"); err != nil {
						t.Fatal(err)
					}
				} else {
					time.AfterFunc(test.after, func() { stop <- "told to" })
				}
				err := l.save(context.Background())
				if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "what runs goes on") || !strings.Contains(err.Error(), "`reprise loop run` goes on with it") {
					t.Errorf("%v", err)
				}
				if took := time.Since(began); took != test.tries {
					t.Errorf("it was tried for %s, not %s", took, test.tries)
				}
			})
		})
	}
}

// Who leaves a loop at once is told the command that goes on with it: of a worker that is another one.
func TestLeftAtOnceSaysHowItGoesOn(t *testing.T) {
	for command, want := range map[string]string{"": "`reprise loop run` takes it up", "reprise worker": "`reprise worker` takes it up"} {
		l := New(Options{Dir: t.TempDir(), Command: command})
		if err := l.askedToStop("SIGTERM"); err != nil {
			t.Fatal(err)
		}
		if err := l.askedToStop("SIGTERM"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", command, err)
		}
	}
}
