package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/internal/loop/core"
	"reprise/internal/loop/outcome"
	"reprise/internal/loop/said"
	"reprise/internal/loop/tell"
	"reprise/internal/queue"
	"reprise/internal/run"
	"reprise/internal/workspace"
)

// do does one action, in a goroutine of its own: it may take long.
func (l *Loop) do(ctx context.Context, a core.Action) {
	l.actions.Go(func() {
		if e := l.act(ctx, a); e != nil {
			l.send(ctx, e)
		}
	})
}

// act does an action and returns its answer, nil where there is none (yet).
func (l *Loop) act(ctx context.Context, a core.Action) core.Event {
	switch a.Op {
	case core.OpClaim:
		return l.claim(ctx, a)
	case core.OpPrepare:
		return l.prepare(ctx, a)
	case core.OpLaunch:
		return l.launch(ctx, a)
	case core.OpWatch:
		return l.watch(ctx, a)
	case core.OpStop:
		return l.stop(ctx, a)
	case core.OpVerify:
		return l.verify(ctx, a)
	case core.OpSettle:
		return l.settle(ctx, a)
	case core.OpArchive:
		return l.archive(ctx, a)
	case core.OpRelease:
		l.try(ctx, "give back a claim", func() error {
			_, err := l.opt.Queue.Release(ctx, queue.Token(a.Claim.Token), "claimed by a loop that went on without it")
			return err
		})
	case core.OpUnpark:
		_, err := l.opt.Queue.Unpark(ctx, a.Item, l.unparkReason(a.Item))
		if err != nil && !queue.Over(err) {
			l.warn("put an item back", err)
			return core.Broken{Slot: -1, Err: err.Error()}
		}
		if errors.Is(err, queue.ErrDamaged) { // no try mends that, and it is in nobody's way
			text := "it cannot be put back, and stays set aside: " + oneLine(err.Error(), 400)
			if !errors.Is(err, queue.ErrNewer) {
				text += "; mend the file, and say it again, or give the item up: `reprise queue check --take-out " + a.Item + "`"
			}
			l.tellOf("put off", a.Item, text)
			l.notice(ctx, tell.Notice{Kind: "damaged", Item: a.Item, Text: text})
		}
		return core.Unparked{Item: a.Item}
	case core.OpNotify:
		l.notify(ctx, a)
	case core.OpRaise, core.OpLower:
		l.try(ctx, "show whether a person is waited for", l.signal)
	case core.OpFinish:
		l.try(ctx, "keep the figures", func() error { return l.store.writeMetrics(l.State()) })
	}
	return nil
}

// signal has the interrupt file there or not, as the state is by now: actions are done
// side by side, and the one that was asked for first may come last.
func (l *Loop) signal() error {
	l.signals.Lock()
	defer l.signals.Unlock()
	if s := l.State(); s.Phase == core.Waiting {
		return l.store.raise(s.Interrupt.Words())
	}
	return l.store.lower()
}

// try does what has no answer, a few times where it cannot be done.
func (l *Loop) try(ctx context.Context, what string, f func() error) {
	for wait := 50 * time.Millisecond; ; wait *= 4 {
		err := f()
		if err == nil {
			return
		}
		if queue.Over(err) || wait > 20*time.Second {
			l.warn(what, err)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (l *Loop) warn(what string, err error) { l.opt.Log.Warn(what, "error", err.Error()) }

func broken(a core.Action, err error) core.Event {
	e := core.Broken{Slot: a.Slot, Seq: a.Seq, Err: err.Error()}
	if errors.Is(err, ErrAway) {
		e.Most = awayLook
	}
	return e
}

func (l *Loop) claimOptions(slot int) queue.ClaimOptions {
	return queue.ClaimOptions{
		Worker: fmt.Sprintf("%s/%d", orElse(l.opt.Worker, "loop"), slot+1), Bound: true, Lease: Lease,
		Labels: l.opt.Labels, Agent: l.opt.Only, Fits: l.opt.Fits,
	}
}

func (l *Loop) claim(ctx context.Context, a core.Action) core.Event {
	if err := l.away(); err != nil {
		return broken(a, err)
	}
	c, err := l.opt.Queue.Claim(ctx, l.claimOptions(a.Slot))
	if errors.Is(err, queue.ErrEmpty) {
		e := core.Claimed{Slot: a.Slot, Seq: a.Seq}
		if e.Empty, e.NextIn, e.Left, err = l.outlook(ctx); err != nil {
			return broken(a, err)
		}
		l.await(ctx, e.Left)
		l.idles(&e)
		return e
	}
	if err != nil {
		l.warn("claim", err)
		return broken(a, err)
	}
	l.entitle(&c.Item)
	claim := core.Claim{Item: core.Item{ID: c.Item.ID, NoChangeOK: c.Item.NoChangeOK}, Fence: int64(c.Fence), Born: born(&c.Item), Token: string(c.Token)}
	e := core.Claimed{Slot: a.Slot, Seq: a.Seq, Claim: &claim}
	if said := said.Answered(c.Item); said != nil {
		e.Answer, e.Asked = said.Answer, said.Number
	}
	return e
}

// await has one goroutine wait for the queue, and tell the core once. left is what the core
// is told that there is: what came between that look and the waiting is told, too.
func (l *Loop) await(ctx context.Context, left string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting {
		return
	}
	l.waiting = true
	l.actions.Go(func() {
		what := l.claimOptions(0)
		what.Arrivals = true // which change what is waited for, and until when
		what.Begun = func() {
			if _, _, now, err := l.outlook(ctx); err == nil && now != left {
				l.send(ctx, core.QueueChanged{})
			}
		}
		err := l.opt.Queue.Wait(ctx, what)
		l.mu.Lock()
		l.waiting = false
		l.mu.Unlock()
		if err == nil {
			l.send(ctx, core.QueueChanged{})
		} else if ctx.Err() == nil {
			l.warn("wait for work", err) // the core looks again by itself
		}
	})
}

func (l *Loop) prepare(ctx context.Context, a core.Action) core.Event {
	e := core.Prepared{Slot: a.Slot, Seq: a.Seq}
	p, err := l.place(ctx, a.Claim, true)
	var merging *mergingError
	var missing *missingError
	switch {
	case errors.As(err, &merging):
		e.Later = merging.Error()
	case errors.As(err, &missing):
		e.Missing = missing.Error()
	case errors.Is(err, errHeld):
		l.warn("prepare a workspace", err)
		e.Held = heldWhy(err)
	case errors.Is(err, workspace.ErrLive):
		e.Later, e.InUse = oneLine(err.Error(), 500), true
	case queue.Over(err):
		l.lost(ctx, a.Slot, a.Claim)
		e.Err = oneLine(err.Error(), 500)
	case err != nil && passing(err):
		l.warn("prepare a workspace", err)
		return broken(a, err)
	case errors.Is(err, errFetch):
		l.warn("prepare a workspace", err)
		e.Away = oneLine(err.Error(), 500)
	case err != nil:
		l.warn("prepare a workspace", err)
		e.Err = oneLine(err.Error(), 500)
	case p.Note != "":
		l.tell("workspace", a.Slot, p.Note)
	}
	return e
}

// place is where a claim is worked on: made once in this process, and found again by
// the next. begins says that no run of the claim has been started yet, so that it may have to
// wait for what it builds on ([mergingError]).
func (l *Loop) place(ctx context.Context, c core.Claim, begins bool) (Place, error) {
	l.mu.Lock()
	p, ok := l.places[placeKey(c)]
	l.mu.Unlock()
	if ok {
		return p, nil
	}
	it, err := l.opt.Queue.Get(ctx, c.Item.ID)
	if err != nil {
		return Place{}, err
	}
	if err := l.inPlace(ctx, it.DependsOn); err != nil {
		return Place{}, err
	}
	if begins {
		if by, err := l.mergedBy(ctx, it.DependsOn); err != nil {
			return Place{}, err
		} else if len(by) > 0 {
			return Place{}, &mergingError{by}
		}
	}
	err = l.inProject(func() error { p, err = l.opt.Places.Prepare(ctx, it, c.Fence); return err })
	if err != nil {
		return Place{}, err
	}
	l.mu.Lock()
	l.places[placeKey(c)] = p
	l.mu.Unlock()
	return p, l.opt.Disk.MkdirAll(l.asks(c), 0o700)
}

// inPlace waits while what an item builds on is being put where it belongs: in the queue
// that is done a moment before its work is merged, and a worktree that is made in between
// would lack it.
func (l *Loop) inPlace(ctx context.Context, on []string) error {
	if len(on) == 0 {
		return nil
	}
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		s := l.State()
		if !slices.ContainsFunc(s.Slots, func(p core.Slot) bool {
			return (p.Step == core.Settling || p.Step == core.Archiving) && slices.Contains(on, p.Claim.Item.ID)
		}) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// verify has the work checked. What cannot be found out counts as failed: nobody
// could say that it passes.
func (l *Loop) verify(ctx context.Context, a core.Action) core.Event {
	e := core.Verified{Slot: a.Slot, Seq: a.Seq, Gate: core.GateNone}
	p, err := l.place(ctx, a.Claim, false)
	if queue.Over(err) {
		return l.over(ctx, a, e, err)
	}
	if err != nil {
		return broken(a, err)
	}
	r, err := l.opt.Runs.Get(a.Run)
	if errors.Is(err, run.ErrNotFound) {
		e.Gate, e.Text = core.GateFailed, "the record of its run is gone: "+err.Error()
		return e
	}
	if err != nil {
		return broken(a, err)
	}
	if wrong := l.astray(a.Slot, placeKey(a.Claim), r, p); wrong != "" {
		e.Gate, e.Text = core.GateFailed, wrong
		return e
	}
	if l.opt.Check == nil {
		return l.secured(ctx, a, e, p)
	}
	var got Checked
	err = l.inProject(func() error {
		if got, err = l.opt.Check(ctx, p, r); err == nil && got.Gate == core.GateFailed {
			return l.away() // of which they say nothing
		}
		return err
	})
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		if passing(err) {
			return broken(a, err)
		}
		got = Checked{Gate: core.GateFailed, Text: "the checks could not be run: " + err.Error()}
	}
	e.Gate, e.Text = got.Gate, clip(got.Text, 4000)
	return l.secured(ctx, a, e, p)
}

// over says of work whose claim is over, as of an item that vanished, that it is nobody's.
func (l *Loop) over(ctx context.Context, a core.Action, e core.Verified, err error) core.Event {
	l.lost(ctx, a.Slot, a.Claim)
	e.Gate, e.Text = core.GateFailed, err.Error()
	return e
}

// secured has work that passes the checks kept, before the queue is told that it is done:
// what cannot be kept does not pass.
func (l *Loop) secured(ctx context.Context, a core.Action, e core.Verified, p Place) core.Event {
	if e.Gate == core.GateFailed {
		return e
	}
	wrong, err := l.keep(ctx, a.Claim, a.Slot, p)
	switch {
	case ctx.Err() != nil:
		return nil
	case queue.Over(err):
		return l.over(ctx, a, e, err)
	case err != nil:
		return broken(a, err)
	case wrong != "":
		e.Gate, e.Text = core.GateFailed, wrong
	}
	return e
}

// settle tells the queue how an iteration ended.
func (l *Loop) settle(ctx context.Context, a core.Action) core.Event {
	e := core.Settled{Slot: a.Slot, Seq: a.Seq}
	t, h, reason := queue.Token(a.Claim.Token), a.How, clip(a.How.Reason, 2000)
	kept := l.outcome(ctx, a)
	var it queue.Item
	var err error
	switch h.Fate {
	case core.Done:
		it, err = l.opt.Queue.Done(ctx, t, kept)
	case core.Retry:
		it, err = l.opt.Queue.Fail(ctx, t, queue.Failure{Error: failure(h), RetryAfter: h.Delay, Outcome: kept})
	case core.GiveUp:
		it, err = l.opt.Queue.Fail(ctx, t, queue.Failure{Error: failure(h), Permanent: true, Outcome: kept})
	case core.Park:
		it, err = l.opt.Queue.Park(ctx, a.Claim.Item.ID, t, string(h.Class)+": "+reason)
	default:
		if h.Delay > 0 {
			it, err = l.opt.Queue.Fail(ctx, t, queue.Failure{Error: failure(h), Free: true, RetryAfter: h.Delay})
		} else {
			it, err = l.opt.Queue.Release(ctx, t, string(h.Class)+": "+reason)
		}
		if err == nil && h.Class == core.BeingMerged {
			if err = l.waitForMerge(ctx, a.Claim.Item.ID); err != nil && !passing(err) {
				l.warn("have "+a.Claim.Item.ID+" wait for a merge", err) // it is asked again when it is claimed
				err = nil
			}
		}
	}
	switch {
	case err == nil:
		e.GaveUp = it.State == queue.Dead
	case queue.Over(err):
		e.Lost, e.Why = true, l.wentTo(ctx, a.Claim)
	default:
		l.warn("settle "+a.Claim.Item.ID, err)
		return broken(a, err)
	}
	return e
}

// failure is why an iteration did not succeed. What was refused long ago is no reason of one that
// was not tried.
func failure(h *core.Settle) string {
	text := outcome.Classed(string(h.Class), clip(h.Reason, 2000))
	if h.Fate == core.Release && h.Refusal.Earlier {
		return text
	}
	return join(text, h.Refusal.Words())
}

// plural is a number of things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// outcome is what is kept with the item.
func (l *Loop) outcome(ctx context.Context, a core.Action) queue.Outcome {
	o := queue.Outcome{Run: a.Run}
	if a.Run == "" {
		return o
	}
	r, err := l.opt.Runs.Get(a.Run)
	if err != nil {
		return o
	}
	o.Session = r.SessionID
	if r.Result != nil {
		o.Summary = clip(strings.TrimSpace(r.Result.Text), 1000)
	}
	data := map[string]any{"completed": a.How.Completed, "succeeded": a.How.Succeeded, "verified": a.How.Verified}
	if a.How.Refusal.What != "" {
		data["refused"] = a.How.Refusal
	}
	if p, ok := l.placed(a.Claim); ok {
		data["branch"] = p.Branch
		if p.Lacks != "" {
			data["lacks"] = p.Lacks // or who merges it would not know
		}
		if t, ok := l.opt.Places.(Brancher); ok && a.How.Fate == core.Done && p.Branch != "" {
			if tip, err := t.Tip(ctx, p.Branch); err == nil && tip != "" {
				data["commit"] = tip // by which what builds on it finds it, whatever becomes of the branch
			}
		}
		if l.opt.Files != nil {
			o.Artifacts = l.opt.Files(ctx, r, p)
		}
	}
	o.Data, _ = json.Marshal(data)
	return o
}

// stop tells a run to stop. Whoever watches it hears of its end, unless nobody knew
// yet that it runs.
func (l *Loop) stop(ctx context.Context, a core.Action) core.Event {
	id := a.Run
	if id == "" {
		r, err := l.opt.Runs.ByKey(runKey(a.Claim))
		if errors.Is(err, run.ErrNotFound) {
			return core.Exited{Slot: a.Slot}
		}
		if err != nil {
			return broken(a, err)
		}
		id = r.ID
	}
	// The stop itself must go on when the loop is told to leave at once: half a stop
	// would be a run that nobody keeps the context of.
	stop := l.opt.Runs.Cancel
	if a.Keep {
		stop = l.opt.Runs.Interrupt
	}
	r, err := stop(ctx, id, a.Text)
	if err != nil {
		if ctx.Err() == nil {
			l.warn("stop "+id, err) // the core asks again
		}
		return nil
	}
	if a.Run == "" && r.Status.Settled() {
		o, err := l.ended(ctx, a, r)
		if err != nil {
			l.warn("see what came of "+id, err)
			return nil
		}
		return core.Exited{Slot: a.Slot, Outcome: o}
	}
	return nil
}

func (l *Loop) notify(ctx context.Context, a core.Action) {
	l.notice(ctx, tell.Notice{Kind: a.Kind, Text: clip(a.Text, 2000), Item: a.Item, Answer: core.AnswerTo(a.Kind, a.Item)})
}

// noticeTime is what a notice may take: each way of telling has its own time, and one that hangs
// takes none from the others.
const noticeTime = 70 * time.Second

// notice sends one, in the name of the loop.
func (l *Loop) notice(ctx context.Context, n tell.Notice) {
	if l.opt.Notify == nil {
		return
	}
	n.Project, n.Loop, n.At = l.opt.Project, l.State().Loop, l.opt.Now().UTC()
	// Told even by a loop that is just ending.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noticeTime)
	defer cancel()
	if err := l.opt.Notify(ctx, n); err != nil {
		l.warn("notify", err)
		l.tell("notify", -1, "it could not be told: "+strings.ReplaceAll(err.Error(), "\n", "; ")+" (`reprise loop notify` tries it)")
	}
}
