package task

import (
	"cmp"
	"context"
	"embed"
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
	"reprise/internal/proc"
	"reprise/internal/run"
)

//go:embed prompts
var prompts embed.FS

// Runs starts and follows runs; *run.Manager is one.
type Runs interface {
	Start(ctx context.Context, req run.Request) (run.Record, error)
	Wait(ctx context.Context, id string) (run.Record, error)
	Cancel(ctx context.Context, id, reason string) (run.Record, error)
	Get(id string) (run.Record, error)
}

// Flow has the steps of tasks done by agents. The program moves every status, number
// and file; the agents only think and write.
type Flow struct {
	Store *Store
	Root  string // the project's main checkout, where agents work
	Runs  Runs
	Now   func() time.Time

	Routes map[string]Route
	// Client, Model and Script overrule the route's; Script is a file of steps for the
	// script client.
	Client, Model, Script string
	Tools                 []string // that an agent needs no approval for
	From                  []string // who hands on, see [PathVar]
	Timeout               time.Duration

	// Changed is told what happened to tasks; Commit commits files, relative to Root;
	// Say tells a person how it goes. Verify runs the checks of a profile after a
	// phase, and says in words what failed, "" when nothing did.
	Changed func(ctx context.Context, b *Board)
	Commit  func(ctx context.Context, message string, files []string)
	Verify  func(ctx context.Context, profile string) (failed string, err error)
	Say     func(format string, args ...any)
}

// StepResult is how a step went.
type StepResult struct {
	Number  int      `json:"number"`
	Op      string   `json:"operation"`
	Phase   int      `json:"phase,omitempty"`
	Status  string   `json:"status"` // completed, partial, failed, blocked, timeout
	Session string   `json:"session_id"`
	Run     string   `json:"run"`
	Summary string   `json:"summary"`
	Files   []string `json:"artifacts"`
	Reason  string   `json:"reason,omitempty"`
	Next    string   `json:"next_steps,omitempty"`
	Cost    float64  `json:"cost_usd,omitempty"`
}

// step is one delegation on its way.
type step struct {
	f        *Flow
	op       string
	task     Task // as it was when the step began
	phase    *Phase
	plan     string // the plan's file, below specs/
	artifact string // below specs/: where the agent writes what it found
	focus    string
	about    string
	files    []string // for the agent to read, relative to Root
	d        Delegation
	route    Route
}

// Research has a task looked into, and files the report.
func (f *Flow) Research(ctx context.Context, n int, focus string) (StepResult, error) {
	return f.do(ctx, n, OpResearch, 0, focus)
}

// Plan has a task planned, or its plan revised.
func (f *Flow) Plan(ctx context.Context, n int, revise bool, focus string) (StepResult, error) {
	op := OpPlan
	if revise {
		op = OpRevise
	}
	return f.do(ctx, n, op, 0, focus)
}

// Implement has the phases of a task's plan carried out, one after the other from the
// first that is not completed; only one when that is asked for. It ends with the first
// that is not completed. phase 0 is the next one.
func (f *Flow) Implement(ctx context.Context, n, phase int, all bool) ([]StepResult, error) {
	var out []StepResult
	for {
		b, err := f.Store.Load(ctx)
		if err != nil {
			return out, err
		}
		t, err := b.Task(n)
		if err != nil {
			return out, err
		}
		p, _, err := b.Plan(t)
		if err != nil {
			return out, err
		}
		at := phase
		if at == 0 {
			ph := p.Next()
			if ph == nil {
				if len(out) == 0 {
					return nil, fmt.Errorf("every phase of task %d is completed", n)
				}
				return out, nil
			}
			at = ph.Number
		}
		r, err := f.do(ctx, n, OpImplement, at, "")
		if err != nil {
			return out, err
		}
		out = append(out, r)
		if r.Status != "completed" || !all || phase != 0 {
			return out, nil
		}
	}
}

// do has one step done: the task is in progress, an agent works, what it says is
// checked, and the list is brought up to it.
func (f *Flow) do(ctx context.Context, n int, op string, phase int, focus string) (StepResult, error) {
	s := &step{f: f, op: op, focus: focus}
	if err := s.begin(ctx, n, phase); err != nil {
		return StepResult{}, err
	}
	f.Say("task %d: %s by %s (%s)", n, s.what(), s.d.Agent, s.d.Session)
	rec, err := f.Runs.Start(ctx, s.request())
	if err != nil {
		return s.end(context.WithoutCancel(ctx), run.Record{}, Return{Status: "failed"}, "no agent could be started: "+err.Error(), failureOf(err))
	}
	s.note(ctx, rec.ID)
	rec = s.wait(ctx, rec)
	ret, why, kind := s.judge(ctx, &rec)
	return s.end(context.WithoutCancel(ctx), rec, ret, why, kind)
}

func failureOf(err error) string {
	var d *DelegationError
	if errors.As(err, &d) {
		return d.Type
	}
	return ToolFailure
}

func (s *step) what() string {
	if s.phase != nil {
		return fmt.Sprintf("%s phase %d", s.op, s.phase.Number)
	}
	return s.op
}

// begin takes the task for this session and reserves the file of what is found.
func (s *step) begin(ctx context.Context, n, phase int) error {
	id := NewSession(s.f.Now())
	owner, err := proc.Self()
	if err != nil {
		return fmt.Errorf("tell who works at task %d: %w", n, err)
	}
	b, err := s.f.Store.Change(ctx, func(b *Board) error {
		t, err := b.Task(n)
		if err != nil {
			return err
		}
		s.route = RouteOf(s.f.Routes, t.Language)
		if s.d, err = Delegate(s.f.From, s.route.Agent(s.op), id, cmp.Or(s.f.Timeout, Timeouts(s.op))); err != nil {
			return err
		}
		if s.phase, s.plan, err = phaseOf(b, t, phase); err != nil {
			return err
		}
		if _, err := b.Begin(n, s.op, id, s.f.dead(t.Operation)); err != nil {
			return err
		}
		t.Operation.Owner, t.Operation.Phase = &owner, phase
		if s.phase != nil {
			if _, err := b.SetPhase(n, phase, InProgress, ""); err != nil {
				return err
			}
		}
		switch s.op {
		case OpResearch:
			s.artifact = b.fresh(t, "reports", "research")
		case OpPlan, OpRevise:
			s.artifact = b.fresh(t, "plans", "implementation")
		}
		s.gather(b, t)
		s.task = *t
		return nil
	})
	if err != nil {
		var d *DelegationError
		if errors.As(err, &d) {
			s.fail(ctx, n, d.Type, err.Error())
		}
		return err
	}
	s.f.Changed(ctx, b)
	return nil
}

func phaseOf(b *Board, t *Task, phase int) (*Phase, string, error) {
	if phase == 0 {
		return nil, "", nil
	}
	p, name, err := b.Plan(t)
	if err != nil {
		return nil, "", err
	}
	ph := p.Phase(phase)
	if ph == nil {
		return nil, "", fmt.Errorf("%s has no phase %d", name, phase)
	}
	if ph.Status == Completed {
		return nil, "", fmt.Errorf("phase %d of task %d is completed; `reprise task phase %d %d --status \"not started\"` opens it again", phase, t.Number, t.Number, phase)
	}
	for _, d := range ph.DependsOn {
		if on := p.Phase(d); on != nil && on.Status != Completed {
			return nil, "", fmt.Errorf("phase %d of task %d waits for phase %d, which is %s", phase, t.Number, d, on.Status.Words())
		}
	}
	return ph, name, nil
}

// dead reports whether nobody works at an operation any more: neither the process
// that began it nor its run.
func (f *Flow) dead(o *Operation) bool {
	if o == nil || o.Owner == nil || o.Owner.Alive() {
		return false
	}
	if o.Run == "" {
		return true
	}
	r, err := f.Runs.Get(o.Run)
	return err != nil || r.Status.Settled()
}

// gather is what the agent is told of the task and what it should read.
func (s *step) gather(b *Board, t *Task) {
	if sec := b.Todo.Find(t.Number); sec != nil {
		s.about = b.Todo.Body(sec)
	}
	s.files = nil
	if s.op != OpImplement {
		for _, name := range t.Research {
			s.files = append(s.files, path.Join(specsDir, name))
		}
	}
}

func (s *step) previous() string {
	if s.op == OpRevise && len(s.task.Plans) > 0 {
		return path.Join(specsDir, s.task.Plans[len(s.task.Plans)-1])
	}
	return ""
}

// prompt is what the agent is asked.
func (s *step) prompt() string {
	name := s.op
	if name == OpRevise {
		name = OpPlan
	}
	text := s.render("common") + s.render(name)
	if s.route.Guidance != "" {
		text += s.route.Guidance + "\n\n"
	}
	return text + s.render("answer")
}

// render is one of the prompts with what it says of this step. A variable that is
// missing is a slip of this package.
func (s *step) render(name string) string {
	pathJSON, _ := json.Marshal(s.d.Path) // texts alone
	data := map[string]any{
		"Agent": s.d.Agent, "Number": s.task.Number, "Title": s.task.Title, "Operation": s.what(), "Language": cmp.Or(s.task.Language, DefaultLanguage),
		"Session": s.d.Session, "Path": strings.Join(s.d.Path, " → "), "PathJSON": string(pathJSON), "Depth": s.d.Depth(), "Timeout": s.d.Timeout.String(),
		"About": cmp.Or(s.about, s.task.Title), "Focus": s.focus, "Files": s.files, "Previous": s.previous(),
		"Artifact": path.Join(specsDir, s.artifact), "Plan": path.Join(specsDir, s.plan), "Phase": 0, "PhaseText": "",
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

func (s *step) request() run.Request {
	vars := []string{DelegationVar + "=" + s.d.Session, PathVar + "=" + strings.Join(s.d.Path, ",")}
	if s.artifact != "" {
		vars = append(vars, ArtifactVar+"="+filepath.ToSlash(filepath.Join(s.f.Root, specsDir, filepath.FromSlash(s.artifact))))
	}
	return run.Request{
		Task: s.prompt(), WorkDir: s.f.Root, Client: cmp.Or(s.f.Client, s.route.Client), Model: cmp.Or(s.f.Model, s.route.Model),
		ScriptFile: s.f.Script, Timeout: s.d.Timeout, Origin: "task", IdempotencyKey: s.d.Session,
		Work: &run.Work{Work: agent.Work{AllowedTools: s.f.Tools, Vars: vars}},
	}
}

// note keeps the run's id with the operation, so that who comes after a crash finds it.
func (s *step) note(ctx context.Context, id string) {
	_, err := s.f.Store.Change(ctx, func(b *Board) error {
		if t := b.State.Tasks[s.task.Number]; t != nil && t.Operation != nil && t.Operation.Session == s.d.Session {
			t.Operation.Run = id
		}
		return nil
	})
	if err != nil {
		s.f.Say("note: task %d: that %s works at it is not on record: %v", s.task.Number, id, err)
	}
}

// wait waits for the run, and stops it when the caller is to stop.
func (s *step) wait(ctx context.Context, rec run.Record) run.Record {
	ended, err := s.f.Runs.Wait(ctx, rec.ID)
	if ctx.Err() != nil {
		stop := context.WithoutCancel(ctx)
		if _, cerr := s.f.Runs.Cancel(stop, rec.ID, "the command that it works for was stopped"); cerr == nil {
			if r, werr := s.f.Runs.Wait(stop, rec.ID); werr == nil {
				return r
			}
		}
	}
	if err != nil {
		return rec
	}
	return ended
}

// judge reads what the agent said. An answer in a wrong form gets one chance to be
// mended, in the same session where the client can go on with one; then it counts as
// partial. why and kind are empty where all is well.
func (s *step) judge(ctx context.Context, rec *run.Record) (ret Return, why, kind string) {
	switch rec.Status {
	case run.TimedOut:
		return Return{Status: "partial"}, fmt.Sprintf("%s took longer than %s", s.what(), s.d.Timeout), Timeout
	case run.Completed:
	case run.Spawning, run.Running, run.Completing, run.Interrupted, run.Killed, run.Failed:
		if ctx.Err() != nil {
			return Return{Status: "partial"}, "it was stopped by the person who began it", ""
		}
		return Return{Status: "failed"}, cmp.Or(rec.StatusReason, "the run ended "+string(rec.Status)), DelegationHang
	}
	if rec.Result == nil {
		return Return{Status: "partial"}, "the agent said nothing at its end", DelegationHang
	}
	ret, err := ParseReturn(rec.Result.Text, s.d, s.f.Root)
	if err == nil {
		return ret, "", ""
	}
	s.f.Say("task %d: the agent's answer is not in order (%v); it may mend it once", s.task.Number, err)
	req := s.request()
	req.IdempotencyKey += "-again"
	req.Timeout = Timeouts("")
	req.Work.Resume = rec.SessionID
	req.Task = fmt.Sprintf("Your last message cannot be used: %v.\n\nIt was:\n\n%s\n\nSay the same again in the right form.\n", err, clip(rec.Result.Text, 4000)) + s.render("answer")
	again, serr := s.f.Runs.Start(ctx, req)
	if serr == nil {
		if again = s.wait(ctx, again); again.Status == run.Completed && again.Result != nil {
			var aerr error
			if ret, aerr = ParseReturn(again.Result.Text, s.d, s.f.Root); aerr == nil {
				return ret, "", ""
			}
			err = aerr
		}
	}
	return Return{Status: "partial", Summary: clip(oneLine(rec.Result.Text), maxSummary)}, "the agent's answer is not in order: " + err.Error(), ValidationFailed
}

func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}

// end brings the list up to how the step went, commits it, and notes what went wrong.
func (s *step) end(ctx context.Context, rec run.Record, ret Return, why, kind string) (StepResult, error) {
	n := s.task.Number
	res := StepResult{Number: n, Op: s.op, Status: ret.Status, Session: s.d.Session, Run: rec.ID, Summary: ret.Summary, Files: ret.Artifacts, Reason: why, Next: ret.NextSteps}
	if s.phase != nil {
		res.Phase = s.phase.Number
	}
	if rec.Result != nil {
		res.Cost = rec.Result.CostUSD
	}
	if kind == "" && len(ret.Errors) > 0 {
		res.Reason = ret.Errors[0].Message
	}
	if ret.Status == "completed" && s.op == OpImplement && s.f.Verify != nil {
		switch failed, err := s.f.Verify(ctx, s.route.Verify); {
		case err != nil:
			s.f.Say("note: task %d: the checks could not be run: %v", n, err)
		case failed != "":
			res.Status, res.Reason, kind = "partial", "the checks fail: "+failed, BuildError
		}
	}
	b, err := s.f.Store.Change(ctx, func(b *Board) error {
		t, err := b.Task(n)
		if err != nil {
			return err
		}
		if o := t.Operation; o == nil || o.Session != s.d.Session {
			return fmt.Errorf("%w: task %d was taken over while %s worked at it; what it did is in %s", ErrOperation, n, s.d.Session, rec.ID)
		}
		if kind == Timeout {
			s.outOfTime(b, t, res)
		} else if err := s.record(b, t, &res); err != nil {
			return err
		}
		if kind != "" {
			l, err := b.Failures()
			if err != nil {
				return nil // said where it is asked for
			}
			l.Record(Failure{Type: kind, Message: res.Reason, Context: Context{Command: s.op, Task: n, Phase: res.Phase, Agent: s.d.Agent, Session: s.d.Session, Run: rec.ID}}, b.now)
		}
		return nil
	})
	if err != nil {
		return res, err
	}
	s.f.Changed(ctx, b)
	s.commit(ctx, b, res)
	if res.Status == "completed" && s.op == OpImplement {
		return res, s.finish(ctx)
	}
	return res, nil
}

// finish ends a task whose last phase is completed, with a summary of what was done.
func (s *step) finish(ctx context.Context) error {
	done := false
	b, err := s.f.Store.Change(ctx, func(b *Board) error {
		t, err := b.Task(s.task.Number)
		if err != nil {
			return err
		}
		p, name, err := b.Plan(t)
		if err != nil || p.Next() != nil {
			return err
		}
		done = true
		return b.Complete(t.Number, b.summary(t, p, name))
	})
	if err != nil || !done {
		return err
	}
	s.f.Changed(ctx, b)
	if s.f.Commit != nil {
		s.f.Commit(ctx, Message(&s.task, OpImplement, 0, "")+"\n\nSession: "+s.d.Session, b.Files())
	}
	return nil
}

// summary is what was done to a task, phase by phase.
func (b *Board) summary(t *Task, p *Plan, plan string) []byte {
	var out strings.Builder
	fmt.Fprintf(&out, "# Task %d: %s\n\n- **Plan**: %s\n- **Completed**: %s\n\n", t.Number, t.Title, path.Join(specsDir, plan), stamp(&b.now))
	own, _ := b.Own(t) // what cannot be read is left out
	for _, ph := range p.Phases {
		fmt.Fprintf(&out, "- Phase %d: %s", ph.Number, ph.Title)
		var took time.Duration
		for _, o := range own {
			if o.Op == OpImplement && o.Phase == ph.Number {
				took += o.Ended.Sub(o.Started)
			}
		}
		if took > 0 {
			fmt.Fprintf(&out, " (%s)", took)
		}
		out.WriteString("\n")
	}
	return []byte(out.String())
}

// record files what was found and moves the statuses.
func (s *step) record(b *Board, t *Task, res *StepResult) error {
	found := s.artifact != "" && s.fileThere(b)
	switch {
	case res.Status == "completed" && s.artifact != "" && !found:
		res.Status, res.Reason = "partial", fmt.Sprintf("it was to write specs/%s and did not", s.artifact)
	case res.Status == "completed" && s.op == OpResearch:
		return b.adoptReport(t, s.artifact)
	case res.Status == "completed" && s.artifact != "":
		err := b.adoptPlan(t, s.artifact)
		if err == nil {
			return nil
		}
		res.Status, res.Reason = "partial", err.Error()
	case res.Status == "completed":
		_, err := b.movePhase(t.Number, s.phase.Number, Completed, "")
		t.Operation = nil // the next phase is another session's
		return err
	}
	if s.phase != nil && res.Status != "failed" {
		to := Partial
		if res.Status == "blocked" {
			to = Blocked
		}
		if _, err := b.SetPhase(t.Number, s.phase.Number, to, res.Reason); err != nil {
			return err
		}
	}
	s.keepPart(b, t)
	reason := cmp.Or(res.Reason, res.Summary)
	status := res.Status
	if s.op != OpImplement && status == "partial" {
		status = "failed" // nothing of it counts: the task is what it was before
	}
	return b.Stop(t.Number, status, reason)
}

// outOfTime leaves a task in progress, without anybody who works at it: what was
// done is there, and the next who begins goes on.
func (s *step) outOfTime(b *Board, t *Task, res StepResult) {
	s.keepPart(b, t)
	b.end(t, "partial", res.Phase, res.Reason)
	t.Operation = nil
}

// Recovery says how to go on with what was left in the middle; "" where nothing was.
func (r StepResult) Recovery() string {
	switch {
	case r.Status == "completed":
		return ""
	case r.Op == OpImplement:
		return fmt.Sprintf("`reprise task implement %d` goes on at phase %d", r.Number, r.Phase)
	case r.Op == OpRevise:
		return fmt.Sprintf("`reprise task revise %d` tries again", r.Number)
	}
	return fmt.Sprintf("`reprise task %s %d` tries again", r.Op, r.Number)
}

// keepPart files what research wrote before it was cut short: part of a report is
// better than none.
func (s *step) keepPart(b *Board, t *Task) {
	if s.op == OpResearch && s.fileThere(b) {
		t.Research = append(t.Research, s.artifact)
		b.link(t, "research", s.artifact)
	}
}

func (s *step) fileThere(b *Board) bool {
	data, err := b.Read(s.artifact)
	return err == nil && strings.TrimSpace(string(data)) != ""
}

func (b *Board) adoptReport(t *Task, name string) error {
	t.Research = append(t.Research, name)
	b.link(t, "research", name)
	b.changed(t, Change{Op: "report", Files: []string{name}})
	b.end(t, "completed", 0, "", name)
	b.set(t, Researched, "")
	return nil
}

func (b *Board) adoptPlan(t *Task, name string) error {
	text, err := b.Read(name)
	if err != nil {
		return err
	}
	if err := checkPlan(t, text); err != nil {
		return err
	}
	t.Plans = append(t.Plans, name)
	b.link(t, "plan", name)
	b.changed(t, Change{Op: "plan", Files: []string{name}})
	b.end(t, "completed", 0, "", name)
	b.set(t, Planned, "")
	return nil
}

// commit commits what the step made, with the list.
func (s *step) commit(ctx context.Context, b *Board, res StepResult) {
	if s.f.Commit == nil {
		return
	}
	files := b.Files()
	if s.artifact != "" {
		files = append(files, path.Join(specsDir, s.artifact))
	}
	for _, a := range res.Files {
		if name := s.relative(a); name != "" && !slices.Contains(files, name) {
			files = append(files, name)
		}
	}
	title := ""
	if s.phase != nil {
		title = s.phase.Title
	}
	msg := Message(&s.task, s.op, res.Phase, title)
	if res.Status != "completed" {
		msg = fmt.Sprintf("task %d: %s %s", s.task.Number, s.what(), res.Status)
	}
	s.f.Commit(ctx, msg+"\n\nSession: "+s.d.Session, files)
}

// relative is an artifact's name below the project's root, "" for one outside.
func (s *step) relative(name string) string {
	if Inside(s.f.Root, name) != nil {
		return ""
	}
	if !filepath.IsAbs(name) {
		return path.Clean(filepath.ToSlash(name))
	}
	rel, err := filepath.Rel(s.f.Root, name)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	return filepath.ToSlash(rel)
}

// fail notes a failure that kept a step from beginning.
func (s *step) fail(ctx context.Context, n int, kind, message string) {
	_, err := s.f.Store.Change(ctx, func(b *Board) error {
		l, err := b.Failures()
		if err == nil {
			l.Record(Failure{Type: kind, Message: message, Context: Context{Command: s.op, Task: n, Agent: s.d.Agent, Session: s.d.Session}}, b.now)
		}
		return err
	})
	if err != nil {
		s.f.Say("note: task %d: %v", n, err)
	}
}
