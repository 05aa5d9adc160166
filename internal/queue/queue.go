// Package queue holds work items: what is to be done, in which order, who is
// at it, and what came of it.
//
// [Queue] is what any backend gives; [Files] is the one that keeps items as plain
// files, package jet has the one for many machines, and package queuetest the tests that
// each backend must pass. What can become of an item is decided in one place for backends
// that keep it as one value, [Record].
//
// Files owns one directory, by default <data>/projects/<name>/queue, and in it
// writes ready/, claimed/, done/, dead/ and blocked/ with one JSON file an item,
// the empty file arrivals, and queue.lock. An item's directory is its state. It
// takes the lock queue.lock for every change but one: an item that is ready is
// claimed by a single rename, which needs no lock, since only one rename of a name
// can succeed. Nothing else is locked within it.
package queue

import (
	"context"
	"encoding/json"
	"slices"
	"time"
)

// State is where an item is.
type State string

// The states. Ready items may still have to wait for their time ([Item.NotBefore]).
// Blocked ones wait for other items, or for a person who parked them.
const (
	Ready   State = "ready"
	Claimed State = "claimed"
	Done    State = "done"
	Dead    State = "dead"
	Blocked State = "blocked"
)

// States are all of them, in the order in which people think of them.
func States() []State { return []State{Ready, Claimed, Blocked, Done, Dead} }

// Limits and defaults.
const (
	// DefaultPriority is between the most urgent, 0, and the least, MaxPriority.
	DefaultPriority = 5
	MaxPriority     = 9
	// DefaultMaxAttempts is how often an item may fail before it is dead.
	DefaultMaxAttempts = 3
	// DefaultLease is how long a claim holds without being extended; whoever holds
	// one extends it every DefaultRenew.
	DefaultLease = 60 * time.Second
	DefaultRenew = 15 * time.Second
	// MaxLease bounds what can be asked for.
	MaxLease = 7 * 24 * time.Hour
	// MaxBackoff is the longest wait between two attempts that the queue chooses
	// by itself.
	MaxBackoff = 300 * time.Second
	// MaxLost is how often an item's worker may vanish before the item is dead:
	// it may be the item that kills them.
	MaxLost = 10
	// MaxItemBytes is the longest item that is added, encoded.
	MaxItemBytes = 4 << 20
)

// Backoff is how long an item waits after its n-th failure: 2^n seconds, and
// never more than [MaxBackoff].
func Backoff(n int) time.Duration {
	if n < 0 {
		n = 0
	}
	if n >= 9 { // 2^9 = 512 s
		return MaxBackoff
	}
	return min(time.Duration(1<<n)*time.Second, MaxBackoff)
}

// Item is one thing to do. The fields up to NotBefore are the adder's; the queue
// keeps the others.
type Item struct {
	V int `json:"v"` // 1
	// ID names the item: lower-case letters, digits, ".", "_" and "-", at most 60.
	// Left empty when it is added, it is made from the key, or by chance.
	ID string `json:"id"`
	// Key makes adding idempotent: a second item with the same key is not added. An
	// item that is given an id has none, for the id does the same.
	Key   string `json:"key,omitempty"`
	Title string `json:"title"`
	// Body is what is to be done, as the agent gets it. It may be markdown.
	Body string `json:"body,omitempty"`
	// Priority is from 0, the most urgent, to 9. nil is DefaultPriority.
	Priority *int     `json:"priority,omitempty"`
	Labels   []string `json:"labels,omitempty"`
	// DependsOn are ids of items that must be done before this one is ready. When an
	// item is added they may also be keys.
	DependsOn []string `json:"depends_on,omitempty"`
	// MaxAttempts is how often it may fail before it is dead; 0 is
	// DefaultMaxAttempts.
	MaxAttempts int `json:"max_attempts,omitempty"`
	// Source says where the item is from, such as "github:owner/repo#12".
	Source string `json:"source,omitempty"`
	// Task is the task's phase that the item stands for, such as "012/2".
	Task string `json:"task,omitempty"`
	// Agent is the client that it is meant for; empty leaves that to who claims it.
	Agent string `json:"agent,omitempty"`
	// NoChangeOK: it may be done without anything having changed.
	NoChangeOK bool `json:"no_change_ok,omitempty"`
	// Data is whatever else the adder wants to reach the one who does the work.
	Data json.RawMessage `json:"data,omitempty"`
	// NotBefore is when it becomes ready; the queue sets it after a failure.
	NotBefore time.Time `json:"not_before,omitzero"`
	// Parked, when it is added, lets it wait until a person unparks it.
	Parked bool `json:"-"`

	Created time.Time `json:"created,omitzero"`
	Updated time.Time `json:"updated,omitzero"`
	// Attempts is how often it failed, Lost how often its worker vanished.
	Attempts int `json:"attempts"`
	Lost     int `json:"lost,omitempty"`
	// Fence is the number of the last claim that there was; each claim has a higher
	// one than all before.
	Fence     uint64    `json:"fence"`
	Progress  *Progress `json:"progress,omitempty"`
	LastError string    `json:"last_error,omitempty"`
	// Reason says why it is blocked or dead.
	Reason string   `json:"reason,omitempty"`
	Result *Outcome `json:"result,omitempty"`
	// History has what became of it, oldest first; of very many entries the oldest
	// are left out, and Forgotten counts these.
	History   []Entry `json:"history,omitempty"`
	Forgotten int     `json:"history_forgotten,omitempty"`

	// The following are not part of what is kept of an item: they are its place.

	State State   `json:"-"`
	Claim *Holder `json:"-"`
	// Waits is the item that a blocked one waits for at the moment; empty if it is
	// parked. WaitsForDead: that item is dead, so that nothing comes of the waiting until a
	// person has retried it, or edited this one. WaitsForNone: there is no such item, as after
	// a hand has removed its file. Get and List say so.
	Waits        string `json:"-"`
	WaitsForDead bool   `json:"-"`
	WaitsForNone bool   `json:"-"`

	// edits counts changes by people, so that a file of one name always holds the
	// same.
	edits  uint64
	at     string // where in a list it was read, "" for one that was not; of new ones alone
	moving *moving
	raw    []byte // of its file, for the fields that this version does not know
}

// Urgency is the item's priority as a number.
func (i *Item) Urgency() int {
	if i.Priority == nil {
		return DefaultPriority
	}
	return *i.Priority
}

// Dropped reports whether the item is dead because somebody said that it is not needed,
// so that it waits for nobody.
func (i *Item) Dropped() bool {
	if i.State != Dead {
		return false
	}
	for _, e := range slices.Backward(i.History) {
		if e.Op != OpEdit {
			return e.Op == OpDrop
		}
	}
	return false
}

// Limit is how often the item may fail.
func (i *Item) Limit() int {
	if i.MaxAttempts <= 0 {
		return DefaultMaxAttempts
	}
	return i.MaxAttempts
}

// Progress is how far the work on an item is.
type Progress struct {
	StepsCompleted int       `json:"steps_completed"`
	StepsTotal     int       `json:"steps_total"`
	CurrentStep    string    `json:"current_step,omitempty"`
	Updated        time.Time `json:"updated,omitzero"`
}

// Outcome is what the work on an item came to.
type Outcome struct {
	Summary   string   `json:"summary,omitempty"`
	Run       string   `json:"run,omitempty"`
	Session   string   `json:"session,omitempty"`
	Artifacts []string `json:"artifacts,omitempty"`
	// Data is whatever else is to be kept with it.
	Data json.RawMessage `json:"data,omitempty"`
}

// Failure is why the work on an item did not succeed.
type Failure struct {
	Error string
	// Permanent: trying again is of no use; the item is dead at once.
	Permanent bool
	// RetryAfter replaces the queue's own backoff where it is more than zero.
	RetryAfter time.Duration
	// Free: it was not the item's fault (a limit of the provider, say) and does not
	// count as an attempt.
	Free bool
	// Outcome is kept with the item, as with one that is done.
	Outcome Outcome
}

// Entry is one line of an item's history.
type Entry struct {
	At      time.Time `json:"at"`
	Op      string    `json:"op"` // one of the Op constants
	By      string    `json:"by,omitempty"`
	Fence   uint64    `json:"fence,omitempty"`
	Attempt int       `json:"attempt,omitempty"`
	// How is, of OpFail, HowForGood or HowFree; empty for a failure that counts.
	How  string `json:"how,omitempty"`
	Note string `json:"note,omitempty"`
}

// How an item may have been said to fail, other than in the usual way.
const (
	HowForGood = "for good" // [Failure.Permanent]
	HowFree    = "free"     // [Failure.Free]
)

func (f *Failure) how() string {
	switch {
	case f.Permanent:
		return HowForGood
	case f.Free:
		return HowFree
	}
	return ""
}

// Said is the word under a token by which the claim would end so, for [Record.Standing].
func (f *Failure) Said() Entry { return Entry{Op: OpFail, How: f.how()} }

// What can become of an item.
const (
	OpAdd      = "added"
	OpClaim    = "claimed"
	OpDone     = "done"
	OpFail     = "failed"
	OpRelease  = "released"
	OpLose     = "lost" // its worker vanished, or did not extend its lease
	OpUnblock  = "unblocked"
	OpPark     = "parked"
	OpUnpark   = "unparked"
	OpRetry    = "retried"
	OpEdit     = "edited"
	OpDrop     = "dropped"
	OpProgress = "progress" // told to Options.Record only
	OpRemove   = "removed"  // by retention; told to Options.Record only
)

// Holder is who has a claim, as others see it.
type Holder struct {
	Worker string    `json:"worker,omitempty"`
	Fence  uint64    `json:"fence"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	// PID is the process that the claim ends with, 0 where it ends with its lease
	// alone. Here says that it is one of this machine.
	PID  int  `json:"pid,omitempty"`
	Here bool `json:"here,omitempty"`
}

// Token is the right to speak about an item that was claimed. It is opaque but to
// the backend that gave it, may be kept over a restart, and stops being good when
// the claim is lost.
type Token string

// Claim is an item that the caller now has.
type Claim struct {
	Item  Item
	Token Token
	// Fence is the number in the token. It rises with each claim of the item, so
	// that whatever a worker writes elsewhere can be refused by number, too.
	Fence uint64
	// Until is when the lease ends unless it is extended.
	Until time.Time
}

// ClaimOptions say what is asked for, and by whom.
type ClaimOptions struct {
	// Worker is a name for people.
	Worker string
	// Bound makes the claim end with this process, where the backend can tell that
	// (Options.Process of [Files]). Without it only the lease counts.
	Bound bool
	// Lease is how long it holds; 0 is DefaultLease.
	Lease time.Duration
	// ID asks for one item, Labels for one that has all of these, Agent for one
	// that is meant for that client or for any.
	ID     string
	Labels []string
	Agent  string
	// Fits, where it is set, has the last word about an item that is otherwise one. It is
	// shown its id, labels, agent and task; it must be quick, say the same of the same item,
	// and change nothing.
	Fits func(*Item) bool
	// Arrivals, in a wait, asks to be told also of what came and has to wait for its time,
	// where the backend can tell that at once, and when the last claim of an item that fits
	// has ended, or the last one that was ready has gone: then there may be nothing left to
	// wait for.
	Arrivals bool
	// Begun, where it is set, is called once by a wait, when whatever comes from then on is
	// noticed: who looked before may have to look again, for what came in between.
	Begun func()
}

// Added says what became of an item that was to be added.
type Added struct {
	Item Item
	// New is false where an item with the same key or id was there already; Item is
	// then that one, as it is.
	New bool
}

// Edit is a change of an item by a person. nil leaves a field as it is.
type Edit struct {
	Title       *string
	Body        *string
	Priority    *int
	Labels      *[]string
	DependsOn   *[]string
	NotBefore   *time.Time
	MaxAttempts *int
	Agent       *string
	// Note is kept in the history.
	Note string
}

// Filter says which items a listing has. Empty fields do not narrow it.
type Filter struct {
	States []State
	Labels []string // all of them
	Key    string
	Task   string
}

// Trouble is something in the queue's store that is no item that can be used. It is
// never touched.
type Trouble struct {
	Where string `json:"where"` // as a person finds it
	Why   string `json:"why"`
}

// Listing is what a queue holds: items in the order in which they would be claimed,
// then those that are done or dead, the newest first.
type Listing struct {
	Items   []Item
	Trouble []Trouble
}

// Retention says which settled items may go.
type Retention struct {
	// DoneAfter and DeadAfter are ages since an item was settled; 0 keeps them.
	DoneAfter, DeadAfter time.Duration
	// Keep is how many of each state stay however old they are, the newest.
	Keep   int
	DryRun bool
}

// Change is something that happened to an item, for who records it. Item is as it is
// afterwards.
type Change struct {
	Op       string
	Item     Item
	From, To State // From is empty for an item that is new
	Fence    uint64
	By       string
	Note     string
}

// Queue is a store of work items that any number of processes share. Its methods are
// safe for use by several goroutines. A method that returned nil has made its change
// last; one that failed has changed nothing, or all of it: asking again does no harm.
//
// Order: of the items that are ready and whose time has come, the most urgent is
// claimed first, and of equally urgent ones the oldest. Of workers that try for the same
// item one gets it, and the others may then take one of the next that are as urgent.
//
// An id that is not there is [ErrNotFound]; what the item's state does not allow is
// [ErrState]; a token whose claim is over is [ErrLost], and where the item has vanished
// both this and ErrNotFound ([Over] knows them all); a store that is full, fails or does
// not answer is [ErrAway] ([ForNow]).
type Queue interface {
	// Add adds items, in an order in which what is depended on comes first. An item
	// whose key or id is there already is left as it is there. A dependency that is
	// neither in the queue nor among the items is ErrInvalid, a cycle ErrCycle; then
	// nothing is added. If the store fails in the middle, the items before are
	// added, and adding all again by their keys adds the rest.
	Add(ctx context.Context, items ...Item) ([]Added, error)
	// Claim takes the first item that fits. ErrEmpty: there is none now.
	Claim(ctx context.Context, opt ClaimOptions) (Claim, error)
	// Next is the item that Claim would take now.
	Next(ctx context.Context, opt ClaimOptions) (Item, error)
	// Extend makes the lease end at the given time from now; 0 is as long as it was
	// given for last.
	// A lease that ran out can be extended as long as nobody took the item. A bound
	// claim is from then on bound to the caller's process, where the backend knows that.
	Extend(ctx context.Context, token Token, lease time.Duration) (until time.Time, err error)
	// Progress notes how far the work is.
	Progress(ctx context.Context, token Token, p Progress) error
	// Done ends the item, and makes those ready that waited for nothing else. Here
	// and with Fail, Release and Park, saying under one token again how the claim
	// ended is no error, and changes nothing. To say another thing of it is ErrLost, such
	// as that it failed for good after it was said to have failed.
	Done(ctx context.Context, token Token, o Outcome) (Item, error)
	// Fail gives the item back for another attempt after a while, or ends it as dead
	// when there have been enough.
	Fail(ctx context.Context, token Token, f Failure) (Item, error)
	// Release gives the item back as if it had not been claimed.
	Release(ctx context.Context, token Token, reason string) (Item, error)
	// Park keeps an item from being claimed until it is unparked. One that is claimed
	// is parked by its holder's token; token is empty for others. One that is parked already
	// keeps its reason where no other is given.
	Park(ctx context.Context, id string, token Token, reason string) (Item, error)
	Unpark(ctx context.Context, id, reason string) (Item, error)
	// Retry gives a dead item all its attempts again.
	Retry(ctx context.Context, id, reason string) (Item, error)
	// Drop ends an item that is ready or blocked as dead, and says of a dead one that it
	// is not needed ([Item.Dropped]).
	Drop(ctx context.Context, id, reason string) (Item, error)
	// Edit changes an item that is ready, blocked or dead. What would be a cycle is
	// ErrCycle.
	Edit(ctx context.Context, id string, e Edit) (Item, error)
	// Get is an item by its id or key.
	Get(ctx context.Context, id string) (Item, error)
	List(ctx context.Context, f Filter) (Listing, error)
	// Reclaim gives back what is held by workers that vanished, and finishes what a
	// crash left half done. Claim and Wait do it now and then; whoever starts a loop
	// calls it first. It returns what it gave back.
	Reclaim(ctx context.Context) ([]Item, error)
	// Wait returns nil when something may have become ready: added, unblocked, given
	// back, its time come or its lease run out. It returns early rather than late;
	// the caller claims, and waits again. It costs no work while nothing happens.
	Wait(ctx context.Context, opt ClaimOptions) error
	// GC removes settled items that are older than asked, and returns them. One that
	// an unsettled item depends on stays.
	GC(ctx context.Context, r Retention) ([]Item, error)
	// Count is how many items are in each state, at a price that does not depend on how
	// long they are. What cannot be read is left out; Check tells of it.
	Count(ctx context.Context) (map[State]int, error)
	// Check looks at all that the store holds, which nothing else does. With mend it puts
	// right what can be put right without losing anything; what is foreign or damaged is
	// named and left alone.
	Check(ctx context.Context, mend bool) (Report, error)
	// TakeOut removes an item that is damaged, by its id, once keep has kept what it holds.
	// Of one that can be read the error is ErrState; of one of which not even the bytes can
	// be, ErrDamaged.
	TakeOut(ctx context.Context, id string, keep func(data []byte) error) error
	Close() error
}
