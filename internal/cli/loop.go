package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"reprise/internal/agent"
	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/loop/report"
	"reprise/internal/pathname"
	"reprise/internal/proc"
	"reprise/internal/queue"
	"reprise/internal/run"
	"reprise/internal/term"
	"reprise/internal/verify"
)

func newLoopCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "loop", Short: "Keep agents going on what is in the queue, and stop when a person should look",
		Long: `The loop claims an item of the queue, gives it a worktree of its own, starts an agent
on it, watches, has the project's checks run, settles the item and goes on, until the
queue is empty, a ceiling is reached or a person must decide. docs/loop.md has the whole.`,
	}
	cmd.AddCommand(newLoopRunCmd(app), newLoopStatusCmd(app), newLoopInterruptCmd(app), newLoopResumeCmd(app), newLoopPauseCmd(app), newLoopStopCmd(app),
		newLoopLogsCmd(app), newLoopAuditCmd(app), newLoopMetricsCmd(app), newLoopReportCmd(app), newLoopBootstrapCmd(app), newLoopGCCmd(app), newLoopNotifyCmd(app),
		newLoopAskCmd(app), newLoopProgressCmd(app))
	return cmd
}

// loopDir is the directory of the loop of the project around the working directory.
func (a *App) loopDir() (*config.Home, string, error) {
	home, err := a.Home()
	if err != nil {
		return nil, "", err
	}
	if home.Project == nil {
		return nil, "", exitWith(ExitNotFound, a.noProject())
	}
	return home, filepath.Join(home.Paths.ProjectDir(home.Project.Name), "loop"), nil
}

type loopFlags struct {
	agent, script, model, onInterrupt, integrate, base string
	workers, maxIterations, turns                      int
	budget, itemUSD, maxHours                          float64
	maxTokens                                          int64
	labels                                             []string
	untilEmpty, unattended, inPlace, quiet             bool
	delay, stall, timeout, backoffUnit                 time.Duration

	into string // branch that a loop which is gone on with merges into

	cmd  *cobra.Command // whose flags these are
	says []string       // flags that the command itself gives, whatever a person says

	// elsewhere, where it is set, makes the world that of a worker, in place of what is for
	// the checkout in which people work.
	elsewhere func(context.Context, *loop.Options) error
}

// bounds are the flags by which whoever starts a loop bounds it.
func (f *loopFlags) bounds(cmd *cobra.Command) {
	f.cmd = cmd
	fl := cmd.Flags()
	fl.StringVar(&f.model, "model", "", "`MODEL`, as the client spells it")
	fl.IntVar(&f.workers, "workers", 1, "items worked on at the same time")
	fl.IntVar(&f.maxIterations, "max-iterations", 0, "attempts at items to begin at most (default: loop.max_iterations, 500)")
	fl.Float64Var(&f.budget, "budget-usd", 0, "US dollars to spend at most (default: loop.budget_usd, 50)")
	fl.Float64Var(&f.itemUSD, "item-usd", 0, "US dollars that one run may cost (default: loop.item_usd, 10)")
	fl.Int64Var(&f.maxTokens, "max-tokens", 0, "tokens to use at most (default: loop.max_tokens)")
	fl.Float64Var(&f.maxHours, "max-hours", 0, "hours to work at most (default: loop.max_hours, 8)")
	fl.IntVar(&f.turns, "max-turns", 0, "turns that one run may have (default: loop.turns, 50)")
	fl.DurationVar(&f.timeout, "timeout", 0, "the longest that one run may take (default: loop.timeout_seconds, 1h)")
	fl.DurationVar(&f.stall, "stall", 0, "how long a run may say nothing (default: loop.stall_seconds, 10m)")
	fl.DurationVar(&f.delay, "delay", -1, "between two items of a worker (default: loop.delay_seconds, 5s)")
	fl.Lookup("delay").DefValue = "0s" // which help leaves out: what is not given is told in the text
	fl.BoolVar(&f.untilEmpty, "until-empty", false, "end when nothing is left to do")
	fl.StringArrayVar(&f.labels, "label", nil, "only items with this `LABEL`; may be repeated")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "print no line for each thing that happens")
	fl.DurationVar(&f.backoffUnit, "backoff-unit", time.Second, "")
	_ = fl.MarkHidden("backoff-unit") // it was defined just above
}

func newLoopRunCmd(app *App) *cobra.Command {
	var f loopFlags
	cmd := &cobra.Command{
		Use: "run", Args: cobra.NoArgs, Short: "Work through the queue",
		Long: `Work through the queue. Each ceiling has a default, which the section "loop" of the
settings or a flag changes; none can be switched off. A loop that died is gone on with:
runs that live are watched on, and nothing that was settled is done again. It goes on as
it was begun, with its ceilings (raised ones, too), its agent and all the rest; what a flag
says now is changed, and told. "reprise loop status" shows what holds.

Ctrl-C ends it gracefully: agents are stopped, what they have is kept, and their items
are given back. A second Ctrl-C leaves at once; the agents go on, and the next
"reprise loop run" takes them up.

With --unattended nobody is asked: what must be decided is set aside, and a client with
hooks is started only after it was seen that the guard's hook really keeps it from what
is refused.

Ends with 0 when the loop came to its end, 1 when it could go on with nothing (no login, say,
where nobody is waited for), 4 when a loop of
the project runs already.`,
		Example: `  reprise loop run --until-empty --agent script
  reprise loop run --workers 4 --unattended --budget-usd 20 --max-hours 6`,
		Annotations: map[string]string{ownsSignals: "yes"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return runLoop(cmd.Context(), app, cmd, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.agent, "agent", "", "`CLIENT` that works: claude, codex, gemini, copilot or script (default: what the item or its route says, else sub_agent.agent)")
	fl.StringVar(&f.script, "agent-script", "", "`FILE` of steps for the script client")
	f.bounds(cmd)
	fl.StringVar(&f.onInterrupt, "on-interrupt", "", "when a person must decide: wait, or skip (set the item aside and go on)")
	fl.StringVar(&f.integrate, "integrate", "", "what becomes of a finished branch: keep, merge or pr")
	fl.StringVar(&f.base, "base", "", "`COMMIT` that work begins at (default: what is checked out)")
	fl.BoolVar(&f.inPlace, "in-place", false, "work in the project's own directory, with one worker and no worktrees")
	fl.BoolVar(&f.unattended, "unattended", false, "nobody is there: skip what must be decided, and prove the guard first")
	offer(cmd, "agent", config.RouteClients()...)
	offer(cmd, "on-interrupt", "wait", "skip")
	offer(cmd, "integrate", "keep", "merge", "pr")
	return cmd
}

// limits are the ceilings by settings and flags.
func (f *loopFlags) limits(set config.Loop) (core.Limits, error) {
	l := core.DefaultLimits()
	l.Workers, l.UntilEmpty, l.BackoffUnit = f.workers, f.untilEmpty, f.backoffUnit
	l.MaxIterations = cmp.Or(f.maxIterations, set.MaxIterations)
	l.MaxUSD, l.ItemUSD = cmp.Or(f.budget, set.BudgetUSD), cmp.Or(f.itemUSD, set.ItemUSD)
	l.MaxTokens = cmp.Or(f.maxTokens, int64(set.MaxTokens))
	l.MaxTime = time.Duration(cmp.Or(f.maxHours, float64(set.MaxHours)) * float64(time.Hour))
	seconds := func(flag time.Duration, n int) time.Duration {
		if flag > 0 {
			return flag
		}
		return time.Duration(n) * time.Second
	}
	l.ItemTimeout, l.Stall = seconds(f.timeout, set.TimeoutSeconds), seconds(f.stall, set.StallSeconds)
	l.Delay, l.BackoffMax = time.Duration(set.DelaySeconds)*time.Second, time.Duration(set.BackoffSeconds)*time.Second
	if f.delay >= 0 {
		l.Delay = f.delay
	}
	l.OnInterrupt = core.OnInterrupt(cmp.Or(f.onInterrupt, set.OnInterrupt))
	if f.unattended && f.onInterrupt == "" {
		l.OnInterrupt = core.Skip
	}
	return l, f.bounded(l)
}

// bounded says which ceiling is none, or is more than anybody means.
func (f *loopFlags) bounded(l core.Limits) error {
	switch {
	case l.Workers < 1 || l.Workers > 100:
		return usagef("--workers %d is not between 1 and 100", l.Workers)
	case l.MaxIterations < 1:
		return usagef("--max-iterations %d is less than 1", l.MaxIterations)
	case l.MaxTokens < 1:
		return usagef("--max-tokens %d is less than 1", l.MaxTokens)
	case !dollars(l.MaxUSD):
		return usagef("--budget-usd %v is not between 0 and 1000000: every loop ends some time", l.MaxUSD)
	case !dollars(l.ItemUSD):
		return usagef("--item-usd %v is not between 0 and 1000000: every run ends some time", l.ItemUSD)
	case !(l.MaxTime > 0 && l.MaxTime <= 31*24*time.Hour):
		return usagef("--max-hours %v is not between 0 and 744, which are 31 days: every loop ends some time", cmp.Or(f.maxHours, float64(l.MaxTime)/float64(time.Hour)))
	case slices.ContainsFunc(f.labels, func(label string) bool { return strings.TrimSpace(label) == "" }):
		return usagef("--label is empty: give a label that items have, or leave it out for all of them")
	case l.OnInterrupt != core.Wait && l.OnInterrupt != core.Skip:
		return usagef("--on-interrupt %q is neither wait nor skip", clipText(string(l.OnInterrupt), 40))
	case l.BackoffUnit <= 0 || l.ItemTimeout <= 0 || l.Stall <= 0:
		return usagef("a time is zero or negative")
	}
	return nil
}

// dollars says that a ceiling of money is one: the most is more than anybody would let
// a loop spend, and less than what a file of JSON cannot hold.
func dollars(usd float64) bool { return usd > 0 && usd <= 1e6 }

// ceilings are the flags of `loop run` for which 0 would be what the settings say, and
// nobody who writes it means that.
var ceilings = []string{"max-iterations", "budget-usd", "item-usd", "max-tokens", "max-hours", "max-turns"}

// noZero refuses a ceiling of zero, and times that are none: what is given would else be
// passed over for what the settings say.
func noZero(cmd *cobra.Command) error {
	for _, name := range ceilings {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() == "0" {
			return usagef("--%s 0: a loop that may do nothing is none; leave it out for what the settings say", name)
		}
	}
	for _, name := range []string{"timeout", "stall"} {
		f := cmd.Flags().Lookup(name)
		if f == nil || !f.Changed {
			continue
		}
		if d, err := time.ParseDuration(f.Value.String()); err != nil || d <= 0 {
			return usagef("--%s %s: give a time such as 30s or 10m, or leave it out for what the settings say", name, f.Value)
		}
	}
	return nil
}

func runLoop(ctx context.Context, app *App, cmd *cobra.Command, f loopFlags) error {
	if err := noZero(cmd); err != nil {
		return err
	}
	home, dir, err := app.loopDir()
	if err != nil {
		return err
	}
	if app.Env.Get(proc.RunIDVar) != "" {
		return exitWith(ExitConflict, errors.New("a run cannot start a loop: the loop that it is part of goes on by itself; add items with `reprise queue add`"))
	}
	f.cmd = cmd
	limits, err := f.limits(home.Settings.Loop)
	if err != nil {
		return err
	}
	if err := loop.Free(durable.Disk{}, dir); err != nil { // before anything that only who may begin needs
		return exitWith(ExitConflict, err)
	}
	opt, err := app.loopOptions(ctx, home, dir, &f, limits)
	if err != nil {
		return err
	}
	if !f.quiet {
		opt.Say = func(l report.Line) { fmt.Fprintln(app.Out, shownText(app.Style(), &l)) }
	}
	stop := app.stops(ctx)
	sendRest, err := app.traced(&opt)
	if err != nil {
		return err
	}
	defer sendRest()
	s, err := loop.New(opt).Run(ctx, stop)
	if errors.Is(err, loop.ErrChanged) {
		err = fmt.Errorf("%w: start it again", err)
	}
	if errors.Is(err, loop.ErrRuns) || errors.Is(err, loop.ErrChanged) {
		return exitWith(ExitConflict, err)
	}
	if err != nil {
		return err
	}
	t := s.Tally
	for _, line := range app.unfinished() {
		fmt.Fprintf(app.Err, "note: %s\n", line)
	}
	for _, line := range app.staying(context.WithoutCancel(ctx)) {
		fmt.Fprintf(app.Err, "note: %s\n", firstLine(line, 400))
	}
	rest := ""
	if done, err := app.toMerge(context.WithoutCancel(ctx), dir, s.Loop); err == nil && len(done) > 0 { // what cannot be read the report says
		rest = " What is done lies in " + branches(len(done)) + " until it is merged."
	}
	fmt.Fprintf(app.Err, "The loop has ended (%s): %d done, %d tried again, %d given up, set aside %s, %s.%s `reprise loop report` has more.\n",
		firstLine(orDash(s.Reason), 300), t.Done, t.Failed, t.GivenUp, term.Plural(t.Parked, "time"), report.Cost(s.CostUSD, s.Untold), rest)
	if s.Unable {
		return exitWithCode(ExitFailure)
	}
	return nil
}

// unfinished are worktrees of items that could not be made or taken away to the end, as on a full
// disk, and that nobody is at, a sentence each.
func (a *App) unfinished() (lines []string) {
	ws, err := a.Workspaces()
	if err != nil {
		return nil // the project is in no repository
	}
	list, _ := ws.Unfinished() // what cannot be read is told by `reprise workspace list`
	for _, w := range list {
		lines = append(lines, fmt.Sprintf("the worktree %s is left over: %s", w.Name, w.Note))
	}
	return lines
}

// staying are worktrees of items that are done and that are still there, a sentence each: what is in
// them is nowhere else, or somebody works there.
func (a *App) staying(ctx context.Context) (lines []string) {
	_, list, err := a.endedPlaces(ctx)
	if err != nil {
		return nil // the project is in no repository, or `reprise loop gc --workspaces` says more
	}
	for _, p := range list {
		if p.State == queue.Done && p.Stays != "" {
			lines = append(lines, fmt.Sprintf("the worktree %s of %s, which is done, is still there: %s (`reprise workspace remove %s` takes it away, with that kept where it can be)", p.Workspace, p.Item, p.Stays, p.Workspace))
		}
	}
	return lines
}

// sameRequest is how soon after a request to end another one is the same one: timeout(1) and
// service managers send theirs to a process and to its group.
const sameRequest = time.Second

// stops are the requests to end that this process gets, in words.
func (a *App) stops(ctx context.Context) <-chan string {
	stop := make(chan string)
	if a.Signals == nil {
		return stop
	}
	goOnUnread() // lines that nobody reads are no reason to leave the agents alone
	signals := a.Signals()
	go func() {
		var last time.Time
		for {
			select {
			case sig := <-signals:
				now := a.Env.Now()
				if sig != os.Interrupt && now.Sub(last) < sameRequest {
					continue // Ctrl-C is a person's, who may press it twice
				}
				last = now
				select {
				case stop <- fmt.Sprintf("stopped by signal (%s)", sig):
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return stop
}

func orDash(s string) string { return cmp.Or(s, "-") }

// loopOptions are a loop's world.
func (a *App) loopOptions(ctx context.Context, home *config.Home, dir string, f *loopFlags, limits core.Limits) (loop.Options, error) {
	set := home.Settings.Loop
	from, err := goOn(dir, f, &limits)
	if err != nil {
		return loop.Options{}, err
	}
	opt := loop.Options{
		From: from, Dir: dir, Project: home.Project.Name, Only: cmp.Or(f.agent, scriptClient(f.script)), Client: home.Settings.SubAgent.Agent, Labels: f.labels,
		Actor: cmp.Or(a.Env.Get("BD_ACTOR"), "harness-agent"), Env: a.Environ, Program: a.Program, Limits: limits, Now: a.Env.Now,
		Away: loop.Anchor(home.Project.Root), Events: home.EventsDir(),
	}
	if err := loopClient(cmp.Or(opt.Only, opt.Client)); err != nil {
		return opt, err
	}
	route, clients, err := a.loopRoute(home, f)
	if err != nil {
		return opt, err
	}
	opt.Route = route
	given, err := a.loopGiven(home, f, &opt)
	if err != nil {
		return opt, err
	}
	if opt.Log, err = a.Logger(); err != nil {
		return opt, err
	}
	if opt.Template, err = bootstrapOf(home); err != nil {
		return opt, err
	}
	runs, err := a.Runs()
	if err != nil {
		return opt, err
	}
	opt.Runs = runs
	if err := a.canWork(ctx, runs, &opt, clients); err != nil {
		return opt, err
	}
	self, err := proc.Self()
	if err != nil {
		return opt, err
	}
	q, err := a.writableQueue(ctx, self)
	if err != nil {
		return opt, err
	}
	opt.Queue = q
	opt.Configure = a.newWorker(home).configure
	check, unapproved, err := a.loopCheck()
	if err != nil {
		return opt, err
	}
	if check != nil {
		opt.Check = check
	}
	if opt.Places, err = a.loopPlaces(ctx, home, dir, f, limits.Workers, check); err != nil {
		return opt, err
	}
	if t, ok := opt.Places.(*loop.Worktrees); ok && unapproved && t.Integrate == loop.MergeBranch {
		return opt, usagef("--integrate merge merges what passes the checks, and those of %s are not approved, so none would be run: look at them and approve them with `reprise trust`, or use --integrate keep", home.Project.File())
	}
	given.InPlace = true
	if t, ok := opt.Places.(*loop.Worktrees); ok {
		given.InPlace, given.Integrate, given.Into = false, t.Integrate, t.Into
		wireTrees(ctx, t, &opt)
	}
	a.releaseAfter(ctx, &opt, checkoutOf(home.Project))
	if f.elsewhere != nil {
		opt.Command = "reprise worker"
		err = f.elsewhere(ctx, &opt)
	} else if err = a.shareLoop(ctx, home, &opt); err == nil {
		err = a.loopTasks(ctx, home, &opt)
	}
	if err != nil {
		return opt, err
	}
	if f.unattended {
		if opt.Only != "" || f.elsewhere != nil { // the loop asks for others when it needs them
			clients = nil
		}
		proved := map[string]bool{}
		opt.Prove = func(ctx context.Context, client string) error { // the loop asks for one at a time
			if proved[client] {
				return nil
			}
			err := a.proveGuard(ctx, client)
			proved[client] = err == nil
			return err
		}
		for _, client := range append(clients, cmp.Or(opt.Only, opt.Client)) {
			if err := opt.Prove(ctx, client); err != nil {
				return opt, err
			}
		}
	}
	if n := a.notifier(set); n.Any() {
		opt.Notify = n.Send
	}
	return opt, nil
}

// wireTrees has a loop see to its worktrees, and be told by them.
func wireTrees(ctx context.Context, t *loop.Worktrees, opt *loop.Options) {
	log := opt.Log
	var left atomic.Bool
	opt.Before, opt.After = t.Mend, func() {
		if t.Wait(); left.Load() { // what stood in its way may be over
			_ = t.Mend(context.WithoutCancel(ctx)) // what stays is told of when the loop has ended
		}
	}
	t.Left = func(name string, err error) {
		left.Store(true)
		log.Warn("take a worktree away", "workspace", name, "error", err.Error())
	}
	t.Unlocked = func(path string) { log.Warn("a lock that a killed git left was removed", "file", path) }
	t.Waiting = func(err error) { log.Warn("another git is at work: its lock is waited for", "error", err.Error()) }
	opt.Root, opt.Strayed, opt.Merges, opt.Shares = t.Root, t.Strayed, t, t
}

// canWork finds out before anything begins whether the client is there that works: each
// item would find the same. Where routes name others, items may do without it, and it is
// only said.
func (a *App) canWork(ctx context.Context, runs *run.Manager, opt *loop.Options, routed []string) error {
	client := cmp.Or(opt.Only, opt.Client)
	_, _, err := runs.Client(ctx, run.Request{Client: client, ScriptFile: opt.ScriptFile, Env: opt.Env})
	if err != nil && opt.Only == "" && len(routed) > 0 && ctx.Err() == nil {
		fmt.Fprintf(a.Err, "note: items without a route cannot be worked on: %v\n", err)
		return nil
	}
	return err
}

func scriptClient(file string) string {
	if file != "" {
		return agent.KindScript
	}
	return ""
}

// maxTemplate bounds a project's own bootstrap.
const maxTemplate = 1 << 20

// bootstrapOf is the project's own template, "" where it has none or an empty one. It is looked through
// before anything is begun by it.
func bootstrapOf(home *config.Home) (string, error) {
	name := filepath.Join(".reprise", "bootstrap.md")
	path := filepath.Join(home.Project.Root, name)
	// Opened, so that a link that leads out is refused: a repository brings it along, and what it
	// names would be sent to a model.
	root, err := durable.OpenRoot(home.Project.Root)
	if err != nil {
		return "", err
	}
	defer root.Close()
	info, err := root.Stat(name)
	if err != nil {
		if why := badLink(home.Project.Root, path); why != "" {
			err = errors.New(why)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxTemplate) {
		err = fmt.Errorf("it is no file of at most %d bytes", maxTemplate)
	}
	var data []byte
	if err == nil {
		data, err = root.ReadFile(name)
	}
	if err == nil && !utf8.Valid(data) {
		err = errors.New("it is no UTF-8; convert it")
	}
	if err != nil {
		return "", fmt.Errorf("read the bootstrap template %s: %w", path, err)
	}
	// `reprise loop bootstrap > .reprise/bootstrap.md` finds it empty: the shell made it.
	if strings.TrimSpace(string(data)) == "" {
		return "", nil
	}
	if err := loop.CheckTemplate(string(data)); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return string(data), nil
}

// badLink is why a file of the project cannot be read that is a link, or lies behind one: it leads
// out of the project, or to nothing. "" is neither.
func badLink(root, path string) string {
	for p := path; p != root && p != filepath.Dir(p); p = filepath.Dir(p) {
		to, err := os.Readlink(p)
		if err != nil {
			continue
		}
		whole, err := filepath.EvalSymlinks(p)
		switch top, rerr := filepath.EvalSymlinks(root); {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Sprintf("%s is a link to %s, and nothing is there: put the file itself there, or remove the link", p, to)
		case err == nil && rerr == nil && !pathname.Within(top, whole):
			return fmt.Sprintf("%s is a link that leads out of the project (%s): put the file itself there", p, to)
		}
	}
	return ""
}

// loopCheck has the project's checks run in a place; nil where it has none, or none that
// the user has approved.
func (a *App) loopCheck() (check func(context.Context, loop.Place, run.Record) (loop.Checked, error), unapproved bool, err error) {
	home, trust, err := verifyHome(a)
	if err != nil {
		return nil, false, err
	}
	wishes, err := a.verifyWishes(home, trust, "")
	if err != nil {
		return nil, false, err
	}
	if trust.Says.Verify.Empty() {
		return nil, false, nil
	}
	if !trust.Approved {
		fmt.Fprintf(a.Err, "note: the checks of %s are not approved, so none is run; `reprise trust` approves them\n", home.Project.File())
		return nil, true, nil
	}
	return func(ctx context.Context, p loop.Place, r run.Record) (loop.Checked, error) {
		v, err := verify.New(ctx, a.verifyOptions(home, trust, p.Dir))
		if err != nil {
			return loop.Checked{}, err
		}
		res, err := v.Run(ctx, verify.Request{
			Trigger: verify.Manual, Session: r.SessionID, Client: r.Client, Run: r.ID, Wishes: wishes, Base: p.Base,
			Regressions: home.Settings.Gates.Off("regressions", nil) == "",
		})
		if err != nil {
			return loop.Checked{}, err
		}
		return verified(res), nil
	}, false, nil
}

func verified(r *verify.Result) loop.Checked {
	c := loop.Checked{Gate: core.GatePassed, ID: r.ID}
	switch r.Status {
	case verify.Passed:
		c.Text = r.Excused()
		return c
	case verify.Skipped:
		c.Gate = core.GateNone
		return c
	}
	c.Gate = core.GateFailed
	var b strings.Builder
	fmt.Fprintf(&b, "verification %s: %s\n", r.ID, r.Status)
	for _, i := range r.Blocking() {
		fmt.Fprintf(&b, "- %s %s: %s\n", i.Gate, i.Check, i.Message)
	}
	for _, ch := range r.Checks {
		for _, line := range ch.Lines[:min(len(ch.Lines), 10)] {
			fmt.Fprintf(&b, "  %s: %s\n", ch.Name, line)
		}
	}
	c.Text = strings.TrimSpace(b.String())
	return c
}

// loopPlaces is where items are worked on.
func (a *App) loopPlaces(ctx context.Context, home *config.Home, dir string, f *loopFlags, workers int, check func(context.Context, loop.Place, run.Record) (loop.Checked, error)) (loop.Places, error) {
	// One that is cut off in the middle leaves half of it in a person's checkout, and files that are
	// large or filtered take their time.
	opts := git.Options{Vars: a.Env.Vars, Local: 15 * time.Minute}
	root := checkoutOf(home.Project)
	if err := a.noGitDir(ctx, root); err != nil {
		return nil, err
	}
	if err := a.ownRepository(ctx, root); err != nil {
		return nil, err
	}
	_, gitErr := git.New(root, opts).Run(ctx, "rev-parse", "--verify", "--quiet", "HEAD")
	if err := a.holdPrograms(ctx, dir, root, cmp.Or(f.integrate, home.Settings.Loop.Integrate) == loop.PullRequest); err != nil {
		return nil, err
	}
	opts.Programs = a.programs
	if f.inPlace || gitErr != nil {
		if f.integrate != "" && f.integrate != loop.KeepBranch {
			return nil, usagef("--integrate %s needs a branch of each item's own, and here there are none (--in-place, or the project is in no git repository with a commit): nothing is committed or merged", clipText(f.integrate, 40))
		}
		if workers > 1 {
			return nil, usagef("--workers %d need worktrees, and here there are none (--in-place, or the project is in no git repository with a commit): use one worker", workers)
		}
		if !f.inPlace {
			fmt.Fprintln(a.Err, "note: the project is in no git repository with a commit, so items are worked on in its own directory")
		}
		return &loop.InPlace{Dir: home.Project.Root, Top: root, Git: opts, Keep: filepath.Join(dir, "before")}, nil
	}
	if _, _, err := a.ensureState(ctx); err != nil {
		return nil, err
	}
	ws, err := a.Workspaces()
	if err != nil {
		return nil, err
	}
	if f.base != "" {
		if _, err := git.New(root, opts).Run(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", f.base+"^{commit}"); err != nil {
			return nil, usagef("--base %q is no commit of %s", clipText(f.base, 100), root)
		}
	}
	t := &loop.Worktrees{Workspaces: ws, Belongs: ws.Belongs, Git: opts, Root: root, Now: a.Env.Now, Base: f.base, Carry: carried(home), Integrate: cmp.Or(f.integrate, home.Settings.Loop.Integrate)}
	if t.Sweep, err = a.sweepRuns(); err != nil {
		return nil, err
	}
	if !slices.Contains([]string{loop.KeepBranch, loop.MergeBranch, loop.PullRequest}, t.Integrate) {
		return nil, usagef("--integrate %q is none of keep, merge, pr", clipText(t.Integrate, 40))
	}
	if check != nil {
		t.Check = func(ctx context.Context, p loop.Place) (loop.Checked, error) { return check(ctx, p, run.Record{}) }
	}
	if t.Integrate == loop.MergeBranch {
		if t.Into = f.into; t.Into == "" {
			if t.Into, err = git.New(root, opts).Branch(ctx); err != nil {
				return nil, usagef("--integrate merge needs a branch to merge into, and the main checkout is on none: `git switch` to one, or use --integrate keep")
			}
		}
	}
	if t.Integrate == loop.MergeBranch {
		if err := t.Mergeable(ctx); err != nil {
			return nil, usagef("--integrate merge: %s", err)
		}
	}
	if t.Integrate == loop.PullRequest {
		if t.GH = a.pullRequest(); t.GH == nil {
			return nil, exitWith(ExitUsage, errors.New("--integrate pr needs the gh program, and that is not in PATH; install it, or keep the branches (--integrate keep)"))
		}
	}
	return t, nil
}

// shownText is what happens in a loop, for who looks on.
func shownText(style term.Style, l *report.Line) string {
	return fmt.Sprintf("%s %s: %s", style.Dim(l.At.Local().Format("15:04:05")), style.Bold(term.SafeLine(l.Subject())), firstLine(l.Text, 400))
}

// lineText is a line of the audit for people.
func lineText(style term.Style, l loop.Line) string {
	who := "loop"
	if l.Worker > 0 {
		who = fmt.Sprintf("worker %d", l.Worker)
	}
	return fmt.Sprintf("%s %s %s %s", style.Dim(l.At.Local().Format("15:04:05")), style.Dim(fmt.Sprintf("%-9s", who)), l.Op, firstLine(strings.TrimSpace(l.Item+" "+l.Text), 400))
}

// sweepRuns stops what is left of runs that have ended.
func (a *App) sweepRuns() (func(context.Context) error, error) {
	runs, err := a.Runs()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		_, err := runs.Sweep(ctx)
		return err
	}, nil
}
