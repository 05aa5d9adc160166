package elsewhere

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"reprise/internal/queue"
	"reprise/internal/relay"
	"reprise/internal/run"
)

// Lost is how a run stands whose worker is quiet, while the claim for which it was begun is
// over: nobody here knows how it ended, or whether it goes on over there, and what comes of it
// counts for nothing. No record says it, for it is no more than what is known here: a worker
// that comes back tells how the run ended.
const Lost run.Status = "lost"

// Over reports whether nothing more is to be expected of the run.
func (r *Run) Over() bool { return r.Status.Settled() || r.Status == Lost }

// Elapsed is how long the run took, or has taken by now: by the servers' clock, where the run
// goes on, for this machine's and the worker's may differ.
func (r *Run) Elapsed(now time.Time) time.Duration {
	if !r.asked.IsZero() {
		now = r.asked
	}
	return r.Record.Elapsed(now)
}

// MCPStatus is the run's state in the words of the MCP tools.
func (r *Run) MCPStatus() string {
	if r.Status == Lost {
		return "failed" // they have no word of their own for it
	}
	return r.Record.MCPStatus()
}

// shift has the times of a record, which are by a clock that is ahead by so much, by the
// servers'.
func shift(r *run.Record, ahead time.Duration) {
	if ahead == 0 {
		return
	}
	for _, t := range []*time.Time{&r.StartedAt, &r.StatusUpdatedAt, r.EndedAt} {
		if t != nil && !t.IsZero() {
			*t = t.Add(-ahead)
		}
	}
	r.StartEpoch = r.StartedAt.Unix()
}

// Going are the runs that workers say go on, those of one project or with "" of all, the
// newest first; not those that this machine has a record of. Those are lost whose worker is
// quiet, and whose claim is over: they are told apart, for nobody works on them.
func (f *Fleet) Going(ctx context.Context, workers []relay.Worker, project string) (going, lost []Run) {
	for i := range workers {
		w := &workers[i]
		for _, d := range w.Doing {
			if d.Run == "" || !run.ValidID(d.Run) || project != "" && d.Project != project || f.here(d.Run) {
				continue
			}
			r := run.Record{
				V: 1, ID: d.Run, Status: run.Running, Client: d.Client, Project: d.Project, StartedAt: d.Since, StatusUpdatedAt: w.Heard,
				Origin: "loop", Heartbeat: run.Heartbeat{ToolCalls: d.ToolCalls, LastTool: d.LastTool, Tokens: d.Tokens},
			}
			if d.Since.IsZero() {
				r.StartedAt = w.Heard
			} else {
				r.StartedAt = d.Since.Add(-w.Off())
			}
			r.StartEpoch = r.StartedAt.Unix()
			one := Run{Record: r, Worker: w.Name, Item: d.Item, Quiet: w.Quiet, asked: w.Asked}
			if why := f.gone(ctx, w, d); why != "" {
				heard := w.Heard // the last time at which it is known to have gone on
				one.Status, one.StatusReason, one.EndedAt = Lost, why, &heard
				lost = append(lost, one)
				continue
			}
			going = append(going, one)
		}
	}
	slices.SortFunc(going, newer)
	slices.SortFunc(lost, newer)
	return going, lost
}

// gone is why nobody works on an item any more that a worker had, "" where it may: a worker
// that lives knows that best, and of one that is quiet the servers know whether its claim is
// over. What they do not tell changes nothing.
func (f *Fleet) gone(ctx context.Context, w *relay.Worker, d relay.Doing) string {
	if !w.Quiet {
		return ""
	}
	q, err := f.Queue(d.Project)
	if err != nil {
		return ""
	}
	it, err := q.Get(ctx, d.Item)
	if err != nil && !errors.Is(err, queue.ErrNotFound) {
		return ""
	}
	became := "is not in the queue any more"
	if err == nil {
		if became = after(&it, w, d); became == "" {
			return ""
		}
	}
	return fmt.Sprintf("its worker %s is quiet, and %s %s", w.Name, d.Item, became)
}

// after is what became of an item that a worker had, "" where it has it.
func after(it *queue.Item, w *relay.Worker, d relay.Doing) string {
	c := it.Claim
	if it.State == queue.Claimed && c != nil {
		mine := int64(c.Fence) == d.Fence
		if d.Fence == 0 { // an older worker has not told it
			mine = loopOf(c.Worker) == w.Name
		}
		switch {
		case !mine:
			return "is worked on by " + loopOf(c.Worker)
		case w.Asked.After(c.Until):
			return "is nobody's since its lease ran out"
		}
		return ""
	}
	switch it.State {
	case queue.Done:
		for _, e := range slices.Backward(it.History) {
			if e.Op == queue.OpDone && e.By != "" {
				return "was done by " + loopOf(e.By)
			}
		}
		return "is done"
	case queue.Dead:
		return "was given up"
	case queue.Blocked:
		return "is set aside"
	}
	return "is ready again"
}
