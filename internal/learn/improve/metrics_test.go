package improve_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"reprise/internal/event"
	"reprise/internal/learn/improve"
)

func TestHoldOut(t *testing.T) {
	t.Parallel()
	n := 0
	for i := range 4000 {
		id := fmt.Sprintf("session-%d", i)
		held := improve.HeldOut("claude", id, 5)
		if held != improve.HeldOut("claude", id, 5) {
			t.Fatal("two hooks of a session do not agree")
		}
		if held && !improve.HeldOut("claude", id, 6) {
			t.Error("more held out is not the same and more")
		}
		if held {
			n++
		}
		if improve.HeldOut("claude", id, 0) {
			t.Error("held out though it is switched off")
		}
	}
	if n < 140 || n > 260 {
		t.Errorf("%d of 4000 are held out, want about 200", n)
	}
	if improve.HeldOut("claude", "", 50) {
		t.Error("a session without a name is held out")
	}
}

// measured plays sessions of both kinds: with recall all end well, without it
// some do not.
func measured(t *testing.T, with, without int) *history {
	h := newHistory(t)
	for i := range with + without {
		e := event.Event{Scope: event.ScopeSession, Project: "shop", Session: fmt.Sprint("m", i), Client: []string{"claude", "codex"}[i%2]}
		put := func(typ event.Type, data any) { e.Type = typ; h.add(e, data) }
		put(event.SessionStarted, event.SessionData{Source: "startup"})
		put(event.PromptSubmitted, event.PromptData{Text: "Do it"})
		held := i >= with
		put(event.RecallServed, event.ServedData{At: "prompt", Query: "do it", Items: []event.ServedItem{{ID: "x", Tokens: 30}}, Tokens: 60, HeldOut: held})
		if !held {
			put(event.RecallUsed, event.UsedData{ID: "x", How: "mentioned"})
		}
		put(event.ResponseCompleted, event.ResponseData{Text: "Done."})
		if held && i%5 != 0 {
			put(event.PromptSubmitted, event.PromptData{Text: "no, that is wrong, use the other one instead"})
			put(event.ResponseCompleted, event.ResponseData{Text: "Done."})
		}
		put(event.SessionEnded, event.SessionData{Reason: "other"})
	}
	h.fold()
	return h
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	h := measured(t, 24, 24)
	m, err := improve.Measure(context.Background(), h.org, time.Time{}, "")
	if err != nil || len(m.Groups) != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	g := m.Groups[0]
	if g.Cycle.Sessions != 48 || g.Cycle.Whole != 48 || g.Cycle.Recalled != 24 || g.Cycle.Used != 24 || g.Cycle.Withheld != 24 || g.Cycle.Organised != 48 {
		t.Errorf("%+v", g.Cycle)
	}
	if g.With.Sessions != 24 || g.Without.Sessions != 24 || g.With.Success != 1 || g.Without.Success >= 0.5 || g.With.Hits != 1 || g.With.Tokens.Mean != 60 || g.Without.Tokens.Mean != 0 {
		t.Errorf("%+v\n%+v", g.With, g.Without)
	}
	l := g.Lifts[0]
	if l.Name != "success rate" || !l.Clear || l.Low <= 0 || l.Low > l.Diff || l.High < l.Diff {
		t.Errorf("%+v", l)
	}
	if !strings.Contains(g.Verdict, "Better with recall: success rate, corrections by the user") {
		t.Error(g.Verdict)
	}
	by, err := improve.Measure(context.Background(), h.org, time.Time{}, "client")
	if err != nil || len(by.Groups) != 2 || by.Groups[0].Name != "claude" || by.Groups[0].Cycle.Sessions != 24 || !strings.Contains(by.Groups[0].Verdict, "Too few") {
		t.Errorf("%+v, %v", by, err)
	}
	none, err := improve.Measure(context.Background(), h.org, h.now, "")
	if err != nil || len(none.Groups) != 0 {
		t.Errorf("%+v, %v", none, err)
	}
}

func TestMetricsOfLittle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		with, without int
		want          string
	}{{3, 0, "No session was held out"}, {3, 2, "Too few sessions"}, {0, 2, "Too few sessions"}} {
		h := measured(t, c.with, c.without)
		m, err := improve.Measure(context.Background(), h.org, time.Time{}, "")
		if err != nil || len(m.Groups) != 1 || !strings.Contains(m.Groups[0].Verdict, c.want) {
			t.Errorf("%+v: %+v, %v", c, m, err)
		}
		for _, l := range m.Groups[0].Lifts {
			if l.Clear {
				t.Errorf("%+v: %s is said to be clear", c, l.Name)
			}
		}
	}
}
