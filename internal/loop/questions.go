package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"reprise/internal/loop/core"
	"reprise/internal/loop/report"
	"reprise/internal/loop/tell"
	"reprise/internal/queue"
)

// What can be wrong with what a person says to a loop. Who says it is told the rest in
// words.
var (
	// ErrWhich says that more than one question is open, and not which is meant.
	ErrWhich = errors.New("more than one question is open")
	// ErrUnanswered says that a question would go without an answer.
	ErrUnanswered = errors.New("a question would go without an answer")
	// ErrCeiling says that the loop waits at a ceiling, which nobody has raised.
	ErrCeiling = errors.New("the loop waits at a ceiling")
	// ErrNothingWaits says that nothing waits for what was said.
	ErrNothingWaits = errors.New("nothing waits for this")
)

// Question is what a person must decide of an item, or has decided and no session was told
// yet.
type Question = report.Question

// Questions are what waits for a person by a state, and what was answered and not told
// yet, by item. dir is the loop's directory, in which answers lie that no loop has read.
// Whoever somebody has dropped, or worked on otherwise, waits for nobody.
func Questions(ctx context.Context, dir string, s *core.State, q queue.Queue) ([]Question, error) {
	if s == nil {
		return nil, nil
	}
	var out []Question
	for id, m := range s.Items {
		if one, ok := questionOf(ctx, s, q, id, m); ok {
			out = append(out, one)
		}
	}
	slices.SortFunc(out, func(a, b Question) int { return cmp.Compare(a.Item, b.Item) })
	requests, err := pending(dir)
	for _, r := range requests {
		for i := range out {
			heard(&out[i], &r)
		}
	}
	return out, err
}

func questionOf(ctx context.Context, s *core.State, q queue.Queue, id string, m core.Memory) (one Question, ok bool) {
	it, err := q.Get(ctx, id)
	there := err == nil
	if errors.Is(err, queue.ErrNotFound) || there && (it.State == queue.Done || it.State == queue.Dead) {
		return one, false
	}
	one = Question{Item: id, Title: it.Title, Kind: m.Kind, Why: m.Asked, Number: m.Number}
	if f := m.From; !m.Parked {
		byHand := there && it.State == queue.Blocked && !slices.Contains(s.Unpark, id) // a person has it set aside
		if f == nil || f.Number == 0 || s.Begun(id) || byHand {
			return one, false
		}
		one.Why, one.Number, one.Answer, one.Going = f.Asked, f.Number, f.Answer, true
		return one, true
	}
	if one.Kind == "" { // a state of an older program: the queue has it in words
		one.Kind, one.Why = core.ParkedBy(cmp.Or(one.Why, it.Reason))
	}
	one.Why = cmp.Or(one.Why, it.Reason)
	one.Going = there && it.State != queue.Blocked // somebody has put it back
	return one, true
}

// heard takes, for a question, into account what a person has left for the loop, and no loop has read.
func heard(q *Question, r *Request) {
	switch {
	case r.Kind != "resume":
	case len(r.Items) > 0 && (!slices.Contains(r.Items, q.Item) || r.Number != 0 && q.Number != 0 && r.Number != q.Number):
	case r.Answer != "":
		if len(r.Items) > 0 || q.Kind == core.ByPerson {
			q.Answer = r.Answer
		}
	case r.NoAnswer || len(r.Items) > 0 || !q.Asked():
		q.Going = true
		if r.NoAnswer && len(r.Items) > 0 {
			q.Answer = "" // the last word counts
		}
	}
}

// pending are the requests that no loop has done yet, the oldest first. What cannot be read
// is left to the loop, which says so.
func pending(dir string) ([]Request, error) {
	var out []Request
	err := readRequests(dir, func(r Request, err error) {
		if err == nil {
			out = append(out, r)
		}
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return out, err
}

// Pending are the kinds of what was asked of a loop and it has not read yet, answers left
// out, the oldest first, and last by how much ceilings are to be raised. dir is the loop's
// directory.
func Pending(dir string, s *core.State) (kinds []string, err error) {
	list, err := pending(dir)
	more := waiting(list, s)
	for _, r := range list {
		if r.Kind != "resume" && (r.Loop == "" || r.Loop == s.Loop) && !slices.Contains(kinds, r.Kind) {
			kinds = append(kinds, r.Kind)
		}
	}
	if words := more.Words(); words != "" {
		kinds = append(kinds, "more ("+words+")")
	}
	return kinds, err
}

// waiting is by how much the ceilings of a loop are to be raised by requests that it has not
// read yet.
func waiting(list []Request, s *core.State) (more More) {
	for _, r := range list {
		if m := r.More; m != nil && r.Kind == "resume" && (r.Loop == "" || r.Loop == s.Loop) && !slices.Contains(s.Heard, r.name) {
			more.USD, more.Tokens = more.USD+m.USD, more.Tokens+m.Tokens
			more.Iterations, more.Time = more.Iterations+m.Iterations, more.Time+m.Time
		}
	}
	return more
}

// Raised is a state with the ceilings that it will have once it has read what was asked of it.
// dir is the loop's directory.
func Raised(dir string, s *core.State) (core.State, error) {
	list, err := pending(dir)
	out := s.Clone()
	out.Limits.Raise(waiting(list, s))
	return out, err
}

// PutBack is [queue.Queue.Unpark] for a person. What an agent has asked of the item is not
// passed over in silence: while it is open the item stays where it is, and the error is
// [ErrUnanswered] with how it is answered, or let go on without an answer. dir is the loop's
// directory, "" where there is no loop.
func PutBack(ctx context.Context, dir string, q queue.Queue, id, why string) (queue.Item, error) {
	if dir == "" {
		return q.Unpark(ctx, id, why)
	}
	s, err := ReadState(dir)
	if err != nil {
		return queue.Item{}, err
	}
	it, err := q.Get(ctx, id) // which takes a key, too
	if err != nil {
		return it, err
	}
	list, err := Questions(ctx, dir, s, q)
	if err != nil {
		return it, err
	}
	for _, one := range append(list, settling(s)...) {
		if one.Item == it.ID && one.Open() && one.Asked() {
			return it, &tell.Unsaid{Kind: ErrUnanswered, What: "it stays set aside", Way: tell.WayItem, Open: []tell.OpenQuestion{one.Told("", true)}}
		}
	}
	return q.Unpark(ctx, id, why)
}

// settling are questions that the queue knows of, and the state does not yet.
func settling(s *core.State) (out []Question) {
	if s == nil {
		return nil
	}
	for i := range s.Slots {
		if p := &s.Slots[i]; p.Step == core.Settling && p.Settle != nil && p.Settle.Fate == core.Park {
			out = append(out, Question{Item: p.Claim.Item.ID, Kind: p.Settle.Interrupt, Why: p.Settle.Reason, Number: p.Claim.Fence})
		}
	}
	return out
}

// Said is what a person says to a loop that waits.
type Said struct {
	Answer   string
	Items    []string // none is whatever is open, where that is one thing
	NoAnswer bool     // what agents ask may go without an answer
	More     *More
}

// Requests are what a loop is to be asked for so that it does what a person says; an answer
// is for one question each. The error is one of those above where it cannot be said so.
func Requests(s *core.State, list []Question, say Said) ([]Request, error) {
	if say.Answer == "" {
		return silent(s, list, say)
	}
	to, all, err := addressed(s, list, say)
	if err != nil {
		return nil, err
	}
	if all {
		return []Request{{Kind: "resume", Answer: say.Answer, Number: s.Interrupt.Number, More: say.More}}, nil
	}
	var out []Request
	for _, q := range to {
		out = append(out, Request{Kind: "resume", Answer: say.Answer, Items: []string{q.Item}, Number: q.Number})
	}
	out[0].More = say.More
	return out, nil
}

// addressed are the questions that an answer is for; all says that it is for everything that
// a person's interrupt has stopped, or is stopping.
func addressed(s *core.State, list []Question, say Said) (to []Question, all bool, err error) {
	var open []Question
	for _, q := range list {
		if q.Open() {
			open = append(open, q)
		}
	}
	if len(say.Items) > 0 {
		for _, id := range say.Items {
			i := slices.IndexFunc(list, func(q Question) bool { return q.Item == id })
			if i < 0 {
				return nil, false, &tell.Unsaid{Kind: ErrNothingWaits, What: "no question of " + id + " is open", Open: opened(open)}
			}
			to = append(to, list[i])
		}
		return to, false, nil
	}
	ofPerson := func(q Question) bool { return q.Kind == core.ByPerson && q.Why == open[0].Why }
	same := len(open) > 0 && !slices.ContainsFunc(open, func(q Question) bool { return !ofPerson(q) })
	if i := s.Interrupt; i != nil && i.Halt && s.Phase == core.Waiting && (same || len(open) == 0) {
		return nil, true, nil
	}
	if len(open) == 1 || same {
		return open, false, nil
	}
	if len(open) == 0 { // what goes on can still be told, until its session begins
		switch {
		case len(list) == 1:
			return list, false, nil
		case len(list) > 1:
			return nil, false, &tell.Unsaid{Kind: ErrWhich, Way: tell.WayTell, Open: opened(list)}
		case s.Interrupt != nil:
			return nil, false, untold(s)
		}
		return nil, false, &tell.Unsaid{Kind: ErrNothingWaits, What: "no question is open"}
	}
	return nil, false, &tell.Unsaid{Kind: ErrWhich, Way: tell.WayWhich, Open: opened(open)}
}

// silent is for who lets a loop go on without an answer.
func silent(s *core.State, list []Question, say Said) ([]Request, error) {
	r := Request{Kind: "resume", Items: say.Items, NoAnswer: say.NoAnswer, More: say.More}
	var asked []Question
	for _, q := range list {
		if q.Open() && q.Asked() && (len(say.Items) == 0 || slices.Contains(say.Items, q.Item)) {
			asked = append(asked, q)
		}
	}
	for _, id := range say.Items {
		if !slices.ContainsFunc(list, func(q Question) bool { return q.Item == id }) {
			return nil, &tell.Unsaid{Kind: ErrNothingWaits, What: id + " is not set aside"}
		}
	}
	// A pause ends, a ceiling is raised, and a rate limit is not waited for, beside what is
	// open; and so ends what a loop waits for that is no question of an item.
	i := s.Interrupt
	ends := s.Phase == core.Waiting && i != nil && (i.Halt || len(i.Items) == 0)
	beside := len(say.Items) == 0 && (say.More != nil || s.Phase == core.Paused || limited(s) || ends)
	if len(asked) > 0 && !say.NoAnswer && !beside {
		return nil, &tell.Unsaid{Kind: ErrUnanswered, Way: tell.WayAnswer, Open: opened(asked)}
	}
	if why := atCeiling(s, say); why != "" {
		return nil, &tell.Unsaid{Kind: ErrCeiling, What: oneLine(s.Interrupt.Why, 200), Way: tell.WayCeiling, Command: why}
	}
	return []Request{r}, nil
}

// atCeiling is how a loop is let go on that waits at a ceiling, where what a person says does
// not do that; "" where it does, or the loop waits for something else.
func atCeiling(s *core.State, say Said) string {
	i := s.Interrupt
	if s.Phase != core.Waiting || i == nil || i.Kind != core.ByBudget || i.Halt || len(i.Items) > 0 || len(say.Items) > 0 {
		return ""
	}
	raised := s.Clone()
	if m := say.More; m != nil {
		raised.Limits.Raise(*m)
	}
	if !raised.AtCeiling() {
		return ""
	}
	return tell.GoOn(i.Kind, MetricsOf(raised))
}

// TakesBack reports whether who lets items go on without an answer takes back one that was
// given, and that no session was told yet.
func (say *Said) TakesBack(list []Question) bool {
	return say.NoAnswer && slices.ContainsFunc(list, func(q Question) bool { return q.Answer != "" && slices.Contains(say.Items, q.Item) })
}

// opened are questions that are open here.
func opened(list []Question) (out []tell.OpenQuestion) {
	for _, q := range list {
		out = append(out, q.Told("", false))
	}
	return out
}

// untold is why no answer can be given to a loop that waits for none.
func untold(s *core.State) *tell.Unsaid {
	e := &tell.Unsaid{Kind: ErrNothingWaits, Way: tell.WayGoOn, Command: tell.GoOn(s.Interrupt.Kind, MetricsOf(*s)),
		What: fmt.Sprintf("the loop waits, but no session would be told (%s: %s)", s.Interrupt.Kind, oneLine(s.Interrupt.Why, 200))}
	if s.Interrupt.Kind == core.ByBudget {
		e.Way = tell.WayHigher
	}
	return e
}

// limited reports whether a loop begins nothing because a service has named a time, which a
// person may know better, as who has logged in otherwise meanwhile.
func limited(s *core.State) bool { return s.Phase == core.Working && s.Limited() }

// Waits reports whether anything waits for a person who lets a loop go on without an answer:
// a pause, an interrupt, a question that is open, or a rate limit with a time. What was asked of the loop in dir, and it
// has not read yet, counts.
func Waits(dir string, s *core.State, list []Question) bool {
	if s.Phase == core.Paused || s.Phase == core.Waiting || limited(s) || s.Interrupt != nil && s.Phase != core.Finished ||
		slices.ContainsFunc(list, func(q Question) bool { return q.Open() }) || len(settling(s)) > 0 {
		return true
	}
	for i := range s.Slots { // which is being stopped for a question
		if why := s.Slots[i].Stop; why == core.StopAsk || why == core.StopPerson {
			return true
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, interruptFile)); err == nil {
		return true
	}
	requests, err := pending(dir)
	return err != nil || slices.ContainsFunc(requests, func(r Request) bool { return r.Kind == "pause" || r.Kind == "interrupt" })
}

// Ending reports whether a loop that runs begins nothing any more, or was asked to end: what
// is said to it is for the next one.
func Ending(dir string, s *core.State) (bool, error) {
	if s.Phase == core.Draining || s.Phase == core.Stopping {
		return true, nil
	}
	requests, err := pending(dir)
	return slices.ContainsFunc(requests, func(r Request) bool { return r.Kind == "stop" }), err
}
