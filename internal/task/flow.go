package task

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/internal/agent"
	"reprise/internal/clip"
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
	Root  string // the project's main checkout, where agents work unless they have a place of their own
	Runs  Runs
	Now   func() time.Time

	Routes map[string]Route
	// Client, Model and Script overrule the route's; Script is a file of steps for the
	// script client.
	Client, Model, Script string
	Tools                 []string // that an agent needs no approval for
	From                  []string // who hands on, see [PathVar]
	Timeout               time.Duration
	// ProgressEvery is how often a person is told how far a run is; 0 means 15 s.
	ProgressEvery time.Duration

	// Changed is told what happened to tasks; Commit commits files of a checkout,
	// relative to it; Say tells a person how it goes. Verify runs the checks of a
	// profile in a checkout after a phase, and says in words what failed, "" when
	// nothing did.
	Changed func(ctx context.Context, b *Board)
	Commit  func(ctx context.Context, dir, message string, files []string)
	Verify  func(ctx context.Context, dir, profile string) (failed string, err error)
	Say     func(format string, args ...any)
	// Ended is told how each step went as soon as it has ended, one at a time; nil: nobody is.
	Ended func(StepResult)
	// Configure adds to a request what a client needs beside; nil is nothing.
	Configure func(*run.Request) error
	// Able says why a client, "" for the usual one, could not be started; nil: it is not
	// asked.
	Able func(ctx context.Context, client string) error
	// Server finds how an MCP server is started, as clients' settings have it. The
	// error says that there is none, or that its program is not there. nil: there are
	// none.
	Server func(name string) (json.RawMessage, error)
	// Prebuild runs what a route wants run before its first phase; nil: nothing is.
	Prebuild func(ctx context.Context, dir string, r Route) error
	// Places gives phases that are worked at side by side a checkout each; nil: there
	// is none but the main one.
	Places Places

	// commits keeps commits and merges of this process apart, and telling what Ended of them.
	commits, telling sync.Mutex
}

// Places makes checkouts for phases, and brings back what was done in them.
type Places interface {
	// Open makes the checkout of that name, or goes on with the one that is there.
	Open(ctx context.Context, name string) (Place, error)
	// Close ends the work in it. What is done goes into the main checkout's branch,
	// after the checks have passed on the merge; message is of the commit of what was
	// left uncommitted. refused says why it could not: the checkout is kept then, as it
	// is of what is not done.
	Close(ctx context.Context, p Place, done bool, message string) (refused string, err error)
}

// Place is a checkout of the project's code beside the main one.
type Place struct {
	Name string
	Dir  string   // of the project in it
	Vars []string // of the environment of who works there
}

// Want says which step is to be begun.
type Want struct {
	Op     string
	Number int // of the task; 0 for a review
	Phase  int // of the plan, for implement; 0 is the next one
	Focus  string
	// By is on whose behalf, see [Operation]; the same one goes on with what it began.
	By string
	// Owner is the process with which the work ends; nil where that is not known.
	Owner *proc.ID
	// Place is the checkout that is worked in, "" for the main one.
	Place string
}

// Brief is what one who does a step has to know.
type Brief struct {
	Number   int       `json:"number,omitempty"`
	Title    string    `json:"title"`
	Op       string    `json:"operation"`
	Phase    int       `json:"phase,omitempty"`
	Session  string    `json:"session_id"`
	Agent    string    `json:"agent_type"`
	Path     []string  `json:"delegation_path"`
	Depth    int       `json:"delegation_depth"`
	Timeout  float64   `json:"timeout_seconds"`
	Until    time.Time `json:"until"`
	Dir      string    `json:"directory"`
	Artifact string    `json:"artifact,omitempty"` // where to write, below Dir and with slashes
	Language string    `json:"language,omitempty"`
	Model    string    `json:"model,omitempty"`
	Tools    []string  `json:"tools,omitempty"`
	Servers  []string  `json:"mcp_servers,omitempty"`
	Prompt   string    `json:"prompt"`

	// Message is that of the commit of what is done in a place of its own.
	Message string `json:"-"`
}

// StepResult is how a step went.
type StepResult struct {
	Number  int      `json:"number,omitempty"`
	Op      string   `json:"operation"`
	Phase   int      `json:"phase,omitempty"`
	Status  string   `json:"status"` // completed, partial, failed, blocked
	Session string   `json:"session_id"`
	Run     string   `json:"run,omitempty"`
	Summary string   `json:"summary"`
	Files   []string `json:"artifacts"`
	Reason  string   `json:"reason,omitempty"`
	Next    string   `json:"next_steps,omitempty"`
	Cost    float64  `json:"cost_usd,omitempty"`
	// Task is the status that the task has since.
	Task Status `json:"task_status,omitempty"`
	// Made are the tasks that came of it.
	Made []int `json:"tasks,omitempty"`
	// Before says that the step had ended before it was to be cancelled: nothing changed.
	Before bool `json:"ended_before,omitempty"`
}

// Recovery says how to go on with what was left in the middle; "" where nothing was.
func (r StepResult) Recovery() string {
	switch {
	case r.Status == "completed":
		return ""
	case r.Op == OpImplement:
		return fmt.Sprintf("`reprise task implement %d` goes on at phase %d", r.Number, r.Phase)
	case r.Op == OpReview:
		return "`reprise task review` tries again"
	}
	return fmt.Sprintf("`reprise task %s %d` tries again", r.Op, r.Number)
}

// Research has a task looked into, and files the report.
func (f *Flow) Research(ctx context.Context, n int, focus string) (StepResult, error) {
	return f.do(ctx, Want{Op: OpResearch, Number: n, Focus: focus})
}

// Plan has a task planned, or its plan revised.
func (f *Flow) Plan(ctx context.Context, n int, revise bool, focus string) (StepResult, error) {
	op := OpPlan
	if revise {
		op = OpRevise
	}
	return f.do(ctx, Want{Op: op, Number: n, Focus: focus})
}

// Review has the project, or what of it scope names, looked through; what is found is
// filed and becomes tasks.
func (f *Flow) Review(ctx context.Context, scope string) (StepResult, error) {
	return f.do(ctx, Want{Op: OpReview, Focus: scope})
}

// ErrNothingLeft says that every phase of a plan is completed.
var ErrNothingLeft = errors.New("is completed")

// Implement has the phases of a task's plan carried out, one after the other from the
// first that is not completed; only one when that is asked for. It ends with the first
// that is not completed. phase 0 is the next one.
func (f *Flow) Implement(ctx context.Context, n, phase int, all bool) ([]StepResult, error) {
	var out []StepResult
	if phase == 0 {
		switch r, done, err := f.EndLeft(ctx, n); {
		case err != nil:
			return nil, err
		case done:
			return []StepResult{r}, nil
		}
	}
	for {
		r, err := f.do(ctx, Want{Op: OpImplement, Number: n, Phase: phase})
		switch {
		case errors.Is(err, ErrNothingLeft) && len(out) > 0:
			return out, nil
		case err != nil:
			return out, err
		}
		out = append(out, r)
		if r.Status != "completed" || !all || phase != 0 {
			return out, nil
		}
	}
}

// do has one step done by a run: the task is in progress, an agent works, what it says
// is checked, and the list is brought up to it.
func (f *Flow) do(ctx context.Context, w Want) (StepResult, error) {
	owner, err := proc.Self()
	if err != nil {
		return StepResult{}, fmt.Errorf("tell who works: %w", err)
	}
	w.Owner = &owner
	if err := f.able(ctx, w.Number); err != nil {
		return StepResult{}, err
	}
	s, err := f.begin(ctx, w)
	if err != nil {
		return StepResult{}, err
	}
	return s.run(ctx)
}

// able finds out before anything changes whether the client is there that is to work at a
// task, or at a review (0): a step that nobody began is no step that failed.
func (f *Flow) able(ctx context.Context, number int) error {
	if f.Able == nil {
		return nil
	}
	language := DefaultLanguage
	if number > 0 {
		b, err := f.Store.Load(ctx)
		if err != nil || b.State.Tasks[number] == nil {
			return nil // said where the step is begun
		}
		language = b.State.Tasks[number].Language
	}
	if err := f.Able(ctx, cmp.Or(f.Client, RouteOf(f.Routes, language).Client)); err != nil {
		return fmt.Errorf("nothing is begun: %w", err)
	}
	return nil
}

// run has the step done, and ends it.
func (s *step) run(ctx context.Context) (StepResult, error) {
	f := s.f
	f.Say("%s: %s by %s (%s)", s.name(), s.what(), s.d.Agent, s.d.Session)
	s.prebuild(ctx)
	var rec run.Record
	req, err := s.request()
	if err == nil {
		rec, err = f.Runs.Start(ctx, req)
	}
	if err != nil {
		return s.f.tell(s.end(context.WithoutCancel(ctx), run.Record{}, Return{Status: "failed"}, "no agent could be started: "+err.Error(), ToolFailure))
	}
	s.note(ctx, rec.ID)
	rec = s.wait(ctx, rec)
	ret, why, kind := s.judge(ctx, &rec)
	return s.f.tell(s.end(context.WithoutCancel(ctx), rec, ret, why, kind))
}

// tell tells how a step went.
func (f *Flow) tell(r StepResult, err error) (StepResult, error) {
	if err == nil && f.Ended != nil {
		f.telling.Lock()
		defer f.telling.Unlock()
		f.Ended(r)
	}
	return r, err
}

// Begin begins a step that somebody else does: an agent in a session, or a work item's
// run. It ends by [Flow.Finish] or [Flow.Cancel].
func (f *Flow) Begin(ctx context.Context, w Want) (Brief, error) {
	s, err := f.begin(ctx, w)
	if err != nil {
		return Brief{}, err
	}
	return s.brief(), nil
}

// Finish ends a step by what its agent said. Of an answer that is not in order the
// first is refused with an [*AnswerError]; the next counts as partial.
func (f *Flow) Finish(ctx context.Context, session, answer string) (StepResult, error) {
	return f.FinishIn(ctx, session, answer, nil)
}

// FinishIn is Finish for a step that was done in a place of its own, which integrate
// brings to the main checkout, or closes as it is; refused says why it could not be
// brought. nil is for one that stays where it is.
func (f *Flow) FinishIn(ctx context.Context, session, answer string, integrate func(ctx context.Context, message string, done bool) (refused string, err error)) (StepResult, error) {
	s, done, err := f.find(ctx, session)
	if err != nil || s == nil {
		return done, err
	}
	if integrate != nil {
		s.integrate = func(ctx context.Context, done bool) (string, error) {
			return integrate(ctx, s.wholeMessage(), done)
		}
	}
	ret, perr := ParseReturn(answer, s.d, s.roots()...)
	if perr == nil {
		return s.end(ctx, s.record(), ret, "", "")
	}
	refuse := false
	_, err = f.Store.Change(ctx, func(b *Board) error {
		o, err := b.operation(s.o.Session, s.number())
		if err != nil {
			return err
		}
		refuse = !o.Mended
		o.Mended = true
		return nil
	})
	if err != nil {
		return StepResult{}, err
	}
	if refuse {
		return StepResult{}, &AnswerError{Session: session, Problem: perr.Error()}
	}
	return s.end(ctx, s.record(), Return{Status: "partial", Summary: clip.Bytes(clip.Line(answer), maxSummary)}, "the agent's answer is not in order: "+perr.Error(), ValidationFailed)
}

// Could says why a step of a task cannot be begun just now; nil where it could.
func (f *Flow) Could(ctx context.Context, w Want) error {
	b, err := f.Store.Load(ctx)
	if err != nil {
		return err
	}
	t, err := b.Task(w.Number)
	if err != nil || w.Op != OpImplement {
		return err
	}
	if _, _, err := b.phase(t, w.Phase); err != nil {
		return err
	}
	if waits := b.Waits(t); len(waits) > 0 {
		return fmt.Errorf("task %d %w task %s", w.Number, ErrWaits, join(waits))
	}
	return b.room(t, w.Phase, w.By, RouteOf(f.Routes, t.Language), f.dead)
}

// Equip gives a run that does a step what the route of its language wants it to have.
func (f *Flow) Equip(req *run.Request, b Brief) {
	r := RouteOf(f.Routes, b.Language)
	req.Work.Schema = returnSchema()
	req.Work.Vars = slices.Concat(req.Work.Vars, b.Vars(), r.Env)
	servers := map[string]json.RawMessage{}
	for _, name := range b.Servers {
		if def, err := f.Server(name); err == nil {
			servers[name] = def
		}
	}
	if len(servers) == 0 {
		return
	}
	switch req.Client {
	case "", agent.KindClaude:
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			req.Work.AllowedTools = append(slices.Clip(req.Work.AllowedTools), "mcp__"+name)
		}
		req.Work.Servers = withServers(req.Work.Servers, servers)
	case agent.KindCodex, agent.KindGemini, agent.KindCopilot:
		files, err := serverFiles(req.Client, req.Work.HomeFiles, servers)
		if err != nil {
			f.Say("note: %v; the work goes on without", err)
			return
		}
		req.Work.HomeFiles = files
		if req.Client == agent.KindCopilot && len(req.Work.AllowedTools) > 0 {
			req.Work.AllowedTools = append(slices.Clip(req.Work.AllowedTools), slices.Sorted(maps.Keys(servers))...)
		}
	}
}

// Read reads an answer, says what is wrong with it, and changes nothing.
func (f *Flow) Read(ctx context.Context, session, answer string) (Return, error) {
	s, done, err := f.find(ctx, session)
	if err != nil {
		return Return{}, err
	}
	if s == nil {
		return Return{Status: done.Status}, nil
	}
	ret, err := ParseReturn(answer, s.d, s.roots()...)
	if err != nil {
		return ret, &AnswerError{Session: session, Problem: err.Error()}
	}
	return ret, nil
}

// AnswerError says what is amiss with an agent's answer.
type AnswerError struct{ Session, Problem string }

func (e *AnswerError) Error() string {
	return fmt.Sprintf("the answer is not in order: %s; give it again with session_id %s in the form that was asked for, the next one counts as it is", e.Problem, e.Session)
}

// Cancel ends a step that came to nothing: partial, failed or blocked.
func (f *Flow) Cancel(ctx context.Context, session, status, reason string) (StepResult, error) {
	s, done, err := f.find(ctx, session)
	if err != nil || s == nil {
		done.Before = err == nil
		return done, err
	}
	return s.end(ctx, s.record(), Return{Status: cmp.Or(status, "failed")}, cmp.Or(clip.Line(reason), "it was given up"), "")
}

// TimedOut ends a step that ran out of time: what was done is kept, and the task stays
// in progress for who goes on.
func (f *Flow) TimedOut(ctx context.Context, session, reason string) (StepResult, error) {
	s, done, err := f.find(ctx, session)
	if err != nil || s == nil {
		return done, err
	}
	return s.end(ctx, s.record(), Return{Status: "partial"}, reason, Timeout)
}

// Past is the step that a run did on somebody's behalf and that has ended since; ok is false
// where it has not. Who was killed while it was being filed finds it by that, and begins none
// again that nobody would do.
func (f *Flow) Past(ctx context.Context, w Want, run string) (past Brief, ok bool, err error) {
	b, err := f.Store.Load(ctx)
	if err != nil || run == "" || w.By == "" {
		return past, false, err
	}
	t := b.State.Tasks[w.Number]
	if t == nil || slices.ContainsFunc(t.Operations, func(o *Operation) bool { return o.By == w.By && o.Run == run }) {
		return past, false, nil
	}
	own, err := b.Own(t)
	if err != nil {
		return past, false, nil //nolint:nilerr // a check tells it
	}
	for _, o := range slices.Backward(own) {
		if o.By != w.By || o.Run != run || o.Op != w.Op || w.Phase > 0 && o.Phase != w.Phase {
			continue
		}
		title := ""
		if p, _, err := b.Plan(t); err == nil && p.Phase(o.Phase) != nil {
			title = p.Phase(o.Phase).Title
		}
		past = Brief{Number: w.Number, Title: t.Title, Op: o.Op, Phase: o.Phase, Session: o.Session, Message: Message(t, o.Op, o.Phase, title)}
		if o.Op != OpImplement && len(o.Files) > 0 {
			past.Artifact = path.Join(specsDir, o.Files[0])
		}
		return past, true, nil
	}
	return past, false, nil
}

// PutAway does for a step of [Flow.Past] what its filing may not have come to: it takes away in
// the place what the step wrote there and was taken over, and commits the list.
func (f *Flow) PutAway(ctx context.Context, b Brief, r StepResult, place string) {
	s := &step{f: f, o: Operation{Name: b.Op}, d: Delegation{Session: b.Session}, task: Task{Number: b.Number}}
	files := []string{path.Join(specsDir, todoFile), path.Join(specsDir, stateFile)}
	if name, ok := strings.CutPrefix(b.Artifact, specsDir+"/"); ok {
		s.o.Artifact = name
		files = append(files, b.Artifact)
		if place != f.Root {
			s.o.Place = place
			s.tidy()
		}
	}
	message := b.Message
	switch {
	case r.Status != "completed":
		message = s.message(r)
	case b.Op == OpImplement:
		message += onRecord
	}
	s.commitFiles(ctx, message, files)
}

// Ran notes which run does a step.
func (f *Flow) Ran(ctx context.Context, session, id string) error {
	s, _, err := f.find(ctx, session)
	if err != nil || s == nil {
		return err
	}
	s.note(ctx, id)
	return nil
}
