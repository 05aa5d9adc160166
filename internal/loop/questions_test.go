package loop

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/loop/core"
	"reprise/internal/queue"
)

// TestPutBack: an item about which an agent has asked something is not put back in silence,
// from the moment at which the queue has it set aside; any other is, as before.
func TestPutBack(t *testing.T) {
	t.Parallel()
	n := newNight(t, play{hang: true, do: asks("INTERRUPT_FILE", "which of the two?"), change: true})
	n.add("a", "b", "c", "d")
	ctx := t.Context()
	n.opt.Limits.MaxIterations = 1 // so that nothing but a is begun
	n.begin()
	n.waits(core.ByAgent, "a")

	it, err := PutBack(ctx, n.opt.Dir, n.queue, "a", "go")
	if !errors.Is(err, ErrUnanswered) {
		t.Fatalf("a was put back: %v, %v", it.State, err)
	}
	for _, want := range []string{"which of the two?", "loop resume --item a --answer", "loop resume --item a --no-answer"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not told %q:\n%v", want, err)
		}
	}
	n.want("a blocked, b ready, c ready, d ready")

	if _, err := n.queue.Park(ctx, "b", "", "look first"); err != nil {
		t.Fatal(err)
	}
	if it, err := PutBack(ctx, n.opt.Dir, n.queue, "b", "go"); err != nil || it.State != queue.Ready {
		t.Errorf("what a person had parked: %v, %v", it.State, err)
	}
	if _, err := PutBack(ctx, n.opt.Dir, n.queue, "nothing", "go"); !errors.Is(err, queue.ErrNotFound) {
		t.Errorf("what is not there: %v", err)
	}
	n.over()

	// What is answered goes on with that: it may be put back, whoever does it first.
	n.ask(Request{Kind: "resume", Answer: "the second", Items: []string{"a"}})
	if it, err := PutBack(ctx, n.opt.Dir, n.queue, "a", "go"); err != nil || it.State != queue.Ready {
		t.Errorf("what is answered: %v, %v", it.State, err)
	}
	n.opt.Limits.MaxIterations = 9
	n.all()
	n.want("a done, b done, c done, d done")
	told := false
	for _, r := range n.runs.requests() {
		told = told || strings.Contains(r.Task, "the second")
	}
	if !told {
		t.Error("no session was told the answer")
	}
}

// TestPutBackWhileSettling: between the queue and the state on disk an item is set aside for
// a question that the state has in its worker only.
func TestPutBackWhileSettling(t *testing.T) {
	n := newNight(t)
	n.add("a")
	if _, err := n.queue.Park(t.Context(), "a", "", "asked: which?"); err != nil {
		t.Fatal(err)
	}
	s := core.New("loop-1", core.DefaultLimits(), core.Time{})
	s.Slots[0] = core.Slot{Step: core.Settling, Claim: core.Claim{Item: core.Item{ID: "a"}, Fence: 1},
		Settle: &core.Settle{Fate: core.Park, Class: core.Asked, Reason: "which?", Interrupt: core.ByAgent}}
	st := newStore(n.opt.Dir, n.opt.Disk, n.opt.Now)
	unlock, err := st.lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := st.save(s); err != nil {
		t.Fatal(err)
	}
	if _, err := PutBack(t.Context(), n.opt.Dir, n.queue, "a", ""); !errors.Is(err, ErrUnanswered) {
		t.Errorf("it was put back: %v", err)
	}
	n.want("a blocked")
}

// TestNightPutBackBeside: who puts such an item back beside the loop, as an older program
// does, has it go on without an answer. The log says so, and the session is told.
func TestNightPutBackBeside(t *testing.T) {
	t.Parallel()
	n := newNight(t, play{hang: true, do: asks("INTERRUPT_FILE", "which of the two?"), change: true})
	n.add("a")
	n.opt.Limits.OnInterrupt = core.Skip
	n.all()
	n.want("a blocked")
	if _, err := n.queue.Unpark(t.Context(), "a", ""); err != nil {
		t.Fatal(err)
	}
	s := n.all()
	n.want("a done")
	lines, _, err := Audit(n.opt.Dir, s.Loop)
	said := ""
	for _, l := range lines {
		said += l.Op + " " + l.Text + "\n"
	}
	if err != nil || !strings.Contains(said, "nobody has answered what it asked, and its session is told so: which of the two?") {
		t.Errorf("%v\n%s", err, said)
	}
	if told := n.runs.requests()[1].Task; !strings.Contains(told, "has no answer") {
		t.Errorf("the session is told\n%s", told)
	}
}

// TestWaitsAndEnding: nothing waits for a person in a loop that works, unless it was asked to
// pause and has not heard yet; one that was asked to end is ending before it has heard.
func TestWaitsAndEnding(t *testing.T) {
	dir := t.TempDir()
	ask := func(kind string) {
		t.Helper()
		if err := Ask(durable.Disk{}, dir, Request{Kind: kind, At: ten}); err != nil {
			t.Fatal(err)
		}
	}
	s := core.New("loop-x", core.DefaultLimits(), core.Time{Wall: ten})
	ending := func() bool {
		t.Helper()
		yes, err := Ending(dir, &s)
		if err != nil {
			t.Fatal(err)
		}
		return yes
	}
	if Waits(dir, &s, []Question{{Item: "a", Kind: core.ByAgent, Answer: "yes"}}) || ending() {
		t.Error("something waits, or it ends")
	}
	if !Waits(dir, &s, []Question{{Item: "a", Kind: core.ByAgent}}) {
		t.Error("a question that is open waits for nobody")
	}
	limit := s
	limit.HoldUntil, limit.HoldWall = limit.Now.Loop+time.Hour, ten.Add(time.Hour)
	if limit.Now.Wall = ten; !Waits(dir, &limit, nil) {
		t.Error("nobody can let go on what waits for a rate limit")
	}
	if limit.HoldWall = (time.Time{}); Waits(dir, &limit, nil) {
		t.Error("backoff waits for a person")
	}
	ask("pause")
	if !Waits(dir, &s, nil) || ending() {
		t.Error("a pause that the loop has not heard of yet is none, or ends it")
	}
	ask("stop")
	if !ending() {
		t.Error("a loop that was asked to stop is not ending")
	}
	for _, p := range []core.Phase{core.Paused, core.Waiting} {
		if s.Phase = p; !Waits(t.TempDir(), &s, nil) {
			t.Errorf("a loop that is %s cannot be let go on", p)
		}
	}
}

// TestResumeWhileEnding: who lets a loop that is ending go on means the next one, which finds
// the request.
func TestResumeWhileEnding(t *testing.T) {
	dir := t.TempDir()
	l := New(Options{Dir: dir, Now: func() time.Time { return ten }})
	l.s = core.New("loop-x", core.DefaultLimits(), core.Time{Wall: ten})
	l.s.Phase = core.Stopping
	if err := Ask(durable.Disk{}, dir, Request{Kind: "resume", NoAnswer: true, At: ten}); err != nil {
		t.Fatal(err)
	}
	l.listen(t.Context())
	if left, err := pending(dir); err != nil || len(left) != 1 || len(l.events) != 0 {
		t.Errorf("%d requests are left, %d events were sent: %v", len(left), len(l.events), err)
	}
}

// A person removes the interrupt file while the loop is about to show the interrupt again:
// the removal is heard, and the file not put back, with which the loop would wait for ever.
func TestRemovalBesideShowing(t *testing.T) {
	dir := t.TempDir()
	s := newStore(dir, durable.Disk{}, time.Now)
	file := filepath.Join(dir, interruptFile)
	if err := os.WriteFile(file, []byte("stop and look\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if made, _, why := s.handmade(false); !made || why != "stop and look\n" {
		t.Fatalf("what a person put there: %v %q", made, why)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := s.raise("person: stop and look"); err != nil {
		t.Fatal(err)
	}
	if _, removed, _ := s.handmade(true); !removed {
		t.Error("that it was removed is not heard")
	}
	if err := s.raise("agent: which?"); err != nil {
		t.Fatal(err)
	}
	if made, removed, _ := s.handmade(true); made || removed {
		t.Errorf("the loop's own: made %v, removed %v", made, removed)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the next interrupt is not shown: %v", err)
	}
}

// TestGoesOnBesideQuestions: what a loop waits for beside the questions of agents can be ended
// without an answer to these, which stay open; the command that people are told does it.
func TestGoesOnBesideQuestions(t *testing.T) {
	list := []Question{{Item: "a", Kind: core.ByAgent, Why: "which?", Number: 3}}
	for _, c := range []struct {
		name string
		i    core.Interrupt
		say  Said
		err  error
	}{
		{"a person's interrupt", core.Interrupt{Kind: core.ByPerson, Why: "look", Halt: true, Items: []string{"a"}}, Said{}, nil},
		{"no login", core.Interrupt{Kind: core.ByAuth, Why: "not logged in"}, Said{}, nil},
		{"the question", core.Interrupt{Kind: core.ByAgent, Why: "which?", Items: []string{"a"}}, Said{}, ErrUnanswered},
		{"its item alone", core.Interrupt{Kind: core.ByPerson, Why: "look", Halt: true, Items: []string{"a"}}, Said{Items: []string{"a"}}, ErrUnanswered},
	} {
		s := core.New("loop-x", core.DefaultLimits(), core.Time{Wall: ten})
		s.Phase, s.Interrupt = core.Waiting, &c.i
		if _, err := Requests(&s, list, c.say); !errors.Is(err, c.err) || c.err == nil && err != nil {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
	}
}

// TestRaisedBefore: a ceiling that was raised, and no loop has read that, counts for who lets
// the loop go on; one that was raised for another loop does not.
func TestRaisedBefore(t *testing.T) {
	dir := t.TempDir()
	s := core.New("loop-x", core.DefaultLimits(), core.Time{Wall: ten})
	s.CostUSD, s.Phase, s.Interrupt = s.Limits.MaxUSD, core.Waiting, &core.Interrupt{Kind: core.ByBudget, Why: "the money is used up"}
	for _, c := range []struct {
		loop string
		err  error
	}{{"none", ErrCeiling}, {"loop-y", ErrCeiling}, {"loop-x", nil}} {
		if c.loop != "none" {
			if err := Ask(durable.Disk{}, dir, Request{Kind: "resume", Loop: c.loop, More: &More{USD: 20}, At: ten}); err != nil {
				t.Fatal(err)
			}
		}
		raised, err := Raised(dir, &s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Requests(&raised, nil, Said{}); !errors.Is(err, c.err) || c.err == nil && err != nil {
			t.Errorf("raised for %s: %v, want %v", c.loop, err, c.err)
		}
	}
}

// TestAnswerTakenBackBeforeItIsRead: the last word that lies there for the loop is the one
// that people are shown.
func TestAnswerTakenBackBeforeItIsRead(t *testing.T) {
	say := []Request{{Kind: "resume", Items: []string{"a"}, Answer: "left", Number: 3}, {Kind: "resume", Items: []string{"a"}, NoAnswer: true}, {Kind: "resume", Items: []string{"a"}, Answer: "right"}}
	q := Question{Item: "a", Kind: core.ByAgent, Number: 3}
	for n, want := range []string{"left", "", "right"} {
		if heard(&q, &say[n]); q.Answer != want || q.Open() {
			t.Errorf("after %d: %+v, want the answer %q", n+1, q, want)
		}
	}
	if no := (Said{Items: []string{"a"}, NoAnswer: true}); !no.TakesBack([]Question{q}) || no.TakesBack([]Question{{Item: "a"}, {Item: "b", Answer: "x"}}) {
		t.Error("it does not know what is taken back")
	}
}

// What an older program has set aside it has no kind of; the queue's words tell it: who was stopped
// has asked nothing, and a question is told once.
func TestQuestionsOfAnOlderState(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.add("ask", "hang")
	for id, why := range map[string]string{"ask": "asks: Keep it, or drop it?", "hang": "cancelled: cancelled on the command line"} {
		if _, err := n.queue.Park(t.Context(), id, "", why); err != nil {
			t.Fatal(err)
		}
	}
	s := core.State{Items: map[string]core.Memory{"ask": {Parked: true}, "hang": {Parked: true}}}
	list, err := Questions(t.Context(), n.opt.Dir, &s, n.queue)
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	if q := list[0]; !q.Asked() || q.Words() != "the loop asks about ask: Keep it, or drop it?" || q.Command() != "reprise loop resume --item ask --answer \"…\"" {
		t.Errorf("%q, %q", q.Words(), q.Command())
	}
	if q := list[1]; !q.Stopped() || q.Words() != "hang was stopped by a person: cancelled on the command line" || q.Command() != "reprise loop resume --item hang" {
		t.Errorf("%q, %q", q.Words(), q.Command())
	}
}
