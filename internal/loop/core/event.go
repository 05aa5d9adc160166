package core

import "time"

// Event is something that happened. When it happened comes with it, see [Step].
type Event interface{ event() }

type (
	// Started says that a driver has begun, or begun again: what it finds is
	// brought together with what the state says. Claims are all items that the
	// queue holds for this loop. Limits are what the loop is bounded by from now on, and
	// Given is how it works; nil leaves its own. Whoever begins it wants it to work: one that
	// was ending, and did not live to, works on. Went is what became of claims that are not among
	// them, where that is known. Heard says that what people have said before
	// follows at once: nothing is claimed until then.
	Started struct {
		Claims []Claim
		Limits *Limits
		Given  *Given
		Went   []Went
		Heard  bool
	}
	// Tick says that time has passed.
	Tick struct{}
	// QueueChanged says that there may be something new in the queue.
	QueueChanged struct{}

	// Claimed answers a Claim. Without a Claim nothing was ready: then Empty says
	// that nothing will be, and NextIn when something will be, 0 if that is not known; Left
	// says what there is all the same, "" for nothing.
	Claimed struct {
		Slot   int
		Seq    int64
		Claim  *Claim
		Empty  bool
		NextIn time.Duration
		Left   string
		// Answer is what a person has said, by the item, to the question of number Asked: not to
		// the loop, but on another machine.
		Answer string
		Asked  int64
	}
	// Prepared answers a Prepare.
	Prepared struct {
		Slot int
		Seq  int64
		// Err is why the item cannot have its workspace, "" if it has it.
		Err string
		// Later is why it is not begun yet, which is nobody's failure, "" where it may be.
		Later string
		// InUse says that this is because somebody works in its place.
		InUse bool
		// Held is why nothing at all can be begun in the repository until a person has looked
		// at it, "" where it can.
		Held string
		// Away is why nothing can be begun on this machine for the moment: the remote with which
		// it exchanges work cannot be had. "" where it can.
		Away string
		// Missing is what it builds on and is nowhere to be had, "" for nothing: a person decides
		// whether it is begun without that.
		Missing string
	}
	// Launched answers a Launch.
	Launched struct {
		Slot int
		Seq  int64
		Run  string
		// Class is how it failed, and Err why; "" where it did not.
		Class Class
		Err   string
	}
	// Progress is what a run has shown of itself. It comes only where something is
	// new: it is what a stall is measured by.
	Progress struct {
		Slot   int
		Run    string
		Cost   float64
		Tokens int64
	}
	// AgentAsks says that a run has asked for a person.
	AgentAsks struct {
		Slot int
		Run  string
		Why  string
	}
	// Exited says that a run has ended and that nothing of it is left.
	Exited struct {
		Slot    int
		Run     string
		Outcome Outcome
	}
	// Verified answers a Verify.
	Verified struct {
		Slot int
		Seq  int64
		Gate Gate
		Text string // what failed, for whoever goes on
	}
	// Settled answers a Settle or a Release. GaveUp says that the queue tries the
	// item no more, Lost that the claim was not ours any longer, and Why what became of
	// the item then.
	Settled struct {
		Slot   int
		Seq    int64
		GaveUp bool
		Lost   bool
		Why    string
	}
	// Archived answers an Archive.
	Archived struct {
		Slot int
		Seq  int64
	}
	// Unparked answers an Unpark.
	Unparked struct{ Item string }
	// Broken answers any action of a slot that could not be done for a reason that
	// may pass, such as a full disk. It is tried again.
	Broken struct {
		Slot int
		Seq  int64
		Err  string
		// Most is the longest wait before that; 0 is the longest of the limits.
		Most time.Duration
	}
	// LeaseLost says that the queue has given a claim to somebody else, or will. A
	// number alone is not enough: each item has its own. Why says in words what became
	// of the item, "" where that is not known.
	LeaseLost struct {
		Slot  int
		Item  string
		Fence int64
		Why   string
	}

	// Interrupted is a person's wish that everything stops and waits.
	Interrupted struct{ Why string }
	// Resumed is a person's answer, or lets work go on without one. Items names what it is
	// for. With neither it ends a pause, too, and where there is nothing else that it could
	// end, it has the loop wait no longer for a rate limit. Without Items an answer is for the one question that is open, or for all that a
	// person's interrupt stopped; where that is not one thing, the answer is refused. Without
	// an answer, and without Items, all goes on that was set aside by the interrupt, but
	// what an agent has asked only with NoAnswer. With Items, NoAnswer takes back an answer that
	// no session was told yet; and what a person has stopped goes on only if one of them was
	// stopped by that.
	Resumed struct {
		Answer string
		Items  []string
		// Number is that of the question, or of the interrupt, that the answer was given for; an
		// answer for another is refused. 0 is whichever there is.
		Number   int64
		NoAnswer bool
		More     *More // raises ceilings by so much
		// Request names what the person left for the loop, "" for nothing: it is done once.
		Request string
	}
	// Cleared says that what the loop waits for is over without a word of anybody, as where a
	// person has mended it: a kind of interrupt that is about no item.
	Cleared struct{ Kind string }
	// PauseAsked is a person's wish that nothing new is begun.
	PauseAsked struct{}
	// StopAsked is a person's wish that the loop ends: at once, or with Drain
	// when what is being done is done.
	StopAsked struct {
		Why   string
		Drain bool
	}
)

func (Started) event()      {}
func (Tick) event()         {}
func (QueueChanged) event() {}
func (Claimed) event()      {}
func (Prepared) event()     {}
func (Launched) event()     {}
func (Progress) event()     {}
func (AgentAsks) event()    {}
func (Exited) event()       {}
func (Verified) event()     {}
func (Settled) event()      {}
func (Archived) event()     {}
func (Unparked) event()     {}
func (Broken) event()       {}
func (LeaseLost) event()    {}
func (Interrupted) event()  {}
func (Resumed) event()      {}
func (Cleared) event()      {}
func (PauseAsked) event()   {}
func (StopAsked) event()    {}

// Op is a kind of action.
type Op string

// What a driver is asked to do. All of it may be asked for twice.
const (
	OpClaim   Op = "claim"   // an item for the slot → Claimed
	OpPrepare Op = "prepare" // its workspace → Prepared
	OpLaunch  Op = "launch"  // a run, once for a fencing number however often it is asked for → Launched
	OpWatch   Op = "watch"   // the slot's run → Progress, AgentAsks, Exited
	OpStop    Op = "stop"    // the slot's run, keeping its context if Keep → Exited
	OpVerify  Op = "verify"  // the work → Verified
	OpSettle  Op = "settle"  // the item in the queue → Settled
	OpArchive Op = "archive" // what is known of the iteration → Archived
	OpRelease Op = "release" // a claim that no slot has; no answer
	OpUnpark  Op = "unpark"  // an item that was set aside → Unparked
	OpNotify  Op = "notify"  // a person; no answer
	OpRaise   Op = "raise"   // the interrupt is made visible; no answer
	OpLower   Op = "lower"   // it is over; no answer
	OpRefuse  Op = "refuse"  // an answer that is for nothing that is open is told to be so; no answer
	OpFinish  Op = "finish"  // the loop has ended; no answer
	OpLeave   Op = "leave"   // the loop cannot end properly: all is left as it is for the next driver; no answer
)

// Action is something to do.
type Action struct {
	Op    Op
	Slot  int
	Seq   int64
	Claim Claim
	Run   string
	Keep  bool          // OpStop: it is an interrupt, and the context is kept
	From  *Continuation // OpLaunch
	USD   float64       // OpLaunch: the most it may cost
	Time  time.Duration // OpLaunch: the longest it may take
	How   *Settle       // OpSettle, OpArchive
	Item  string        // OpUnpark
	Kind  string        // OpNotify, OpRaise
	Text  string        // OpNotify, OpRaise, OpStop, OpRefuse, OpFinish, OpLeave: why
}

// Fate is what becomes of an item when an iteration ends.
type Fate string

// The fates.
const (
	Done    Fate = "done"
	Retry   Fate = "retry"   // it failed; the queue counts and may give it up
	GiveUp  Fate = "give up" // it failed, and trying again would not help
	Release Fate = "release" // ready again, as if it had not been claimed
	Park    Fate = "park"    // set aside until a person has decided
	Drop    Fate = "drop"    // not ours any more: nothing is said to the queue
)

// Went is what became of the item of a claim that was lost.
type Went struct {
	Item  string
	Fence int64
	What  string
}

// Settle is how an iteration ends.
type Settle struct {
	Fate   Fate          `json:"fate"`
	Class  Class         `json:"class,omitempty"`
	Reason string        `json:"reason,omitempty"`
	Delay  time.Duration `json:"delay,omitempty"` // before it is ready again
	// Completed: the process ended well. Succeeded: its result is one. Verified is
	// what the gates say.
	Completed bool `json:"completed"`
	Succeeded bool `json:"succeeded"`
	Verified  Gate `json:"verified,omitempty"`
	// Interrupt is the kind of decision that a person has to make, "" for none.
	Interrupt string `json:"interrupt,omitempty"`
	// Refusal is what the guard refused of its run, or of one of an attempt before.
	Refusal Refusal `json:"refusal,omitzero"`
}
