package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"reprise/internal/agent"
	"reprise/internal/git"
	"reprise/internal/loop/checkout"
	"reprise/internal/loop/core"
	"reprise/internal/loop/report"
	"reprise/internal/loop/said"
	"reprise/internal/queue"
	"reprise/internal/run"
	"reprise/internal/term"
)

// Names of the files that the loop adds to a run's directory.
const (
	iterationFile = "iteration.json"
	toolsFile     = "tools.jsonl"
	errorsFile    = "errors.jsonl"
	contextFile   = "context.json"
	summaryFile   = "summary.md"
)

// Iteration is one line of iterations.jsonl, and iteration.json in the run's directory:
// what one claim of an item came to.
type Iteration = report.Iteration

// Context is context.json: what is kept of a run whose work goes on later.
type Context struct {
	V            int             `json:"v"`
	Item         queue.Item      `json:"item"`
	Run          string          `json:"run"`
	Session      string          `json:"session"`
	Why          string          `json:"why"`
	Place        Place           `json:"place"`
	ChangedFiles []string        `json:"changed_files"`
	OpenFiles    []string        `json:"open_files"` // that its tools touched last
	Diff         string          `json:"diff,omitempty"`
	LastMessages []string        `json:"last_messages"`
	Plan         json.RawMessage `json:"plan,omitempty"` // its own list, where the client has one
	Gate         core.Gate       `json:"gate,omitempty"`
	GateText     string          `json:"gate_text,omitempty"`
	Asks         string          `json:"asks,omitempty"`
	At           time.Time       `json:"at"`
}

// archive keeps what there is to know of an iteration, and sees to its place.
func (l *Loop) archive(ctx context.Context, a core.Action) core.Event {
	s := l.State()
	p := s.Slots[a.Slot]
	it := l.iteration(ctx, a, &s, &p)
	item, err := l.opt.Queue.Get(ctx, a.Claim.Item.ID)
	switch {
	case err == nil:
		it.Title = item.Title
	case passing(err):
		return broken(a, err)
	default:
		item = queue.Item{ID: a.Claim.Item.ID}
	}
	place, placed, err := l.workplace(ctx, a)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		if passing(err) {
			return broken(a, err)
		}
		l.warn("find the workspace of "+item.ID+" again", err)
	}
	if placed {
		it.Branch, it.Place = place.Branch, place.Dir
	}
	l.touch(item.ID)
	defer l.touch(item.ID)
	l.mu.Lock()
	it.Shared = l.shared[placeKey(a.Claim)]
	l.mu.Unlock()
	r, err := l.opt.Runs.Get(a.Run)
	ran := a.Run != "" && err == nil
	var out *said.Stream
	if ran {
		l.fill(&it, r, p.From)
		out = said.Read(r.Client, r.Logs.Stdout)
		if it.Refused == "" || it.RefusedEarlier && out.Refused != "" { // where no events are kept its client may say it
			it.SetRefusal(out.Refusal())
		}
		if err := l.preserve(ctx, a, r, out, item, place, &p); err != nil {
			if passing(err) {
				return broken(a, err)
			}
			l.warn("keep the context of "+r.ID, err)
		}
	}
	if placed && a.How.Fate == core.Drop {
		if err := l.leave(ctx, place); err != nil && ctx.Err() == nil {
			return broken(a, err)
		}
	}
	if placed && a.How.Fate != core.Drop {
		var note string
		var conflict bool
		err := l.inProject(func() (err error) {
			note, conflict, err = l.opt.Places.Finish(ctx, place, item, a.How.Fate)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && passing(err):
			return broken(a, err)
		case err != nil:
			l.warn("finish the work on "+item.ID, err)
			why := "what was made could not be put in its place: " + oneLine(git.Said(err), 400)
			l.enter("keep", a.Slot, why)
			note = join(note, why)
		case conflict:
			note = join(note, l.conflict(ctx, item, place, a.Claim.Fence, note))
			if ctx.Err() != nil {
				return nil
			}
		}
		it.Note = join(place.Lacks, note)
		if it.Fate == core.Done {
			l.whereto(&it, place, item.Task != "", conflict, err)
		}
	}
	if err := l.store.record(ctx, it); err != nil {
		return broken(a, err)
	}
	l.show(it.Item, it.Words(item.Attempts, item.Limit(), l.again(&item)))
	if ran {
		if data, err := encode(it); err == nil {
			l.try(ctx, "keep the iteration", func() error {
				return l.opt.Disk.WriteFile(filepath.Join(r.Dir(), iterationFile), data, 0o600)
			})
		}
		l.trace(ctx, it, item, &r, out)
	} else {
		l.trace(ctx, it, item, nil, nil)
	}
	l.forget(a)
	l.try(ctx, "remove the claim's directory", func() error { return l.opt.Disk.RemoveAll(l.asks(a.Claim)) })
	return core.Archived{Slot: a.Slot, Seq: a.Seq}
}

// whereto says where the work of an item that is done was put, by what came of that.
func (l *Loop) whereto(it *Iteration, place Place, step, conflict bool, err error) {
	switch into := l.mergesInto(); {
	case step && err != nil:
		it.Put = report.Personal // no later loop files it, and the task would wait without a word
	case into != "" && (err != nil || conflict) && !step: // a task's own steps see to themselves
		it.Put, it.Into = report.Owed, into // a later loop takes it up
		if _, ok := errors.AsType[*PersonalError](err); ok {
			it.Put = report.Personal
		}
	case l.opt.Merges != nil && err == nil:
		it.Put = l.opt.Merges.PutAt(place)
	}
}

// forget lets go what was remembered of a claim that has ended.
func (l *Loop) forget(a core.Action) {
	key := placeKey(a.Claim)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.places, key)
	delete(l.shared, key)
	delete(l.before, key)
	delete(l.steps, key)
	delete(l.asked, a.Run)
	delete(l.ours, a.Run)
}

// again is after what time an item that goes back may be begun once more: when it is ready by the
// queue, a worker is to be had, and nothing holds all of them.
func (l *Loop) again(item *queue.Item) time.Duration {
	s, now := l.State(), l.now().Loop
	wait := max(item.NotBefore.Sub(l.opt.Now()), s.HoldUntil-now)
	if len(s.Slots) == 1 {
		wait = max(wait, s.Limits.Delay)
	}
	return wait
}

// workplace is where an iteration was worked on. A loop that took over from one that died
// finds it again, or what was made there would be left lying: not committed, not merged,
// and its worktree never removed.
func (l *Loop) workplace(ctx context.Context, a core.Action) (Place, bool, error) {
	p, ok := l.placed(a.Claim)
	if ok || a.Run == "" || a.How.Fate == core.Drop {
		return p, ok, nil
	}
	p, err := l.place(ctx, a.Claim, false)
	return p, err == nil, err
}

func (l *Loop) placed(c core.Claim) (Place, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.places[placeKey(c)]
	return p, ok
}

func (l *Loop) iteration(ctx context.Context, a core.Action, s *core.State, p *core.Slot) Iteration {
	h := a.How
	it := Iteration{
		V: 1, Loop: s.Loop, N: p.Iteration, Worker: a.Slot + 1, Item: a.Claim.Item.ID, Fence: a.Claim.Fence, Run: a.Run,
		Ended: l.opt.Now().UTC(), Fate: h.Fate, Class: string(h.Class), Reason: clip(h.Reason, 2000), Completed: h.Completed, Succeeded: h.Succeeded,
		Verified: h.Verified, Interrupt: h.Interrupt,
	}
	if o := p.Outcome; o != nil {
		it.Turns, it.CostUSD, it.Tokens, it.Session, it.Changed = o.Turns, o.Cost, o.Tokens, o.Session, &o.Changed
		it.CostUnknown = o.Untold
	}
	it.SetRefusal(h.Refusal)
	if p.From != nil {
		it.Answer = p.From.Answer
	}
	if it.Verified == core.GatePassed {
		it.But = clip(p.GateText, 300)
	}
	return it
}

func (l *Loop) fill(it *Iteration, r run.Record, from *core.Continuation) {
	it.Started, it.Session, it.ToolCalls = r.StartedAt, r.SessionID, r.Heartbeat.ToolCalls
	it.Seconds = r.Elapsed(l.opt.Now()).Seconds()
	if from != nil {
		it.Resumed = from.Run
	}
	if r.Result != nil {
		it.Summary = clip(strings.TrimSpace(r.Result.Text), 2000)
	}
	it.Transcript = agent.Transcript(r.Client, r.Command.Home, r.SessionID, l.opt.Env)
}

// conflict puts an item into the queue for what could not be merged.
func (l *Loop) conflict(ctx context.Context, item queue.Item, p Place, fence int64, why string) string {
	urgent := max(item.Urgency()-1, 0)
	what := owed{Branch: p.Branch}
	if w, ok := l.opt.Places.(Brancher); ok {
		var err error
		if what.Commit, err = w.Tip(ctx, p.Branch); err != nil {
			l.warn("look where the branch "+p.Branch+" is", err)
		}
	}
	n := queue.Item{
		Key: keyOfMerge(item.ID, uint64(fence)), Title: clip("Merge the branch "+p.Branch+": "+item.Title, 400), Priority: &urgent,
		Body:   fmt.Sprintf("The work on %s is done on the branch %s, and could not be merged into the branch that it began at, because both changed the same places, or the checks fail on the merge. Merge it by hand: bring that branch into yours, settle the conflicts in the sense of both, and see that the checks pass. It is done when that branch's commits are in yours.\n\nWhat was found: %s.", item.ID, p.Branch, why),
		Labels: item.Labels, Source: sourceLoop, Agent: item.Agent, Data: what.data(),
		NoChangeOK: true, // somebody may have merged it by then, and that is looked at
	}
	added, err := l.insist(ctx, n)
	if err != nil {
		l.warn("add an item for a conflict", err)
		return "no item could be added to merge it"
	}
	by := added[0].Item
	if err := l.waitAllFor(ctx, item.ID, by.ID); err != nil {
		l.warn("have what builds on "+item.ID+" wait for "+by.ID, err) // it does when it is claimed
	}
	return by.ID + " is to merge it"
}

// preserve writes, into the run's directory, its tool calls and errors line by line, and
// of one whose work goes on what the next session has to know.
func (l *Loop) preserve(ctx context.Context, a core.Action, r run.Record, out *said.Stream, item queue.Item, place Place, p *core.Slot) error {
	for name, data := range map[string][]byte{toolsFile: out.Tools.Bytes(), errorsFile: out.Errors.Bytes()} {
		if len(data) == 0 {
			continue
		}
		if err := l.opt.Disk.WriteFileHot(filepath.Join(r.Dir(), name), data, 0o600); err != nil {
			return err
		}
	}
	for _, name := range []string{askFile, errorFile} {
		if text, err := checkout.ReadStart(filepath.Join(l.asks(a.Claim), name), maxAsk); err == nil {
			if err := l.opt.Disk.WriteFileHot(filepath.Join(r.Dir(), name), []byte(text), 0o600); err != nil {
				return err
			}
		}
	}
	if a.How.Fate == core.Done || a.How.Fate == core.Drop {
		return nil
	}
	c := Context{
		V: 1, Item: item, Run: r.ID, Session: r.SessionID, Why: failure(a.How), Place: place, LastMessages: out.Messages, OpenFiles: out.Files,
		Plan: out.Plan, Gate: p.Verified, GateText: p.GateText, At: l.opt.Now().UTC(),
	}
	if o := p.Outcome; o != nil {
		c.Asks = cmp.Or(o.Asks, o.Reported)
	}
	if w, err := l.opt.Places.Look(ctx, place, true); err == nil {
		c.ChangedFiles, c.Diff = w.Files, w.Diff
	}
	data, err := encode(c)
	if err != nil {
		return err
	}
	if err := l.opt.Disk.WriteFile(filepath.Join(r.Dir(), contextFile), data, 0o600); err != nil {
		return err
	}
	return l.opt.Disk.WriteFile(filepath.Join(r.Dir(), summaryFile), []byte(c.summary()), 0o600)
}

// summary is the context for people, and for the session that goes on.
func (c *Context) summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: %s\n\nRun %s, session %s, stopped at %s.\n\nWhy: %s\n", c.Item.ID, c.Item.Title, c.Run, c.Session, c.At.Format(time.RFC3339), c.Why)
	if c.Asks != "" {
		fmt.Fprintf(&b, "\n## What it asks\n\n%s\n", c.Asks)
	}
	if c.GateText != "" {
		fmt.Fprintf(&b, "\n## What the checks say\n\n%s\n", c.GateText)
	}
	if len(c.ChangedFiles) > 0 {
		fmt.Fprintf(&b, "\n## Changed files, in %s\n\n", c.Place.Dir)
		for _, f := range c.ChangedFiles {
			fmt.Fprintf(&b, "- %s\n", f)
		}
	}
	if len(c.Plan) > 0 {
		fmt.Fprintf(&b, "\n## Its plan\n\n")
		for _, line := range planLines(c.Plan) {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	if len(c.LastMessages) > 0 {
		fmt.Fprintf(&b, "\n## What it said last\n\n%s\n", c.LastMessages[len(c.LastMessages)-1])
	}
	fmt.Fprintf(&b, "\nGo on with `reprise loop resume --answer \"…\"`.\n")
	return term.SafeText(b.String()) // it is looked at in terminals
}

func planLines(raw json.RawMessage) (out []string) {
	var list []struct {
		Content, Status string
	}
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	for _, t := range list {
		out = append(out, oneLine(t.Status+": "+t.Content, 300))
	}
	return out
}
