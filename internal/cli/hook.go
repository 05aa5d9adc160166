package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/agent/dialect"
	"reprise/internal/config"
	"reprise/internal/delegation"
	"reprise/internal/event"
	"reprise/internal/event/quick"
	"reprise/internal/hook"
	"reprise/internal/hook/compile"
	"reprise/internal/hook/plan"
	"reprise/internal/redact"
	"reprise/internal/session"
)

// exitHookUsage is EX_USAGE of sysexits.h: in a hook, the usual 2 would block a
// tool.
const exitHookUsage = 64

func newHookCmd(app *App) *cobra.Command {
	var done, deadline int
	var counted bool
	var dir, at, mark string
	var ids []string
	var began int64
	cmd := &cobra.Command{
		Use: "hook CLIENT EVENT", Aliases: []string{"hooks"}, Short: "Deal with an event of a client (started by reprise-hook, or by a client)",
		Long: `Deal with an event of a client: record it, answer it. The client's payload is read
from standard input; the answer is in the client's own dialect. Whatever goes
wrong, nothing is printed and the exit code is 0, which every client takes for "no
opinion"; reprise's log says what it was.

Clients start reprise-hook, which is smaller and does what it can by itself.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return &ExitError{Code: exitHookUsage, Err: errors.New("hook takes a client and the name of one of its events")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			call := hookCall{client: args[0], event: args[1], done: done, dir: dir, limit: time.Duration(deadline) * time.Millisecond, mark: mark, counted: counted, began: app.Now()}
			if began > 0 {
				call.began = time.UnixMicro(began) // by the machine's clock, which both programs have
			}
			if when, err := time.Parse(time.RFC3339Nano, at); err == nil {
				call.handed, call.at, call.ids = true, when, ids
			}
			switch recorded, answered := runHook(cmd.Context(), app, call); {
			case recorded || !call.handed:
				return nil
			case answered:
				return exitWithCode(hook.ExitAnswered)
			}
			return exitWithCode(hook.ExitUnrecorded)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return &ExitError{Code: exitHookUsage, Err: err}
	})
	cmd.Flags().IntVar(&done, "done", 0, "how many of the event's lines are in the log already")
	cmd.Flags().IntVar(&deadline, "deadline-ms", 0, "how long this may take; 0 is what the event allows")
	cmd.Flags().StringVar(&dir, "dir", "", "where the session lives; default: what the payload says")
	cmd.Flags().StringArrayVar(&ids, "id", nil, "id of a line of the log that the event comes to, in their order")
	cmd.Flags().StringVar(&at, "at", "", "time of the event")
	cmd.Flags().BoolVar(&counted, "counted", false, "what the session does itself was counted")
	cmd.Flags().Int64Var(&began, "began-us", 0, "when the hook program began, in µs since 1970")
	cmd.Flags().StringVar(&mark, "cut-mark", "", "how cut texts of the payload are marked")
	for _, name := range []string{"done", "deadline-ms", "dir", "id", "at", "cut-mark", "counted", "began-us"} {
		_ = cmd.Flags().MarkHidden(name) // it was defined just above
	}
	cmd.AddCommand(hookCommands(app)...)
	return cmd
}

// hookCall is one event as it came.
type hookCall struct {
	client, event string
	handed        bool // by the hook program
	done          int
	ids           []string
	at            time.Time
	dir           string
	limit         time.Duration
	mark          string // of what the hook program cut of the payload
	counted       bool   // by the hook program
	began         time.Time
}

// runHook deals with one event, and says nothing of errors to the client. It
// reports whether the event is where it belongs, and whether it was answered as the
// settings have it: a home that cannot be written can still be read.
func runHook(ctx context.Context, app *App, call hookCall) (recorded, answered bool) {
	// A crash of the runtime's own would end with 2, which blocks a tool.
	debug.SetTraceback("crash")
	h := &hookRun{app: app, call: call, began: app.Now()}
	defer func() {
		if r := recover(); r != nil {
			h.warn("the hook failed and says nothing; please report this", fmt.Errorf("%v", r))
		}
	}()
	if hook.Nested(app.Env.Get) {
		return true, true
	}
	if h.call.limit <= 0 {
		ms := max(dialect.DeadlineMS(call.client, call.event), dialect.GateMS(call.client, call.event))
		h.call.limit = time.Duration(ms)*time.Millisecond - 100*time.Millisecond
	}
	ctx, cancel := context.WithTimeout(ctx, h.call.limit)
	defer cancel()
	answers := make(chan []byte, 1)
	go func() {
		defer close(answers)
		defer func() {
			if r := recover(); r != nil {
				h.warn("the hook failed; please report this", fmt.Errorf("%v", r))
				h.lost = true
				h.answered = false
				answers <- h.refuse("the hook failed at this call")
			}
		}()
		answers <- h.do(ctx)
	}()
	select {
	case answer := <-answers:
		h.say(answer)
	case <-ctx.Done():
		h.warn("the hook took too long", context.Cause(ctx))
		h.say(h.refuse("the hook took too long"))
		return false, false
	}
	return !h.lost, h.answered
}

// took is how long the hook has taken, from its beginning in the hook program where that
// handed it over.
func (h *hookRun) took() time.Duration { return h.app.Now().Sub(h.call.began) }

// say prints an answer, in one write.
func (h *hookRun) say(answer []byte) {
	if len(answer) == 0 {
		return
	}
	if _, err := h.app.Out.Write(answer); err != nil {
		h.warn("the client did not take the answer", err)
	}
}

// hookRun is one event on its way through the full program.
type hookRun struct {
	app   *App
	call  hookCall
	began time.Time
	made  *compile.Made
	guard *hook.Guarding
	lost  bool // the event was not recorded
	// answered says that the event was judged, and dealt with, by the settings that
	// there are.
	answered bool
	// broken is why the settings or the project's file cannot be read.
	broken string
	mu     sync.Mutex
}

func (h *hookRun) warn(what string, err error) {
	h.mu.Lock() // the hook's own time may end while it is at work
	defer h.mu.Unlock()
	log, lerr := h.app.Logger()
	if lerr != nil {
		// The settings that say where the log is cannot be read; it has a place
		// without them.
		log = h.plainLogger()
	}
	if log == nil {
		if dialect.ReadsStderr(h.call.client) {
			return
		}
		fmt.Fprintf(h.app.Err, "reprise: hook: %s: %v\n", what, err)
		return
	}
	log.Warn("hook: "+what, slog.String("client", h.call.client), slog.String("event", h.call.event), slog.Any("error", err))
}

func (h *hookRun) plainLogger() *slog.Logger {
	paths, err := config.FindPaths(h.app.Env)
	if err != nil {
		return nil
	}
	log, closer, err := session.Log(paths.LogFile(), config.Default(paths).Logging, h.app.Env.Now, h.app.PID)
	if err != nil {
		return nil
	}
	h.app.log, h.app.logf = log, closer
	return log
}

// compile makes the plan for an event. Whether a clone that only has the project's name
// is one, git is asked where a session or a turn begins, and not at each call of a tool:
// another project of that name would pay for it each time.
func (h *hookRun) compile(ev *dialect.Event, o compile.Options) (*compile.Made, error) {
	made, err := compile.Make(o)
	var taken *config.NameTakenError
	if (ev.Kind == dialect.SessionStart || ev.Kind == dialect.Prompt) && errors.As(err, &taken) && h.app.sameHistory(taken) {
		return compile.Make(o)
	}
	return made, err
}

// do deals with the event and returns the answer as the client wants it.
func (h *hookRun) do(ctx context.Context) []byte {
	input, mark, err := readPayload(h.app.In)
	if err != nil {
		h.warn("the event could not be read, so it is not recorded", err)
		return h.refuse("the call could not be read")
	}
	ev, err := dialect.Parse(h.call.client, h.call.event, input)
	if err != nil {
		h.warn("the event could not be understood, so it is not recorded", err)
		return h.refuse("the call could not be understood")
	}
	switch ev.Kind {
	case dialect.Other:
		return nil
	case dialect.Notification:
		h.notified(&ev)
		return nil
	}
	if h.call.mark == "" {
		h.call.mark = mark
	}
	ev.CutMark = h.call.mark
	hook.AddExit(&ev)
	env := h.app.Env
	if env.Dir = h.call.dir; env.Dir == "" {
		env.Dir = h.sessionDir(&ev)
	}
	handlers := h.app.hookHandlers(h.warn)
	h.made, err = h.compile(&ev, compile.Options{
		Env: env, Flag: h.app.ConfigFlag, Host: h.app.Hostname, Program: h.app.Program, Hand: handKinds(handlers), Tell: tellKinds(handlers),
	})
	if err != nil {
		h.warn("the settings or the project cannot be read; "+ifKnown(h.made != nil, "the event is recorded as before, or, where the name is another's, as of no project", "the event is not recorded"), err)
	}
	if err != nil {
		h.broken = brokenText(err)
	}
	var gate *gatekeeper
	if err != nil || h.made.Lost != nil {
		gate = h.lostGate(&ev, env)
	}
	if h.made == nil {
		h.lost = true
		return h.unread(ctx, ev, env, gate)
	}
	if h.made.Home != nil || gate == nil {
		h.app.home = h.made.Home // nil only where nothing else than recording is left to do
	}
	if h.made.Home != nil {
		if err := h.made.Write(h.made.Home.Paths.Cache, h.app.Now()); err != nil {
			h.warn("hooks stay slower than they need be", err)
		}
		if p := h.made.Home.Project; p != nil {
			commit := ""
			if ev.Kind == dialect.SessionStart { // the others have no time to ask git
				commit = h.app.unclaimedCommit(ctx, h.made.Home)
			}
			if err := h.made.Home.Paths.Claim(ctx, p, commit, h.app.Now()); err != nil {
				h.warn("the project's name is not registered", err)
			}
		}
	} else {
		handlers = nil
	}
	p := h.made.Plan
	r := &hook.Router{
		Rules: &p.Rules, Recorder: h.recorder(p), Handlers: handlers, Done: h.call.done, IDs: h.call.ids, At: h.call.at, Took: h.took, Warn: h.warn,
		Who: hook.Who{Project: p.Project, Run: env.Get(hook.RunVar), Agent: env.Get(hook.AgentVar)},
	}
	if paths, err := config.FindPaths(h.app.Env); err == nil {
		r.State = paths.State
		r.Who.Role = hook.Role(paths.State, &ev, env.Get, h.warn)
	}
	if hook.Judges(ev.Kind) {
		var cancel context.CancelFunc
		ctx, cancel = h.judged(ctx, r, env, &ev)
		defer cancel()
	}
	ctx, cancel := h.gated(ctx, r, &ev, env.Dir, gate)
	defer cancel()
	if r.Delegation = hook.Delegates(p, r.Who.Role); r.Delegation != nil && h.made.Home != nil {
		r.Delegation.Counted = h.call.counted
		r.Delegation.Recount = func(ev *dialect.Event, role string) (delegation.Count, error) {
			return recount(p.Events, r.Delegation, h.guard, ev, role)
		}
	}
	h.replay(ctx)
	d, err := r.Route(ctx, ev)
	h.answered = true
	if err != nil {
		h.warn("the event was not recorded", err)
		return dialect.Encode(ev, dialect.Decision{Permission: d.Permission, Reason: d.Reason}).Stdout
	}
	if h.broken != "" && ev.Kind == dialect.SessionStart {
		d.Context = strings.TrimPrefix(d.Context+"\n"+brokenNotice(h.broken), "\n")
	}
	return dialect.Encode(ev, d).Stdout
}

// sessionDir is where the event's session lives.
func (h *hookRun) sessionDir(ev *dialect.Event) string {
	state := ""
	if paths, err := config.FindPaths(h.app.Env); err == nil {
		state = paths.State
	}
	return hook.SessionDir(state, ev, h.app.Env.Get, h.app.Env.Dir, h.warn)
}

// gated has the router check the end of a turn, in the time that there is for that. gate is that
// of a project whose file is gone or cannot be read, nil for none.
func (h *hookRun) gated(ctx context.Context, r *hook.Router, ev *dialect.Event, dir string, gate *gatekeeper) (context.Context, context.CancelFunc) {
	p := h.made.Plan
	switch {
	case gate != nil:
		r.Gate = gate
		if !p.Rules.Gates(string(ev.Kind)) { // the plan is one of before
			rules := p.Rules
			rules.GateKinds = append(slices.Clone(rules.GateKinds), string(ev.Kind))
			r.Rules = &rules
		}
	case p.Rules.Gates(string(ev.Kind)):
		r.Gate = &gatekeeper{app: h.app, home: h.made.Home, dir: dir, warn: h.warn}
	case dialect.GateMS(ev.Client, ev.Name) > 0:
		h.sayUntrusted()
		// The time that was given is a gate's, and there is none.
		return context.WithTimeout(ctx, time.Duration(dialect.DeadlineMS(ev.Client, ev.Name))*time.Millisecond)
	}
	return ctx, func() {}
}

// judged has the router judge a call, in the time that there is for that.
func (h *hookRun) judged(ctx context.Context, r *hook.Router, env config.Env, ev *dialect.Event) (context.Context, context.CancelFunc) {
	h.guard = h.guarding(h.made.Plan, env)
	h.guard.Broken = h.broken
	r.Guard = h.guard
	if !h.call.handed {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, h.judging(ev))
}

// judgeLimit bounds the judging of a call of which nobody else is asked.
const judgeLimit = 5 * time.Second

// judging is how long a call that was handed over may take: the hook program without a
// plan grants what a call may take that waits for a person.
func (h *hookRun) judging(ev *dialect.Event) time.Duration {
	most := max(judgeLimit, time.Duration(dialect.DeadlineMS(ev.Client, ev.Name))*time.Millisecond)
	if h.guard.Rules.Full {
		most = max(most, h.guard.Patience(*ev))
	}
	return most
}

// unread answers an event where no rules are known at all: a call by those that are
// built in, of which none allows, and the start of a session by saying so.
func (h *hookRun) unread(ctx context.Context, ev dialect.Event, env config.Env, gate *gatekeeper) []byte {
	var d dialect.Decision
	if gate != nil {
		d = gate.Gate(ctx, ev)
	}
	switch {
	case hook.Judges(ev.Kind):
		h.answered = true // as far as anybody can
		h.guard = h.guarding(nil, env)
		h.guard.Broken = h.broken
		j := h.guard.Judge(ctx, ev)
		return dialect.Encode(ev, j.Decision).Stdout
	case ev.Kind == dialect.SessionStart:
		d.Context = strings.TrimPrefix(d.Context+"\n"+brokenNotice(h.broken), "\n")
	}
	return dialect.Encode(ev, d).Stdout
}

// brokenText is an error of settings in one line, without secrets: it goes to the
// model and into the log.
func brokenText(err error) string {
	text, _ := redact.New().String(strings.Join(strings.Fields(err.Error()), " "))
	return "the settings cannot be read (" + clipText(text, 300) + ")"
}

// brokenNotice is what a session is told whose settings cannot be read.
func brokenNotice(broken string) string {
	return "reprise: " + broken + ". Until the user has mended them, nothing is remembered or told, and every tool call is asked about, or refused where nobody is there. Tell the user; `reprise doctor` says more."
}

// readPayload reads what a client sends. mark is that of what was cut of it.
func readPayload(r io.Reader) (data []byte, mark string, err error) {
	var in dialect.Intake
	chunk := make([]byte, 64<<10)
	for {
		n, err := r.Read(chunk)
		in.Add(chunk[:n])
		if errors.Is(err, io.EOF) {
			data, mark = in.Payload(true)
			return data, mark, nil
		}
		if err != nil {
			return nil, "", err
		}
	}
}

func ifKnown(known bool, yes, no string) string {
	if known {
		return yes
	}
	return no
}

// tellKinds are those among them that the recall program deals with.
func tellKinds(h hook.Handlers) []string {
	if h == nil {
		return nil
	}
	var out []string
	for _, k := range session.Told() {
		out = append(out, string(k))
	}
	return out
}

// handKinds are the kinds that the handlers want to be handed.
func handKinds(h hook.Handlers) []string {
	if h == nil {
		return nil
	}
	var out []string
	for _, k := range h.Kinds() {
		out = append(out, string(k))
	}
	return out
}

// hookRecorder records what a router has for the log, secrets and all: the full
// program takes them out.
type hookRecorder struct {
	broker *event.Broker
	lost   *bool // set when an event could not be recorded
}

func (h *hookRun) recorder(p *plan.Plan) *hookRecorder {
	return &hookRecorder{lost: &h.lost, broker: event.NewBroker(event.BrokerOptions{
		Events: func(string) string { return p.Events },
		Outbox: config.Paths{Data: p.Data}.Outbox(),
		Host:   h.app.Hostname, Now: h.app.Env.Now, Wait: min(hookLockWait, h.call.limit/3), Mark: h.call.mark,
		Report: func(err error) { h.warn("the event was put aside, to be recorded by a later hook", err) },
		Back:   func(before, now time.Time) { h.warn(hook.ClockBack, errors.New(quick.BackText(before, now))) },
	})}
}

func (r *hookRecorder) Record(ctx context.Context, e *quick.Event, _ bool) (bool, error) {
	done, err := r.broker.Record(ctx, event.Event{
		ID: e.ID, TS: e.TS,
		Scope: event.Scope(e.Scope), Project: e.Project, Session: e.Session, Run: e.Run, Client: e.Client,
		Agent: e.Agent, Role: e.Role, Parent: e.Parent, Type: event.Type(e.Type), Data: e.Data, Outcome: e.Outcome, Evidence: e.Evidence,
	})
	e.ID = done.ID
	*r.lost = *r.lost || err != nil
	return false, err // what was put aside has been reported
}

// Bounds of what a hook does with the outbox.
const (
	// hookLockWait is how long a log's lock is waited for before an event is
	// put aside.
	hookLockWait = 700 * time.Millisecond

	replayEvents = 2000
	replayTime   = 300 * time.Millisecond
)

// replay records what earlier hooks had to put aside. A project's events go
// where its name says, whichever project this hook belongs to.
func (h *hookRun) replay(ctx context.Context) {
	if h.made.Home == nil {
		return
	}
	paths := h.made.Home.Paths
	b := event.NewBroker(event.BrokerOptions{
		Events: paths.Events, Outbox: paths.Outbox(), Host: h.app.Hostname, Now: h.app.Env.Now,
	})
	ctx, cancel := context.WithTimeout(ctx, replayTime)
	defer cancel()
	done, err := b.Replay(ctx, replayEvents)
	if rerr := b.Reserve(); rerr != nil {
		h.warn("nothing is set aside for the time when the disk is full", rerr)
	}
	switch {
	case err != nil:
		h.warn("what waits in the outbox could not be recorded", err)
	case len(done.Trouble)+len(done.Aside) > 0:
		h.warn("some of what waits in the outbox could not be recorded", errors.New(strings.Join(append(done.Trouble, done.Aside...), "; ")))
	}
}
