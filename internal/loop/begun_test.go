package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/loop/core"
	"reprise/internal/loop/report"
	"reprise/internal/queue"
	"reprise/internal/run"
)

// killed is a night that is killed while the run of a goes on.
func killed(t *testing.T, n *night) core.State {
	t.Helper()
	ctx, die := context.WithCancel(t.Context())
	l, over := New(n.opt), make(chan error, 1)
	go func() {
		_, err := l.Run(ctx, n.stop)
		over <- err
	}()
	n.loop = l
	n.until("running", func(s core.State) bool { return len(s.Slots) > 0 && s.Slots[0].Step == core.Running })
	die()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	s, err := ReadState(n.opt.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return *s
}

// What was asked of a loop that died is no reason to end the next one, which was begun after
// it: a person's last word counts.
func TestStopOfBefore(t *testing.T) {
	t.Parallel()
	n := newNight(t, play{hang: true}, play{change: true}, play{change: true})
	n.add("a", "b")
	s := killed(t, n)
	n.ask(Request{Kind: "stop", Loop: s.Loop, Why: "enough"})
	n.ask(Request{Kind: "resume", More: &More{USD: 7}})
	n.runs.finish(s.Slots[0].Run, "completed", "", nil)
	n.opt.From = &s
	end := n.all()
	n.want("a done, b done")
	if end.Loop != s.Loop || end.Limits.MaxUSD != s.Limits.MaxUSD+7 {
		t.Errorf("%s went on as %s, with at most %v USD", s.Loop, end.Loop, end.Limits.MaxUSD)
	}
}

// Ceilings that are raised while no loop runs are raised by all that was said, and the audit
// says from what to what; until then who looks sees that it is still to come.
func TestRaisedMeanwhile(t *testing.T) {
	t.Parallel()
	n := newNight(t, play{hang: true}, play{change: true}, play{change: true})
	n.add("a")
	s := killed(t, n)
	n.ask(Request{Kind: "resume", More: &More{USD: 7}})
	n.ask(Request{Kind: "resume", More: &More{USD: 2, Tokens: 5}})
	if asked, err := Pending(n.opt.Dir, &s); err != nil || !slices.Equal(asked, []string{"more (9.00 USD, 5 tokens)"}) {
		t.Errorf("still to come: %q %v", asked, err)
	}
	n.runs.finish(s.Slots[0].Run, "completed", "", nil)
	end := n.all()
	if was := s.Limits; end.Limits.MaxUSD != was.MaxUSD+9 || end.Limits.MaxTokens != was.MaxTokens+5 {
		t.Errorf("from %+v to %+v", was, end.Limits)
	}
	if asked, err := Pending(n.opt.Dir, &end); err != nil || len(asked) != 0 {
		t.Errorf("still to come: %q %v", asked, err)
	}
	lines, _, err := Audit(n.opt.Dir, s.Loop)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, l := range lines {
		if l.Op == "raised" {
			told = append(told, l.Text)
		}
	}
	usd, tokens := s.Limits.MaxUSD, s.Limits.MaxTokens
	want := []string{fmt.Sprintf("USD %v (was %v)", usd+7, usd), fmt.Sprintf("USD %v (was %v), tokens %v (was %v)", usd+9, usd+7, tokens+5, tokens)}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// Whoever made settings from what another loop has changed since does not begin by them.
func TestBegunFromWhatIsOver(t *testing.T) {
	t.Parallel()
	n := newNight(t, play{hang: true}, play{change: true})
	n.add("a")
	s := killed(t, n)
	for name, from := range map[string]core.State{"none": {Phase: core.Finished}, "another": {Loop: "loop-other", Rev: s.Rev}, "before": {Loop: s.Loop, Rev: s.Rev - 1}} {
		n.opt.From = &from
		if _, err := New(n.opt).Run(t.Context(), n.stop); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	n.opt.From = nil
	n.runs.finish(s.Slots[0].Run, "completed", "", nil)
	n.all()
}

// How a loop works stays its own: whoever says nothing of it goes on in the same way.
func TestGivenStays(t *testing.T) {
	t.Parallel()
	n := newNight(t, play{hang: true}, play{change: true}, play{change: true})
	n.add("a")
	n.opt.Given = &core.Given{Script: "/x/steps.yaml", Labels: []string{"night"}, Integrate: MergeBranch}
	s := killed(t, n)
	n.runs.finish(s.Slots[0].Run, "completed", "", nil)
	n.opt.Given = nil
	end := n.all()
	if g := end.Given; g == nil || g.Script != "/x/steps.yaml" || g.Integrate != MergeBranch || len(g.Labels) != 1 {
		t.Errorf("it goes on with %+v", g)
	}
	l := end.Limits
	l.MaxUSD, l.Workers = 3, 2
	got := strings.Join(core.Differences(&end, l, &core.Given{Agent: "codex"}), "; ")
	for _, want := range []string{"USD 3 (was 50)", "workers 2 (was 1)", "how it works codex (was script (steps.yaml), only items with night, what is done is merged)"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if got := core.Differences(&end, end.Limits, end.Given); len(got) > 0 {
		t.Errorf("nothing has changed, and %v is told", got)
	}
}

// The loop's directory is taken away: its lock keeps nobody out any more. What runs is
// stopped and given back at the first word, and the error says it.
func TestDirectoryGone(t *testing.T) {
	n := newNight(t, play{hang: true})
	n.add("a")
	n.begin()
	n.until("running", func(s core.State) bool { return len(s.Slots) > 0 && s.Slots[0].Step == core.Running })
	if err := os.Rename(n.opt.Dir, n.opt.Dir+".gone"); err != nil {
		t.Fatal(err)
	}
	n.stop <- "told to"
	select {
	case err := <-n.done:
		if !errors.Is(err, ErrGone) || !strings.Contains(err.Error(), "given back") || !strings.Contains(err.Error(), n.opt.Dir) {
			t.Errorf("%v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
	n.want("a ready")
	if len(n.runs.stops) != 1 {
		t.Errorf("stopped: %v", n.runs.stops)
	}
}

// fullQueue cannot settle anything while full.
type fullQueue struct {
	queue.Queue
	full atomic.Bool
}

func (q *fullQueue) Done(ctx context.Context, t queue.Token, o queue.Outcome) (queue.Item, error) {
	if q.full.Load() {
		return queue.Item{}, &os.PathError{Op: "write", Path: "q", Err: syscall.ENOSPC}
	}
	return q.Queue.Done(ctx, t, o)
}

// What cannot be written down is tried again, and the state says why. A loop that is to end
// does not wait for it for ever; the next one settles what was left, once.
func TestStopWithAFullQueue(t *testing.T) {
	n := newNight(t, play{change: true})
	n.add("a")
	q := &fullQueue{Queue: n.queue}
	q.full.Store(true)
	n.opt.Queue = q
	n.begin()
	n.until("in trouble", func(s core.State) bool {
		return len(s.Slots) > 0 && strings.Contains(s.Slots[0].Trouble, "no space left")
	})
	n.ask(Request{Kind: "stop", Why: "enough"})
	select {
	case err := <-n.done:
		if err == nil || !strings.Contains(err.Error(), "settling a: write q: no space left") || !strings.Contains(err.Error(), "reprise loop run") {
			t.Errorf("%v", err)
		}
	case <-time.After(time.Minute):
		t.Fatalf("it goes on: %+v", n.loop.State())
	}
	n.want("a claimed")
	q.full.Store(false)
	if s := n.all(); s.Tally.Done != 1 || s.Slots[0].Trouble != "" || len(n.runs.started) != 1 {
		t.Errorf("%+v, %d runs", s.Tally, len(n.runs.started))
	}
	n.want("a done")
}

// An item whose file is taken away while it is worked on is nobody's: the worker goes on
// with another, also where its work was being checked when the loop died.
func TestClaimedItemVanishes(t *testing.T) {
	t.Parallel()
	n := newNight(t, play{hang: true}, play{change: true})
	n.add("a")
	s := killed(t, n)
	found, err := filepath.Glob(filepath.Join(n.dir, "queue", "*", "*a*.json"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	if err := durable.Remove(found[0]); err != nil {
		t.Fatal(err)
	}
	n.add("b")
	n.runs.finish(s.Slots[0].Run, "completed", "", nil)
	if s := n.all(); s.Tally.Done != 1 || s.Tally.Lost != 1 {
		t.Errorf("%+v", s.Tally)
	}
	n.want("b done")
}

// A loop that is begun again while it waits for a person, about no item, says for what, and
// how it goes on.
func TestWaitsAgainAndSaysSo(t *testing.T) {
	t.Parallel()
	var plays []play
	for range 5 {
		plays = append(plays, play{start: errNoProgram})
	}
	n := newNight(t, plays...)
	n.add("a")
	ctx, die := context.WithCancel(t.Context())
	over := make(chan error, 1)
	n.loop = New(n.opt)
	go func() {
		_, err := n.loop.Run(ctx, n.stop)
		over <- err
	}()
	n.waits(core.ByFailing)
	die()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	n.begin()
	n.waits(core.ByFailing)
	n.over()
	data, err := os.ReadFile(filepath.Join(n.opt.Dir, auditFile))
	_, again, _ := strings.Cut(string(data), "begins again")
	if err != nil || !strings.Contains(again, `"op":"person"`) || !strings.Contains(again, "reprise loop resume") {
		t.Errorf("%v: %s", err, again)
	}
}

// An id that comes again once the queue has forgotten the item that had it is another item's: the
// run that is kept of the first is none of its own.
func TestIdComesAgain(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.add("a")
	n.all()
	n.want("a done")
	if _, err := n.queue.GC(t.Context(), queue.Retention{DoneAfter: time.Nanosecond}); err != nil {
		t.Fatal(err)
	}
	n.want("")
	n.add("a")
	n.all()
	n.want("a done")
	if got := len(n.runs.requests()); got != 2 {
		t.Errorf("%d runs were started", got)
	}
	if r, err := n.runs.Get(n.runs.id(1)); err != nil || ItemOf(r) != "a" {
		t.Errorf("it is of %q, %v", ItemOf(r), err)
	}
}

// What a person lets go on while no loop runs is back in the queue before the next loop claims
// anything: it is the more urgent one that is begun. And nobody was asked anything, so the log speaks of no answer.
func TestPutBackBeforeItBegins(t *testing.T) {
	t.Parallel()
	n := newNight(t, play{status: run.Killed, reason: "cancelled on the command line"}, play{change: true})
	urgent, lowly := 0, 8
	add := func(id string, priority *int) {
		t.Helper()
		if _, err := n.queue.Add(t.Context(), queue.Item{ID: id, Title: "Do " + id, Priority: priority}); err != nil {
			t.Fatal(err)
		}
	}
	add("urgent", &urgent)
	n.all()
	n.want("urgent blocked")
	add("lowly", &lowly)
	n.ask(Request{Kind: "resume", Items: []string{"urgent"}})
	n.opt.Limits.MaxIterations = 1
	var told []string
	n.opt.Say = func(l report.Line) { told = append(told, l.Text) }
	n.all()
	n.want("lowly ready, urgent done")
	if all := strings.Join(told, "\n"); !strings.Contains(all, "a person lets it go on") || strings.Contains(all, "answer") {
		t.Errorf("the log is\n%s", all)
	}
}

// A state of an older program does not say how its loop was told to work: that what goes on does so
// with another client, perhaps, is said where it is begun.
func TestBegunByAnOlderProgram(t *testing.T) {
	t.Parallel()
	n := newNight(t, play{hang: true}, play{change: true})
	n.add("a")
	s := killed(t, n)
	n.opt.Given = &core.Given{}
	n.runs.finish(s.Slots[0].Run, "completed", "", nil)
	n.all()
	lines, _, err := Audit(n.opt.Dir, s.Loop)
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	for _, l := range lines {
		if l.Op == "loop" && strings.Contains(l.Text, "an older program began it") && strings.Contains(l.Text, "the client claude") {
			said++
		}
	}
	if said != 1 {
		t.Errorf("said %d times: %+v", said, lines)
	}
}
