package web

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"reprise/internal/event"
	"reprise/internal/event/quick"
	"reprise/internal/queue"
	"reprise/internal/term"
)

// latency are the figures of how long hooks kept their clients waiting.
type latency struct{ median, high, hookMedian, hookHigh measure }

func newLatency() *latency {
	show := func(ms float64) string {
		d := time.Duration(ms * float64(time.Millisecond))
		if d < 10*time.Millisecond {
			return strconv.FormatFloat(float64(d.Microseconds()/100)/10, 'f', -1, 64) + " ms"
		}
		return term.Took(d)
	}
	const what = "How long a hook kept its client waiting: until what happened was recorded, and at a prompt or a session's start until what is remembered was told. "
	const empty = "No hook answered in this time."
	const middle, high = "The one in the middle: half of them took less.", "The 95th percentile: one in twenty took longer."
	return &latency{
		median:     measure{id: "latency", name: "Hook latency", what: what + middle, empty: empty, fold: "median", show: show},
		high:       measure{id: "latency-high", name: "Hook latency, 95th percentile", what: high, empty: empty, fold: "p95", show: show},
		hookMedian: measure{id: "latency-hook", name: "Hook latency by hook", what: middle, empty: empty, fold: "median", show: show, whole: true},
		hookHigh:   measure{id: "latency-hook-high", name: "Hook latency by hook, 95th percentile", what: high, empty: empty, fold: "p95", show: show, whole: true},
	}
}

// hookNames are the hooks by the event that they record.
var hookNames = map[event.Type]string{
	event.SessionStarted: "session's start", event.SessionEnded: "session's end", event.PromptSubmitted: "prompt",
	event.ToolCalled: "before a tool", event.QuestionAsked: "before a tool", event.PermissionAsked: "permission", event.PermissionDecided: "before a tool",
	event.ToolSucceeded: "after a tool", event.ToolFailed: "after a tool", event.QuestionAnswered: "after a tool",
	event.ResponseCompleted: "end of a turn", event.SubagentStarted: "subagent's start", event.SubagentFinished: "subagent's end", event.ClientCompacted: "compaction",
}

// mostHooks bounds what is kept of hooks' times: the latest.
const mostHooks = 100_000

// hookTime is how long one hook kept its client waiting.
type hookTime struct {
	name, client, agent string
	at                  time.Time
	took                time.Duration
	timed               bool // false while nothing says how long it took
}

// hookTimes are those of the log, as far as it was read, who the agents of sessions
// and runs are, and which runs' work was refused: each event is looked at once.
type hookTimes struct {
	list   []hookTime
	gone   int               // that are kept no more
	waits  map[string]int    // of those that may be told what is remembered, by their event: the place in list, and what is gone before it
	agents map[string]string // by "session ID" and "run ID"
	// refused are runs whose work the project's checks, or the loop, did not take. A client
	// that ended without an error says nothing of that.
	refused map[string]bool
}

// add takes an event's time. It says how long its hook took until it was recorded. What is
// remembered is told after that, and its own event says when; of a log from before hooks
// said their time that is all there is.
func (h *hookTimes) add(e *event.Event) {
	if h.waits == nil {
		h.waits, h.agents, h.refused = map[string]int{}, map[string]string{}, map[string]bool{}
	}
	if e.Agent != "" {
		if e.Session != "" {
			h.agents["session "+e.Session] = e.Agent
		}
		if e.Run != "" {
			h.agents["run "+e.Run] = e.Agent
		}
	}
	h.judge(e)
	if e.Type == event.RecallServed {
		n, ok := h.waits[e.Parent]
		var d event.ServedData
		if !ok || n < h.gone || json.Unmarshal(e.Data, &d) != nil || d.At != "prompt" && d.At != "session_start" {
			return
		}
		delete(h.waits, e.Parent) // what is told later in the turn is no wait for it
		if told := &h.list[n-h.gone]; !e.TS.Before(told.at) {
			told.took += e.TS.Sub(told.at)
			told.timed = true
		}
		return
	}
	took, timed := quick.HookTime(e.Data)
	told := e.Type == event.PromptSubmitted || e.Type == event.SessionStarted
	if !timed && !told {
		return
	}
	if told {
		h.waits[e.ID] = h.gone + len(h.list)
	}
	name := hookNames[e.Type]
	if name == "" {
		name = string(e.Type)
	}
	h.list = append(h.list, hookTime{name, e.Client, e.Agent, e.TS, took, timed})
	if drop := len(h.list) - mostHooks; drop > mostHooks/10 { // not one by one: each time the rest is copied
		h.list, h.gone = slices.Clone(h.list[drop:]), h.gone+drop
		maps.DeleteFunc(h.waits, func(_ string, n int) bool { return n < h.gone })
	}
}

// judge takes what an event says of a run's work; the last word holds, for what failed at the
// end of one turn may pass at the end of the next.
func (h *hookTimes) judge(e *event.Event) {
	switch e.Type {
	case event.VerificationFinished:
		if e.Run != "" && e.Outcome != "" {
			h.refused[e.Run] = e.Outcome == "failed"
		}
	case event.WorkChanged:
		var d event.WorkData
		if json.Unmarshal(e.Data, &d) == nil && d.Run != "" && (d.Op == queue.OpDone || d.Op == queue.OpFail) {
			h.refused[d.Run] = d.Op == queue.OpFail
		}
	}
}

// take takes the times that hooks took.
func (l *latency) take(h *hookTimes, by string, spans []span) {
	who, hooks := newCells(spans, true), newCells(spans, true)
	for i := range h.list {
		t := &h.list[i]
		if !t.timed {
			continue
		}
		group := t.client
		if by == "agent" {
			group = t.agent
		}
		ms := float64(t.took) / float64(time.Millisecond)
		who.add(t.at, orNone(group, "no "+by), ms, 1)
		hooks.add(t.at, t.name, ms, 1)
	}
	l.median.cells, l.high.cells = who, who
	l.hookMedian.cells, l.hookHigh.cells = hooks, hooks
}
