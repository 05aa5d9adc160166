package transcript

import (
	"encoding/json"
	"hash/maphash"
	"time"

	"reprise/internal/event"
)

// Seen is what the logs hold already of the sessions that are to be imported.
type Seen struct {
	seed maphash.Seed
	// ids are the events that were imported before, by the hash of their id.
	ids map[uint64]struct{}
	// live are the sessions that hooks recorded while they went on.
	live map[string]*liveSession
	// want, if not nil, are the sessions whose recording is to be remembered.
	want map[string]bool
}

// liveSession is what hooks recorded of a session.
type liveSession struct {
	first, last time.Time
	uses        map[uint64]struct{} // ids of tool calls that ended
}

// margin is by how much the clock of a hook and that of its client's transcript
// may differ: a hook is a process of its own, which has to start.
const margin = 5 * time.Second

// NewSeen remembers what [Seen.Add] is given of what was imported and of the
// named sessions (as [SessionKey] names them; nil: all).
func NewSeen(want map[string]bool) *Seen {
	return &Seen{seed: maphash.MakeSeed(), ids: map[uint64]struct{}{}, live: map[string]*liveSession{}, want: want}
}

// SessionKey names a session among those of all clients.
func SessionKey(client, session string) string { return client + "\x00" + session }

func (s *Seen) hash(text string) uint64 { return maphash.String(s.seed, text) }

// Add takes in an event of the log; imported says that it stands in a file of
// imported ones.
func (s *Seen) Add(e event.Event, imported bool) {
	if imported { // of any session: one may hold what another was forked from
		s.ids[s.hash(e.ID)] = struct{}{}
		return
	}
	key := SessionKey(e.Client, e.Session)
	// Copilot gives a subagent a session id of its own.
	if e.Session == "" || s.want != nil && !s.want[key] && e.Client != "copilot" {
		return
	}
	switch e.Type {
	case event.SessionStarted, event.SessionEnded, event.PromptSubmitted, event.ToolCalled, event.ToolSucceeded, event.ToolFailed,
		event.ResponseCompleted, event.SubagentStarted, event.SubagentFinished, event.ClientCompacted:
	default:
		return // what reprise itself did in the session says nothing of its hooks
	}
	key = string([]byte(key)) // not the memory of its line
	l := s.live[key]
	if l == nil {
		l = &liveSession{first: e.TS, last: e.TS, uses: map[uint64]struct{}{}}
		s.live[key] = l
	}
	if e.TS.Before(l.first) {
		l.first = e.TS
	}
	if e.TS.After(l.last) {
		l.last = e.TS
	}
	if id := useID(e); id != "" && e.Type != event.ToolCalled {
		l.uses[s.hash(id)] = struct{}{}
	}
}

// useID is the id of the tool call that an event tells of.
func useID(e event.Event) string {
	switch e.Type {
	case event.ToolCalled, event.ToolSucceeded, event.ToolFailed:
	default:
		return ""
	}
	var d struct {
		ID string `json:"use_id"`
	}
	if json.Unmarshal(e.Data, &d) != nil {
		return ""
	}
	return d.ID
}

// Has reports whether an event that was read from a transcript is in the log:
// from an import, or because hooks recorded that part of its session. Hooks and
// transcripts say the same thing in different words, so the two are compared by
// the id of the tool call where both have one, else by the time in which the
// hooks were at work.
func (s *Seen) Has(e event.Event) bool {
	if _, ok := s.ids[s.hash(e.ID)]; ok {
		return true
	}
	for _, session := range []string{e.Session, e.Agent} {
		l := s.live[SessionKey(e.Client, session)]
		if session == "" || l == nil {
			continue
		}
		if id := useID(e); id != "" && len(l.uses) > 0 {
			_, ok := l.uses[s.hash(id)]
			return ok
		}
		switch e.Type {
		case event.SessionStarted, event.SessionEnded:
			return true
		}
		if !e.TS.Before(l.first.Add(-margin)) && !e.TS.After(l.last.Add(margin)) {
			return true
		}
	}
	return false
}

// Put remembers an event that has just been imported.
func (s *Seen) Put(e event.Event) { s.ids[s.hash(e.ID)] = struct{}{} }
