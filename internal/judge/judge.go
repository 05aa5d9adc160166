// Package judge puts one bounded question to a model and takes back one JSON
// answer: for the summary of a session, for the guard where it is unsure, for a
// review. The model is asked by a run of its own with isolated settings: no
// hooks, no tools, no tool servers, nobody's instructions, an empty directory.
//
// Files it writes, all beneath <state>/judge/: state.json, the circuit and what
// was spent; started, which says that state.json was there; answers/, what was
// answered before. It takes <state>/judge/state.lock, and no other after it.
// The run itself belongs to package run.
package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/hook"
	"reprise/internal/proc"
	"reprise/internal/run"
)

// What a question is for. The switch and the budgets of the settings are by
// purpose.
const (
	Summary = "summary"
	Guard   = "guard"
	Review  = "review"
)

// Purposes are all there are.
func Purposes() []string { return []string{Summary, Guard, Review} }

// Origin is what the record of a judge's run says it was started by.
const Origin = "judge"

// Why there is no answer. Errors of [Judge.Ask] wrap one of them, or are about
// the question itself.
var (
	// ErrOff: the settings name no client, or not this purpose.
	ErrOff = errors.New("no judge is configured for this")
	// ErrOpen: too many questions in a row had no answer; nobody is asked until
	// the time that the error names.
	ErrOpen = errors.New("circuit breaker is open")
	// ErrBudget: the day's money or calls are used up.
	ErrBudget = errors.New("budget of the judge is used up")
	// ErrTimeout: there was no answer in time.
	ErrTimeout = errors.New("judge did not answer in time")
	// ErrAnswer: what came back is not the JSON that was asked for.
	ErrAnswer = errors.New("judge did not answer with the JSON asked for")
	// ErrNested: the asker runs inside a judge's run itself, or inside
	// something that a hook started.
	ErrNested = errors.New("a judge is not asked from inside a judge's run")
	// ErrFailed: the client could not be started or isolated, or ended with an
	// error.
	ErrFailed = errors.New("judge failed")
	// ErrState: what was spent cannot be read, so that nothing more is.
	ErrState = errors.New("state of the judge cannot be used")
)

// Question is what a model is asked.
type Question struct {
	Purpose string // Summary, Guard or Review
	System  string // the system prompt, but for how to answer
	Prompt  string
	// Schema is the JSON Schema (2020-12) of the answer, an object.
	Schema json.RawMessage
	// Dir is the project directory that the question is about, "" for none. It
	// parts the cache: the same words about two projects are two questions. The
	// model does not see it.
	Dir string
	// Timeout is the longest the answer may take; 0 takes the settings', which
	// bound it in any case, as the context's deadline does.
	Timeout time.Duration
	// Fresh asks although an answer is in the cache.
	Fresh bool
}

// Answer is what it said.
type Answer struct {
	JSON    json.RawMessage // valid by the question's schema
	Run     string          // id of the run that answered; of a cached answer, the one that did then
	CostUSD float64         // 0 where the client does not say, and from the cache
	Cached  bool
	Took    time.Duration
	By      string // client and model, as in "claude haiku"
}

// Runner starts and follows runs; *run.Manager is one.
type Runner interface {
	Client(ctx context.Context, req run.Request) (name, version string, err error)
	Start(ctx context.Context, req run.Request) (run.Record, error)
	Wait(ctx context.Context, id string) (run.Record, error)
	Settle(ctx context.Context, id string) (run.Record, error)
	Cancel(ctx context.Context, id, reason string) (run.Record, error)
	Get(id string) (run.Record, error)
}

// Options is what a judge needs to know of the world.
type Options struct {
	Settings config.Judge
	Dir      string // <state>/judge
	Runs     Runner
	// Environ is what the client starts from; Get reads the environment that
	// this process was started with.
	Environ []string
	Get     func(string) string
	Redact  func(string) string // takes secrets out, by all rules
	Now     func() time.Time
	Disk    durable.Disk // zero: the machine's
	Log     *slog.Logger // nil: nowhere
}

// Judge answers questions. It is safe for concurrent use, also by several
// processes.
type Judge struct{ opt Options }

// New returns a judge. It touches nothing yet.
func New(opt Options) *Judge {
	if opt.Now == nil || opt.Get == nil || opt.Redact == nil {
		panic("judge.New: Now, Get or Redact is nil") // a programming error, found by the first test
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	return &Judge{opt}
}

// Times and limits of a question.
const (
	// maxText bounds system prompt and prompt together, maxSchema the schema,
	// which is an argument of the client's command line; bytes.
	maxText   = 512 << 10
	maxSchema = 32 << 10
	// maxTurns: one for the answer, one for a reminder, one to spare.
	maxTurns = 3
	// leastTime is the time below which nobody is asked: no client starts
	// faster.
	leastTime = 500 * time.Millisecond
	// deadlineSlack is left of the asker's own time, to say that it was over.
	deadlineSlack = 50 * time.Millisecond
)

// Enabled reports whether the settings have somebody asked for the purpose.
func (j *Judge) Enabled(purpose string) bool { return j.off(purpose) == nil }

func (j *Judge) off(purpose string) error {
	switch {
	case j.opt.Settings.Client == "":
		return fmt.Errorf("%w: set judge.client in the settings", ErrOff)
	case !slices.Contains(j.opt.Settings.Purposes, purpose):
		return fmt.Errorf("%w: judge.purposes in the settings does not name %s", ErrOff, purpose)
	}
	return nil
}

// Ask puts the question and waits for the answer. Errors wrap one of this
// package's, but for those about the question itself.
func (j *Judge) Ask(ctx context.Context, q Question) (Answer, error) {
	began := j.opt.Now()
	a, err := j.ask(ctx, q)
	if err != nil {
		return Answer{}, fmt.Errorf("ask judge (%s): %w", q.Purpose, err)
	}
	a.Took = j.opt.Now().Sub(began)
	return a, nil
}

func (j *Judge) ask(ctx context.Context, q Question) (Answer, error) {
	if !slices.Contains(Purposes(), q.Purpose) {
		return Answer{}, fmt.Errorf("unknown purpose %q: use one of %s", q.Purpose, strings.Join(Purposes(), ", "))
	}
	if err := j.off(q.Purpose); err != nil {
		return Answer{}, err
	}
	if err := j.nested(); err != nil {
		return Answer{}, err
	}
	p, err := j.prepare(q)
	if err != nil {
		return Answer{}, err
	}
	client, version, err := j.opt.Runs.Client(ctx, p.request)
	if err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	p.identify(client, version, q.Dir)
	if !q.Fresh {
		if a, ok := j.cached(p); ok {
			return a, nil
		}
	}
	return j.put(ctx, q, p)
}

// nested says whether this process runs inside something that a judge or a hook
// started. A run that is not known here may be one.
func (j *Judge) nested() error {
	if hook.Nested(j.opt.Get) {
		return fmt.Errorf("%w: %s is set", ErrNested, hook.DepthVar)
	}
	id := j.opt.Get(proc.RunIDVar)
	if id == "" {
		return nil
	}
	r, err := j.opt.Runs.Get(id)
	if err != nil {
		return fmt.Errorf("%w: this is part of run %q, of which nothing is known here (%w)", ErrNested, id, err)
	}
	for _, up := range append(slices.Clone(r.DelegationPath), id) {
		if r, err := j.opt.Runs.Get(up); err == nil && r.Origin == Origin {
			return fmt.Errorf("%w: %s is one", ErrNested, up)
		}
	}
	return nil
}

// put asks a client: a place in the budget first, the run then, and its outcome
// into the circuit whatever it is.
func (j *Judge) put(ctx context.Context, q Question, p *prepared) (Answer, error) {
	limit, err := j.limit(ctx, q)
	if err != nil {
		return Answer{}, err
	}
	circuit := p.by()
	res, err := j.begin(ctx, q.Purpose, circuit, limit)
	if err != nil {
		return Answer{}, err
	}
	req := p.request
	req.Timeout, req.Question.MaxBudgetUSD = limit, res.USD
	r, asked := j.follow(ctx, req, res, limit)
	var a Answer
	if asked == nil {
		a, asked = p.answer(r)
	}
	out := outcome{run: r.ID, cost: res.USD, err: asked, at: j.opt.Now()} // as much as it might have, where nobody knows
	switch {
	case r.ID == "":
		out.cost = 0
	case r.Result != nil:
		out.cost = r.Result.CostUSD
	}
	// The asker's time may be over; what became of the question is noted all the same.
	ctx = context.WithoutCancel(ctx)
	if err := j.end(ctx, res, out); err != nil {
		// The place in the budget stays taken, which errs on the safe side.
		j.opt.Log.Warn("judge: what became of a question is not on record", "run", r.ID, "error", err.Error())
	}
	if asked != nil {
		return Answer{}, asked
	}
	if err := j.keep(p, q.Purpose, a); err != nil {
		j.opt.Log.Warn("judge: an answer is not kept for the next time", "run", r.ID, "error", err.Error())
	}
	return a, nil
}

// limit is the time that the question has.
func (j *Judge) limit(ctx context.Context, q Question) (time.Duration, error) {
	limit := time.Duration(j.opt.Settings.TimeoutSeconds) * time.Second
	if q.Timeout > 0 {
		limit = min(limit, q.Timeout)
	}
	if d, ok := ctx.Deadline(); ok {
		limit = min(limit, d.Sub(j.opt.Now())-deadlineSlack)
	}
	if limit < leastTime {
		return 0, fmt.Errorf("%w: only %s are left, in which no client starts", ErrTimeout, max(0, limit).Round(time.Millisecond))
	}
	return limit, nil
}

// follow starts the run and waits for its end, or for that of the question's
// time. The run is attached: it ends with this process.
func (j *Judge) follow(ctx context.Context, req run.Request, res reservation, limit time.Duration) (run.Record, error) {
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := j.opt.Runs.Start(timed, req)
	if err != nil {
		return r, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	if err := j.name(context.WithoutCancel(ctx), res.ID, r.ID); err != nil {
		j.opt.Log.Warn("judge: the question's run is not on record", "run", r.ID, "error", err.Error())
	}
	settled, err := j.opt.Runs.Wait(timed, r.ID)
	switch {
	case err == nil:
		return settled, nil
	case timed.Err() == nil:
		return r, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	// Its supervisor ends it at the same time; only one that was given up before
	// has to be told, and the asker does not wait for that.
	if errors.Is(ctx.Err(), context.Canceled) {
		go j.cancel(r.ID)
		return r, fmt.Errorf("run %s: %w", r.ID, context.Cause(ctx))
	}
	return r, fmt.Errorf("run %s: %w: it had %s", r.ID, ErrTimeout, limit.Round(time.Millisecond))
}

func (j *Judge) cancel(id string) {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	if _, err := j.opt.Runs.Cancel(ctx, id, "the question was given up"); err != nil {
		j.opt.Log.Warn("judge: stop a run", "run", id, "error", err.Error())
	}
}

// environ is what the client starts from: its hooks, should any run in spite of
// all, say and record nothing.
func environ(env []string) []string {
	depth := 0
	if n, err := strconv.Atoi(proc.EnvValue(env, hook.DepthVar)); err == nil && n > 0 {
		depth = n
	}
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, hook.DepthVar+"=") })
	return append(env, hook.DepthVar+"="+strconv.Itoa(depth+1))
}

func (j *Judge) path(name ...string) string {
	return filepath.Join(append([]string{j.opt.Dir}, name...)...)
}
