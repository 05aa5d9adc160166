package hook

import (
	"context"
	"errors"
	"strconv"

	"reprise/internal/agent/dialect"
	"reprise/internal/delegation"
	"reprise/internal/event/quick"
	"reprise/internal/hook/plan"
)

// Delegation holds sessions that should delegate to their role's limits. Only
// those cost anything: most sessions have no role.
type Delegation struct {
	Rules delegation.Rules
	Store delegation.Store
	Root  string // of the project
	// Recount makes a session's count again from the event log, in which the call
	// that is judged stands already. It is nil in the hook program, which then
	// hands over.
	Recount func(ev *dialect.Event, role string) (delegation.Count, error)
	// Counted says that the hook program counted the call before it handed over.
	Counted bool
}

// Delegates is what holds a session of the role to its limits, nil where there
// are none.
func Delegates(p *plan.Plan, role string) *Delegation {
	if _, held := p.Rules.Delegation.Of(role); !held {
		return nil
	}
	rules := p.Rules.Delegation
	rules.Free = append(delegation.Default().Free, rules.Free...)
	return &Delegation{Rules: rules, Root: p.Root, Store: delegation.Beside(p.Events)}
}

// counted is what the log is told of a count.
type counted struct {
	what   string
	count  delegation.Count
	limit  int
	reason string
}

// judge counts a call and says what becomes of it; quiet says of a shell command
// that it only reads. What the log is to be told comes back beside it. The only
// error is [ErrNeedsFull]; nothing was counted then. What else goes wrong is said
// to warn, and no call is held up by it.
func (d *Delegation) judge(ctx context.Context, ev *dialect.Event, role string, quiet bool, warn func(string, error)) (dialect.Decision, []counted, error) {
	limits, held := d.Rules.Of(role)
	if !held || ev.Session == "" || ev.Agent != "" {
		return dialect.Decision{}, nil, nil
	}
	switch ev.Kind {
	case dialect.SessionStart:
		return dialect.Decision{}, nil, d.begin(ctx, ev, role, warn)
	case dialect.ToolAfter, dialect.ToolFailed:
		if d.Rules.KindOf(ev, d.Root, false) == delegation.Delegated {
			d.ended(ctx, ev, warn)
			return dialect.Decision{}, nil, nil
		}
		return d.remind(ev, role, limits), nil, nil
	case dialect.ToolBefore:
	default:
		return dialect.Decision{}, nil, nil
	}
	kind := d.Rules.KindOf(ev, d.Root, quiet)
	if kind == delegation.Free {
		return dialect.Decision{}, nil, nil
	}
	if d.Counted {
		c, err := d.Store.Load(ev.Client, ev.Session)
		if err == nil && kind == delegation.Work && limits.Warn > 0 && c.Work >= limits.Warn && dialect.CanContext(ev.Client, ev.Kind) {
			return dialect.Decision{Context: warning(role, c, limits)}, nil, nil
		}
		return dialect.Decision{}, nil, nil // what is refused is not handed over
	}
	var tell []counted
	var now delegation.Count
	var verdict delegation.Verdict
	err := d.Store.Update(ctx, ev.Client, ev.Session, func(c delegation.Count, problem error) (delegation.Count, error) {
		tell = nil
		if problem == nil {
			c.Role = role
			now, verdict = c.Next(kind, limits)
			return now, nil
		}
		if d.Recount == nil {
			return c, ErrNeedsFull
		}
		again, err := d.Recount(ev, role)
		if err != nil {
			return c, errors.Join(problem, err)
		}
		now, verdict = again, stand(again, kind, limits)
		if again.Total+again.Delegated > 1 || errors.Is(problem, delegation.ErrDamaged) {
			tell = append(tell, counted{"recounted", again, limits.Block, problem.Error()})
			warn("what the session did itself was counted again from the log", problem)
		}
		return again, nil
	})
	switch {
	case errors.Is(err, ErrNeedsFull):
		return dialect.Decision{}, nil, ErrNeedsFull
	case err != nil && d.Recount == nil && ctx.Err() == nil:
		return dialect.Decision{}, nil, ErrNeedsFull
	case err != nil:
		// Something else may lie where counts are kept: the log still tells what was done.
		again, rerr := delegation.Count{}, ctx.Err()
		if rerr == nil {
			again, rerr = d.Recount(ev, role)
		}
		if rerr != nil {
			warn("what the session does itself could not be counted; nothing is held against it", errors.Join(err, rerr))
			return dialect.Decision{}, nil, nil
		}
		warn("the count of what the session does itself cannot be kept; it is counted from the log at each call", err)
		now, verdict, tell = again, stand(again, kind, limits), nil
	}
	switch {
	case verdict == delegation.Refuse:
		return dialect.Decision{Permission: dialect.Deny, Reason: refusal(role, now, limits)},
			append(tell, counted{"refused", now, limits.Block, ""}), nil
	case verdict == delegation.Warn:
		tell = append(tell, counted{"warned", now, limits.Block, ""})
		if dialect.CanContext(ev.Client, ev.Kind) {
			return dialect.Decision{Context: warning(role, now, limits)}, tell, nil
		}
	case kind == delegation.Delegated:
		tell = append(tell, counted{"delegated", now, limits.Block, ""})
	}
	return dialect.Decision{}, tell, nil
}

// stand is the verdict on a call that is in the count already.
func stand(c delegation.Count, kind delegation.Kind, l delegation.Limits) delegation.Verdict {
	switch {
	case kind != delegation.Work:
	case c.Refused > 0 && l.Block > 0 && c.Work >= l.Block:
		return delegation.Refuse
	case l.Warn > 0 && c.Work >= l.Warn:
		return delegation.Warn
	}
	return delegation.Pass
}

// begin makes the count of a session that begins, so that one which is missing
// later is known to be missing. A session that goes on keeps what it has; one
// that has lost it is counted again at its next call.
func (d *Delegation) begin(ctx context.Context, ev *dialect.Event, role string, warn func(string, error)) error {
	if ev.Source != "startup" {
		return nil
	}
	err := d.Store.Update(ctx, ev.Client, ev.Session, func(c delegation.Count, problem error) (delegation.Count, error) {
		if problem != nil && !errors.Is(problem, delegation.ErrMissing) {
			return c, problem
		}
		c.Role = role
		return c, nil
	})
	if err != nil {
		warn("the count of what the session does itself could not be begun", err)
	}
	return nil
}

// ended notes how a call that delegated came out: one that failed is none. Where the
// count is lost nothing is noted, for it is made again from the log, which has the
// failure, too.
func (d *Delegation) ended(ctx context.Context, ev *dialect.Event, warn func(string, error)) {
	if d.Counted {
		return
	}
	err := d.Store.Update(ctx, ev.Client, ev.Session, func(c delegation.Count, problem error) (delegation.Count, error) {
		if problem != nil {
			return c, problem
		}
		return c.Ended(ev.Kind == dialect.ToolFailed), nil
	})
	if err != nil && !errors.Is(err, delegation.ErrMissing) && !errors.Is(err, delegation.ErrDamaged) {
		warn("that a call which delegated has ended could not be counted", err)
	}
}

// remind tells a client after a call what it cannot be told before one.
func (d *Delegation) remind(ev *dialect.Event, role string, l delegation.Limits) dialect.Decision {
	if l.Warn <= 0 || dialect.CanContext(ev.Client, dialect.ToolBefore) || !dialect.CanContext(ev.Client, ev.Kind) {
		return dialect.Decision{}
	}
	c, err := d.Store.Load(ev.Client, ev.Session)
	if err != nil || c.Work < l.Warn || d.Rules.KindOf(ev, d.Root, false) != delegation.Work {
		return dialect.Decision{}
	}
	return dialect.Decision{Context: warning(role, c, l)}
}

func calls(n int) string {
	if n == 1 {
		return "1 call"
	}
	return strconv.Itoa(n) + " calls"
}

const howToDelegate = "hand it to a subagent or a run (spawn_agent) with what it needs to know; reading, searching and documents stay free"

func warning(role string, c delegation.Count, l delegation.Limits) string {
	text := "reprise: you are the " + role + " of this session and have done " + calls(c.Work) + " of work yourself since you last delegated"
	if l.Block > 0 {
		text += "; after " + strconv.Itoa(l.Block) + " your own are refused"
	}
	return text + ". Delegate the rest: " + howToDelegate + "."
}

func refusal(role string, c delegation.Count, l delegation.Limits) string {
	return "reprise: you are the " + role + " of this session and have done " + calls(c.Work) + " of work yourself since you last delegated; " +
		strconv.Itoa(l.Block) + " is the most. Delegate this one: " + howToDelegate +
		". The person whose session it is sees and resets the count with `reprise delegation`."
}

// event is the line of the log.
func (n counted) event(ev *dialect.Event, who Who, parent string) quick.Event {
	e := quick.Event{
		Type: "delegation.counted", Project: who.Project, Session: ev.Session, Run: who.Run, Client: ev.Client, Agent: who.Agent, Role: who.Role, Parent: parent,
	}
	if ev.ToolID != "" {
		e.Evidence = []string{"tool:" + ev.ToolID}
	}
	b := quick.AppendString([]byte(`{"what":`), n.what)
	b = quick.AppendString(append(b, `,"tool":`...), ev.Tool)
	b = quick.AppendString(append(b, `,"name":`...), ev.ToolName)
	for _, f := range [...]struct {
		name string
		n    int
	}{{"work", n.count.Work}, {"total", n.count.Total}, {"delegated", n.count.Delegated}, {"limit", n.limit}} {
		b = strconv.AppendInt(append(append(append(b, `,"`...), f.name...), `":`...), int64(f.n), 10)
	}
	if n.reason != "" {
		b = quick.AppendString(append(b, `,"reason":`...), n.reason)
	}
	e.Data = append(b, '}')
	return e
}
