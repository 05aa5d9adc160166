package loop

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"reprise/internal/agent"
	"reprise/internal/git"
	"reprise/internal/loop/checkout"
	"reprise/internal/loop/core"
	"reprise/internal/loop/outcome"
	"reprise/internal/loop/said"
	"reprise/internal/loop/tell"
	"reprise/internal/queue"
	"reprise/internal/run"
)

// runKey makes the run of a claim one that is started once.
func runKey(c core.Claim) string {
	if c.Born == "" {
		return fmt.Sprintf("loop:%s:%d", c.Item.ID, c.Fence)
	}
	return fmt.Sprintf("loop:%s:%d-%s", c.Item.ID, c.Fence, c.Born)
}

// born is when an item was added, in a few letters.
func born(it *queue.Item) string {
	if it.Created.IsZero() {
		return ""
	}
	return strconv.FormatInt(it.Created.UnixNano(), 36)
}

// ItemOf is the item that a run of a loop was started for, "" for any other run.
func ItemOf(r run.Record) string {
	item, _ := ClaimOf(r)
	return item
}

// ClaimOf is the claim that a run of a loop was started for: its item, "" for any other run,
// and its number, 0 where the record does not say it.
func ClaimOf(r run.Record) (item string, fence int64) {
	rest, ok := strings.CutPrefix(r.Key, "loop:")
	at := strings.LastIndexByte(rest, ':')
	if !ok || at < 0 || r.Origin != "loop" {
		return "", 0
	}
	number, _, _ := strings.Cut(rest[at+1:], "-")
	fence, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		fence = 0
	}
	return rest[:at], fence
}

// sessionOf is the id of the session that a claim's run begins: the same however often
// the run is asked for.
func sessionOf(loop string, c core.Claim) string {
	b := sha256.Sum256([]byte(loop + "\x00" + runKey(c)))
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// launch starts the run of a claim, or finds the one that was started for it.
func (l *Loop) launch(ctx context.Context, a core.Action) core.Event {
	e := core.Launched{Slot: a.Slot, Seq: a.Seq}
	r, err := l.opt.Runs.ByKey(runKey(a.Claim))
	if err == nil {
		e.Run = r.ID
		return e
	}
	if !errors.Is(err, run.ErrNotFound) {
		return broken(a, err)
	}
	req, err := l.request(ctx, a)
	if err == nil {
		err = l.prove(ctx, clientOf(req.Client))
	}
	if err == nil {
		l.lookBefore(ctx, a.Claim)
		err = l.inProject(func() error { r, err = l.opt.Runs.Start(ctx, req); return err })
	}
	switch {
	case err == nil:
		e.Run = r.ID
		l.mu.Lock()
		l.ours[r.ID] = true
		l.mu.Unlock()
		if p, ok := l.placed(a.Claim); ok {
			if err := l.opt.Places.Began(ctx, p, r.ID); err != nil {
				l.warn("note that "+r.ID+" works in "+p.Name, err)
			}
		}
	case ctx.Err() != nil:
		return nil // whoever comes next finds out whether it was started
	case passing(err):
		return broken(a, err)
	default:
		e.Class, e.Err = outcome.StartClass(err), oneLine(err.Error(), 1000)
		l.warn("start a run", err)
	}
	return e
}

// prove asks once whether a client may work here.
func (l *Loop) prove(ctx context.Context, client string) error {
	if l.opt.Prove == nil {
		return nil
	}
	l.proving.Lock()
	defer l.proving.Unlock()
	err, known := l.proved[client]
	if !known {
		if err = l.opt.Prove(ctx, client); ctx.Err() != nil {
			return ctx.Err() // which says nothing about it
		}
		l.proved[client] = err
	}
	return err
}

// watch follows a run to its end. It looks at the record every two seconds; the end of
// a run that this process started it hears of at once.
func (l *Loop) watch(ctx context.Context, a core.Action) core.Event {
	over := make(chan struct{})
	l.mu.Lock()
	ours := l.ours[a.Run]
	l.mu.Unlock()
	if ours {
		l.actions.Go(func() {
			defer close(over)
			if _, err := l.opt.Runs.Wait(ctx, a.Run); err != nil && ctx.Err() == nil {
				l.warn("wait for "+a.Run, err)
			}
		})
	}
	ticker := time.NewTicker(WatchEvery)
	defer ticker.Stop()
	var seen run.Heartbeat
	for {
		r, err := l.opt.Runs.Settle(ctx, a.Run)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, run.ErrNotFound):
			return core.Exited{Slot: a.Slot, Run: a.Run, Outcome: core.Outcome{Run: a.Run, Class: core.Crashed, Reason: "its record is gone"}}
		case err != nil:
			l.warn("look at "+a.Run, err)
		case r.Status.Settled():
			o, err := l.ended(ctx, a, r)
			if err != nil {
				return broken(a, err)
			}
			return core.Exited{Slot: a.Slot, Run: a.Run, Outcome: o}
		default:
			l.look(ctx, a, r, &seen)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-over:
			over = nil
		case <-ticker.C:
		}
	}
}

// look tells the core what is new of a run that goes on.
func (l *Loop) look(ctx context.Context, a core.Action, r run.Record, seen *run.Heartbeat) {
	h := r.Heartbeat
	if h.OutputBytes != seen.OutputBytes || h.ToolCalls != seen.ToolCalls || h.Retrying != seen.Retrying {
		*seen = h
		l.send(ctx, core.Progress{Slot: a.Slot, Run: a.Run, Tokens: h.Tokens})
	}
	l.progress(ctx, a)
	l.noteAway(a.Run)
	why := l.asking(a.Claim, askFile)
	if why == "" {
		why = l.asking(a.Claim, errorFile)
	}
	l.mu.Lock()
	first := why != "" && !l.asked[a.Run]
	if first {
		l.asked[a.Run] = true
	}
	l.mu.Unlock()
	if first {
		l.send(ctx, core.AgentAsks{Slot: a.Slot, Run: a.Run, Why: why})
	}
}

// Names of the files by which a run asks for a person, or says that it went wrong.
const (
	askFile   = "interrupt.txt"
	errorFile = "error.txt"
)

// progressFile is where a run says how far it is.
const progressFile = "progress.json"

// progress tells the queue how far a run says that it is. What is no progress is
// passed over: it is the agent's own account, and nothing is decided by it.
func (l *Loop) progress(ctx context.Context, a core.Action) {
	text, err := checkout.ReadStart(filepath.Join(l.asks(a.Claim), progressFile), maxAsk)
	if err != nil {
		return
	}
	key := placeKey(a.Claim)
	l.mu.Lock()
	same := l.steps[key] == text
	l.mu.Unlock()
	if same {
		return
	}
	p, err := queue.ParseProgress(text)
	if err == nil {
		err = l.opt.Queue.Progress(ctx, queue.Token(a.Claim.Token), p)
	}
	if !passing(err) { // else it is told at the next look
		l.mu.Lock()
		l.steps[key] = text
		l.mu.Unlock()
	}
	if err != nil && ctx.Err() == nil {
		l.warn("note how far "+a.Claim.Item.ID+" is", err)
	}
}

// maxAsk bounds what is read of such a file.
const maxAsk = 8 << 10

// asking is what a run has written there, "" for nothing.
func (l *Loop) asking(c core.Claim, name string) string {
	text, err := checkout.ReadStart(filepath.Join(l.asks(c), name), maxAsk)
	if err != nil {
		return ""
	}
	if text = strings.TrimSpace(text); text == "" {
		return "it asks, and does not say what" // the file alone asks
	}
	return text
}

// ended is how a run ended: what its record says, what has changed in its place, and
// what it has left for a person. The error is one of the moment, in which that cannot be seen.
func (l *Loop) ended(ctx context.Context, a core.Action, r run.Record) (core.Outcome, error) {
	l.progress(ctx, a) // what it said last
	l.noteAway(a.Run)
	o := outcome.Judge(r)
	o.Asks, o.Reported = l.asking(a.Claim, askFile), l.asking(a.Claim, errorFile)
	o.Cost, o.Tokens = r.Spent()
	o.Unpriced = r.Client == agent.KindClaude && (r.Result == nil || r.Result.CostUSD == 0)
	if u, ok := agent.SessionUsage(r.Client, agent.Transcript(r.Client, r.Command.Home, r.SessionID, l.opt.Env)); ok {
		o.Tokens = u.Sum()
	}
	if r.Client != agent.KindCodex {
		o.Tokens = max(o.Tokens, r.Heartbeat.Tokens)
	}
	o.Untold = outcome.Untold(r, o.Cost, o.Tokens, o.Turns)
	p, err := l.place(ctx, a.Claim, false)
	if err == nil {
		var w Work
		err = l.inProject(func() error { w, err = l.opt.Places.Look(ctx, p, false); return err })
		if err == nil {
			o.Changed = w.Changed
		}
		if errors.Is(err, git.ErrPrograms) {
			o.Changed = true // it is no run that did nothing; the checks say what is wrong
		}
		if err == nil && !w.Changed {
			l.missed(r, p, &o)
		}
	}
	if passing(err) {
		return o, err
	}
	if err != nil && ctx.Err() == nil {
		l.warn("see what "+r.ID+" changed", err)
		o.Reason = join(o.Reason, "what it changed could not be seen: "+oneLine(err.Error(), 200))
		if _, gone := os.Stat(p.Dir); p.Dir != "" && gone == nil {
			o.Reason += "; its files are in " + p.Dir
		} else if p.Branch != "" {
			o.Reason += "; what it committed is on the branch " + p.Branch
		}
	}
	if ctx.Err() == nil {
		if text := l.hands(ctx, a.Claim, r); text != "" {
			l.tell("shared", a.Slot, text)
			l.mu.Lock()
			l.shared[placeKey(a.Claim)] = join(l.shared[placeKey(a.Claim)], text)
			l.mu.Unlock()
		}
	}
	if outcome.Resumable(r) {
		o.Resumable = true
	}
	l.excused(&o)
	if o.Refusal, err = said.Refusals(l.opt.Events, r); err != nil && ctx.Err() == nil {
		l.warn("look for what the guard refused of "+r.ID, err)
	}
	return o, nil
}

// passing reports whether what failed may work later: a full disk, or a queue, a file system
// or a remote that is not there for a moment.
func passing(err error) bool {
	return errors.Is(err, errRemote) || errors.Is(err, ErrAway) || errors.Is(err, errHeld) || queue.ForNow(err) || git.Passing(err)
}

func clip(s string, n int) string { return tell.Clip(s, n) }

func oneLine(s string, n int) string { return tell.OneLine(s, n) }

func join(a, b string) string { return outcome.Join(a, b) }
