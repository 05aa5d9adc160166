package scopes

import (
	"context"
	"fmt"
	"slices"
	"time"

	"reprise/internal/event"
	"reprise/internal/learn/sign"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
)

// adopted is an agent's own entry as it is a project's.
func adopted(own mdfile.Entry) mdfile.Entry {
	n := own
	n.Source, n.ACL, n.Status, n.Supersedes, n.Parent, n.DependsOn, n.Time = "entry:"+own.ID, nil, "", "", "", nil, time.Time{}
	return n
}

// Prospect is what an agent's own entry would meet if it became the project's.
type Prospect struct {
	Same      string     `json:"same,omitempty"` // id of what says the same there already
	Conflicts []Conflict `json:"conflicts,omitempty"`
}

// Prospects look what an agent's own entries would meet, each by itself, among what the
// project and the reader's other memory say. They change nothing.
func (s *Scopes) Prospects(ctx context.Context, project string, own []mdfile.Entry) ([]Prospect, error) {
	e, err := s.entries(project)
	if err != nil {
		return nil, err
	}
	list, err := e.List(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Prospect, len(own))
	for n, o := range own {
		x := adopted(o)
		if i := slices.IndexFunc(list, func(i memory.Item) bool { return saysSame(i, x) }); i >= 0 {
			out[n].Same = list[i].ID
			continue
		}
		x.ID, x.Time = o.ID, s.o.Now() // it would be promoted now
		d := foundEntry(project, memory.Item{Entry: x, File: "agent-" + o.Agent, State: mdfile.State{Status: mdfile.StatusActive}}).Doc
		if out[n].Conflicts, err = s.against(ctx, d); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Adopt makes an entry of a project of one that an agent wrote for itself, in a
// file that is none of the project's. What the project says already in other words
// of the same meaning is not said twice; what says otherwise is told.
func (s *Scopes) Adopt(ctx context.Context, project string, own mdfile.Entry) (Change, error) {
	e, err := s.entries(project)
	if err != nil {
		return Change{}, err
	}
	if !visible(s.o.Who, own.ACL) {
		return Change{}, fmt.Errorf("promote %s: nothing that you may see has this id", own.ID)
	}
	n := adopted(own)
	var warnings []string
	if w := sign.Instructs(entryText(n)); w != "" {
		warnings = append(warnings, fmt.Sprintf("it reads like an instruction to a model (%q): look at it, `reprise memory demote` takes it back", w))
	}
	a, err := e.AddOnce(ctx, n, saysSame)
	if err != nil {
		return Change{}, err
	}
	s.touch(project, a.File)
	c := Change{Op: "promote", ID: a.ID, Old: own.ID, Scope: scopeOf(project), Project: project, File: a.File, Text: entryText(a.Entry), Existing: a.Existing, Warnings: append(warnings, a.Warnings...)}
	if a.Existing {
		return c, nil
	}
	c.Event, err = s.note(ctx, event.MemoryPromoted, project, event.MemoryData{
		Op: "promote", ID: a.ID, Name: a.File, From: string(event.ScopeSession), To: c.Scope, By: byHand, Reason: "promoted from agent " + own.Agent + " (" + n.Source + ")", Text: c.Text,
	}, nil, n.Evidence)
	if err != nil {
		c.Warnings = append(c.Warnings, "it is promoted, but the event of it is not written: "+err.Error())
	}
	if c.Conflicts, err = s.against(ctx, foundEntry(project, a.Item).Doc); err != nil {
		c.Warnings = append(c.Warnings, "could not look for what says otherwise: "+err.Error())
	}
	return c, nil
}
