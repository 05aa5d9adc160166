package dialect

import (
	"strconv"

	"reprise/internal/event/quick"
)

// writer writes one JSON object, member by member.
type writer struct {
	b     []byte
	begun bool
}

func (w *writer) open() { w.b, w.begun = append(w.b, '{'), false }
func (w *writer) end()  { w.b, w.begun = append(w.b, '}'), true }

func (w *writer) name(name string) {
	if w.begun {
		w.b = append(w.b, ',')
	}
	w.begun = true
	w.b = append(quick.AppendString(w.b, name), ':')
}

// nested opens an object as a member.
func (w *writer) nested(name string) {
	w.name(name)
	w.open()
}

func (w *writer) text(name, s string) {
	w.name(name)
	w.b = quick.AppendString(w.b, s)
}

// opt writes the member if it has a text.
func (w *writer) opt(name, s string) {
	if s != "" {
		w.text(name, s)
	}
}

func (w *writer) raw(name string, json []byte) {
	w.name(name)
	w.b = append(w.b, json...)
}

func (w *writer) integer(name string, n int64) {
	w.name(name)
	w.b = strconv.AppendInt(w.b, n, 10)
}

// EventType is the type that the event log has for what happened, "" where it
// is not recorded.
func EventType(k Kind) string {
	switch k {
	case SessionStart:
		return "session.started"
	case SessionEnd:
		return "session.ended"
	case Prompt:
		return "prompt.submitted"
	case ToolBefore:
		return "tool.called"
	case ToolAfter:
		return "tool.succeeded"
	case ToolFailed:
		return "tool.failed"
	case PermissionAsked:
		return "permission.asked"
	case PermissionDenied:
		return "permission.decided"
	case Response, ResponseFailed:
		return "response.completed"
	case SubagentStarted:
		return "subagent.started"
	case SubagentFinished:
		return "subagent.finished"
	case CompactBefore, CompactAfter:
		return "client.compacted"
	}
	return ""
}

// AppendData appends the event's data as the event log has it for
// [EventType](e.Kind): a JSON object on one line, with the fields of the
// payload structs of package event. That package is not used for it because of
// what it links. Kinds that are not recorded append an empty object.
func AppendData(dst []byte, e Event) []byte {
	w := writer{b: dst}
	w.open()
	switch e.Kind {
	case SessionStart:
		w.opt("source", e.Source)
		w.opt("cwd", e.Cwd)
		w.opt("model", e.Model)
		w.opt("transcript", e.Transcript)
	case SessionEnd:
		w.opt("reason", e.Reason)
		w.opt("cwd", e.Cwd)
		w.opt("transcript", e.Transcript)
	case Prompt:
		w.text("text", e.Prompt)
		w.opt("cwd", e.Cwd)
	case ToolBefore, ToolAfter, ToolFailed, PermissionAsked, PermissionDenied:
		w.tool(e)
	case Response, ResponseFailed:
		w.opt("text", e.Text)
		w.opt("error", e.Error)
	case SubagentStarted, SubagentFinished:
		w.opt("id", e.Agent)
		w.opt("type", e.AgentType)
		w.opt("text", e.Text)
	case CompactBefore, CompactAfter:
		w.opt("trigger", e.Reason)
		if e.Kind == CompactBefore {
			w.text("phase", "before")
		} else {
			w.text("phase", "after")
		}
		w.opt("summary", e.Text)
	}
	w.end()
	return w.b
}

func (w *writer) tool(e Event) {
	w.text("tool", e.Tool)
	w.text("name", e.ToolName)
	w.opt("use_id", e.ToolID)
	if len(e.Input) > 0 {
		w.raw("input", e.Input)
	}
	w.opt("output", e.Output)
	w.opt("error", e.Error)
	if e.ExitCode != nil {
		w.integer("exit_code", int64(*e.ExitCode))
	}
	if e.DurationMS != 0 {
		w.integer("duration_ms", e.DurationMS)
	}
	w.opt("cwd", e.Cwd)
}
