package scopes

import (
	"context"
	"fmt"
	"strings"

	"reprise/internal/event"
	"reprise/internal/learn"
	"reprise/internal/learn/sign"
	"reprise/internal/memory"
	"reprise/internal/recall"
)

// Demote takes a promotion back: the item is not served in the wider scope any
// more, nor is what was promoted from it, and no gate promotes it again. What it
// was made from stays, but for a pattern over all projects that says the same in
// the same scope. Of an item that somebody wrote, or that was worked out, only
// what was promoted from it goes.
func (s *Scopes) Demote(ctx context.Context, id, reason string) (Change, error) {
	f, err := s.Find(ctx, id)
	if err != nil {
		return Change{}, err
	}
	list, err := s.copies(ctx, f.Doc.ID)
	if err != nil {
		return Change{}, err
	}
	stays := f.Doc.ID
	if made, ok := madeFrom(f.Entry.Source); f.Kind == FoundEntry && ok {
		stays, list = made, append([]Found{f}, list...)
	}
	if len(list) == 0 {
		what := "nothing was promoted from it"
		if f.Kind == FoundEntry {
			what = "it was not promoted, somebody wrote it"
		}
		return Change{}, fmt.Errorf("demote %s: %w: %s; `reprise memory forget` takes it out", f.Doc.ID, memory.ErrContent, what)
	}
	var c Change
	for i, item := range list {
		one, err := s.demote(ctx, item, reason)
		if err != nil {
			return c, err
		}
		if i == 0 {
			c = one
			continue
		}
		c.Also = append(append(c.Also, one.ID), one.Also...)
		c.Warnings = append(c.Warnings, one.Warnings...)
	}
	for _, also := range c.Also {
		if also == stays {
			stays = ""
		}
	}
	c.Stays = stays
	if err := s.drop(ctx, c.Also...); err != nil {
		return c, err
	}
	return c, s.o.Index.Refresh(ctx)
}

// copies are the entries that were promoted from an item, and from those.
func (s *Scopes) copies(ctx context.Context, id string) ([]Found, error) {
	var out []Found
	from := map[string]bool{id: true}
	for grew := true; grew; {
		grew = false
		for _, p := range s.places() {
			e := s.o.Entries(p)
			if e == nil {
				continue
			}
			items, err := e.List(ctx)
			if err != nil {
				return nil, err
			}
			for _, i := range items {
				if made, ok := madeFrom(i.Source); ok && from[made] && !from[i.ID] && i.Active() && visible(s.o.Who, i.ACL) {
					from[i.ID], grew = true, true
					out = append(out, foundEntry(p, i))
				}
			}
		}
	}
	return out, nil
}

// demote takes one promoted entry out.
func (s *Scopes) demote(ctx context.Context, f Found, reason string) (Change, error) {
	e, err := s.entries(f.Project)
	if err != nil {
		return Change{}, err
	}
	to := string(event.ScopeSession)
	if strings.HasPrefix(f.Entry.Source, "entry:") {
		to = string(event.ScopeProject)
	}
	c := Change{Op: "demote", ID: f.Entry.ID, Scope: to, Project: f.Project, File: f.Entry.File, Text: f.Doc.Title}
	reason = sign.Clip(s.sweep(reason), 400)
	c.Event, err = s.note(ctx, event.MemoryRetired, f.Project, event.MemoryData{Op: learn.OpDemote, ID: f.Entry.ID, Name: f.Entry.File, From: f.Scope(), To: to, By: byHand, Reason: reason}, f.Entry.ACL, nil)
	if err != nil {
		return c, err
	}
	agent, _, _ := s.who()
	r, err := e.Retire(ctx, f.Entry.ID, agent, "demoted. "+reason)
	if err != nil {
		return c, err
	}
	c.Warnings = r.Warnings
	s.touch(f.Project, f.Entry.File)
	made, _ := madeFrom(f.Entry.Source)
	if f.Project != "" || strings.HasPrefix(made, "e-") {
		return c, nil
	}
	// The pattern over all projects would go on saying it to all of them.
	var d recall.Doc
	ok := false
	err = s.o.Index.View(ctx, func(tx *recall.Tx) (err error) { d, ok, err = tx.Get(made); return err })
	if err != nil || !ok || d.Project != "" || d.Class != recall.ClassPattern {
		return c, err
	}
	if _, err := s.noteBelow(ctx, c.Event, event.MemoryRetired, "", event.MemoryData{Op: learn.OpForget, ID: made, From: string(event.ScopeGlobal), By: byHand, Reason: strings.TrimSpace("demoted. " + reason)}, d.ACL, nil); err != nil {
		return c, err
	}
	c.Also = append(c.Also, made)
	return c, nil
}
