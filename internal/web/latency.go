package web

import (
	"encoding/json"
	"strconv"
	"time"

	"reprise/internal/event"
	"reprise/internal/event/quick"
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

// take takes the times from the log; agents become the names of sessions' and runs'
// agents. An event says how long its hook took until it was recorded. What is remembered
// is told after that, and its own event says when; of a log from before hooks said their
// time that is all there is.
func (l *latency) take(events []logged, by string, agents map[string]string) {
	type hook struct {
		name, group string
		at          time.Time
		took        time.Duration
		timed       bool
	}
	var hooks []hook
	waits := map[string]int{} // of those that may be told what is remembered, by their event
	for i := range events {
		e := &events[i].Event
		if e.Agent != "" {
			if e.Session != "" {
				agents["session "+e.Session] = e.Agent
			}
			if e.Run != "" {
				agents["run "+e.Run] = e.Agent
			}
		}
		if e.Type == event.RecallServed {
			n, ok := waits[e.Parent]
			var d event.ServedData
			if !ok || json.Unmarshal(e.Data, &d) != nil || d.At != "prompt" && d.At != "session_start" {
				continue
			}
			delete(waits, e.Parent) // what is told later in the turn is no wait for it
			if wait := e.TS.Sub(hooks[n].at); wait >= 0 {
				hooks[n].took += wait
				hooks[n].timed = true
			}
			continue
		}
		took, timed := quick.HookTime(e.Data)
		told := e.Type == event.PromptSubmitted || e.Type == event.SessionStarted
		if !timed && !told {
			continue
		}
		group := e.Client
		if by == "agent" {
			group = e.Agent
		}
		if told {
			waits[e.ID] = len(hooks)
		}
		name := hookNames[e.Type]
		if name == "" {
			name = string(e.Type)
		}
		hooks = append(hooks, hook{name, orNone(group, "no "+by), e.TS, took, timed})
	}
	for _, h := range hooks {
		if !h.timed {
			continue
		}
		ms := float64(h.took) / float64(time.Millisecond)
		l.median.samples = append(l.median.samples, sample{h.at, h.group, ms, 1})
		l.hookMedian.samples = append(l.hookMedian.samples, sample{h.at, h.name, ms, 1})
	}
	l.high.samples, l.hookHigh.samples = l.median.samples, l.hookMedian.samples
}
