package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/agent"
	"reprise/internal/clip"
	"reprise/internal/config"
	"reprise/internal/fleet"
	"reprise/internal/git"
	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/loop/report"
	"reprise/internal/proc"
	"reprise/internal/queue"
	"reprise/internal/relay"
	"reprise/internal/staterepo"
	"reprise/internal/term"
	machine "reprise/internal/worker"
)

type workerFlags struct {
	loopFlags
	name                   string
	projects, clients, can []string
}

func newWorkerCmd(app *App) *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use: "worker", Args: cobra.NoArgs, Short: "Work for projects of a fleet, in clones of this machine's own",
		Long: `Work on items of the queues of all projects that worker.projects of your settings
names, each in a clone that reprise makes and keeps (worker.directory). What is
made goes to the branch loop-ITEM of the remote, before the queue is told that it is
done, and is never forced. docs/fleet.md has the whole.

An item is taken where it fits: its client works here (worker.clients), the machine has
what its labels needs-X want (worker.can), and it has the labels that --label asks for.
The steps of tasks are left to the loop of the checkout in which the task is.

A worker is a loop that is unattended: what must be decided is set aside, and a client
with hooks is started only after it was seen that the guard's hook keeps it from what is
refused. Ceilings are those of a loop, for each project; Ctrl-C ends it gracefully, and
the next worker on this machine goes on with what a killed one has left.

Ends with 0 when all its loops came to their ends, 1 when one could not go on, 3 when no
project is named.`,
		Example: `  reprise worker
  reprise worker --workers 4 --can gpu --budget-usd 20`,
		Annotations: map[string]string{ownsSignals: "yes"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return runWorker(cmd.Context(), app, cmd, &f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.name, "name", "", "what this worker is called (default: worker.name, else the machine's name)")
	fl.StringArrayVar(&f.projects, "project", nil, "only for this `PROJECT` of worker.projects; may be repeated")
	fl.StringArrayVar(&f.clients, "client", nil, "a `CLIENT` that works here; may be repeated (default: worker.clients)")
	fl.StringArrayVar(&f.can, "can", nil, "`WHAT` this machine has, for labels needs-WHAT; may be repeated (default: worker.can)")
	fl.StringVar(&f.integrate, "integrate", "keep", "what becomes of a finished branch at the remote: keep it, or pr (a pull request, by gh)")
	f.bounds(cmd)
	offer(cmd, "client", config.RouteClients()...)
	offer(cmd, "integrate", "keep", "pr")
	cmd.AddCommand(newWorkerPrepareCmd(app), newWorkerListCmd(app))
	return cmd
}

func newWorkerPrepareCmd(app *App) *cobra.Command {
	var servers, history bool
	cmd := &cobra.Command{
		Use: "prepare [PROJECT ...]", Short: "Make this machine's clones, and what the servers of a fleet must have",
		Long: `Make the clones of worker.projects, or bring them forward, and say where each is: to look
at it, and to approve what its project's file asks for ("reprise trust" in it). Without
that a worker runs no checks of the project.

Where the settings name servers of a fleet, what its workers need there is made first, if
it is not there yet: the queue of each project, and what workers tell by. With --servers
that is all, for the projects that are named, or those of the settings: so an
administrator does it, where workers may not.

The fleet knows a project by the commits with which its history begins: another repository
of its name is refused. Where that history was written anew, --history has the clones of the
projects that are named tell the fleet with what it begins now.`,
		Example: `  reprise worker prepare`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if history && len(args) == 0 {
				return usagef("say of which projects: `reprise worker prepare --history PROJECT`")
			}
			if servers {
				return app.prepareServers(cmd.Context(), args)
			}
			home, list, err := app.workerProjects(args)
			if err != nil {
				return err
			}
			if home.Settings.Queue != config.QueueFiles {
				var names []string
				for _, p := range list {
					names = append(names, p.Name)
				}
				if err := app.prepareServers(cmd.Context(), names); err != nil {
					return err
				}
			}
			return app.prepareClones(cmd.Context(), home, list, history)
		},
	}
	cmd.Flags().BoolVar(&servers, "servers", false, "only what the servers of the fleet must have; no clones")
	cmd.Flags().BoolVar(&history, "history", false, "the histories of these projects were written anew")
	cmd.MarkFlagsMutuallyExclusive("servers", "history")
	return cmd
}

// prepareServers makes what the workers of projects need on the servers of the fleet.
func (a *App) prepareServers(ctx context.Context, projects []string) error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	if home.Settings.Queue == config.QueueFiles {
		return exitWith(ExitNotFound, errors.New("the settings name no servers of a fleet (queue: nats://host:port), so nothing is made there"))
	}
	if len(projects) == 0 {
		for _, p := range home.Settings.Worker.Projects {
			projects = append(projects, p.Name)
		}
	}
	if len(projects) == 0 {
		return usagef("say for which projects: `reprise worker prepare --servers PROJECT`")
	}
	conn, err := a.Fleet(ctx, "worker prepare")
	if err != nil {
		return err
	}
	for _, name := range projects {
		if err := config.CheckProjectName(name); err != nil {
			return exitWith(ExitUsage, err)
		}
		q, err := a.openFleetQueue(conn, name, proc.ID{})
		if err != nil {
			return err
		}
		if err := relay.Open(conn, name).Prepare(ctx); err != nil {
			return err
		}
		q.Close()
		fmt.Fprintf(a.Out, "%s: the servers have what its workers need\n", name)
	}
	return nil
}

// prepareClones makes clones, and says where they are.
func (a *App) prepareClones(ctx context.Context, home *config.Home, list []config.WorkerProject, anew bool) error {
	dir, err := a.clonesDir(home)
	if err != nil {
		return err
	}
	for _, p := range list {
		c := a.checkout(dir, p)
		c.Say = func(text string) { fmt.Fprintf(a.Err, "note: %s\n", term.SafeLine(clip.Line(text))) }
		branch, err := c.Ensure(ctx)
		if err != nil {
			return err
		}
		if home.Settings.Queue != config.QueueFiles {
			if err := a.oneHistory(ctx, p.Name, c.Dir, a.Hostname, anew); err != nil {
				return err
			}
		}
		fmt.Fprintf(a.Out, "%s  %s  %s\n", p.Name, term.SafeLine(branch), term.SafeLine(c.Dir))
		there, err := a.in(c.Dir, a.Err).projectNamed(p.Name)
		if err != nil {
			return err
		}
		if trust, err := there.Paths.Trust(there.Project); err == nil && !trust.Approved && !trust.Says.Verify.Empty() {
			fmt.Fprintf(a.Err, "note: the checks of %s are not approved; (cd %s && reprise trust)\n", p.Name, term.SafeLine(c.Dir))
		}
	}
	return nil
}

// workerProjects are those that this machine works for, or of them the ones that are named.
func (a *App) workerProjects(named []string) (*config.Home, []config.WorkerProject, error) {
	home, err := a.Home()
	if err != nil {
		return nil, nil, err
	}
	all := home.Settings.Worker.Projects
	if len(all) == 0 {
		return nil, nil, exitWith(ExitNotFound, errors.New("this machine works for no project: name those that it may clone in the settings, as worker: {projects: {NAME: {remote: git@example.org:team/NAME.git}}} (`reprise paths` says where they are)"))
	}
	var out []config.WorkerProject
	for _, name := range named {
		i := slices.IndexFunc(all, func(p config.WorkerProject) bool { return p.Name == name })
		if i < 0 {
			return nil, nil, exitWith(ExitNotFound, fmt.Errorf("worker.projects of the settings has no project %q, so it is not cloned here", clipText(name, 63)))
		}
		out = append(out, all[i])
	}
	if len(named) == 0 {
		out = all
	}
	return home, out, nil
}

func (a *App) checkout(dir string, p config.WorkerProject) *machine.Checkout {
	return &machine.Checkout{Project: p, Dir: filepath.Join(dir, p.Name), Git: git.Options{Vars: a.Env.Vars}, Now: a.Env.Now}
}

// clonesDir is where this machine's clones are.
func (a *App) clonesDir(home *config.Home) (string, error) {
	if dir := home.Settings.Worker.Directory; dir != "" {
		return dir, nil
	}
	user, err := a.Env.Home()
	if err != nil {
		return "", fmt.Errorf("find where clones go: %w; worker.directory of the settings can name a directory", err)
	}
	return filepath.Join(user, machine.DefaultDir), nil
}

// in is the program as if it had been started in another directory, with nothing to read
// and nobody to ask.
func (a *App) in(dir string, out io.Writer) *App {
	b := &App{
		In: strings.NewReader(""), Out: out, Err: out, Env: a.Env, Environ: a.Environ, Program: a.Program, Hostname: a.Hostname, PID: a.PID,
		ConfigFlag: a.ConfigFlag,
	}
	if a.ConfigFlag != "" {
		b.ConfigFlag = a.abs(a.ConfigFlag)
	}
	b.Env.Dir = dir
	return b
}

// projectNamed is the home in a clone, which must be that of the project.
func (a *App) projectNamed(name string) (*config.Home, error) {
	home, err := a.Home()
	switch {
	case err != nil:
		return nil, err
	case home.Project == nil:
		return nil, exitWith(ExitConflict, fmt.Errorf("%s is no project of reprise: make it one where people work on it (`reprise init --name %s`), and push .reprise/project.yaml", a.Env.Dir, name))
	case home.Project.Name != name:
		return nil, exitWith(ExitConflict, fmt.Errorf("worker.projects calls it %s, and %s calls itself %s: write that name into the settings", name, home.Project.File(), home.Project.Name))
	}
	return home, nil
}

// lineWriter has each write of many go out whole.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (l *lineWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// workerName is what this worker is called.
func (f *workerFlags) workerName(a *App, set config.Worker) (string, error) {
	name := cmp.Or(f.name, set.Name)
	if name == "" { // a machine's name may have what no key can
		host, _, _ := strings.Cut(a.Hostname, ".")
		name = strings.Map(func(r rune) rune {
			if config.IsWorkerName(string(r)) {
				return r
			}
			return '-'
		}, host)
		name = name[:min(len(name), 63)]
	}
	if !config.IsWorkerName(name) {
		return "", usagef("--name %q: use 1 to 63 letters, digits, '-' and '_'", clipText(name, 70))
	}
	return name, nil
}

func runWorker(ctx context.Context, app *App, cmd *cobra.Command, f *workerFlags) error {
	if err := noZero(cmd); err != nil {
		return err
	}
	if app.Env.Get(proc.RunIDVar) != "" {
		return exitWith(ExitConflict, errors.New("a run cannot start a worker: add items with `reprise queue add`"))
	}
	home, list, err := app.workerProjects(f.projects)
	if err != nil {
		return err
	}
	f.unattended = true
	if f.name, err = f.workerName(app, home.Settings.Worker); err != nil {
		return err
	}
	if !slices.Contains([]string{loop.KeepBranch, loop.PullRequest}, f.integrate) {
		return usagef("--integrate %q is neither keep nor pr: a worker leaves the main branch to people", clipText(f.integrate, 40))
	}
	for _, c := range f.clients {
		if !slices.Contains(config.RouteClients(), c) {
			return usagef("--client %q is none of %s", clipText(c, 40), strings.Join(config.RouteClients(), ", "))
		}
	}
	limits, err := f.limits(home.Settings.Loop)
	if err != nil {
		return err
	}
	log, err := app.Logger()
	if err != nil {
		return err
	}
	dir, err := app.clonesDir(home)
	if err != nil {
		return err
	}
	out, notes := &lineWriter{w: app.Out}, &lineWriter{w: app.Err}
	w := &fleetWorker{app: app, flags: f, limits: limits, out: out, notes: notes, many: len(list) > 1}
	if home.Settings.Queue != config.QueueFiles {
		defer w.disconnect()
		w.reach(ctx, time.Second)
		if err := w.named(ctx); err != nil {
			return err
		}
		w.teller = w.tell(ctx)
		defer w.teller.close()
	}
	ended := machine.Run(ctx, machine.Options{
		Projects: list, Slots: machine.NewSlots(f.workers), Once: f.untilEmpty, Log: log,
		Checkout: func(p config.WorkerProject) *machine.Checkout { return app.checkout(dir, p) },
		Build:    w.build,
		Say: func(project, text string) {
			fmt.Fprintf(notes, "note: %s: %s\n", project, term.SafeLine(clip.Line(text)))
		},
	}, app.stops(ctx))
	unable := false
	for _, e := range ended {
		if e.Err != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", e.Project, e.Err))
			continue
		}
		t := e.State.Tally
		fmt.Fprintf(app.Err, "%s: the work has ended (%s): %d done, %d tried again, %d given up, set aside %s, %s.\n",
			e.Project, firstLine(orDash(e.State.Reason), 300), t.Done, t.Failed, t.GivenUp, term.Plural(t.Parked, "time"), report.Cost(e.State.CostUSD, e.State.Untold))
		unable = unable || e.State.Unable
	}
	if errors.Is(err, loop.ErrRuns) {
		return exitWith(ExitConflict, err)
	}
	if err == nil && unable {
		return exitWithCode(ExitFailure)
	}
	return err
}

// fleetWorker makes the loops of a worker.
type fleetWorker struct {
	app        *App
	flags      *workerFlags
	limits     core.Limits
	out, notes io.Writer
	many       bool    // projects
	teller     *teller // nil where there is no fleet

	mu  sync.Mutex
	net *App // has the one connection of all projects to the fleet's servers; nil before it is needed
}

// connect lends a the worker's connection to the fleet's servers.
func (w *fleetWorker) connect(ctx context.Context, a *App) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.net == nil {
		w.net = w.app.in(w.app.Env.Dir, w.notes)
	}
	conn, err := w.net.Fleet(ctx, "worker")
	if err == nil {
		a.servers.conn, a.servers.lent = conn, true
	}
	return err
}

// reach waits for servers that are away when the worker starts, as it does for those that go
// away later: a machine may be up before its network, or before them. With --until-empty it
// does not, and whoever needs them says what is wrong.
func (w *fleetWorker) reach(ctx context.Context, wait time.Duration) {
	a := w.app.in(w.app.Env.Dir, w.notes)
	for {
		err := w.connect(ctx, a)
		if !errors.Is(err, fleet.ErrUnreachable) || w.flags.untilEmpty {
			return
		}
		fmt.Fprintf(w.notes, "note: %s; again in %s\n", term.SafeLine(clip.Line(err.Error())), wait)
		if pause(ctx, wait) != nil {
			return
		}
		wait = min(2*wait, time.Minute)
	}
}

// disconnect ends it.
func (w *fleetWorker) disconnect() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.net != nil {
		w.net.Close()
	}
}

// build makes the loop of a project in its clone.
func (w *fleetWorker) build(ctx context.Context, p config.WorkerProject, dir, branch string) (loop.Options, error) {
	a := w.app.in(dir, w.notes)
	home, err := a.projectNamed(p.Name)
	if err != nil {
		return loop.Options{}, err
	}
	if w.teller != nil {
		if err := w.connect(ctx, a); err != nil {
			return loop.Options{}, err
		}
		if err := a.oneHistory(ctx, p.Name, dir, w.flags.name, false); err != nil {
			return loop.Options{}, err
		}
	}
	clients := w.clients(a, home)
	if len(clients) == 0 {
		return loop.Options{}, exitWith(ExitNotFound, errors.New("no client works here: install one, or name those that do in worker.clients"))
	}
	if set := &home.Settings.SubAgent; !slices.Contains(clients, cmp.Or(set.Agent, agent.KindClaude)) {
		set.Agent = clients[0] // of items that name none
	}
	f := w.flags.loopFlags
	if f.elsewhere, err = w.elsewhere(a, home, p, branch, clients); err != nil {
		return loop.Options{}, err
	}
	_, loopDir, err := a.loopDir()
	if err != nil {
		return loop.Options{}, err
	}
	opt, err := a.loopOptions(ctx, home, loopDir, &f, w.limits)
	if err != nil {
		return opt, err
	}
	if w.teller != nil {
		if err := w.teller.add(ctx, a, p.Name, loopDir, &opt); err != nil {
			return opt, err
		}
	}
	if !f.quiet {
		style := w.app.Style()
		before := ""
		if w.many {
			before = style.Dim(p.Name) + " "
		}
		opt.Say = func(l report.Line) { fmt.Fprintln(w.out, before+shownText(style, &l)) }
	}
	return opt, nil
}

// clients are those that work here: the ones that are named, or that are found.
func (w *fleetWorker) clients(a *App, home *config.Home) []string {
	set := home.Settings
	named := w.flags.clients
	if len(named) == 0 {
		named = set.Worker.Clients
	}
	if len(named) > 0 {
		return named
	}
	var found []string
	for _, c := range config.RouteClients() {
		program := c
		if c == agent.KindClaude {
			program = set.ClaudeCLI.Path
		}
		if _, err := a.lookPath(program); err == nil && c != agent.KindScript || c == set.SubAgent.Agent {
			found = append(found, c)
		}
	}
	return found
}

// can is what is there to work with here.
func (w *fleetWorker) can(home *config.Home) []string {
	if len(w.flags.can) > 0 {
		return w.flags.can
	}
	return home.Settings.Worker.Can
}

// elsewhere makes the world of a loop that of a worker: which items fit, and branches and
// state that machines share.
func (w *fleetWorker) elsewhere(a *App, home *config.Home, p config.WorkerProject, branch string, clients []string) (func(context.Context, *loop.Options) error, error) {
	can := w.can(home)
	repo, _, err := a.ensureState(context.Background())
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, opt *loop.Options) error {
		trees, ok := opt.Places.(*loop.Worktrees)
		if !ok {
			return fmt.Errorf("%s has no commit that a worktree could begin at", a.Env.Dir)
		}
		if old, err := repo.Remote(ctx); err != nil {
			return stateError(err)
		} else if p.State != "" && old != p.State {
			if err := repo.SetRemote(ctx, p.State); err != nil {
				return stateError(err)
			}
		}
		trees.Base = machine.Origin + "/" + branch
		shared := &loop.Shared{Worktrees: trees, Remote: machine.Origin, Main: branch, Say: func(item, text string) {
			if item != "" {
				text = item + ": " + text
			}
			fmt.Fprintf(w.notes, "note: %s: %s\n", p.Name, term.SafeLine(clip.Line(text)))
		}}
		if p.State != "" {
			shared.State = func(ctx context.Context, out bool) error {
				direction := staterepo.Pull
				if out {
					direction = staterepo.Both
				}
				_, err := repo.Sync(ctx, direction)
				return err
			}
		}
		opt.Places = shared
		opt.Worker = w.flags.name
		fits := machine.Can{Clients: clients, Has: can, Of: func(it *queue.Item) string {
			return cmp.Or(it.Agent, opt.Route(*it).Client, opt.Client)
		}}
		opt.Fits = fits.Fits
		return nil
	}, nil
}
