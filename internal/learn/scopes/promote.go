package scopes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/internal/event"
	"reprise/internal/learn"
	"reprise/internal/learn/sign"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/recall"
)

// Gates say when knowledge rises by itself.
type Gates struct {
	// ProjectSessions is in how many sessions of a project something was seen
	// to work before it is an entry of the project; default 2.
	ProjectSessions int
	// GlobalProjects is in how many projects before it is an entry of the
	// global memory; default 2.
	GlobalProjects int
	// MinConfidence is the least confidence, 0 to 1; default 0.6.
	MinConfidence float64
	// Off leaves promotion to people.
	Off bool
}

func (g Gates) withDefaults() Gates {
	if g.ProjectSessions <= 0 {
		g.ProjectSessions = 2
	}
	if g.GlobalProjects <= 0 {
		g.GlobalProjects = 2
	}
	if g.MinConfidence <= 0 {
		g.MinConfidence = 0.6
	}
	return g
}

// Held is something that a gate did not let through, and why.
type Held struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Reason string `json:"reason"`
}

// Promotion is what a run of the gates did.
type Promotion struct {
	Promoted []Change `json:"promoted"`
	Held     []Held   `json:"held,omitempty"`
	Looked   int      `json:"looked"` // candidates judged
	More     bool     `json:"more"`   // the budget ended first; the next run goes on
}

// Promote runs the gates over what was worked out: what was seen to work often
// enough becomes an entry. It is done again without harm, by any number of
// processes at once: what an entry was made from is in the entry, and looked for
// under the lock of its file. What was demoted or forgotten by hand does not
// come back. What is promoted is our own sentence about what was seen, never a
// tool's output.
func (s *Scopes) Promote(ctx context.Context, budget time.Duration) (Promotion, error) {
	p := Promotion{Promoted: []Change{}}
	if s.o.Gates.Off {
		return p, nil
	}
	start := s.o.Now()
	list, err := s.candidates(ctx)
	if err != nil {
		return p, fmt.Errorf("promote: %w", err)
	}
	same, err := s.alike(ctx)
	if err != nil {
		return p, fmt.Errorf("promote: %w", err)
	}
	for _, c := range append(list, same...) {
		if budget > 0 && p.Looked > 0 && s.o.Now().Sub(start) >= budget || ctx.Err() != nil {
			p.More = true
			return p, ctx.Err()
		}
		p.Looked++
		if c.held != "" {
			p.Held = append(p.Held, Held{ID: c.id, Title: c.entry.Title(), Reason: c.held})
			continue
		}
		done, held, err := s.raise(ctx, c)
		switch {
		case err != nil:
			return p, fmt.Errorf("promote %s: %w", c.id, err)
		case held != "":
			p.Held = append(p.Held, Held{ID: c.id, Title: c.entry.Title(), Reason: held})
		case !done.Existing:
			p.Promoted = append(p.Promoted, done)
		}
	}
	return p, nil
}

// candidate is something that a gate judges.
type candidate struct {
	id      string
	from    string // scope
	project string // where it is to stand; empty = global
	entry   mdfile.Entry
	reason  string
	held    string // why not
}

// candidates are the patterns, in the order of their ids.
func (s *Scopes) candidates(ctx context.Context) ([]candidate, error) {
	var out []candidate
	active := recall.Active
	err := s.o.Index.View(ctx, func(tx *recall.Tx) error {
		out = nil
		return tx.Each(recall.Filter{Class: recall.ClassPattern, Status: &active}, func(d recall.Doc) bool {
			if c, ok := s.candidate(d); ok {
				out = append(out, c)
			}
			return true
		})
	})
	slices.SortFunc(out, func(a, b candidate) int { return cmp.Compare(a.id, b.id) })
	return out, err
}

func (s *Scopes) candidate(d recall.Doc) (candidate, bool) {
	data, ok := learn.DataOf(d)
	g := s.o.Gates
	if !ok || data.Kind != learn.KindPattern && data.Kind != learn.KindSaid {
		return candidate{}, false
	}
	c := candidate{id: d.ID, project: s.home(d), from: string(event.ScopeSession)}
	if d.Project == "" {
		c.from = string(event.ScopeProject)
		if data.Projects < g.GlobalProjects {
			return candidate{}, false
		}
		c.reason = "seen to work in " + count(data.Projects, "project")
	} else {
		if data.Sessions < g.ProjectSessions {
			return candidate{}, false
		}
		c.reason = "seen to work in " + count(data.Sessions, "session")
	}
	text, typ := stated(data, d.Project == ""), mdfile.TypeLearning
	if data.Kind == learn.KindSaid {
		typ, c.reason = mdfile.TypePreference, "said in "+count(data.Sessions, "session")
		if d.Project == "" {
			c.reason = "said in " + count(data.Projects, "project")
		}
	}
	c.entry = mdfile.Entry{
		Type: typ, Agent: "reprise", Source: "pattern:" + d.ID, Confidence: d.Confidence, Evidence: data.Evidence, Time: d.Time, Text: text, Rationale: c.reason,
	}
	dir, place := recall.PlaceDir(d.Project)
	switch {
	case place && c.project == "":
		c.held = "in no project: run `reprise init` in " + sign.Clip(sign.Seen(dir), 200)
	case len(d.ACL) > 0 && !slices.Contains(d.ACL, "*"):
		c.held = "it is somebody's own: only their word, or a person's, promotes it"
	case text == "" && d.Project == "" && data.Fix != nil:
		c.held = "what helped is another file in each project"
	case text == "":
		c.held = "there is no sentence to make of it"
	case data.Kind == learn.KindPattern && d.Confidence < g.MinConfidence:
		c.held = fmt.Sprintf("its confidence is %.2f, and %.2f is asked for", d.Confidence, g.MinConfidence)
	default:
		c.held = cmp.Or(s.refused(data.Fix), s.unfit(text), s.unfit(data.Line)) // what was left out of the line speaks of who wrote it
	}
	return c, true
}

// refused says that the guard refuses what helped: it worked once, where the guard was set
// otherwise or was not there.
func (s *Scopes) refused(fix *learn.Fix) string {
	if fix == nil || s.o.Refused == nil {
		return ""
	}
	for _, c := range fix.Commands {
		if why := s.o.Refused(c); why != "" {
			return fmt.Sprintf("the guard refuses what helped, %s: %s", inTicks(c, 80), sign.Clip(why, 120))
		}
	}
	return ""
}

// stated is our own sentence about a pattern. Of the failure it has the
// signature's line, in which names, numbers and places are taken out, marked as
// a quotation and cut short, and of that only the words in which failures are told.
func stated(d learn.Data, global bool) string {
	if d.Kind == learn.KindSaid {
		return "The user said: " + sign.Clip(sign.Seen(d.Said), 200)
	}
	if d.Fix == nil || d.Target == "" {
		return ""
	}
	fix := d.Fix.Text
	if global {
		words, differs := d.Fix.Anywhere()
		if differs {
			return "" // "it worked after `sh <path>`" says nothing
		}
		fix = words
	}
	if sign.Seen(d.Line) == "" {
		return ""
	}
	target, fix := inTicks(d.Target, 80), sign.Clip(sign.Seen(fix), 160)
	line := inTicks(sign.Quote(sign.Seen(d.Line), target, fix), 120)
	if line == "" {
		return fmt.Sprintf("%s fails; it worked %s.", target, fix)
	}
	return fmt.Sprintf("%s fails with %s; it worked %s.", target, line, fix)
}

// inTicks puts foreign words between backticks, as one line without any.
func inTicks(text string, most int) string {
	text = sign.Clip(sign.Seen(strings.ReplaceAll(text, "`", "'")), most)
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// unfit says why a text may not rise by itself, "" when it may: secrets, and
// words that speak to a model instead of telling what happened.
func (s *Scopes) unfit(text string) string {
	if s.sweep(text) != text {
		return "a secret may be in it"
	}
	if w := sign.Instructs(text); w != "" {
		return fmt.Sprintf("it reads like an instruction to a model (%q)", w)
	}
	return ""
}

// alike are entries that people or agents wrote in several projects, word for
// word: what holds in so many holds everywhere.
func (s *Scopes) alike(ctx context.Context) ([]candidate, error) {
	type seen struct {
		first    memory.Item
		projects []string
		evidence []string
		last     time.Time
	}
	by := map[string]*seen{}
	var order []string
	projects := slices.Clone(s.o.Projects())
	slices.Sort(projects)
	for _, p := range projects {
		e := s.o.Entries(p)
		if e == nil {
			continue
		}
		list, err := e.List(ctx)
		if err != nil {
			return nil, err
		}
		for _, i := range list {
			if !i.Active() || i.Problem != "" || len(i.ACL) > 0 || i.Type != mdfile.TypeLearning && i.Type != mdfile.TypeDecision && i.Type != mdfile.TypePreference {
				continue
			}
			if i.Source != sourceHand && i.Source != sourceAgent {
				continue // patterns have a gate of their own
			}
			key := i.Type + ":" + sign.Hash(sayKey(entryText(i.Entry)))
			if by[key] == nil {
				by[key] = &seen{first: i}
				order = append(order, key)
			}
			at := by[key]
			if !slices.Contains(at.projects, p) {
				at.projects = append(at.projects, p)
			}
			at.evidence = append(at.evidence, i.ID)
			if i.Time.After(at.last) {
				at.last = i.Time
			}
		}
	}
	var out []candidate
	for _, key := range order {
		at := by[key]
		if len(at.projects) < s.o.Gates.GlobalProjects {
			continue
		}
		n := at.first.Entry
		n.ID, n.Status, n.Parent, n.DependsOn, n.Supersedes = "", "", "", nil, ""
		n.Source, n.Evidence, n.Time, n.Agent = "same:"+key, at.evidence[:min(len(at.evidence), maxEvidence)], at.last, "reprise"
		c := candidate{id: at.first.ID, from: string(event.ScopeProject), entry: n, reason: "written in " + count(len(at.projects), "project")}
		c.held = s.unfit(entryText(n))
		out = append(out, c)
	}
	return out, nil
}

// raise writes a candidate's entry.
func (s *Scopes) raise(ctx context.Context, c candidate) (done Change, held string, err error) {
	e := s.o.Entries(c.project)
	if e == nil {
		return Change{}, "there is no project " + c.project, nil
	}
	a, err := e.Add(ctx, c.entry)
	if errors.Is(err, memory.ErrRetired) {
		return Change{}, "it was demoted or forgotten by hand", nil
	}
	if err != nil {
		return Change{}, "", err
	}
	if !a.Existing {
		s.touch(c.project, a.File)
	}
	done = Change{Op: "promote", ID: a.ID, Old: c.id, Scope: scopeOf(c.project), Project: c.project, File: a.File, Text: entryText(a.Entry), Existing: a.Existing, Warnings: a.Warnings}
	if a.Existing {
		return done, "", nil
	}
	done.Event, err = s.note(ctx, event.MemoryPromoted, c.project, event.MemoryData{
		Op: "promote", ID: a.ID, Name: a.File, From: c.from, To: scopeOf(c.project), By: byGate, Reason: c.reason + " (" + c.entry.Source + ")", Text: done.Text,
	}, nil, c.entry.Evidence)
	if err != nil { // the entry says itself what it was made from
		done.Warnings = append(done.Warnings, "it is promoted, but the event of it is not written: "+err.Error())
	}
	return done, "", nil
}

// PromoteItem promotes by hand: to is project or global; empty is the next
// wider scope. The word of a person, or of the agent whose it is, also opens
// what was private, and brings back what had been demoted.
func (s *Scopes) PromoteItem(ctx context.Context, id, to string) (Change, error) {
	f, err := s.Find(ctx, id)
	if err != nil {
		return Change{}, err
	}
	project, err := s.target(f, to)
	if err != nil {
		return Change{}, fmt.Errorf("promote %s: %w", sign.Clip(id, 60), err)
	}
	e, err := s.entries(project)
	if err != nil {
		return Change{}, err
	}
	if data, ok := learn.DataOf(f.Doc); ok && f.Kind == FoundDerived && (data.Kind == learn.KindTurn || data.Kind == learn.KindSession || data.Kind == learn.KindDigest) {
		return Change{}, fmt.Errorf("promote %s: %w: it tells what happened once, and no sentence to go by; say in your own words what is to be learnt of it: `reprise memory learn \"…\"`", f.Doc.ID, memory.ErrContent)
	}
	var warnings []string
	agent, source, confidence := s.who()
	use, err := learn.New(learn.Options{Index: s.o.Index, Now: s.o.Now}).UsageOf(ctx, f.Doc.ID)
	if err != nil {
		return Change{}, err
	}
	if use.Useless > use.Useful {
		confidence /= 2
		warnings = append(warnings, "it was marked as of no use: its confidence is half of what it would be; `reprise memory demote` takes it back")
	}
	n := mdfile.Entry{Type: mdfile.TypeLearning, Agent: agent, Confidence: confidence, Text: strings.TrimSpace(f.Doc.Text)}
	evidence := []string{}
	switch f.Kind {
	case FoundEntry:
		n = f.Entry.Entry
		n.Source, n.ACL, n.Status, n.Supersedes, n.Parent, n.DependsOn = "entry:"+f.Entry.ID, nil, "", "", "", nil
		n.Time = time.Time{}
	case FoundDerived:
		data, ok := learn.DataOf(f.Doc)
		n.Source, evidence = string(f.Doc.Class)+":"+f.Doc.ID, data.Evidence
		if text := stated(data, project == ""); ok && text != "" {
			n.Text = text
		}
		if data.Kind == learn.KindSaid || data.Kind == learn.KindCorrection {
			n.Type = mdfile.TypePreference
		}
	default:
		n.Source = "section:" + f.Doc.ID
	}
	n.Evidence = evidence
	if use.Useless > use.Useful {
		n.Confidence = min(n.Confidence, confidence)
	}
	if w := sign.Instructs(entryText(n)); w != "" {
		warnings = append(warnings, fmt.Sprintf("it reads like an instruction to a model (%q): look at it, `reprise memory demote` takes it back", w))
	}
	a, err := e.Add(ctx, n)
	if errors.Is(err, memory.ErrRetired) { // what a person took back, a person may give again
		n.Source = source
		a, err = e.Add(ctx, n)
	}
	if err != nil {
		return Change{}, err
	}
	s.touch(project, a.File)
	c := Change{Op: "promote", ID: a.ID, Old: f.Doc.ID, Scope: scopeOf(project), Project: project, File: a.File, Text: entryText(a.Entry), Existing: a.Existing, Warnings: append(warnings, a.Warnings...)}
	if a.Existing {
		return c, nil
	}
	from := f.Scope()
	if f.Kind == FoundDerived && from == c.Scope {
		from = string(event.ScopeSession)
	}
	c.Event, err = s.note(ctx, event.MemoryPromoted, project, event.MemoryData{Op: "promote", ID: a.ID, Name: a.File, From: from, To: c.Scope, By: byHand, Reason: "promoted by " + agent + " (" + n.Source + ")", Text: c.Text}, nil, n.Evidence)
	if err != nil {
		c.Warnings = append(c.Warnings, "it is promoted, but the event of it is not written: "+err.Error())
	}
	if c.Conflicts, err = s.against(ctx, foundEntry(project, a.Item).Doc); err != nil {
		c.Warnings = append(c.Warnings, "could not look for what says otherwise: "+err.Error())
	}
	return c, nil
}

// target is the project that a promotion goes to, "" for the global memory.
func (s *Scopes) target(f Found, to string) (string, error) {
	private := len(f.Doc.ACL) > 0 && !slices.Contains(f.Doc.ACL, "*")
	if private && !s.o.Who.All && !slices.Contains(f.Doc.ACL, "agent:"+s.o.Who.Agent) {
		return "", fmt.Errorf("%w: it is somebody's own", memory.ErrDenied)
	}
	project := cmp.Or(f.Project, s.o.Who.Project)
	if to == "" {
		switch {
		case f.Kind == FoundDerived && (project != "" || f.Doc.Project != ""), private && f.Project != "":
			to = string(event.ScopeProject)
		default:
			to = string(event.ScopeGlobal)
		}
	}
	switch to {
	case string(event.ScopeGlobal):
		if f.Kind != FoundDerived && f.Project == "" && !private {
			return "", fmt.Errorf("%w: it is global already", memory.ErrExists)
		}
		return "", nil
	case string(event.ScopeProject):
		if project == "" {
			return "", fmt.Errorf("%w: it belongs to no project; run this inside the project's directory, or use --to global", memory.ErrContent)
		}
		if f.Kind == FoundEntry && f.Project == project && !private {
			return "", fmt.Errorf("%w: it is the project's already; use --to global", memory.ErrExists)
		}
		return project, nil
	}
	return "", fmt.Errorf("%w: there is no scope %q; use project or global", memory.ErrContent, to)
}
