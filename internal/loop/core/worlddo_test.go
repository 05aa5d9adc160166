package core

import (
	"math"
	"strings"
	"time"
)

// do does what the core asks for, and answers after a while.
func (w *world) do(a Action) {
	wait := w.some(3 * time.Second)
	switch a.Op {
	case OpClaim, OpPrepare, OpLaunch, OpVerify, OpSettle, OpArchive:
		if w.full || w.t < w.stuck && a.Op != OpLaunch || w.chance(0.02) {
			w.later(wait, Broken{Slot: a.Slot, Seq: a.Seq, Err: "no space"})
			return
		}
	}
	switch a.Op {
	case OpClaim:
		w.later(wait, w.claim(a))
	case OpPrepare:
		e := Prepared{Slot: a.Slot, Seq: a.Seq}
		if w.chance(0.02) {
			e.Err = "no workspace"
		} else if w.t < w.heldTill {
			e.Held = "a setting has git run a program"
			w.helds++
		} else if w.chance(0.02) {
			e.Later, e.InUse = "what it builds on is being merged, or somebody works in its place", w.chance(0.5)
		}
		w.later(wait, e)
	case OpLaunch:
		w.launch(a, wait)
	case OpWatch:
		w.watch(a)
	case OpStop:
		w.stop(a)
	case OpVerify:
		e := Verified{Slot: a.Slot, Seq: a.Seq, Gate: GatePassed}
		if w.chance(0.2) {
			e.Gate, e.Text = GateFailed, "tests fail"
		}
		w.later(w.some(time.Minute), e)
	case OpSettle:
		w.later(wait, w.settle(a))
	case OpArchive:
		w.later(wait, Archived{Slot: a.Slot, Seq: a.Seq})
	case OpLeave:
		if w.s.Phase != Stopping {
			w.fail("a loop that is %s is left as it is", w.s.Phase)
		}
		w.lefts++
		w.crash()
	case OpRelease:
		if it := w.held(a.Claim); it != nil {
			it.state, it.last = "ready", a.Claim.Fence
		}
	case OpUnpark:
		if w.full || w.t < w.stuck {
			w.later(wait, Broken{Slot: -1, Err: "no space"})
			return
		}
		if it := &w.items[itemIndex(a.Item)]; it.state == "blocked" {
			it.state = "ready"
		}
		w.later(wait, Unparked{Item: a.Item})
	}
}

func (w *world) held(c Claim) *witem {
	it := &w.items[itemIndex(c.Item.ID)]
	if it.state == "claimed" && it.ours && it.fence == c.Fence {
		return it
	}
	return nil
}

func (w *world) claim(a Action) Claimed {
	e := Claimed{Slot: a.Slot, Seq: a.Seq, Empty: true}
	if !w.s.holdOver() {
		w.fail("something is claimed before the hold is over (%s)", w.s.HoldWhy)
	}
	first := w.pick(len(w.items))
	for n := range w.items {
		i := (n + first) % len(w.items)
		it := &w.items[i]
		switch {
		case it.state == "ready" && !it.readyAt.After(w.wall()):
			it.state, it.ours = "claimed", true
			it.fence++
			it.attempts++
			it.lease = w.wall().Add(time.Minute + w.some(time.Hour))
			e.Claim = &Claim{Item: Item{ID: itemName(i)}, Fence: it.fence}
			return e
		case it.state == "ready":
			e.Empty, e.NextIn = false, max(it.readyAt.Sub(w.wall()), time.Second)
		case it.state == "claimed":
			e.Empty = false
		}
	}
	return e
}

// launch starts a run, or says which run it was that was started for this claim.
func (w *world) launch(a Action, wait time.Duration) {
	i := itemIndex(a.Claim.Item.ID)
	for n := range w.runs {
		if r := &w.runs[n]; r.item == i && r.fence == a.Claim.Fence {
			w.later(wait, Launched{Slot: a.Slot, Seq: a.Seq, Run: runName(n)})
			return
		}
	}
	if f := a.From; f != nil && strings.HasPrefix(f.Answer, answerPrefix) && f.Answer != answerPrefix+a.Claim.Item.ID {
		w.fail("the run of %s is told what was answered to another: %s", a.Claim.Item.ID, f.Answer)
	}
	w.mayLaunch(a)
	if w.chance(0.05) {
		w.later(wait, Launched{Slot: a.Slot, Seq: a.Seq, Class: []Class{SpawnFailed, BadBootstrap, AuthFailed}[w.pick(3)], Err: "no client"})
		return
	}
	if want := w.items[i].answer; want != "" {
		if a.From == nil || !strings.Contains(a.From.Answer, want) {
			w.fail("a run of %s is not told what a person has answered: %+v", a.Claim.Item.ID, a.From)
		}
		w.items[i].answer = ""
	}
	r := wrun{item: i, fence: a.Claim.Fence, live: true, may: a.USD}
	w.destiny(&r, a)
	w.runs = append(w.runs, r)
	if len(w.runs) > 500 {
		w.fail("more than 500 runs in a night")
	}
	w.launches++
	w.later(wait, Launched{Slot: a.Slot, Seq: a.Seq, Run: runName(len(w.runs) - 1)})
}

// destiny is what a run will come to.
func (w *world) destiny(r *wrun, a Action) {
	o := Outcome{Session: "s", Resumable: w.pick(2) == 0, Turns: 1 + w.pick(5), Tokens: w.rng.Int64N(3000)}
	dur := time.Second + w.some(20*time.Minute)
	r.cost = w.rng.Float64() * a.USD
	r.talks = w.t + time.Second + w.some(time.Minute)
	switch {
	case w.chance(0.06):
		o.Class, r.ends, r.talks = Stalled, 0, 0 // it says nothing any more and does not end
	case w.chance(0.3):
		o.Class = []Class{APIError, RateLimited, AuthFailed, ContextFull, TurnsUsed, BudgetUsed, Refused, Cancelled, Crashed, TimedOut, PlaceAway, SessionGone}[w.pick(12)]
		o.Reason, o.Signature = string(o.Class), "sig"
		if o.Class == RateLimited && w.pick(2) == 0 {
			o.Reset = w.wall().Add(time.Duration(w.rng.Int64N(int64(6*time.Hour))) - time.Hour)
		}
		if w.overrun {
			r.cost *= 1.3
		}
	case w.chance(0.1):
		o.Completed, o.OK = true, true // but nothing has changed
	case w.chance(0.05):
		o.Completed, o.OK, o.Turns = true, true, 0
	case w.chance(0.05): // killed after it had said that all is well
		o.OK, o.Changed = true, true
	default:
		o.Completed, o.OK, o.Changed = true, true, true
	}
	r.asks = w.chance(0.06)
	r.deaf = w.chance(0.2)
	if o.Class == Stalled {
		o = Outcome{Turns: 1}
	} else {
		r.ends = w.t + dur
		if dur > a.Time {
			r.ends = w.t + a.Time
			o.Completed, o.OK, o.Class = false, false, TimedOut
		}
	}
	o.Cost = r.cost
	r.out = o
}

func runName(n int) string { return string(rune('A'+n/26)) + string(rune('a'+n%26)) }

func runIndex(name string) int {
	if len(name) != 2 {
		return -1
	}
	return int(name[0]-'A')*26 + int(name[1]-'a')
}

func (w *world) watch(a Action) {
	n := runIndex(a.Run)
	if n < 0 || n >= len(w.runs) {
		w.fail("run %q is watched, and there is no such run", a.Run)
		return
	}
	r := &w.runs[n]
	r.watched = true
	if !r.live {
		w.exit(n, a.Slot)
	}
}

// exit says how a run ended, to whoever watches it.
func (w *world) exit(n, slot int) {
	r := &w.runs[n]
	r.live = false
	if slot >= 0 && (w.t < w.stuck || w.chance(0.02)) { // what it has changed cannot be seen
		r.watched = false
		w.later(w.some(time.Second), Broken{Slot: slot, Seq: w.s.Slots[slot].Seq, Err: "the directory is away", Most: 2 * time.Minute})
		return
	}
	o := r.out
	o.Run = runName(n)
	if r.stopped && !o.Completed {
		o.OK, o.Class = false, Crashed
	}
	w.later(w.some(time.Second), Exited{Slot: slot, Run: o.Run, Outcome: o})
}

func (w *world) stop(a Action) {
	n := runIndex(a.Run)
	if a.Run == "" { // whatever was launched for the claim
		for i := range w.runs {
			if w.runs[i].item == itemIndex(a.Claim.Item.ID) && w.runs[i].fence == a.Claim.Fence {
				n = i
			}
		}
		if n < 0 {
			w.later(w.some(time.Second), Exited{Slot: a.Slot})
			return
		}
	}
	r := &w.runs[n]
	if !r.live {
		if a.Run == "" {
			w.later(w.some(time.Second), Exited{Slot: a.Slot, Outcome: Outcome{Run: runName(n), Cost: r.cost}})
		}
		return // whoever watches it hears of it
	}
	if r.deaf {
		r.deaf = false
		return
	}
	r.stopped = true
	if w.pick(10) > 0 {
		r.out.Completed, r.out.OK = false, false
	}
	r.ends = w.t + w.some(40*time.Second)
	if a.Run == "" {
		r.live = false
		w.later(w.some(40*time.Second), Exited{Slot: a.Slot, Outcome: Outcome{Run: runName(n), Cost: r.cost}})
	}
}

// runHappens lets the run happen whose time has come.
func (w *world) runHappens() {
	for n := range w.runs {
		r := &w.runs[n]
		if !r.live || !r.watched {
			continue
		}
		slot := w.slotOf(n)
		switch {
		case r.ends > 0 && r.ends <= w.t:
			w.exit(n, slot)
			return
		case r.talks > 0 && r.talks <= w.t:
			r.talks = w.t + time.Second + w.some(9*time.Minute)
			name := runName(n)
			if r.asks && w.pick(3) == 0 {
				w.event(AgentAsks{Slot: slot, Run: name, Why: "which of the two?"})
				return
			}
			w.event(Progress{Slot: slot, Run: name, Cost: r.cost * w.rng.Float64(), Tokens: w.rng.Int64N(r.out.Tokens + 1)})
			return
		}
	}
}

func (w *world) slotOf(n int) int {
	for i := range w.s.Slots {
		if w.s.Slots[i].Run == runName(n) {
			return i
		}
	}
	return -1
}

// settle is the queue's: by number, and twice the same.
func (w *world) settle(a Action) Settled {
	e := Settled{Slot: a.Slot, Seq: a.Seq}
	it := &w.items[itemIndex(a.Claim.Item.ID)]
	if it.last == a.Claim.Fence && it.ours {
		e.GaveUp = it.lastDead
		return e
	}
	if it = w.held(a.Claim); it == nil {
		e.Lost = true
		return e
	}
	it.last, it.lastDead = a.Claim.Fence, false
	switch a.How.Fate {
	case Done:
		it.state = "done"
		it.dones++
		w.worthDone(a)
	case Retry:
		it.state = "ready"
		it.readyAt = w.wall().Add(w.some(time.Minute))
		if it.attempts >= 4 {
			it.state, it.lastDead, e.GaveUp = "dead", true, true
		}
	case GiveUp:
		it.state = "dead"
	case Release:
		it.state = "ready"
		it.readyAt = w.wall().Add(a.How.Delay)
	case Park:
		it.state = "blocked"
	default:
		w.fail("the queue is told that %s becomes %q", a.Claim.Item.ID, a.How.Fate)
	}
	return e
}

// mayLaunch looks whether a run may be started at all.
func (w *world) mayLaunch(a Action) {
	s := &w.s
	for n := range w.runs {
		if r := &w.runs[n]; r.live && r.item == itemIndex(a.Claim.Item.ID) && w.slotOf(n) >= 0 {
			w.fail("a second run of item %s is launched while run %s of it lives", a.Claim.Item.ID, runName(n))
		}
	}
	if s.Iterations > s.Limits.MaxIterations {
		w.fail("iteration %d of at most %d", s.Iterations, s.Limits.MaxIterations)
	}
	if c := s.committed(); c > s.Limits.MaxUSD+cent && !w.overrun {
		w.fail("%.2f USD are spent or set aside, of at most %.2f", c, s.Limits.MaxUSD)
	}
	if s.CostUSD >= s.Limits.MaxUSD {
		w.fail("a run is launched with %.2f USD spent, of at most %.2f", s.CostUSD, s.Limits.MaxUSD)
	}
	if s.tokens() >= s.Limits.MaxTokens {
		w.fail("a run is launched with %d tokens used, of at most %d", s.tokens(), s.Limits.MaxTokens)
	}
	if a.USD <= 0 || math.IsNaN(a.USD) || a.Time <= 0 || a.Time > s.Limits.ItemTimeout {
		w.fail("a run may cost %v USD and take %v", a.USD, a.Time)
	}
	if !s.mayBegin() {
		w.fail("a run is launched while the loop is %s (%s)", s.Phase, s.Reason)
	}
	if s.Slots[a.Slot].Lost {
		w.fail("a run is launched for a claim that was lost")
	}
}

// worthDone looks whether what is called done was shown to be.
func (w *world) worthDone(a Action) {
	p := &w.s.Slots[a.Slot]
	if o := p.Outcome; o == nil || !o.Completed || !o.OK || o.Turns == 0 || !o.Changed || p.Verified != GatePassed || o.Asks != "" {
		w.fail("item %s is called done, with %+v and gate %q", a.Claim.Item.ID, p.Outcome, p.Verified)
	}
	if h := a.How; !h.Completed || !h.Succeeded || h.Verified != GatePassed {
		w.fail("item %s is done, but its three fields are %v, %v and %q", a.Claim.Item.ID, h.Completed, h.Succeeded, h.Verified)
	}
}

// checkOut looks at what is asked for after an event.
func (w *world) checkOut(e Event) {
	_, again := e.(Started)
	for _, a := range w.out {
		switch a.Op {
		case OpPrepare:
			if _, first := e.(Claimed); first && !w.s.mayBegin() {
				w.fail("a workspace is made while the loop is %s", w.s.Phase)
			}
		case OpSettle:
			if w.s.Slots[a.Slot].Lost && !again {
				w.fail("the queue is told of %v, which was lost", a.Claim)
			}
		case OpLaunch:
			if again && w.held(a.Claim) == nil {
				w.fail("a run is launched for %v, which is somebody else's by now", a.Claim)
			}
		}
	}
}

// legal are the steps that may follow one another at one event.
var legal = map[Step][]Step{
	"":        {Idle, Claiming}, // a worker more
	Idle:      {Claiming},
	Claiming:  {Idle, Preparing, Settling},
	Preparing: {Launching, Settling, Archiving},
	Launching: {Running, Settling, Archiving, Verifying},
	Running:   {Verifying, Settling, Archiving},
	Verifying: {Settling, Archiving},
	Settling:  {Archiving},
	Archiving: {Idle},
}

// check looks at what must hold after every event.
func (w *world) check(before [4]Step, phase Phase, worked time.Duration) {
	s := &w.s
	for i := range s.Slots {
		p := &s.Slots[i]
		from, to := before[i], p.Step
		ok := from == to
		for _, l := range legal[from] {
			ok = ok || l == to
		}
		if !ok {
			w.fail("slot %d goes from %s to %s", i, from, to)
		}
		if from == Idle && to != Idle && s.Busy() > s.Limits.Workers {
			w.fail("%d are busy, and slot %d begins; there are to be %d", s.Busy()-1, i, s.Limits.Workers)
		}
		if p.Step != Idle && p.Step != Claiming && p.Claim.Fence == 0 {
			w.fail("slot %d is %s without a claim", i, p.Step)
		}
		if p.Step == Running && p.Run == "" || p.Step == Settling && p.Settle == nil {
			w.fail("slot %d is %s without what that takes: %+v", i, p.Step, p)
		}
		if p.Step == Running && p.Stop == "" && (p.Lost || s.Phase == Stopping || s.Interrupt != nil && s.Interrupt.Halt || s.Worked >= s.Limits.MaxTime) {
			w.fail("run %s goes on, though it is lost (%v), or the loop is %s", p.Run, p.Lost, s.Phase)
		}
		for j := range i {
			if q := &s.Slots[j]; p.Claim.Fence != 0 && p.Claim == q.Claim {
				w.fail("slots %d and %d have the same claim", i, j)
			}
		}
	}
	if (s.Phase == Waiting) != (s.Interrupt != nil) {
		w.fail("it is %s, and the interrupt is %+v", s.Phase, s.Interrupt)
	}
	if phase == Finished && s.Phase != Finished {
		w.fail("it goes on after its end")
	}
	if s.Worked < worked {
		w.fail("time goes back")
	}
	if s.Phase == Finished && s.Busy() > 0 {
		w.fail("it has ended with %d busy", s.Busy())
	}
	if _, ok := s.Wake(); !ok && s.Phase == Working {
		w.fail("it works, and nothing will wake it: %+v", s)
	}
	if s.Worked > s.Limits.MaxTime+10*time.Minute && s.Phase == Working {
		w.fail("it has worked for %s, of at most %s", s.Worked, s.Limits.MaxTime)
	}
}

// morning looks at what the night has left.
func (w *world) morning() {
	for n := range w.runs {
		if w.runs[n].live {
			w.fail("run %s lives on", runName(n))
		}
	}
	done, cost := 0, 0.0
	for n := range w.runs {
		cost += w.runs[n].cost
	}
	if d := cost - w.s.CostUSD; d > cent || d < -cent {
		w.fail("the runs have cost %.3f USD, and %.3f are counted", cost, w.s.CostUSD)
	}
	for i := range w.items {
		it := &w.items[i]
		switch {
		case it.state == "claimed" && it.ours:
			w.fail("item %s is held by a loop that has ended", itemName(i))
		case it.state == "blocked" && !w.s.Items[itemName(i)].Parked:
			w.fail("item %s is set aside and forgotten", itemName(i))
		case it.dones > 1:
			w.fail("item %s is done %d times", itemName(i), it.dones)
		}
		if it.dones == 1 && it.ours {
			done++
		}
	}
	if done != w.s.Tally.Done {
		w.fail("the queue has %d items done by the loop, which says %d", done, w.s.Tally.Done)
	}
	if !w.overrun && w.s.CostUSD > w.s.Limits.MaxUSD+cent {
		w.fail("%.2f USD were spent, of at most %.2f", w.s.CostUSD, w.s.Limits.MaxUSD)
	}
	if w.s.Iterations > w.s.Limits.MaxIterations {
		w.fail("%d iterations, of at most %d", w.s.Iterations, w.s.Limits.MaxIterations)
	}
}
