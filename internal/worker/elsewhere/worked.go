package elsewhere

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/loop/outcome"
	"reprise/internal/queue"
	"reprise/internal/relay"
)

// spent is what a run came to, beside its record.
type spent struct {
	CostUSD float64 `json:"cost_usd"`
	Tokens  int64   `json:"tokens"`
	Turns   int     `json:"turns"`
}

// fates are what became of claims, by the word that an item's history has for it.
var fates = map[string]core.Fate{queue.OpDone: core.Done, queue.OpFail: core.Retry, queue.OpRelease: core.Release, queue.OpLose: core.Drop, queue.OpPark: core.Park}

// loopOf is the loop that a claim's name means, without which of its workers has it.
func loopOf(by string) string {
	name, ok := strings.CutSuffix(strings.TrimRight(by, "0123456789"), "-")
	if !ok || strings.HasSuffix(by, "-") {
		return by
	}
	return name
}

// Worked is what claims of the project's items came to on other machines, in the order in
// which they ended, as a loop here tells of its own: by the items, for as long as the queue
// has them, and by what workers told of the runs, for as long as the servers have that
// (seven days). here says of a claim that it was this machine's.
func (f *Fleet) Worked(ctx context.Context, here func(item string, fence int64) bool) ([]loop.Iteration, error) {
	q, err := f.Queue(f.Project)
	if err != nil {
		return nil, err
	}
	l, err := q.List(ctx, queue.Filter{})
	if err != nil {
		return nil, err
	}
	told, err := f.Relay().EndedRuns(ctx)
	if err != nil {
		return nil, err
	}
	type claim struct {
		item  string
		fence int64
	}
	runs := map[claim]endedRun{}
	for _, e := range told {
		var d endedRun
		if json.Unmarshal(e.Doc, &d) == nil && d.ID == e.Run && d.Status.Valid() {
			shift(&d.Record, relay.Ahead(d.Told, e.At))
			if item, fence := loop.ClaimOf(d.Record); item != "" {
				runs[claim{item, fence}] = d
			}
		}
	}
	var out []loop.Iteration
	for i := range l.Items {
		it := &l.Items[i]
		for n, e := range it.History {
			fate, ok := fates[e.Op]
			if !ok || e.Fence == 0 || here(it.ID, int64(e.Fence)) { // without a number a person has parked it
				continue
			}
			w := loop.Iteration{V: 1, Item: it.ID, Title: it.Title, Fence: int64(e.Fence), Ended: e.At, Fate: fate, Reason: e.Note, On: cmp.Or(loopOf(e.By), "another machine")}
			last := n == len(it.History)-1
			if fate == core.Retry && last && it.State == queue.Dead {
				w.Fate = core.GiveUp
			}
			if d, ok := runs[claim{it.ID, int64(e.Fence)}]; ok {
				d.tell(&w)
			}
			if fate == core.Done {
				w.Reason, w.Summary = "", e.Note
			}
			if it.Result != nil && (w.Run == "" || w.Run == it.Result.Run) && (last || fate == core.Done) {
				result(&w, it.Result)
			}
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(a, b loop.Iteration) int { return a.Ended.Compare(b.Ended) })
	return out, nil
}

// tell has in an iteration what its worker has told of the run.
func (d *endedRun) tell(w *loop.Iteration) {
	w.On, w.Run, w.Session, w.Started, w.ToolCalls = cmp.Or(d.Worker, w.On), d.ID, d.SessionID, d.StartedAt, d.Heartbeat.ToolCalls
	w.Seconds = d.Elapsed(w.Ended).Seconds()
	if d.Spent != nil {
		w.CostUSD, w.Tokens, w.Turns = d.Spent.CostUSD, d.Spent.Tokens, d.Spent.Turns
		w.CostUnknown = outcome.Untold(d.Record, w.CostUSD, w.Tokens, w.Turns)
	}
}

// result has in an iteration what the queue keeps of it with the item.
func result(w *loop.Iteration, o *queue.Outcome) {
	var data struct {
		Completed, Succeeded bool
		Verified             core.Gate
		Branch, Commit       string
		Lacks                string
		Refused              core.Refusal
	}
	_ = json.Unmarshal(o.Data, &data) // of a person's or a script's claim it may be anything
	w.Run, w.Session, w.Summary = cmp.Or(w.Run, o.Run), cmp.Or(w.Session, o.Session), cmp.Or(o.Summary, w.Summary)
	w.Completed, w.Succeeded, w.Verified, w.Branch, w.Commit, w.Note = data.Completed, data.Succeeded, data.Verified, data.Branch, data.Commit, data.Lacks
	w.SetRefusal(data.Refused)
	w.Reason = strings.TrimSuffix(w.Reason, "; "+data.Refused.Words()) // a note of the history has it, too
}
