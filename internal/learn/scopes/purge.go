package scopes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/internal/event"
	"reprise/internal/learn"
	"reprise/internal/learn/sign"
	"reprise/internal/recall"
)

// evidence says which events tell of items, in the form in which it is kept until
// they are gone.
type evidence struct {
	learn.Trace
	// Lines are of what a person or an agent wrote: whatever says one, wherever it
	// is, tells it.
	Lines []string `json:"lines,omitempty"`
}

// say adds the lines of a text. Short ones would take out what has nothing to
// do with it.
func (e *evidence) say(text string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) >= learn.LeastWord {
			e.Lines = appendNew(e.Lines, line, 1<<16)
		}
	}
}

// evidence is what in the logs tells of items. What tells nothing but them (the
// turn in which all of it happened) is an item that goes, too: the list comes back
// with it.
func (s *Scopes) evidence(ctx context.Context, list []Found) (*evidence, []Found, error) {
	e := &evidence{}
	var ids []string
	for _, f := range list {
		e.Events = append(e.Events, evidenceOf(f)...)
		ids = append(append(ids, f.Doc.ID), f.Entry.DependsOn...) // what it was before it was taken back
		for _, w := range []string{f.Entry.Text, f.Entry.Decision, f.Passage.Text} {
			e.say(w)
		}
	}
	if err := s.follow(ctx, e, ids); err != nil {
		return nil, nil, err
	}
	err := s.o.Index.View(ctx, func(tx *recall.Tx) error {
		for _, id := range e.With {
			d, ok, err := tx.Get(id)
			if err != nil {
				return err
			}
			if ok && s.sees(d) && !slices.Contains(ids, id) {
				list = append(list, s.foundDoc(d))
			}
		}
		return nil
	})
	return e, list, err
}

// follow adds what the logs say of items: what was worked out with them, what was
// written of them, the questions that were put.
func (s *Scopes) follow(ctx context.Context, e *evidence, ids []string) error {
	if s.o.Trace != nil {
		t, err := s.o.Trace(ctx, ids)
		if err != nil {
			return err
		}
		t.Events = slices.Concat(e.Events, t.Events)
		e.Trace = t
	}
	// What only something else is to be known by stays, though an item's document
	// names it as evidence, too.
	e.Events = slices.DeleteFunc(e.Events, func(id string) bool { return slices.Contains(e.Keep, id) })
	if err := s.written(e, ids); err != nil {
		return err
	}
	return s.asked(e)
}

// each calls fn with every event of the logs that can be read.
func (s *Scopes) each(fn func(*event.Event)) error {
	if s.o.Events == nil {
		return nil
	}
	for _, p := range s.places() {
		for ev, err := range event.Read(s.o.Events(p)) {
			if err == nil { // a line that cannot be read says nothing
				fn(&ev)
			}
		}
	}
	return nil
}

// written adds what the log says was written of the items.
func (s *Scopes) written(e *evidence, ids []string) error {
	return s.each(func(ev *event.Event) {
		if ev.Type != event.MemoryWritten && ev.Type != event.MemoryPromoted {
			return
		}
		var d event.MemoryData
		if json.Unmarshal(ev.Data, &d) == nil && slices.Contains(ids, d.ID) {
			e.Events = append(append(e.Events, ev.ID), ev.Evidence...)
			e.say(d.Text)
		}
	})
}

// asked adds the tool calls by which the questions among the evidence were put, and each time
// that memory gave the same answer by itself: by its call the client's own report goes, too.
func (s *Scopes) asked(e *evidence) error {
	given := map[string]bool{}
	err := s.each(func(ev *event.Event) {
		if (ev.Type == event.QuestionAsked || ev.Type == event.QuestionAnswered) && slices.Contains(e.Events, ev.ID) {
			if call := callOf(ev); call != "" {
				e.Calls = appendNew(e.Calls, call, 1<<16)
			}
			if key, _ := givenBy(ev); key != "" {
				given[key] = true
			}
		}
	})
	if err != nil || len(given) == 0 {
		return err
	}
	return s.each(func(ev *event.Event) {
		if key, memory := givenBy(ev); memory && given[key] {
			e.Events = appendNew(e.Events, ev.ID, 1<<16)
			if call := callOf(ev); call != "" {
				e.Calls = appendNew(e.Calls, call, 1<<16)
			}
		}
	})
}

// givenBy is the same for the same answer to the same question of a project, "" of an event
// that has none; memory says that it was given by reprise.
func givenBy(ev *event.Event) (key string, memory bool) {
	var d event.QuestionData
	if ev.Type != event.QuestionAnswered || json.Unmarshal(ev.Data, &d) != nil || d.Answer == "" {
		return "", false
	}
	return ev.Project + "\x00" + learn.QuestionKey(d.Question, d.Options) + "\x00" + strings.TrimSpace(d.Answer), d.By == "memory"
}

// callOf names the tool call that an event is of, as learn.CallID does.
func callOf(ev *event.Event) string {
	var d struct {
		ID    string `json:"id"`
		UseID string `json:"use_id"`
	}
	switch ev.Type {
	case event.QuestionAsked, event.QuestionAnswered, event.ToolCalled, event.ToolSucceeded, event.ToolFailed, event.PermissionAsked, event.PermissionDecided:
		if json.Unmarshal(ev.Data, &d) == nil {
			return learn.CallID(ev.Session, cmp.Or(d.UseID, d.ID))
		}
	}
	return ""
}

// matcher tells for many events whether they are evidence.
type matcher struct {
	e                                *evidence
	ids, calls, sessions, near, keep map[string]bool
}

func (e *evidence) matcher() *matcher {
	set := func(list []string) map[string]bool {
		m := make(map[string]bool, len(list))
		for _, s := range list {
			m[s] = true
		}
		return m
	}
	return &matcher{e: e, ids: set(e.Events), calls: set(e.Calls), sessions: set(e.Sessions), near: set(e.Near), keep: set(e.Keep)}
}

// tells reports whether an event is evidence.
func (m *matcher) tells(ev *event.Event) bool {
	switch {
	case ev.Type == event.MemoryRetired || ev.Type == event.MemoryPurged:
		return false // that it was forgotten is what keeps it from coming back, whatever the reason says
	case m.ids[ev.ID] || says(ev, m.e.Lines):
		return true
	case m.keep[ev.ID]:
		return false
	}
	if call := callOf(ev); call != "" && m.calls[call] {
		return true
	}
	if ev.Session != "" && m.sessions[ev.Session] {
		switch {
		case ev.Type == event.EpisodeRecorded: // what a model wrote of the session says it in its own words
			return true
		case ev.Type == event.RecallServed && m.ids[ev.Parent]: // it repeats the prompt
			return true
		case m.near[ev.ID]:
			return says(ev, m.e.Words) || says(ev, m.e.Single)
		case ev.Type == event.ClientCompacted || ev.Type == event.SubagentFinished:
			return says(ev, m.e.Only) || says(ev, m.e.Single)
		case says(ev, m.e.Only):
			return true
		}
	}
	return false
}

// raw reports whether bytes that no event can be read from hold the words.
func (m *matcher) raw(text []byte) bool {
	for id := range m.ids {
		if bytes.Contains(text, []byte(`"`+id+`"`)) {
			return true
		}
	}
	return slices.ContainsFunc(slices.Concat(m.e.Only, m.e.Lines), func(w string) bool {
		quoted, err := json.Marshal(w)
		return bytes.Contains(text, []byte(w)) || err == nil && bytes.Contains(text, bytes.Trim(quoted, `"`))
	})
}

func says(ev *event.Event, words []string) bool {
	if len(words) == 0 || len(ev.Data) == 0 {
		return false
	}
	text := plainJSON(ev.Data)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// Purging is what is to go from one log.
type Purging struct {
	Project string // empty = the global log
	Reason  string
	Item    string // whose evidence it is
	Gone    func(*event.Event) bool
	Raw     func([]byte) bool // of what is left of lines
}

// Purged is what a purge of one log did.
type Purged struct {
	Events   int      // that went
	Warnings []string // what it could not look through
}

// purge takes evidence out of the logs and makes the index anew, because a
// database keeps what was deleted until its pages are used again.
func (s *Scopes) purge(ctx context.Context, job *pending, c *Change) error {
	m := job.Evidence.matcher()
	taken := map[event.Type]int{}
	for _, p := range s.places() {
		out, err := s.o.Purge(ctx, Purging{Project: p, Reason: cmp.Or(job.Reason, "forgotten by hand"), Item: job.ID, Raw: m.raw, Gone: func(ev *event.Event) bool {
			if !m.tells(ev) {
				return false
			}
			taken[ev.Type]++
			return true
		}})
		if err != nil {
			return fmt.Errorf("purge the log: %w; what was forgotten is not served, and the next command goes on with it", err)
		}
		c.Purged += out.Events
		c.Warnings = append(c.Warnings, out.Warnings...)
	}
	for _, t := range slices.Sorted(maps.Keys(taken)) {
		c.Taken = append(c.Taken, Taken{Type: t, Events: taken[t]})
	}
	rebuild := s.o.Rebuild
	if rebuild == nil {
		rebuild = func(ctx context.Context) error { _, err := s.o.Index.Rebuild(ctx); return err }
	}
	if err := rebuild(ctx); err != nil {
		return fmt.Errorf("make the index anew after a purge: %w; `reprise index rebuild` does it", err)
	}
	if err := s.o.Index.DropOthers(ctx); err != nil {
		return fmt.Errorf("purge the indexes of other versions of reprise: %w; the next command goes on with it", err)
	}
	return nil
}

// Taken is how many events of a type a purge took out of the logs.
type Taken struct {
	Type   event.Type `json:"type"`
	Events int        `json:"events"`
}

// Left is what of a purged item's words is still said, and where.
type Left struct {
	Words string `json:"words"`
	// Items are ids of what is remembered and says them, at most a few of Count.
	Items []string `json:"items,omitempty"`
	Count int      `json:"count"`
	// Events of the logs that say them.
	Events int    `json:"events"`
	Why    string `json:"why"`
}

const (
	mostLeft  = 6 // words that are told to be left somewhere
	mostItems = 3
)

// stays tells which of the words are still said somewhere, by what other episodes
// share, and why. It only informs: what fails here is a warning.
func (s *Scopes) stays(ctx context.Context, e *evidence, c *Change) {
	words := slices.Concat(e.Words, e.Lines)
	left := make([]Left, len(words))
	err := s.o.Index.View(ctx, func(tx *recall.Tx) error {
		clear(left)
		return tx.Each(recall.Filter{}, func(d recall.Doc) bool {
			for i, w := range words {
				if strings.Contains(d.Title, w) || strings.Contains(d.Text, w) {
					if left[i].Count++; len(left[i].Items) < mostItems {
						left[i].Items = append(left[i].Items, d.ID)
					}
				}
			}
			return true
		})
	})
	if err == nil {
		err = s.each(func(ev *event.Event) {
			if len(ev.Data) == 0 || ev.Type == event.MemoryRetired || ev.Type == event.MemoryPurged {
				return
			}
			text := plainJSON(ev.Data)
			for i, w := range words {
				if strings.Contains(text, w) {
					left[i].Events++
				}
			}
		})
	}
	if err != nil {
		c.Warnings = append(c.Warnings, "could not look for what still says it: "+err.Error())
		return
	}
	more := 0
	for i, w := range words {
		if left[i].Count+left[i].Events == 0 {
			continue
		}
		if len(c.Left) == mostLeft {
			more++
			continue
		}
		left[i].Words, left[i].Why = w, "other episodes tell it, too"
		if left[i].Count == 0 {
			left[i].Why = "other events of the logs say it, which no episode is about"
		}
		c.Left = append(c.Left, left[i])
	}
	if more > 0 {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s more of its words are still said elsewhere; `reprise events list --grep WORDS` finds where", count(more, "line")))
	}
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
