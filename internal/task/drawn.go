package task

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"reprise/internal/clip"
	"reprise/internal/event"
)

// drawn is how far the event log was read for failures: what is older was looked at, and
// of the time just before, in which lines of other writers may still come in, those that
// were.
type drawn struct {
	Until time.Time `json:"until"`
	Seen  []string  `json:"seen,omitempty"` // ids of events of the last while
}

// drawnKey is where errors.json has it.
const drawnKey = "_events_read"

// drawnOverlap is for lines that come in late: hooks that waited in an outbox, the
// clocks of two machines.
const drawnOverlap = 10 * time.Minute

// firstDraw is how far back a log is read that was never looked through.
const firstDraw = 30 * 24 * time.Hour

// rewriteDrawn is how far the log may have grown without a failure before errors.json is
// written for that alone.
const rewriteDrawn = 24 * time.Hour

// DrawFrom is since when events have to be looked at.
func (l *Failures) DrawFrom(now time.Time) time.Time {
	d := l.drawn()
	if d.Until.IsZero() {
		return now.Add(-firstDraw)
	}
	return d.Until.Add(-drawnOverlap)
}

func (l *Failures) drawn() (d drawn) {
	_ = json.Unmarshal(l.extra[drawnKey], &d) // what cannot be read is as if it were not there
	return d
}

// Draw records the failures that events tell of: runs, checks, tools and work items of
// any session. Each event counts once, however often it is drawn from; those of runs
// whose failure a step has recorded itself do not count again. It returns how many there
// were. The error is that of the log, of which as much counts as could be read.
func (l *Failures) Draw(events iter.Seq2[event.Event, error], now time.Time) (n int, err error) {
	d := l.drawn()
	from := l.DrawFrom(now)
	known := map[string]bool{}
	for _, id := range d.Seen {
		known[id] = true
	}
	runs := map[string]bool{}
	for _, f := range l.List {
		if f.Context.Run != "" {
			runs[f.Context.Run] = true
		}
	}
	next := drawn{Until: d.Until}
	var seen []event.Event
	for e, rerr := range events {
		if rerr != nil {
			err = rerr
			continue
		}
		if e.TS.Before(from) {
			continue
		}
		if e.TS.After(next.Until) && !e.TS.After(now) {
			next.Until = e.TS
		}
		f, ok := failureOf(e)
		if !ok {
			continue
		}
		seen = append(seen, e)
		// What a step noted itself, and the item whose run failed, count once.
		if run := f.Context.Run; known[e.ID] || (e.Type == event.RunChanged || e.Type == event.WorkChanged) && run != "" && runs[run] {
			continue
		}
		if f.Context.Run != "" && e.Type == event.RunChanged {
			runs[f.Context.Run] = true
		}
		l.Record(f, e.TS)
		n++
	}
	for _, e := range seen {
		if e.TS.After(next.Until.Add(-drawnOverlap)) {
			next.Seen = append(next.Seen, e.ID)
		}
	}
	slices.Sort(next.Seen)
	if n == 0 && (len(l.List) == 0 || next.Until.Sub(d.Until) < rewriteDrawn) {
		return n, err // looked at again the next time
	}
	data, jerr := json.Marshal(next)
	if jerr != nil {
		return n, jerr
	}
	if l.extra == nil {
		l.extra = map[string]json.RawMessage{}
	}
	l.extra[drawnKey] = data
	l.dirty = true
	return n, err
}

// failureOf is the failure that an event tells of. A command that ends badly is how
// work goes, and none; a tool that is not there, or a server that is gone, is one.
func failureOf(e event.Event) (Failure, bool) {
	f := Failure{Timestamp: e.TS, Context: Context{Session: e.Session, Run: e.Run, Agent: e.Agent}}
	if t := e.Task; t != "" {
		_, _ = fmt.Sscan(t, &f.Context.Task) // "12" or "012/2"; 0 where it is neither
	}
	switch e.Type {
	case event.RunChanged:
		return runFailure(e, f)
	case event.VerificationFinished:
		var v event.VerificationData
		if json.Unmarshal(e.Data, &v) != nil || v.Status != "failed" {
			return f, false
		}
		var names []string
		for _, c := range v.Checks {
			if c.Status == "failed" && c.Level != "advisory" {
				names = append(names, c.Name)
			}
		}
		if len(names) == 0 {
			return f, false
		}
		f.Type, f.Message, f.Context.Command = BuildError, "checks failed: "+strings.Join(names, ", "), "verify"
		return f, true
	case event.WorkChanged:
		var w event.WorkData
		if json.Unmarshal(e.Data, &w) != nil || w.To != "dead" || w.From == "dead" || w.Op == "dropped" {
			return f, false // what a person dropped is no failure
		}
		f.Message = w.Title + ": the work item was given up"
		if w.Note != "" {
			f.Message = w.Note + ": the work item was given up: " + w.Title
		}
		f.Type, f.Context.Command, f.Context.Run = endedBadly(w.Note), "loop", w.Run
		return f, true
	case event.ToolFailed:
		var t event.ToolData
		if json.Unmarshal(e.Data, &t) != nil {
			return f, false
		}
		return toolFailure(t, f)
	}
	return f, false
}

func runFailure(e event.Event, f Failure) (Failure, bool) {
	var r struct {
		Status string `json:"status"`
		Reason string `json:"reason"`
	}
	if json.Unmarshal(e.Data, &r) != nil {
		return f, false
	}
	f.Context.Command = "run"
	switch r.Status {
	case "failed":
		f.Type, f.Message = endedBadly(r.Reason), r.Reason
	case "timeout":
		f.Type, f.Message = Timeout, r.Reason
	default: // a person who stopped it, or that it was killed with its starter, is no failure
		return f, false
	}
	if f.Message == "" {
		f.Message = "the run ended " + r.Status
	}
	return f, true
}

// endedBadly is the kind of a run's or item's bad end, by what is said of it: an agent that
// gave nothing back hung; one that ended with an error, as where its model's service failed,
// and a program that crashed or did not start, failed.
func endedBadly(reason string) string {
	low := strings.ToLower(reason)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(low, w) })
	}
	switch {
	case has("ended with an error"): // its words may speak of anything
		return ToolFailure
	case has("timed out", "timeout", "took longer", "time limit"):
		return Timeout
	case has("crash", "failed to start"):
		return ToolFailure
	case has("without a result (exit code 0", "without an answer", "said nothing", "no change", "stall", "lease ran out"), strings.TrimSpace(reason) == "":
		return DelegationHang
	}
	return ToolFailure
}

func toolFailure(t event.ToolData, f Failure) (Failure, bool) {
	said := clip.Line(t.Error + " " + t.Output)
	low := strings.ToLower(said)
	f.Context.Command = t.Name
	switch {
	case t.Tool == "mcp":
		f.Type = ToolFailure
	case t.Tool == "shell" && (t.ExitCode != nil && *t.ExitCode == 127 || strings.Contains(low, "command not found")):
		f.Type = ToolFailure
	case t.Tool == "read" && (strings.Contains(low, "does not exist") || strings.Contains(low, "no such file")):
		f.Type = FileNotFound
	default:
		return f, false
	}
	f.Message = t.Name + ": " + said
	return f, true
}
