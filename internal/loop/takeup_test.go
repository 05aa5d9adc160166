package loop

import (
	"context"
	"strings"
	"testing"

	"reprise/internal/loop/core"
	"reprise/internal/loop/report"
	"reprise/internal/queue"
)

// handMerged are places whose work only a person merges.
type handMerged struct{ *fakePlaces }

func (h *handMerged) Finish(context.Context, Place, queue.Item, core.Fate) (string, bool, error) {
	return "", false, personal("it changes .reprise/project.yaml")
}
func (h *handMerged) MergesInto() string                         { return "main" }
func (h *handMerged) PutAt(Place) report.Put                     { return "" }
func (h *handMerged) Lies(context.Context, string) (bool, error) { return true, nil }

// What only a person merges is tried by one loop more, and not by each that comes; it stays in the
// report.
func TestTakenUpOnceWhatAPersonMerges(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	places := &handMerged{n.place}
	n.opt.Places, n.opt.Merges = places, places
	n.add("a")
	c, err := n.queue.Claim(t.Context(), queue.ClaimOptions{Worker: "w", Lease: Lease})
	if err == nil {
		_, err = n.queue.Done(t.Context(), c.Token, queue.Outcome{})
	}
	if err != nil {
		t.Fatal(err)
	}
	l := New(n.opt)
	unlock, err := l.store.lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	before := Iteration{V: 1, Loop: "loop-0", Item: "a", Title: "Do a", Fence: int64(c.Fence), Fate: core.Done, Branch: "loop-a", Put: report.Owed, Into: "main"}
	if err := l.store.record(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	l.s.Loop = "loop-1"
	for range 3 {
		l.takeUp(t.Context())
	}
	lines, _, err := Audit(n.opt.Dir, "")
	if err != nil || len(lines) != 1 || !strings.Contains(lines[0].Text, "still not merged into main: it changes .reprise/project.yaml") {
		t.Errorf("%+v, %v", lines, err)
	}
	its, _, err := Iterations(n.opt.Dir, "")
	if err != nil || len(report.OwedMerges(its)) != 0 {
		t.Errorf("%+v, %v", its, err)
	}
	now := report.Standing{All: its, Unmerged: map[string]bool{"loop-a": true}}
	if text := report.Night("shop", core.State{Loop: "loop-9"}, nil, nil, now); !strings.Contains(text, "- **a** Do a — its work is for a person to bring to where it belongs: it changes .reprise/project.yaml") {
		t.Error(text)
	}
}

// What a run cost that its client did not say is told as what it is.
func TestCostsInTheAudit(t *testing.T) {
	l := New(Options{Dir: t.TempDir()})
	l.s.Slots = []core.Slot{{Outcome: &core.Outcome{Run: "r", Unpriced: true, Cost: 2.5, Estimated: 2.5, Tokens: 7}}}
	for want, o := range map[string]core.Outcome{
		"2.50 USD at most (an estimate)": {Run: "r", Unpriced: true, Tokens: 7},
		"what it cost is not known":      {Run: "q", Unpriced: true, Untold: true},
		"0.00 USD":                       {Run: "q", OK: true, Unpriced: true},
		"1.00 USD":                       {Run: "q", Cost: 1},
	} {
		if got := l.costs(0, o); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
