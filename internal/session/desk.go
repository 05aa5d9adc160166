package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"reprise/internal/clip"
	"reprise/internal/config"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/recall"
	"reprise/internal/staterepo"
)

// Desk is the state of the agent that works here, for a client that works with it
// through tools. It is for one goroutine at a time.
type Desk struct {
	// Memory is all that is remembered, for what is looked up.
	Memory func() (*Memory, error)
	// Open is the repository and the agent's part of it; both are made on first need.
	Open func(ctx context.Context) (*staterepo.Repo, *staterepo.Tree, error)
	// Access is what the client may do with it.
	Access memory.Access
	// Reader is who asks; it is another one once the agent's state was made.
	Reader func() recall.Reader
	// Session is the client's session that a call is of, "" where that is not known;
	// Since is when the client came.
	Session func(ctx context.Context) string
	Since   time.Time
	Redact  func(string) string
	// Code is the branch and the commit of the code, "" where there is none.
	Code func(ctx context.Context) (branch, commit string)
}

// Wrote says what was written.
type Wrote struct {
	ID       string   `json:"id,omitempty"`
	Type     string   `json:"type,omitempty"`
	Agent    string   `json:"agent"`
	File     string   `json:"file"` // in the agent's directory
	Path     string   `json:"path"`
	Commit   string   `json:"commit"`
	Existing bool     `json:"unchanged,omitempty"`
	Notes    []string `json:"warnings"`
}

// ErrDoubt is the error of a learning that seems to be none.
var ErrDoubt = errors.New("this does not look like a learning")

// State is where the work stands.
func (d *Desk) State(ctx context.Context) (State, error) {
	m, err := d.Memory()
	if err != nil {
		return State{}, err
	}
	return m.State(ctx, Asking{Reader: d.Reader(), Session: d.Session(ctx), Since: d.Since})
}

// Add writes an entry into the agent's files and commits it.
func (d *Desk) Add(ctx context.Context, e mdfile.Entry) (Wrote, error) {
	_, tree, err := d.Open(ctx)
	if err != nil {
		return Wrote{}, err
	}
	branch, _ := d.Code(ctx)
	e.Evidence = append(e.Evidence, Whence(d.Session(ctx), branch)...)
	a, err := tree.Add(ctx, d.Access, e)
	if err != nil {
		return Wrote{}, err
	}
	return d.added(tree, a), nil
}

func (d *Desk) added(tree *staterepo.Tree, a staterepo.Added) Wrote {
	return Wrote{
		ID: a.ID, Type: a.Type, Agent: tree.Agent(), File: a.File, Path: a.Path, Commit: a.Saved.Commit, Existing: a.Existing,
		Notes: slices.Concat([]string{}, a.Warnings, a.Saved.Notes),
	}
}

// Learn keeps a learning of the agent's own. What only tells what was done is
// refused, once it was said what it should rather be; sure keeps it all the same.
func (d *Desk) Learn(ctx context.Context, insight, about string, sure bool) (Wrote, error) {
	if doubt := staterepo.CheckLearning(insight); doubt.Why != "" && !sure {
		return Wrote{}, fmt.Errorf("%w: %s", ErrDoubt, doubt.Why)
	}
	text := strings.TrimSpace(insight)
	if about = strings.TrimSpace(about); about != "" {
		text += "\n\nContext: " + about
	}
	return d.Add(ctx, mdfile.Entry{Type: mdfile.TypeLearning, Text: text, Source: "agent", Confidence: 0.6})
}

// Write replaces a text file of the agent's, or with add puts text behind what is
// there.
func (d *Desk) Write(ctx context.Context, name, text string, add bool) (Wrote, error) {
	_, tree, err := d.Open(ctx)
	if err != nil {
		return Wrote{}, err
	}
	if add {
		old, err := tree.Read(name)
		if err != nil {
			return Wrote{}, err
		}
		if old = strings.TrimRight(old, "\n"); old != "" {
			text = old + "\n\n" + text
		}
	}
	if text = strings.TrimRight(text, "\n"); text != "" {
		text += "\n"
	}
	if len(text) > memory.MaxContent {
		return Wrote{}, fmt.Errorf("write %s: it would have %d bytes, at most %d are allowed; replace it by something shorter", name, len(text), memory.MaxContent)
	}
	s, err := tree.Write(ctx, d.Access, name, d.Redact(text), strings.TrimSuffix(name, ".md"))
	if err != nil {
		return Wrote{}, err
	}
	return d.saved(tree, name, s), nil
}

func (d *Desk) saved(tree *staterepo.Tree, name string, s staterepo.Saved) Wrote {
	return Wrote{Agent: tree.Agent(), File: name, Path: path.Join(tree.Dir, name), Commit: s.Commit, Notes: slices.Concat([]string{}, s.Notes)}
}

// Checkpoint keeps where the agent is under a name.
func (d *Desk) Checkpoint(ctx context.Context, name, message string, now time.Time) (Wrote, error) {
	_, tree, err := d.Open(ctx)
	if err != nil {
		return Wrote{}, err
	}
	c := staterepo.Checkpoint{Name: name, Time: now, Message: d.Redact(message)}
	c.CodeBranch, c.CodeCommit = d.Code(ctx)
	s, err := tree.Checkpoint(ctx, d.Access, c)
	if err != nil {
		return Wrote{}, err
	}
	return d.saved(tree, "checkpoints/"+name+".md", s), nil
}

// Accepted is a handoff that was taken.
type Accepted struct {
	Wrote
	Handoff Noted `json:"handoff"`
}

// Accept takes a handoff for the agent that works here, once.
func (d *Desk) Accept(ctx context.Context, id string) (Accepted, error) {
	repo, tree, err := d.Open(ctx)
	if err != nil {
		return Accepted{}, err
	}
	a, err := tree.Accept(ctx, d.Access, id)
	if err != nil {
		return Accepted{}, err
	}
	out := Accepted{Wrote: d.added(tree, a)}
	list, err := repo.Handoffs(ctx, "")
	if err != nil {
		return Accepted{}, fmt.Errorf("it is yours (entry %s), but cannot be shown: %w", a.ID, err)
	}
	for _, h := range list {
		if slices.Contains(a.DependsOn, h.ID) {
			out.Handoff = noted(h.Entry, true)
		}
	}
	return out, nil
}

// Wanted is what is searched for in a project's entries.
type Wanted struct {
	Query string    // empty = the newest
	Type  string    // of the entry; empty = all
	Since time.Time // zero = of any time
	Max   int
}

// Found is what was found in a project's entries.
type Found struct {
	Results []FoundEntry `json:"results"`
	// Own is how many entries of other agents fit that are theirs until they are
	// promoted, by agent.
	Own map[string]int `json:"of_other_agents,omitempty"`
	// Elsewhere are projects in which something fits, Projects all others that
	// there are: both only where nothing was found here.
	Elsewhere []string `json:"found_in_projects,omitempty"`
	Projects  []string `json:"other_projects,omitempty"`
}

// FoundEntry is one entry.
type FoundEntry struct {
	ID     string  `json:"id"`
	Type   string  `json:"type"`
	Agent  string  `json:"agent"`
	Date   string  `json:"date"`
	Text   string  `json:"text"`
	Source string  `json:"source"`
	Shared bool    `json:"shared"`
	Score  float64 `json:"score,omitempty"`
}

// classesOf are the classes in which entries of a type are.
func classesOf(typ string) []recall.Class {
	switch typ {
	case "":
		return []recall.Class{recall.ClassDecision, recall.ClassLearning, recall.ClassState}
	case mdfile.TypeDecision:
		return []recall.Class{recall.ClassDecision}
	case mdfile.TypeLearning:
		return []recall.Class{recall.ClassLearning}
	}
	return []recall.Class{recall.ClassState}
}

// Search finds entries of the project: what all share, the agent's own, and what
// agents here did.
func (d *Desk) Search(ctx context.Context, w Wanted) (Found, error) {
	out := Found{Results: []FoundEntry{}}
	m, err := d.Memory()
	if err != nil {
		return out, err
	}
	reader := d.Reader()
	project := reader.Project
	docs := map[string]recall.Doc{}
	fits := func(doc *recall.Doc) bool {
		return doc.Project == project && strings.HasPrefix(doc.ID, "e-") && (w.Type == "" || EntryType(doc) == w.Type) && !doc.Time.Before(w.Since)
	}
	if strings.TrimSpace(w.Query) == "" {
		err := d.newest(ctx, m, w, fits, &out)
		return out, err
	}
	hits, err := m.Index.Search(ctx, recall.Query{Text: w.Query, Max: w.Max, MaxTokens: 1 << 20, Reader: reader, Classes: classesOf(w.Type), Keep: func(doc *recall.Doc) bool {
		docs[doc.ID] = *doc
		return fits(doc)
	}})
	if err != nil {
		return out, err
	}
	for _, h := range hits {
		doc := docs[h.ID]
		out.Results = append(out.Results, foundEntry(&doc, h.Score))
	}
	all := reader
	all.All = true
	others, err := m.Index.Search(ctx, recall.Query{Text: w.Query, Max: recall.MaxHits, MaxTokens: 1 << 20, Reader: all, Classes: classesOf(w.Type), Keep: func(doc *recall.Doc) bool {
		if fits(doc) && !reader.MayRead(doc.ACL) && len(doc.ACL) == 1 && doc.ACL[0] == "agent:"+doc.Author && EntryType(doc) != "" {
			if out.Own == nil {
				out.Own = map[string]int{}
			}
			out.Own[doc.Author]++
		}
		return false
	}})
	if err != nil || len(others)+len(out.Results) > 0 {
		return out, err
	}
	err = d.elsewhere(ctx, m, w, &out)
	return out, err
}

// elsewhere looks where else something fits, so that a misspelt project shows.
func (d *Desk) elsewhere(ctx context.Context, m *Memory, w Wanted, out *Found) error {
	a, err := m.Index.Recall(ctx, recall.Question{Text: w.Query, Reader: d.Reader(), Classes: classesOf(w.Type), Elsewhere: true, Max: 1})
	if err != nil {
		return err
	}
	out.Elsewhere = a.Elsewhere
	out.Projects = OtherProjects(m.o.Home)
	return nil
}

// OtherProjects are the names of the projects that have data here, the one that
// is worked in left out.
func OtherProjects(home *config.Home) []string {
	return slices.DeleteFunc(Projects(home), func(p string) bool { return home.Project != nil && p == home.Project.Name })
}

// newest are the newest entries that fit, the newest first.
func (d *Desk) newest(ctx context.Context, m *Memory, w Wanted, fits func(*recall.Doc) bool, out *Found) error {
	if err := m.Index.Refresh(ctx); err != nil {
		return err
	}
	reader := d.Reader()
	var list []recall.Doc
	active := recall.Active
	err := m.Index.View(ctx, func(tx *recall.Tx) error {
		list = nil
		for _, class := range classesOf(w.Type) {
			if err := tx.Each(recall.Filter{Class: class, Project: reader.Project, Status: &active}, func(doc recall.Doc) bool {
				if fits(&doc) && reader.MayRead(doc.ACL) {
					list = append(list, doc)
				}
				return true
			}); err != nil {
				return err
			}
		}
		return nil
	})
	slices.SortStableFunc(list, func(a, b recall.Doc) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.ID, b.ID)) })
	for i := range list[:min(len(list), w.Max)] {
		out.Results = append(out.Results, foundEntry(&list[i], 0))
	}
	if len(list) == 0 && err == nil {
		out.Projects = OtherProjects(m.o.Home)
	}
	return err
}

func foundEntry(doc *recall.Doc, score float64) FoundEntry {
	return FoundEntry{
		ID: doc.ID, Type: EntryType(doc), Agent: cmp.Or(doc.Author, "user"), Date: doc.Time.UTC().Format(time.DateOnly), Text: clip.Runes(doc.Text, 600), Source: strings.TrimPrefix(doc.Source, doc.Project+":"),
		Shared: len(doc.ACL) == 0, Score: score,
	}
}
