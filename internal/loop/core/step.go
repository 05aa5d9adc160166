package core

import (
	"cmp"
	"slices"
	"time"
)

// Apply is what follows from an event that happened at a moment: a new state and
// what is to be done. The state that is given is not changed.
func Apply(s State, now Time, e Event) (State, []Action) {
	s = s.Clone()
	var out []Action
	s.Advance(now, e, &out)
	return s, out
}

// Advance is Apply in place, for who has no need of the old state. The actions are
// added to out.
func (s *State) Advance(now Time, e Event, out *[]Action) {
	s.pass(now, e)
	if s.Phase == Finished {
		return
	}
	switch e := e.(type) {
	case Started:
		if s.started(e, out); e.Heard { // or less urgent work would be begun before what is let go on
			return
		}
	case Tick:
		s.tick(out)
	case QueueChanged:
		s.lookAgain()
	case Unparked:
		s.unparked(e.Item)
	case Gone:
		s.gone(e, out)
	case Cleared:
		s.cleared(e, out)
	case Interrupted:
		s.halt(e.Why, out)
	case Resumed:
		s.resume(e, out)
	case PauseAsked:
		s.pause()
	case StopAsked:
		s.stopAsked(e, out)
	case Broken:
		s.broken(e, out)
	case LeaseLost:
		s.leaseLost(e, out)
	default:
		s.answered(e, out)
	}
	s.ceilings(out)
	s.fill(out)
	s.end(out)
}

// pausedWhy is why a loop is paused.
const pausedWhy = "a person paused it"

// pause has the loop begin nothing new until a person lets it go on, also after what it
// waits for at the moment was decided.
func (s *State) pause() {
	switch s.Phase {
	case Working:
		s.phase(Paused, pausedWhy)
	case Waiting:
		s.Rev++
		s.Paused = true
	}
}

// await has the loop wait for a person, who may have paused it before.
func (s *State) await(reason string) {
	s.Paused = s.Paused || s.Phase == Paused
	if s.Phase == Draining {
		s.Drains = s.Reason
	}
	s.phase(Waiting, reason)
}

// wake takes a loop that need not wait any more to its work, or to its pause, or to its end
// where it was ending.
func (s *State) wake() {
	switch {
	case s.Paused:
		s.phase(Paused, pausedWhy)
	case s.Drains != "":
		s.phase(Draining, s.Drains)
		s.Drains = ""
	default:
		s.phase(Working, "")
	}
	s.Paused = false
}

// pass takes the time forward. A loop's own clock cannot go back; a driver that
// claims so is not believed.
func (s *State) pass(now Time, e Event) {
	d := max(0, now.Loop-s.Now.Loop)
	if _, first := e.(Started); first {
		d = 0 // while nobody drove, nothing was worked
	}
	if s.Phase == Working || s.Phase != Finished && s.Busy() > 0 {
		s.Worked += d
	}
	s.Now = Time{Loop: max(now.Loop, s.Now.Loop), Wall: now.Wall}
}

// slot is the slot that an answer is for, if it answers what was asked last.
func (s *State) slot(i int, seq int64, steps ...Step) *Slot {
	if i < 0 || i >= len(s.Slots) {
		return nil
	}
	p := &s.Slots[i]
	if p.Seq != seq || !slices.Contains(steps, p.Step) {
		return nil
	}
	return p
}

// runSlot is the slot that a run is in.
func (s *State) runSlot(i int, run string) *Slot {
	if i < 0 || i >= len(s.Slots) {
		return nil
	}
	if p := &s.Slots[i]; p.Step == Running && p.Run == run {
		return p
	}
	return nil
}

func (s *State) answered(e Event, out *[]Action) {
	switch e := e.(type) {
	case Claimed:
		s.claimed(e, out)
	case Prepared:
		s.prepared(e, out)
	case Launched:
		s.launched(e, out)
	case Progress:
		s.progress(e, out)
	case AgentAsks:
		if p := s.runSlot(e.Slot, e.Run); p != nil && p.Stop == "" {
			s.stop(e.Slot, StopAsk, e.Why, out)
		}
	case Exited:
		s.exited(e, out)
	case Verified:
		if p := s.slot(e.Slot, e.Seq, Verifying); p != nil {
			p.Verified, p.GateText = e.Gate, e.Text
			s.settle(e.Slot, s.afterGate(p), out)
		}
	case Settled:
		s.settled(e, out)
	case Archived:
		if p := s.slot(e.Slot, e.Seq, Archiving); p != nil {
			s.Rev++
			set, id, answer := *p.Settle, p.Claim.Item.ID, p.Answer
			*p = Slot{Step: Idle, Seq: p.Seq, NextAt: s.Now.Loop + s.Limits.Delay}
			s.LookAt = 0 // what it was may have let something else become ready
			if set.Fate != Drop {
				s.consequences(id, answer, set, out)
			}
			s.fewer()
		}
	}
}

// to takes a slot to its next step.
func (s *State) to(p *Slot, step Step) {
	s.Rev++
	s.Seq++
	p.Step, p.Seq, p.Waits, p.NextAt, p.Trouble = step, s.Seq, false, 0, ""
	if step != Claiming { // which is tried later and later
		p.Retries = 0
	}
}

// phase takes the loop to another phase.
func (s *State) phase(to Phase, reason string) {
	s.Rev++
	s.Phase, s.Reason = to, reason
}

// ask asks for what the slot's step needs.
func (s *State) ask(i int, out *[]Action) {
	p := &s.Slots[i]
	a := Action{Slot: i, Seq: p.Seq, Claim: p.Claim, Run: p.Run}
	switch p.Step {
	case Claiming:
		a.Op = OpClaim
	case Preparing:
		a.Op, a.From = OpPrepare, p.From
	case Launching:
		a.Op, a.From, a.USD = OpLaunch, p.From, p.Reserved
		// A little more than the loop has left: it is the loop that ends the run then,
		// and that is not the item's failure.
		a.Time = min(s.Limits.ItemTimeout, max(s.Limits.MaxTime-s.Worked, 0)+runGrace)
	case Running:
		a.Op = OpWatch
	case Verifying:
		a.Op = OpVerify
	case Settling:
		a.Op, a.How = OpSettle, clone(p.Settle)
	case Archiving:
		a.Op, a.How = OpArchive, clone(p.Settle)
	default:
		return
	}
	*out = append(*out, a)
}

// mayBegin reports whether work that is claimed may still be begun.
func (s *State) mayBegin() bool {
	return (s.Phase == Working || s.Phase == Paused || s.Phase == Draining) && !s.Limited() &&
		s.tokens() < s.Limits.MaxTokens && s.CostUSD < s.Limits.MaxUSD && s.Worked < s.Limits.MaxTime
}

func (s *State) claimed(e Claimed, out *[]Action) {
	p := s.slot(e.Slot, e.Seq, Claiming)
	if p == nil {
		if e.Claim != nil {
			*out = append(*out, Action{Op: OpRelease, Slot: -1, Claim: *e.Claim})
		}
		return
	}
	if e.Claim == nil {
		s.Rev++
		outdated := p.Outdated
		*p = Slot{Step: Idle, Seq: p.Seq}
		if outdated {
			return
		}
		s.Empty, s.Left = e.Empty, e.Left
		s.LookAt = s.Now.Loop + s.Limits.IdleWait
		if e.NextIn > 0 {
			s.LookAt = min(s.LookAt, s.Now.Loop+e.NextIn)
		}
		return
	}
	s.Empty, s.Left, s.LookAt = false, "", 0
	p.Claim = *e.Claim
	p.Lost, p.Outdated = false, false
	if !s.held(e.Slot, p.Claim.Item.ID) {
		s.letGo(p.Claim.Item.ID) // somebody has put it back into the queue beside us
	}
	m := s.Items[p.Claim.Item.ID]
	p.From = m.From
	if f := p.From; f != nil && e.Answer != "" && f.Number == e.Asked && f.Answer == "" {
		from := *f
		from.Answer = e.Answer
		p.From = &from
	}
	if s.held(e.Slot, p.Claim.Item.ID) {
		s.settle(e.Slot, Settle{Fate: Release, Class: SameItem, Reason: "an earlier run of it has not ended yet", Delay: s.Limits.IdleWait}, out)
		return
	}
	if !s.mayBegin() {
		s.settle(e.Slot, Settle{Fate: Release, Class: NotLaunched, Reason: s.whyNot()}, out)
		return
	}
	s.Iterations++
	p.Iteration = s.Iterations
	s.to(p, Preparing)
	s.ask(e.Slot, out)
}

// whyNot is why work that is claimed may not be begun, in words.
func (s *State) whyNot() string {
	if s.Limited() {
		return s.HoldWhy + ": nothing is begun until " + s.HoldWall.UTC().Format(time.RFC3339)
	}
	return s.Reason
}

// held reports whether another slot has a claim of the item, as one that was lost
// and whose run is being stopped.
func (s *State) held(but int, id string) bool {
	for i := range s.Slots {
		if i != but && s.Slots[i].Claim.Item.ID == id && s.Slots[i].Claim.Fence != 0 {
			return true
		}
	}
	return false
}

func (s *State) prepared(e Prepared, out *[]Action) {
	p := s.slot(e.Slot, e.Seq, Preparing)
	switch {
	case p == nil:
	case p.Lost:
		s.settle(e.Slot, Settle{Fate: Drop, Class: LeaseGone, Reason: "the claim was lost before it was begun"}, out)
	case e.Held != "":
		s.settle(e.Slot, Settle{Fate: Release, Class: RepoHeld, Reason: e.Held}, out)
	case e.Away != "":
		s.settle(e.Slot, Settle{Fate: Release, Class: RemoteAway, Reason: e.Away}, out)
	case e.Missing != "":
		s.settle(e.Slot, Settle{Fate: Park, Class: Missing, Reason: e.Missing, Interrupt: ByMissing}, out)
	case e.Err != "":
		set := Settle{Class: BadWorkspace, Reason: e.Err}
		s.unstarted(p, &set)
		s.settle(e.Slot, set, out)
	case e.Later != "":
		set := Settle{Fate: Release, Class: BeingMerged, Reason: e.Later}
		if e.InUse {
			set.Class, set.Delay = PlaceInUse, inUse
		}
		s.settle(e.Slot, set, out)
	case !s.mayBegin():
		s.settle(e.Slot, Settle{Fate: Release, Class: NotLaunched, Reason: s.whyNot()}, out)
	default:
		s.to(p, Launching)
		s.ask(e.Slot, out)
	}
}

func (s *State) launched(e Launched, out *[]Action) {
	p := s.slot(e.Slot, e.Seq, Launching)
	if p == nil {
		return
	}
	if e.Class != None {
		p.Outcome = &Outcome{Class: e.Class, Reason: e.Err}
		s.ended(e.Slot, out)
		return
	}
	s.to(p, Running)
	p.Run, p.Began = e.Run, s.Now.Loop
	p.StallAt = s.Now.Loop + s.Limits.Stall
	s.ask(e.Slot, out)
	switch {
	case p.Lost:
		s.stop(e.Slot, StopLost, "its claim was lost", out)
	case s.Phase == Stopping:
		s.stop(e.Slot, StopEnd, s.Reason, out)
	case s.Interrupt != nil && s.Interrupt.Halt:
		s.stop(e.Slot, StopPerson, s.Interrupt.Why, out)
	}
}

func (s *State) progress(e Progress, out *[]Action) {
	p := s.runSlot(e.Slot, e.Run)
	if p == nil {
		return
	}
	p.StallAt = s.Now.Loop + s.Limits.Stall
	p.Cost, p.Tokens = max(p.Cost, e.Cost), max(p.Tokens, e.Tokens)
	if p.Stop == "" && s.committed() > s.Limits.MaxUSD+cent {
		s.stop(e.Slot, StopBudget, "the loop's money is used up", out)
	}
}

// cent is what sums of money may be off by.
const cent = 0.005

// stop tells a run to stop. The first reason stays.
func (s *State) stop(i int, why StopWhy, words string, out *[]Action) {
	p := &s.Slots[i]
	s.Rev++
	if p.Stop == "" {
		p.Stop, p.Why = why, words
		if why == StopLost {
			p.Why = cmp.Or(p.Gone, words)
		}
	}
	s.tellStop(i, out)
}

// tellStop asks for the stop, and again after a while should nothing come of it.
func (s *State) tellStop(i int, out *[]Action) {
	p := &s.Slots[i]
	p.StopAt = s.Now.Loop + s.Limits.StopPatience
	keep := p.Stop == StopAsk || p.Stop == StopPerson || p.Stop == StopBudget || p.Stop == StopEnd
	*out = append(*out, Action{Op: OpStop, Slot: i, Seq: p.Seq, Claim: p.Claim, Run: p.Run, Keep: keep, Text: string(p.Stop) + ": " + p.Why})
}

func (s *State) exited(e Exited, out *[]Action) {
	p := s.runSlot(e.Slot, e.Run)
	if p == nil && e.Slot >= 0 && e.Slot < len(s.Slots) && s.Slots[e.Slot].Step == Launching && s.Slots[e.Slot].Stop != "" {
		p = &s.Slots[e.Slot] // stopped by its claim, before anybody knew its run
	}
	if p == nil {
		return
	}
	o := e.Outcome
	p.Outcome = &o
	s.ended(e.Slot, out)
}

// ended takes a slot on whose run has ended, or never began.
func (s *State) ended(i int, out *[]Action) {
	p := &s.Slots[i]
	s.price(p)
	s.CostUSD += p.Outcome.Cost
	if p.Outcome.Untold {
		s.Untold++
	}
	s.Tokens += p.Outcome.Tokens
	set, over := s.afterRun(p)
	p.Reserved, p.Cost, p.Tokens, p.StallAt, p.StopAt = 0, 0, 0, 0, 0
	if over {
		s.settle(i, set, out)
		return
	}
	s.to(p, Verifying)
	s.ask(i, out)
}

// price counts what a run has cost that did not live to say it: no more than was set aside for
// it, and where other runs have said it, twice their price of a token. Without that, runs that
// are ended at their time limit would cost nothing, and the loop's money would never be used up.
func (s *State) price(p *Slot) {
	o := p.Outcome
	if from := p.From; from != nil && from.Session != "" && o.Cost > 0 {
		// Its client has told now what was estimated before, and is counted.
		s.EstimatedUSD = max(0, s.EstimatedUSD-from.Estimated)
		s.CostUSD -= max(0, from.Estimated-o.Cost)
		o.Cost = max(0, o.Cost-from.Estimated)
	}
	if o.Cost > 0 && o.Tokens > 0 {
		s.PricedUSD += o.Cost
		s.PricedTokens += o.Tokens
	}
	if !o.Unpriced || o.Tokens == 0 || o.Cost > 0 {
		return
	}
	o.Cost = p.Reserved
	if s.PricedTokens > 0 {
		o.Cost = min(o.Cost, 2*s.PricedUSD/float64(s.PricedTokens)*float64(o.Tokens))
	}
	o.Estimated = o.Cost
	s.EstimatedUSD += o.Estimated
}

func (s *State) archive(i int, out *[]Action) {
	p := &s.Slots[i]
	s.to(p, Archiving)
	p.Retries, p.Reserved = 0, 0
	s.ask(i, out)
}

func (s *State) settled(e Settled, out *[]Action) {
	p := s.slot(e.Slot, e.Seq, Settling)
	if p == nil {
		return
	}
	id := p.Claim.Item.ID
	if e.Lost {
		p.Lost, p.Settle.Fate, p.Settle.Class = true, Drop, LeaseGone
		p.Settle.Reason = cmp.Or(e.Why, p.Settle.Reason)
		s.Tally.Lost++
		s.archive(e.Slot, out)
		return
	}
	if e.GaveUp && p.Settle.Fate == Retry {
		p.Settle.Fate = GiveUp
	}
	switch p.Settle.Fate {
	case Done:
		s.Tally.Done++
	case Retry:
		s.Tally.Failed++
	case GiveUp:
		s.Tally.GivenUp++
		delete(s.Items, id)
	case Release:
		s.Tally.Released++
	case Park:
		s.Tally.Parked++
		m := s.Items[id]
		m.Parked = true
		m.Kind, m.Asked, m.Number = p.Settle.Interrupt, p.Settle.Reason, p.Claim.Fence
		s.keep(id, m)
	}
	s.archive(e.Slot, out)
}

// consequences are what the end of an iteration means for the loop. They come last: who
// is told of an interrupt finds everything kept.
func (s *State) consequences(id, answer string, set Settle, out *[]Action) {
	switch {
	case set.Interrupt == ByPerson:
		if s.Interrupt != nil && s.Interrupt.Halt {
			s.Interrupt.Items = with(s.Interrupt.Items, id)
		} else {
			s.unpark(id, answer, out) // the person has answered meanwhile
		}
	case set.Interrupt != "" && !s.Items[id].Parked: // somebody has answered already
	case set.Interrupt != "":
		s.raise(set.Interrupt, set.Reason, id, out)
	case set.Class == AuthFailed:
		s.raise(ByAuth, set.Reason, "", out)
	case set.Class == RepoHeld:
		s.raise(ByRepo, set.Reason, "", out)
	case set.Class == LoopBudget:
		s.raise(ByBudget, "the loop's ceiling is reached", "", out)
	case len(s.Failing) >= s.Limits.MaxFailing:
		s.several(ByFailing, "different items failed one after the other, the last so: "+set.Reason, out)
	case s.Spawning >= s.Limits.MaxFailing:
		s.raise(ByFailing, "starts failed one after the other, the last so: "+set.Reason, "", out)
		s.unstartable(&set)
	case len(s.Same) >= s.Limits.MaxIdentical:
		s.several(ByIdentical, "different items failed in the same way: "+set.Reason, out)
	}
}

// maxUnstartable is how often a person is told that starts fail before a loop that waits for
// nobody ends: what is wrong with the machine may pass in the meantime.
const maxUnstartable = 2

// unstartable ends a loop that waits for nobody and can begin nothing: it would set one item
// aside after the other for as long as it may work. What a service does not do may be done
// later, and ends nothing.
func (s *State) unstartable(set *Settle) {
	if s.Limits.OnInterrupt != Skip || s.Phase != Working || set.Class == APIError {
		return
	}
	if s.Unstartable++; s.Unstartable >= maxUnstartable {
		s.phase(Draining, ByFailing+": nothing can be begun: "+set.Reason)
		s.Unable = true
	}
}

// raise tells a person that something must be decided, and waits if that is wanted.
func (s *State) raise(kind, why, item string, out *[]Action) {
	if kind == ByFailing || kind == ByIdentical {
		s.Failing, s.Same, s.Spawning = nil, nil, 0
	}
	if (kind == ByBudget || kind == ByRepo) && item == "" && (s.Phase == Draining || s.Phase == Stopping) ||
		s.Phase == Waiting && item == "" && s.Interrupt.Kind == kind {
		return // it is known
	}
	s.Tally.Interrupts++
	s.Rev++
	*out = append(*out, Action{Op: OpNotify, Slot: -1, Kind: kind, Text: why, Item: item})
	if kind == ByCancel {
		return // whoever cancelled the run knows
	}
	ending := s.Phase == Draining || s.Phase == Stopping
	if s.Limits.OnInterrupt == Skip || ending {
		if !ending && s.Phase != Waiting && (kind == ByAuth || kind == ByRepo || kind == ByBudget && item == "") {
			s.phase(Draining, kind+": "+why)
			s.Unable = kind != ByBudget
		}
		return
	}
	if s.Interrupt == nil {
		s.Interrupt = &Interrupt{Kind: kind, Why: why, At: s.Now}
	}
	if item != "" {
		s.Interrupt.Items = with(s.Interrupt.Items, item)
	}
	s.await(kind + ": " + why)
	s.show(out, kind, why, item)
}

// halt is a person's interrupt: everything stops and waits.
func (s *State) halt(why string, out *[]Action) {
	if s.Phase == Stopping || s.Phase == Waiting && s.Interrupt.Halt {
		return
	}
	s.Tally.Interrupts++
	if s.Interrupt == nil {
		s.Interrupt = &Interrupt{At: s.Now}
	}
	s.Interrupt.Kind, s.Interrupt.Why = ByPerson, why // of what waited before each item has its own
	s.Seq++
	s.Interrupt.Halt, s.Interrupt.Number = true, s.Seq
	s.await(ByPerson + ": " + why)
	s.show(out, ByPerson, why, "")
	*out = append(*out, Action{Op: OpNotify, Slot: -1, Kind: ByPerson, Text: why})
	s.stopAll(StopPerson, why, out)
}

func (s *State) stopAll(why StopWhy, words string, out *[]Action) {
	for i := range s.Slots {
		if p := &s.Slots[i]; p.Step == Running && p.Stop == "" {
			s.stop(i, why, words, out)
		}
	}
}

func (s *State) unparked(id string) {
	s.Rev++
	s.Unpark = slices.DeleteFunc(s.Unpark, func(x string) bool { return x == id })
	s.UnparkTries, s.Trouble = 0, ""
	s.lookAgain()
}

// lookAgain has the queue asked anew, for it has got something. A claim that is under way
// may have been answered without it.
func (s *State) lookAgain() {
	s.LookAt, s.Empty = 0, false
	for i := range s.Slots {
		s.Slots[i].Outdated = s.Slots[i].Step == Claiming
	}
}

func (s *State) stopAsked(e StopAsked, out *[]Action) {
	if e.Drain {
		if s.Phase == Working || s.Phase == Paused || s.Phase == Waiting {
			s.over(Draining, e.Why, out)
		}
		return
	}
	s.over(Stopping, e.Why, out)
	s.stopAll(StopEnd, e.Why, out)
}

// over ends what the loop waits for, if it does, and takes it to its work or to one of the
// phases that lead to its end.
func (s *State) over(to Phase, why string, out *[]Action) {
	if s.Interrupt != nil {
		s.Interrupt = nil
		*out = append(*out, Action{Op: OpLower, Slot: -1})
	}
	if to == Working {
		s.wake()
		return
	}
	s.Paused, s.Drains = false, ""
	if to == Stopping && s.Phase != Stopping {
		s.StopSince = s.Now.Loop
	}
	s.phase(to, why)
	if to != Stopping {
		return
	}
	for i := range s.Slots { // what was put off is tried at once, and not for long
		if p := &s.Slots[i]; p.Waits {
			p.NextAt, p.Retries = s.Now.Loop, 0
		}
	}
}

func (s *State) leaseLost(e LeaseLost, out *[]Action) {
	if e.Slot < 0 || e.Slot >= len(s.Slots) {
		return
	}
	p := &s.Slots[e.Slot]
	if p.Claim.Fence != e.Fence || p.Claim.Item.ID != e.Item || p.Lost {
		return
	}
	switch p.Step {
	case Preparing, Launching, Verifying:
		s.Rev++
		p.Lost, p.Gone = true, e.Why
		if p.Waits && p.Step != Launching { // to try again is of no use
			s.drop(e.Slot, out)
		}
	case Running:
		p.Lost, p.Gone = true, e.Why
		s.stop(e.Slot, StopLost, "its claim was lost", out)
	}
}

// leaveAfter is how often in a row a step of a loop that ends may fail. With the backoff of
// [Limits] that is half a minute; what stands in its way is not over then.
const leaveAfter = 5

// leaveTime is how long a loop ends at most, once nothing is left but what could not be done:
// servers that are away make each try take as long as they are waited for, and who manages
// services kills one that has not ended within a minute and a half.
const leaveTime = 40 * time.Second

// broken puts a step off that could not be done. A loop that ends does not wait for ever
// for what passes: what has not begun is given back, and where nothing is left but what
// cannot be done, all of it is left for the next.
func (s *State) broken(e Broken, out *[]Action) {
	if e.Slot < 0 || e.Slot >= len(s.Slots) {
		s.Rev++
		s.UnparkAt = s.Now.Loop + s.later(s.UnparkTries)
		s.UnparkTries++
		s.Trouble = e.Err
		s.leave(out)
		return
	}
	p := &s.Slots[e.Slot]
	if p.Seq != e.Seq || p.Step == Idle {
		return
	}
	s.Rev++
	wait := s.later(p.Retries)
	if e.Most > 0 {
		wait = min(wait, e.Most)
	}
	if p.Step == Claiming { // nothing was claimed; whether to try again is decided then
		*p = Slot{Step: Idle, Seq: p.Seq, Retries: p.Retries + 1, NextAt: s.Now.Loop + wait, Trouble: e.Err}
		return
	}
	if p.Lost && (p.Step == Preparing || p.Step == Verifying) {
		s.drop(e.Slot, out)
		return
	}
	p.Retries++
	p.Waits, p.NextAt, p.Trouble = true, s.Now.Loop+wait, e.Err
	if s.Phase != Stopping {
		return
	}
	if p.Step == Preparing || p.Step == Verifying && p.Retries >= leaveAfter {
		s.settle(e.Slot, Settle{Fate: Release, Class: LoopEnds, Reason: s.Reason + "; before: " + e.Err}, out)
		return
	}
	s.leave(out)
}

// drop ends the slot of a claim that was lost: what could not be done of it needs to be done
// no more.
func (s *State) drop(slot int, out *[]Action) {
	s.settle(slot, Settle{Fate: Drop, Class: LeaseGone, Reason: "the claim was lost"}, out)
}

// later is how long what could not be done so many times before waits for the next try.
func (s *State) later(tries int) time.Duration {
	if tries >= 16 {
		return s.Limits.BackoffMax
	}
	return min(s.Limits.BackoffMax, s.Limits.BackoffUnit<<tries)
}

// leave ends the driving of a loop that ends and of which nothing is left but what could
// not be done several times.
func (s *State) leave(out *[]Action) {
	if s.Phase != Stopping {
		return
	}
	why, tries, enough := s.Trouble, s.UnparkTries, leaveAfter
	if s.Now.Loop-s.StopSince >= leaveTime {
		enough = 1
	}
	for i := range s.Slots {
		switch p := &s.Slots[i]; {
		case p.Step == Idle:
		case !p.Waits || p.Retries < enough:
			return
		default:
			why, tries = string(p.Step)+" "+p.Claim.Item.ID+": "+p.Trouble, p.Retries
		}
	}
	if len(s.Unpark) > 0 && s.UnparkTries < enough || tries < enough {
		return
	}
	*out = append(*out, Action{Op: OpLeave, Slot: -1, Text: why})
}
