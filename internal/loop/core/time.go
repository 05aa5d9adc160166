package core

import (
	"cmp"
	"time"

	"reprise/internal/term"
)

// runGrace is how much longer than it may a run can take before the loop itself
// has it stopped: its own supervisor should have done that.
const runGrace = 2 * time.Minute

// tick does what is due.
func (s *State) tick(out *[]Action) {
	now := s.Now.Loop
	for i := range s.Slots {
		p := &s.Slots[i]
		switch {
		case p.Step == Idle:
		case p.Waits && p.NextAt <= now:
			p.Waits = false
			s.askAgain(i, out)
		case p.Stop != "" && p.StopAt > 0 && p.StopAt <= now:
			s.tellStop(i, out)
		case p.Step != Running || p.Stop != "" || p.Waits: // one that waits has ended, and what came of it cannot be seen yet
		case p.StallAt <= now:
			s.stop(i, StopStalled, "it said nothing for "+term.Took(s.Limits.Stall), out)
		case p.Began+s.Limits.ItemTimeout+runGrace <= now:
			s.stop(i, StopTimeout, "it took longer than "+term.Took(s.Limits.ItemTimeout), out)
		}
	}
	if len(s.Unpark) > 0 && s.UnparkAt <= now {
		s.UnparkAt = now + s.later(s.UnparkTries)
		for _, id := range s.Unpark {
			*out = append(*out, Action{Op: OpUnpark, Slot: -1, Item: id})
		}
	}
}

// askAgain asks for a step that could not be done. What was to be stopped before it
// was known to run is not launched now, nor what may not be begun any more.
func (s *State) askAgain(i int, out *[]Action) {
	p := &s.Slots[i]
	if p.Step == Launching && p.Stop == "" {
		switch {
		case p.Lost:
			p.Stop, p.Why = StopLost, "its claim was lost"
			s.Rev++
		case !s.mayBegin():
			p.Stop, p.Why = StopEnd, s.whyNot()
			s.Rev++
		}
	}
	if p.Step != Launching || p.Stop == "" {
		s.ask(i, out)
	}
	if p.Stop != "" {
		s.tellStop(i, out)
	}
}

// started brings what a new driver finds together with what the state says: every
// step that was being done is asked for again, and what was lost meanwhile is let go.
func (s *State) started(e Started, out *[]Action) {
	s.Rev++
	s.LookAt, s.Empty, s.Unstartable = 0, false, 0
	s.begunAgain(e, out)
	held := map[Claim]bool{}
	for _, c := range e.Claims {
		held[Claim{Item: Item{ID: c.Item.ID}, Fence: c.Fence}] = true
	}
	for i := range s.Slots {
		p := &s.Slots[i]
		ours := Claim{Item: Item{ID: p.Claim.Item.ID}, Fence: p.Claim.Fence}
		lost := !held[ours]
		delete(held, ours)
		for _, w := range e.Went {
			if lost && w.Item == ours.Item.ID && w.Fence == ours.Fence {
				p.Gone = cmp.Or(p.Gone, w.What)
			}
		}
		p.Waits = false
		switch p.Step {
		case Idle:
			p.NextAt = min(p.NextAt, s.Now.Loop+s.Limits.Delay)
		case Claiming:
			*p = Slot{Step: Idle, Seq: p.Seq} // if it got one, it is among the others
		case Settling, Archiving:
			s.ask(i, out) // the queue knows whether it was done
		default:
			s.again(i, lost, out)
		}
	}
	for _, c := range e.Claims {
		if held[Claim{Item: Item{ID: c.Item.ID}, Fence: c.Fence}] {
			*out = append(*out, Action{Op: OpRelease, Slot: -1, Claim: c})
		}
	}
	for _, id := range s.Unpark {
		*out = append(*out, Action{Op: OpUnpark, Slot: -1, Item: id})
	}
}

// begunAgain has the loop work by what it is told, and on, where it was ending and did not
// live to: who begins it anew wants that, and what was being stopped is stopped all the
// same. A ceiling that it has reached ends it again.
func (s *State) begunAgain(e Started, out *[]Action) {
	if e.Limits != nil {
		s.Limits = *e.Limits
		for len(s.Slots) < s.Limits.Workers {
			s.Slots = append(s.Slots, Slot{Step: Idle})
		}
		s.fewer()
	}
	if e.Given != nil {
		s.Given = clone(e.Given)
	}
	s.Drains, s.Unable = "", false
	if s.Phase == Draining || s.Phase == Stopping {
		s.phase(Working, "")
	}
	if i := s.Interrupt; i != nil && i.Kind == ByBudget && len(i.Items) == 0 && !i.Halt && !s.AtCeiling() {
		s.over(Working, "", out) // a higher ceiling is what it has waited for
	}
	s.UnparkTries, s.Trouble = 0, ""
	for i := range s.Slots {
		s.Slots[i].Retries = 0
	}
}

// fewer takes away workers that are too many and have nothing to do.
func (s *State) fewer() {
	for len(s.Slots) > s.Limits.Workers && s.Slots[len(s.Slots)-1].Step == Idle {
		s.Slots = s.Slots[:len(s.Slots)-1]
	}
}

// again asks once more for what a slot was doing when its driver died.
func (s *State) again(i int, lost bool, out *[]Action) {
	p := &s.Slots[i]
	lost = lost || p.Lost
	p.Lost = lost
	switch {
	case p.Step == Running:
		p.StallAt = s.Now.Loop + s.Limits.Stall // nobody listened meanwhile
		s.askAgain(i, out)
		if lost && p.Stop != StopLost {
			s.stop(i, StopLost, "its claim was lost while nobody drove the loop", out)
		}
	case lost && p.Step == Launching:
		// It may have been launched, and must not be launched now.
		p.Stop, p.Why = StopLost, cmp.Or(p.Gone, "its claim was lost while nobody drove the loop")
		s.tellStop(i, out)
	case lost:
		s.settle(i, Settle{Fate: Drop, Class: LeaseGone, Reason: "its claim was lost while nobody drove the loop"}, out)
	default:
		s.askAgain(i, out)
	}
}

// ceilings end what has gone on for long enough, or cost enough.
func (s *State) ceilings(out *[]Action) {
	if s.Phase == Stopping {
		return
	}
	if s.Worked >= s.Limits.MaxTime {
		why := "it has worked for " + term.Took(s.Limits.MaxTime)
		if s.Phase != Waiting { // what waits for a person, waits
			s.over(Stopping, why, out)
		}
		s.stopAll(StopEnd, why, out)
		return
	}
	if s.tokens() >= s.Limits.MaxTokens && (s.Busy() > 0 || s.Phase == Working) {
		if s.Phase == Working || s.Phase == Paused {
			s.raise(ByBudget, "all tokens are used", "", out)
		}
		s.stopAll(StopBudget, "all tokens are used", out)
	}
}

// fill has idle workers claim something, as far as the ceilings let them.
func (s *State) fill(out *[]Action) {
	now := s.Now
	if s.Phase != Working || len(s.Unpark) > 0 || !s.holdOver() || s.LookAt > now.Loop {
		return
	}
	claiming := 0
	for i := range s.Slots {
		if s.Slots[i].Step == Claiming {
			claiming++
		}
	}
	free := s.Limits.Workers - s.Busy() // less than none where a loop was begun again with fewer
	for i := range s.Slots {
		p := &s.Slots[i]
		if p.Step != Idle || p.NextAt > now.Loop {
			continue
		}
		if free <= 0 {
			return
		}
		if s.Iterations+claiming >= s.Limits.MaxIterations {
			if claiming == 0 {
				s.over(Draining, "it has begun as many attempts as it may", out)
			}
			return
		}
		usd, ok := s.reserve()
		if !ok {
			if s.Busy() == 0 {
				s.raise(ByBudget, "the money is used up", "", out)
			}
			return
		}
		if s.LookAt != 0 && claiming > 0 {
			return // nothing was ready: one looks again for all, and all try when it finds something
		}
		claiming, free = claiming+1, free-1
		s.to(p, Claiming)
		p.Reserved = usd
		s.ask(i, out)
	}
}

// AtCeiling reports whether money or tokens let the loop begin nothing more.
func (s *State) AtCeiling() bool {
	_, ok := s.reserve()
	return !ok || s.tokens() >= s.Limits.MaxTokens
}

// reserve is the money for one more run. With less than a tenth of what an item may
// cost, none is begun: it would only end in the middle.
func (s *State) reserve() (usd float64, ok bool) {
	left := s.Limits.MaxUSD - s.committed()
	usd = min(s.Limits.ItemUSD, left)
	return usd, usd > 0 && usd >= min(s.Limits.ItemUSD, s.Limits.MaxUSD)/10
}

// holdOver reports whether backoff and rate limit let claims be made.
func (s *State) holdOver() bool {
	return s.HoldUntil <= s.Now.Loop || !s.HoldWall.IsZero() && !s.Now.Wall.Before(s.HoldWall)
}

// Limited reports whether a service wants to be left alone until a time that it has named.
func (s *State) Limited() bool { return !s.HoldWall.IsZero() && !s.holdOver() }

// Inherit takes over from a loop that has ended until when a service wants to be left alone,
// which it told that loop: it is not another one that asks. Of the two clocks the one counts
// that lets it go on first, as in a loop itself.
func (s *State) Inherit(ended *State) {
	left := ended.HoldUntil - ended.Now.Loop
	if left = min(left, ended.HoldWall.Sub(s.Now.Wall)); ended.HoldWall.IsZero() || left <= 0 {
		return
	}
	s.HoldUntil, s.HoldWall, s.HoldWhy = s.Now.Loop+left, ended.HoldWall, ended.HoldWhy
}

// end ends the loop when there is nothing left to do.
func (s *State) end(out *[]Action) {
	if s.Busy() > 0 || len(s.Unpark) > 0 {
		return
	}
	reason := s.Reason
	switch s.Phase {
	case Draining, Stopping:
	case Working:
		if !s.Limits.UntilEmpty || !s.Empty || s.waitAgain(out) {
			return
		}
		if reason = "the queue is empty"; s.Left != "" {
			reason = "nothing is left that can be done: " + s.Left
		}
	default:
		return
	}
	s.phase(Finished, reason)
	*out = append(*out, Action{Op: OpFinish, Slot: -1, Text: reason})
}

// Wake is when the loop must be given a [Tick] at the latest, on its own clock; ok
// is false where nothing is due until something happens.
func (s *State) Wake() (at time.Duration, ok bool) {
	due := func(t time.Duration) {
		if t = max(t, s.Now.Loop); !ok || t < at {
			at, ok = t, true
		}
	}
	if s.Phase == Finished {
		return 0, false
	}
	idle := false
	for i := range s.Slots {
		p := &s.Slots[i]
		switch {
		case p.Step == Idle:
			idle = true
			if s.Phase == Working && p.NextAt > s.Now.Loop {
				due(p.NextAt)
			}
		case p.Waits:
			due(p.NextAt)
		case p.Stop != "" && p.StopAt > 0:
			due(p.StopAt)
		case p.Step == Running:
			due(p.StallAt)
			due(p.Began + s.Limits.ItemTimeout + runGrace)
		}
	}
	if len(s.Unpark) > 0 {
		due(s.UnparkAt)
	}
	if s.Phase == Working && idle {
		if !s.holdOver() {
			due(s.HoldUntil)
			if !s.HoldWall.IsZero() {
				due(s.Now.Loop + min(time.Minute, s.HoldWall.Sub(s.Now.Wall)))
			}
		} else if s.LookAt > s.Now.Loop {
			due(s.LookAt)
		}
	}
	if (s.Phase == Working || s.Busy() > 0) && s.Phase != Stopping && s.Worked < s.Limits.MaxTime {
		due(s.Now.Loop + s.Limits.MaxTime - s.Worked)
	}
	return at, ok
}
