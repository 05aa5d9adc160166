package scopes

import (
	"cmp"
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

// Forget sees to it that an item is not served any more, by no store and no
// index, after a rebuild neither. The log keeps that it was forgotten and, but
// for a purge, what it was worked out from.
func (s *Scopes) Forget(ctx context.Context, id string, o Forgetting) (Change, error) {
	f, err := s.Find(ctx, id)
	if err != nil {
		return s.forgetAgain(ctx, id, o, err)
	}
	if o.Purge && s.o.Purge == nil {
		return Change{}, errNoPurge
	}
	list := []Found{f}
	if !o.Only {
		kin, err := s.kin(ctx, f)
		if err != nil {
			return Change{}, err
		}
		list = append(list, kin...)
	}
	c := Change{Op: "forget", ID: f.Doc.ID, Scope: f.Scope(), Project: f.Project, Text: f.Doc.Title}
	var ids []string
	for i, item := range list {
		one, err := s.forget(ctx, item, o.Reason, c.Event)
		if err != nil {
			return c, err
		}
		c.Warnings = append(c.Warnings, one.Warnings...)
		if i == 0 {
			c.Event, c.File = one.Event, one.File
		} else {
			c.Also = append(c.Also, item.Doc.ID)
		}
		if item.Kind == FoundDerived {
			ids = append(ids, item.Doc.ID)
		}
	}
	if err := s.drop(ctx, ids...); err != nil {
		return c, err
	}
	if err := s.o.Index.Refresh(ctx); err != nil {
		return c, err
	}
	if o.Purge {
		if err := s.purge(ctx, list, o.Reason, &c); err != nil {
			return c, err
		}
	}
	return c, nil
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
	e := evidence{ids: map[string]bool{}, items: map[string]bool{id: true}}
	for _, t := range tombs {
		e.items[t.data.ID] = true
		e.add(t.event.Evidence...)
	}
	if err := s.writtenWords(&e); err != nil {
		return was, err
	}
	if err := s.purgeEvents(ctx, e, o.Reason, &was); err != nil {
		return was, err
	}
	if was.Purged == 0 {
		was.Warnings = append(was.Warnings, "the logs have nothing, or nothing any more, that is known to tell it; `reprise events list --grep WORDS` looks for its words")
	}
	return was, nil
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
	if s.o.Events == nil {
		return nil
	}
	for _, p := range s.places() {
		for e, err := range event.Read(s.o.Events(p)) {
			if err != nil || e.Type != event.MemoryRetired {
				continue // a line that cannot be read says nothing
			}
			var d event.MemoryData
			if json.Unmarshal(e.Data, &d) == nil {
				fn(p, e, d)
			}
		}
	}
	return nil
}

// forget takes one item out; parent is the tombstone of the item that it goes
// with.
func (s *Scopes) forget(ctx context.Context, f Found, reason, parent string) (Change, error) {
	c := Change{Op: "forget", ID: f.Doc.ID}
	data := event.MemoryData{Op: learn.OpForget, ID: f.Doc.ID, From: f.Scope(), By: byHand, Reason: sign.Clip(s.sweep(reason), 400)}
	if f.Kind == FoundDerived {
		data.Hash = learn.ContentKey(f.Doc)
	} else {
		data.Name = f.Entry.File + f.Passage.File
	}
	var err error
	c.Event, err = s.noteBelow(ctx, parent, event.MemoryRetired, f.Project, data, f.Doc.ACL, evidenceOf(f))
	if err != nil {
		return c, err
	}
	switch f.Kind {
	case FoundEntry:
		e, err := s.entries(f.Project)
		if err != nil {
			return c, err
		}
		agent, _, _ := s.who()
		r, err := e.Retire(ctx, f.Entry.ID, agent, reason)
		if err != nil {
			return c, err
		}
		c.File, c.Warnings = f.Entry.File, r.Warnings
		s.touch(f.Project, f.Entry.File)
	case FoundSection:
		st, err := s.store(f.Project)
		if err != nil {
			return c, err
		}
		_, w, err := st.ReplacePassage(ctx, f.Passage, "")
		if err != nil && !errors.Is(err, memory.ErrNotFound) {
			return c, err
		}
		c.File, c.Warnings = f.Passage.File, w.Warnings
		s.touch(f.Project, f.Passage.File)
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

// evidenceOf are the ids of the events that an item was worked out from.
func evidenceOf(f Found) []string {
	data, _ := learn.DataOf(f.Doc)
	var out []string
	for _, id := range append(append(slices.Clone(data.Evidence), f.Doc.Source), f.Entry.Evidence...) {
		if sign.IsUUID(id) && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// evidence says which events tell of items.
type evidence struct {
	ids   map[string]bool // of events
	items map[string]bool // what was written of them tells it, too
	words []string        // lines of theirs
	// uses are the tool calls by which questions were put: the call's own events
	// hold the question and the answer, too.
	uses map[string]bool
}

func (e *evidence) add(ids ...string) {
	for _, id := range ids {
		e.ids[id] = true
	}
}

// say adds the lines of a text. Short ones would take out what has nothing to
// do with it.
func (e *evidence) say(text string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) >= 8 {
			e.words = append(e.words, line)
		}
	}
}

// tells reports whether an event is evidence.
func (e *evidence) tells(ev *event.Event) bool {
	if e.ids[ev.ID] || len(e.uses) > 0 && e.uses[useOf(ev)] {
		return true
	}
	if len(e.words) == 0 || len(ev.Data) == 0 {
		return false
	}
	text := plainJSON(ev.Data)
	return slices.ContainsFunc(e.words, func(w string) bool { return strings.Contains(text, w) })
}

// useOf is the client's id of the tool call that an event is of.
func useOf(ev *event.Event) string {
	var d struct {
		ID    string `json:"id"`
		UseID string `json:"use_id"`
	}
	switch ev.Type {
	case event.QuestionAsked, event.QuestionAnswered, event.ToolCalled, event.ToolSucceeded, event.ToolFailed, event.PermissionAsked, event.PermissionDecided:
		if json.Unmarshal(ev.Data, &d) == nil {
			return ev.Session + "\x00" + cmp.Or(d.UseID, d.ID)
		}
	}
	return ""
}

// asked adds the tool calls by which the questions among the evidence were put.
func (s *Scopes) asked(e *evidence) {
	if s.o.Events == nil {
		return
	}
	for _, p := range s.places() {
		for ev, err := range event.Read(s.o.Events(p)) {
			if err != nil || !e.ids[ev.ID] || ev.Type != event.QuestionAsked && ev.Type != event.QuestionAnswered {
				continue
			}
			if use := useOf(&ev); !strings.HasSuffix(use, "\x00") {
				if e.uses == nil {
					e.uses = map[string]bool{}
				}
				e.uses[use] = true
			}
		}
	}
}

// writtenWords adds what the log says was written of the items.
func (s *Scopes) writtenWords(e *evidence) error {
	if s.o.Events == nil {
		return nil
	}
	for _, p := range s.places() {
		for ev, err := range event.Read(s.o.Events(p)) {
			if err != nil || ev.Type != event.MemoryWritten && ev.Type != event.MemoryPromoted {
				continue
			}
			var d event.MemoryData
			if json.Unmarshal(ev.Data, &d) == nil && e.items[d.ID] {
				e.add(ev.ID)
				e.add(ev.Evidence...)
				e.say(d.Text)
			}
		}
	}
	return nil
}

// purge takes the events out of the logs that items were worked out from, or
// that tell their words.
func (s *Scopes) purge(ctx context.Context, list []Found, reason string, c *Change) error {
	e := evidence{ids: map[string]bool{}}
	for _, f := range list {
		data, _ := learn.DataOf(f.Doc)
		e.add(evidenceOf(f)...)
		for _, w := range []string{f.Entry.Text, f.Entry.Decision, f.Passage.Text, data.Said} {
			e.say(w)
		}
	}
	if err := s.purgeEvents(ctx, e, reason, c); err != nil {
		return err
	}
	return s.gitKeeps(ctx, list, c)
}

// purgeEvents takes evidence out of the logs and makes the index anew, because
// a database keeps what was deleted until its pages are used again.
func (s *Scopes) purgeEvents(ctx context.Context, e evidence, reason string, c *Change) error {
	s.asked(&e)
	for _, p := range s.places() {
		n, err := s.o.Purge(ctx, p, e.tells, s.reason(reason))
		if err != nil {
			return fmt.Errorf("purge the log: %w; what was forgotten is not served, run it again to take the evidence out", err)
		}
		c.Purged += n
	}
	rebuild := s.o.Rebuild
	if rebuild == nil {
		rebuild = func(ctx context.Context) error { _, err := s.o.Index.Rebuild(ctx); return err }
	}
	if err := rebuild(ctx); err != nil {
		return fmt.Errorf("make the index anew after a purge: %w; `reprise index rebuild` does it", err)
	}
	return nil
}

func (s *Scopes) reason(reason string) string {
	if reason = s.sweep(reason); reason != "" {
		return sign.Clip(reason, 400)
	}
	return "forgotten by hand"
}

// plainJSON is all strings of a JSON value, as they read.
func plainJSON(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	var b strings.Builder
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			b.WriteString(v)
			b.WriteByte('\n')
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(v)
	return b.String()
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
