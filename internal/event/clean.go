package event

import (
	"strings"

	"reprise/internal/event/quick"
	"reprise/internal/redact"
)

const (
	// MaxField is how long a string of an event may be, in bytes; longer ones
	// are cut and described in Cut.
	MaxField = quick.MaxField
	// MaxLine is how long an event's line may be, in bytes. Data that makes it
	// longer is left out whole and described in Cut.
	MaxLine = quick.MaxLine
)

// clean returns the event as it may be written.
func clean(r *redact.Redactor, e Event) (Event, error) { return cleanMarked(r, "", e) }

// cleanMarked is clean for an event with texts that were cut when they were read.
func cleanMarked(r *redact.Redactor, mark string, e Event) (Event, error) {
	q := e.quick()
	c := &quick.Cleaner{Mark: mark, Redact: func(key, s string) string {
		s, _ = r.Named(key, s)
		return s
	}}
	if err := quick.Clean(c, &q); err != nil {
		return e, err
	}
	return e.from(&q), nil
}

// bound makes an event that is too long for a line short enough.
func bound(e Event) Event {
	q := e.quick()
	if len(quick.Encode(nil, &q))+quick.HashSize <= MaxLine {
		return e
	}
	drop := func(at, whole string) {
		kept := q.Cuts[:0:0]
		for _, c := range q.Cuts {
			if !strings.HasPrefix(c.At, at+"/") {
				kept = append(kept, c)
			}
		}
		q.Cuts = append(kept, quick.Whole(at, whole))
	}
	if len(q.Data) > 0 {
		drop("/data", string(q.Data))
		q.Data = nil
	}
	total := 0
	for _, s := range q.Evidence {
		total += len(s) + 3
	}
	if total > MaxLine/2 {
		drop("/evidence", strings.Join(q.Evidence, "\n"))
		q.Evidence = nil
	}
	return e.from(&q)
}

// quick is the event as package quick has it.
func (e *Event) quick() quick.Event {
	q := quick.Event{
		ID: e.ID, TS: e.TS, Scope: string(e.Scope), Project: e.Project, Session: e.Session, Run: e.Run,
		Client: e.Client, Agent: e.Agent, Role: e.Role, Task: e.Task, Parent: e.Parent, Type: string(e.Type),
		Data: e.Data, Outcome: e.Outcome, Importance: e.Importance, Evidence: e.Evidence, ACL: e.ACL,
	}
	for at, w := range e.Cut {
		q.Cuts = append(q.Cuts, quick.Cut{At: at, SHA256: w.SHA256, Len: w.Len})
	}
	sortCuts(q.Cuts)
	return q
}

// from is the event with what package quick made of it.
func (e *Event) from(q *quick.Event) Event {
	out := Event{
		V: quick.Version, ID: q.ID, TS: q.TS, Scope: Scope(q.Scope), Project: q.Project, Session: q.Session, Run: q.Run,
		Client: q.Client, Agent: q.Agent, Role: q.Role, Task: q.Task, Parent: q.Parent, Type: Type(q.Type),
		Data: q.Data, Outcome: q.Outcome, Importance: q.Importance, Evidence: q.Evidence, ACL: q.ACL, Prev: e.Prev,
	}
	for _, c := range q.Cuts {
		if out.Cut == nil {
			out.Cut = map[string]Whole{}
		}
		out.Cut[c.At] = Whole{SHA256: c.SHA256, Len: c.Len}
	}
	return out
}

// Redact is the full sweep over an event that was read: what today's rules take
// out of it. The rules grow, and an event may have been written by an older
// program; what is promoted, served or given away passes here first. The event
// is to be shown, not written: its place in the chain is another one's.
func Redact(r *redact.Redactor, e Event) (Event, error) { return clean(r, e) }
