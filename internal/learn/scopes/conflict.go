package scopes

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"reprise/internal/fact"
	"reprise/internal/learn/sign"
	"reprise/internal/recall"
)

// Statement is what one item says about a subject.
type Statement struct {
	ID      string    `json:"id"`
	Value   string    `json:"value"`
	Title   string    `json:"title,omitempty"`
	Source  string    `json:"source"`
	Scope   string    `json:"scope"`
	Project string    `json:"project,omitempty"`
	Time    time.Time `json:"time"`
}

// Conflict is a subject of which items say different things. Winner is served
// as a fact; the others are named as conflicts and never served beside it.
type Conflict struct {
	Subject   string      `json:"subject"`
	Attribute string      `json:"attribute"`
	Winner    Statement   `json:"winner"`
	Losers    []Statement `json:"losers"`
	// Why the winner wins: correction, scope, newer, confidence or order.
	Why string `json:"why"`
}

// stating are the classes of what states something: what people and agents
// wrote down, not what happened once.
func stating() []recall.Class {
	return []recall.Class{recall.ClassCore, recall.ClassBlock, recall.ClassDecision, recall.ClassLearning, recall.ClassProfile, recall.ClassAnswer}
}

// wins says that of two documents that contradict each other a holds, and why:
// the correction, then the narrower scope, then the newer, then the more
// confident one. The order of the ids settles what nothing else does, so that
// two machines come to the same.
func wins(a, b recall.Doc) (bool, string) {
	switch ab, ba := slices.Contains(a.Keys, b.ID), slices.Contains(b.Keys, a.ID); {
	case ab && !ba:
		return true, "correction"
	case ba && !ab:
		return false, "correction"
	}
	if c := cmp.Compare(width(a), width(b)); c != 0 {
		return c < 0, "scope"
	}
	if c := a.Time.Compare(b.Time); c != 0 {
		return c > 0, "newer"
	}
	if c := cmp.Compare(a.Confidence, b.Confidence); c != 0 {
		return c > 0, "confidence"
	}
	return a.ID < b.ID, "order"
}

// width of a scope, narrow first.
func width(d recall.Doc) int {
	switch {
	case d.Scope == "session":
		return 0
	case d.Project != "":
		return 1
	}
	return 2
}

// meet says that two documents can come before the same reader.
func meet(a, b recall.Doc) bool {
	if !recall.SameWorld(a, b) {
		return false
	}
	if len(a.ACL) == 0 || len(b.ACL) == 0 || slices.Contains(a.ACL, "*") || slices.Contains(b.ACL, "*") {
		return true
	}
	return slices.ContainsFunc(a.ACL, func(x string) bool { return slices.Contains(b.ACL, x) })
}

// Conflicts are all contradictions among what the reader sees, by subject.
func (s *Scopes) Conflicts(ctx context.Context) ([]Conflict, error) {
	if err := s.fresh(ctx); err != nil {
		return nil, err
	}
	by := map[string][]recall.Doc{}
	active := recall.Active
	err := s.o.Index.View(ctx, func(tx *recall.Tx) error {
		clear(by)
		for _, class := range stating() {
			err := tx.Each(recall.Filter{Class: class, Status: &active}, func(d recall.Doc) bool {
				if !s.sees(d) {
					return true
				}
				for _, f := range d.Facts {
					if k := f.Key(); k != "" {
						by[k] = append(by[k], d)
					}
				}
				return true
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := []Conflict{}
	for _, key := range slices.Sorted(maps.Keys(by)) {
		out = append(out, settle(key, by[key])...)
	}
	rivals, err := s.Rivals(ctx)
	return append(out, rivals...), err
}

// AttributeCorrections is what a conflict is about whose two sides each correct the same
// item, as two machines do that have not met in between.
const AttributeCorrections = "corrections"

// Rivals are the items that were corrected in several ways at once. The newest is served,
// and only a person knows whether it says what the others say.
func (s *Scopes) Rivals(ctx context.Context) ([]Conflict, error) {
	var out []Conflict
	for _, p := range s.places() {
		e := s.o.Entries(p)
		if e == nil {
			continue
		}
		list, err := e.Rivals(ctx)
		if err != nil {
			return nil, err
		}
		for _, group := range list {
			c := Conflict{Subject: cmp.Or(group[len(group)-1].Supersedes, group[0].Supersedes), Attribute: AttributeCorrections, Why: "newer"}
			if was, err := e.Get(ctx, c.Subject); err == nil && visible(s.o.Who, was.ACL) {
				c.Subject = sign.Clip(was.Title(), 100)
			}
			for i, item := range group {
				if !visible(s.o.Who, item.ACL) {
					continue
				}
				f := foundEntry(p, item)
				one := Statement{ID: item.ID, Value: sign.Clip(item.Title(), 160), Title: f.Doc.Title, Source: f.Doc.Source, Scope: f.Scope(), Project: p, Time: item.Time}
				switch {
				case i == 0:
					c.Winner = one
				default:
					c.Losers = append(c.Losers, one)
				}
			}
			if c.Winner.ID != "" && len(c.Losers) > 0 {
				out = append(out, c)
			}
		}
	}
	return out, nil
}

// rivalsOf are the rivals that an item is one of.
func (s *Scopes) rivalsOf(ctx context.Context, id string) ([]Conflict, error) {
	list, err := s.Rivals(ctx)
	return slices.DeleteFunc(list, func(c Conflict) bool {
		return c.Winner.ID != id && !slices.ContainsFunc(c.Losers, func(l Statement) bool { return l.ID == id })
	}), err
}

// settle finds who wins a subject: one conflict for each project, and one for
// what is global.
func settle(key string, docs []recall.Doc) []Conflict {
	slices.SortStableFunc(docs, func(a, b recall.Doc) int {
		if a.ID == b.ID {
			return 0
		}
		if first, _ := wins(a, b); first {
			return -1
		}
		return 1
	})
	var out []Conflict
	lost := map[string]bool{}
	for i, w := range docs {
		if lost[w.ID] {
			continue
		}
		var c Conflict
		for _, l := range docs[i+1:] {
			f, g, ok := contradiction(key, w, l)
			if !ok || lost[l.ID] || !meet(w, l) {
				continue
			}
			lost[l.ID] = true
			if len(c.Losers) == 0 {
				_, why := wins(w, l)
				c = Conflict{Subject: f.Subject, Attribute: f.Attribute, Winner: statement(w, f), Why: why}
			}
			c.Losers = append(c.Losers, statement(l, g))
		}
		if len(c.Losers) > 0 {
			out = append(out, c)
		}
	}
	return out
}

func contradiction(key string, a, b recall.Doc) (fact.Fact, fact.Fact, bool) {
	for _, f := range a.Facts {
		for _, g := range b.Facts {
			if f.Key() == key && fact.Contradict(f, g) {
				return f, g, true
			}
		}
	}
	return fact.Fact{}, fact.Fact{}, false
}

func statement(d recall.Doc, f fact.Fact) Statement {
	return Statement{ID: d.ID, Value: f.Value, Title: d.Title, Source: d.Source, Scope: d.Scope, Project: d.Project, Time: d.Time}
}

// against are the conflicts of one document with what is there.
func (s *Scopes) against(ctx context.Context, d recall.Doc) ([]Conflict, error) {
	if len(d.Facts) == 0 {
		return nil, nil
	}
	if err := s.o.Index.Refresh(ctx); err != nil {
		return nil, err
	}
	var out []Conflict
	err := s.o.Index.View(ctx, func(tx *recall.Tx) error {
		out = nil
		for _, f := range d.Facts {
			if f.Key() == "" {
				continue
			}
			others, err := tx.ByFact(f.Key())
			if err != nil {
				return err
			}
			docs := []recall.Doc{d}
			for _, o := range others {
				if o.ID != d.ID && o.Status == recall.Active && s.sees(o) && slices.Contains(stating(), o.Class) {
					docs = append(docs, o)
				}
			}
			for _, c := range settle(f.Key(), docs) {
				if c.Winner.ID == d.ID || slices.ContainsFunc(c.Losers, func(l Statement) bool { return l.ID == d.ID }) {
					out = append(out, c)
				}
			}
		}
		return nil
	})
	return out, err
}
