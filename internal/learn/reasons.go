package learn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/internal/clip"
	"reprise/internal/event"
	"reprise/internal/learn/sign"
	"reprise/internal/recall"
)

// ErrUnknown is the error of an id that stands for nothing in the index.
var ErrUnknown = errors.New("nothing in memory has this id")

// Reasons says why a thing is in memory, and why it counts what it counts.
type Reasons struct {
	Doc     recall.Doc `json:"doc"`
	Data    Data       `json:"data"` // of what was worked out from the log; empty for entries
	Derived bool       `json:"derived"`
	Signals []Signal   `json:"signals"`
	Usage   Usage      `json:"usage"`
	// Path is the scopes from narrow to wide, and where the thing stands.
	Path     []ScopeStep `json:"path"`
	Evidence []Evidence  `json:"evidence"`
	Gates    []Gate      `json:"gates"`
	// Related are ids of what says more: patterns of an episode, episodes of a
	// pattern.
	Related []string `json:"related,omitempty"`
	// Forgotten is set where a tombstone keeps the thing from being served.
	Forgotten bool `json:"forgotten,omitempty"`
}

// Signal is one of those that importance is made of.
type Signal struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"`  // 0 to 1
	Weight  float64 `json:"weight"` // what it counts
	Because string  `json:"because"`
}

// ScopeStep is one scope on the way from a session to everywhere.
type ScopeStep struct {
	Scope string `json:"scope"`
	Name  string `json:"name,omitempty"`
	Here  bool   `json:"here"` // the thing stands in this one
}

// Evidence is an event that a thing was learnt from.
type Evidence struct {
	Event string    `json:"event"`
	Type  string    `json:"type,omitempty"`
	Time  time.Time `json:"time,omitzero"`
	What  string    `json:"what,omitempty"`
}

// Gate is a condition of going to a wider scope.
type Gate struct {
	To     string `json:"to"` // scope
	Needs  string `json:"needs"`
	Have   int    `json:"have"`
	Need   int    `json:"need"`
	Passed bool   `json:"passed"`
	// Forgotten is the id of the pattern that stands for it there and was forgotten, which
	// holds whatever is seen later, and Since when.
	Forgotten string    `json:"forgotten,omitempty"`
	Since     time.Time `json:"since,omitzero"`
}

// Reasons says why a document counts what it counts.
func (o *Organizer) Reasons(ctx context.Context, id string) (Reasons, error) {
	var x Reasons
	err := o.store.View(ctx, func(tx Tx) error {
		d, ok, err := tx.Get(id)
		if err != nil {
			return err
		}
		was, err := retirementOf(tx, id)
		if err != nil {
			return err
		}
		gone := was.gone()
		if !ok {
			if gone {
				return fmt.Errorf("%w: %q was forgotten", ErrUnknown, id)
			}
			return fmt.Errorf("%w: %q; ids are shown by recall and by memory list", ErrUnknown, id)
		}
		x = Reasons{Doc: d, Forgotten: gone}
		if x.Usage, err = usageOf(tx, id); err != nil {
			return err
		}
		x.Data, x.Derived = DataOf(d)
		x.Path = ScopePath(d)
		x.signals()
		x.gates()
		if err := x.patterns(tx, o.firstName); err != nil {
			return err
		}
		x.Related = related(tx, x.Data)
		x.Evidence, err = evidenceOf(tx, x.Data, d)
		return err
	})
	if err != nil {
		return Reasons{}, fmt.Errorf("find the reasons: %w", err)
	}
	return x, nil
}

// ScopePath is the scopes that a document can stand in, from narrow to wide.
func ScopePath(d recall.Doc) []ScopeStep {
	var out []ScopeStep
	if d.Session != "" {
		out = append(out, ScopeStep{Scope: "session", Name: d.Session, Here: d.Scope == "session"})
	}
	if dir, ok := recall.PlaceDir(d.Project); ok {
		out = append(out, ScopeStep{Scope: "directory", Name: dir, Here: d.Scope == "project"})
	} else if d.Project != "" {
		out = append(out, ScopeStep{Scope: "project", Name: d.Project, Here: d.Scope == "project"})
	}
	return append(out, ScopeStep{Scope: "global", Here: d.Scope == "global"})
}

func (x *Reasons) signals() {
	if !x.Derived {
		x.Signals = []Signal{{Name: SignalUsage, Value: x.Usage.value(), Weight: signalWeight(SignalUsage), Because: usageWords(x.Usage)}}
		return
	}
	for _, name := range signalNames() {
		x.Signals = append(x.Signals, Signal{Name: name, Value: x.Data.Signals[name], Weight: signalWeight(name), Because: x.because(name)})
	}
}

func usageWords(u Usage) string {
	if u.Served+u.Mentioned+u.Useful+u.Useless == 0 {
		return "it was never served"
	}
	s := fmt.Sprintf("served %s, mentioned again %s", times(u.Served), times(u.Mentioned))
	if u.Useful > 0 {
		s += ", said to be useful " + times(u.Useful)
	}
	if u.Useless > 0 {
		s += ", said to be useless " + times(u.Useless)
	}
	return s
}

func (x *Reasons) because(name string) string {
	d := x.Data
	switch name {
	case SignalUsage:
		return usageWords(x.Usage)
	case SignalOutcome:
		switch {
		case d.Kind == KindPattern:
			return fmt.Sprintf("it worked in %s and failed %s", count(d.Sessions, "session"), times(d.Failures))
		case d.Kind == KindAntiPattern:
			return fmt.Sprintf("the failure came again %s", times(d.Failures))
		case d.Fix != nil:
			return "the call " + d.Outcome + ", by " + d.Fix.Kind
		}
		return "it ended as: " + d.Outcome
	case SignalNovelty:
		if v := d.Signals[name]; v > 0 && v < 1 {
			return "other sessions had the same before"
		} else if v == 1 {
			return "nothing like it was seen before"
		}
		return "not reckoned for this kind"
	case SignalConflict:
		if d.Signals[name] > 0 {
			return "something speaks against it: it failed again, or worked after it had failed"
		}
		return "nothing speaks against it"
	case SignalRecency:
		if x.Doc.Tier == "" {
			return "it stands over sessions and does not age by tier"
		}
		return "it is " + x.Doc.Tier
	case SignalSaid:
		if d.Signals[name] > 0 {
			return "a person said so"
		}
		return "no person said so"
	}
	return ""
}

// gates are those of the default policy: seen to work in two sessions for a
// project, in two projects for everywhere, and never from tool output alone.
func (x *Reasons) gates() {
	if !x.Derived || x.Data.Kind == KindTurn || x.Data.Kind == KindSession || x.Data.Kind == KindDigest {
		return
	}
	sessions, projects := x.Data.Sessions, x.Data.Projects
	if x.Data.Kind == KindFailure && x.Data.Outcome == Fixed {
		sessions, projects = 1, 1
	}
	seen := 0
	if x.Data.Fix != nil || x.Data.Said != "" {
		seen = 1
	}
	x.Gates = []Gate{
		{To: "project", Needs: "more than tool output: a call that worked, or a person's word", Have: seen, Need: 1, Passed: seen >= 1},
		{To: "project", Needs: "sessions in which it worked", Have: sessions, Need: patternSessions, Passed: sessions >= patternSessions},
		{To: "global", Needs: "projects in which it worked", Have: projects, Need: globalProjects, Passed: projects >= globalProjects},
	}
}

// patterns puts into an episode's gates what is known of the patterns that it is part of:
// in how many sessions and projects they were seen, and that a person forgot one.
func (x *Reasons) patterns(tx Tx, firstName func(string) string) error {
	if len(x.Gates) < 3 {
		return nil
	}
	d, doc := x.Data, x.Doc
	for i, global := range []bool{false, true} {
		g, project, id := &x.Gates[i+1], doc.Project, ""
		if global {
			project = ""
		}
		switch {
		case d.Kind == KindFailure && d.Fix != nil:
			id = patternID("pt-", d.Signature, d.Fix.Key, global, firstName(project), doc.ACL)
		case d.Kind == KindCorrection && d.SaidKey != "":
			id = saidID(d.SaidKey, global, firstName(project), doc.ACL)
		default:
			continue
		}
		at, err := forgottenAt(tx, id)
		if err != nil {
			return err
		}
		if at > 0 {
			g.Forgotten, g.Since, g.Passed = id, timeOf(at), false
			continue
		}
		p, ok, err := tx.Get(id)
		if err != nil {
			return err
		}
		if data, known := DataOf(p); ok && known {
			g.Have = data.Sessions
			if global {
				g.Have = data.Projects
			}
			g.Passed = g.Have >= g.Need
		}
	}
	return nil
}

func related(tx Tx, d Data) []string {
	out := slices.Clone(d.Episodes)
	for kind, key := range map[string]string{rowSig: d.Signature, rowSaid: d.SaidKey} {
		if key == "" || d.Kind != KindFailure && d.Kind != KindCorrection {
			continue
		}
		b, _, err := tx.Load(bucketMade, "t"+kind+"\t"+key)
		var m made
		if err != nil || m.decode(b) != nil {
			continue // an explanation without its neighbours is one, too
		}
		for id := range m.Docs {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// evidenceOf looks the events up in what was kept of them.
func evidenceOf(tx Tx, d Data, doc recall.Doc) ([]Evidence, error) {
	ids := d.Evidence
	if len(ids) == 0 && sign.IsUUID(doc.Source) {
		ids = []string{doc.Source}
	}
	sessions := map[string]bool{}
	if owner, ok, err := tx.Load(bucketOwner, sign.Hash(doc.ID)); err != nil {
		return nil, err
	} else if ok && owner[0] == 's' {
		sessions[string(owner[1:])] = true
	}
	for _, ep := range d.Episodes {
		owner, ok, err := tx.Load(bucketOwner, sign.Hash(ep))
		if err != nil {
			return nil, err
		}
		if ok && owner[0] == 's' {
			sessions[string(owner[1:])] = true
		}
	}
	known := map[string]Evidence{}
	for s := range sessions {
		err := tx.EachKV(bucketRecord, s+"/", func(_ string, value []byte) bool {
			recs, err := readRecords(value)
			if err != nil {
				return false
			}
			for _, r := range recs {
				if slices.Contains(ids, r.id) {
					known[r.id] = Evidence{Event: r.id, Type: string(r.typ), Time: r.time(), What: r.what()}
				}
			}
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	out := make([]Evidence, 0, len(ids))
	for _, id := range ids {
		e, ok := known[id]
		if !ok {
			e.Event = id
		}
		out = append(out, e)
	}
	return out, nil
}

// what is a record in a few words.
func (r *record) what() string {
	switch {
	case r.command != "":
		return sign.Clip(clip.Line(r.command), 160)
	case r.target != "":
		return sign.Clip(strings.TrimSpace(r.tool+" "+r.target), 160)
	}
	return sign.Clip(clip.Line(r.text), 160)
}

// SessionStats are the figures of all sessions, in order of their start.
func (o *Organizer) SessionStats(ctx context.Context, fn func(Stats) bool) error {
	var list []Stats
	err := o.store.View(ctx, func(tx Tx) error {
		return tx.EachKV(bucketStats, "", func(_ string, value []byte) bool {
			var st Stats
			if json.Unmarshal(value, &st) == nil {
				list = append(list, st)
			}
			return true
		})
	})
	if err != nil {
		return fmt.Errorf("read figures of sessions: %w", err)
	}
	slices.SortStableFunc(list, func(a, b Stats) int { return a.Start.Compare(b.Start) })
	for _, st := range list {
		if !fn(st) {
			break
		}
	}
	return nil
}

// StatsOf are the figures of one session, as far as its log was taken in.
func (o *Organizer) StatsOf(ctx context.Context, client, session string) (Stats, error) {
	key, _ := sessionKey(&event.Event{Client: client, Session: session})
	var st Stats
	err := o.store.View(ctx, func(tx Tx) error {
		b, ok, err := tx.Load(bucketStats, key)
		if ok && json.Unmarshal(b, &st) != nil {
			st = Stats{} // of another version: the next fold writes it anew
		}
		return err
	})
	if err != nil {
		return Stats{}, fmt.Errorf("read figures of a session: %w", err)
	}
	return st, nil
}

// UsageOf is what became of an item that recall can serve: an entry, a block's
// section, something derived.
func (o *Organizer) UsageOf(ctx context.Context, id string) (Usage, error) {
	var u Usage
	err := o.store.View(ctx, func(tx Tx) (err error) {
		u, err = usageOf(tx, id)
		return err
	})
	if err != nil {
		return Usage{}, fmt.Errorf("read usage: %w", err)
	}
	return u, nil
}
