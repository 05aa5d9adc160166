package hook

import (
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
	if e.Type = dialect.EventType(ev.Kind); e.Type == "" {
		return nil
	}
	e.Outcome = outcome(ev.Kind)
	e.Data = dialect.AppendData(make([]byte, 0, 512), *ev)
	switch {
	case ev.Kind == dialect.PermissionDenied:
		e.Data = append(e.Data[:len(e.Data)-1], `,"verdict":"deny","by":"client"}`...)
	case len(e.Data) == len("{}"):
		e.Data = nil
	}
	return []quick.Event{e}
}

// outcome is how what happened ended, where that is told by its kind.
func outcome(k dialect.Kind) string {
	switch k {
	case dialect.ToolAfter, dialect.Response:
		return "success"
	case dialect.ToolFailed, dialect.ResponseFailed:
		return "failure"
	case dialect.PermissionDenied:
		return "denied"
	}
	return ""
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

// data writes the JSON of a question's payload; package dialect has that of
// everything that one payload makes one event of. It needs no reflection, for a
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

func (d *data) end() []byte { return append(d.b, '}') }
