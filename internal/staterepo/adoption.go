package staterepo

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"reprise/internal/event"
	"reprise/internal/mdfile"
)

// Adoption is whether what agents know is used.
type Adoption struct {
	Sessions int     `json:"sessions"` // that recorded anything
	Tools    []Count `json:"tools"`    // of reprise's, that agents called
	Writes   []Count `json:"writes"`   // what was written, by kind
	// Learnings and decisions that there are, how many of them were put into a session
	// other than the one that they are of, and how many were used there.
	Lasting int      `json:"lasting"`
	Read    int      `json:"read"`
	Used    int      `json:"used"`
	Top     []Reread `json:"top"` // those that were read most, at most ten
	// Searches that agents made and how many of them found something, where their
	// outcome was recorded.
	Searches int `json:"searches"`
	Hits     int `json:"hits"`
}

// Count is how often something happened.
type Count struct {
	Name  string `json:"name"`
	Times int    `json:"times"`
}

// Reread is an entry with how many sessions were told it.
type Reread struct {
	ID       string `json:"id"`
	Title    string `json:"title"`
	Sessions int    `json:"sessions"`
	Used     int    `json:"used"`
}

// Adopted works it out from the project's events and entries. It is a function of
// both; the order of events does not matter.
func Adopted(events func(yield func(event.Event, error) bool), log []LogEntry) Adoption {
	a := adopting{sessions: map[string]bool{}, tools: map[string]int{}, writes: map[string]int{}, told: map[string]map[string]bool{}, used: map[string]int{}, by: map[string]string{}}
	for e, err := range events {
		if err == nil { // a damaged line is for `events verify` to tell
			a.event(&e)
		}
	}
	out := Adoption{Sessions: len(a.sessions), Tools: counts(a.tools), Writes: counts(a.writes), Top: []Reread{}, Searches: a.searches, Hits: a.hits}
	for _, e := range log {
		if e.Type != mdfile.TypeLearning && e.Type != mdfile.TypeDecision {
			continue
		}
		out.Lasting++
		r := Reread{ID: e.ID, Title: shortTitle(e.Entry, 120), Used: a.used[e.ID]}
		for s := range a.told[e.ID] {
			if s != a.by[e.ID] {
				r.Sessions++
			}
		}
		if r.Sessions > 0 {
			out.Read++
			out.Top = append(out.Top, r)
		}
		if r.Used > 0 {
			out.Used++
		}
	}
	slices.SortFunc(out.Top, func(x, y Reread) int {
		return cmp.Or(y.Used-x.Used, y.Sessions-x.Sessions, cmp.Compare(x.ID, y.ID))
	})
	out.Top = out.Top[:min(len(out.Top), 10)]
	return out
}

type adopting struct {
	sessions       map[string]bool
	tools, writes  map[string]int
	told           map[string]map[string]bool // entry → sessions
	used           map[string]int
	by             map[string]string // entry → the session that wrote it
	searches, hits int
}

func (a *adopting) event(e *event.Event) {
	if e.Session != "" {
		a.sessions[e.Session] = true
	}
	switch e.Type {
	case event.ToolCalled, event.ToolSucceeded:
		var d event.ToolData
		if json.Unmarshal(e.Data, &d) != nil {
			return
		}
		name, ours := ownTool(d.Name)
		switch {
		case !ours:
		case e.Type == event.ToolCalled:
			a.tools[name]++
		case strings.HasSuffix(name, "_search"):
			a.searches++
			if strings.Contains(d.Output, "e-") || strings.Contains(d.Output, `"id"`) || strings.Contains(d.Output, `\"id\"`) {
				a.hits++
			}
		}
	case event.StateChanged:
		var d event.StateData
		if json.Unmarshal(e.Data, &d) != nil {
			return
		}
		a.writes[cmp.Or(d.Type, d.Op)]++
		if d.ID != "" && e.Session != "" {
			a.by[d.ID] = e.Session
		}
	case event.RecallServed:
		var d event.ServedData
		if json.Unmarshal(e.Data, &d) != nil || d.HeldOut {
			return
		}
		for _, i := range d.Items {
			if a.told[i.ID] == nil {
				a.told[i.ID] = map[string]bool{}
			}
			a.told[i.ID][e.Session] = true
		}
	case event.RecallUsed:
		var d event.UsedData
		if json.Unmarshal(e.Data, &d) == nil && d.How != "useless" {
			a.used[d.ID]++
		}
	}
}

// ownTool is the name of one of reprise's tools, as clients call it: behind the name
// of the server, which differs from client to client.
func ownTool(name string) (string, bool) {
	at := strings.LastIndex(name, "reprise")
	if at < 0 {
		return "", false
	}
	tool := strings.TrimLeft(name[at+len("reprise"):], "_.-/:")
	return tool, tool != ""
}

func counts(m map[string]int) []Count {
	out := []Count{}
	for n, times := range m {
		out = append(out, Count{n, times})
	}
	slices.SortFunc(out, func(a, b Count) int { return cmp.Or(b.Times-a.Times, strings.Compare(a.Name, b.Name)) })
	return out
}
