// Package core decides what a loop does next: a pure state machine that is given
// what happened and says what is to be done.
//
// It knows no disk, no process and no clock: time comes with every event, and
// what it wants done goes out as a list of actions, each of which may be done
// twice without harm. Whoever drives it keeps the state on disk before it does
// the actions that came with it, so that a driver killed at any moment is gone on
// with by the next one (see [Started]). Because nothing here depends on anything
// else, whole nights of failures are simulated in microseconds.
//
// It owns no files and takes no locks.
package core

import (
	"maps"
	"slices"
	"time"
)

// Version is the "v" of a state on disk.
const Version = 1

// Phase is what the loop as a whole is doing.
type Phase string

// The phases of a loop.
const (
	Working  Phase = "working"  // claims what is ready
	Paused   Phase = "paused"   // a person wants no new work to be begun
	Waiting  Phase = "waiting"  // an interrupt waits for a person's answer
	Draining Phase = "draining" // what is being done is finished, then it ends
	Stopping Phase = "stopping" // what is being done is stopped, then it ends
	Finished Phase = "finished" // it has ended; its state changes no more
)

// Step is what one worker is doing.
type Step string

// The steps of an iteration, in their order.
const (
	Idle      Step = "idle"
	Claiming  Step = "claiming"
	Preparing Step = "preparing" // the workspace
	Launching Step = "launching"
	Running   Step = "running"
	Verifying Step = "verifying"
	Settling  Step = "settling"
	Archiving Step = "archiving"
)

// OnInterrupt says what becomes of the rest while something waits for a person.
type OnInterrupt string

// Whether the loop waits with all it does, or sets the item aside and goes on.
const (
	Wait OnInterrupt = "wait"
	Skip OnInterrupt = "skip"
)

// Limits bound a loop. Every ceiling is there: none may be zero or below.
type Limits struct {
	Workers       int           `json:"workers"`
	MaxIterations int           `json:"max_iterations"`
	MaxUSD        float64       `json:"max_usd"`
	MaxTokens     int64         `json:"max_tokens"`
	MaxTime       time.Duration `json:"max_time_ns"` // of work; time in which it waits for a person does not count
	UntilEmpty    bool          `json:"until_empty,omitempty"`
	OnInterrupt   OnInterrupt   `json:"on_interrupt"`

	ItemUSD     float64       `json:"item_usd"`     // the most that one run may cost
	ItemTimeout time.Duration `json:"item_timeout"` // the longest that one run may take
	Stall       time.Duration `json:"stall"`        // how long a run may say nothing
	Delay       time.Duration `json:"delay"`        // between two iterations of a worker
	IdleWait    time.Duration `json:"idle_wait"`    // before an empty queue is looked at again unasked
	BackoffUnit time.Duration `json:"backoff_unit"` // backoff is this times 2^n …
	BackoffMax  time.Duration `json:"backoff_max"`  // … and at most this

	MaxFailing   int `json:"max_failing"`   // different items failing in a row → interrupt
	MaxGateFails int `json:"max_gate_fail"` // of one item → interrupt
	MaxIdentical int `json:"max_identical"` // the same failure of one item → given up; of different items → interrupt
	MaxContinues int `json:"max_continues"` // fresh sessions that go on with one item's work
	// StopPatience is how long a run that was told to stop may take before it is
	// told again.
	StopPatience time.Duration `json:"stop_patience"`
}

// More is what ceilings are raised by.
type More struct {
	USD        float64       `json:"usd,omitempty"`
	Tokens     int64         `json:"tokens,omitempty"`
	Iterations int           `json:"iterations,omitempty"`
	Time       time.Duration `json:"time_ns,omitempty"`
}

// Raise raises ceilings: what is said twice adds up. It never lowers one.
func (l *Limits) Raise(m More) {
	l.MaxUSD, l.MaxTokens = max(l.MaxUSD, l.MaxUSD+m.USD), max(l.MaxTokens, l.MaxTokens+m.Tokens)
	l.MaxIterations, l.MaxTime = max(l.MaxIterations, l.MaxIterations+m.Iterations), max(l.MaxTime, l.MaxTime+m.Time)
}

// DefaultLimits are the ceilings and times that hold where nobody says otherwise.
func DefaultLimits() Limits {
	return Limits{
		Workers: 1, MaxIterations: 500, MaxUSD: 50, MaxTokens: 50_000_000, MaxTime: 8 * time.Hour, OnInterrupt: Wait,
		ItemUSD: 10, ItemTimeout: time.Hour, Stall: 10 * time.Minute, Delay: 5 * time.Second, IdleWait: time.Minute,
		BackoffUnit: time.Second, BackoffMax: 5 * time.Minute,
		MaxFailing: 5, MaxGateFails: 2, MaxIdentical: 3, MaxContinues: 5, StopPatience: time.Minute,
	}
}

// Item is what the core knows of a work item.
type Item struct {
	ID         string `json:"id"`
	NoChangeOK bool   `json:"no_change_ok,omitempty"` // done without a change in the tree, too
}

// Claim is an item that the queue has given us, and the number by which it knows
// this claim from every other claim of the item.
type Claim struct {
	Item  Item  `json:"item"`
	Fence int64 `json:"fence"`
	// Born tells the item from another one that has had its id before, and was forgotten by the queue
	// with its numbers; "" in states of older programs.
	Born string `json:"born,omitempty"`
	// Token is the right to speak about the claim, which means something to the queue
	// alone.
	Token string `json:"token,omitempty"`
}

// Continuation is what a new run of an item goes on from.
type Continuation struct {
	Run     string `json:"run"`               // the run before
	Session string `json:"session,omitempty"` // of the client; "" where it must not be resumed
	Why     string `json:"why,omitempty"`     // the run ended so
	Asked   string `json:"asked,omitempty"`   // what a person was asked when the item was set aside, or why a person did that
	Kind    string `json:"kind,omitempty"`    // of that, as an interrupt has it; "" in states of older programs
	Answer  string `json:"answer,omitempty"`  // a person's
	// Number is that of the question that Answer is for, or may still be given for; 0
	// where there is none.
	Number int64 `json:"number,omitempty"`
	Fresh  bool  `json:"fresh,omitempty"` // a new session, because the old one is full or is not to be trusted
	// Estimated is what was counted for the runs of Session that did not say what they cost.
	// The client counts that session whole: whoever goes on in it is told of them, too.
	Estimated float64 `json:"estimated_usd,omitempty"`
}

// Slot is one worker.
type Slot struct {
	Step Step `json:"step"`
	// Seq numbers what was asked last; an answer with another number is late.
	Seq   int64 `json:"seq"`
	Claim Claim `json:"claim,omitzero"`
	// Iteration is the how-manieth item it is that the loop has begun.
	Iteration int    `json:"iteration,omitempty"`
	Run       string `json:"run,omitempty"`
	// From is what the run goes on from, nil for a beginning.
	From *Continuation `json:"from,omitempty"`
	// Reserved is the money that is set aside for the run.
	Reserved float64 `json:"reserved,omitempty"`
	// Cost and Tokens are what the run has used as far as is known.
	Cost    float64       `json:"cost,omitempty"`
	Tokens  int64         `json:"tokens,omitempty"`
	Began   time.Duration `json:"began,omitempty"`    // of the run
	StallAt time.Duration `json:"stall_at,omitempty"` // when its silence will have been too long
	// Stop is why the run was told to stop, "" where it was not; StopAt is when it
	// will be told again.
	Stop   StopWhy       `json:"stop,omitempty"`
	StopAt time.Duration `json:"stop_at,omitempty"`
	Why    string        `json:"why,omitempty"`    // in words
	Answer string        `json:"answer,omitempty"` // a person's, who gave it before the run had stopped
	Lost   bool          `json:"lost,omitempty"`
	Gone   string        `json:"gone,omitempty"` // what became of the item whose claim was lost, "" where that is not known
	// Outcome is how the run ended; nil before.
	Outcome  *Outcome `json:"outcome,omitempty"`
	Verified Gate     `json:"verified,omitempty"`
	GateText string   `json:"gate_text,omitempty"`
	Settle   *Settle  `json:"settle,omitempty"`
	// NextAt is when this worker may begin again, or try its step again.
	NextAt  time.Duration `json:"next_at,omitempty"`
	Retries int           `json:"retries,omitempty"` // of this step
	Waits   bool          `json:"waits,omitempty"`   // the step failed and is tried again at NextAt
	// Trouble is why the step, or the claim before, could not be done; "" once it could.
	Trouble string `json:"trouble,omitempty"`
	// Outdated says that the queue has got something since this worker's claim was asked
	// for: that nothing is ready may be from before.
	Outdated bool `json:"outdated,omitempty"`
}

// StopWhy is why a run is told to stop.
type StopWhy string

// Reasons for stopping a run.
const (
	StopLost    StopWhy = "lease lost"
	StopStalled StopWhy = "stalled"
	StopTimeout StopWhy = "timeout"
	StopAsk     StopWhy = "the agent asks"
	StopPerson  StopWhy = "a person interrupts"
	StopBudget  StopWhy = "budget"
	StopEnd     StopWhy = "the loop ends"
)

// Gate is what the checks say of a run's work.
type Gate string

// Outcomes of a gate.
const (
	NotLooked  Gate = ""
	GatePassed Gate = "passed"
	GateFailed Gate = "failed"
	GateNone   Gate = "none declared"
)

// Memory is what is remembered of an item between its claims.
type Memory struct {
	GateFails int           `json:"gate_fails,omitempty"`
	Failure   string        `json:"failure,omitempty"` // the last failure's signature
	Identical int           `json:"identical,omitempty"`
	Continues int           `json:"continues,omitempty"`
	From      *Continuation `json:"from,omitempty"`
	Parked    bool          `json:"parked,omitempty"`
	// Kind and Asked are what a person must decide of an item that is set aside, and
	// Number tells that question from every other one of the item: it is the number of the
	// claim that ended in it. States of older programs lack all three.
	Kind   string `json:"kind,omitempty"`
	Asked  string `json:"asked,omitempty"`
	Number int64  `json:"number,omitempty"`
	// Starts counts starts of it in a row that failed, so that no run came of them.
	Starts int `json:"starts,omitempty"`
	// Refusal is what the guard refused in the last attempt of it of which it refused anything.
	Refusal Refusal `json:"refusal,omitzero"`
}

// Interrupt is what a person must decide.
type Interrupt struct {
	Kind  string   `json:"kind"` // agent, gate, budget, authentication, repository, failing, identical, person, cancelled, continues, missing
	Why   string   `json:"why"`
	Items []string `json:"items,omitempty"` // set aside because of it
	// Halt says that nothing may go on meanwhile, not even what runs.
	Halt bool `json:"halt,omitempty"`
	// Number tells a person's interrupt from every other one of this loop.
	Number int64 `json:"number,omitempty"`
	At     Time  `json:"at"`
}

// Kinds of interrupt.
const (
	ByAgent     = "agent"
	ByGate      = "gate"
	ByBudget    = "budget"
	ByAuth      = "authentication"
	ByRepo      = "repository"
	ByFailing   = "failing"
	ByIdentical = "identical"
	ByPerson    = "person"
	ByCancel    = "cancelled"
	ByContinues = "continues"
	ByMissing   = "missing"
)

// Time is a moment: on the loop's own clock, which only goes forward, and on the
// wall's, which may be set.
type Time struct {
	Loop time.Duration `json:"loop_ns"`
	Wall time.Time     `json:"wall"`
}

// Tally counts what became of iterations.
type Tally struct {
	Done        int `json:"done"`
	Failed      int `json:"failed"` // to be tried again, unless the queue gave them up
	GivenUp     int `json:"given_up"`
	Parked      int `json:"parked"`
	Released    int `json:"released"`
	Lost        int `json:"lost"`
	Interrupts  int `json:"interrupts"`
	RateLimited int `json:"rate_limited"`
}

// Given is how a loop was told to work, beside its limits. The core keeps it with the rest,
// so that whoever goes on with the loop works in the same way, and goes by none of it.
type Given struct {
	Agent      string   `json:"agent,omitempty"`  // client of all items; "" is any
	Script     string   `json:"script,omitempty"` // file of steps for the script client, absolute
	Model      string   `json:"model,omitempty"`
	Turns      int      `json:"turns,omitempty"`     // of one run, 0 is what settings and routes say
	Labels     []string `json:"labels,omitempty"`    // only items that have all of these
	Integrate  string   `json:"integrate,omitempty"` // what becomes of a finished branch; "" in place
	Into       string   `json:"into,omitempty"`      // branch that it is merged into
	Base       string   `json:"base,omitempty"`      // revision that work begins at
	InPlace    bool     `json:"in_place,omitempty"`
	Unattended bool     `json:"unattended,omitempty"`
}

// State is everything a loop knows. It is JSON on disk.
type State struct {
	V      int    `json:"v"`
	Loop   string `json:"loop"` // id of this night's work
	Phase  Phase  `json:"phase"`
	Reason string `json:"reason,omitempty"` // of the phase
	// Unable says that it ends, or has ended, because it could go on with nothing and was to
	// wait for nobody.
	Unable bool   `json:"unable,omitempty"`
	Limits Limits `json:"limits"`
	// Given is nil in states of older programs.
	Given *Given `json:"given,omitempty"`
	Began Time   `json:"began"`
	Now   Time   `json:"now"` // of the last event
	// Worked is the time in which there was something to do, or to wait for other
	// than a person.
	Worked time.Duration `json:"worked_ns"`
	// Rev grows with every change that must not be lost.
	Rev int64 `json:"rev"`
	Seq int64 `json:"seq"`

	Iterations int     `json:"iterations"`
	CostUSD    float64 `json:"cost_usd"`
	Tokens     int64   `json:"tokens"`
	// EstimatedUSD is the part of CostUSD that no client has said: of runs that were ended
	// before. PricedUSD and PricedTokens are of the runs that said it.
	EstimatedUSD float64 `json:"estimated_usd,omitempty"`
	PricedUSD    float64 `json:"priced_usd,omitempty"`
	PricedTokens int64   `json:"priced_tokens,omitempty"`
	// Untold counts the runs of which nobody has said what they cost: CostUSD has nothing of them.
	Untold int    `json:"untold,omitempty"`
	Tally  Tally  `json:"tally"`
	Slots  []Slot `json:"slots"`

	// Failing are the different items that failed since the last success.
	Failing []string `json:"failing,omitempty"`
	// Spawning counts starts that failed since the last success, whichever item
	// they were for; Row counts all that backoff goes by.
	Spawning int `json:"spawning,omitempty"`
	// Starting are the different items whose start failed since a run began last, and
	// Launched says that one ever did: then what fails with one item alone is the item's.
	Starting []string `json:"starting,omitempty"`
	Launched bool     `json:"launched,omitempty"`
	Row      int      `json:"row,omitempty"`
	// Several says that different items failed one after the other where nobody is waited for,
	// and that none has succeeded since.
	Several bool `json:"several,omitempty"`
	// Unstartable counts how often a person was told that starts fail, with nothing begun in
	// between, where nobody is waited for.
	Unstartable int `json:"unstartable,omitempty"`
	// Failure is the signature of the last failure, Same the different items that
	// had it one after the other.
	Failure string   `json:"failure,omitempty"`
	Same    []string `json:"same,omitempty"`
	// HoldUntil is before when nothing is claimed: backoff. HoldWall is the same by
	// the wall's clock, where a model's rate limit names a time.
	HoldUntil time.Duration `json:"hold_until,omitempty"`
	HoldWall  time.Time     `json:"hold_wall,omitzero"`
	HoldWhy   string        `json:"hold_why,omitempty"`
	// LookAt is when an empty queue is looked at again.
	LookAt time.Duration `json:"look_at,omitempty"`
	Empty  bool          `json:"empty,omitempty"` // the queue said that nothing is left, not even later
	// Left is what the queue has although nothing of it is ready, for people.
	Left string `json:"left,omitempty"`

	Interrupt *Interrupt `json:"interrupt,omitempty"`
	// Paused says of a loop that waits for a person that one has paused it, too: once it need
	// not wait it is paused.
	Paused bool `json:"paused,omitempty"`
	// Drains is why a loop that waits for a person, or is paused, was to begin nothing new and
	// end; "" where it was not. Once it need not wait it goes on so.
	Drains string `json:"drains,omitempty"`
	// StopSince is when it began to stop, on the loop's own clock.
	StopSince time.Duration `json:"stop_since,omitempty"`
	// Shown is what people were last shown of an interrupt, by which a driver knows what an
	// earlier one has left of it from what a person has put there.
	Shown string `json:"shown,omitempty"`
	// Open are items whose question the loop has not waited for to the end, because another
	// was answered: before it ends it waits for them again.
	Open []string `json:"open,omitempty"`
	// Heard are the last requests of people that were done, so that none is done twice.
	Heard []string          `json:"heard,omitempty"`
	Items map[string]Memory `json:"items,omitempty"`
	// Unpark are items that are to be put back into the queue.
	Unpark   []string      `json:"unpark,omitempty"`
	UnparkAt time.Duration `json:"unpark_at,omitempty"` // when it is tried again
	// UnparkTries counts how often in a row that could not be done, and Trouble is why.
	UnparkTries int    `json:"unpark_tries,omitempty"`
	Trouble     string `json:"trouble,omitempty"`
}

// New is a loop that has done nothing yet.
func New(loop string, l Limits, now Time) State {
	s := State{V: Version, Loop: loop, Phase: Working, Limits: l, Began: now, Now: now, Slots: make([]Slot, l.Workers), Items: map[string]Memory{}}
	for i := range s.Slots {
		s.Slots[i].Step = Idle
	}
	return s
}

// Clone is a copy that shares nothing that changes.
func (s State) Clone() State {
	s.Slots = slices.Clone(s.Slots)
	for i := range s.Slots {
		p := &s.Slots[i]
		p.From, p.Outcome, p.Settle = clone(p.From), clone(p.Outcome), clone(p.Settle)
	}
	s.Failing, s.Same, s.Unpark = slices.Clone(s.Failing), slices.Clone(s.Same), slices.Clone(s.Unpark)
	s.Starting, s.Open, s.Heard = slices.Clone(s.Starting), slices.Clone(s.Open), slices.Clone(s.Heard)
	s.Items = maps.Clone(s.Items)
	if s.Given = clone(s.Given); s.Given != nil {
		s.Given.Labels = slices.Clone(s.Given.Labels)
	}
	if s.Interrupt = clone(s.Interrupt); s.Interrupt != nil {
		s.Interrupt.Items = slices.Clone(s.Interrupt.Items)
	}
	return s
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// Claims are the items that the loop holds, whose leases must be renewed.
func (s *State) Claims() []Claim {
	var out []Claim
	for i := range s.Slots {
		if p := &s.Slots[i]; p.Claim.Fence != 0 && !p.Lost && p.Step != Archiving {
			out = append(out, p.Claim)
		}
	}
	return out
}

// Busy is how many workers have something to do.
func (s *State) Busy() int {
	n := 0
	for i := range s.Slots {
		if s.Slots[i].Step != Idle {
			n++
		}
	}
	return n
}

// committed is the money that is spent or set aside.
func (s *State) committed() float64 {
	sum := s.CostUSD
	for i := range s.Slots {
		sum += max(s.Slots[i].Reserved, s.Slots[i].Cost)
	}
	return sum
}

// tokens are those of runs that have ended and of those that have not.
func (s *State) tokens() int64 {
	sum := s.Tokens
	for i := range s.Slots {
		sum += s.Slots[i].Tokens
	}
	return sum
}
