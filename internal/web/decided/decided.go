// Package decided makes of the guard's decisions in a log what was decided about each call,
// and what became of it.
//
// It owns no files, writes none and takes no lock.
package decided

import (
	"cmp"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"reprise/internal/event"
	"reprise/internal/guard"
	"reprise/internal/learn"
)

// Call is what was decided about one call.
type Call struct {
	event.Event                             // the first that tells of it
	Verdict, By, Rule, Reason, Class string // Class is the tone in which it is shown
	// Answer is what became of a call that was asked about; "" where nothing is known of it.
	Answer string

	commands string
	asked    bool // the client has shown its own question about it
}

// callOf is a call as the event of a decision about it has it.
func callOf(e event.Event) Call {
	d := Call{Event: e}
	var data struct {
		Verdict  string   `json:"verdict"`
		By       string   `json:"by"`
		Rule     string   `json:"rule"`
		Reason   string   `json:"reason"`
		Commands []string `json:"commands"`
		Name     string   `json:"name"`
	}
	if json.Unmarshal(e.Data, &data) == nil {
		d.Verdict, d.By, d.Rule, d.Reason = data.Verdict, data.By, data.Rule, data.Reason
		d.commands = strings.Join(append([]string{data.Name, data.Rule}, data.Commands...), "\x00")
	}
	if d.Verdict == "" && e.Outcome == "denied" { // as a client's own transcript has it
		d.Verdict, d.By = string(guard.Deny), cmp.Or(d.By, "client")
	}
	d.toned()
	return d
}

func (d *Call) toned() {
	switch d.Verdict {
	case string(guard.Allow):
		d.Class = "good"
	case string(guard.Deny):
		d.Class = "bad"
	default:
		d.Class = "warn"
	}
}

// deciding takes the events up one by one. Claude Code
// and Codex come with a call twice where they are to ask: before the tool, and as they put
// their own question. The second has no id of the call, so it goes to the last one of the
// same session that would do the same and has neither ended nor asked.
type deciding struct {
	calls []Call
	// Calls by what their call is called and does, for as long as it has not ended.
	byCall map[string]int
	byWhat map[string][]int
	// Those of a session of which it is not known yet whether the call ran.
	waiting map[string][]int
}

// Calls are the calls that a log tells of, the oldest first.
func Calls(events iter.Seq[*event.Event]) []Call {
	d := deciding{byCall: map[string]int{}, byWhat: map[string][]int{}, waiting: map[string][]int{}}
	for e := range events {
		switch e.Type {
		case event.PermissionDecided:
			d.decided(e)
		case event.ToolSucceeded, event.ToolFailed:
			d.ended(e)
		case event.PromptSubmitted, event.ResponseCompleted, event.SessionEnded:
			d.turned(e)
		}
	}
	return d.calls
}

// sessionOf is the session of an event, and its client.
func sessionOf(e *event.Event) string { return e.Client + "\x00" + e.Session }

// callIn is the id of the call that an event is about, with its session; "" without one.
func callIn(e *event.Event) string {
	for _, link := range e.Evidence {
		if id, ok := strings.CutPrefix(link, "tool:"); ok && id != "" {
			return sessionOf(e) + "\x00" + id
		}
	}
	return ""
}

func (d *deciding) decided(e *event.Event) {
	row := callOf(*e)
	call, what := callIn(e), sessionOf(e)+"\x00"+row.commands
	if i, ok := d.byCall[call]; ok && call != "" { // a second word about it, such as the client's own
		d.again(i, &row)
		return
	}
	if n := len(d.byWhat[what]); call == "" && n > 0 {
		i := d.byWhat[what][n-1]
		d.byWhat[what] = d.byWhat[what][:n-1]
		d.calls[i].asked = true
		d.again(i, &row)
		return
	}
	d.calls = append(d.calls, row)
	if call == "" {
		return
	}
	i := len(d.calls) - 1
	d.byCall[call] = i
	d.byWhat[what] = append(d.byWhat[what], i)
	if row.Verdict == string(guard.Ask) {
		d.waiting[sessionOf(e)] = append(d.waiting[sessionOf(e)], i)
	}
}

// again takes a further decision about a call up: where it is another one, it is the one
// that holds.
func (d *deciding) again(i int, row *Call) {
	if have := &d.calls[i]; row.Verdict != have.Verdict {
		have.Verdict, have.By, have.Rule, have.Reason, have.Class = row.Verdict, row.By, row.Rule, cmp.Or(row.Reason, have.Reason), row.Class
	}
}

// ended takes up that a call ran, or that its client says it did not.
func (d *deciding) ended(e *event.Event) {
	call := callIn(e)
	i, ok := d.byCall[call]
	if !ok || call == "" {
		return
	}
	delete(d.byCall, call)
	row := &d.calls[i]
	what := sessionOf(e) + "\x00" + row.commands
	d.byWhat[what] = slices.DeleteFunc(d.byWhat[what], func(j int) bool { return j == i })
	if row.Verdict != string(guard.Ask) {
		return
	}
	var data event.ToolData
	_ = json.Unmarshal(e.Data, &data)  // what is of another form says nothing of a refusal
	person := row.asked && e.Run == "" // in a run of ours nobody is there
	switch refused := e.Type == event.ToolFailed && learn.Refused(&data); {
	case refused && person:
		row.Answer = "you refused it"
	case refused:
		row.Answer = "it was refused"
	case person:
		row.Answer = "you let it run"
	default:
		row.Answer = "it ran"
	}
}

// turned says of what a session was asked about before its turn ended that it did not run,
// unless its end is told yet.
func (d *deciding) turned(e *event.Event) {
	for _, i := range d.waiting[sessionOf(e)] {
		if row := &d.calls[i]; row.Answer == "" && row.Verdict == string(guard.Ask) {
			row.Answer = "it did not run"
		}
	}
	delete(d.waiting, sessionOf(e))
}
