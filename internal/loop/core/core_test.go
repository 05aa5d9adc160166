package core

import (
	"encoding/json"
	"testing"
	"time"
)

// table is one iteration with one worker, up to where a run has ended.
func table(t *testing.T, l Limits) (State, *clock) {
	t.Helper()
	c := &clock{}
	s := New("loop-1", l, c.now())
	s = c.apply(t, s, Started{})
	s = c.apply(t, s, Claimed{Slot: 0, Seq: s.Slots[0].Seq, Claim: &Claim{Item: Item{ID: "a"}, Fence: 7}})
	s = c.apply(t, s, Prepared{Slot: 0, Seq: s.Slots[0].Seq})
	s = c.apply(t, s, Launched{Slot: 0, Seq: s.Slots[0].Seq, Run: "run-1"})
	if s.Slots[0].Step != Running {
		t.Fatalf("the worker is %s", s.Slots[0].Step)
	}
	return s, c
}

type clock struct {
	t   time.Duration
	out []Action
}

func (c *clock) now() Time { return Time{Loop: c.t, Wall: epoch.Add(c.t)} }

// apply applies an event and sees to it that the state that was given is as it was.
func (c *clock) apply(t *testing.T, s State, e Event) State {
	t.Helper()
	c.t += time.Second
	before, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	next, out := Apply(s, c.now(), e)
	if after, _ := json.Marshal(s); string(after) != string(before) {
		t.Fatalf("%T changed the state that it was given:\n%s\n%s", e, before, after)
	}
	c.out = out
	return next
}

func (c *clock) did(op Op) *Action {
	for i := range c.out {
		if c.out[i].Op == op {
			return &c.out[i]
		}
	}
	return nil
}

var good = Outcome{Run: "run-1", Session: "s", Completed: true, OK: true, Turns: 3, Changed: true, Resumable: true}

// TestOutcomes is the table of failures: what each leads to.
func TestOutcomes(t *testing.T) {
	failed := func(c Class) Outcome {
		return Outcome{Run: "run-1", Session: "s", Turns: 3, Class: c, Reason: "why", Resumable: true}
	}
	for _, tt := range []struct {
		name    string
		out     Outcome
		fate    Fate
		phase   Phase // afterwards, where the loop waits for interrupts
		session bool  // the next run goes on in the same session
	}{
		{"crash", failed(Crashed), Retry, Working, false},
		{"no class and no result", Outcome{Run: "run-1", Turns: 1}, Retry, Working, false},
		{"timeout is the item's failure, no interrupt", failed(TimedOut), Retry, Working, true},
		{"API", failed(APIError), Release, Working, true},
		{"rate limit", failed(RateLimited), Release, Working, true},
		{"authentication stops everything at once", failed(AuthFailed), Release, Waiting, true},
		{"context full goes on in a fresh session", failed(ContextFull), Release, Working, false},
		{"a session that is gone, and none was to be gone on with", failed(SessionGone), Retry, Working, false},
		{"turns used up", failed(TurnsUsed), Release, Working, true},
		{"the item's money", failed(BudgetUsed), Park, Waiting, true},
		{"refusal is not tried again", failed(Refused), GiveUp, Working, true},
		{"cancelled by somebody", failed(Cancelled), Park, Working, true},
		{"the agent asks", func() Outcome { o := good; o.Asks = "which?"; return o }(), Park, Waiting, true},
		{"the agent reports an error", func() Outcome { o := good; o.Reported = "cannot"; return o }(), Park, Waiting, false},
		{"no turn", func() Outcome { o := good; o.Turns = 0; return o }(), Retry, Working, false},
		{"no change", func() Outcome { o := good; o.Changed = false; return o }(), Retry, Working, true},
		{"a result that is an error", func() Outcome { o := good; o.OK = false; return o }(), Retry, Working, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, c := table(t, DefaultLimits())
			s = c.apply(t, s, Exited{Slot: 0, Run: "run-1", Outcome: tt.out})
			a := c.did(OpSettle)
			if a == nil {
				t.Fatalf("it is not settled: %+v", c.out)
			}
			if a.How.Fate != tt.fate {
				t.Errorf("it is to be %q (%s), want %q", a.How.Fate, a.How.Class, tt.fate)
			}
			s = c.apply(t, s, Settled{Slot: 0, Seq: s.Slots[0].Seq})
			if c.did(OpNotify) != nil {
				t.Error("a person is told before what there is to know is kept")
			}
			s = c.apply(t, s, Archived{Slot: 0, Seq: s.Slots[0].Seq})
			if s.Phase != tt.phase {
				t.Errorf("the loop is %s (%s), want %s", s.Phase, s.Reason, tt.phase)
			}
			if (c.did(OpNotify) != nil) != (tt.phase == Waiting || tt.out.Class == Cancelled) {
				t.Errorf("a person is told: %+v", c.out)
			}
			if tt.fate == GiveUp {
				return
			}
			from := s.Items["a"].From
			if from == nil || from.Run != "run-1" || (from.Session == "s") != tt.session || from.Fresh == tt.session {
				t.Errorf("the next run goes on from %+v", from)
			}
		})
	}
}

// TestThreeFields: what is done has completed, succeeded and passed its checks, and
// a second run whose checks fail is a person's.
func TestThreeFields(t *testing.T) {
	s, c := table(t, DefaultLimits())
	s = c.apply(t, s, Exited{Slot: 0, Run: "run-1", Outcome: good})
	if c.did(OpVerify) == nil {
		t.Fatalf("it is not checked: %+v", c.out)
	}
	for name, g := range map[string]Gate{"passed": GatePassed, "none": GateNone} {
		done := c.apply(t, s, Verified{Slot: 0, Seq: s.Slots[0].Seq, Gate: g})
		if h := c.did(OpSettle).How; h.Fate != Done || !h.Completed || !h.Succeeded || h.Verified != g {
			t.Errorf("%s: %+v", name, h)
		}
		done = c.apply(t, done, Settled{Slot: 0, Seq: done.Slots[0].Seq})
		if done.Tally.Done != 1 {
			t.Errorf("%s: %+v", name, done.Tally)
		}
	}
	s = c.apply(t, s, Verified{Slot: 0, Seq: s.Slots[0].Seq, Gate: GateFailed, Text: "TestX fails"})
	if h := c.did(OpSettle).How; h.Fate != Retry || h.Class != GateFail || !h.Succeeded {
		t.Fatalf("the first time: %+v", h)
	}
	s = c.apply(t, s, Settled{Slot: 0, Seq: s.Slots[0].Seq})
	s = c.apply(t, s, Archived{Slot: 0, Seq: s.Slots[0].Seq})
	c.t += time.Hour
	s = c.apply(t, s, Tick{})
	s = c.apply(t, s, Claimed{Slot: 0, Seq: s.Slots[0].Seq, Claim: &Claim{Item: Item{ID: "a"}, Fence: 8}})
	s = c.apply(t, s, Prepared{Slot: 0, Seq: s.Slots[0].Seq})
	if a := c.did(OpLaunch); a == nil || a.From == nil || a.From.Run != "run-1" || a.From.Session != "s" {
		t.Fatalf("the second run does not go on from the first: %+v", c.out)
	}
	s = c.apply(t, s, Launched{Slot: 0, Seq: s.Slots[0].Seq, Run: "run-2"})
	second := good
	second.Run = "run-2"
	s = c.apply(t, s, Exited{Slot: 0, Run: "run-2", Outcome: second})
	s = c.apply(t, s, Verified{Slot: 0, Seq: s.Slots[0].Seq, Gate: GateFailed, Text: "TestX fails"})
	s = c.apply(t, s, Settled{Slot: 0, Seq: s.Slots[0].Seq})
	s = c.apply(t, s, Archived{Slot: 0, Seq: s.Slots[0].Seq})
	if s.Phase != Waiting || s.Interrupt.Kind != ByGate || len(s.Interrupt.Items) != 1 {
		t.Fatalf("the second time: %s %+v", s.Phase, s.Interrupt)
	}
	s = c.apply(t, s, Resumed{Answer: "TestX is wrong, change it"})
	if a := c.did(OpUnpark); a == nil || a.Item != "a" || s.Items["a"].From.Answer == "" {
		t.Fatalf("the answer does not reach the item: %+v, %+v", c.out, s.Items)
	}
}

// TestBackoff: 2^n seconds, at most 300, for what is no item's fault; five different items that
// fail one after the other are an interrupt, and a success begins again.
func TestBackoff(t *testing.T) {
	for _, c := range []struct {
		name    string
		class   Class
		several bool
		holds   bool
	}{
		{"an item that fails by itself", Crashed, false, false}, // it waits in the queue, and the others need not
		{"a service that fails", APIError, false, true},
		{"one item after the other, and nobody is waited for", Crashed, true, true},
	} {
		l := DefaultLimits()
		l.MaxIdentical = 100
		s := New("loop-1", l, Time{})
		s.Several = c.several
		for n := range 10 {
			s.Slots[0] = Slot{Step: Running, Claim: Claim{Item: Item{ID: itemName(n % 4)}, Fence: 1}, Outcome: &Outcome{Class: c.class}}
			set, _ := s.afterRun(&s.Slots[0])
			var out []Action
			s.settle(0, set, &out)
			want := min(time.Second<<(n+1), 5*time.Minute)
			if !c.holds {
				want = 0
			}
			if s.HoldUntil != want {
				t.Errorf("%s: after %d failures all wait %s, want %s", c.name, n+1, s.HoldUntil, want)
			}
		}
		if c.class == Crashed && len(s.Failing) != 4 {
			t.Errorf("%s: different items that failed: %v", c.name, s.Failing)
		}
	}
	s, c := table(t, DefaultLimits())
	s.Failing, s.Row = []string{"b", "c", "d", "e"}, 4
	s = c.apply(t, s, Exited{Slot: 0, Run: "run-1", Outcome: Outcome{Run: "run-1", Class: Crashed, Turns: 1}})
	s = c.apply(t, s, Settled{Slot: 0, Seq: s.Slots[0].Seq})
	s = c.apply(t, s, Archived{Slot: 0, Seq: s.Slots[0].Seq})
	if s.Phase != Waiting || s.Interrupt.Kind != ByFailing || s.Several || s.HoldUntil != 0 {
		t.Errorf("five in a row: %s %+v, %v", s.Phase, s.Interrupt, s.Several)
	}
	skip := DefaultLimits()
	skip.OnInterrupt = Skip
	s, c = table(t, skip)
	s.Failing, s.Row = []string{"b", "c", "d", "e"}, 4
	s = c.apply(t, s, Exited{Slot: 0, Run: "run-1", Outcome: Outcome{Run: "run-1", Class: Crashed, Turns: 1}})
	s = c.apply(t, s, Settled{Slot: 0, Seq: s.Slots[0].Seq})
	s = c.apply(t, s, Archived{Slot: 0, Seq: s.Slots[0].Seq})
	if s.Phase != Working || !s.Several || s.HoldUntil != s.Now.Loop+32*time.Second {
		t.Errorf("five in a row where nobody is waited for: %s, %v, held until %s at %s", s.Phase, s.Several, s.HoldUntil, s.Now.Loop)
	}
	s, c = table(t, DefaultLimits())
	s.Failing, s.Row, s.Several, s.HoldUntil = []string{"b", "c", "d", "e"}, 4, true, time.Hour
	s = c.apply(t, s, Exited{Slot: 0, Run: "run-1", Outcome: good})
	s = c.apply(t, s, Verified{Slot: 0, Seq: s.Slots[0].Seq, Gate: GateNone})
	if len(s.Failing) != 0 || s.Row != 0 || s.HoldUntil != 0 || s.Several {
		t.Errorf("a success leaves %v, %d, %s", s.Failing, s.Row, s.HoldUntil)
	}
}

// TestRateLimit: until the time that the service names, by whichever clock is first.
func TestRateLimit(t *testing.T) {
	s, c := table(t, DefaultLimits())
	s = c.apply(t, s, Exited{Slot: 0, Run: "run-1", Outcome: Outcome{Run: "run-1", Class: RateLimited, Turns: 1, Reset: epoch.Add(2 * time.Hour)}})
	s = c.apply(t, s, Settled{Slot: 0, Seq: s.Slots[0].Seq})
	s = c.apply(t, s, Archived{Slot: 0, Seq: s.Slots[0].Seq})
	c.t = time.Hour
	if s = c.apply(t, s, Tick{}); c.did(OpClaim) != nil {
		t.Error("something is claimed within the limit")
	}
	asleep := s
	asleep.Now.Wall = asleep.Now.Wall.Add(2 * time.Hour)
	if _, out := Apply(asleep, Time{Loop: c.t + time.Second, Wall: epoch.Add(3 * time.Hour)}, Tick{}); len(out) == 0 {
		t.Error("nothing is claimed after a sleep past the limit")
	}
	c.t = 2*time.Hour + time.Second
	if s = c.apply(t, s, Tick{}); c.did(OpClaim) == nil {
		t.Errorf("nothing is claimed after the limit: %+v", s)
	}
}

// TestDelay: between two items of a worker there is the delay, and no longer.
func TestDelay(t *testing.T) {
	l := DefaultLimits()
	if l.Delay != 5*time.Second {
		t.Errorf("%s by default", l.Delay)
	}
	s, c := table(t, l)
	s = c.apply(t, s, Exited{Slot: 0, Run: "run-1", Outcome: good})
	s = c.apply(t, s, Verified{Slot: 0, Seq: s.Slots[0].Seq, Gate: GatePassed})
	s = c.apply(t, s, Settled{Slot: 0, Seq: s.Slots[0].Seq})
	s = c.apply(t, s, Archived{Slot: 0, Seq: s.Slots[0].Seq})
	ended := c.t
	c.t = ended + l.Delay - 2*time.Second // and a second that the event takes
	if s = c.apply(t, s, Tick{}); c.did(OpClaim) != nil {
		t.Errorf("the next is claimed %s after the last", c.t-ended)
	}
	if at, ok := s.Wake(); !ok || at != ended+l.Delay {
		t.Errorf("it is woken at %s (%v), want %s", at, ok, ended+l.Delay)
	}
	if s = c.apply(t, s, Tick{}); c.did(OpClaim) == nil {
		t.Errorf("nothing is claimed %s after the last: %+v", c.t-ended, s)
	}
}

// TestStallIsNoTimeout: silence and length are two things.
func TestStallIsNoTimeout(t *testing.T) {
	s, c := table(t, DefaultLimits())
	c.t += 9 * time.Minute
	s = c.apply(t, s, Progress{Slot: 0, Run: "run-1"})
	c.t += 9 * time.Minute
	if s = c.apply(t, s, Tick{}); c.did(OpStop) != nil {
		t.Fatal("a run that speaks is stopped")
	}
	c.t += 2 * time.Minute
	if s = c.apply(t, s, Tick{}); c.did(OpStop) == nil || s.Slots[0].Stop != StopStalled {
		t.Fatalf("a silent run goes on: %+v", s.Slots[0])
	}
	s, c = table(t, DefaultLimits())
	for range 13 {
		c.t += 5 * time.Minute
		s = c.apply(t, s, Progress{Slot: 0, Run: "run-1"})
		s = c.apply(t, s, Tick{})
	}
	if s.Slots[0].Stop != StopTimeout {
		t.Errorf("a run that takes too long goes on: %+v", s.Slots[0])
	}
}

// TestLateWord: an answer to what was asked before, or about another claim, counts
// for nothing.
func TestLateWord(t *testing.T) {
	s, c := table(t, DefaultLimits())
	for _, e := range []Event{
		Prepared{Slot: 0, Seq: s.Slots[0].Seq - 1}, Launched{Slot: 0, Seq: s.Slots[0].Seq - 1, Run: "run-9"},
		Exited{Slot: 0, Run: "run-9", Outcome: good}, LeaseLost{Slot: 0, Item: "a", Fence: 6}, LeaseLost{Slot: 0, Item: "b", Fence: 7}, Settled{Slot: 0, Seq: 1}, Archived{Slot: 5, Seq: 1},
		Progress{Slot: -1}, AgentAsks{Slot: 0, Run: "run-9", Why: "?"}, Broken{Slot: 0, Seq: 1},
	} {
		next := c.apply(t, s, e)
		if len(c.out) != 0 || next.Slots[0].Step != Running || next.Slots[0].Lost || next.Slots[0].Stop != "" {
			t.Errorf("%T is believed: %+v %+v", e, next.Slots[0], c.out)
		}
	}
	c.apply(t, s, Claimed{Slot: 0, Seq: 1, Claim: &Claim{Item: Item{ID: "z"}, Fence: 3}})
	if a := c.did(OpRelease); a == nil || a.Claim.Item.ID != "z" {
		t.Errorf("a claim that comes too late is kept: %+v", c.out)
	}
}

// TestIdentical: what fails three times in the same way is given up, and three items
// that do so are a person's.
func TestIdentical(t *testing.T) {
	crash := Outcome{Run: "run-1", Class: Crashed, Turns: 1, Signature: "exit 3"}
	s, c := table(t, DefaultLimits())
	s.Items = map[string]Memory{"a": {Failure: "crash: exit 3", Identical: 2}}
	s = c.apply(t, s, Exited{Slot: 0, Run: "run-1", Outcome: crash})
	if h := c.did(OpSettle).How; h.Fate != GiveUp {
		t.Errorf("the third time: %+v", h)
	}
	s, c = table(t, DefaultLimits())
	s.Items = map[string]Memory{"a": {Failure: "crash: exit 4", Identical: 2}}
	s = c.apply(t, s, Exited{Slot: 0, Run: "run-1", Outcome: crash})
	if h := c.did(OpSettle).How; h.Fate != Retry {
		t.Errorf("another failure: %+v", h)
	}
	s, c = table(t, DefaultLimits())
	s.Failure, s.Same = "crash: exit 3", []string{"b", "c"}
	s = c.apply(t, s, Exited{Slot: 0, Run: "run-1", Outcome: crash})
	s = c.apply(t, s, Settled{Slot: 0, Seq: s.Slots[0].Seq})
	s = c.apply(t, s, Archived{Slot: 0, Seq: s.Slots[0].Seq})
	if s.Phase != Waiting || s.Interrupt.Kind != ByIdentical {
		t.Errorf("three items: %s %+v", s.Phase, s.Interrupt)
	}
}

// TestShortMoney: a run that had less than an item may cost, because the loop has no
// more, does not count against its item.
func TestShortMoney(t *testing.T) {
	l := DefaultLimits()
	l.MaxUSD = 4
	s, c := table(t, l)
	s = c.apply(t, s, Exited{Slot: 0, Run: "run-1", Outcome: Outcome{Run: "run-1", Class: BudgetUsed, Turns: 4, Cost: 4}})
	if h := c.did(OpSettle).How; h.Fate != Release || h.Class != LoopBudget {
		t.Errorf("%+v", h)
	}
	s = c.apply(t, s, Settled{Slot: 0, Seq: s.Slots[0].Seq})
	s = c.apply(t, s, Archived{Slot: 0, Seq: s.Slots[0].Seq})
	if s.Phase != Waiting || s.Interrupt.Kind != ByBudget {
		t.Errorf("%s %+v", s.Phase, s.Interrupt)
	}
	more := More{USD: 5}
	c.t += time.Minute
	s = c.apply(t, s, Resumed{More: &more})
	if s.Phase != Working || c.did(OpClaim) == nil {
		t.Errorf("with more money: %s %+v", s.Phase, c.out)
	}
}

// TestLimitOutlivesSuccess: another worker's success does not end a rate limit.
func TestLimitOutlivesSuccess(t *testing.T) {
	s, c := table(t, DefaultLimits())
	s.HoldUntil, s.HoldWall = time.Hour, epoch.Add(time.Hour)
	s = c.apply(t, s, Exited{Slot: 0, Run: "run-1", Outcome: good})
	s = c.apply(t, s, Verified{Slot: 0, Seq: s.Slots[0].Seq, Gate: GatePassed})
	if s.HoldUntil != time.Hour || s.HoldWall.IsZero() {
		t.Errorf("it is held until %s, %s", s.HoldUntil, s.HoldWall)
	}
}

// TestLimitHolds: nothing but the time that a service has named, or a person who means just
// that, lets anything be begun before.
func TestLimitHolds(t *testing.T) {
	more := More{USD: 50}
	refused := func(reset time.Duration) Event {
		return Exited{Slot: 0, Run: "run-1", Outcome: Outcome{Run: "run-1", Class: RateLimited, Turns: 1, Reset: epoch.Add(reset)}}
	}
	for _, c := range []struct {
		name string
		say  []Event
		want time.Duration // of the hold, of which an hour is left
	}{
		{"an interrupt, and to go on", []Event{Interrupted{Why: "look"}, Resumed{}}, time.Hour},
		{"an interrupt, and its answer", []Event{Interrupted{Why: "look"}, Resumed{Answer: "seen"}}, time.Hour},
		{"a pause, and to go on", []Event{PauseAsked{}, Resumed{}}, time.Hour},
		{"more money", []Event{Resumed{More: &more}}, time.Hour},
		{"the file removed, and nothing waited", []Event{Resumed{NoAnswer: true}}, time.Hour},
		{"to go on, and nothing else waits", []Event{Resumed{}}, 0},
		{"another limit that is shorter", []Event{refused(time.Minute)}, time.Hour},
		{"another limit that is longer", []Event{refused(2 * time.Hour)}, 2 * time.Hour},
		{"a failure", []Event{Exited{Slot: 0, Run: "run-1", Outcome: Outcome{Run: "run-1", Class: Crashed, Turns: 1}}}, time.Hour},
	} {
		l := DefaultLimits()
		l.Workers = 2
		s, k := table(t, l)
		k.t = time.Minute
		s.HoldUntil, s.HoldWall, s.HoldWhy, s.Row = time.Hour, epoch.Add(time.Hour), "rate limit", 20
		for _, e := range c.say {
			s = k.apply(t, s, e)
		}
		if s.HoldUntil != c.want || s.Limited() != (c.want > 0) {
			t.Errorf("%s: it is held until %s (%v), want %s", c.name, s.HoldUntil, s.HoldWall, c.want)
		}
	}
	// Not even a longer backoff takes the place of the time that was named: a success would end it.
	s, c := table(t, DefaultLimits())
	s.HoldUntil, s.HoldWall, s.Row = time.Minute, epoch.Add(time.Minute), 20
	if s.backOff("a crash"); s.HoldWall.IsZero() {
		t.Errorf("held until %s by backoff", s.HoldUntil)
	}
	// What was claimed, and has its place, when the limit is met is given back.
	s = New("loop-1", DefaultLimits(), c.now())
	s = c.apply(t, s, Started{})
	s = c.apply(t, s, Claimed{Slot: 0, Seq: s.Slots[0].Seq, Claim: &Claim{Item: Item{ID: "a"}, Fence: 7}})
	s.HoldUntil, s.HoldWall, s.HoldWhy = time.Hour, epoch.Add(time.Hour), "rate limit"
	s = c.apply(t, s, Prepared{Slot: 0, Seq: s.Slots[0].Seq})
	if set := s.Slots[0].Settle; set == nil || set.Fate != Release || set.Reason != "rate limit: nothing is begun until 2026-01-01T23:00:00Z" {
		t.Errorf("it is %s, %+v", s.Slots[0].Step, set)
	}
}

// TestLimitOutlivesTheLoop: a loop that is begun after another has ended asks the same service.
func TestLimitOutlivesTheLoop(t *testing.T) {
	ended := New("loop-1", DefaultLimits(), Time{Wall: epoch})
	ended.Now = Time{Loop: 3 * time.Hour, Wall: epoch}
	ended.HoldUntil, ended.HoldWall, ended.HoldWhy = 4*time.Hour, epoch.Add(time.Hour), "rate limit"
	backoff := ended
	backoff.HoldWall = time.Time{}
	for _, c := range []struct {
		name  string
		ended *State
		after time.Duration // by the wall's clock
		want  time.Duration
	}{
		{"at once", &ended, 0, time.Hour},
		{"after twenty minutes", &ended, 20 * time.Minute, 40 * time.Minute},
		{"when it is over", &ended, time.Hour, 0},
		{"with a clock that was set back", &ended, -5 * time.Hour, time.Hour},
		{"backoff", &backoff, 0, 0},
	} {
		s := New("loop-2", DefaultLimits(), Time{Wall: epoch.Add(c.after)})
		s.Inherit(c.ended)
		if s.HoldUntil != c.want || s.Limited() != (c.want > 0) || s.Limited() && s.HoldWhy != "rate limit" {
			t.Errorf("%s: it is held until %s (%v, %s), want %s", c.name, s.HoldUntil, s.HoldWall, s.HoldWhy, c.want)
		}
	}
}

// An item that can never be started costs no other item anything: it waits by itself, its
// starts are counted, and it is given up where others are started meanwhile.
func TestStartsOfOneItem(t *testing.T) {
	t.Parallel()
	for _, on := range []OnInterrupt{Wait, Skip} {
		l := DefaultLimits()
		l.OnInterrupt = on
		s := New("l", l, Time{Wall: epoch})
		fail := func(id string, launched bool) Settle {
			s.Launched = s.Launched || launched
			p := &Slot{Claim: Claim{Item: Item{ID: id}, Fence: 1}, Outcome: &Outcome{Class: SpawnFailed, Reason: "no"}}
			set, over := s.afterRun(p)
			if !over {
				t.Fatal("a start that failed is checked")
			}
			s.remember(p, &set)
			return set
		}
		for n, want := range []Settle{
			{Fate: Retry, Delay: 2 * time.Second}, {Fate: Retry, Delay: 4 * time.Second}, {Fate: GiveUp},
		} {
			if got := fail("bad", true); got.Fate != want.Fate || got.Delay != want.Delay {
				t.Errorf("%s, start %d: %s after %s, want %s after %s", on, n+1, got.Fate, got.Delay, want.Fate, want.Delay)
			}
			if s.HoldUntil != 0 || s.Spawning != 0 || s.Interrupt != nil {
				t.Errorf("%s, start %d: others wait for it: %s, %d", on, n+1, s.HoldUntil, s.Spawning)
			}
		}
		// With another that fails, too, it may be the client: all wait, and nothing is counted.
		if got := fail("other", true); got.Fate != Release || s.HoldUntil == 0 || s.Spawning != 1 {
			t.Errorf("%s: the second item: %s, %s, %d", on, got.Fate, s.HoldUntil, s.Spawning)
		}
	}
}

// Where nothing can be started and nobody is asked, items are set aside some time.
func TestNothingStartsUnattended(t *testing.T) {
	t.Parallel()
	l := DefaultLimits()
	l.OnInterrupt = Skip
	s := New("l", l, Time{Wall: epoch})
	for n := 1; n <= l.MaxFailing; n++ {
		p := &Slot{Claim: Claim{Item: Item{ID: "a"}, Fence: int64(n)}, Outcome: &Outcome{Class: SpawnFailed, Reason: "no"}}
		set, _ := s.afterRun(p)
		s.remember(p, &set)
		if want := map[bool]Fate{true: Park, false: Release}[n == l.MaxFailing]; set.Fate != want {
			t.Errorf("start %d: %s, want %s", n, set.Fate, want)
		}
	}
}

// A loop that waits for nobody ends where nothing can be begun, and not where a service is
// away, where something was begun in between, or where a person is waited for.
func TestEndsWhereNothingStarts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		on    OnInterrupt
		class Class
		begun bool // a run, in between
		want  Phase
	}{
		{"no place to work", Skip, BadWorkspace, false, Draining},
		{"no client", Skip, SpawnFailed, false, Draining},
		{"a service is away", Skip, APIError, false, Working},
		{"it was only for a while", Skip, SpawnFailed, true, Working},
		{"a person is waited for", Wait, SpawnFailed, false, Waiting},
	} {
		l := DefaultLimits()
		l.OnInterrupt = c.on
		s := New("l", l, Time{Wall: epoch})
		for n := range 2 {
			if n == 1 && s.Phase == Draining {
				t.Errorf("%s: it ends at once, and what is wrong may pass", c.name)
			}
			if c.begun {
				p := &Slot{Claim: Claim{Item: Item{ID: "b"}, Fence: 1}, Outcome: &Outcome{Run: "run-b", Completed: true, OK: true, Turns: 1}}
				s.remember(p, &Settle{Fate: Release, Class: LoopEnds})
			}
			s.Spawning = l.MaxFailing
			var out []Action
			s.consequences("a", "", Settle{Fate: Release, Class: c.class, Reason: "no"}, &out)
		}
		if s.Phase != c.want {
			t.Errorf("%s: it is %s (%s), want %s", c.name, s.Phase, s.Reason, c.want)
		}
	}
}
