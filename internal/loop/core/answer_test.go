package core

import (
	"math"
	"slices"
	"strconv"
	"testing"
	"time"
)

// asked is a loop that waits for the questions of two items.
func asked() State {
	l := DefaultLimits()
	l.Workers, l.UntilEmpty = 2, true
	s := New("loop-1", l, Time{})
	for n, id := range []string{"a", "b"} {
		s.Items[id] = Memory{Parked: true, Kind: ByAgent, Asked: "which " + id, Number: int64(n + 3), From: &Continuation{Run: "run-" + id, Session: "s"}}
	}
	s.Interrupt = &Interrupt{Kind: ByAgent, Why: "which a", Items: []string{"a", "b"}}
	s.Phase = Waiting
	return s
}

// TestAnswerReachesItsQuestion: an answer reaches exactly the question that it was given
// for, or is refused, and then nothing changes.
func TestAnswerReachesItsQuestion(t *testing.T) {
	for _, c := range []struct {
		name  string
		say   []Resumed
		a, b  string // what is answered to each
		open  []string
		fails bool // the last is refused
	}{
		{"to which it is not said", []Resumed{{Answer: "yes"}}, "", "", []string{"a", "b"}, true},
		{"to one", []Resumed{{Answer: "yes", Items: []string{"a"}, Number: 3}}, "yes", "", []string{"b"}, false},
		{"to the only one that is left", []Resumed{{Answer: "yes", Items: []string{"a"}}, {Answer: "no"}}, "yes", "no", nil, false},
		{"to another question of the item", []Resumed{{Answer: "yes", Items: []string{"a"}, Number: 2}}, "", "", []string{"a", "b"}, true},
		{"to an item that asks nothing", []Resumed{{Answer: "yes", Items: []string{"c"}}}, "", "", []string{"a", "b"}, true},
		{"to an interrupt that is over", []Resumed{{Answer: "yes", Number: 9}}, "", "", []string{"a", "b"}, true},
		{"silence", []Resumed{{}}, "", "", []string{"a", "b"}, false},
		{"silence that is meant", []Resumed{{NoAnswer: true}}, "", "", nil, false},
		{"after it was let go", []Resumed{{NoAnswer: true}, {Answer: "late", Items: []string{"b"}, Number: 4}}, "", "late", nil, false},
		{"the last counts", []Resumed{{Answer: "x", Items: []string{"a"}}, {Answer: "y", Items: []string{"a"}}}, "y", "", []string{"b"}, false},
		{"a request that is heard twice", []Resumed{{Answer: "x", Items: []string{"a"}, Request: "1"}, {Answer: "y", Items: []string{"a"}, Request: "2"}, {Answer: "x", Items: []string{"a"}, Request: "1"}}, "y", "", []string{"b"}, false},
	} {
		s := asked()
		var out []Action
		for _, e := range c.say {
			s, out = Apply(s, Time{}, e)
		}
		refused := slices.ContainsFunc(out, func(a Action) bool { return a.Op == OpRefuse })
		if refused != c.fails {
			t.Errorf("%s: refused %v: %+v", c.name, refused, out)
		}
		for id, want := range map[string]string{"a": c.a, "b": c.b} {
			f := s.Items[id].From
			if f == nil || f.Answer != want || want != "" && f.Asked != "which "+id {
				t.Errorf("%s: %s goes on from %+v, want the answer %q beside its question", c.name, id, f, want)
			}
		}
		if got := s.parked(); !slices.Equal(got, c.open) {
			t.Errorf("%s: open are %v, want %v", c.name, got, c.open)
		}
	}
}

// TestOpenQuestionKeepsTheLoop: a loop in which one of two questions was answered goes on,
// and does not end before the other is.
func TestOpenQuestionKeepsTheLoop(t *testing.T) {
	s, _ := Apply(asked(), Time{}, Resumed{Answer: "yes", Items: []string{"a"}})
	if s.Phase != Working {
		t.Fatalf("it is %s", s.Phase)
	}
	delete(s.Items, "a")
	s.Unpark, s.Empty, s.LookAt = nil, true, 1<<40
	if s, _ = Apply(s, Time{}, Tick{}); s.Phase != Waiting || !slices.Equal(s.Interrupt.Items, []string{"b"}) || s.Interrupt.Why != "which b" {
		t.Fatalf("it is %s, for %+v", s.Phase, s.Interrupt)
	}
}

// TestPauseHolds: what is said to an item does not end a person's pause, whether it came
// before the question or after it; to let the loop go on does.
func TestPauseHolds(t *testing.T) {
	yes := Resumed{Answer: "yes", Items: []string{"a"}, Number: 3}
	more := More{USD: 50}
	working, paused, waiting := func(s *State) {}, func(s *State) { s.Phase = Paused }, func(s *State) { s.Phase, s.Paused = Waiting, true }
	for _, c := range []struct {
		name  string
		begin func(*State)
		say   []Event
		want  Phase
	}{
		{"an answer", paused, []Event{yes}, Paused},
		{"an item without an answer", paused, []Event{Resumed{Items: []string{"a"}, NoAnswer: true}}, Paused},
		{"to go on", paused, []Event{Resumed{}}, Working},
		{"to go on with more money", paused, []Event{Resumed{More: &more}}, Working},
		{"an answer, and to go on", paused, []Event{yes, Resumed{}}, Working},
		{"paused while it waits, and an answer", working, []Event{Interrupted{Why: "look"}, PauseAsked{}, yes, Resumed{Answer: "seen", Number: 1}}, Paused},
		{"interrupted while it is paused, and its answer", paused, []Event{Interrupted{Why: "look"}, Resumed{Answer: "seen"}}, Paused},
		{"the same, and to go on", paused, []Event{Interrupted{Why: "look"}, Resumed{}}, Working},
		{"a question while it is paused, and its answer", waiting, []Event{yes}, Paused},
		{"the same, and begun anew", waiting, []Event{Started{}, yes, Started{}}, Paused},
		{"the same, and ended meanwhile", waiting, []Event{StopAsked{Why: "enough", Drain: true}, Started{}}, Working},
		{"more money while a question is open", waiting, []Event{Resumed{More: &more}, yes, Resumed{Answer: "no", Items: []string{"b"}}}, Paused},
		{"without the answers", waiting, []Event{Resumed{NoAnswer: true}}, Working},
	} {
		s := asked()
		s.Phase = Working
		if c.begin(&s); s.Phase != Waiting {
			s.Interrupt = nil
		}
		s.Slots[0] = Slot{Step: Running, Run: "r", Claim: Claim{Item: Item{ID: "x"}, Fence: 9}} // or it might have ended
		for _, e := range c.say {
			s, _ = Apply(s, Time{}, e)
			s.Unpark = nil
		}
		if s.Phase != c.want || s.Paused {
			t.Errorf("%s: it is %s (paused, too: %v), want %s", c.name, s.Phase, s.Paused, c.want)
		}
	}
}

// TestStoppedByAPersonStays: what a person has stopped stays so until a word that is meant for
// it, and not by the answer to what an agent had asked before.
func TestStoppedByAPersonStays(t *testing.T) {
	yes := Resumed{Answer: "yes", Items: []string{"a"}, Number: 3}
	for _, c := range []struct {
		name string
		say  []Event
		want Phase
		open []string
	}{
		{"an answer to a question of before", []Event{yes}, Waiting, []string{"b", "x"}},
		{"that goes on without an answer", []Event{Resumed{Items: []string{"a"}, NoAnswer: true}}, Waiting, []string{"b", "x"}},
		{"all answers", []Event{yes, Resumed{Answer: "no", Items: []string{"b"}}}, Waiting, []string{"x"}},
		{"what was stopped", []Event{Resumed{Items: []string{"x"}}}, Working, []string{"a", "b"}},
		{"what was stopped, with a word", []Event{Resumed{Answer: "so", Items: []string{"x"}}}, Working, []string{"a", "b"}},
		{"an answer, and to go on", []Event{yes, Resumed{}}, Waiting, []string{"b"}}, // for that question
		{"all answers, and to go on", []Event{yes, Resumed{Answer: "no", Items: []string{"b"}}, Resumed{}}, Working, nil},
		{"an answer to the interrupt", []Event{Resumed{Answer: "seen", Number: 1}}, Working, []string{"a", "b"}},
	} {
		s, _ := Apply(asked(), Time{}, Interrupted{Why: "look"})
		if s.Interrupt.Words() != "person: look" {
			t.Fatalf("people are shown %q", s.Interrupt.Words())
		}
		s.Interrupt.Number, s.Interrupt.Items = 1, append(s.Interrupt.Items, "x")
		s.Items["x"] = Memory{Parked: true, Kind: ByPerson, Asked: "look", Number: 9}
		for _, e := range c.say {
			s, _ = Apply(s, Time{}, e)
			s.Unpark = nil
		}
		if s.Phase != c.want || !slices.Equal(s.parked(), c.open) {
			t.Errorf("%s: it is %s, and %v are set aside, want %s, %v", c.name, s.Phase, s.parked(), c.want, c.open)
		}
	}
}

// TestDrainOutlivesAnInterrupt: who lets a loop go on that was to end after what it was doing
// has not taken that back; who begins it anew has.
func TestDrainOutlivesAnInterrupt(t *testing.T) {
	drain, look := StopAsked{Why: "enough", Drain: true}, Interrupted{Why: "look"}
	for _, c := range []struct {
		name string
		say  []Event
		want Phase
	}{
		{"to go on", []Event{drain, look, Resumed{}}, Draining},
		{"an answer", []Event{drain, look, Resumed{Answer: "seen"}}, Draining},
		{"begun anew", []Event{drain, look, Started{}, Resumed{}}, Working},
		{"paused meanwhile", []Event{drain, look, PauseAsked{}, Resumed{Answer: "seen"}, Resumed{}}, Draining},
		{"stopped meanwhile", []Event{drain, look, StopAsked{Why: "now"}}, Stopping},
		{"the other way round", []Event{look, drain}, Draining},
	} {
		s := asked()
		s.Phase, s.Interrupt = Working, nil
		s.Slots[0] = Slot{Step: Running, Run: "r", Claim: Claim{Item: Item{ID: "x"}, Fence: 9}}
		for _, e := range c.say {
			s, _ = Apply(s, Time{}, e)
		}
		if s.Phase != c.want || s.Drains != "" || c.want == Draining && s.Reason != "enough" {
			t.Errorf("%s: it is %s (%s), want %s", c.name, s.Phase, s.Reason, c.want)
		}
	}
}

// TestAnswerTakenBack: who lets an item go on without an answer after having given one means
// that, as long as no session was told it.
func TestAnswerTakenBack(t *testing.T) {
	yes, no := Resumed{Answer: "yes", Items: []string{"a"}, Number: 3}, Resumed{Items: []string{"a"}, NoAnswer: true}
	for _, c := range []struct {
		name string
		step Step
		say  []Event
		want string
	}{
		{"given", Idle, []Event{yes}, "yes"},
		{"taken back", Idle, []Event{yes, no}, ""},
		{"given again", Idle, []Event{yes, no, yes}, "yes"},
		{"while its place is made", Preparing, []Event{yes, no}, ""},
		{"when it has begun", Running, []Event{yes, no}, "yes"},
		{"all go on without one", Idle, []Event{yes, Resumed{NoAnswer: true}}, "yes"}, // that are still open
	} {
		s, _ := Apply(asked(), Time{}, c.say[0])
		s.Slots[0] = Slot{Step: c.step, Run: "r"}
		if c.step != Idle {
			s.Slots[0].Claim, s.Slots[0].From = Claim{Item: Item{ID: "a"}, Fence: 9}, s.Items["a"].From
		}
		for _, e := range c.say[1:] {
			s, _ = Apply(s, Time{}, e)
		}
		if f := s.Items["a"].From; f == nil || f.Answer != c.want || c.step != Idle && s.Slots[0].From.Answer != c.want {
			t.Errorf("%s: it goes on from %+v (%+v), want the answer %q", c.name, f, s.Slots[0].From, c.want)
		}
	}
}

// TestUntoldAnswerStays: an item that is set aside again before a session could be told
// what was answered keeps the answer.
func TestUntoldAnswerStays(t *testing.T) {
	s := asked()
	s.Items["a"] = Memory{Parked: true, Kind: ByFailing, Asked: "no client", Number: 5, From: &Continuation{Run: "run-a", Asked: "which a", Answer: "yes", Number: 3}}
	s, _ = Apply(s, Time{}, Resumed{Items: []string{"a"}, NoAnswer: true})
	if f := s.Items["a"].From; f == nil || f.Answer != "yes" || f.Asked != "which a" {
		t.Fatalf("it goes on from %+v", f)
	}
}

// TestEmptyFromBefore: what a claim found before an item was put back does not end the
// loop, though it is told after.
func TestEmptyFromBefore(t *testing.T) {
	s := asked()
	s.Phase, s.Interrupt, s.Unpark, s.Items = Working, nil, []string{"a"}, map[string]Memory{}
	s.Slots[0] = Slot{Step: Claiming, Seq: 7}
	s, _ = Apply(s, Time{}, Unparked{Item: "a"})
	s, out := Apply(s, Time{}, Claimed{Slot: 0, Seq: 7, Empty: true, Left: "1 item is set aside"})
	asks := slices.ContainsFunc(out, func(a Action) bool { return a.Op == OpClaim })
	if s.Phase != Working || !asks {
		t.Fatalf("it is %s (%s), and does %+v", s.Phase, s.Reason, out)
	}
	// What is found empty after that does end it.
	for i := range s.Slots {
		if p := s.Slots[i]; p.Step == Claiming {
			s, _ = Apply(s, Time{}, Claimed{Slot: i, Seq: p.Seq, Empty: true})
		}
	}
	if s.Phase != Finished {
		t.Fatalf("it is %s", s.Phase)
	}
}

// TestUpgrade: what an older program set aside has its question again, and its answer reaches
// the session beside it. What the interrupt does not name is left alone.
func TestUpgrade(t *testing.T) {
	s := asked()
	s.Items = map[string]Memory{
		"a": {Parked: true, From: &Continuation{Run: "run-a", Session: "s", Why: "asks"}},
		"b": {Parked: true}, "c": {Parked: true}, "d": {GateFails: 1},
	}
	s.Interrupt = &Interrupt{Kind: ByAgent, Why: "which a", Items: []string{"a", "b", "d"}}
	none := State{Items: map[string]Memory{"a": {Parked: true}}}
	if none.Upgrade(); none.Items["a"].Kind != "" {
		t.Errorf("without an interrupt it is %+v", none.Items["a"])
	}
	s.Upgrade()
	for id, want := range map[string][2]string{"a": {ByAgent, "which a"}, "b": {ByAgent, ""}, "c": {}, "d": {}} {
		if m := s.Items[id]; m.Kind != want[0] || m.Asked != want[1] {
			t.Errorf("%s is %+v, want %q", id, m, want)
		}
	}
	if after, _ := Apply(s, Time{}, Resumed{}); len(after.stillParked([]string{"a", "b"})) != 2 {
		t.Error("silence answers what an agent asked")
	}
	s, _ = Apply(s, Time{}, Resumed{Answer: "yes", Items: []string{"a"}})
	if f := s.Items["a"].From; f == nil || f.Asked != "which a" || f.Answer != "yes" || f.Session != "s" {
		t.Errorf("it goes on from %+v", f)
	}
}

// TestRaisesAddUp: two who raise a ceiling have raised it twice, whether the loop has done
// the first by then or not, and one who does it once, once; nobody lowers it.
func TestRaisesAddUp(t *testing.T) {
	s := asked()
	was := s.Limits
	for _, e := range []Resumed{
		{Request: "1", More: &More{USD: 3, Tokens: 5}},
		{Request: "2", More: &More{USD: 2, Iterations: 4, Time: time.Hour}},
		{Request: "1", More: &More{USD: 3, Tokens: 5}}, // its file was still there
		{Request: "3", More: &More{USD: -9, Tokens: math.MaxInt64}},
		{Answer: "nobody asked this", Items: []string{"z"}, More: &More{USD: 1}},
	} {
		s, _ = Apply(s, Time{}, e)
	}
	if l := s.Limits; l.MaxUSD != was.MaxUSD+6 || l.MaxTokens != was.MaxTokens+5 || l.MaxIterations != was.MaxIterations+4 || l.MaxTime != was.MaxTime+time.Hour || l.ItemUSD != was.ItemUSD {
		t.Errorf("from %+v to %+v", was, l)
	}
}

// TestRequestsAreForgotten: of the requests that were done the last are remembered, so that
// a state does not grow for ever, and none of these is done again.
func TestRequestsAreForgotten(t *testing.T) {
	s := asked()
	for n := range 200 {
		s, _ = Apply(s, Time{}, Resumed{Request: strconv.Itoa(n), More: &More{Iterations: 1}})
	}
	if len(s.Heard) != heardMost || s.Heard[heardMost-1] != "199" || s.Limits.MaxIterations != DefaultLimits().MaxIterations+200 {
		t.Fatalf("%d are remembered, the last is %s; %d items may be begun", len(s.Heard), s.Heard[len(s.Heard)-1], s.Limits.MaxIterations)
	}
	rev := s.Rev
	if s, _ = Apply(s, Time{}, Resumed{Request: "150", NoAnswer: true}); s.Rev != rev || s.Phase != Waiting {
		t.Errorf("one of them was done again: it is %s", s.Phase)
	}
}
