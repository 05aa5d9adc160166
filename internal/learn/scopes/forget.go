package scopes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reprise/internal/event"
	"reprise/internal/learn"
	"reprise/internal/learn/sign"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/recall"
)

// Forgetting of [Scopes.Forget].
type Forgetting struct {
	Reason string
	// Purge takes the evidence out of the logs, too: the events that it was
	// worked out from, or that tell its words.
	Purge bool
	// Only leaves what says the same elsewhere: the pattern that an entry was
	// made from, what was promoted from it.
	Only bool
}

// WouldForget is what Forget would take out: the item that is named first, then what
// goes with it. Of a purge it is not all: what in the log tells of nothing else goes, too.
func (s *Scopes) WouldForget(ctx context.Context, id string, o Forgetting) ([]Found, error) {
	f, err := s.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.withKin(ctx, f, o)
}

func (s *Scopes) withKin(ctx context.Context, f Found, o Forgetting) ([]Found, error) {
	list := []Found{f}
	if o.Only {
		return list, nil
	}
	kin, err := s.kin(ctx, f)
	return append(list, kin...), err
}

// Going is an item that a forgetting takes out.
type Going struct {
	ID      string       `json:"id"`
	Class   recall.Class `json:"class"`
	Scope   string       `json:"scope"`
	Project string       `json:"project,omitempty"`
	Title   string       `json:"title,omitempty"`  // not of a purge: whoever keeps the answer would keep the words
	Beyond  bool         `json:"beyond,omitempty"` // see [Scopes.Beyond]
}

// Far reports whether some of what goes is told elsewhere than in this project.
func (c Change) Far() bool {
	return slices.ContainsFunc(c.Items, func(g Going) bool { return g.Beyond })
}

// Would is Forget that only says what it would take out.
func (s *Scopes) Would(ctx context.Context, id string, o Forgetting) (Change, error) {
	list, err := s.WouldForget(ctx, id, o)
	if err != nil {
		return Change{}, err
	}
	f := list[0]
	return Change{Op: "forget", ID: f.Doc.ID, Scope: f.Scope(), Project: f.Project, Text: f.Doc.Title, DryRun: true, Items: s.going(list, false)}, nil
}

func (s *Scopes) going(list []Found, purge bool) []Going {
	beyond := s.Beyond(list)
	out := make([]Going, len(list))
	for i, f := range list {
		out[i] = Going{ID: f.Doc.ID, Class: f.Doc.Class, Scope: f.Scope(), Project: f.Doc.Project, Title: f.Doc.Title}
		out[i].Beyond = slices.ContainsFunc(beyond, func(b Found) bool { return b.Doc.ID == f.Doc.ID })
		if purge {
			out[i].Title = ""
		}
	}
	return out
}

// Beyond are those of a forgetting's items that go with the one that was named, and are
// served in another scope than its own and that of the asking one's project.
func (s *Scopes) Beyond(list []Found) []Found {
	var out []Found
	for _, f := range list[min(1, len(list)):] {
		if f.Doc.Project != list[0].Doc.Project && f.Doc.Project != s.o.Who.Project {
			out = append(out, f)
		}
	}
	return out
}

// Forget sees to it that an item is not served any more, by no store and no
// index, after a rebuild neither. The log keeps that it was forgotten and, but
// for a purge, what it was worked out from.
//
// What is to be done is written down first, so that where this is killed the next
// command or hook finishes it; see [Scopes.Finish].
func (s *Scopes) Forget(ctx context.Context, id string, o Forgetting) (Change, error) {
	unlock, err := s.alone(ctx)
	if err != nil {
		return Change{}, err
	}
	defer unlock()
	f, err := s.Find(ctx, id)
	if err != nil {
		return s.forgetAgain(ctx, id, o, err)
	}
	if o.Purge && s.o.Purge == nil {
		return Change{}, errNoPurge
	}
	list, err := s.withKin(ctx, f, o)
	if err != nil {
		return Change{}, err
	}
	job := pending{V: pendingVersion, At: s.o.Now().UTC(), ID: f.Doc.ID, Scope: f.Scope(), Project: f.Project, Text: f.Doc.Title, Reason: sign.Clip(s.sweep(o.Reason), 400)}
	if o.Purge {
		if job.Evidence, list, err = s.evidence(ctx, list); err != nil {
			return Change{}, err
		}
	}
	for _, item := range list {
		i := itemOf(item)
		if o.Purge {
			i.Entry = nil // nobody is to have it back
		}
		job.Items = append(job.Items, i)
	}
	if err := s.intend(&job); err != nil {
		return Change{}, err
	}
	c := Change{Op: "forget", ID: f.Doc.ID, Scope: f.Scope(), Project: f.Project, Items: s.going(list, o.Purge)}
	if !o.Purge { // whoever prints or keeps it would write anew what is to be gone
		c.Text = f.Doc.Title
	}
	if err := s.carryOut(ctx, &job, &c); err != nil {
		return c, err
	}
	if o.Purge {
		if err := s.gitKeeps(ctx, list, &c); err != nil {
			return c, err
		}
		s.stays(ctx, job.Evidence, &c)
	}
	return c, s.done(&job)
}

var errNoPurge = errors.New("forget: events cannot be purged here; use `reprise memory forget --purge` on the machine that holds the log")

// forgetAgain answers for what is there no more: that it was forgotten is a
// success, so that what was cut short can be done again. The evidence of what
// was forgotten without a purge can be purged later: its tombstone names it.
func (s *Scopes) forgetAgain(ctx context.Context, id string, o Forgetting, cause error) (Change, error) {
	if !errors.Is(cause, memory.ErrNotFound) {
		return Change{}, cause
	}
	was := Change{Op: "forget", ID: id, Existing: true}
	tombs, err := s.tombstones(id)
	if err != nil {
		return Change{}, err
	}
	if len(tombs) > 0 {
		was.Scope, was.Project = scopeOf(tombs[0].project), tombs[0].project
	} else if was.Scope, was.Project, err = s.retiredEntry(ctx, id); err != nil {
		return Change{}, err
	}
	if was.Scope == "" {
		return Change{}, cause
	}
	if !o.Purge {
		return was, nil
	}
	if s.o.Purge == nil {
		return was, errNoPurge
	}
	e := &evidence{}
	ids := []string{id}
	for _, t := range tombs {
		e.Events = append(e.Events, t.event.Evidence...)
		ids = append(ids, t.data.ID, t.data.Hash)
	}
	if err := s.follow(ctx, e, ids); err != nil {
		return was, err
	}
	job := pending{V: pendingVersion, At: s.o.Now().UTC(), ID: id, Scope: was.Scope, Project: was.Project, Reason: sign.Clip(s.sweep(o.Reason), 400), Evidence: e}
	if err := s.intend(&job); err != nil {
		return was, err
	}
	if err := s.carryOut(ctx, &job, &was); err != nil {
		return was, err
	}
	if was.Purged == 0 {
		was.Warnings = append(was.Warnings, "the logs have nothing, or nothing any more, that is known to tell it; `reprise events list --grep WORDS` looks for its words")
	}
	s.stays(ctx, e, &was)
	return was, s.done(&job)
}

// retiredEntry is where an entry was that its file says was taken out; an empty
// scope is nowhere.
func (s *Scopes) retiredEntry(ctx context.Context, id string) (scope, project string, err error) {
	for _, p := range s.places() {
		e := s.o.Entries(p)
		if e == nil {
			continue
		}
		st, err := e.State(ctx, id)
		if err != nil {
			return "", "", err
		}
		if st.Status == mdfile.StatusRetired {
			return scopeOf(p), p, nil
		}
	}
	return "", "", nil
}

type tombstone struct {
	project string
	event   event.Event
	data    event.MemoryData
}

// tombstones are those of an item, and of what went with it: they name its
// tombstone as their parent.
func (s *Scopes) tombstones(id string) ([]tombstone, error) {
	var own, others []tombstone
	parents := map[string]bool{}
	err := s.eachRetired(func(project string, e event.Event, d event.MemoryData) {
		switch t := (tombstone{project, e, d}); {
		case d.Op != learn.OpForget:
		case d.ID == id:
			own = append(own, t)
			parents[e.ID] = true
		default:
			others = append(others, t)
		}
	})
	for _, t := range others {
		if parents[t.event.Parent] {
			own = append(own, t)
		}
	}
	return own, err
}

func (s *Scopes) eachRetired(fn func(project string, e event.Event, d event.MemoryData)) error {
	return s.eachChange(func(project string, e event.Event, d event.MemoryData) {
		if e.Type == event.MemoryRetired {
			fn(project, e, d)
		}
	})
}

// eachChange calls fn with what the logs say was done to what is remembered, with the
// project whose log it is.
func (s *Scopes) eachChange(fn func(project string, e event.Event, d event.MemoryData)) error {
	if s.o.Events == nil {
		return nil
	}
	for _, p := range s.places() {
		for e, err := range event.Read(s.o.Events(p)) {
			switch {
			case err != nil: // a line that cannot be read says nothing
			case e.Type == event.MemoryRetired, e.Type == event.MemoryWritten, e.Type == event.MemoryPurged:
				var d event.MemoryData
				if json.Unmarshal(e.Data, &d) == nil {
					fn(p, e, d)
				}
			}
		}
	}
	return nil
}

// forget takes one item out; parent is the tombstone of the item that it goes
// with. What of it is done already is not done again.
//
// keep says that what leaves a file is kept in the log, so that it can be taken back.
func (s *Scopes) forget(ctx context.Context, f pendingItem, reason, parent string, keep bool) (Change, error) {
	c := Change{Op: "forget", ID: f.ID}
	if c.Event = f.tombstone; c.Event == "" {
		if err := s.setAside(ctx, f, keep); err != nil {
			return c, err
		}
		data := event.MemoryData{Op: learn.OpForget, ID: f.ID, From: f.Scope, By: byHand, Reason: reason, Hash: f.Hash, Name: f.Name}
		var err error
		if c.Event, err = s.noteBelow(ctx, parent, event.MemoryRetired, f.Project, data, f.ACL, f.Evidence); err != nil {
			return c, err
		}
	}
	switch f.Kind {
	case FoundEntry:
		e, err := s.entries(f.Project)
		if err != nil {
			return c, err
		}
		agent, _, _ := s.who()
		r, err := e.Retire(ctx, f.ID, agent, reason)
		if err != nil && !errors.Is(err, memory.ErrNotFound) {
			return c, err
		}
		c.File, c.Warnings = f.Name, r.Warnings
		s.touch(f.Project, f.Name)
	case FoundSection:
		st, err := s.store(f.Project)
		if err != nil {
			return c, err
		}
		_, w, err := st.ReplacePassage(ctx, *f.Passage, "")
		if err != nil && !errors.Is(err, memory.ErrNotFound) {
			return c, err
		}
		c.File, c.Warnings = f.Name, w.Warnings
		s.touch(f.Project, f.Name)
	}
	return c, nil
}

// kin are the other items that say what an item says: what it was promoted
// from, what was promoted from it, a pattern's episodes and its like of other
// scopes.
func (s *Scopes) kin(ctx context.Context, f Found) ([]Found, error) {
	var out []Found
	seen := map[string]bool{f.Doc.ID: true}
	queue := []Found{f}
	for len(queue) > 0 && len(out) < 200 {
		at := queue[0]
		queue = queue[1:]
		next, err := s.kinOf(ctx, at)
		if err != nil {
			return nil, err
		}
		for _, k := range next {
			if !seen[k.Doc.ID] {
				seen[k.Doc.ID] = true
				out = append(out, k)
				queue = append(queue, k)
			}
		}
	}
	return out, nil
}

func (s *Scopes) kinOf(ctx context.Context, f Found) ([]Found, error) {
	var out []Found
	for _, p := range s.places() { // entries made from it
		e := s.o.Entries(p)
		if e == nil {
			continue
		}
		list, err := e.List(ctx)
		if err != nil {
			return nil, err
		}
		for _, i := range list {
			if made, ok := madeFrom(i.Source); ok && i.Active() && visible(s.o.Who, i.ACL) && (made == f.Doc.ID || f.Kind == FoundEntry && f.Entry.Source == i.Source) {
				out = append(out, foundEntry(p, i))
			}
		}
	}
	var ids []string
	if f.Kind == FoundEntry {
		if made, ok := madeFrom(f.Entry.Source); ok {
			ids = append(ids, made)
		}
	}
	data, ok := learn.DataOf(f.Doc)
	err := s.o.Index.View(ctx, func(tx *recall.Tx) error {
		var docs []recall.Doc
		for _, id := range ids {
			if d, ok, err := tx.Get(id); err != nil {
				return err
			} else if ok {
				docs = append(docs, d)
			}
		}
		if ok && f.Doc.Class == recall.ClassPattern {
			more, err := sameFix(tx, data)
			if err != nil {
				return err
			}
			docs = append(docs, more...)
		}
		for _, d := range docs {
			if s.sees(d) && !strings.HasPrefix(d.ID, "e-") {
				out = append(out, s.foundDoc(d))
			}
		}
		return nil
	})
	return out, err
}

// madeFrom is the id in an entry's source, "pattern:<id>".
func madeFrom(source string) (string, bool) {
	kind, id, ok := strings.Cut(source, ":")
	return id, ok && kind != "" && id != ""
}

// sameFix are the episodes and patterns that tell of a pattern's fix, or of its
// correction.
func sameFix(tx *recall.Tx, data learn.Data) ([]recall.Doc, error) {
	key := data.Signature
	said := data.Kind == learn.KindSaid || data.Kind == learn.KindCorrection
	if said {
		key = data.SaidKey
	}
	if key == "" {
		return nil, nil
	}
	list, err := tx.ByKey(key)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(d recall.Doc) bool {
		other, ok := learn.DataOf(d)
		switch {
		case !ok:
			return true
		case said:
			return other.SaidKey != data.SaidKey
		case data.Fix == nil || other.Fix == nil:
			return true
		}
		return other.Fix.Key != data.Fix.Key
	}), nil
}

// gitKeeps tells what the memory's repository still holds: commits are not
// rewritten behind their owner's back.
func (s *Scopes) gitKeeps(ctx context.Context, list []Found, c *Change) error {
	for _, f := range list {
		text := f.Passage.Text
		if f.Kind == FoundEntry {
			text = entryText(f.Entry.Entry)
		}
		if text == "" {
			continue
		}
		if f.Project != "" && s.o.Holders != nil {
			held, err := s.o.Holders(ctx, f.Project, f.Doc.ID, text)
			if err != nil {
				c.Warnings = append(c.Warnings, "could not look for what of the state holds it: "+err.Error())
			}
			if len(held) > 0 {
				c.Warnings = append(c.Warnings, "the history of the project's state still holds it: "+strings.Join(held, "; ")+"; `reprise state find` has more about it")
			}
		}
		st := s.o.Global
		if f.Project != "" {
			if st = s.o.Blocks(f.Project); st == nil {
				continue
			}
		}
		commits, err := st.Committed(ctx, text)
		if err != nil {
			c.Warnings = append(c.Warnings, err.Error())
			continue
		}
		if len(commits) > 0 {
			c.Warnings = append(c.Warnings, fmt.Sprintf("git still has it in %s of %s (%s) and in every copy of them; `git filter-repo --replace-text` or a new repository takes it out, then `git reflog expire --expire=now --all` and `git gc --prune=now`",
				count(len(commits), "commit"), st.Dir(), strings.Join(commits, ", ")))
		}
	}
	return nil
}
