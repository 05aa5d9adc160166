package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"reprise/internal/memory"
	"reprise/internal/proc"
	"reprise/internal/task"
	"reprise/internal/term"
)

// sessionFlow is the work at tasks inside a session: a person's client, or an agent of
// it, does what a run would do elsewhere.
func (a *App) sessionFlow(ctx context.Context, noCommit bool) (*task.Flow, task.Want, error) {
	flow, err := a.taskFlow(ctx, flowFlags{noCommit: noCommit})
	if err != nil {
		return nil, task.Want{}, err
	}
	home, err := a.Home()
	if err != nil {
		return nil, task.Want{}, err
	}
	var w task.Want
	if s := a.clientSession(a.Now().Add(-turnAtMost))(ctx); s != "" {
		w.By = "client:" + s
	}
	if home.Project.Root != home.Project.InMain() {
		w.Place = home.Project.Root
	}
	return flow, w, nil
}

func newTaskBeginCmd(app *App) *cobra.Command {
	var phase int
	var asJSON bool
	cmd := &cobra.Command{
		Use: "begin N|review [OPERATION] [FOCUS]", Args: cobra.MinimumNArgs(1), Short: "Begin a step that you do yourself: print what is to be done",
		Long: `Begin a step of task N (research, plan, revise or implement), or a review, that is done
here and not by a run: the task is in progress, and what has to be done is printed, with
the place to write to and the form of the answer. ` + "`reprise task finish`" + ` ends it.`,
		Example: `  reprise task begin 12 research
  reprise task begin 12 implement --phase 2 --json
  reprise task begin review internal/guard`,
		RunE: func(cmd *cobra.Command, args []string) error {
			flow, w, err := app.sessionFlow(cmd.Context(), false)
			if err != nil {
				return err
			}
			if args[0] == task.OpReview {
				w.Op, w.Focus = task.OpReview, strings.Join(args[1:], " ")
			} else {
				if len(args) < 2 || !slices.Contains(task.Operations(), args[1]) {
					return usagef("name the step after the task's number: %s", strings.Join(task.Operations(), ", "))
				}
				if w.Number, err = taskNumber(args[0]); err != nil {
					return err
				}
				w.Op, w.Phase, w.Focus = args[1], phase, strings.Join(args[2:], " ")
			}
			b, err := flow.Begin(cmd.Context(), w)
			if err != nil {
				return flowError(err)
			}
			if asJSON {
				return printJSON(app.Out, b)
			}
			fmt.Fprint(app.Out, term.SafeText(b.Prompt))
			return nil
		},
	}
	cmd.Flags().IntVar(&phase, "phase", 0, "`PHASE` of the plan (default: the first that is not completed)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print all that is known of it, for programs")
	return cmd
}

func newTaskFinishCmd(app *App) *cobra.Command {
	var asJSON, skip bool
	cmd := &cobra.Command{
		Use: "finish SESSION", Args: cobra.ExactArgs(1), Short: "End a step that was begun here, by the agent's last message on standard input",
		Long: `End the step of the session sess_… that ` + "`reprise task begin`" + ` began: what standard input
holds is checked as the answer of a run is, what was written is filed, statuses move, and
all of it is committed. An answer that is not in order is refused once.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			flow, _, err := app.sessionFlow(cmd.Context(), skip)
			if err != nil {
				return err
			}
			text, err := readInput(cmd.Context(), app, "answer", task.MaxAnswer)
			if err != nil {
				return err
			}
			r, err := flow.Finish(cmd.Context(), args[0], text)
			if err != nil {
				return flowError(err)
			}
			return app.showSteps([]task.StepResult{r}, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print how it went for programs")
	noCommit(cmd, &skip)
	return cmd
}

func newTaskCancelCmd(app *App) *cobra.Command {
	var status string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "cancel SESSION [REASON]", Args: cobra.MinimumNArgs(1), Short: "Give up a step that was begun here",
		RunE: func(cmd *cobra.Command, args []string) error {
			flow, _, err := app.sessionFlow(cmd.Context(), false)
			if err != nil {
				return err
			}
			r, err := flow.Cancel(cmd.Context(), args[0], status, strings.Join(args[1:], " "))
			if err != nil {
				return flowError(err)
			}
			if asJSON {
				return printJSON(app.Out, r)
			}
			if r.Before {
				return exitWith(ExitConflict, fmt.Errorf("the step of %s ended before, %s: nothing is changed", args[0], r.Status))
			}
			fmt.Fprintf(app.Out, "%s was given up; the task is %s\n", args[0], cmpWords(r.Task))
			return nil
		},
	}
	cmd.Flags().StringVar(&status, "status", "failed", "how far it came: failed, partial or blocked")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print how it went for programs")
	offer(cmd, "status", "failed", "partial", "blocked")
	return cmd
}

func cmpWords(s task.Status) string {
	if s == "" {
		return "none of the list"
	}
	return s.Words()
}

func newTaskDepsCmd(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "deps", Args: cobra.NoArgs, Short: "Propose what tasks should wait for, by the files that their plans touch",
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := app.loadTasks(cmd.Context())
			if err != nil {
				return err
			}
			list := b.Proposals()
			if asJSON {
				return printJSON(app.Out, append([]task.Proposal{}, list...))
			}
			for _, p := range list {
				on := append(slices.Clone(b.State.Tasks[p.Number].DependsOn), p.On)
				fmt.Fprintf(app.Out, "task %d should wait for task %d: both touch %s\n  reprise task edit %d --depends-on %s\n",
					p.Number, p.On, term.SafeLine(clipText(strings.Join(p.Files, ", "), 200)), p.Number, strings.ReplaceAll(numbersText(on), " ", ""))
			}
			if len(list) == 0 {
				fmt.Fprintln(app.Err, "no two plans touch the same file, but those of tasks that wait for each other already")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print them for programs")
	return cmd
}

// taskDesk are the tasks of the project, for tools. What the app opens once it opens for
// one at a time, so that one call waits for another.
type taskDesk struct {
	app   *App
	owner *proc.ID // the client, as far as it can be told
	mu    sync.Mutex
}

// taskAccess is what this process may do with tasks: a run does what it was started for,
// and the program that started it moves the tasks.
func (a *App) taskAccess() memory.Access {
	if a.Env.Get(proc.RunIDVar) != "" {
		return memory.ReadAccess
	}
	return memory.FullAccess
}

func (a *App) newTaskDesk() *taskDesk {
	d := &taskDesk{app: a}
	if id, err := proc.Identify(os.Getppid()); err == nil {
		d.owner = &id
	}
	return d
}

// Load is the list as it stands.
func (d *taskDesk) Load(ctx context.Context) (*task.Board, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.app.loadTasks(ctx)
}

// Change changes the list, and commits it.
func (d *taskDesk) Change(ctx context.Context, message func(*task.Board) string, fn func(*task.Board) error) (*task.Board, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.app.changeTasks(ctx, taskChange{message: message}, fn)
}

// Begin begins a step for the client that this process works for.
func (d *taskDesk) Begin(ctx context.Context, w task.Want) (b task.Brief, err error) {
	err = d.with(ctx, func(flow *task.Flow, own task.Want) error {
		w.By, w.Place, w.Owner = own.By, own.Place, d.owner
		b, err = flow.Begin(ctx, w)
		return err
	})
	return b, err
}

// Finish ends a step by its agent's answer.
func (d *taskDesk) Finish(ctx context.Context, session, answer string) (r task.StepResult, err error) {
	err = d.with(ctx, func(flow *task.Flow, _ task.Want) error {
		r, err = flow.Finish(ctx, session, answer)
		return err
	})
	return r, err
}

// Cancel gives a step up.
func (d *taskDesk) Cancel(ctx context.Context, session, status, reason string) (r task.StepResult, err error) {
	err = d.with(ctx, func(flow *task.Flow, _ task.Want) error {
		r, err = flow.Cancel(ctx, session, status, reason)
		return err
	})
	return r, err
}

// Failures are what went wrong, with what events tell of it.
func (d *taskDesk) Failures(ctx context.Context) (*task.Failures, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.app.drawnFailures(ctx)
}

func (d *taskDesk) with(ctx context.Context, fn func(*task.Flow, task.Want) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	flow, own, err := d.app.sessionFlow(ctx, false)
	if err != nil {
		return err
	}
	return fn(flow, own)
}
