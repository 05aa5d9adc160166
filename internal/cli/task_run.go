package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/agent"
	"reprise/internal/config"
	"reprise/internal/run"
	"reprise/internal/task"
	"reprise/internal/term"
	"reprise/internal/verify"
)

// flowFlags are those of commands that have an agent work at a task.
type flowFlags struct {
	agent, script, model string
	timeout              time.Duration
	noCommit, noVerify   bool
	asJSON               bool
	parallel             int // phases and tasks side by side; 0 or 1: one after the other
}

func (f *flowFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.agent, "agent", "", "`CLIENT` to start (default: the language's, else sub_agent.agent of the settings)")
	fl.StringVar(&f.script, "agent-script", "", "`FILE` of steps for the script client")
	fl.StringVar(&f.model, "model", "", "`MODEL`, as the client spells it")
	fl.DurationVar(&f.timeout, "timeout", 0, "longest `TIME` of one step (default: research 1h, plan 30m, a phase 2h)")
	fl.BoolVar(&f.asJSON, "json", false, "print how it went for programs")
	noCommit(cmd, &f.noCommit)
	offer(cmd, "agent", "claude", "codex", "gemini", "copilot", "script")
}

// taskFlow is the work at tasks of the project around the working directory.
func (a *App) taskFlow(ctx context.Context, f flowFlags) (*task.Flow, error) {
	if f.agent != "" {
		if err := loopClient(f.agent); err != nil {
			return nil, err
		}
	}
	store, project, err := a.Tasks()
	if err != nil {
		return nil, err
	}
	runs, err := a.Runs()
	if err != nil {
		return nil, err
	}
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	routes, servers, err := a.taskRoutes(home)
	if err != nil {
		return nil, err
	}
	flow := &task.Flow{
		Store: store, Root: project.InMain(), Runs: runs, Now: a.Env.Now, Routes: routes, Server: servers,
		Client: f.agent, Model: f.model, Tools: home.Settings.Loop.AllowedTools, Timeout: f.timeout,
		From:     task.ParsePath(a.Env.Get(task.PathVar)),
		Changed:  func(ctx context.Context, b *task.Board) { a.tasksChanged(ctx, project.Name, b.Changes) },
		Say:      func(format string, args ...any) { fmt.Fprintln(a.Err, term.SafeLine(fmt.Sprintf(format, args...))) },
		Prebuild: a.prebuild,
	}
	worker := a.newWorker(home)
	flow.Configure = func(r *run.Request) error {
		r.Client = cmp.Or(r.Client, home.Settings.SubAgent.Agent)
		return worker.configure(r)
	}
	flow.Able = func(ctx context.Context, client string) error {
		client = cmp.Or(client, home.Settings.SubAgent.Agent)
		if client == agent.KindScript {
			return nil // it is this program
		}
		_, _, err := runs.Client(ctx, run.Request{Client: client})
		return err
	}
	if !f.asJSON { // whole tasks take hours: each step is told as it ends
		flow.Ended = a.showStep
	}
	if f.script != "" {
		flow.Script = a.abs(f.script)
		if flow.Client == "" {
			flow.Client = "script"
		}
	}
	if !f.noCommit {
		flow.Commit = func(ctx context.Context, dir, message string, files []string) {
			if err := a.commitTasks(ctx, store, dir, message, files); err != nil {
				fmt.Fprintf(a.Err, "note: %v\n", err)
			}
		}
	}
	if !f.noVerify {
		flow.Verify = a.verifyPhase
	}
	if f.parallel > 1 {
		if flow.Places, err = a.taskPlaces(ctx, home, f.noVerify); err != nil {
			return nil, err
		}
	}
	return flow, nil
}

// verifyPhase runs the project's checks after a phase. Where there are none, or none
// that the user approved, nothing is said to have failed.
func (a *App) verifyPhase(ctx context.Context, dir, profile string) (string, error) {
	home, trust, wishes, err := verifyAsked(a, profile)
	if errors.Is(err, verify.ErrNoChecks) {
		fmt.Fprintln(a.Err, "checks: the project has none, so nothing was checked (`reprise verify explain` says where they are looked for)")
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if !trust.Approved {
		return "", notTrusted(home)
	}
	v, err := verify.New(ctx, a.verifyOptions(home, trust, dir))
	if err != nil {
		return "", err
	}
	r, err := v.Run(ctx, verify.Request{Trigger: verify.TaskPhase, Wishes: wishes})
	if err != nil {
		return "", err
	}
	fmt.Fprintf(a.Err, "checks: %s (`reprise verify show %s`)\n", term.SafeLine(checksLine(r.Checks)), r.ID)
	if r.Status == verify.Passed {
		return "", nil
	}
	var said []string
	for _, c := range r.Checks {
		if c.Status != verify.Passed && c.Level == "required" {
			said = append(said, fmt.Sprintf("%s %s %s", c.Name, c.Status, strings.Join(c.Lines[:min(len(c.Lines), 3)], " / ")))
		}
	}
	return fmt.Sprintf("%s (`reprise verify show %s` has the rest)", strings.Join(said, "; "), r.ID), nil
}

// checksLine says in a line how checks went.
func checksLine(list []verify.CheckResult) string {
	var said []string
	for _, c := range list {
		s := fmt.Sprintf("%s %s", c.Name, c.Status)
		if c.Level != "required" {
			s += ", advisory"
		}
		said = append(said, s)
	}
	return cmp.Or(strings.Join(said, "; "), "none ran")
}

// stepCommand is a command that has one agent do one step of a task.
func stepCommand(app *App, use, short string, do func(ctx context.Context, f *task.Flow, n int, focus string) (task.StepResult, error)) *cobra.Command {
	var f flowFlags
	cmd := &cobra.Command{
		Use: use, Args: cobra.MinimumNArgs(1), Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := taskNumber(args[0])
			if err != nil {
				return err
			}
			flow, err := app.taskFlow(cmd.Context(), f)
			if err != nil {
				return err
			}
			r, err := do(cmd.Context(), flow, n, strings.Join(args[1:], " "))
			return app.showFlow([]task.StepResult{r}, err, f.asJSON)
		},
	}
	f.add(cmd)
	return cmd
}

func newTaskResearchCmd(app *App) *cobra.Command {
	cmd := stepCommand(app, "research N [FOCUS]", "Have an agent look into a task, and file its report",
		func(ctx context.Context, f *task.Flow, n int, focus string) (task.StepResult, error) {
			return f.Research(ctx, n, focus)
		})
	cmd.Long = `Have an agent look into task N, above all at FOCUS, and file what it found as
specs/NNN_slug/reports/research-NNN.md. The task is then researched. An agent that
ends without a report, or says that it failed, leaves the task as it was.`
	return cmd
}

func newTaskPlanCmd(app *App) *cobra.Command {
	return stepCommand(app, "plan N [FOCUS]", "Have an agent plan a task in phases",
		func(ctx context.Context, f *task.Flow, n int, focus string) (task.StepResult, error) {
			return f.Plan(ctx, n, false, focus)
		})
}

func newTaskReviseCmd(app *App) *cobra.Command {
	return stepCommand(app, "revise N [WHY]", "Have an agent write a task's plan anew; the old one stays beside it",
		func(ctx context.Context, f *task.Flow, n int, focus string) (task.StepResult, error) {
			return f.Plan(ctx, n, true, focus)
		})
}

func newTaskImplementCmd(app *App) *cobra.Command {
	var f flowFlags
	var phase int
	var all, parallel bool
	cmd := &cobra.Command{
		Use: "implement N", Args: cobra.ExactArgs(1), Short: "Have an agent carry out the next phase of a task's plan, or all of them",
		Long: `Have an agent carry out the first phase of the plan of task N that is not completed,
check the project after it (` + "`reprise verify`" + `), and commit what it changed. With
--all-phases go on until one is not completed. With --parallel phases that do not wait for
each other (a plan says so) are worked at side by side, each in a worktree of its own, and
brought back one after the other, with the checks run on the merge. What was left in the
middle is taken up where it was left.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := taskNumber(args[0])
			if err != nil {
				return err
			}
			if f.parallel, err = app.sideBySide(parallel); err != nil {
				return err
			}
			flow, err := app.taskFlow(cmd.Context(), f)
			if err != nil {
				return err
			}
			app.noteMain(flow)
			var list []task.StepResult
			if parallel {
				list, err = flow.Phases(cmd.Context(), n, f.parallel)
			} else {
				list, err = flow.Implement(cmd.Context(), n, phase, all)
			}
			return app.showFlow(list, err, f.asJSON)
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&phase, "phase", 0, "only this `PHASE`")
	cmd.Flags().BoolVar(&all, "all-phases", false, "go on with the phases after it")
	cmd.Flags().BoolVar(&f.noVerify, "no-verify", false, "do not run the project's checks after a phase")
	cmd.Flags().BoolVar(&parallel, "parallel", false, "all phases, those that do not wait for each other side by side (tasks.parallel of them)")
	cmd.MarkFlagsMutuallyExclusive("phase", "all-phases")
	cmd.MarkFlagsMutuallyExclusive("phase", "parallel")
	return cmd
}

// sideBySide is how many phases or tasks are worked at at once.
func (a *App) sideBySide(parallel bool) (int, error) {
	if !parallel {
		return 1, nil
	}
	home, err := a.Home()
	if err != nil {
		return 0, err
	}
	return home.Settings.Tasks.Parallel, nil
}

// showFlow ends the program by how steps went, of which a person was told as they ended,
// and says what kept further ones from being begun.
func (a *App) showFlow(list []task.StepResult, err error, asJSON bool) error {
	list = slices.DeleteFunc(list, func(r task.StepResult) bool { return r.Status == "" }) // none was done
	if asJSON && (err == nil || len(list) > 0) {
		if perr := printJSON(a.Out, list); perr != nil {
			return perr
		}
	}
	if err != nil {
		return flowError(err)
	}
	return exitWithCode(codeOf(list))
}

func newTaskReviewCmd(app *App) *cobra.Command {
	var f flowFlags
	cmd := &cobra.Command{
		Use: "review [SCOPE]", Short: "Have an agent look through the project, and make tasks of what it finds",
		Long: `Have an agent look through the project, or what of it SCOPE names (a directory, a
subject), and file its report as specs/reviews/review-NNN.md. Each finding becomes a task
of its severity, unless there is one of that name already.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			flow, err := app.taskFlow(cmd.Context(), f)
			if err != nil {
				return err
			}
			app.noteMain(flow)
			r, err := flow.Review(cmd.Context(), strings.Join(args, " "))
			return app.showFlow([]task.StepResult{r}, err, f.asJSON)
		},
	}
	f.add(cmd)
	return cmd
}

// noteMain tells who gives a command in a linked worktree that the work is done elsewhere.
func (a *App) noteMain(f *task.Flow) {
	home, err := a.Home()
	if err != nil || home.Project == nil || home.Project.Root == f.Root {
		return
	}
	branch, _ := config.CodeHead(f.Root)
	fmt.Fprintf(a.Err, "note: phases are worked at in the main checkout, %s, on %s\n", f.Root, cmp.Or(branch, "no branch"))
}

// flowError gives an error of a step its exit code.
func flowError(err error) error {
	if errors.Is(err, run.ErrBadRequest) {
		return exitWith(ExitUsage, err)
	}
	var deep *task.DelegationError
	if errors.As(err, &deep) || errors.Is(err, run.ErrRefused) {
		return exitWith(ExitConflict, err)
	}
	return taskError(err)
}

func codeOf(list []task.StepResult) int {
	if slices.ContainsFunc(list, func(r task.StepResult) bool { return r.Status != "completed" }) {
		return ExitFailure
	}
	return ExitOK
}

// showSteps says how steps went, and ends the program by it.
func (a *App) showSteps(list []task.StepResult, asJSON bool) error {
	if asJSON {
		return a.showFlow(list, nil, true)
	}
	for _, r := range list {
		a.showStep(r)
	}
	return exitWithCode(codeOf(list))
}

// showStep says how a step went.
func (a *App) showStep(r task.StepResult) {
	style := a.Style()
	what := r.Op
	if r.Phase > 0 {
		what = fmt.Sprintf("%s phase %d", what, r.Phase)
	}
	colour := style.Yellow
	if r.Status == "completed" {
		colour = style.Green
	}
	if r.Number > 0 {
		what = fmt.Sprintf("task %d: %s", r.Number, what)
	}
	fmt.Fprintf(a.Out, "%s %s", what, colour(r.Status))
	if r.Reason != "" {
		fmt.Fprintf(a.Out, ": %s", term.SafeLine(r.Reason))
	}
	fmt.Fprintln(a.Out)
	if r.Summary != "" {
		fmt.Fprint(a.Out, indent(term.SafeText(r.Summary), "  "))
		fmt.Fprintln(a.Out)
	}
	for _, f := range r.Files {
		fmt.Fprintf(a.Out, "  %s\n", term.SafeLine(f))
	}
	if len(r.Made) > 0 {
		fmt.Fprintf(a.Out, "  tasks: %s\n", numbersText(r.Made))
	}
	if r.Next != "" {
		fmt.Fprintf(a.Out, "  next: %s\n", term.SafeLine(r.Next))
	}
	if how := r.Recovery(); how != "" {
		fmt.Fprintf(a.Out, "  %s\n", how)
	}
}
