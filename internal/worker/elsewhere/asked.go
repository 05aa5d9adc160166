package elsewhere

import (
	"context"
	"slices"
	"strings"

	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/loop/said"
	"reprise/internal/loop/tell"
	"reprise/internal/queue"
)

// Asked is a question by the item that it is about. Workers tell of what their agents ask; a
// loop in a checkout tells nobody, and of one that has died nobody knows whether it will: by
// the item alone each machine knows the question, and can answer it.
type Asked struct {
	loop.Question
	By string // the loop whose session asked
}

// AskedOf is what an agent has asked of an item that is set aside; false where nothing is asked.
func AskedOf(it *queue.Item) (Asked, bool) {
	if it.State != queue.Blocked || it.Waits != "" {
		return Asked{}, false
	}
	for _, e := range slices.Backward(it.History) {
		if e.Op == queue.OpUnpark {
			break
		}
		class, why, _ := strings.Cut(e.Note, ": ")
		if e.Op == queue.OpPark && e.Fence != 0 && (class == string(core.Asked) || class == string(core.Reported)) {
			return Asked{loop.Question{Item: it.ID, Title: it.Title, Kind: core.ByAgent, Why: why, Number: int64(e.Fence)}, loopOf(e.By)}, true
		}
	}
	return Asked{}, false
}

// OthersAsk are the questions of items of which no loop tells that is known here.
func (f *Fleet) OthersAsk(ctx context.Context, known func(item string) bool) (out []Asked, err error) {
	q, err := f.Queue(f.Project)
	if err != nil {
		return nil, err
	}
	l, err := q.List(ctx, queue.Filter{States: []queue.State{queue.Blocked}})
	if err != nil {
		return nil, err
	}
	for i := range l.Items {
		if one, ok := AskedOf(&l.Items[i]); ok && !known(one.Item) {
			out = append(out, one)
		}
	}
	return out, nil
}

// Answer puts back what no loop that is known here has set aside, with what a person says: the
// answer is then part of the item, and whichever loop is next has it. none where an item is not
// asked about so.
func (f *Fleet) Answer(ctx context.Context, say loop.Said) (back []Asked, err error) {
	q, err := f.Queue(f.Project)
	if err != nil {
		return nil, err
	}
	var to []Asked
	for _, id := range say.Items {
		it, err := q.Get(ctx, id)
		if err != nil && !queue.Over(err) {
			return nil, err
		}
		one, ok := AskedOf(&it)
		if err != nil || !ok {
			return nil, nil
		}
		to = append(to, one)
	}
	why := said.GoesOnNote
	switch {
	case say.Answer != "":
		why = said.AnsweredNote + say.Answer
	case !say.NoAnswer && len(to) > 0:
		return nil, unanswered(to, "", tell.WayAnswer)
	}
	for _, one := range to {
		if _, err := q.Unpark(ctx, one.Item, why); err != nil && !queue.Over(err) {
			return back, err
		}
		back = append(back, one)
	}
	return back, nil
}

func unanswered(list []Asked, what string, way tell.Way) error {
	e := &tell.Unsaid{Kind: loop.ErrUnanswered, What: what, Way: way}
	for _, one := range list {
		told := one.Told("", way == tell.WayItem)
		told.Why += " (the loop " + one.By + " set it aside)"
		e.Open = append(e.Open, told)
	}
	return e
}

// silent reports whether an item is asked about by a loop that tells nobody here: then only the
// item says it. own is the state of the loop on this machine, nil without one.
func silent(it *queue.Item, own *core.State, loops []Loop) (Asked, bool) {
	if own != nil && own.Items[it.ID].Parked {
		return Asked{}, false
	}
	for _, l := range loops {
		if slices.ContainsFunc(l.Questions, func(q loop.Question) bool { return q.Item == it.ID }) {
			return Asked{}, false
		}
	}
	return AskedOf(it)
}
