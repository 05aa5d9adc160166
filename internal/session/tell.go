package session

import (
	"context"
	"encoding/json"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/brief"
	"reprise/internal/clip"
	"reprise/internal/event"
	"reprise/internal/hook"
	"reprise/internal/learn/improve"
	"reprise/internal/mdfile"
)

// ToolAsk is a client's asking tool about to run: of all tools the only one that
// memory has something to say to.
const ToolAsk = dialect.ToolBefore + ":ask"

// Told are the events at which a session may be told something, in the words of
// a hook program's plan.
func Told() []dialect.Kind {
	return []dialect.Kind{dialect.SessionStart, dialect.Prompt, dialect.ToolFailed, ToolAsk}
}

// Teller answers those events.
type Teller struct {
	Memory *Memory
	// Broker is the way into the log of the session's project; what an event
	// leaves open of who is taken from its argument.
	Broker func(who event.Event) (*event.Broker, error)
	// Warn is told what went wrong beside the answer.
	Warn func(what string, err error)
}

// Tell says what is remembered of the moment.
func (t *Teller) Tell(ctx context.Context, ev dialect.Event) (dialect.Decision, error) {
	if ev.Kind == dialect.ToolBefore {
		return t.question(ctx, ev)
	}
	at := momentOf(ev)
	if at == "" || !dialect.CanContext(ev.Client, ev.Kind) {
		return dialect.Decision{}, nil
	}
	if at == brief.SessionStart {
		if err := t.catchUp(ctx); err != nil {
			return dialect.Decision{}, err
		}
	}
	r, err := t.request(ctx, ev, at)
	if err != nil {
		return dialect.Decision{}, err
	}
	from := t.Memory.Brief()
	says := t.stateSays(ctx, ev)
	if says != "" { // all that is told shares one budget
		budget := from.Budgets.Prompt
		if startsAnew(at) {
			budget = from.Budgets.Start
		}
		r.MaxTokens = max(budget-mdfile.Tokens(says), 1)
	}
	b, err := brief.Make(ctx, from, r)
	if err != nil && says == "" {
		return dialect.Decision{}, err
	}
	if err != nil { // what was said once is not said again
		t.Warn("nothing is said of memory, for what there is to say could not be worked out", err)
		return dialect.Decision{Context: says}, nil
	}
	d := dialect.Decision{Context: b.Text + says}
	if b.Text == "" && len(b.Withheld) == 0 {
		return d, nil
	}
	return d, t.served(ctx, ev, r, b)
}

// catchUp works out what earlier sessions left, where there is anything that this
// one could be told of: what a session that was killed had found out has been
// organised by nobody. Where they ended well nothing is left, and the client is
// not kept waiting; the rest is done at the end of a turn.
func (t *Teller) catchUp(ctx context.Context) error {
	news, err := t.Memory.Organizer.News(ctx, t.Memory.project())
	if err != nil || !news {
		return err
	}
	// Another process may be writing the index. What it has by then is told.
	wait, cancel := ctx, func() {}
	now := t.Memory.o.Env.Now()
	if end, hurry := ctx.Deadline(); hurry && end.After(now) {
		wait, cancel = context.WithTimeout(ctx, end.Sub(now)/2)
	}
	defer cancel()
	if _, err = t.Memory.Organizer.Run(wait, t.Memory.Budget()); err != nil && wait.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

func momentOf(ev dialect.Event) brief.At {
	switch ev.Kind {
	case dialect.SessionStart:
		if ev.Source == "compact" {
			return brief.Compact
		}
		return brief.SessionStart
	case dialect.Prompt:
		return brief.Prompt
	case dialect.ToolFailed:
		return brief.ToolFailure
	}
	return ""
}

func (t *Teller) request(ctx context.Context, ev dialect.Event, at brief.At) (brief.Request, error) {
	reader := t.Memory.Reader()
	reader.Session, reader.Client = ev.Session, ev.Client
	r := brief.Request{At: at, Reader: reader, Text: ev.Prompt, Failed: toolData(ev)}
	var err error
	if r.Policy, err = t.Memory.Policy(ctx, reader, time.Time{}); err != nil {
		return r, err
	}
	r.HeldOut = improve.HeldOut(ev.Client, ev.Session, t.Memory.o.Home.Settings.Recall.HoldOutPercent)
	if startsAnew(at) || ev.Session == "" {
		return r, nil // whatever was told is told anew
	}
	r.Exclude = t.told(ctx, ev)
	return r, nil
}

func startsAnew(at brief.At) bool { return at == brief.SessionStart || at == brief.Compact }

func toolData(ev dialect.Event) event.ToolData {
	return event.ToolData{Tool: ev.Tool, Name: ev.ToolName, ID: ev.ToolID, Input: ev.Input, Output: ev.Output, Error: ev.Error, ExitCode: ev.ExitCode, DurationMS: ev.DurationMS, Cwd: ev.Cwd}
}

// served notes what a session was told, for the session's next question and in
// the log for what is learnt from it.
func (t *Teller) served(ctx context.Context, ev dialect.Event, r brief.Request, b brief.Brief) error {
	items := b.Items()
	if ev.Session != "" && !r.HeldOut {
		t.note(ev, r.Exclude, items)
	}
	data, err := json.Marshal(event.ServedData{At: string(b.At), Query: clip.Runes(r.Text, 500), Items: items, Tokens: b.Tokens, Policy: b.Policy, HeldOut: r.HeldOut})
	if err != nil {
		return err
	}
	return t.record(ctx, ev, event.Event{Type: event.RecallServed, Data: data})
}

// record records an event of the session.
func (t *Teller) record(ctx context.Context, ev dialect.Event, e event.Event) error {
	of := ev // it is recorded already: what it led to belongs to the same, and to it where it is a beginning
	if of.Kind = dialect.Response; startsAnew(momentOf(ev)) {
		of.Kind = dialect.SessionEnd
	}
	b, err := t.Broker(event.Event{Session: ev.Session, Client: ev.Client, Agent: t.Memory.o.Env.Get(hook.AgentVar)})
	if err != nil {
		return err
	}
	if e.Parent == "" {
		e.Parent = hook.Parent(t.Memory.o.Home.Paths.State, &of)
	}
	_, err = b.Record(ctx, e)
	return err
}
