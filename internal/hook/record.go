package hook

import (
	"strconv"

	"reprise/internal/agent/dialect"
	"reprise/internal/event/quick"
)

// Who is what the process knows of the session that it was started in, beside
// what the payload says.
type Who struct {
	Project string
	Run     string // id of the run that the session is, if reprise started it
	Agent   string
	Role    string
}

// Events are the lines of the log that a hook's event comes to: none for what
// is not recorded, one for most, and one a question where several are asked at
// once.
func Events(ev *dialect.Event, who Who) []quick.Event {
	e := quick.Event{
		Project: who.Project, Session: ev.Session, Run: who.Run, Client: ev.Client,
		Agent: who.Agent, Role: who.Role,
	}
	if e.Agent == "" {
		e.Agent = ev.AgentType
	}
	link := func(kind, id string) {
		if id != "" {
			e.Evidence = append(e.Evidence, kind+":"+id)
		}
	}
	link("transcript", ev.Transcript)
	link("turn", ev.Turn)
	link("tool", ev.ToolID)
	link("subagent", ev.Agent)
	if qs := ev.Questions(); len(qs) > 0 && (ev.Kind == dialect.ToolBefore || ev.Kind == dialect.ToolAfter) {
		return questions(e, ev, qs)
	}
	d := newData()
	switch ev.Kind {
	case dialect.SessionStart:
		e.Type = "session.started"
		d.text("source", ev.Source)
		d.text("cwd", ev.Cwd)
		d.text("model", ev.Model)
		d.text("transcript", ev.Transcript)
	case dialect.SessionEnd:
		e.Type = "session.ended"
		d.text("reason", ev.Reason)
		d.text("cwd", ev.Cwd)
		d.text("transcript", ev.Transcript)
	case dialect.Prompt:
		e.Type = "prompt.submitted"
		d.must("text", ev.Prompt)
		d.text("cwd", ev.Cwd)
	case dialect.ToolBefore, dialect.ToolAfter, dialect.ToolFailed, dialect.PermissionAsked, dialect.PermissionDenied:
		tool(&e, &d, ev)
	case dialect.Response, dialect.ResponseFailed:
		e.Type, e.Outcome = "response.completed", outcome(ev.Kind == dialect.ResponseFailed)
		d.text("text", ev.Text)
		d.text("error", ev.Error)
	case dialect.SubagentStarted, dialect.SubagentFinished:
		e.Type = "subagent.started"
		if ev.Kind == dialect.SubagentFinished {
			e.Type = "subagent.finished"
		}
		d.text("id", ev.Agent)
		d.text("type", ev.AgentType)
		d.text("text", ev.Text)
	case dialect.CompactBefore, dialect.CompactAfter:
		e.Type = "client.compacted"
		d.text("trigger", ev.Reason)
		phase := "before"
		if ev.Kind == dialect.CompactAfter {
			phase = "after"
		}
		d.must("phase", phase)
		d.text("summary", ev.Text)
	default:
		return nil
	}
	e.Data = d.end()
	return []quick.Event{e}
}

func outcome(failed bool) string {
	if failed {
		return "failure"
	}
	return "success"
}

// tool fills in what is known of a tool's call. The end of a call repeats its
// input: not every client joins the two by an id, and a hook may be off.
func tool(e *quick.Event, d *data, ev *dialect.Event) {
	switch ev.Kind {
	case dialect.ToolBefore:
		e.Type = "tool.called"
	case dialect.ToolAfter:
		e.Type, e.Outcome = "tool.succeeded", outcome(false)
	case dialect.ToolFailed:
		e.Type, e.Outcome = "tool.failed", outcome(true)
	case dialect.PermissionAsked:
		e.Type = "permission.asked"
	case dialect.PermissionDenied:
		e.Type, e.Outcome = "permission.decided", "denied"
	}
	d.must("tool", ev.Tool)
	d.must("name", ev.ToolName)
	d.text("use_id", ev.ToolID)
	d.raw("input", ev.Input)
	d.text("output", ev.Output)
	d.text("error", ev.Error)
	if ev.ExitCode != nil {
		d.number("exit_code", int64(*ev.ExitCode))
	}
	if ev.DurationMS != 0 {
		d.number("duration_ms", ev.DurationMS)
	}
	d.text("cwd", ev.Cwd)
	if ev.Kind == dialect.PermissionDenied {
		d.must("verdict", "deny")
		d.must("by", "client")
	}
}

// questions makes an event of each question, for each is remembered alone.
func questions(e quick.Event, ev *dialect.Event, qs []dialect.Question) []quick.Event {
	var out []quick.Event
	for _, q := range qs {
		one := e
		one.Type = "question.asked"
		d := newData()
		d.must("question", q.Text)
		d.texts("options", q.Options)
		if ev.Kind == dialect.ToolAfter {
			if q.Answer == "" {
				continue // put aside, not answered
			}
			one.Type = "question.answered"
			d.text("answer", q.Answer)
			d.must("by", "user")
		}
		d.text("use_id", ev.ToolID)
		one.Data = d.end()
		out = append(out, one)
	}
	return out
}

// data writes the JSON of an event's payload. It needs no reflection, for a
// hook is paid for at every tool call.
type data struct{ b []byte }

func newData() data { return data{b: make([]byte, 0, 512)} }

func (d *data) name(name string) {
	sep := byte(',')
	if len(d.b) == 0 {
		sep = '{'
	}
	d.b = append(quick.AppendString(append(d.b, sep), name), ':')
}

// text writes a member unless it is empty, must writes it always.
func (d *data) text(name, s string) {
	if s != "" {
		d.must(name, s)
	}
}

func (d *data) must(name, s string) {
	d.name(name)
	d.b = quick.AppendString(d.b, s)
}

func (d *data) raw(name string, json []byte) {
	if len(json) > 0 {
		d.name(name)
		d.b = append(d.b, json...)
	}
}

func (d *data) number(name string, n int64) {
	d.name(name)
	d.b = strconv.AppendInt(d.b, n, 10)
}

func (d *data) texts(name string, list []string) {
	if len(list) == 0 {
		return
	}
	d.name(name)
	for i, s := range list {
		sep := byte(',')
		if i == 0 {
			sep = '['
		}
		d.b = quick.AppendString(append(d.b, sep), s)
	}
	d.b = append(d.b, ']')
}

func (d *data) end() []byte {
	if len(d.b) == 0 {
		return nil
	}
	return append(d.b, '}')
}
