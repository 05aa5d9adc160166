package core

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Class is how an iteration failed.
type Class string

// The classes of failure. Each has its own handling, in [decide].
const (
	None         Class = ""
	SpawnFailed  Class = "spawn"          // the client is not there, or did not start
	BadBootstrap Class = "bootstrap"      // the template is missing or wrong
	BadWorkspace Class = "workspace"      // the item could not be given a place to work
	Crashed      Class = "crash"          // the process ended without a result
	TimedOut     Class = "timeout"        // it took longer than it may
	Stalled      Class = "stall"          // it said nothing for too long
	APIError     Class = "api"            // the model's service failed
	RateLimited  Class = "rate limit"     // the service wants to be left alone until a time that it may name
	AuthFailed   Class = "auth"           // the service does not know who asks
	ContextFull  Class = "context"        // the session can hold no more
	TurnsUsed    Class = "turns"          // it has had all the turns that it may have
	BudgetUsed   Class = "run budget"     // it has cost all that it may cost
	Refused      Class = "refusal"        // the model will not do it
	Cancelled    Class = "cancelled"      // somebody stopped the run itself
	Reported     Class = "reported"       // the agent says that it went wrong
	NoTurn       Class = "no turn"        // nothing was ever sent to the model
	NoChange     Class = "no change"      // nothing came of it
	BadResult    Class = "result"         // its result is an error
	GateFail     Class = "gate"           // the checks do not pass
	Asked        Class = "asks"           // the agent wants a person
	Halted       Class = "interrupted"    // a person interrupted everything
	LoopBudget   Class = "loop budget"    // the loop's money or tokens are used up
	LoopEnds     Class = "loop ends"      // it was stopped because the loop ends
	LeaseGone    Class = "lease lost"     // the claim is somebody else's
	NotLaunched  Class = "not launched"   // the loop was to begin nothing when it was ready to
	SameItem     Class = "still held"     // an earlier run of the item has not ended yet
	PlaceAway    Class = "directory away" // the project's directory was not there while it worked
	BeingMerged  Class = "being merged"   // what it builds on is merged by an item of its own, which is not done
	PlaceInUse   Class = "place in use"   // somebody works where it would be worked on
	RepoHeld     Class = "repository"     // nothing is done in the repository until a person has looked at it
	Missing      Class = "missing"        // what it builds on is nowhere to be had
	RemoteAway   Class = "remote away"    // what other machines have made cannot be brought in
	SessionGone  Class = "session gone"   // the client has not kept the session that was to be gone on with
)

// inUse is how long an item waits whose place is in use. Who is there is a person, or a run
// whose claim was lost and which is about to end.
const inUse = 30 * time.Second

// Outcome is how a run ended, as far as the run itself shows it.
type Outcome struct {
	Run       string    `json:"run"`
	Session   string    `json:"session,omitempty"`
	Completed bool      `json:"completed"` // the process ended by itself, and well
	OK        bool      `json:"ok"`        // its result says so
	Turns     int       `json:"turns"`
	Changed   bool      `json:"changed"` // the tree, or an artefact was declared
	Class     Class     `json:"class,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Signature string    `json:"signature,omitempty"` // of the failure, comparable between runs
	Reset     time.Time `json:"reset,omitzero"`      // RateLimited: when to ask again
	Asks      string    `json:"asks,omitempty"`      // what it left in its interrupt file
	Reported  string    `json:"reported,omitempty"`  // what it left in its error file
	Resumable bool      `json:"resumable,omitempty"` // its session can be gone on with
	Cost      float64   `json:"cost_usd"`
	Tokens    int64     `json:"tokens"`
	// Unpriced says that its client tells what a run has cost, and did not live to: then the
	// core puts into Cost, and into Estimated, what it has cost at most.
	Unpriced  bool    `json:"unpriced,omitempty"`
	Estimated float64 `json:"estimated_usd,omitempty"`
	// Untold says that nobody has said what it cost, and that it cannot be estimated.
	Untold  bool    `json:"untold,omitempty"`
	Refusal Refusal `json:"refusal,omitzero"`
}

// Refusal is what the guard refused of a run: why something was not done, of which the run's own
// result often says nothing. Nothing is decided by it.
type Refusal struct {
	What  string `json:"what"`  // of the first call: what was called, and why that was refused
	Calls int    `json:"calls"` // how many were refused
	// Earlier says that it was a run of an attempt before, and that the last one had nothing
	// refused: who goes on in a session does not try again what was refused there.
	Earlier bool `json:"earlier,omitempty"`
}

// succeeded says whether a result is one: of a process that ended well, with at
// least one turn and something to show for it.
func (o Outcome) succeeded(item Item) bool {
	return o.Completed && o.OK && o.Turns > 0 && (o.Changed || item.NoChangeOK)
}

// afterRun says what is next once a run has ended: the checks (ok is false), or
// how the iteration ends.
func (s *State) afterRun(p *Slot) (set Settle, ok bool) {
	o := p.Outcome
	set = Settle{Completed: o.Completed, Succeeded: o.succeeded(p.Claim.Item), Class: o.Class, Reason: o.Reason}
	switch {
	case p.Lost:
		set.Fate, set.Class, set.Reason = Drop, LeaseGone, "the claim was lost while the run went on"
	case o.Asks != "":
		set.Fate, set.Class, set.Reason, set.Interrupt = Park, Asked, o.Asks, ByAgent
	case o.Reported != "":
		set.Fate, set.Class, set.Reason, set.Interrupt = Park, Reported, o.Reported, ByAgent
	case set.Succeeded:
		return set, false
	case p.Stop != "" && !o.Completed:
		s.afterStop(p, &set)
	default:
		s.classify(p, &set)
	}
	return set, true
}

// afterStop is for runs that were told to stop and did.
func (s *State) afterStop(p *Slot, set *Settle) {
	set.Reason = p.Why
	switch p.Stop {
	case StopStalled:
		set.Fate, set.Class = Retry, Stalled
	case StopTimeout:
		set.Fate, set.Class = Retry, TimedOut
	case StopAsk:
		set.Fate, set.Class, set.Interrupt = Park, Asked, ByAgent
	case StopPerson:
		set.Fate, set.Class, set.Interrupt = Park, Halted, ByPerson
	case StopBudget:
		set.Fate, set.Class = Release, LoopBudget
	default:
		set.Fate, set.Class = Release, LoopEnds
	}
}

// classify is the table of failures and what each leads to.
func (s *State) classify(p *Slot, set *Settle) {
	o, item := p.Outcome, p.Claim.Item
	switch o.Class {
	case SpawnFailed, BadWorkspace:
		s.unstarted(p, set)
	case BadBootstrap, APIError, RateLimited, AuthFailed, PlaceAway:
		set.Fate = Release // it is not the item's fault
	case SessionGone:
		set.Fate = Release // begun anew, once: what is told of it then resumes no session
		if p.From == nil || p.From.Session == "" {
			set.Fate, set.Class = Retry, Crashed
		}
	case ContextFull, TurnsUsed:
		set.Fate = Release
		if s.Items[item.ID].Continues >= s.Limits.MaxContinues {
			set.Fate, set.Interrupt = Park, ByContinues
			set.Reason = fmt.Sprintf("%d sessions have not been enough for it: %s", s.Limits.MaxContinues+1, o.Reason)
		}
	case BudgetUsed:
		set.Fate, set.Interrupt = Park, ByBudget
		if p.Reserved < s.Limits.ItemUSD {
			// It had less than an item may cost, because the loop has no more.
			set.Fate, set.Class, set.Interrupt = Release, LoopBudget, ""
		}
	case Refused:
		set.Fate = GiveUp
	case Cancelled:
		set.Fate, set.Interrupt = Park, ByCancel
	case TimedOut, Stalled, Crashed:
		set.Fate = Retry
	default:
		set.Fate, set.Class = Retry, s.poorResult(o)
		if set.Reason == "" {
			set.Reason = set.Class.Words()
		}
	}
}

// poorResult is why a run without a class of its own is no success.
func (s *State) poorResult(o *Outcome) Class {
	switch {
	case o.Class != None:
		return o.Class
	case !o.Completed:
		return Crashed
	case o.Turns == 0:
		return NoTurn
	case !o.OK:
		return BadResult
	}
	return NoChange
}

// afterGate says how an iteration ends whose work was checked.
func (s *State) afterGate(p *Slot) Settle {
	set := Settle{Fate: Done, Completed: true, Succeeded: true, Verified: p.Verified}
	switch {
	case p.Lost:
		set.Fate, set.Class, set.Reason = Drop, LeaseGone, "the claim was lost while the work was checked"
	case p.Verified != GateFailed:
	case s.Items[p.Claim.Item.ID].GateFails+1 >= s.Limits.MaxGateFails:
		set.Fate, set.Class, set.Reason, set.Interrupt = Park, GateFail, p.GateText, ByGate
	default:
		set.Fate, set.Class, set.Reason = Retry, GateFail, p.GateText
	}
	return set
}

// settle ends an iteration: it keeps what must be remembered of the item, and
// asks the queue to do the same.
func (s *State) settle(i int, set Settle, out *[]Action) {
	p := &s.Slots[i]
	if set.Class == LeaseGone {
		set.Reason = cmp.Or(p.Gone, set.Reason)
	}
	set.Refusal = s.Items[p.Claim.Item.ID].Refusal
	set.Refusal.Earlier = set.Refusal.What != ""
	if o := p.Outcome; o != nil && o.Refusal.What != "" {
		set.Refusal = o.Refusal
	}
	s.remember(p, &set)
	p.Settle = &set
	p.Retries = 0
	if set.Fate == Drop {
		s.Tally.Lost++
		s.archive(i, out)
		return
	}
	s.to(p, Settling)
	s.ask(i, out)
}

// remember keeps, of the item and of the whole, what the next decisions go by.
func (s *State) remember(p *Slot, set *Settle) {
	if set.Class == SameItem {
		return // what is remembered is of the run that another slot has: its question, which may be answered by now
	}
	id := p.Claim.Item.ID
	m := s.Items[id]
	m.Parked, m.Kind, m.Asked, m.Number, m.Refusal = false, "", "", 0, set.Refusal
	s.continuation(p, set, &m)
	starts := m.Starts
	m.Starts = 0
	switch o := p.Outcome; {
	case set.Class == SpawnFailed || set.Class == BadWorkspace:
		m.Starts = starts + 1
		s.keep(id, m)
		s.startFailed(id, set)
		return
	case o == nil || o.Run == "":
		m.Starts = starts // which this says nothing about
	default:
		s.Starting, s.Launched, s.Unstartable = nil, true, 0
	}
	switch set.Fate {
	case Done:
		delete(s.Items, id)
		s.Failing, s.Same, s.Failure, s.Spawning, s.Row, s.Several = nil, nil, "", 0, 0, false
		if s.HoldWall.IsZero() { // a rate limit holds whoever succeeds
			s.HoldUntil, s.HoldWhy = 0, ""
		}
		return
	case Retry, GiveUp:
		s.failure(p, set, &m)
	case Release:
		s.released(p, set, &m)
	case Drop:
		m.From = undelivered(p) // whoever has the item now goes on in its own way
	}
	if set.Class == GateFail {
		m.GateFails++
	}
	s.keep(id, m)
}

// keep remembers what there is to remember of an item.
func (s *State) keep(id string, m Memory) {
	if m == (Memory{}) {
		delete(s.Items, id)
		return
	}
	if s.Items == nil {
		s.Items = map[string]Memory{}
	}
	s.Items[id] = m
}

// continuation says from what the item's next run goes on.
func (s *State) continuation(p *Slot, set *Settle, m *Memory) {
	o := p.Outcome
	if o == nil || o.Run == "" {
		m.From = p.From // never launched: from where this one would have
		return
	}
	if set.Class == SessionGone && p.From != nil {
		c := *p.From // from where this one would have gone on, in a session that is told of it
		c.Session, c.Fresh = "", true
		m.From = &c
		return
	}
	c := Continuation{Run: o.Run, Why: string(set.Class)}
	switch set.Class {
	case ContextFull, Crashed, Stalled, BadResult, NoTurn, Reported:
		c.Fresh = true // what is in that session has not helped it
	case APIError, RateLimited, AuthFailed, SpawnFailed, BadBootstrap:
		if o.Turns == 0 {
			m.From = p.From
			return
		}
	}
	if o.Resumable && !c.Fresh {
		c.Session = o.Session
		c.Estimated = o.Estimated
		if f := p.From; f != nil && f.Session == o.Session && o.Estimated > 0 {
			c.Estimated += f.Estimated // neither has said it
		}
	} else {
		c.Fresh = true
	}
	if f := p.From; f != nil && c.Fresh && set.Fate != Park {
		c.Asked, c.Kind, c.Answer, c.Number = f.Asked, f.Kind, f.Answer, f.Number // which the next session does not know of
	}
	m.From = &c
}

// undelivered is what a person has answered and no session was told, nil for nothing.
func undelivered(p *Slot) *Continuation {
	if f := p.From; f != nil && f.Answer != "" && (p.Outcome == nil || p.Outcome.Run == "") {
		return &Continuation{Run: f.Run, Why: f.Why, Fresh: true, Asked: f.Asked, Kind: f.Kind, Answer: f.Answer, Number: f.Number}
	}
	return nil
}

// failure counts an item's failure, against it and against the whole.
func (s *State) failure(p *Slot, set *Settle, m *Memory) {
	id := p.Claim.Item.ID
	sig := string(set.Class)
	if o := p.Outcome; o != nil && o.Signature != "" {
		sig += ": " + o.Signature
	}
	if m.Failure == sig {
		m.Identical++
	} else {
		m.Failure, m.Identical = sig, 1
	}
	if set.Fate == Retry && m.Identical >= s.Limits.MaxIdentical {
		set.Fate = GiveUp
		set.Reason = fmt.Sprintf("it failed %d times in the same way: %s", m.Identical, set.Reason)
	}
	if s.Failure != sig {
		s.Failure, s.Same = sig, nil
	}
	s.Same = with(s.Same, id)
	s.Failing = with(s.Failing, id)
	if s.Several { // else the item waits alone, in the queue: the others are as good as before
		s.backOff(set.Reason)
	}
}

// several is for what fails with one item after the other, which is the fault of none of them. A
// person decides; where none is waited for, all are held back, longer with each that fails, until
// one succeeds: a machine that is broken at midnight must not use up the queue by the morning.
func (s *State) several(kind, why string, out *[]Action) {
	s.raise(kind, why, "", out)
	if s.Phase == Working {
		s.Several = true
		s.backOff(why)
	}
}

// released counts what goes back to the queue without having been tried, or
// without having been finished.
func (s *State) released(p *Slot, set *Settle, m *Memory) {
	switch set.Class {
	case ContextFull, TurnsUsed:
		m.Continues++
	case RateLimited:
		s.Tally.RateLimited++
		s.backOff("rate limit")
		if reset := p.Outcome.Reset; !reset.IsZero() {
			until := s.Now.Loop + min(max(reset.Sub(s.Now.Wall), s.Limits.BackoffUnit), s.Limits.MaxTime)
			if !s.Limited() || until > s.HoldUntil { // of two limits the one that lasts longer holds
				s.HoldWall, s.HoldUntil = reset, until
			}
		}
	case APIError, BadBootstrap:
		s.Spawning++
		s.backOff(set.Reason)
	case RemoteAway: // which is no reason to wait for a person: it is told, and passes
		s.backOff(set.Reason)
	}
}

// alone reports whether of all items only this one cannot be started.
func (s *State) alone(id string) bool {
	return s.Launched && (len(s.Starting) == 0 || len(s.Starting) == 1 && s.Starting[0] == id)
}

// unstarted says what becomes of an item no run of which could be started. Where others
// can be, it counts as an attempt; where that is not known, or nothing can be started, it
// is not the item's fault. Either way the item itself waits, and the others do not wait for
// it: one that cannot be started must not cost the night.
func (s *State) unstarted(p *Slot, set *Settle) {
	id := p.Claim.Item.ID
	n := s.Items[id].Starts + 1
	set.Fate, set.Delay = Release, s.Limits.BackoffMax
	if n < 32 {
		set.Delay = min(set.Delay, s.Limits.BackoffUnit<<n)
	}
	switch {
	case s.alone(id) && n >= s.Limits.MaxIdentical:
		set.Fate, set.Delay = GiveUp, 0
		set.Reason = fmt.Sprintf("it could not be started %d times: %s", n, set.Reason)
	case s.alone(id):
		set.Fate = Retry
	case s.Limits.OnInterrupt == Skip && n >= s.Limits.MaxFailing:
		set.Fate, set.Delay, set.Interrupt = Park, 0, ByFailing // or a loop that asks nobody would go on with it for ever
	}
}

// startFailed counts a start that failed against the whole, unless it is one item's alone.
func (s *State) startFailed(id string, set *Settle) {
	alone := s.alone(id)
	s.Starting = with(s.Starting, id)
	if alone {
		return
	}
	s.Spawning++
	if len(s.Starting) > 1 {
		s.backOff(set.Reason)
	}
}

// backOff holds the next claims back, longer each time: for what fails and is no item's fault.
func (s *State) backOff(why string) {
	s.Row++
	wait := s.Limits.BackoffMax
	if s.Row < 32 {
		wait = min(wait, s.Limits.BackoffUnit<<s.Row)
	}
	if s.Limited() {
		return // until a time that a success does not end
	}
	if until := s.Now.Loop + wait; until > s.HoldUntil {
		s.HoldUntil, s.HoldWall, s.HoldWhy = until, time.Time{}, why
	}
}

func with(list []string, id string) []string {
	if slices.Contains(list, id) {
		return list
	}
	return append(slices.Clip(list), id)
}
