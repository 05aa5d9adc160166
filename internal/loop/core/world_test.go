package core

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A world is all that the core does not know: a queue, runs, a disk, a person, other
// loops, two clocks. It is as unkind as its seed says, and looks at every step for
// what must never be.
type world struct {
	rng   *rand.Rand
	seed  uint64
	s     State
	saved *State // what is on disk where the disk is full; nil: what is in memory is
	t     time.Duration
	base  time.Duration // t of the loop's clock's zero
	skew  time.Duration // of the wall's clock
	up    bool
	gone  time.Duration // when the loop comes up again
	items []witem
	runs  []wrun
	due   []dueEvent
	out   []Action
	renew time.Duration

	faulty   bool // this is still a time for faults
	full     bool // the disk
	fullTill time.Duration
	steps    int
	personAt time.Duration
	overrun  bool          // clients of this night may cost more than they may
	heldTill time.Duration // until then a person has to look at the repository
	helds    int           // times that the loop found that, and waited or ended
	stuck    time.Duration // until then the queue's files cannot be changed
	limits   Limits        // that people have given the loop, which it must have whatever dies
	paused   bool          // by a person
	stopping time.Duration // when it began to stop; 0: it does not
	launches int
	lefts    int    // times that it could not end
	gones    int    // questions that ended with their items
	why      string // what must never be, and was
	trace    []string
	tracing  bool
}

type witem struct {
	state    string // ready, claimed, done, dead, blocked
	fence    int64
	ours     bool
	lease    time.Time
	readyAt  time.Time
	attempts int
	dones    int
	answer   string // that a person has given, and that its next run must be told
	last     int64  // fencing number settled last, and how
	lastDead bool
	rival    time.Duration // when the rival is done with it
	ended    bool          // a person has ended it beside the loop
}

type wrun struct {
	item    int
	fence   int64
	live    bool
	watched bool
	ends    time.Duration // 0: never by itself
	talks   time.Duration // next word; 0: silent
	cost    float64
	may     float64
	out     Outcome
	stopped bool
	deaf    bool // does not hear the first request to stop
	asks    bool
}

type dueEvent struct {
	at time.Duration
	e  Event
}

var epoch = time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)

func (w *world) wall() time.Time { return epoch.Add(w.t + w.skew) }
func (w *world) clock() Time     { return Time{Loop: w.t - w.base, Wall: w.wall()} }

func (w *world) fail(format string, args ...any) {
	if w.why == "" {
		w.why = fmt.Sprintf(format, args...)
	}
}

func (w *world) chance(p float64) bool              { return w.faulty && w.rng.Float64() < p }
func (w *world) some(d time.Duration) time.Duration { return time.Duration(w.rng.Int64N(int64(d) + 1)) }
func (w *world) pick(n int) int                     { return w.rng.IntN(n) }

// later is an answer, which may come twice.
func (w *world) later(d time.Duration, e Event) {
	w.due = append(w.due, dueEvent{w.t + d, e})
	if _, claims := e.(Claimed); !claims && w.chance(0.02) {
		w.due = append(w.due, dueEvent{w.t + d + w.some(10*time.Minute), e})
	}
}

func (w *world) ourClaims() (list []Claim) {
	for i := range w.items {
		if it := &w.items[i]; it.state == "claimed" && it.ours {
			list = append(list, Claim{Item: Item{ID: itemName(i)}, Fence: it.fence})
		}
	}
	return list
}

var itemNames = [...]string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}

func itemName(i int) string { return itemNames[i] }
func itemIndex(id string) int {
	return int(id[0] - 'a')
}

// newWorld is a night by a seed.
func newWorld(w *world, seed uint64) {
	*w = world{rng: rand.New(rand.NewPCG(seed, 0x5eed)), seed: seed, up: true, faulty: true,
		items: w.items[:0], runs: w.runs[:0], due: w.due[:0], out: w.out[:0]}
	l := DefaultLimits()
	l.Workers = 1 + w.pick(3)
	l.UntilEmpty = w.pick(4) > 0
	if w.pick(2) == 0 {
		l.OnInterrupt = Skip
	}
	l.MaxIterations = 4 + w.pick(40)
	l.MaxUSD = []float64{3, 12, 50, 200}[w.pick(4)]
	l.MaxTokens = []int64{5_000, 100_000, 50_000_000}[w.pick(3)]
	l.MaxTime = []time.Duration{time.Hour, 3 * time.Hour, 8 * time.Hour}[w.pick(3)]
	l.ItemTimeout = []time.Duration{10 * time.Minute, time.Hour}[w.pick(2)]
	w.overrun = w.pick(8) == 0
	w.s, w.limits = New("loop-1", l, w.clock()), l
	for range 1 + w.pick(4) {
		w.items = append(w.items, witem{state: "ready", readyAt: w.wall()})
	}
	w.personAt = w.some(6 * time.Hour)
}

// night lives a night through, and says what went wrong in it.
func (w *world) night() string {
	w.event(Started{})
	for w.why == "" && w.s.Phase != Finished {
		if w.steps++; w.steps > 3000 {
			w.fail("the night does not end: it is %s (%s) at %s with %d busy, items %+v", w.s.Phase, w.s.Reason, w.t, w.s.Busy(), w.items)
			break
		}
		if w.steps == 60 {
			w.faulty = false
		}
		w.next()
	}
	if w.why == "" {
		w.morning()
	}
	return w.why
}

// next lets the next thing happen.
func (w *world) next() {
	if !w.up {
		w.restart()
		return
	}
	if w.chance(0.02) {
		w.misfortune()
		if !w.up {
			return
		}
	}
	at, what := w.soonest()
	w.advance(at)
	switch {
	case what >= 0:
		e := w.due[what].e
		w.due[what] = w.due[len(w.due)-1]
		w.due = w.due[:len(w.due)-1]
		w.event(e)
	case what == runHappens:
		w.runHappens()
	case what == personActs:
		w.person()
	default:
		w.event(Tick{})
	}
	w.rivals()
	w.renewLeases()
	w.mended()
}

// mended is what a driver does beside everything else: it tells that a person has seen to what
// the loop waits for.
func (w *world) mended() {
	if s := &w.s; w.up && s.Phase == Waiting && s.Interrupt.Kind == ByRepo && w.t >= w.heldTill && !w.full {
		w.event(Cleared{Kind: ByRepo})
		if i := w.s.Interrupt; i != nil && i.Kind == ByRepo {
			w.fail("a person has looked at the repository, and the loop waits for that: %+v", i)
		}
	}
}

const (
	ticks      = -1
	runHappens = -2
	personActs = -3
)

func (w *world) soonest() (at time.Duration, what int) {
	at, what = w.personAt, personActs
	if wake, ok := w.s.Wake(); ok && wake+w.base < at {
		at, what = wake+w.base, ticks
	}
	for i := range w.due {
		if w.due[i].at < at {
			at, what = w.due[i].at, i
		}
	}
	for i := range w.runs {
		if r := &w.runs[i]; r.live && r.watched {
			if r.ends > 0 && r.ends < at || r.talks > 0 && r.talks < at {
				at, what = min(nonZero(r.ends), nonZero(r.talks)), runHappens
			}
		}
	}
	return max(at, w.t), what
}

func nonZero(d time.Duration) time.Duration {
	if d == 0 {
		return 1 << 62
	}
	return d
}

// advance lets time pass. Runs that nobody watches end, too.
func (w *world) advance(to time.Duration) {
	w.t = max(w.t, to)
	if w.full && w.t >= w.fullTill {
		w.full = false
	}
	for i := range w.runs {
		if r := &w.runs[i]; r.live && !r.watched && r.ends > 0 && r.ends <= w.t {
			r.live = false
		}
	}
}

// event gives the core an event and looks at what it makes of it.
func (w *world) event(e Event) {
	before := stepsOf(&w.s)
	phase, worked := w.s.Phase, w.s.Worked
	limit := State{HoldUntil: w.s.HoldUntil, HoldWall: w.s.HoldWall}
	if w.full && w.saved == nil {
		c := w.s.Clone()
		w.saved = &c
	}
	w.out = w.out[:0]
	var whole *State
	if w.seed%16 == 0 { // it takes its time
		c := w.s.Clone()
		whole = &c
	}
	gone, isGone := e.(Gone)
	asked := w.s.Items[gone.Item]
	w.s.Advance(w.clock(), e, &w.out)
	if isGone && phase != Finished {
		w.wasGone(gone, asked)
	}
	if whole != nil {
		if why := unsaved(whole, &w.s); why != "" {
			w.fail("%T changes %s, and nothing says that the state must be written", e, why)
		}
	}
	if w.tracing {
		w.trace = append(w.trace, fmt.Sprintf("%s %T%+v → %s %v %v", w.t, e, e, w.s.Phase, stepsOf(&w.s), ops(w.out)))
	}
	if phase != Finished {
		w.wishes(e)
		w.holds(e, phase, &limit)
	}
	w.check(before, phase, worked)
	w.checkOut(e)
	if w.full {
		if w.chance(0.3) {
			w.crash() // before it could be saved: nothing of it has happened
			return
		}
		w.advance(w.fullTill) // nothing is done before it is saved
	}
	w.saved = nil
	for i := range w.out {
		if w.chance(0.01) {
			w.crash()
			return
		}
		w.do(w.out[i])
	}
}

func ops(list []Action) (out []string) {
	for _, a := range list {
		out = append(out, fmt.Sprintf("%s/%d", a.Op, a.Slot))
	}
	return out
}

func stepsOf(s *State) (steps [4]Step) {
	for i := range s.Slots {
		steps[i] = s.Slots[i].Step
	}
	return steps
}

func (w *world) crash() {
	w.up = false
	w.stopping = 0
	if w.saved != nil {
		w.s, w.saved = *w.saved, nil
		w.limits = w.s.Limits // what was said then has not been heard
		w.paused = w.s.Paused || w.s.Phase == Paused
	}
	if w.pick(20) == 0 {
		w.reread()
	}
	w.due = w.due[:0]
	for i := range w.runs {
		w.runs[i].watched = false
	}
	w.gone = w.t + w.some([]time.Duration{time.Second, 2 * time.Minute, time.Hour}[w.pick(3)])
}

// reread is what a new process does: it has nothing but what is written.
func (w *world) reread() {
	data, err := json.Marshal(w.s)
	if err != nil {
		w.fail("the state cannot be written: %v", err)
		return
	}
	w.s = State{}
	if err := json.Unmarshal(data, &w.s); err != nil {
		w.fail("the state cannot be read: %v", err)
	}
	again, _ := json.Marshal(w.s)
	if string(again) != string(data) {
		w.fail("the state is another after it was written and read:\n%s\n%s", data, again)
	}
}

func (w *world) restart() {
	w.advance(w.gone)
	w.rivals()
	w.up = true
	w.base = w.t - w.s.Now.Loop
	e := Started{Claims: w.ourClaims()}
	if w.faulty && w.pick(4) == 0 { // by flags
		l := w.s.Limits
		l.Workers = 1 + w.pick(3)
		l.MaxUSD, l.MaxIterations = l.MaxUSD+float64(w.pick(20)), l.MaxIterations+w.pick(5)
		e.Limits, w.limits = &l, l
	}
	if w.event(e); w.up {
		w.seenTo()
	}
	if s := &w.s; !w.up {
		return
	} else if s.Phase == Stopping && s.Worked < s.Limits.MaxTime || s.Phase == Draining && !slices.Contains([]string{"it has begun as many attempts as it may", "budget: the money is used up"}, s.Reason) && !s.AtCeiling() {
		w.fail("it was begun anew, and only ends: it is %s (%s)", s.Phase, s.Reason)
	}
}

// wishes looks whether the loop is bounded by what people have said, and stops where they
// want it: in time, or it says that it cannot.
func (w *world) wishes(e Event) {
	if r, ok := e.(Resumed); ok && r.More != nil {
		l, m := &w.limits, r.More
		l.MaxUSD, l.MaxTokens, l.MaxIterations = l.MaxUSD+m.USD, l.MaxTokens+m.Tokens, l.MaxIterations+m.Iterations
	}
	if w.s.Limits != w.limits {
		w.fail("%T: its limits are %+v, and people have said %+v", e, w.s.Limits, w.limits)
	}
	switch {
	case w.s.Phase != Stopping:
		w.stopping = 0
	case w.stopping == 0:
		w.stopping = w.t
	case w.t > w.stopping+20*time.Minute:
		w.fail("it has been stopping for %s: %v", w.t-w.stopping, stepsOf(&w.s))
	}
}

// holds looks whether a person's pause lasts until the person ends it, and a rate limit until
// the time that the service has named, by one of the clocks, or until a person ends that.
func (w *world) holds(e Event, before Phase, limit *State) {
	r, resumed := e.(Resumed)
	bare := resumed && r.Answer == "" && len(r.Items) == 0
	if _, ok := e.(PauseAsked); ok && (before == Working || before == Waiting) {
		w.paused = true
	}
	switch w.s.Phase {
	case Working, Paused:
		if bare {
			w.paused = false
		}
		if w.paused != (w.s.Phase == Paused) {
			w.fail("after %T it is %s, and that a person has paused it is %v", e, w.s.Phase, w.paused)
		}
	case Waiting:
		if bare { // it may have gone on, and at once have come to wait for something else
			w.paused = w.s.Paused
		}
		if w.paused != w.s.Paused {
			w.fail("after %T it waits, and that a person has paused it is %v, not %v", e, w.s.Paused, w.paused)
		}
	case Draining, Stopping, Finished:
		w.paused = false
	}
	limit.Now = w.s.Now
	if ended := bare && before == Working && r.More == nil && !r.NoAnswer; limit.Limited() && !ended && (!w.s.Limited() || w.s.HoldUntil < limit.HoldUntil) {
		w.fail("%T: a rate limit until %s holds until %s (%v)", e, limit.HoldUntil, w.s.HoldUntil, w.s.HoldWall)
	}
}

func (w *world) misfortune() {
	switch w.pick(8) {
	case 7:
		w.heldTill = w.t + w.some(3*time.Hour)
	case 5:
		w.stuck = w.t + w.some(3*time.Hour)
	case 6: // a person who stops it does not wait for its end, and begins it anew
		if w.event(StopAsked{Why: "enough", Drain: w.pick(2) == 0}); w.up && w.pick(3) > 0 {
			w.crash()
		}
	case 0:
		w.crash() // an event that was about to come is never heard of
	case 1:
		w.full, w.fullTill = true, w.t+w.some(5*time.Minute)
	case 2:
		w.skew += time.Duration(w.rng.Int64N(int64(4*time.Hour))) - 2*time.Hour
	case 3: // asleep: both the runs and the loop's own clock stand still
		d := w.some(3 * time.Hour)
		w.skew += d
	case 4: // two leases are given away behind our back
		for i := range w.items {
			if it := &w.items[i]; it.state == "claimed" && it.ours && w.pick(2) == 0 {
				it.lease = w.wall().Add(-time.Second)
			}
		}
	}
}

// rivals are other loops, which take what is ready now and then.
func (w *world) rivals() {
	for i := range w.items {
		it := &w.items[i]
		if it.state == "claimed" && it.lease.Before(w.wall()) {
			it.state, it.ours = "ready", false
		}
		if it.state == "claimed" && !it.ours && it.rival <= w.t {
			switch w.pick(3) {
			case 0:
				it.state, it.last = "done", it.fence
				it.dones++
			default:
				it.state = "ready"
			}
		}
		if it.state == "ready" && w.chance(0.03) {
			it.state, it.ours = "claimed", false
			it.fence++
			it.rival = w.t + w.some(20*time.Minute)
			it.lease = w.wall().Add(30 * time.Minute)
		}
	}
}

// renewLeases is what a driver does beside everything else.
func (w *world) renewLeases() {
	if !w.up || w.t < w.renew || w.full {
		return
	}
	w.renew = w.t + 15*time.Second
	for i := range w.s.Slots {
		p := &w.s.Slots[i]
		if p.Claim.Fence == 0 || p.Lost || p.Step == Archiving {
			continue
		}
		it := &w.items[itemIndex(p.Claim.Item.ID)]
		if it.state == "claimed" && it.ours && it.fence == p.Claim.Fence {
			it.lease = w.wall().Add(time.Minute + w.some(time.Hour)) // ticks are far apart here
		} else if it.last != p.Claim.Fence {
			w.later(w.some(time.Second), LeaseLost{Slot: i, Item: p.Claim.Item.ID, Fence: p.Claim.Fence})
		}
	}
}

func (w *world) person() {
	w.personAt = w.t + time.Minute + w.some(2*time.Hour)
	if !w.faulty {
		// The person is awake now and wants the night to end.
		more := More{USD: 50, Tokens: 10_000_000}
		switch w.s.Phase {
		case Waiting, Paused:
			if w.steps > 1500 {
				w.event(StopAsked{Why: "enough"})
				return
			}
			w.event(Resumed{NoAnswer: true, More: &more})
		case Working:
			if !w.s.Limits.UntilEmpty || w.steps > 1500 {
				w.event(StopAsked{Why: "enough", Drain: w.pick(2) == 0})
			}
		}
		return
	}
	switch w.pick(12) {
	case 10, 11:
		w.beside()
	case 9:
		w.event(Resumed{})
	case 8: // ceilings are raised, and the loop dies
		more := More{USD: float64(w.pick(9)), Tokens: 1000, Iterations: w.pick(4)}
		if w.event(Resumed{More: &more}); w.up && w.pick(2) == 0 {
			w.crash()
		}
	case 0:
		w.event(Interrupted{Why: "look at this"})
	case 1:
		w.event(PauseAsked{})
	case 2:
		if w.pick(4) == 0 {
			w.event(StopAsked{Why: "enough", Drain: w.pick(2) == 0})
		}
	case 3:
		if len(w.items) < 8 {
			w.items = append(w.items, witem{state: "ready", readyAt: w.wall()})
			w.event(QueueChanged{})
		}
	case 4, 5:
		w.answer()
	default:
		w.event(Resumed{Answer: "go on"})
	}
}

// answer is a person's word to one of the questions that are open, which names it, so that
// it can be seen where it comes to.
func (w *world) answer() {
	open := w.s.parked()
	if len(open) == 0 {
		return
	}
	id := open[w.pick(len(open))]
	w.event(Resumed{Answer: answerPrefix + id, Items: []string{id}, Number: w.s.Items[id].Number})
	if m := w.s.Items[id]; !m.Parked && m.From != nil && m.From.Answer == answerPrefix+id { // it is kept
		w.items[itemIndex(id)].answer = m.From.Answer
	}
}

const answerPrefix = "answer of "

// beside is a person who sees to an item that is set aside, and not through the loop: which
// finds that out a little later, or the one that is begun after it.
func (w *world) beside() {
	open := w.s.parked()
	if len(open) == 0 {
		return
	}
	id := open[w.pick(len(open))]
	it := &w.items[itemIndex(id)]
	if it.state != "blocked" || slices.Contains(w.s.Unpark, id) {
		return
	}
	what := []string{"dead", "done", "gone", "kept", "ready"}[w.pick(5)]
	if it.state = what; what == "done" {
		it.ours = false
		it.dones++
	}
	it.ended = what != "kept" && what != "ready"
	w.seenTo()
}

// seenTo is what a driver does beside everything else: it tells of what is set aside no more.
func (w *world) seenTo() {
	for _, id := range w.s.parked() {
		it := &w.items[itemIndex(id)]
		if it.state == "blocked" || slices.Contains(w.s.Unpark, id) {
			continue
		}
		w.later(w.some(2*time.Second), Gone{Item: id, Number: w.s.Items[id].Number, Ended: it.ended, What: it.state})
	}
}

// wasGone looks whether a loop has let go of an item that somebody has seen to, and waits
// for no question that is over.
func (w *world) wasGone(e Gone, before Memory) {
	if !before.Parked || before.Number != e.Number || slices.Contains(w.s.Unpark, e.Item) {
		return
	}
	w.gones++
	m, there := w.s.Items[e.Item]
	if m.Parked || there && e.Ended {
		w.fail("%s is seen to (%s), and the loop has it as %+v", e.Item, e.What, m)
	}
	i := w.s.Interrupt
	if i == nil {
		return
	}
	if slices.Contains(i.Items, e.Item) {
		w.fail("%s is seen to, and the loop waits about %v", e.Item, i.Items)
	}
	if !i.Halt && len(i.Items) == 0 && (i.Kind == ByAgent || i.Kind == ByGate || i.Kind == ByContinues) {
		w.fail("%s is seen to, and the loop waits about nothing: %+v", e.Item, i)
	}
}
