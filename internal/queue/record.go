package queue

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Record is an item together with its place, for backends that keep both as one value
// and change that in one step. Its methods are what can become of an item: they decide,
// and change nothing but the record. Who calls them writes the record where it was,
// if nobody else has meanwhile.
type Record struct {
	Item
	// Lease is whose claim it is; nil unless the item is claimed.
	Lease *Lease
	// Arriving is the queue that it is being moved here from; nobody may have it yet. It
	// is empty for all others.
	Arriving string
}

// Lease is a claim as it is kept.
type Lease struct {
	Worker string    `json:"worker,omitempty"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	// Length is how long it was given for last.
	Length time.Duration `json:"length"` // ns
	// Holder is the process that the claim ends with ([HolderName]); empty where it
	// ends with its time alone.
	Holder string `json:"holder,omitempty"`
}

// recordFile is a record as it is written.
type recordFile struct {
	stored
	State    State  `json:"state"`
	Waits    string `json:"waits_for,omitempty"`
	Lease    *Lease `json:"lease,omitempty"`
	Arriving string `json:"arriving,omitempty"`
}

var recordFields = [...]string{"state", "waits_for", "lease", "arriving"}

// Encode is the record as bytes, fields of newer versions included. [ErrInvalid] where it
// has grown too long.
func (r *Record) Encode() ([]byte, error) {
	f := recordFile{stored: stored{Item: r.Item, Edits: r.edits}, State: r.State, Waits: r.Waits, Lease: r.Lease, Arriving: r.Arriving}
	f.V = version
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(f); err != nil {
		return nil, err
	}
	data := b.Bytes()
	if r.raw != nil {
		extra, err := unknown(r.raw)
		if err != nil {
			return nil, err
		}
		for _, name := range recordFields {
			delete(extra, name)
		}
		if len(extra) > 0 {
			if data, err = withExtra(data, extra); err != nil {
				return nil, err
			}
		}
	}
	if len(data) > maxReadBytes {
		return nil, invalid("%s would have %d bytes, more than %d", r.ID, len(data), maxReadBytes)
	}
	return data, nil
}

// DecodeRecord reads what Encode wrote. machine is [Machine] and boot this boot's name,
// for telling whose claims are of this machine. The error is [ErrDamaged].
func DecodeRecord(data []byte, machine, boot string) (Record, error) {
	it, err := decode(data)
	if err != nil {
		return Record{}, err
	}
	var f recordFile
	if err := json.Unmarshal(data, &f); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	r := Record{Item: it, Lease: f.Lease, Arriving: f.Arriving}
	r.moving = nil
	r.State, r.Waits = f.State, f.Waits
	if !slices.Contains(States(), r.State) || (r.State == Claimed) != (r.Lease != nil) {
		return Record{}, fmt.Errorf("%w: it is %q, and has a lease: %v", ErrDamaged, cut(string(r.State), 20), r.Lease != nil)
	}
	r.Show(machine, boot)
	return r, nil
}

// Show fills in what the item tells of its claim.
func (r *Record) Show(machine, boot string) {
	r.Item.Claim = nil
	if r.State != Claimed || r.Lease == nil {
		return
	}
	h := &Holder{Worker: r.Lease.Worker, Fence: r.Fence, Since: r.Lease.Since, Until: r.Lease.Until}
	if m, id, ok := parseHolder(r.Lease.Holder, boot); ok {
		h.PID, h.Here = id.PID, m == machine
	}
	r.Item.Claim = h
}

// IsDone answers whether the item of an id is done.
type IsDone func(id string) (bool, error)

// File puts the record where an item that nobody has and nobody parked belongs: among
// the ready ones, or to wait for the first of its dependencies that is not done.
func (r *Record) File(done IsDone) error {
	for _, d := range r.DependsOn {
		is, err := done(d)
		if err != nil {
			return err
		}
		if !is {
			r.place(Blocked, d)
			return nil
		}
	}
	r.place(Ready, "")
	return nil
}

func (r *Record) place(s State, waits string) {
	r.State, r.Waits = s, waits
	if s != Claimed {
		r.Lease, r.Item.Claim = nil, nil
	}
}

// NewRecord is the record of an item that [Prepare] has gone over.
func NewRecord(it Item, done IsDone) (Record, error) {
	r := Record{Item: it}
	if it.Parked {
		r.place(Blocked, "")
		return r, nil
	}
	err := r.File(done)
	return r, err
}

// Take makes the item somebody's, under the next number.
func (r *Record) Take(now time.Time, length time.Duration, worker, holder string) {
	r.Fence++
	r.State, r.Waits = Claimed, ""
	r.Lease = &Lease{Worker: workerName(worker), Since: moment(now), Until: moment(now.Add(length)), Length: length, Holder: holder}
}

// moment is a time of a lease: whole milliseconds, rounded up so that nothing is early.
func moment(t time.Time) time.Time { return time.UnixMilli(millis(t)).UTC() }

// Hold makes the lease end at the given time from now; 0 is as long as it was given for
// last. holder, where it is not empty, takes over a claim that is bound to a process.
func (r *Record) Hold(now time.Time, length time.Duration, holder string) {
	if length == 0 {
		length = cmp.Or(r.Lease.Length, DefaultLease)
	}
	r.Lease.Length, r.Lease.Until = length, moment(now.Add(length))
	if r.Lease.Holder != "" && holder != "" {
		r.Lease.Holder = holder
	}
}

// Standing is how a word under a token stands to the record: nil where the claim is that
// one, ErrLost where it is over. again is true where it ended in just the way that is said
// now, which then is no error; said is empty for a word that does not end it. stale is true where the record is older than the claim,
// so that it says nothing about it.
func (r *Record) Standing(fence uint64, said Entry) (again, stale bool, err error) {
	switch {
	case r.State == Claimed && r.Fence == fence && r.Arriving == "":
		return false, false, nil
	case r.Fence >= fence && r.settled(said, fence):
		return true, false, nil
	}
	return false, r.Fence < fence, r.lost(r.State, fence, r.Fence, said)
}

// leave ends the claim. The record says then who had it, and how it ended.
func (r *Record) leave(now time.Time, e Entry) {
	l := r.Lease
	r.note(Entry{At: l.Since, Op: OpClaim, By: l.Worker, Fence: r.Fence})
	e.At, e.By, e.Fence = now, l.Worker, r.Fence
	r.note(e)
}

// Finish ends the claim as done.
func (r *Record) Finish(now time.Time, o Outcome) error {
	if err := o.check(); err != nil {
		return err
	}
	r.Result, r.LastError, r.Reason = o.kept(), "", ""
	r.leave(now, Entry{Op: OpDone, Note: o.Summary})
	r.place(Done, "")
	return nil
}

// GiveUp ends the claim as failed: the item is tried again after a while, or is dead.
func (r *Record) GiveUp(now time.Time, f Failure) error {
	if err := f.check(); err != nil {
		return err
	}
	dead := r.failed(now, &f)
	r.leave(now, Entry{Op: OpFail, How: f.how(), Attempt: r.Attempts, Note: f.Error})
	if dead {
		r.place(Dead, "")
	} else {
		r.Progress = nil
		r.place(Ready, "")
	}
	return nil
}

// GiveBack ends the claim as if it had not been.
func (r *Record) GiveBack(now time.Time, reason string) {
	r.leave(now, Entry{Op: OpRelease, Note: reason})
	r.Progress = nil
	r.place(Ready, "")
}

// Lose ends the claim of a worker that vanished.
func (r *Record) Lose(now time.Time, why string) {
	r.Lost++
	r.leave(now, Entry{Op: OpLose, Note: why})
	if r.Lost >= MaxLost {
		r.Reason = fmt.Sprintf("its worker vanished %d times", r.Lost)
		r.place(Dead, "")
		return
	}
	r.Progress = nil
	r.place(Ready, "")
}

// Note keeps how far the work is. The error is ErrInvalid.
func (r *Record) Note(now time.Time, p Progress) error {
	if err := p.check(); err != nil {
		return err
	}
	p.CurrentStep, p.Updated = cut(p.CurrentStep, maxTitle), stamp(now)
	r.Progress = &p
	return nil
}

// Aside parks the item: by its holder, where it is claimed, else by a person.
func (r *Record) Aside(now time.Time, actor, reason string) error {
	switch r.State {
	case Claimed:
		r.leave(now, Entry{Op: OpPark, Note: reason})
	case Ready, Blocked:
		r.note(Entry{At: now, Op: OpPark, By: actor, Note: reason})
	default:
		return WrongState(&r.Item, "parked")
	}
	if reason != "" || !r.IsParked() { // else why it is parked stays
		r.Reason = cut(reason, maxNote)
	}
	r.place(Blocked, "")
	return nil
}

// IsParked reports whether a person's word keeps the item from being claimed.
func (r *Record) IsParked() bool { return r.State == Blocked && r.Waits == "" }

// Back puts a parked item back where it belongs.
func (r *Record) Back(now time.Time, actor, reason string, done IsDone) error {
	if !r.IsParked() {
		return WrongState(&r.Item, "unparked: nobody parked it")
	}
	r.Reason = ""
	r.note(Entry{At: now, Op: OpUnpark, By: actor, Note: reason})
	return r.File(done)
}

// Again gives a dead item its attempts again.
func (r *Record) Again(now time.Time, actor, reason string, done IsDone) error {
	if r.State != Dead {
		return WrongState(&r.Item, "retried: only a dead one can")
	}
	r.retried()
	r.note(Entry{At: now, Op: OpRetry, By: actor, Note: reason})
	r.edits++
	return r.File(done)
}

// End ends an item that nobody is at.
func (r *Record) End(now time.Time, actor, reason string) error {
	if r.State == Claimed || r.State == Done {
		return WrongState(&r.Item, "dropped")
	}
	r.Reason = cut(cmp.Or(reason, "dropped"), maxNote)
	r.note(Entry{At: now, Op: OpDrop, By: actor, Note: reason})
	r.edits++
	r.place(Dead, "")
	return nil
}

// Alter changes the item as a person asks. lookup finds items by id or key.
func (r *Record) Alter(now time.Time, actor string, e *Edit, lookup Lookup, done IsDone) error {
	if r.State == Claimed || r.State == Done {
		return WrongState(&r.Item, "edited")
	}
	if err := applyEdit(&r.Item, e, lookup); err != nil {
		return err
	}
	r.edits++
	r.note(Entry{At: now, Op: OpEdit, By: actor, Note: e.Note})
	if r.State == Dead || r.IsParked() {
		return nil
	}
	return r.File(done)
}

// Stamp writes down when the record was changed.
func (r *Record) Stamp(now time.Time) { r.Updated = stamp(now) }

// wire are the parts of an item that may be long.
type wire struct {
	Body    string          `json:"body,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
	Outcome json.RawMessage `json:"outcome,omitempty"`
}

// Detach takes out what may be long, for backends whose values have a bound; Attach puts
// it back. What is left is a record, too.
func (r *Record) Detach() ([]byte, error) {
	w := wire{Body: r.Body, Data: r.Data}
	r.Body, r.Data = "", nil
	if r.Result != nil && len(r.Result.Data) > 0 {
		w.Outcome = r.Result.Data
		short := *r.Result
		short.Data = nil
		r.Result = &short
	}
	return json.Marshal(w)
}

// Attach puts back what Detach took.
func (r *Record) Attach(data []byte) error {
	var w wire
	if err := json.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("%w: what was kept apart of %s: %w", ErrDamaged, r.ID, err)
	}
	r.Body, r.Data = w.Body, w.Data
	if len(w.Outcome) > 0 {
		if r.Result == nil {
			r.Result = &Outcome{}
		}
		r.Result.Data = w.Outcome
	}
	return nil
}

// NewToken is the right to speak about an item under a number.
func NewToken(id string, fence uint64) Token {
	return Token(id + "@" + strconv.FormatUint(fence, 10))
}

// ParseToken reads a token. The error is ErrLost: whoever has none has no claim.
func ParseToken(t Token) (id string, fence uint64, err error) {
	id, n, ok := strings.Cut(string(t), "@")
	fence, nerr := strconv.ParseUint(n, 10, 64)
	if !ok || nerr != nil || CheckID(id) != nil {
		return "", 0, fmt.Errorf("%w: %q is no token of this queue", ErrLost, cut(string(t), 100))
	}
	return id, fence, nil
}

// KeyID is the id of an item with a key: the same everywhere, so that two who add it at
// once add one item.
func KeyID(key string) string { return keyID(key) }
