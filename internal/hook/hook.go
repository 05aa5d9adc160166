// Package hook is the one router behind every client's hooks: a payload in, an
// event recorded, a decision out. It is linked into the small program, so it
// imports neither the index nor git; what needs them is handed over to the full
// program, which passes its handlers in.
//
// Files it writes: the event log (through package event), the outbox of what
// could not be logged, and reprise's own log. It takes their locks only.
package hook

import (
	"context"
	"errors"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/event/quick"
	"reprise/internal/guard"
	"reprise/internal/hook/plan"
)

// Variables that the hook program looks at.
const (
	// DepthVar is set, to a number above 0, in the environment of everything
	// that a hook starts: a model that judges for us has hooks too, and they
	// say and record nothing.
	DepthVar = "REPRISE_HOOK_DEPTH"
	// RunVar is the id of the run that a session is; package proc sets it.
	RunVar = "REPRISE_RUN_ID"
	// RoleVar is how much a session should delegate.
	RoleVar = "AGENT_ROLE"
	// AgentVar is the name of the agent that works here.
	AgentVar = "REPRISE_AGENT"
	// WorkspaceVar is the worktree that the session was started in, where that is a
	// workspace: it writes in no other checkout, and stops where that is gone.
	WorkspaceVar = "REPRISE_WORKSPACE"
)

// ClockBack is what reprise's log says where the clock was set back.
const ClockBack = "the clock has gone back"

// ExitUnrecorded is how the full program tells the hook program that it could
// not record an event (EX_TEMPFAIL of sysexits.h). No client sees it.
const ExitUnrecorded = 75

// ExitAnswered is how the full program tells the hook program that it could not record
// an event, and that it could do all else: what it printed is the answer, and where it
// printed nothing there is nothing to be said. No client sees it.
const ExitAnswered = 77

// ExitFull is how the recall program tells the hook program that an event is for
// the full program to answer. No client sees it.
const ExitFull = 76

// Roles are the known values of [RoleVar].
func Roles() []string { return []string{"conductor", "section-leader", "musician"} }

// Nested reports whether the process runs inside something that a hook started.
func Nested(get func(string) string) bool {
	d := get(DepthVar)
	return d != "" && d != "0"
}

// StartDir is where an event says by itself that the client's session lives. What the
// payload calls the working directory may move with each cd of the agent; see [SessionDir].
func StartDir(ev *dialect.Event, get func(string) string, processDir string) string {
	for _, d := range [...]string{projectDir(ev.Client, get), ev.Cwd, processDir} {
		if isAbs(d) {
			return d
		}
	}
	return processDir
}

// projectDir is what a client says in the environment of its own hooks. Another
// client's variable may have been inherited and says nothing.
func projectDir(client string, get func(string) string) string {
	switch client {
	case "claude":
		return get("CLAUDE_PROJECT_DIR")
	case "gemini":
		return get("GEMINI_PROJECT_DIR")
	}
	return ""
}

// Handlers are the part of a hook that needs the index or git. The full program
// passes them in; in the hook program there are none.
type Handlers interface {
	// Kinds are those that the handlers have something to do with.
	Kinds() []dialect.Kind
	// Context answers an event whose answer the model can be shown.
	Context(ctx context.Context, ev dialect.Event) (dialect.Decision, error)
	// Job does bounded work that an event is the occasion for.
	Job(ctx context.Context, ev dialect.Event) error
}

// Guard judges what is about to be done. Its own error is a refusal, which is
// why its verdict comes back beside no error. *Guarding is one.
type Guard interface {
	Judge(ctx context.Context, ev dialect.Event) Judged
}

// Gate may keep a turn from ending. It is asked last, when all else that an
// event is the occasion for is done: what it runs takes minutes, and nothing may
// wait for that or be lost with it. When it cannot tell, it lets the turn end.
type Gate interface {
	Gate(ctx context.Context, ev dialect.Event) dialect.Decision
}

// Recorder puts an event into its log, or where that cannot be done into the
// outbox (pending), from where a later hook takes it. *quick.Broker is one.
type Recorder interface {
	Record(ctx context.Context, e *quick.Event, sync bool) (pending bool, err error)
}

// Router takes an event through what has to be done with it.
type Router struct {
	Rules *plan.Rules
	Who   Who
	// State is the directory of what is known of sessions, by which an event finds
	// the one that it belongs to; empty: events have no parent.
	State    string
	Recorder Recorder
	// Together is Recorder for several lines of an event: all of it or, where it must
	// refuse, nothing. nil: one after the other. It is no method of a Recorder that is
	// asked for, because such a question costs a hook pages of types.
	Together func(ctx context.Context, events []quick.Event, sync bool) (pending bool, err error)
	Guard    Guard // nil: no opinion on tool calls
	// Unsettled says that what is asked about is decided by somebody else, who
	// records what it came to.
	Unsettled bool
	// Delegation holds conductors and section leaders to their limits; nil: nobody.
	Delegation *Delegation
	Handlers   Handlers // nil: none
	Gate       Gate     // nil: turns end when they like
	// Done is how many of the event's lines are in the log already: those of a
	// router that found out then that it cannot write the rest.
	Done int
	// IDs and At are the ids and the time of the event's lines, where another
	// router gave them already: whoever is asked twice then records once.
	IDs []string
	At  time.Time
	// Took is how long the hook has taken; its event then says that of the time until it
	// was recorded. nil: it does not.
	Took func() time.Duration
	// Judged is what the guard said of the event.
	Judged Judged
	// Warn is told what went wrong beside the answer.
	Warn func(what string, err error)
}

// ErrNeedsFull says that the event can be recorded by the full program only.
var ErrNeedsFull = quick.ErrNeedsFull

// Route records an event and then answers it: a handler that fails, or takes
// the program down, never loses the event. The guard is asked before, and
// answers for its own failures. The only error is [ErrNeedsFull]; nothing has
// been done then but to judge, and the decision is the guard's.
func (r *Router) Route(ctx context.Context, ev dialect.Event) (dialect.Decision, error) {
	// What is not looked at otherwise is still judged: guarding has a switch of
	// its own, in the user's settings.
	if r.Guard != nil && Judges(ev.Kind) {
		r.Judged = r.Guard.Judge(ctx, ev)
		if r.Judged.mask.blind {
			return r.Judged.Decision, ErrNeedsFull // who can tell a secret from what is none
		}
	}
	d := r.Judged.Decision
	on := r.Rules.On(string(ev.Kind), ev.Client, r.Who.Role)
	if err := r.record(ctx, &ev, on); err != nil || !on {
		return d, err
	}
	if r.Delegation != nil && d.Permission != dialect.Deny {
		c, tell, err := r.Delegation.judge(ctx, &ev, r.Who.Role, r.Judged.Quiet(), r.Warn)
		if err != nil {
			return d, err
		}
		for _, n := range tell {
			r.tell(ctx, n.event(&ev, r.Who, Parent(r.State, &ev)))
		}
		if c.Permission == dialect.Deny {
			d.Permission, d.Reason = c.Permission, c.Reason
		}
		d.Context = lines(d.Context, c.Context)
	}
	if r.Handlers != nil && d.Permission != dialect.Deny {
		d = r.handle(ctx, ev, d)
	}
	if r.Gate != nil && r.Rules.Gates(string(ev.Kind)) {
		g := r.Gate.Gate(ctx, ev)
		d.Context = lines(d.Context, g.Context)
		if g.Block {
			d.Block, d.Reason = true, g.Reason
		}
	}
	return d, nil
}

// handle has the handlers do what the event is the occasion for.
func (r *Router) handle(ctx context.Context, ev dialect.Event, d dialect.Decision) dialect.Decision {
	if r.Rules.Recall && Asks(ev.Kind) {
		c, err := r.Handlers.Context(ctx, ev)
		if err != nil {
			r.Warn("nothing is said, for what there is to say could not be worked out", err)
		} else {
			d = join(d, c)
		}
	}
	if r.Rules.Jobs && Works(ev.Kind) {
		if err := r.Handlers.Job(ctx, ev); err != nil {
			r.Warn("a job that the event is the occasion for was not finished", err)
		}
	}
	return d
}

// join puts what a handler says beside the guard's verdict, which stands.
func join(d, c dialect.Decision) dialect.Decision {
	if d.Permission == dialect.NoOpinion {
		d.Permission, d.Reason, d.UpdatedInput = c.Permission, c.Reason, c.UpdatedInput
	}
	d.Context, d.Block = lines(d.Context, c.Context), c.Block
	if c.Block {
		d.Reason = c.Reason
	}
	return d
}

// Judges reports whether an event asks whether a tool may run.
func Judges(k dialect.Kind) bool { return k.Judged() }

// lines puts two texts below each other.
func lines(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

// tell records what came of an event, beside the event itself.
func (r *Router) tell(ctx context.Context, e quick.Event) {
	if !r.Rules.Record {
		return
	}
	pending, err := r.Recorder.Record(ctx, &e, quick.Synced(e.Type))
	if err == nil && pending {
		err = errPending
	}
	if err != nil {
		r.Warn("what came of the event was not recorded", err)
	}
}

// Asks reports whether an event is one in which a handler may have something to
// say; Works, whether it is the occasion for bounded work.
func Asks(k dialect.Kind) bool {
	switch k {
	case dialect.SessionStart, dialect.Prompt, dialect.CompactAfter, dialect.ToolFailed, dialect.ToolBefore, dialect.Response, dialect.SubagentStarted:
		return true
	}
	return false
}

// Works reports whether an event is the occasion for bounded work.
func Works(k dialect.Kind) bool {
	switch k {
	case dialect.SessionStart, dialect.SessionEnd, dialect.Response, dialect.CompactBefore:
		return true
	}
	return false
}

// record writes the event's lines that are not there yet.
func (r *Router) record(ctx context.Context, ev *dialect.Event, on bool) error {
	if !r.Rules.Record {
		return nil
	}
	var events []quick.Event
	if on && r.Rules.Records(ev.Tool, ev.Kind == dialect.ToolFailed) {
		events = Events(ev, r.Who)
	}
	if e, ok := r.Judged.Line(ev, r.Who); ok && !(r.Unsettled && r.Judged.Verdict.Decision == guard.Ask) {
		events = append(events, e)
	}
	if r.Done >= len(events) {
		return nil
	}
	if r.Done == 0 && r.Took != nil {
		events[0].Data = quick.WithHookTime(events[0].Data, r.Took()) // of several lines the first alone: it is one hook
	}
	parent := Parent(r.State, ev)
	for i := r.Done; i < len(events); i++ {
		events[i].Parent = parent
		if i < len(r.IDs) {
			events[i].ID, events[i].TS = r.IDs[i], r.At
		}
	}
	alone := r.Together == nil
	for r.Done < len(events) {
		next := events[r.Done:]
		var pending bool
		var err error
		if !alone && len(next) > 1 {
			sync := false
			for i := range next {
				sync = sync || quick.Synced(next[i].Type)
			}
			if pending, err = r.Together(ctx, next, sync); errors.Is(err, quick.ErrInvalid) {
				alone = true // the others are right
				continue
			}
		} else {
			next = next[:1]
			pending, err = r.Recorder.Record(ctx, &next[0], quick.Synced(next[0].Type))
		}
		switch {
		case errors.Is(err, ErrNeedsFull):
			return ErrNeedsFull
		case err != nil:
			r.Warn("the event was not recorded", err)
		case pending:
			r.Warn("the event was put aside, to be recorded by a later hook", errPending)
		}
		if err == nil && r.Done == 0 {
			if err := noteTurn(r.State, ev, next[0].ID); err != nil {
				r.Warn("what follows in the session will not say what it belongs to", err)
			}
		}
		r.Done += len(next)
	}
	return nil
}

var errPending = errors.New("its log could not be written; the file of the outbox says why")
