package core

import (
	"slices"
	"testing"
)

// What an item builds on and is nowhere to be had is no failure of it, or of anything: it is set
// aside, a person is told, and it goes on when they say so.
func TestMissingIsForAPerson(t *testing.T) {
	for _, on := range []OnInterrupt{Wait, Skip} {
		l := DefaultLimits()
		l.OnInterrupt = on
		s := New("loop-a", l, Time{})
		s.Slots[0] = Slot{Step: Preparing, Seq: 7, Claim: Claim{Item: Item{ID: "a"}, Fence: 3}}
		s, _ = Apply(s, Time{}, Prepared{Slot: 0, Seq: 7, Missing: "loop-b is gone"})
		p := s.Slots[0]
		if p.Step != Settling || p.Settle.Fate != Park || p.Settle.Class != Missing || p.Settle.Interrupt != ByMissing || s.Spawning+s.Row != 0 {
			t.Fatalf("%+v, %+v", p, p.Settle)
		}
		s, _ = Apply(s, Time{}, Settled{Slot: 0, Seq: p.Seq})
		s, out := Apply(s, Time{}, Archived{Slot: 0, Seq: s.Slots[0].Seq})
		told := func(a Action) bool { return a.Op == OpNotify && a.Item == "a" && a.Kind == ByMissing }
		if !slices.ContainsFunc(out, told) || !s.Items["a"].Parked || s.Items["a"].Asked != "loop-b is gone" || (s.Phase == Waiting) != (on == Wait) {
			t.Fatalf("%s: %+v, %+v, %v", s.Phase, s.Items["a"], s.Interrupt, out)
		}
		s, out = Apply(s, Time{}, Resumed{Items: []string{"a"}})
		if !slices.ContainsFunc(out, func(a Action) bool { return a.Op == OpUnpark && a.Item == "a" }) || s.Items["a"].Parked {
			t.Fatalf("%+v, %v", s.Items["a"], out)
		}
	}
}

// What a person has answered on another machine, by the item, reaches the session that goes on
// here as if it had been said to the loop; of another question it is none.
func TestAnsweredElsewhere(t *testing.T) {
	for number, want := range map[int64]string{3: "red", 2: ""} {
		s := New("loop-a", DefaultLimits(), Time{})
		s.Items = map[string]Memory{"a": {Parked: true, Kind: ByAgent, Asked: "Which colour?", Number: 3}}
		s.Slots[0] = Slot{Step: Claiming, Seq: 7}
		s, out := Apply(s, Time{}, Claimed{Slot: 0, Seq: 7, Claim: &Claim{Item: Item{ID: "a"}, Fence: 4}, Answer: "red", Asked: number})
		if f := s.Slots[0].From; f == nil || f.Answer != want || f.Asked != "Which colour?" || len(out) != 1 || out[0].From != f {
			t.Errorf("%d: %+v, %+v", number, f, out)
		}
	}
}

// Who answers quickly has the item claimed by a second worker while the first one still puts away
// the run that asked. That claim is given back, and the answer reaches the session all the same.
func TestAnsweredWhileTheRunIsPutAway(t *testing.T) {
	s := New("loop-a", DefaultLimits(), Time{})
	asked := Memory{Parked: true, Kind: ByAgent, Asked: "Which colour?", Number: 3, From: &Continuation{Run: "run-a", Session: "s", Why: string(Asked)}}
	s.Items = map[string]Memory{"a": asked}
	s.Slots = append(s.Slots[:1], Slot{Step: Archiving, Seq: 6, Claim: Claim{Item: Item{ID: "a"}, Fence: 3}})
	s.Slots[0] = Slot{Step: Claiming, Seq: 7}
	claimed := func(seq, fence int64) {
		s, _ = Apply(s, Time{}, Claimed{Slot: 0, Seq: seq, Claim: &Claim{Item: Item{ID: "a"}, Fence: fence}, Answer: "red", Asked: 3})
	}
	claimed(7, 4)
	if p := s.Slots[0]; p.Step != Settling || p.Settle.Class != SameItem {
		t.Fatalf("%+v", p)
	}
	s, _ = Apply(s, Time{}, Settled{Slot: 0, Seq: s.Slots[0].Seq})
	if m := s.Items["a"]; m != asked {
		t.Errorf("what was asked is forgotten: %+v", m)
	}
	s.Slots = []Slot{{Step: Claiming, Seq: 9}}
	claimed(9, 5)
	if f := s.Slots[0].From; f == nil || f.Answer != "red" || f.Asked != "Which colour?" || f.Session != "s" {
		t.Errorf("%+v", f)
	}
}
