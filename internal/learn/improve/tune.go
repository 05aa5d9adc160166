package improve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"reprise/internal/event"
	"reprise/internal/learn"
	"reprise/internal/recall"
)

// Options of a [Tuner]. Index, Organizer, Record and Now are required.
type Options struct {
	Index     *recall.Index
	Organizer *learn.Organizer
	// Record appends an event to the log that it belongs to.
	Record func(context.Context, event.Event) error
	Now    func() time.Time
	// Tokens is the budget of what is told with a prompt; default 500.
	Tokens int
	// MinUses is how many things have to have been used since the scope was
	// looked at last before it is looked at again; default 12.
	MinUses int
	// Recalls are the most past recalls that are replayed; default 60.
	Recalls int
	// Progress, if not nil, is told before each replay which of how many it is, from 1:
	// of those that are known of by then.
	Progress func(n, of int)
}

// Tuner looks for a policy that would have done better. It is deterministic: the
// same history comes to the same policy.
type Tuner struct{ o Options }

// NewTuner returns a tuner. It touches nothing.
func NewTuner(o Options) *Tuner {
	if o.Tokens <= 0 {
		o.Tokens = 500
	}
	if o.MinUses <= 0 {
		o.MinUses = 12
	}
	if o.Recalls <= 0 {
		o.Recalls = 60
	}
	return &Tuner{o: o}
}

// step is by how much a weight or threshold may change at once.
const step = 0.1

const (
	better = 1e-4  // of the score, to be worth a new policy
	clear  = 0.003 // of the margin, where the score is the same
	least  = 4     // recalls with a use that an evaluation needs
)

// bucketTune holds how far the evaluation of a scope has come, by scope.
const bucketTune = "improve.tune"

// progress is an evaluation on its way.
type progress struct {
	Seq    int    `json:"seq"`   // changes of this value: who finds another one has been overtaken
	Day    int    `json:"day"`   // on which it was looked at last
	Since  int    `json:"since"` // day of the last whole round: what was used before is no news
	Parent string `json:"parent,omitempty"`

	Base       recall.Policy    `json:"base,omitzero"`
	Recalls    []learn.Recalled `json:"recalls,omitempty"` // the oldest first
	Candidates []candidate      `json:"candidates,omitempty"`
	Combined   bool             `json:"combined,omitempty"` // the one that joins the good ones is among them
	Barred     []recall.Policy  `json:"barred,omitempty"`   // somebody went back from them
	// Pending is the change that was decided on: it is recorded next, under this
	// id, until the log has it.
	Pending *event.Event `json:"pending,omitempty"`
}

// candidate is a policy and what it has come to so far; the first is the one in
// force.
type candidate struct {
	Name   string        `json:"name"`
	Policy recall.Policy `json:"policy"`
	Units  []unit        `json:"units,omitempty"`
	// Lean are sums of signals over used and unused results, of the first.
	Lean map[string]*lean `json:"lean,omitempty"`
}

type lean struct {
	Used, Unused   float64
	NUsed, NUnused int
}

func (l *lean) diff() float64 {
	if l == nil || l.NUsed == 0 || l.NUnused == 0 {
		return 0
	}
	return l.Used/float64(l.NUsed) - l.Unused/float64(l.NUnused)
}

// Outcome is what a step of tuning came to.
type Outcome struct {
	Scope   learn.PolicyScope `json:"scope"`
	Done    bool              `json:"done"`              // nothing is left to do for now
	Why     string            `json:"why"`               // in words
	Adopted string            `json:"adopted,omitempty"` // id of the new policy
	Replay  *learn.Replay     `json:"replay,omitempty"`
	Tried   []Tried           `json:"tried,omitempty"`
}

// Tried is a candidate with its score.
type Tried struct {
	Name  string      `json:"name"`
	Score learn.Score `json:"score"`
	// Worse says that it loses in a half of the recalls, or in all.
	Worse bool `json:"worse"`
}

// Work goes on with the evaluation of a scope, or begins one that is due: at most
// once a day, and once enough has been used. It stops when over says so, after
// at least one replay; the next call goes on.
func (t *Tuner) Work(ctx context.Context, s learn.PolicyScope, over func() bool) (Outcome, error) {
	out, err := t.work(ctx, s, over)
	if errors.Is(err, errOvertaken) {
		return done(out, "another session is at it"), nil
	}
	return out, err
}

func (t *Tuner) work(ctx context.Context, s learn.PolicyScope, over func() bool) (Outcome, error) {
	out := Outcome{Scope: s}
	p, err := t.load(ctx, s)
	if err != nil {
		return out, err
	}
	today := int(t.o.Now().Unix() / 86400)
	if p.Pending != nil {
		return t.adopt(ctx, s, p)
	}
	if len(p.Recalls) > 0 {
		now, err := t.o.Organizer.PolicyFor(ctx, s, time.Time{})
		if err != nil {
			return out, err
		}
		if now.ID != p.Parent { // somebody changed it meanwhile
			p = &progress{Seq: p.Seq, Day: p.Day, Since: p.Since}
		}
	}
	if len(p.Recalls) == 0 {
		if p.Day >= today {
			return done(out, "it was looked at today"), nil
		}
		ok, err := t.begin(ctx, s, p, t.o.MinUses)
		if err != nil {
			return out, err
		}
		if !ok {
			p.Day = today // the look itself has its price
			if err := t.store(ctx, s, p); err != nil {
				return out, err
			}
			return done(out, fmt.Sprintf("too little was used since the last time (%d things are needed)", t.o.MinUses)), nil
		}
	}
	finished, err := t.run(ctx, p, over)
	if err != nil {
		return out, err
	}
	if !finished {
		out.Why = "the budget ended first; the next session goes on"
		return out, t.store(ctx, s, p)
	}
	best, tried := choose(p)
	out.Tried = tried
	out.Replay = p.replayOf(best)
	p.Day, p.Since = today, today
	if best == 0 {
		*p = progress{Seq: p.Seq, Day: p.Day, Since: p.Since}
		out = done(out, "no other policy would have done better")
		return out, t.store(ctx, s, p)
	}
	e, err := t.change(ctx, s, p, best)
	if err != nil {
		return out, err
	}
	p.Pending = &e
	if err := t.store(ctx, s, p); err != nil {
		return out, err
	}
	a, err := t.adopt(ctx, s, p)
	a.Tried, a.Replay = out.Tried, out.Replay
	return a, err
}

// Try runs an evaluation to its end, whether one is due or not, and keeps nothing
// of it; with adopt it records the best policy.
func (t *Tuner) Try(ctx context.Context, s learn.PolicyScope, adopt bool) (Outcome, error) {
	out := Outcome{Scope: s, Done: true}
	p := &progress{}
	ok, err := t.begin(ctx, s, p, 0)
	if err != nil {
		return out, err
	}
	if !ok {
		return done(out, fmt.Sprintf("there is too little to learn from: in %d past recalls at least something has to have been used", least)), nil
	}
	if _, err := t.run(ctx, p, func() bool { return false }); err != nil {
		return out, err
	}
	best, tried := choose(p)
	out.Tried, out.Replay = tried, p.replayOf(best)
	switch {
	case best == 0:
		return done(out, "no other policy would have done better"), nil
	case !adopt:
		return done(out, "it would do better with "+p.Candidates[best].Name), nil
	}
	e, err := t.change(ctx, s, p, best)
	if err != nil {
		return out, err
	}
	if err := t.o.Record(ctx, e); err != nil {
		return out, fmt.Errorf("record the new policy for %s: %w", s, err)
	}
	out.Adopted = e.ID
	return done(out, "a new policy is in force"), nil
}

func done(o Outcome, why string) Outcome {
	o.Done, o.Why = true, why
	return o
}

func usesOf(list []learn.Recalled) int {
	n := 0
	for _, r := range list {
		n += len(r.Used)
	}
	return n
}

func (t *Tuner) load(ctx context.Context, s learn.PolicyScope) (*progress, error) {
	p := &progress{}
	err := t.o.Index.View(ctx, func(tx *recall.Tx) error {
		b, ok, err := tx.Load(bucketTune, key(s))
		if err == nil && ok && json.Unmarshal(b, p) != nil {
			*p = progress{} // of another version: it begins anew
		}
		return err
	})
	return p, err
}

func key(s learn.PolicyScope) string { return s.Project + "\t" + s.Role }

// store keeps the progress, unless another process has kept its own meanwhile.
func (t *Tuner) store(ctx context.Context, s learn.PolicyScope, p *progress) error {
	err := t.o.Index.Update(ctx, func(tx *recall.Tx) error {
		var now progress
		b, ok, err := tx.Load(bucketTune, key(s))
		if err != nil {
			return err
		}
		if ok && json.Unmarshal(b, &now) == nil && now.Seq != p.Seq {
			return errOvertaken
		}
		next := *p
		next.Seq++
		if b, err = json.Marshal(next); err != nil {
			return err
		}
		return tx.Store(bucketTune, key(s), b)
	})
	if err != nil {
		return fmt.Errorf("tune recall for %s: %w", s, err)
	}
	p.Seq++
	return nil
}

var errOvertaken = errors.New("another process is at it")

// begin takes the recalls that an evaluation goes by; ok is false where too
// little was used.
func (t *Tuner) begin(ctx context.Context, s learn.PolicyScope, p *progress, need int) (ok bool, err error) {
	list, uses, err := t.past(ctx, s)
	if err != nil {
		return false, err
	}
	all, err := t.o.Organizer.Policies(ctx)
	if err != nil {
		return false, err
	}
	after := lastChange(all, s)
	fresh := 0
	for _, r := range list {
		if r.Time.After(after) && dayOf(r.Time) >= p.Since {
			fresh += len(r.Used)
		}
	}
	if need > 0 && fresh < need || uses < least {
		return false, nil
	}
	base, err := t.o.Organizer.PolicyFor(ctx, s, time.Time{})
	if err != nil {
		return false, err
	}
	p.Base, p.Parent, p.Recalls = learn.Bounded(base), base.ID, list
	p.Candidates = []candidate{{Name: "in force", Policy: p.Base}}
	p.Barred = barred(all, s)
	return true, nil
}

func dayOf(t time.Time) int { return int(t.Unix() / 86400) }

// past are the recalls of a scope, the oldest first, and how many of them had a
// use.
func (t *Tuner) past(ctx context.Context, s learn.PolicyScope) ([]learn.Recalled, int, error) {
	list, err := t.o.Organizer.Recalls(ctx, t.o.Recalls, func(r learn.Recalled) bool {
		return (s.Project == "" || r.Reader.Project == s.Project) && (s.Role == "" || r.Reader.Role == s.Role)
	})
	slices.Reverse(list)
	used := 0
	for _, r := range list {
		if len(r.Used) > 0 {
			used++
		}
	}
	return list, used, err
}

// lastChange is when the scope's own policy changed last.
func lastChange(all []learn.PolicyVersion, s learn.PolicyScope) (last time.Time) {
	for _, v := range all {
		if v.For == s {
			last = v.Time
		}
	}
	return last
}

// barred are the policies of a scope that somebody went back from: that word
// stands.
func barred(all []learn.PolicyVersion, s learn.PolicyScope) []recall.Policy {
	var out []recall.Policy
	for _, r := range all {
		for _, v := range all {
			if r.Op == learn.PolicyRollback && r.For == s && v.ID == r.Parent && v.Policy != nil {
				out = append(out, *v.Policy)
			}
		}
	}
	return out
}

// run replays until everything is replayed (finished) or over says so.
func (t *Tuner) run(ctx context.Context, p *progress, over func() bool) (finished bool, err error) {
	for {
		err = t.o.Index.View(ctx, func(tx *recall.Tx) error {
			finished, err = t.replays(ctx, tx, p, over)
			return err
		})
		if err != nil || !finished {
			return finished, err
		}
		if len(p.Candidates) == 1 {
			if p.Candidates = append(p.Candidates, proposals(p)...); len(p.Candidates) > 1 {
				continue
			}
			return true, nil
		}
		if p.Combined {
			return true, nil
		}
		p.Combined = true
		joined, ok := combine(p)
		if !ok {
			return true, nil
		}
		p.Candidates = append(p.Candidates, joined)
	}
}

func (t *Tuner) replays(ctx context.Context, tx *recall.Tx, p *progress, over func() bool) (bool, error) {
	n := 0
	for i := range p.Candidates {
		c := &p.Candidates[i]
		for len(c.Units) < len(p.Recalls) {
			if n > 0 && over() {
				return false, nil
			}
			if err := ctx.Err(); err != nil {
				return false, err
			}
			if t.o.Progress != nil {
				t.o.Progress(i*len(p.Recalls)+len(c.Units)+1, len(p.Candidates)*len(p.Recalls))
			}
			r := p.Recalls[len(c.Units)]
			u, a, err := replay(ctx, tx, t.o.Index, r, c.Policy, t.o.Tokens, i == 0)
			if err != nil {
				return false, err
			}
			if i == 0 {
				c.learnFrom(r, a)
			}
			c.Units = append(c.Units, u)
			n++
		}
	}
	return true, nil
}

// learnFrom adds up what signals and classes used and unused results had.
func (c *candidate) learnFrom(r learn.Recalled, a recall.Answer) {
	if c.Lean == nil {
		c.Lean = map[string]*lean{}
	}
	add := func(name string, v float64, used bool) {
		l := c.Lean[name]
		if l == nil {
			l = &lean{}
			c.Lean[name] = l
		}
		if used {
			l.Used += v
			l.NUsed++
		} else {
			l.Unused += v
			l.NUnused++
		}
	}
	if len(r.Used) == 0 {
		return
	}
	for _, d := range a.Results {
		used := slices.Contains(r.Used, d.ID)
		for _, name := range recall.WeightNames() {
			add(name, d.Signals[name], used)
		}
		add("neighbours", d.Signals["neighbours"], used)
		add("class:"+string(d.Class), 1, used)
	}
}

// proposals are policies one step from the one in force: a weight whose signal
// the used results had more of counts more, one that the others had more of
// less; then the threshold, the diversity and the budgets of classes.
func proposals(p *progress) []candidate {
	base := p.Candidates[0]
	type lead struct {
		name string
		diff float64
	}
	var leads []lead
	for _, name := range recall.WeightNames() {
		if d := base.Lean[name].diff(); d != 0 {
			leads = append(leads, lead{name, d})
		}
	}
	// What neighbours lend is not told apart by weight: all of them go together.
	if d := base.Lean["neighbours"].diff(); d != 0 {
		for _, name := range []string{"before", "after", "session"} {
			leads = append(leads, lead{name, d / 4})
		}
	}
	slices.SortStableFunc(leads, func(a, b lead) int {
		return cmp.Or(cmp.Compare(abs(b.diff), abs(a.diff)), cmp.Compare(a.name, b.name))
	})
	var out []candidate
	put := func(name string, change func(*recall.Policy)) {
		next := clone(p.Base)
		change(&next)
		next = learn.Bounded(next)
		if !same(next, p.Base) && len(out) < 14 {
			out = append(out, candidate{Name: name, Policy: next})
		}
	}
	for _, l := range leads[:min(len(leads), 6)] {
		put(l.name+sign(l.diff), func(next *recall.Policy) { next.Weights[l.name] = weightOf(p.Base, l.name) * (1 + step*unitOf(l.diff)) })
	}
	for _, d := range []float64{1, -1} {
		put("threshold"+sign(d), func(next *recall.Policy) { next.Threshold *= 1 + step*d })
	}
	for _, d := range []float64{1, -1} {
		put("diversity"+sign(d), func(next *recall.Policy) { next.Diversity *= 1 + step*d })
	}
	all, used := 0, 0
	for _, class := range slices.Sorted(maps.Keys(p.Base.Budget)) {
		if l := base.Lean["class:"+string(class)]; l != nil {
			all, used = all+l.NUsed+l.NUnused, used+l.NUsed
		}
	}
	for _, class := range slices.Sorted(maps.Keys(p.Base.Budget)) {
		l := base.Lean["class:"+string(class)]
		if l == nil || l.NUsed+l.NUnused < 8 {
			continue
		}
		rate, mean := float64(l.NUsed)/float64(l.NUsed+l.NUnused), float64(used)/float64(all)
		d := 0.0
		switch {
		case rate < mean/2:
			d = -1
		case rate > mean*1.5:
			d = 1
		}
		if d != 0 {
			put("budget of "+string(class)+sign(d), func(next *recall.Policy) { next.Budget[class] = int(float64(next.Budget[class]) * (1 + step*d)) })
		}
	}
	return out
}

func weightOf(p recall.Policy, name string) float64 {
	if v, ok := p.Weights[name]; ok {
		return v
	}
	v, _ := recall.StandardWeight(name)
	return v
}

func abs(f float64) float64 { return max(f, -f) }

func unitOf(f float64) float64 {
	if f < 0 {
		return -1
	}
	return 1
}

func sign(f float64) string {
	if f < 0 {
		return " −10 %"
	}
	return " +10 %"
}

func clone(p recall.Policy) recall.Policy {
	p.Weights, p.TopK, p.Budget = maps.Clone(p.Weights), maps.Clone(p.TopK), maps.Clone(p.Budget)
	if p.Weights == nil {
		p.Weights = map[string]float64{}
	}
	return p
}

func same(a, b recall.Policy) bool {
	return a.Threshold == b.Threshold && a.Diversity == b.Diversity && maps.Equal(a.Weights, b.Weights) && maps.Equal(a.TopK, b.TopK) && maps.Equal(a.Budget, b.Budget)
}

// half puts a recall into one of two halves, by its id: what does better must
// not do worse in either, or it fits this history and no other.
func half(r learn.Recalled) bool { s := sha256.Sum256([]byte(r.Event)); return s[0]&1 == 0 }

// standing compares the i-th candidate with the one in force.
func (p *progress) standing(i int) (s learn.Score, worse, wins bool) {
	all := func(int) bool { return true }
	one := func(i int) bool { return half(p.Recalls[i]) }
	two := func(i int) bool { return !half(p.Recalls[i]) }
	for _, part := range []func(int) bool{all, one, two} {
		a, b := total(p.Candidates[i].Units, part), total(p.Candidates[0].Units, part)
		worse = worse || a.Total < b.Total || a.Gain < b.Gain-1e-6 && a.Total < b.Total+better
	}
	s = total(p.Candidates[i].Units, all)
	base := total(p.Candidates[0].Units, all)
	worse = worse || s.Total < base.Total+better && s.Margin < base.Margin-clear
	wins = !worse && (s.Total > base.Total+better || s.Margin > base.Margin+clear)
	return s, worse, wins
}

func (p *progress) bars(i int) bool {
	return slices.ContainsFunc(p.Barred, func(b recall.Policy) bool { return same(b, p.Candidates[i].Policy) })
}

// choose is the best candidate, 0 where none is better than what is in force.
func choose(p *progress) (best int, tried []Tried) {
	var top learn.Score
	for i := range p.Candidates {
		s, worse, wins := p.standing(i)
		tried = append(tried, Tried{Name: p.Candidates[i].Name, Score: s, Worse: worse})
		if wins && !p.bars(i) && (best == 0 || s.Total > top.Total || s.Total == top.Total && s.Margin > top.Margin) {
			best, top = i, s
		}
	}
	return best, tried
}

// combine joins the steps that are better each by itself.
func combine(p *progress) (candidate, bool) {
	out := candidate{Name: "together", Policy: clone(p.Base)}
	n := 0
	for i := 1; i < len(p.Candidates); i++ {
		if _, _, wins := p.standing(i); !wins {
			continue
		}
		n++
		c := p.Candidates[i].Policy
		for name, v := range c.Weights {
			if v != weightOf(p.Base, name) {
				out.Policy.Weights[name] = v
			}
		}
		for name := range p.Base.Weights {
			if _, ok := c.Weights[name]; !ok { // back to the standard
				delete(out.Policy.Weights, name)
			}
		}
		if c.Threshold != p.Base.Threshold {
			out.Policy.Threshold = c.Threshold
		}
		if c.Diversity != p.Base.Diversity {
			out.Policy.Diversity = c.Diversity
		}
		for class, b := range c.Budget {
			if b != p.Base.Budget[class] {
				out.Policy.Budget[class] = b
			}
		}
	}
	return out, n > 1
}

func (p *progress) replayOf(best int) *learn.Replay {
	all := func(int) bool { return true }
	r := &learn.Replay{Recalls: len(p.Recalls), Candidates: len(p.Candidates) - 1, Uses: usesOf(p.Recalls)}
	r.Before, r.After = total(p.Candidates[0].Units, all), total(p.Candidates[best].Units, all)
	if len(p.Recalls) > 0 {
		r.From, r.To = p.Recalls[0].Time, p.Recalls[len(p.Recalls)-1].Time
	}
	return r
}

// change is the event that makes a candidate the policy of its scope.
func (t *Tuner) change(ctx context.Context, s learn.PolicyScope, p *progress, best int) (event.Event, error) {
	c := p.Candidates[best]
	all, err := t.o.Organizer.Policies(ctx)
	if err != nil {
		return event.Event{}, err
	}
	return changeEvent(s, learn.PolicyChange{
		Op: learn.PolicyLearnt, For: s, Version: versionOf(all, s) + 1, Parent: p.Parent, Policy: &c.Policy, Replay: p.replayOf(best),
		Reason: "replaying past recalls with it scores better: " + c.Name,
	}, t.after(all, s))
}

// after is now, or a moment after the scope's last change where the clock does
// not say so: the newest change holds.
func (t *Tuner) after(all []learn.PolicyVersion, s learn.PolicyScope) time.Time {
	now := t.o.Now()
	if last := lastChange(all, s); !now.After(last) {
		return last.Add(time.Millisecond)
	}
	return now
}

func versionOf(all []learn.PolicyVersion, s learn.PolicyScope) int {
	n := 0
	for _, v := range all {
		if v.For == s {
			n = max(n, v.Version)
		}
	}
	return n
}
