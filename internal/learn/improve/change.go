package improve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/internal/event"
	"reprise/internal/learn"
	"reprise/internal/recall"
)

// changeEvent is the event of a change. Its id is made of what it says, so that
// recording it twice is recording it once.
func changeEvent(s learn.PolicyScope, c learn.PolicyChange, now time.Time) (event.Event, error) {
	c.V = 1
	if c.Policy != nil {
		p := *c.Policy
		p.ID = "" // it is the event's
		c.Policy = &p
	}
	data, err := json.Marshal(c)
	if err != nil {
		return event.Event{}, fmt.Errorf("change of a policy: %w", err)
	}
	at := now.UTC().Round(0)
	e := event.Event{ID: learn.DerivedID(at, "policy", string(data)), TS: at, Type: event.PolicyChanged, Scope: event.ScopeGlobal, Project: s.Project, Role: s.Role, Data: data, Outcome: "success"}
	if s.Project != "" {
		e.Scope = event.ScopeProject
	}
	return e, nil
}

// adopt records the change that was decided on, once.
func (t *Tuner) adopt(ctx context.Context, s learn.PolicyScope, p *progress) (Outcome, error) {
	out := Outcome{Scope: s, Done: true}
	e := *p.Pending
	all, err := t.o.Organizer.Policies(ctx)
	if err != nil {
		return out, err
	}
	if !slices.ContainsFunc(all, func(v learn.PolicyVersion) bool { return v.ID == e.ID }) {
		if err := t.o.Record(ctx, e); err != nil {
			return out, fmt.Errorf("record the new policy for %s: %w; it is tried again", s, err)
		}
	}
	*p = progress{Seq: p.Seq, Day: p.Day, Since: p.Since}
	if err := t.store(ctx, s, p); err != nil && !errors.Is(err, errOvertaken) {
		return out, err
	}
	out.Adopted, out.Why = e.ID, "a new policy is in force"
	return out, nil
}

// Scopes are those whose policies a reader's recalls can teach something, the
// narrowest first.
func Scopes(r recall.Reader) []learn.PolicyScope {
	return learn.PolicyScope{Project: r.Project, Role: r.Role}.Wider()
}

// ErrPolicy is the error of a policy, or a word about one, that will not do.
var ErrPolicy = errors.New("bad policy")

// Find is the version with that id, or beginning of one that only it has.
func Find(all []learn.PolicyVersion, id string) (learn.PolicyVersion, error) {
	var found []learn.PolicyVersion
	for _, v := range all {
		if v.ID == id {
			return v, nil
		}
		if len(id) >= 4 && (strings.HasPrefix(v.ID, id) || strings.HasSuffix(v.ID, id)) {
			found = append(found, v)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return learn.PolicyVersion{}, fmt.Errorf("%w: %.60q; `reprise policy history` lists them", errNone, id)
	}
	return learn.PolicyVersion{}, fmt.Errorf("%w: %d policies have an id like %.60q; give more of it", ErrPolicy, len(found), id)
}

var errNone = errors.New("no such policy")

// NotFound reports that an error is of a policy that is not there.
func NotFound(err error) bool { return errors.Is(err, errNone) }

// Rollback makes an earlier policy the one in force for its scope, by a new
// change. "default" takes the scope's own policy away.
func (t *Tuner) Rollback(ctx context.Context, s learn.PolicyScope, id, reason string) (learn.PolicyVersion, error) {
	all, err := t.o.Organizer.Policies(ctx)
	if err != nil {
		return learn.PolicyVersion{}, err
	}
	c := learn.PolicyChange{Op: learn.PolicyRollback, Restored: id, Reason: reason}
	if id != "default" {
		v, err := Find(all, id)
		if err != nil {
			return v, err
		}
		s, c.Restored, c.Policy = v.For, v.ID, v.Policy
	}
	var own *learn.PolicyVersion
	for i := range all {
		if all[i].For == s {
			own = &all[i]
		}
	}
	switch {
	case own == nil || own.Policy == nil && c.Policy == nil:
		return learn.PolicyVersion{}, fmt.Errorf("%w: %s has no policy of its own to go back from", ErrPolicy, s)
	case own.ID == c.Restored:
		return learn.PolicyVersion{}, fmt.Errorf("%w: %s is in force for %s already", ErrPolicy, own.ID, s)
	}
	c.For, c.Version, c.Parent = s, versionOf(all, s)+1, own.ID
	return t.record(ctx, all, s, c)
}

func (t *Tuner) record(ctx context.Context, all []learn.PolicyVersion, s learn.PolicyScope, c learn.PolicyChange) (learn.PolicyVersion, error) {
	e, err := changeEvent(s, c, t.after(all, s))
	if err != nil {
		return learn.PolicyVersion{}, err
	}
	if err := t.o.Record(ctx, e); err != nil {
		return learn.PolicyVersion{}, fmt.Errorf("record the policy for %s: %w", s, err)
	}
	return learn.PolicyVersion{ID: e.ID, Time: e.TS, PolicyChange: c}, nil
}

// Judgement is what replaying past recalls says about a policy.
type Judgement struct {
	Scope  learn.PolicyScope `json:"scope"`
	Base   string            `json:"base"` // id of the policy in force
	Replay learn.Replay      `json:"replay"`
	Worse  bool              `json:"worse"` // in all recalls, or in one half of them
	Why    string            `json:"why"`
	// Adopted is the id under which it is in force now.
	Adopted string `json:"adopted,omitempty"`
}

// Judge replays past recalls with a policy and with the one in force, to the
// end. With adopt it is taken unless it does worse.
func (t *Tuner) Judge(ctx context.Context, s learn.PolicyScope, c recall.Policy, adopt bool, reason string) (Judgement, error) {
	j := Judgement{Scope: s}
	if bad := learn.Unbounded(c); len(bad) > 0 {
		return j, fmt.Errorf("%w: %s", ErrPolicy, strings.Join(bad, "; "))
	}
	base, err := t.o.Organizer.PolicyFor(ctx, s, time.Time{})
	if err != nil {
		return j, err
	}
	list, used, err := t.past(ctx, s)
	if err != nil {
		return j, err
	}
	p := &progress{Base: learn.Bounded(base), Parent: base.ID, Recalls: list, Combined: true}
	p.Candidates = []candidate{{Name: "in force", Policy: p.Base}, {Name: "candidate", Policy: learn.Bounded(c)}}
	j.Base = base.ID
	err = t.o.Index.View(ctx, func(tx *recall.Tx) error {
		_, err := t.replays(ctx, tx, p, func() bool { return false })
		return err
	})
	if err != nil {
		return j, err
	}
	j.Replay = *p.replayOf(1)
	var wins bool
	_, j.Worse, wins = p.standing(1)
	switch {
	case used < least:
		j.Why = fmt.Sprintf("there is too little to judge by: something was used in %d past recalls, and %d are needed", used, least)
	case j.Worse:
		j.Why = "it does worse than the policy in force, in all past recalls or in one half of them"
	case wins:
		j.Why = "it does better than the policy in force"
	default:
		j.Why = "it does no worse than the policy in force"
	}
	if !adopt {
		return j, nil
	}
	if j.Worse || used < least {
		return j, fmt.Errorf("%w: not adopted: %s", ErrPolicy, j.Why)
	}
	if same(p.Base, p.Candidates[1].Policy) {
		return j, fmt.Errorf("%w: not adopted: it is the policy in force", ErrPolicy)
	}
	all, err := t.o.Organizer.Policies(ctx)
	if err != nil {
		return j, err
	}
	v, err := t.record(ctx, all, s, learn.PolicyChange{
		Op: learn.PolicyAdopted, For: s, Version: versionOf(all, s) + 1, Parent: base.ID, Policy: &p.Candidates[1].Policy, Replay: &j.Replay, Reason: reason,
	})
	j.Adopted = v.ID
	return j, err
}
