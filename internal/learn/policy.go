package learn

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"reprise/internal/learn/sign"
	"reprise/internal/recall"
)

// PolicyScope is for whom a policy is: a project or "" for all, a role or ""
// for everyone.
type PolicyScope struct {
	Project string `json:"project,omitempty"`
	Role    string `json:"role,omitempty"`
}

func (s PolicyScope) String() string {
	out := "all projects"
	if s.Project != "" {
		out = "project " + s.Project
	}
	if s.Role != "" {
		out += ", role " + s.Role
	}
	return out
}

func (s PolicyScope) key() string { return s.Project + "\t" + s.Role }

// Wider are the scopes whose policy holds where this one has none, the
// narrowest first, with itself.
func (s PolicyScope) Wider() []PolicyScope {
	var out []PolicyScope
	for _, x := range []PolicyScope{s, {Project: s.Project}, {Role: s.Role}, {}} {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// Score is what replaying past recalls with a policy came to.
type Score struct {
	// Total is what counts: Gain less what unused tokens cost.
	Total float64 `json:"total"`
	// Gain is how near the top the things stood that were used (nDCG), 0 to 1.
	Gain float64 `json:"gain"`
	// Tokens are those of what was served and not used, for a recall.
	Tokens float64 `json:"unused_tokens"`
	// Margin is how far the used things' scores lie above the others', -1 to 1.
	Margin float64 `json:"margin"`
}

// Replay is why a policy was taken: the past recalls that were ranked again.
type Replay struct {
	Recalls    int       `json:"recalls"`
	Uses       int       `json:"uses"` // things that were used
	From       time.Time `json:"from,omitzero"`
	To         time.Time `json:"to,omitzero"`
	Candidates int       `json:"candidates,omitempty"`
	Before     Score     `json:"before"`
	After      Score     `json:"after"`
}

// What a policy change is, in PolicyChange.Op.
const (
	PolicyLearnt   = "learnt"   // from what was served and used
	PolicyAdopted  = "adopted"  // somebody's, after a replay
	PolicyRollback = "rollback" // an earlier one again
)

// PolicyChange is the data of policy.changed: from then on this policy holds for
// the scope, whole as it is here.
type PolicyChange struct {
	V   int         `json:"v"`
	Op  string      `json:"op"`
	For PolicyScope `json:"for"`
	// Version counts the changes of the scope; those of two machines may meet in
	// one number, the id tells them apart.
	Version int `json:"version"`
	// Parent is the id of the policy that held for the scope before, which may be
	// a wider one's, or "default".
	Parent string `json:"parent"`
	// Restored is the id that a rollback goes back to.
	Restored string `json:"restored,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Policy is the value; nil = the scope has none of its own any more.
	Policy *recall.Policy `json:"policy"`
	Replay *Replay        `json:"replay,omitempty"`
}

// PolicyVersion is a change as the log has it.
type PolicyVersion struct {
	ID   string    `json:"id"` // of the event, and of the policy
	Time time.Time `json:"time"`
	PolicyChange
}

const (
	rowPolicy  = "policy" // a change of a policy
	policyAll  = "all"    // the one group of those rows
	keyInForce = "in_force"
)

// policyRow hands on a change of a policy. What no policy can be is left out:
// the log may have been written by a later version, or by hand.
func (c *composer) policyRow(r *record) {
	var d PolicyChange
	decode(r.extra, &d)
	if d.Op == "" || d.Version < 0 {
		return
	}
	if d.Policy != nil {
		p := Bounded(*d.Policy)
		p.ID = r.id
		d.Policy = &p
	}
	c.add(rowPolicy, policyAll, sortKey(r.at, c.key, sign.Hash(r.id)), PolicyVersion{ID: r.id, Time: r.time(), PolicyChange: d})
}

// policyGroup works out which policy is in force for each scope: the newest.
func (f *folder) policyGroup(values [][]byte) error {
	inForce := map[string]PolicyVersion{}
	for _, v := range readRows[PolicyVersion](values) { // in order of time
		inForce[v.For.key()] = v
	}
	maps.DeleteFunc(inForce, func(_ string, v PolicyVersion) bool { return v.Policy == nil })
	if len(inForce) == 0 {
		return f.tx.Drop(bucketPolicy, keyInForce)
	}
	b, err := json.Marshal(inForce)
	if err != nil {
		return fmt.Errorf("policies: %w", err)
	}
	return f.tx.Store(bucketPolicy, keyInForce, b)
}

// Limits of what a policy may say, as shares of what holds without one.
const (
	leastWeight, mostWeight       = 0.5, 2
	leastThreshold, mostThreshold = 0.4, 0.6
	leastDiversity, mostDiversity = 0.6, 1.0
	leastBudget, mostBudget       = 0.5, 1.5
)

// Bounded is a policy within the limits that every policy has, whole: what it
// does not say is as without one.
func Bounded(p recall.Policy) recall.Policy {
	std := recall.DefaultPolicy()
	out := std
	out.ID = p.ID
	out.Weights = map[string]float64{}
	for name, v := range p.Weights {
		if s, ok := recall.StandardWeight(name); ok && v == v {
			if v = round4(min(max(v, s*leastWeight), s*mostWeight)); v != round4(s) {
				out.Weights[name] = v
			}
		}
	}
	if p.Threshold > 0 {
		out.Threshold = round4(min(max(p.Threshold, leastThreshold), mostThreshold))
	}
	if p.Diversity > 0 {
		out.Diversity = round4(min(max(p.Diversity, leastDiversity), mostDiversity))
	}
	for class, n := range std.Budget {
		if b, ok := p.Budget[class]; ok {
			out.Budget[class] = int(min(max(float64(b), float64(n)*leastBudget), float64(n)*mostBudget))
		}
	}
	for scope, n := range std.TopK {
		if k, ok := p.TopK[scope]; ok {
			out.TopK[scope] = min(max(k, n/2), n*2)
		}
	}
	return out
}

// Unbounded says what of a policy lies outside the limits, or is not known.
func Unbounded(p recall.Policy) []string {
	var out []string
	std, in := recall.DefaultPolicy(), Bounded(p)
	for _, name := range slices.Sorted(maps.Keys(p.Weights)) {
		s, ok := recall.StandardWeight(name)
		switch v := p.Weights[name]; {
		case !ok:
			out = append(out, fmt.Sprintf("weights.%s: there is no such weight; they are %s", sign.Clip(name, 40), strings.Join(recall.WeightNames(), ", ")))
		case v != v || v < s*leastWeight-1e-9 || v > s*mostWeight+1e-9:
			out = append(out, fmt.Sprintf("weights.%s: %g is not within %g and %g", name, v, s*leastWeight, s*mostWeight))
		}
	}
	if in.Threshold != round4(p.Threshold) {
		out = append(out, fmt.Sprintf("threshold: %g is not within %g and %g", p.Threshold, leastThreshold, mostThreshold))
	}
	if in.Diversity != round4(p.Diversity) {
		out = append(out, fmt.Sprintf("diversity: %g is not within %g and %g", p.Diversity, leastDiversity, mostDiversity))
	}
	for _, class := range slices.Sorted(maps.Keys(p.Budget)) {
		n, ok := std.Budget[class]
		switch b := p.Budget[class]; {
		case !ok:
			out = append(out, fmt.Sprintf("budget.%s: there is no such class", sign.Clip(string(class), 40)))
		case b != in.Budget[class]:
			out = append(out, fmt.Sprintf("budget.%s: %d is not within %d and %d", class, b, int(float64(n)*leastBudget), int(float64(n)*mostBudget)))
		}
	}
	for _, scope := range slices.Sorted(maps.Keys(p.TopK)) {
		n, ok := std.TopK[scope]
		switch k := p.TopK[scope]; {
		case !ok:
			out = append(out, fmt.Sprintf("top_k.%s: there is no such scope", sign.Clip(scope, 40)))
		case k != in.TopK[scope]:
			out = append(out, fmt.Sprintf("top_k.%s: %d is not within %d and %d", scope, k, n/2, n*2))
		}
	}
	return out
}

// PolicyFor is the policy that ranks for a reader: that of its role in its
// project, else the project's, else the role's, else the one for all. With asOf
// it is the one of that time. One without an own policy has the default.
func (o *Organizer) PolicyFor(ctx context.Context, s PolicyScope, asOf time.Time) (recall.Policy, error) {
	inForce := map[string]PolicyVersion{}
	err := o.store.View(ctx, func(tx Tx) error {
		if !asOf.IsZero() {
			list, err := policyRows(tx)
			for _, v := range list {
				if !v.Time.After(asOf) {
					inForce[v.For.key()] = v
				}
			}
			return err
		}
		b, ok, err := tx.Load(bucketPolicy, keyInForce)
		if err == nil && ok {
			err = json.Unmarshal(b, &inForce)
		}
		return err
	})
	if err != nil {
		return recall.DefaultPolicy(), fmt.Errorf("read policy: %w", err)
	}
	for _, x := range s.Wider() {
		if v, ok := inForce[x.key()]; ok && v.Policy != nil {
			return *v.Policy, nil
		}
	}
	return recall.DefaultPolicy(), nil
}

func policyRows(tx Tx) ([]PolicyVersion, error) {
	var values [][]byte
	err := tx.EachKV(bucketRow, rowPolicy+"\t"+policyAll+"\t", func(_ string, v []byte) bool {
		values = append(values, v)
		return true
	})
	return readRows[PolicyVersion](values), err
}

// Policies are all changes of policies, the oldest first.
func (o *Organizer) Policies(ctx context.Context) ([]PolicyVersion, error) {
	var out []PolicyVersion
	err := o.store.View(ctx, func(tx Tx) (err error) { out, err = policyRows(tx); return err })
	if err != nil {
		return nil, fmt.Errorf("read policies: %w", err)
	}
	slices.SortStableFunc(out, func(a, b PolicyVersion) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}
