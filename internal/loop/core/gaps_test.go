package core

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// What follows holds decisions that whole nights seldom come to: each of these places was
// changed once, one at a time, and no other test saw it.

func TestNoChangeMayBeAllRight(t *testing.T) {
	o := Outcome{Completed: true, OK: true, Turns: 1}
	if o.succeeded(Item{}) || !o.succeeded(Item{NoChangeOK: true}) {
		t.Error("a run that changed nothing is a success for an item that needs a change, or none for one that does not")
	}
}

// A loop that waits or is paused can be told to end after what is being done.
func TestDrainWhileItWaits(t *testing.T) {
	for _, phase := range []Phase{Working, Paused, Waiting, Stopping, Finished} {
		s := State{Phase: phase}
		var out []Action
		s.stopAsked(StopAsked{Drain: true, Why: "enough"}, &out)
		want := Draining
		if phase == Stopping || phase == Finished {
			want = phase
		}
		if s.Phase != want {
			t.Errorf("%s becomes %s, not %s", phase, s.Phase, want)
		}
	}
}

// What a person knows already is not told again, and what ends the loop where nobody is to
// decide is only what nothing can be done without.
func TestToldOnce(t *testing.T) {
	for _, c := range []struct {
		phase      Phase
		waits      string // kind of the interrupt that it waits at
		skip       bool
		kind, item string
		told       bool
		after      Phase
	}{
		{Working, "", false, ByBudget, "", true, Waiting},
		{Draining, "", false, ByBudget, "", false, Draining},
		{Stopping, "", false, ByBudget, "", false, Stopping},
		{Draining, "", false, ByBudget, "a", true, Draining},
		{Draining, "", false, ByAuth, "", true, Draining},
		{Stopping, "", false, ByFailing, "", true, Stopping},
		{Waiting, ByAuth, false, ByAuth, "", false, Waiting},
		{Waiting, ByAgent, false, ByAuth, "", true, Waiting},
		{Waiting, ByAgent, false, ByAgent, "a", true, Waiting},
		{Working, "", true, ByAuth, "", true, Draining},
		{Working, "", true, ByBudget, "", true, Draining},
		{Working, "", false, ByRepo, "", true, Waiting},
		{Working, "", true, ByRepo, "", true, Draining},
		{Draining, "", true, ByRepo, "", false, Draining},
		{Waiting, ByRepo, false, ByRepo, "", false, Waiting},
		{Waiting, ByAgent, false, ByRepo, "", true, Waiting},
		{Working, "", true, ByBudget, "a", true, Working},
		{Working, "", true, ByFailing, "", true, Working},
		{Waiting, ByPerson, true, ByAuth, "", true, Waiting},
	} {
		s := State{Phase: c.phase, Limits: Limits{OnInterrupt: Wait}}
		if c.skip {
			s.Limits.OnInterrupt = Skip
		}
		if c.waits != "" {
			s.Interrupt = &Interrupt{Kind: c.waits}
		}
		rev := s.Rev
		var out []Action
		s.raise(c.kind, "why", c.item, &out)
		told := slices.ContainsFunc(out, func(a Action) bool { return a.Op == OpNotify })
		if told != c.told || s.Phase != c.after || (s.Tally.Interrupts == 1) != c.told {
			t.Errorf("%+v: told %v, %d counted, then %s", c, told, s.Tally.Interrupts, s.Phase)
		}
		if ends := c.phase == Working && s.Phase == Draining; s.Unable != (ends && c.kind != ByBudget) {
			t.Errorf("%+v: that it could not go on is %v", c, s.Unable)
		}
		if c.told && s.Rev == rev {
			t.Errorf("%+v: it is told, and the state need not be written", c)
		}
	}
}

// An item that was given back before a session of it had a turn goes on from where it
// would have, by the same number of starts.
func TestGivenBackGoesOnAsBefore(t *testing.T) {
	from := &Continuation{Run: "run-0", Session: "s"}
	for name, o := range map[string]*Outcome{
		"never launched": nil,
		"without a run":  {},
		"no turn":        {Run: "run-1", Class: APIError},
	} {
		s := State{Items: map[string]Memory{"a": {Parked: true, Kind: ByGate, Asked: "x", Number: 3, Starts: 2}}}
		p := &Slot{Claim: Claim{Item: Item{ID: "a"}, Fence: 1}, From: from, Outcome: o}
		s.remember(p, &Settle{Fate: Release, Class: APIError})
		m := s.Items["a"]
		if m.From == nil || m.From.Run != "run-0" {
			t.Errorf("%s: it goes on from %+v", name, m.From)
		}
		if m.Parked || m.Kind != "" || m.Asked != "" || m.Number != 0 {
			t.Errorf("%s: an item that somebody worked on still waits for a person: %+v", name, m)
		}
		if want := map[bool]int{true: 2, false: 0}[o == nil || o.Run == ""]; m.Starts != want {
			t.Errorf("%s: %d starts, want %d", name, m.Starts, want)
		}
	}
}

func TestCopySharesNothing(t *testing.T) {
	s := State{Starting: []string{"a"}, Open: []string{"a"}, Heard: []string{"a"}, Failing: []string{"a"}, Same: []string{"a"}, Unpark: []string{"a"},
		Interrupt: &Interrupt{Kind: ByAgent, Items: []string{"a"}}}
	c := s.Clone()
	c.Interrupt.Kind = ByGate
	for _, list := range [][]string{c.Starting, c.Open, c.Heard, c.Failing, c.Same, c.Unpark, c.Interrupt.Items} {
		list[0] = "b"
	}
	for n, list := range [][]string{s.Starting, s.Open, s.Heard, s.Failing, s.Same, s.Unpark, s.Interrupt.Items} {
		if list[0] != "a" {
			t.Errorf("list %d is one for both", n)
		}
	}
	if s.Interrupt.Kind != ByAgent {
		t.Error("the interrupt is one for both")
	}
}

// Leases are renewed of what is held and not settled yet.
func TestWhatIsHeld(t *testing.T) {
	claim := func(id string) Claim { return Claim{Item: Item{ID: id}, Fence: 1} }
	s := State{Slots: []Slot{{Step: Running, Claim: claim("a")}, {Step: Running, Claim: claim("b"), Lost: true}, {Step: Archiving, Claim: claim("c")}, {Step: Idle}}}
	if held := s.Claims(); len(held) != 1 || held[0].Item.ID != "a" {
		t.Errorf("%+v", held)
	}
}

// What is claimed may be begun up to each ceiling, and not at it.
func TestAtACeilingNothingBegins(t *testing.T) {
	l := Limits{MaxTokens: 10, MaxUSD: 2, MaxTime: time.Hour}
	for _, c := range []struct {
		s    State
		want bool
	}{
		{State{Phase: Working}, true}, {State{Phase: Paused}, true}, {State{Phase: Draining}, true},
		{State{Phase: Waiting}, false}, {State{Phase: Stopping}, false}, {State{Phase: Finished}, false},
		{State{Phase: Working, Tokens: 9, CostUSD: 1.99, Worked: time.Hour - 1}, true},
		{State{Phase: Working, Tokens: 10}, false}, {State{Phase: Working, CostUSD: 2}, false}, {State{Phase: Working, Worked: time.Hour}, false},
	} {
		c.s.Limits = l
		if c.s.mayBegin() != c.want {
			t.Errorf("%s with %d tokens, %.2f USD, %s: may begin is not %v", c.s.Phase, c.s.Tokens, c.s.CostUSD, c.s.Worked, c.want)
		}
	}
}

// An answer is refused that was given for another question, or for none.
func TestAnswersOfOtherQuestions(t *testing.T) {
	s := State{Phase: Waiting, Interrupt: &Interrupt{Kind: ByPerson, Halt: true, Number: 5, Items: []string{"a", "b"}},
		Items: map[string]Memory{"a": {Parked: true, Kind: ByPerson}, "b": {Parked: true, Kind: ByPerson}, "c": {From: &Continuation{Run: "r", Number: 4}}, "d": {From: &Continuation{Run: "r"}}}}
	if items, halted, why := s.meant(Resumed{Answer: "x", Number: 5}); why != "" || !halted || len(items) != 2 {
		t.Errorf("for the interrupt: %v %v %q", items, halted, why)
	}
	if _, _, why := s.meant(Resumed{Answer: "x", Number: 4}); why == "" {
		t.Error("an answer for an interrupt that is over is taken for this one")
	}
	for _, c := range []struct {
		id     string
		number int64
		taken  bool
	}{{"a", 0, true}, {"a", 9, true}, {"c", 0, true}, {"c", 4, true}, {"c", 5, false}, {"d", 0, false}, {"nobody", 0, false}} {
		if why := s.answerable(c.id, Resumed{Answer: "x", Number: c.number}); (why == "") != c.taken {
			t.Errorf("number %d for %s: %q", c.number, c.id, why)
		}
	}
	m := s.Items["a"]
	m.Number = 8
	s.Items["a"] = m
	if s.answerable("a", Resumed{Answer: "x", Number: 9}) == "" || s.answerable("a", Resumed{Answer: "x", Number: 8}) != "" {
		t.Error("what is asked now is not told from what was asked before")
	}
}

// Questions are listed by name, and what was put back is not told again to be unparked.
func TestParkedByName(t *testing.T) {
	s := State{Items: map[string]Memory{"z": {}}}
	for _, id := range []string{"h", "b", "g", "a", "f", "c", "e", "d"} {
		s.Items[id] = Memory{Parked: true}
	}
	if got := s.parked(); !slices.Equal(got, []string{"a", "b", "c", "d", "e", "f", "g", "h"}) {
		t.Errorf("%v", got)
	}
	var out []Action
	if s.unpark("z", "x", &out); len(out) > 0 || s.Items["z"].From != nil {
		t.Errorf("an item that is not set aside is put back: %+v, %+v", out, s.Items["z"])
	}
}

// Only a loop that is to wait for a person waits once more before it ends.
func TestWaitsOnceMore(t *testing.T) {
	for on, want := range map[OnInterrupt]bool{Wait: true, Skip: false} {
		s := State{Phase: Draining, Limits: Limits{OnInterrupt: on}, Open: []string{"a"}, Items: map[string]Memory{"a": {Parked: true, Kind: ByAgent, Asked: "which?"}}}
		var out []Action
		if s.waitAgain(&out) != want || (s.Phase == Waiting) != want {
			t.Errorf("%s: then it is %s", on, s.Phase)
		}
	}
}

// A state that knows its questions is left as it is.
func TestUpgradeLeavesQuestions(t *testing.T) {
	s := State{Interrupt: &Interrupt{Kind: ByGate, Why: "checks", Items: []string{"a"}}, Items: map[string]Memory{"a": {Parked: true, Kind: ByAgent, Asked: "which?"}}}
	if s.Upgrade(); s.Items["a"].Kind != ByAgent || s.Items["a"].Asked != "which?" {
		t.Errorf("%+v", s.Items["a"])
	}
}

// A claim ends what was said of an empty queue, and a backoff never shortens a longer one.
func TestClaimedIsNotEmpty(t *testing.T) {
	s := New("loop-1", DefaultLimits(), (&clock{}).now())
	s.Slots[0] = Slot{Step: Claiming, Seq: 9}
	s.Empty, s.Left = true, "b waits for c"
	var out []Action
	s.claimed(Claimed{Slot: 0, Seq: 9, Claim: &Claim{Item: Item{ID: "b"}, Fence: 1}}, &out)
	if s.Empty || s.Left != "" {
		t.Errorf("empty %v, left %q", s.Empty, s.Left)
	}
	s.HoldUntil, s.HoldWhy = s.Now.Loop+24*time.Hour, "a limit"
	if s.backOff("again"); s.HoldWhy != "a limit" {
		t.Errorf("held for %s until %s", s.HoldWhy, s.HoldUntil)
	}
}

// Who begins a loop anew that was ending, and did not live to, wants it to work. What was
// being stopped is stopped all the same.
func TestBegunAgainWhileItEnds(t *testing.T) {
	for _, phase := range []Phase{Draining, Stopping} {
		l := DefaultLimits()
		l.Workers = 2
		s := New("loop-1", l, Time{})
		s.Slots[1] = Slot{Step: Running, Run: "r", Claim: Claim{Item: Item{ID: "a"}, Fence: 1}, Stop: StopEnd, Why: "enough"}
		s.Phase, s.Reason, s.Unable = phase, "enough", true
		s, out := Apply(s, Time{}, Started{Claims: []Claim{{Item: Item{ID: "a"}, Fence: 1}}})
		if s.Phase != Working || s.Unable || s.Slots[0].Step != Claiming {
			t.Errorf("%s: it is %s, and its idle worker is %s", phase, s.Phase, s.Slots[0].Step)
		}
		if !slices.ContainsFunc(out, func(a Action) bool { return a.Op == OpStop && a.Run == "r" }) {
			t.Errorf("%s: what was being stopped goes on: %v", phase, out)
		}
	}
	// One that has worked for as long as it may has not become younger by it.
	s := New("loop-1", DefaultLimits(), Time{})
	s.Phase, s.Worked = Stopping, s.Limits.MaxTime
	if s, _ = Apply(s, Time{}, Started{}); s.Phase != Finished {
		t.Errorf("it has worked for %s, and is %s", s.Worked, s.Phase)
	}
}

// A loop goes on with its own limits, raised ones too, unless it is told others.
func TestBegunAgainWithLimits(t *testing.T) {
	s := New("loop-1", DefaultLimits(), Time{})
	raise := More{USD: 20}
	s, _ = Apply(s, Time{}, Resumed{More: &raise})
	s, _ = Apply(s, Time{}, Started{})
	if s.Limits.MaxUSD != 70 || len(s.Slots) != 1 {
		t.Errorf("after its death it may spend %v, with %d workers", s.Limits.MaxUSD, len(s.Slots))
	}
	more := s.Limits
	more.Workers, more.MaxUSD = 3, 2
	s, _ = Apply(s, Time{}, Started{Limits: &more, Given: &Given{Agent: "codex"}})
	if s.Limits != more || len(s.Slots) != 3 || s.Given.Agent != "codex" {
		t.Errorf("told %+v, it has %+v, %d workers and %+v", more, s.Limits, len(s.Slots), s.Given)
	}
	more.Workers = 1
	if s, _ = Apply(s, Time{}, Started{Limits: &more}); s.Given == nil {
		t.Error("how it works is forgotten")
	}
}

// A loop that waits at a ceiling goes on when it is begun anew with a higher one, and only then.
func TestBegunAgainAtACeiling(t *testing.T) {
	for _, usd := range []float64{50, 90} {
		s := New("loop-1", DefaultLimits(), Time{})
		s.CostUSD = 50
		s, _ = Apply(s, Time{}, Tick{})
		if s.Phase != Waiting || s.Interrupt.Kind != ByBudget {
			t.Fatalf("it is %s, %+v", s.Phase, s.Interrupt)
		}
		l := s.Limits
		l.MaxUSD = usd
		s, out := Apply(s, Time{}, Started{Limits: &l})
		lowered := slices.ContainsFunc(out, func(a Action) bool { return a.Op == OpLower })
		if more := usd > 50; (s.Phase == Working) != more || lowered != more {
			t.Errorf("with %v USD it is %s (%v)", usd, s.Phase, out)
		}
	}
}

// What could not be done of a claim that is lost needs to be done
// no more, whichever of the two is heard of first.
func TestLostIsNotTriedAgain(t *testing.T) {
	lost, broken := LeaseLost{Item: "a", Fence: 1}, Broken{Seq: 7, Err: "no such item: a"}
	for _, step := range []Step{Preparing, Verifying} {
		for _, order := range [][2]Event{{lost, broken}, {broken, lost}} {
			s := New("loop-1", DefaultLimits(), Time{})
			s.Slots[0], s.Seq = Slot{Step: step, Seq: 7, Claim: Claim{Item: Item{ID: "a"}, Fence: 1}}, 7
			s, _ = Apply(s, Time{}, order[0])
			s, out := Apply(s, Time{}, order[1])
			if p := s.Slots[0]; p.Step != Archiving || p.Settle.Fate != Drop || p.Settle.Class != LeaseGone || len(out) != 1 || out[0].Op != OpArchive {
				t.Errorf("%s, %T first: %+v, %+v", step, order[0], p, out)
			}
		}
	}
}

// A loop that ends does not try for ever what cannot be done: what has not begun is given
// back, and where nothing else is left, all of it is left for the next.
func TestStoppingIsNotForEver(t *testing.T) {
	claim := Claim{Item: Item{ID: "a"}, Fence: 1}
	at := func(step Step) State {
		s := New("loop-1", DefaultLimits(), Time{})
		s.Slots[0] = Slot{Step: step, Seq: 7, Claim: claim, Settle: &Settle{Fate: Done}, Waits: true, Retries: 9, NextAt: time.Hour}
		s.Seq = 7
		s, _ = Apply(s, Time{}, StopAsked{Why: "enough"})
		if p := s.Slots[0]; p.NextAt != 0 || p.Retries != 0 {
			t.Errorf("%s: it is tried again in %s", step, p.NextAt)
		}
		return s
	}
	s, _ := Apply(at(Preparing), Time{}, Broken{Seq: 7, Err: "no space"})
	if p := s.Slots[0]; p.Step != Settling || p.Settle.Fate != Release {
		t.Errorf("what had no place yet is %s, %+v", p.Step, p.Settle)
	}
	for step, left := range map[Step]bool{Verifying: false, Settling: true, Archiving: true} {
		s, tries := at(step), 0
		var out []Action
		for now := (Time{}); tries < 20 && len(out) == 0; tries++ {
			now.Loop += time.Second
			s, out = Apply(s, now, Broken{Seq: s.Slots[0].Seq, Err: "no space"})
		}
		switch op := out[0]; {
		case tries != leaveAfter:
			t.Errorf("%s: after %d tries", step, tries)
		case left && (op.Op != OpLeave || op.Text != string(step)+" a: no space"):
			t.Errorf("%s: %+v", step, op)
		case !left && (op.Op != OpSettle || op.How.Fate != Release):
			t.Errorf("%s: %+v", step, op)
		}
	}
	// While somebody else is at work it is not left.
	s = at(Settling)
	s.Slots = append(s.Slots, Slot{Step: Running, Run: "r", Claim: Claim{Item: Item{ID: "b"}, Fence: 1}, Stop: StopEnd})
	for range 9 {
		if _, out := Apply(s, Time{}, Broken{Seq: 7, Err: "no space"}); len(out) != 0 {
			t.Errorf("with a run that is being stopped: %v", out)
		}
		s, _ = Apply(s, Time{}, Broken{Seq: 7, Err: "no space"})
	}
	// What cannot be put back is no reason to stay, either.
	s = New("loop-1", DefaultLimits(), Time{})
	s.Unpark, s.Phase = []string{"a"}, Stopping
	for n := 1; n <= leaveAfter; n++ {
		var out []Action
		if s, out = Apply(s, Time{}, Broken{Slot: -1, Err: "no space"}); (len(out) > 0) != (n == leaveAfter) {
			t.Errorf("after %d tries: %v", n, out)
		}
	}
}

// TestBeingMergedIsNoFailure: an item that has to wait for a merge goes back as it was, and
// nothing is started for it or counted against it.
func TestBeingMergedIsNoFailure(t *testing.T) {
	s := New("loop-1", DefaultLimits(), Time{})
	s.Slots[0] = Slot{Step: Preparing, Seq: 7, Claim: Claim{Item: Item{ID: "a"}, Fence: 3}}
	s, out := Apply(s, Time{}, Prepared{Slot: 0, Seq: 7, Later: "it is being merged by b"})
	p := s.Slots[0]
	if p.Step != Settling || p.Settle.Fate != Release || p.Settle.Class != BeingMerged || p.Settle.Delay != 0 || s.Spawning+s.Row != 0 || len(s.Items) != 0 {
		t.Errorf("%+v %+v", p, p.Settle)
	}
	if len(out) != 1 || out[0].Op != OpSettle {
		t.Errorf("%+v", out)
	}
}

// TestEndedRunIsNoStall: a run that has ended, and of which it cannot be seen for the moment
// what came of it, is not told to stop because it says nothing.
func TestEndedRunIsNoStall(t *testing.T) {
	s := New("loop-1", DefaultLimits(), Time{})
	s.Slots[0] = Slot{Step: Running, Run: "r", Seq: 7, Claim: Claim{Item: Item{ID: "a"}, Fence: 3}, StallAt: 1}
	s, _ = Apply(s, Time{}, Broken{Slot: 0, Seq: 7, Err: "no space"})
	at := s.Slots[0].NextAt
	for _, now := range []Time{{Loop: at / 2}, {Loop: at}} {
		var out []Action
		if s, out = Apply(s, now, Tick{}); s.Slots[0].Stop != "" {
			t.Fatalf("at %s it is stopped: %+v", now.Loop, s.Slots[0])
		}
		if watched := len(out) == 1 && out[0].Op == OpWatch; watched != (now.Loop == at) {
			t.Errorf("at %s: %+v", now.Loop, out)
		}
		s.Slots[0].StallAt = at + 1
	}
}

// TestPlaceAwayIsNoFailure: what came to nothing while the project's directory was away goes back
// as it was, however often that happens, and is gone on with in its session.
func TestPlaceAwayIsNoFailure(t *testing.T) {
	s := New("loop-1", DefaultLimits(), Time{})
	for n := range int64(9) {
		s.Slots[0] = Slot{Step: Running, Run: "r", Seq: 7, Claim: Claim{Item: Item{ID: "a"}, Fence: n}}
		var out []Action
		s, out = Apply(s, Time{}, Exited{Run: "r", Outcome: Outcome{Run: "r", Session: "s", Resumable: true, Turns: 3, Class: PlaceAway}})
		p := s.Slots[0]
		if p.Step != Settling || p.Settle.Fate != Release || p.Settle.Delay != 0 || p.Settle.Interrupt != "" || s.Spawning+s.Row+len(s.Failing)+len(s.Same) != 0 {
			t.Fatalf("%+v %+v", p, p.Settle)
		}
		if m := s.Items["a"]; m.Identical+m.Starts+m.GateFails+m.Continues != 0 || m.From == nil || m.From.Session != "s" || m.From.Fresh {
			t.Fatalf("%+v %+v", m, m.From)
		}
		if len(out) != 1 || out[0].Op != OpSettle {
			t.Fatalf("%+v", out)
		}
	}
}

// TestPutOffNoLonger: what is seen by a look is looked for again before backoff says so.
func TestPutOffNoLonger(t *testing.T) {
	const most = 10 * time.Second
	for _, step := range []Step{Claiming, Preparing, Running} {
		s := New("loop-1", DefaultLimits(), Time{})
		s.Slots[0] = Slot{Step: step, Run: "r", Seq: 7, Claim: Claim{Item: Item{ID: "a"}, Fence: 3}, StallAt: time.Hour}
		for n, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
			s.Slots[0].Step, s.Slots[0].Seq = step, 7
			s, _ = Apply(s, s.Now, Broken{Slot: 0, Seq: 7, Err: "away", Most: most})
			if got := s.Slots[0].NextAt - s.Now.Loop; got != want*time.Second {
				t.Errorf("%s: after %d times it waits %s", step, n+1, got)
			}
		}
		s.Slots[0].Step, s.Slots[0].Seq = step, 7
		if s, _ = Apply(s, s.Now, Broken{Slot: 0, Seq: 7, Err: "full"}); s.Slots[0].NextAt-s.Now.Loop != 64*time.Second {
			t.Errorf("%s: without that it waits %s", step, s.Slots[0].NextAt-s.Now.Loop)
		}
	}
}

// TestPlaceInUseIsNoFailure: an item in whose place somebody works goes back as it was, for a while.
func TestPlaceInUseIsNoFailure(t *testing.T) {
	s := New("loop-1", DefaultLimits(), Time{})
	s.Slots[0] = Slot{Step: Preparing, Seq: 7, Claim: Claim{Item: Item{ID: "a"}, Fence: 3}}
	s, _ = Apply(s, Time{}, Prepared{Slot: 0, Seq: 7, Later: "somebody works in the workspace", InUse: true})
	p := s.Slots[0]
	if p.Step != Settling || p.Settle.Fate != Release || p.Settle.Class != PlaceInUse || p.Settle.Delay != inUse || s.Spawning+s.Row != 0 || len(s.Items) != 0 {
		t.Errorf("%+v %+v", p, p.Settle)
	}
}

// TestHeldIsNoFailure: an item that cannot be begun because a person has to look at the repository
// goes back as it was, and the loop waits for that, or ends.
func TestHeldIsNoFailure(t *testing.T) {
	for how, want := range map[OnInterrupt]Phase{Wait: Waiting, Skip: Finished} {
		s := New("loop-1", DefaultLimits(), Time{})
		s.Limits.OnInterrupt = how
		s.Slots[0] = Slot{Step: Preparing, Seq: 7, Claim: Claim{Item: Item{ID: "a"}, Fence: 3}}
		s, _ = Apply(s, Time{}, Prepared{Slot: 0, Seq: 7, Held: "look at this", Err: "x"})
		p := s.Slots[0]
		if p.Step != Settling || p.Settle.Fate != Release || p.Settle.Class != RepoHeld || p.Settle.Delay != 0 || s.Spawning+s.Row != 0 || len(s.Items) != 0 {
			t.Errorf("%+v %+v", p, p.Settle)
		}
		s, _ = Apply(s, Time{}, Settled{Slot: 0, Seq: s.Slots[0].Seq})
		s, _ = Apply(s, Time{}, Archived{Slot: 0, Seq: s.Slots[0].Seq})
		if s.Phase != want || s.Unable != (how == Skip) || s.Tally.Interrupts != 1 {
			t.Errorf("%s: it is %s (%s), and that it could not go on is %v", how, s.Phase, s.Reason, s.Unable)
		}
	}
}

// TestRemoteAwayIsNoFailure: while the remote is away each item goes back as it was, nobody is
// waited for, and what is held back is held longer each time; what is done ends that.
func TestRemoteAwayIsNoFailure(t *testing.T) {
	s := New("loop-1", DefaultLimits(), Time{})
	s.Launched = true // others could be begun, before
	var held time.Duration
	for n := range 12 {
		id := string(rune('a' + n%2))
		s.Slots[0] = Slot{Step: Preparing, Seq: s.Seq + 1, Claim: Claim{Item: Item{ID: id}, Fence: int64(n)}}
		s, _ = Apply(s, s.Now, Prepared{Slot: 0, Seq: s.Slots[0].Seq, Away: "no such repository"})
		p := s.Slots[0]
		if p.Step != Settling || p.Settle.Fate != Release || p.Settle.Class != RemoteAway {
			t.Fatalf("%+v %+v", p, p.Settle)
		}
		s, _ = Apply(s, s.Now, Settled{Slot: 0, Seq: s.Slots[0].Seq})
		s, _ = Apply(s, s.Now, Archived{Slot: 0, Seq: s.Slots[0].Seq})
		if wait := s.HoldUntil - s.Now.Loop; s.Phase != Working || s.Interrupt != nil || s.HoldWhy != "no such repository" || wait < held || len(s.Items) != 0 {
			t.Fatalf("after %d it is %s, held for %s (%s), with %+v of %v", n+1, s.Phase, wait, s.HoldWhy, s.Interrupt, s.Items)
		} else {
			held = wait
		}
	}
	if held != s.Limits.BackoffMax {
		t.Errorf("it waits %s at last", held)
	}
}

// TestClearedGoesOn: what a person has mended is waited for no longer; what somebody asks beside
// that is, and so is a person who has stopped all.
func TestClearedGoesOn(t *testing.T) {
	waiting := func(i Interrupt) State {
		s := New("loop-1", DefaultLimits(), Time{})
		s.Phase, s.Interrupt, s.LookAt = Waiting, &i, time.Hour
		s.Items = map[string]Memory{"a": {Parked: true, Kind: ByAgent, Asked: "which?", Number: 1}}
		return s
	}
	for name, c := range map[string]struct {
		i     Interrupt
		kind  string
		after Phase
		waits string // for what, "" for nothing
	}{
		"mended":           {Interrupt{Kind: ByRepo, Why: "x"}, ByRepo, Working, ""},
		"another":          {Interrupt{Kind: ByAuth, Why: "x"}, ByRepo, Waiting, ByAuth},
		"a person":         {Interrupt{Kind: ByRepo, Why: "x", Halt: true}, ByRepo, Waiting, ByRepo},
		"asked beside it":  {Interrupt{Kind: ByRepo, Why: "x", Items: []string{"a"}}, ByRepo, Waiting, ByAgent},
		"answered already": {Interrupt{Kind: ByRepo, Why: "x", Items: []string{"b"}}, ByRepo, Working, ""},
	} {
		s, out := Apply(waiting(c.i), Time{}, Cleared{Kind: c.kind})
		is := ""
		if s.Interrupt != nil {
			is = s.Interrupt.Kind
		}
		if s.Phase != c.after || is != c.waits {
			t.Errorf("%s: it is %s and waits for %q", name, s.Phase, is)
		}
		if lowered := slices.ContainsFunc(out, func(a Action) bool { return a.Op == OpLower }); lowered != (c.waits == "") {
			t.Errorf("%s: %v", name, out)
		}
		if c.waits == "" && s.LookAt != 0 {
			t.Errorf("%s: it looks for work later", name)
		}
	}
	s := New("loop-1", DefaultLimits(), Time{})
	if s, _ = Apply(s, Time{}, Cleared{Kind: ByRepo}); s.Phase != Working {
		t.Errorf("one that works becomes %s", s.Phase)
	}
}

// Servers that are away make each try take as long as they are waited for: a loop that ends is gone
// before who manages services kills it, also where few tries fit into that time.
func TestStoppingEndsInTime(t *testing.T) {
	s := New("loop-1", DefaultLimits(), Time{})
	s.Slots[0], s.Seq = Slot{Step: Settling, Seq: 7, Claim: Claim{Item: Item{ID: "a"}, Fence: 1}, Settle: &Settle{Fate: Done}}, 7
	var out []Action
	s, _ = Apply(s, Time{Loop: time.Hour}, StopAsked{Why: "SIGTERM"})
	s, out = Apply(s, Time{Loop: time.Hour + 20*time.Second}, Broken{Seq: 7, Err: "no servers"})
	if len(out) != 0 {
		t.Errorf("after one try: %v", out)
	}
	if s.Slots[0].NextAt-s.Now.Loop > leaveTime {
		t.Errorf("the next one is in %s", s.Slots[0].NextAt-s.Now.Loop)
	}
	s, _ = Apply(s, Time{Loop: s.Slots[0].NextAt}, Tick{})
	if _, out = Apply(s, Time{Loop: time.Hour + leaveTime}, Broken{Seq: 7, Err: "no servers"}); len(out) != 1 || out[0].Op != OpLeave {
		t.Errorf("after %s: %v", leaveTime, out)
	}
}

// Of a claim that was lost while nobody drove the loop is told what became of it, to the run that is
// stopped and in the iteration: nobody else need have it.
func TestLostWhileNobodyDrove(t *testing.T) {
	const what = "its worker's process 7 ended, and the item is ready again"
	for _, step := range []Step{Preparing, Launching, Running, Verifying} {
		s := New("loop-1", DefaultLimits(), Time{})
		s.Slots[0], s.Seq = Slot{Step: step, Seq: 7, Run: "r", Claim: Claim{Item: Item{ID: "a"}, Fence: 1}}, 7
		s, out := Apply(s, Time{}, Started{Went: []Went{{Item: "a", Fence: 2, What: "another claim"}, {Item: "a", Fence: 1, What: what}}})
		said := ""
		for _, a := range out {
			switch a.Op {
			case OpStop:
				said = a.Text
				s, out = Apply(s, Time{}, Exited{Run: "r", Outcome: Outcome{Run: "r", Completed: true, OK: true, Turns: 2, Changed: true}})
				if h := s.Slots[0].Settle; h == nil || h.Reason != what {
					t.Errorf("%s: %+v, %v", step, h, out)
				}
			case OpArchive:
				said = a.How.Reason
			}
		}
		if !strings.Contains(said, what) {
			t.Errorf("%s: %q", step, said)
		}
	}
}
