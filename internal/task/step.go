package task

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"reprise/internal/agent"
	"reprise/internal/clip"
	"reprise/internal/run"
)

// step is one delegation on its way.
type step struct {
	f      *Flow
	o      Operation
	task   Task    // as it was when the step began; without a number for a review
	review *Review // nil for a task's step
	phase  *Phase
	plan   string // the plan's file, below specs/
	about  string
	files  []string // for the agent to read, relative to where it works
	d      Delegation
	route  Route
	// criteria says that the task has boxes for what must hold before it is done, and
	// that this is the step after which they have to.
	criteria bool
	absent   []string // MCP servers of the route that there are not
	vars     []string // of the environment of the agent, beside the delegation's own
	long     bool     // what it wrote in a place of its own is too long to be filed
	// integrate brings what was done to the main checkout, and says why it could not;
	// nil where that is where it was done.
	integrate func(ctx context.Context, done bool) (refused string, err error)
}

// number is the task's, 0 for a review.
func (s *step) number() int { return s.task.Number }

func (s *step) name() string {
	if s.review != nil {
		return fmt.Sprintf("review %d", s.review.Number)
	}
	return fmt.Sprintf("task %d", s.task.Number)
}

func (s *step) what() string {
	if s.phase != nil {
		return fmt.Sprintf("%s phase %d", s.o.Name, s.phase.Number)
	}
	return s.o.Name
}

// dir is where the agent works.
func (s *step) dir() string { return cmp.Or(s.o.Place, s.f.Root) }

// roots are where files that it names may lie; relative ones count from the first.
func (s *step) roots() []string {
	if s.o.Place == "" {
		return []string{s.f.Root}
	}
	return []string{s.o.Place, s.f.Root}
}

// begin takes the task for a session and reserves the file of what is found.
func (f *Flow) begin(ctx context.Context, w Want) (*step, error) {
	f.settle(ctx, w.Number)
	s := &step{f: f}
	var agentName string
	b, err := f.Store.Change(ctx, func(b *Board) (err error) {
		*s = step{f: f}
		language := DefaultLanguage
		var t *Task
		if w.Op != OpReview {
			if t, err = b.Task(w.Number); err != nil {
				return err
			}
			language = t.Language
		}
		s.route = RouteOf(f.Routes, language)
		agentName = s.route.Agent(w.Op)
		if t != nil && (w.Op == OpPlan || w.Op == OpRevise) && b.mendsErrors(t) {
			agentName = s.route.Agent("errors")
		}
		limit := cmp.Or(f.Timeout, Timeouts(w.Op))
		d, err := Delegate(f.From, agentName, NewSession(f.Now()), limit)
		if err != nil {
			return err
		}
		want := Operation{Name: w.Op, Session: d.Session, Agent: agentName, Path: d.Path, Focus: clip.Line(w.Focus), By: w.By}
		var o *Operation
		if w.Op == OpReview {
			o, err = s.beginReview(b, want)
		} else {
			o, err = s.beginTask(b, t, w.Phase, want)
		}
		if err != nil {
			return err
		}
		o.Owner, o.Until, o.Place = w.Owner, b.now.Add(limit), f.Store.shortPlace(w.Place)
		s.fill(b, t, o, limit)
		return nil
	})
	if err != nil {
		var d *DelegationError
		if errors.As(err, &d) {
			s.fail(ctx, Context{Command: w.Op, Task: w.Number, Agent: agentName}, d.Type, err.Error())
		}
		if errors.Is(err, ErrNothingLeft) {
			if _, done, lerr := f.EndLeft(ctx, w.Number); done || lerr != nil {
				err = errors.Join(fmt.Errorf("%w; the task itself had not been ended, and is now", err), lerr)
			}
		}
		return nil, err
	}
	f.Changed(ctx, b)
	s.lookForServers(ctx)
	return s, nil
}

// mendsErrors reports whether a task is there to end errors: its plan is the matter of who
// finds their causes.
func (b *Board) mendsErrors(t *Task) bool {
	l, err := b.Failures()
	return err == nil && slices.ContainsFunc(l.List, func(f *Failure) bool { return f.FixTask == t.Number })
}

// settleTime is how long a run whose starter was killed may take to its end: it is asked
// to stop, and killed five seconds later.
const settleTime = 10 * time.Second

// settle waits for the end of runs at a task whose starter is gone.
func (f *Flow) settle(ctx context.Context, number int) {
	b, err := f.Store.Load(ctx)
	if err != nil || b.State.Tasks[number] == nil {
		return // said by what comes next
	}
	for _, o := range b.State.Tasks[number].Operations {
		if o.Owner != nil && o.Run != "" && !o.Owner.Alive() && !f.dead(o) {
			wait, cancel := context.WithTimeout(ctx, settleTime)
			_, _ = f.Runs.Wait(wait, o.Run) // whoever works there still is found there below
			cancel()
		}
	}
}

// beginTask begins the work at a task's step.
func (s *step) beginTask(b *Board, t *Task, phase int, want Operation) (*Operation, error) {
	if want.Name == OpImplement {
		ph, _, err := b.phase(t, phase)
		if err != nil {
			return nil, err
		}
		want.Phase = ph.Number
		if err := b.room(t, ph.Number, want.By, s.route, s.f.dead); err != nil {
			return nil, err
		}
	}
	o, err := b.Begin(t.Number, want, s.f.dead)
	if err != nil || o.Session != want.Session {
		return o, err // it goes on with what it began
	}
	switch want.Name {
	case OpImplement:
		_, err = b.SetPhase(t.Number, want.Phase, InProgress, "")
	case OpResearch:
		o.Artifact, err = b.fresh(t, "reports", "research")
	case OpPlan, OpRevise:
		o.Artifact, err = b.fresh(t, "plans", "implementation")
	}
	return o, err
}

// ErrLimit says that as many as may are at work at a language.
var ErrLimit = errors.New("as many as may are at work")

// room refuses a phase where as many of the language as may are at work.
func (b *Board) room(t *Task, phase int, by string, r Route, dead func(*Operation) bool) error {
	if r.Concurrent <= 0 {
		return nil
	}
	n := 0
	for _, other := range b.State.Tasks {
		if cmp.Or(other.Language, DefaultLanguage) != cmp.Or(t.Language, DefaultLanguage) {
			continue
		}
		for _, o := range other.Operations {
			own := other == t && o.Phase == phase && by != "" && o.By == by
			if o.Name == OpImplement && !own && !dead(o) {
				n++
			}
		}
	}
	if n >= r.Concurrent {
		return fmt.Errorf("%w: %d at phases of tasks in %s, and routes.%s.concurrent is %d", ErrLimit, n, r.Language, r.Language, r.Concurrent)
	}
	return nil
}

// phase is the phase of a task's plan to be worked at; of number 0, the next one.
func (b *Board) phase(t *Task, number int) (*Phase, string, error) {
	p, name, err := b.Plan(t)
	if err != nil {
		return nil, "", err
	}
	if number == 0 {
		ph := p.Next()
		if ph == nil {
			return nil, "", fmt.Errorf("every phase of task %d %w", t.Number, ErrNothingLeft)
		}
		number = ph.Number
	}
	ph := p.Phase(number)
	if ph == nil {
		return nil, "", fmt.Errorf("%s has no phase %d", name, number)
	}
	if ph.Status == Completed {
		return nil, "", fmt.Errorf("phase %d of task %d is completed; `reprise task phase %d %d --status \"not started\"` opens it again", number, t.Number, t.Number, number)
	}
	for _, d := range ph.DependsOn {
		if on := p.Phase(d); on != nil && on.Status != Completed {
			return nil, "", fmt.Errorf("phase %d of task %d %w phase %d, which is %s", number, t.Number, ErrWaits, d, on.Status.Words())
		}
	}
	return ph, name, nil
}

// fill gathers what the step is about.
func (s *step) fill(b *Board, t *Task, o *Operation, limit time.Duration) {
	s.o = *o
	s.o.Place = s.f.Store.longPlace(o.Place)
	s.d = Delegation{Session: o.Session, Agent: o.Agent, Path: o.Path, Timeout: limit}
	if t == nil {
		s.about = cmp.Or(o.Focus, "the whole project")
		return
	}
	s.task = *t
	if o.Phase > 0 {
		if p, name, err := b.Plan(t); err == nil {
			s.phase, s.plan = p.Phase(o.Phase), name
		}
	}
	if sec := b.Todo.Find(t.Number); sec != nil {
		s.about = b.Todo.Body(sec)
	}
	s.criteria = o.Place == "" && o.Phase > 0 && b.LastPhase(t, o.Phase) && len(b.Criteria(t)) > 0
	s.files = nil
	if o.Name != OpImplement {
		for _, name := range t.Research {
			s.files = append(s.files, path.Join(specsDir, name))
		}
	}
}

// find is the step of a session. Where the session has ended its work, s is nil and
// done says how.
func (f *Flow) find(ctx context.Context, session string) (s *step, done StepResult, err error) {
	b, err := f.Store.Load(ctx)
	if err != nil {
		return nil, done, err
	}
	s = &step{f: f}
	for _, n := range b.State.Numbers() {
		t := b.State.Tasks[n]
		if o := t.Op(session); o != nil {
			s.route = RouteOf(f.Routes, t.Language)
			s.fill(b, t, o, o.Until.Sub(o.Started))
			return s, done, nil
		}
	}
	for _, r := range b.State.Reviews {
		if r.Operation != nil && r.Operation.Session == session {
			s.review, s.route = r, RouteOf(f.Routes, DefaultLanguage)
			s.fill(b, nil, r.Operation, r.Operation.Until.Sub(r.Operation.Started))
			return s, done, nil
		}
		if r.Session == session {
			return nil, StepResult{Op: OpReview, Status: r.Status, Session: session, Reason: "it ended before", Made: r.Tasks}, nil
		}
	}
	for _, n := range b.State.Numbers() {
		own, err := b.Own(b.State.Tasks[n])
		if err != nil {
			continue // a check tells it
		}
		for _, o := range slices.Backward(own) {
			if o.Session == session {
				return nil, StepResult{Number: n, Op: o.Op, Phase: o.Phase, Status: o.Status, Session: session, Run: o.Run, Files: o.Files,
					Reason: cmp.Or(o.Reason, "it ended before"), Task: b.State.Tasks[n].Status}, nil
			}
		}
	}
	return nil, done, fmt.Errorf("%w: none of a session %q was begun, or it was taken over; `reprise task show N` names those of a task", ErrNoStep, clip.Bytes(session, 40))
}

// operation is that of a session, of a task or, for 0, of a review.
func (b *Board) operation(session string, number int) (*Operation, error) {
	if t := b.State.Tasks[number]; t != nil {
		if o := t.Op(session); o != nil {
			return o, nil
		}
	}
	if number == 0 {
		for _, r := range b.State.Reviews {
			if r.Operation != nil && r.Operation.Session == session {
				return r.Operation, nil
			}
		}
	}
	return nil, fmt.Errorf("%w: what %s worked at was taken over, or given up", ErrOperation, session)
}

// dead reports whether nobody works at an operation any more: neither the process
// that began it nor its run. Of one without a process that could be looked for, time
// tells.
func (f *Flow) dead(o *Operation) bool {
	if o.Owner == nil {
		return !o.Until.IsZero() && f.Now().After(o.Until)
	}
	if o.Owner.Alive() {
		return false
	}
	if o.Run == "" {
		return true
	}
	r, err := f.Runs.Get(o.Run)
	return err != nil || r.Status.Settled()
}

// record is the run that did the step, empty where it was not one.
func (s *step) record() run.Record {
	if s.o.Run == "" {
		return run.Record{}
	}
	r, err := s.f.Runs.Get(s.o.Run)
	if err != nil {
		return run.Record{ID: s.o.Run}
	}
	return r
}

// lookForServers finds out which of the route's servers there are. One that there is
// not is noted, and the work goes on without it.
func (s *step) lookForServers(ctx context.Context) {
	if s.o.Name != OpResearch && s.o.Name != OpImplement {
		return
	}
	for _, name := range s.route.Servers {
		var err error
		if s.f.Server == nil {
			err = errors.New("no client's settings were looked through")
		} else {
			_, err = s.f.Server(name)
		}
		if err == nil {
			continue
		}
		s.absent = append(s.absent, name)
		s.f.Say("note: %s: the MCP server %s is not there, and the work goes on without it: %v", s.name(), name, err)
		s.fail(ctx, s.context(), ToolFailure, fmt.Sprintf("MCP server %s: %v", name, err))
	}
}

// prebuild runs what the route wants run before the work at a phase.
func (s *step) prebuild(ctx context.Context) {
	if s.o.Name != OpImplement || s.f.Prebuild == nil || s.route.Prebuild.None() {
		return
	}
	if err := s.f.Prebuild(ctx, s.dir(), s.route); err != nil {
		s.f.Say("note: %s: what is to be run before the work failed: %v", s.name(), err)
		s.fail(ctx, s.context(), BuildError, "before the work: "+err.Error())
	}
}

func (s *step) context() Context {
	c := Context{Command: s.o.Name, Task: s.number(), Agent: s.d.Agent, Session: s.d.Session, Run: s.o.Run}
	if s.phase != nil {
		c.Phase = s.phase.Number
	}
	return c
}

// fail notes a failure that did not end a step, or kept one from beginning.
func (s *step) fail(ctx context.Context, c Context, kind, message string) {
	_, err := s.f.Store.Change(ctx, func(b *Board) error {
		l, err := b.Failures()
		if err == nil {
			l.Record(Failure{Type: kind, Message: message, Context: c}, b.now)
		}
		return err
	})
	if err != nil {
		s.f.Say("note: %s: %v", s.name(), err)
	}
}

func (s *step) previous() string {
	if s.o.Name == OpRevise && len(s.task.Plans) > 0 {
		return path.Join(specsDir, s.task.Plans[len(s.task.Plans)-1])
	}
	return ""
}

// prompt is what the agent is asked.
func (s *step) prompt() string {
	name := s.o.Name
	if name == OpRevise {
		name = OpPlan
	}
	text := s.render("common") + s.render(name)
	for _, more := range []string{s.route.Guidance, s.withoutServers()} {
		if more != "" {
			text += strings.TrimSpace(more) + "\n\n"
		}
	}
	return text + s.render("answer")
}

func (s *step) withoutServers() string {
	if len(s.absent) == 0 {
		return ""
	}
	return fmt.Sprintf("There is no %s here: do without, by the project's own build and by reading.", strings.Join(s.absent, " and no "))
}

// render is one of the prompts with what it says of this step. A variable that is
// missing is a slip of this package.
func (s *step) render(name string) string {
	pathJSON, _ := json.Marshal(s.d.Path) // texts alone
	what := fmt.Sprintf("Task %d: %s", s.task.Number, s.task.Title)
	if s.review != nil {
		what = fmt.Sprintf("Review %d", s.review.Number)
	}
	data := map[string]any{
		"Agent": s.d.Agent, "What": what, "Operation": s.what(), "Language": cmp.Or(s.task.Language, DefaultLanguage),
		"Session": s.d.Session, "Path": strings.Join(s.d.Path, " → "), "PathJSON": string(pathJSON), "Depth": s.d.Depth(), "Timeout": s.d.Timeout.String(),
		"About": cmp.Or(s.about, s.task.Title), "Focus": s.o.Focus, "Files": s.files, "Previous": s.previous(),
		"Artifact": path.Join(specsDir, s.o.Artifact), "Plan": path.Join(specsDir, s.plan), "Phase": 0, "PhaseText": "", "Criteria": s.criteria,
	}
	if s.phase != nil {
		data["Phase"], data["PhaseText"] = s.phase.Number, s.phase.Text
	}
	var out strings.Builder
	t := template.Must(template.New(name+".md").Option("missingkey=error").ParseFS(prompts, "prompts/"+name+".md"))
	if err := t.Execute(&out, data); err != nil {
		panic(err)
	}
	return out.String()
}

func (s *step) brief() Brief {
	b := Brief{
		Number: s.number(), Title: s.task.Title, Op: s.o.Name, Phase: s.o.Phase, Session: s.d.Session, Agent: s.d.Agent, Path: s.d.Path,
		Depth: s.d.Depth(), Timeout: s.d.Timeout.Seconds(), Until: s.o.Until, Dir: s.dir(), Language: s.task.Language,
		Model: cmp.Or(s.f.Model, s.route.Model), Tools: s.route.Tools, Prompt: s.prompt(), Message: s.wholeMessage(),
	}
	if s.review != nil {
		b.Title = fmt.Sprintf("Review %d of %s", s.review.Number, s.about)
	}
	if s.o.Artifact != "" {
		b.Artifact = path.Join(specsDir, s.o.Artifact)
	}
	for _, name := range s.route.Servers {
		if !slices.Contains(s.absent, name) {
			b.Servers = append(b.Servers, name)
		}
	}
	return b
}

// Vars are the variables of the environment of one who does the step.
func (b Brief) Vars() []string {
	vars := []string{DelegationVar + "=" + b.Session, PathVar + "=" + strings.Join(b.Path, ",")}
	if b.Artifact != "" {
		vars = append(vars, ArtifactVar+"="+filepath.ToSlash(filepath.Join(b.Dir, filepath.FromSlash(b.Artifact))))
	}
	return vars
}

func (s *step) request() (run.Request, error) {
	b := s.brief()
	w := &run.Work{Work: agent.Work{AllowedTools: s.f.Tools, Vars: slices.Clone(s.vars)}, MaxTurns: s.route.Turns, MaxBudgetUSD: s.route.BudgetUSD}
	if s.route.Tools != nil {
		w.AllowedTools = s.route.Tools
	}
	req := run.Request{
		Task: b.Prompt, WorkDir: s.dir(), Client: cmp.Or(s.f.Client, s.route.Client), Model: b.Model,
		ScriptFile: s.f.Script, Timeout: s.d.Timeout, Origin: "task", IdempotencyKey: s.d.Session, Work: w,
		// What it logs, learns and decides are proposals, on the branch of its own agent.
		AllowStateWrite: true,
	}
	if s.f.Configure != nil {
		if err := s.f.Configure(&req); err != nil {
			return req, err
		}
	}
	s.f.Equip(&req, b)
	return req, nil
}

// withServers adds MCP servers to those that a client's file of them names.
func withServers(file json.RawMessage, servers map[string]json.RawMessage) json.RawMessage {
	if len(servers) == 0 {
		return file
	}
	var doc struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	_ = json.Unmarshal(file, &doc) // it is ours, or empty
	if doc.Servers == nil {
		doc.Servers = map[string]json.RawMessage{}
	}
	for name, def := range servers {
		doc.Servers[name] = waitedFor(def)
	}
	out, err := json.Marshal(doc)
	if err != nil {
		return file
	}
	return out
}

// waitedFor is how a server is started, with the word that makes Claude Code wait for it
// (alwaysLoad of its MCP settings: five seconds at most) before it asks its model: a
// server that comes later is not among the tools of the first turn, and the model goes on
// without it. What a person has said there stays.
func waitedFor(def json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(def, &all) != nil || all["alwaysLoad"] != nil {
		return def
	}
	all["alwaysLoad"] = json.RawMessage("true")
	out, err := json.Marshal(all)
	if err != nil {
		return def
	}
	return out
}

// note keeps the run's id with the operation, so that who comes after a crash finds it.
func (s *step) note(ctx context.Context, id string) {
	_, err := s.f.Store.Change(ctx, func(b *Board) error {
		o, err := b.operation(s.o.Session, s.number())
		if err == nil {
			o.Run = id
		}
		return err
	})
	if err != nil {
		s.f.Say("note: %s: that %s works at it is not on record: %v", s.name(), id, err)
	}
	s.o.Run = id
}

// wait waits for the run, says how far it is, and stops it when the caller is to stop.
func (s *step) wait(ctx context.Context, rec run.Record) run.Record {
	said := rec.Heartbeat
	for {
		wctx, cancel := context.WithTimeout(ctx, cmp.Or(s.f.ProgressEvery, 15*time.Second))
		r, err := s.f.Runs.Wait(wctx, rec.ID)
		cancel()
		switch {
		case err == nil:
			return r
		case ctx.Err() != nil:
			stop := context.WithoutCancel(ctx)
			if _, cerr := s.f.Runs.Cancel(stop, rec.ID, "the command that it works for was stopped"); cerr == nil {
				if r, werr := s.f.Runs.Wait(stop, rec.ID); werr == nil {
					return r
				}
			}
			return rec
		case !errors.Is(err, context.DeadlineExceeded):
			return rec
		}
		if h := r.Heartbeat; h.MessageCount != said.MessageCount || h.ToolCalls != said.ToolCalls || h.Retrying != said.Retrying {
			s.f.Say("%s: %s, %s: %s", s.name(), s.what(), r.Elapsed(s.f.Now()).Round(time.Second), progress(h))
			said = h
		}
	}
}

// progress is how far a run is, in words.
func progress(h run.Heartbeat) string {
	text := fmt.Sprintf("%d messages, %d tool calls", h.MessageCount, h.ToolCalls)
	if h.LastTool != "" {
		text += ", the last " + clip.Bytes(clip.Line(h.LastTool), 40)
	}
	if h.Tokens > 0 {
		text += fmt.Sprintf(", %d tokens", h.Tokens)
	}
	if h.Retrying != "" {
		text += "; it waits: " + clip.Bytes(clip.Line(h.Retrying), 100)
	}
	return text
}
