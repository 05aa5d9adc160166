package loop

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/loop/core"
	"reprise/internal/queue"
	"reprise/internal/run"
	"reprise/internal/workspace"
)

// Retention says which runs of loops may go.
type Retention struct {
	Age  time.Duration // older ones go; 0 is no bound
	Size int64         // and of the others the oldest, until they take no more bytes; 0 is no bound
}

// Old is a run that may go.
type Old struct {
	Run   string    `json:"run"`
	Dir   string    `json:"directory"`
	Ended time.Time `json:"ended"`
	Bytes int64     `json:"bytes"`
	Why   string    `json:"why"` // age or size
}

// Sweep says which runs of loops may go. One that an item goes on from stays, and so
// does one that has not ended.
func Sweep(runs []run.Record, s *core.State, r Retention, now time.Time) (out []Old) {
	needed := Needed(runs, s)
	var rest []Old
	var total int64
	for _, rec := range runs {
		if rec.Origin != "loop" || !rec.Status.Settled() || needed[rec.ID] {
			continue
		}
		o := Old{Run: rec.ID, Dir: rec.Dir(), Ended: rec.StatusUpdatedAt}
		_, o.Bytes, _ = durable.Size(o.Dir) // what cannot be looked at takes no space
		if r.Age > 0 && now.Sub(o.Ended) > r.Age {
			o.Why = "age"
			out = append(out, o)
			continue
		}
		total += o.Bytes
		rest = append(rest, o)
	}
	slices.SortFunc(rest, func(a, b Old) int { return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.Run, b.Run)) })
	for _, k := range rest {
		if r.Size <= 0 || total <= r.Size {
			break
		}
		k.Why = "size"
		out = append(out, k)
		total -= k.Bytes
	}
	slices.SortFunc(out, func(a, b Old) int { return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.Run, b.Run)) })
	return out
}

// Needed are the ids of runs that a loop goes on from, or may: those of questions that are
// open, of answers that no session was told yet, and of what was to be tried again. s is the
// loop's state, nil for none.
func Needed(runs []run.Record, s *core.State) map[string]bool {
	needed := map[string]bool{}
	if s == nil {
		return needed
	}
	for _, m := range s.Items {
		if m.From != nil {
			needed[m.From.Run] = true
		}
	}
	for i := range s.Slots {
		p := &s.Slots[i]
		needed[p.Run] = true
		if p.From != nil {
			needed[p.From.Run] = true
		}
	}
	// A session lives in the home of the first run that it had.
	for _, rec := range runs {
		if needed[rec.ID] && rec.Command.Home != "" {
			needed[filepath.Base(filepath.Dir(rec.Command.Home))] = true
		}
	}
	return needed
}

// OldPlace is the workspace of an item that has ended.
type OldPlace struct {
	Workspace string      `json:"workspace"`
	Dir       string      `json:"directory"`
	Branch    string      `json:"branch"`
	Item      string      `json:"item"`
	State     queue.State `json:"state,omitempty"` // of the item; "" where the queue has it no more
	// Stays says why it must stay: somebody works there, or has put in it what is nowhere
	// else. "" is one that may go.
	Stays string `json:"stays,omitempty"`
}

// EndedPlaces are the workspaces of items that have ended, and were not taken away: those of
// items that were given up or dropped, and what a removal has left. Commits stay on their
// branches whatever becomes of the workspace.
func EndedPlaces(ctx context.Context, w *workspace.Manager, q queue.Queue) (out []OldPlace, err error) {
	list, err := w.List()
	for _, i := range list {
		id, ok := strings.CutPrefix(i.Name, placeName(""))
		if !ok {
			continue
		}
		it, gerr := q.Get(ctx, id)
		switch {
		case errors.Is(gerr, queue.ErrNotFound):
		case gerr != nil:
			err = errors.Join(err, gerr)
			continue
		case it.State != queue.Dead && it.State != queue.Done:
			continue
		}
		o := OldPlace{Workspace: i.Name, Dir: i.Dir, Branch: i.Branch, Item: id, State: it.State}
		switch {
		case i.Kept != "":
			o.Stays = "it is to be kept: " + i.Kept
		case len(i.Live) > 0:
			o.Stays = "somebody works there: " + i.Live[0].String()
		case i.Status != string(workspace.Ready) && i.Status != "missing":
			o.Stays = i.Status
		default:
			losses, lerr := w.Losses(ctx, i.Name)
			if lerr != nil {
				err = errors.Join(err, lerr)
				continue
			}
			var what []string
			for _, l := range losses {
				what = append(what, l.What)
			}
			o.Stays = strings.Join(what, "; ")
		}
		out = append(out, o)
	}
	return out, err
}
