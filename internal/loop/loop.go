// Package loop keeps agents going on what is in the queue: it claims an item, gives
// it a place to work, starts a run, watches it, has the work checked, settles the
// item and keeps what there is to know of it, until a ceiling is reached or a person
// has to decide something.
//
// What is done next is decided by package core, which is pure; this package does it.
// It owns one directory, <data>/projects/<name>/loop: loop.json (the core's state),
// unsaved.json (why that cannot be written), audit.jsonl, iterations.jsonl, metrics.json, interrupt.txt (there while a person must
// decide), requests/ (what people want of a loop that runs), asks/ (one directory a
// claim, in which its run can ask), and loop.lock. In the directories of its runs it
// writes iteration.json, tools.jsonl, errors.jsonl, context.json, summary.md, and a
// copy of what the run asked.
//
// It takes loop.lock, which one loop of a project holds for as long as it lives; the
// locks of queue, runs and workspaces come after it.
package loop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"reprise/internal/durable"
	"reprise/internal/loop/core"
	"reprise/internal/loop/report"
	"reprise/internal/loop/tell"
	"reprise/internal/queue"
	"reprise/internal/run"
)

// Names of the files in a loop's directory.
const (
	stateFile      = "loop.json"
	auditFile      = "audit.jsonl"
	iterationsFile = "iterations.jsonl"
	metricsFile    = "metrics.json"
	interruptFile  = "interrupt.txt"
	requestsDir    = "requests"
	asksDir        = "asks"
	lockFile       = "loop.lock"
	ownerFile      = "owner.json"
)

// Times of a loop.
const (
	// WatchEvery is how often a run's record is looked at.
	WatchEvery = 2 * time.Second
	// Lease is how long a claim holds that nobody renews, and renewEvery how often
	// it is renewed.
	Lease      = 60 * time.Second
	renewEvery = 15 * time.Second
	// StopGrace is the time between asking an agent to end and killing it.
	StopGrace = 30 * time.Second
)

// ErrRuns says that a loop of the project runs already.
var ErrRuns = errors.New("a loop of this project runs already")

// ErrChanged says that another loop ran since the state was read that this one was to go on
// with. Read it again.
var ErrChanged = errors.New("another loop of this project has run meanwhile")

// ErrGone says that the loop's directory is gone, or is another one.
var ErrGone = errors.New("the loop's directory was taken away")

// Runs starts runs and answers for them; *run.Manager does.
type Runs interface {
	Start(ctx context.Context, req run.Request) (run.Record, error)
	ByKey(key string) (run.Record, error)
	Get(id string) (run.Record, error)
	Settle(ctx context.Context, id string) (run.Record, error)
	Wait(ctx context.Context, id string) (run.Record, error)
	Cancel(ctx context.Context, id, reason string) (run.Record, error)
	Interrupt(ctx context.Context, id, reason string) (run.Record, error)
}

// Place is where an item is worked on.
type Place struct {
	Name   string `json:"name"`
	Dir    string `json:"dir"`  // where the agent begins
	Top    string `json:"top"`  // of the working tree
	Base   string `json:"base"` // the commit that the work began at, "" outside git
	Branch string `json:"branch,omitempty"`
	// Unmerged are branches that the item builds on and that are not in its place, because
	// they conflict with the rest.
	Unmerged []string `json:"unmerged,omitempty"`
	// Lacks is what the item builds on and is not in its place, in words; "" is nothing.
	Lacks string `json:"lacks,omitempty"`
	// Note is what happened to the place since the work on the item was begun, for who goes
	// on with it.
	Note string            `json:"note,omitempty"`
	Vars map[string]string `json:"-"` // of the environment of who works there
}

// Work is what has become of a place.
type Work struct {
	Changed bool
	Files   []string // a few of them
	Diff    string   // cut
}

// Places gives items a place to work.
type Places interface {
	// Prepare makes an item's place, or goes on with the one that it has.
	Prepare(ctx context.Context, item queue.Item, fence int64) (Place, error)
	// Began says which run works there, so that the place is its own even when the loop
	// dies.
	Began(ctx context.Context, p Place, run string) error
	// Look says whether something has changed there since the work began, and with detail
	// which files, and how.
	Look(ctx context.Context, p Place, detail bool) (Work, error)
	// Finish is for the end of an iteration: of an item that is done the work is kept
	// where the settings want it. Done twice, it does no harm. note says what was done
	// with it; a conflict is one for the next item.
	Finish(ctx context.Context, p Place, item queue.Item, fate core.Fate) (note string, conflict bool, err error)
}

// Route is how the runs of an item go.
type Route struct {
	Client  string // "" is the default one
	Model   string
	Tools   []string      // that need no approval, as the client spells them
	Turns   int           // 0: no limit
	USD     float64       // 0: as much as the loop gives; never more than that
	Timeout time.Duration // 0: as long as the loop gives; never longer
}

// Checked is what the project's checks say of a place.
type Checked struct {
	Gate core.Gate
	Text string // what failed; where they passed, what of that is not held against the work
	ID   string // of the verification
}

// Options are a loop's world.
type Options struct {
	Dir     string
	Project string
	Queue   queue.Queue
	Runs    Runs
	Places  Places
	// Check has the project's checks run in a place; nil: there are none.
	Check func(ctx context.Context, p Place, run run.Record) (Checked, error)

	Client     string // of items that name none, and whose route names none
	Only       string // client of all items: others are left for others; "" is any
	ScriptFile string
	Labels     []string // only items that have all of these
	Command    string   // by which a person goes on with a loop that was left; "" is `reprise loop run`
	// Fits has the last word about which items are worked on here; nil: all.
	Fits func(*queue.Item) bool
	// Worker is who claims, as others see it, with the worker's number added; "" is loop.
	Worker string
	// Route says how the runs of an item go; nil: the client, and no limits but the
	// core's.
	Route    func(queue.Item) Route
	Template string // of the bootstrap; "" is the embedded one
	Program  string // of reprise, as a session can call it
	Actor    string
	Env      []string // that agents start from
	// Events is the directory in which hooks and guard record what runs do, by which it is known
	// what was refused of them; "" is nowhere.
	Events string
	// Configure adds to a request what a client needs beside; nil is nothing.
	Configure func(*run.Request) error
	// Away says that the project's directory is not where it was, and why ([Anchor]): then
	// nothing is begun or ended. nil: it is always there.
	Away func() error
	// Root is the main checkout, and Strayed says what came into it since a run began in a
	// place that the loop did not put there; nil: nobody knows.
	Root    string
	Strayed func(p Place, since time.Time) []Stray
	// Shares says what runs have changed that all worktrees share; nil: nobody looks.
	Shares Sharer
	// Merges says where work is put, and takes up what could not be merged; nil: nobody does.
	Merges Merger
	// Prove is asked before the first run of a client whether it may work here, such as
	// by a proof that the guard keeps it from what is refused; nil: it may.
	Prove func(ctx context.Context, client string) error
	// Before is done once the loop has the right to be the project's; what cannot be done
	// is logged. After is done when it has ended, and waits for what is still being done
	// beside it. nil is nothing.
	Before func(ctx context.Context) error
	After  func()
	Limits core.Limits
	// Given is how the loop works otherwise, kept with its state for whoever goes on with it;
	// nil leaves what is there. From is the state that Limits and Given were made from: where
	// that is another by now, the loop does not begin ([ErrChanged]); nil is whichever there is.
	Given *core.Given
	From  *core.State
	Disk  durable.Disk
	Now   func() time.Time
	// Watch is told of new files in directories; nil is [queue.WatchDirs].
	Watch func(dirs ...string) (queue.Watched, error)
	Log   *slog.Logger
	// Notify tells a person; nil is nobody.
	Notify func(context.Context, tell.Notice) error
	// Trace is given the spans of each iteration that has ended, and does not wait for
	// who gets them; nil is nobody.
	Trace func(context.Context, []tell.Span) error
	// Files sends what came of a run to where other machines find it, before its item is
	// settled, and names it; nil: nowhere. It is asked again where settling is.
	Files func(ctx context.Context, r run.Record, p Place) []string
	// Say is told what happens, in words for a terminal; nil is nobody.
	Say func(report.Line)
}

// Loop is one night's work.
type Loop struct {
	opt   Options
	store *store

	// Of the driver alone: who asks for the end, that somebody has, and what for, until
	// the core is told.
	ends     <-chan string
	stopping bool
	stopDue  *string
	left     error     // why all is left as it is for the next loop
	called   time.Time // when Run was called: what was asked before was asked of another
	home     os.FileInfo
	ending   atomic.Bool // somebody wants it to end soon: of what earlier loops left nothing more is merged

	base   time.Duration // of the loop's clock when this process began
	began  time.Time     // with a monotonic reading
	events chan core.Event

	mu     sync.Mutex // of what follows, which goroutines besides the driver read
	s      core.State
	places map[string]Place  // by claim
	asked  map[string]bool   // runs that have asked already
	ours   map[string]bool   // runs that this process started
	idle   string            // why nothing is ready, as it was told last
	steps  map[string]string // what was noted last of how far a claim's work is
	titles map[string]string // of items

	gone    bool            // the project's directory, when it was looked at last
	missing map[string]bool // runs in whose time it was away

	before    map[string]sharedBefore // by claim
	touched   map[string]time.Time    // branches of items, and when the loop had to do with them
	toldHands map[string]bool         // changes of what worktrees share
	shared    map[string]string       // what was told of that, by claim

	strayed map[string]string // commits that came into the main checkout, and the run in whose time

	proving sync.Mutex       // held while a client is proved
	proved  map[string]error // what came of that

	signals sync.Mutex // held while the interrupt file is made or removed

	looks   sharedLook
	actions sync.WaitGroup
	waiting bool          // somebody waits for the queue
	saved   int64         // revision of the state on disk
	untold  bool          // it cannot be written, and others are to see that
	kept    time.Duration // that it has worked, as of the state on disk
}

// New is a loop that has not begun.
func New(opt Options) *Loop {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	l := &Loop{
		opt: opt, store: newStore(opt.Dir, opt.Disk, opt.Now), events: make(chan core.Event, 256),
		places: map[string]Place{}, asked: map[string]bool{}, ours: map[string]bool{}, steps: map[string]string{}, titles: map[string]string{}, proved: map[string]error{},
		strayed: map[string]string{}, missing: map[string]bool{}, before: map[string]sharedBefore{}, touched: map[string]time.Time{}, toldHands: map[string]bool{}, shared: map[string]string{},
	}
	if t, ok := opt.Places.(Brancher); ok {
		t.Building(l.madeBy)
	}
	return l
}

// Run works until the loop has ended, and says how it stands then. The first value
// from stop ends it gracefully: what runs is stopped and given back. The end of ctx, or
// a second value, leaves everything as it is, for the next loop to go on with.
func (l *Loop) Run(ctx context.Context, stop <-chan string) (core.State, error) {
	l.called = l.opt.Now()
	unlock, err := l.store.lock()
	if err != nil {
		return core.State{}, err
	}
	defer unlock()
	if l.home, err = os.Stat(l.opt.Dir); err != nil {
		return core.State{}, err
	}
	l.ends = stop
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if l.opt.Before != nil {
		if err := l.opt.Before(ctx); err != nil {
			l.warn("finish what an earlier loop was at", err)
		}
	}
	if l.opt.After != nil {
		defer l.opt.After()
	}
	if err := l.begin(ctx); err != nil {
		return core.State{}, err
	}
	var helpers sync.WaitGroup
	helpers.Go(func() { l.renew(ctx) })
	helpers.Go(func() { l.requests(ctx) })
	helpers.Go(func() { l.askers(ctx) })
	later := make(chan struct{})
	helpers.Go(func() { defer close(later); l.takeUp(ctx) })
	if err = l.drive(ctx); err == nil {
		err = l.mergesToo(later)
	}
	if errors.Is(err, ErrGone) {
		err = l.letGo(ctx, err)
	}
	cancel()
	l.actions.Wait()
	helpers.Wait()
	return l.State(), err
}

// State is the loop's state as it is.
func (l *Loop) State() core.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.s.Clone()
}

// begin takes up the loop that was there, or begins a new one.
func (l *Loop) begin(ctx context.Context) error {
	old, err := l.store.state()
	if err != nil {
		return err
	}
	if !core.SameState(old, l.opt.From) {
		return ErrChanged
	}
	l.began = l.opt.Now()
	now := core.Time{Wall: l.opt.Now().UTC()}
	begun := core.Started{Given: l.opt.Given}
	var s core.State
	switch {
	case old == nil:
		s = core.New(newID(), l.opt.Limits, now)
	case old.Phase == core.Finished:
		s = core.New(newID(), l.opt.Limits, now)
		s.Items = l.stillAside(ctx, old.Items)
		s.Inherit(old)
	default:
		s = *old
		l.base = old.Now.Loop
		begun.Limits = &l.opt.Limits
	}
	l.mu.Lock() // from here on others may look
	l.s = s
	l.mu.Unlock()
	if err := l.store.own(l.s.Loop); err != nil {
		return err
	}
	if err := l.store.room(); err != nil {
		return err
	}
	held, went := l.held(ctx)
	if _, err := l.opt.Queue.Reclaim(ctx); err != nil {
		return fmt.Errorf("look after the queue: %w", err)
	}
	if l.s.Phase == core.Waiting {
		if err := l.store.raise(l.s.Interrupt.Words()); err != nil {
			return err
		}
	} else if old != nil {
		if err := l.store.lowerLeft(old.Shown); err != nil {
			return err
		}
	}
	l.tell("loop", -1, l.beginning(old))
	l.listen(ctx) // what was asked while no loop ran comes before anything that follows
	l.called = time.Time{}
	l.stillOpen(ctx)
	begun.Claims, begun.Went = held, went
	said := len(l.events)
	begun.Heard = said > 0
	if err := l.step(ctx, begun); err != nil {
		return err
	}
	for range said {
		if err := l.step(ctx, <-l.events); err != nil {
			return err
		}
	}
	return nil
}

// beginning is what is told of a loop's begin; old is the state that was there.
func (l *Loop) beginning(old *core.State) string {
	text := fmt.Sprintf("%s begins, with %s", l.s.Loop, plural(l.opt.Limits.Workers, "worker"))
	if old == nil || old.Phase == core.Finished {
		return text
	}
	text = fmt.Sprintf("%s begins again, with %s", l.s.Loop, plural(l.opt.Limits.Workers, "worker"))
	if old.Phase == core.Stopping || old.Phase == core.Draining {
		text += fmt.Sprintf("; it was ending (%s) and did not live to", oneLine(orElse(old.Reason, string(old.Phase)), 200))
	}
	if changed := core.Differences(old, l.opt.Limits, l.opt.Given); len(changed) > 0 {
		text += "; changed: " + strings.Join(changed, ", ")
	}
	if old.Given == nil && l.opt.Given != nil {
		text += "; an older program began it, and did not write down how it was told to work, with which client, too: what follows is done by " + l.works()
	}
	return text
}

// works is who works from now on, and how somebody else does.
func (l *Loop) works() string {
	if l.opt.Only != "" {
		return "the client " + l.opt.Only
	}
	return "the client " + clientOf(l.opt.Client) + ", but for what items and routes say (`--agent` names another)"
}

// stillAside are the items that stay set aside, with what was said to them: those that the queue
// still has, and has not ended meanwhile.
func (l *Loop) stillAside(ctx context.Context, items map[string]core.Memory) map[string]core.Memory {
	out := map[string]core.Memory{}
	for id, m := range items {
		it, err := l.opt.Queue.Get(ctx, id)
		if errors.Is(err, queue.ErrNotFound) || err == nil && (it.State == queue.Done || it.State == queue.Dead) {
			continue
		}
		out[id] = m
	}
	return out
}

// held are the claims of the state that are still good, and went is what became of the others. A
// claim that the loop made and did not live to write down ends with its lease.
func (l *Loop) held(ctx context.Context) (out []core.Claim, went []core.Went) {
	for _, c := range l.s.Claims() {
		if _, err := l.opt.Queue.Extend(ctx, queue.Token(c.Token), Lease); err == nil || !queue.Over(err) {
			out = append(out, c)
		} else {
			went = append(went, core.Went{Item: c.Item.ID, Fence: c.Fence, What: l.wentTo(ctx, c)})
		}
	}
	return out, went
}

// now is the time on both clocks. The loop's own goes on where it was when it was
// written down last, and stands still while no loop runs.
func (l *Loop) now() core.Time {
	now := l.opt.Now() // with a monotonic reading, by which a clock that is set changes nothing
	return core.Time{Loop: l.base + now.Sub(l.began), Wall: now.UTC()}
}

// drive gives the core what happens and does what it says.
func (l *Loop) drive(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for l.s.Phase != core.Finished {
		at, ok := l.s.Wake()
		timer.Stop()
		if ok {
			timer.Reset(max(at-l.now().Loop, 0))
		}
		var e core.Event
		if why := l.stopDue; why != nil {
			l.stopDue = nil
			if err := l.step(ctx, core.StopAsked{Why: *why}); err != nil {
				return err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case why := <-l.ends:
			if err := l.askedToStop(why); err != nil {
				return err
			}
			continue
		case e = <-l.events:
		case <-timer.C:
			e = core.Tick{}
		}
		if err := l.step(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// step gives the core one event. The state is on disk before anything is done by it.
func (l *Loop) step(ctx context.Context, e core.Event) error {
	if err := l.there(); err != nil {
		return err
	}
	var out []core.Action
	l.mu.Lock()
	before, limits := l.s.Phase, l.s.Limits
	l.s.Advance(l.now(), e, &out)
	l.mu.Unlock()
	if l.s.Phase == core.Stopping {
		l.ending.Store(true)
	}
	l.raised(e, limits)
	l.stuck(ctx, e)
	l.audit(e, before, out)
	if err := l.save(ctx); err != nil {
		return err
	}
	if r, ok := e.(core.Resumed); ok && r.Request != "" {
		l.try(ctx, "take a request away", func() error { return l.store.done(r.Request) })
	}
	for _, a := range out {
		if a.Op == core.OpLeave {
			l.left = fmt.Errorf("the loop cannot end properly, and is left as it is: %s; `%s` goes on with it once that is mended", oneLine(a.Text, 500), l.command())
			continue
		}
		l.do(ctx, a)
	}
	return l.left
}

// ToldStuck is how often something has failed, each time after a longer wait, when a person is told:
// what passes by itself, such as a lock, has passed by then, half a minute later.
const ToldStuck = 5

// toldUnsaved is the same for the loop's own state, which is tried sooner and more often: half a
// minute.
const toldUnsaved = 9

func cannotGoOn(item, why string) tell.Notice {
	return tell.Notice{Kind: "cannot go on", Item: item, Text: "it cannot go on, and that is tried again: " + oneLine(why, 500)}
}

// stuck has a person told, once, of what cannot be done and is tried again all night, such as
// for a disk that is full. That the project's directory is away they have been told already.
func (l *Loop) stuck(ctx context.Context, e core.Event) {
	b, ok := e.(core.Broken)
	if !ok {
		return
	}
	tries := l.tries(b.Slot)
	l.mu.Lock()
	item := ""
	if b.Slot >= 0 && b.Slot < len(l.s.Slots) {
		item = l.s.Slots[b.Slot].Claim.Item.ID
	}
	away := l.gone
	l.mu.Unlock()
	if tries == ToldStuck && !away {
		l.actions.Go(func() {
			l.notice(ctx, cannotGoOn(item, b.Err))
		})
	}
}

// tries is how often in a row a worker, or with -1 the loop, could not do what it is at.
func (l *Loop) tries(slot int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slot >= 0 && slot < len(l.s.Slots) {
		return l.s.Slots[slot].Retries
	}
	return l.s.UnparkTries
}

// askedToStop notes that the loop shall end; asked once more it is left at once, which
// is the error.
func (l *Loop) askedToStop(why string) error {
	if l.stopping {
		return fmt.Errorf("left at once: %s; what runs goes on, and `%s` takes it up", why, l.command())
	}
	l.stopping, l.stopDue = true, &why
	return nil
}

// command goes on with a loop that was left.
func (l *Loop) command() string { return orElse(l.opt.Command, "reprise loop run") }

// savePatience is how long somebody who wants the loop to end waits for its state to be
// written.
const savePatience = 5 * time.Second

// save writes the state, and on a disk that is full tries until it can: nothing that is
// not written down is done. Who asks for the loop's end does not wait long for that, and who
// asks twice not at all.
func (l *Loop) save(ctx context.Context) error {
	if l.s.Rev == l.saved {
		l.keepTime()
		return nil
	}
	wait := 100 * time.Millisecond
	var patience <-chan time.Time
	if l.stopping {
		patience = time.After(savePatience)
	}
	for tries := 1; l.s.Rev != l.saved; tries++ {
		err := l.store.save(l.s)
		if err == nil {
			l.saved, l.kept = l.s.Rev, l.s.Worked
			l.unsaved(nil)
			return nil
		}
		if gone := l.there(); gone != nil {
			return gone
		}
		l.unsaved(err)
		err = fmt.Errorf("the loop's state could not be kept: %w", err)
		l.opt.Log.Error("keep the loop's state", "error", err.Error(), "again_in", wait.String())
		switch tries {
		case 1:
			l.tell("put off", -1, oneLine(err.Error(), 500)+"; nothing is begun or ended until it can be")
		case toldUnsaved:
			l.actions.Go(func() { l.notice(ctx, cannotGoOn("", err.Error())) })
		}
		select {
		case <-ctx.Done():
			return err
		case why := <-l.ends:
			if stop := l.askedToStop(why); stop != nil {
				return fmt.Errorf("%w; %w", stop, err)
			}
			patience = time.After(savePatience)
		case <-patience:
			return fmt.Errorf("left as it is, and what runs goes on: %w; `%s` goes on with it once that is mended", err, l.command())
		case <-time.After(wait):
		}
		wait = min(2*wait, 10*time.Second)
	}
	return nil
}

// keepTime writes down how long the loop has worked, now and then, for the next one to count
// on from should this one be killed. What cannot be written then is written later.
func (l *Loop) keepTime() {
	every := time.Minute
	if l.s.Busy() > 0 {
		every = renewEvery / 2 // it is looked at every renewEvery, a little sooner or later
	}
	if l.s.Worked-l.kept < every {
		return
	}
	l.kept = l.s.Worked
	err := l.store.save(l.s)
	if l.unsaved(err); err != nil {
		l.warn("keep how long it has worked", err)
	}
}

// there says whether the loop's directory is still the one that it was begun in. With
// another, or none, its lock keeps nobody out.
func (l *Loop) there() error {
	info, err := os.Stat(l.opt.Dir)
	switch {
	case l.home == nil || err == nil && os.SameFile(info, l.home):
		return nil
	case err == nil:
		return fmt.Errorf("%w: %s is another one by now", ErrGone, l.opt.Dir)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s is not there any more", ErrGone, l.opt.Dir)
	}
	return nil
}

// letGo stops what runs and gives back what is claimed, of a loop that cannot be gone on
// with by anybody: nobody else knows of its runs.
func (l *Loop) letGo(ctx context.Context, cause error) error {
	s := l.State()
	var all sync.WaitGroup
	for i := range s.Slots {
		p := &s.Slots[i]
		if p.Claim.Fence == 0 {
			continue
		}
		all.Go(func() {
			id := p.Run
			if r, err := l.opt.Runs.ByKey(runKey(p.Claim)); id == "" && err == nil {
				id = r.ID
			}
			if id != "" {
				if _, err := l.opt.Runs.Interrupt(ctx, id, cause.Error()); err != nil {
					l.warn("stop "+id, err)
				}
			}
			if _, err := l.opt.Queue.Release(ctx, queue.Token(p.Claim.Token), oneLine(cause.Error(), 500)); err != nil && !queue.Over(err) {
				l.warn("give "+p.Claim.Item.ID+" back", err)
			}
		})
	}
	all.Wait()
	return fmt.Errorf("%w; what ran was stopped, and its items were given back", cause)
}

// renew keeps the leases of what the loop holds.
func (l *Loop) renew(ctx context.Context) {
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		l.renewAll(ctx)
		l.send(ctx, core.Tick{}) // at which the driver looks whether its directory is there, and keeps how long it has worked
	}
}

// renewAll renews them once, side by side: where servers are away each may wait for them as
// long as they are patient, and none may lose its lease by the waiting of others.
func (l *Loop) renewAll(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	s := l.State()
	for i := range s.Slots {
		p := &s.Slots[i]
		if p.Claim.Fence == 0 || p.Lost || p.Step == core.Archiving {
			continue
		}
		all.Go(func() {
			_, err := l.opt.Queue.Extend(ctx, queue.Token(p.Claim.Token), Lease)
			switch {
			case err == nil || ctx.Err() != nil:
			case queue.Over(err):
				l.lost(ctx, i, p.Claim)
			default:
				l.opt.Log.Warn("renew a lease", "item", p.Claim.Item.ID, "error", err.Error())
			}
		})
	}
}

// send hands an event to the driver.
func (l *Loop) send(ctx context.Context, e core.Event) {
	select {
	case l.events <- e:
	case <-ctx.Done():
	}
}

// placeKey names a claim in this process.
func placeKey(c core.Claim) string { return fmt.Sprintf("%s-%d", c.Item.ID, c.Fence) }

// asks is the directory in which the run of a claim can ask for a person.
func (l *Loop) asks(c core.Claim) string { return filepath.Join(l.opt.Dir, asksDir, placeKey(c)) }
