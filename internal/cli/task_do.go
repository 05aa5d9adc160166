package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/event"
	"reprise/internal/redact"
	"reprise/internal/task"
	"reprise/internal/term"
)

func newTaskEditCmd(app *App) *cobra.Command {
	var d draftFlags
	var status string
	var c taskChange
	cmd := &cobra.Command{
		Use: "edit N", Args: cobra.ExactArgs(1), Short: "Change a task's fields or its status",
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := taskNumber(args[0])
			if err != nil {
				return err
			}
			draft := d.draft(cmd)
			var to task.Status
			if status != "" {
				var ok bool
				if to, ok = task.ParseStatus(status); !ok {
					return usagef("--status %q is none of %s", clipText(status, 40), statusWords())
				}
			}
			if draft == (task.Draft{}) && to == "" {
				return usagef("nothing to change: name what with --title, --status, --priority, --language, --effort or --depends-on")
			}
			c.message = func(*task.Board) string { return fmt.Sprintf("task %d: edit", n) }
			b, err := app.changeTasks(cmd.Context(), c, func(b *task.Board) error {
				if err := b.Edit(n, draft); err != nil || to == "" {
					return err
				}
				return b.SetStatus(n, to, "")
			})
			if err == nil {
				t := b.State.Tasks[n]
				fmt.Fprintf(app.Out, "task %d is changed: %s (%s)\n", n, term.SafeLine(t.Title), t.Status.Words())
			}
			return err
		},
	}
	d.add(cmd)
	cmd.Flags().StringVar(&d.title, "title", "", "what it is called; its folder keeps its name")
	cmd.Flags().StringVar(&status, "status", "", "`STATUS`: "+statusWords())
	noCommit(cmd, &c.noCommit)
	offer(cmd, "status", strings.Split(statusWords(), ", ")...)
	return cmd
}

// statusCommand is a command that gives a task a status.
func statusCommand(app *App, use, short, done string, args cobra.PositionalArgs, do func(b *task.Board, n int, words string) error) *cobra.Command {
	var c taskChange
	cmd := &cobra.Command{
		Use: use, Args: args, Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := taskNumber(args[0])
			if err != nil {
				return err
			}
			c.message = func(b *task.Board) string {
				if b.State.Tasks[n] == nil {
					return ""
				}
				return fmt.Sprintf("task %d: %s", n, done)
			}
			b, err := app.changeTasks(cmd.Context(), c, func(b *task.Board) error { return do(b, n, strings.Join(args[1:], " ")) })
			if err != nil {
				return err
			}
			fmt.Fprintf(app.Out, "task %d is %s\n", n, b.State.Tasks[n].Status.Words())
			return nil
		},
	}
	noCommit(cmd, &c.noCommit)
	return cmd
}

func newTaskBlockCmd(app *App) *cobra.Command {
	return statusCommand(app, "block N REASON", "Say that a task cannot go on, and why; `recover` takes it up again", "blocked", cobra.MinimumNArgs(2),
		func(b *task.Board, n int, words string) error { return b.SetStatus(n, task.Blocked, words) })
}

func newTaskAbandonCmd(app *App) *cobra.Command {
	return statusCommand(app, "abandon N [REASON]", "Give a task up; `recover` takes it up again", "abandoned", cobra.MinimumNArgs(1),
		func(b *task.Board, n int, words string) error { return b.SetStatus(n, task.Abandoned, words) })
}

func newTaskRecoverCmd(app *App) *cobra.Command {
	return statusCommand(app, "recover N", "Take a task up again that is blocked, has ended, or was left in the middle", "recovered", cobra.ExactArgs(1),
		func(b *task.Board, n int, _ string) error { return b.Recover(n) })
}

func newTaskPhaseCmd(app *App) *cobra.Command {
	var status, reason string
	var c taskChange
	cmd := &cobra.Command{
		Use: "phase N PHASE", Args: cobra.ExactArgs(2), Short: "Say how far a phase of a task's plan is",
		Long: `Give a phase of a task's plan another status, in the plan and, where it follows, in
the list: the task is in progress with its first phase and completed with its last.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := taskNumber(args[0])
			if err != nil {
				return err
			}
			phase, err := taskNumber(args[1])
			if err != nil {
				return usagef("%q is no number of a phase", clipText(args[1], 40))
			}
			to, ok := task.ParseStatus(status)
			if !ok {
				return usagef("--status %q is none of %s", clipText(status, 40), statusWords())
			}
			title := ""
			c.message = func(b *task.Board) string {
				if to != task.Completed || b.State.Tasks[n] == nil {
					return ""
				}
				return task.Message(b.State.Tasks[n], task.OpImplement, phase, title)
			}
			b, err := app.changeTasks(cmd.Context(), c, func(b *task.Board) error {
				t, err := b.Task(n)
				if err != nil {
					return err
				}
				p, _, err := b.Plan(t)
				if err != nil {
					return err
				}
				if ph := p.Phase(phase); ph != nil {
					title = ph.Title
				}
				_, err = b.SetPhase(n, phase, to, reason)
				return err
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(app.Out, "phase %d of task %d is %s; the task is %s\n", phase, n, to.Words(), b.State.Tasks[n].Status.Words())
			return nil
		},
	}
	cmd.Flags().StringVar(&status, "status", string(task.Completed), "`STATUS`: "+statusWords())
	cmd.Flags().StringVar(&reason, "reason", "", "why it is blocked or partial")
	noCommit(cmd, &c.noCommit)
	offer(cmd, "status", strings.Split(statusWords(), ", ")...)
	return cmd
}

func newTaskCheckCmd(app *App) *cobra.Command {
	var fix, asJSON bool
	cmd := &cobra.Command{
		Use: "check", Args: cobra.NoArgs, Short: "Say where TODO.md and state.json disagree (then it ends with 1), or put it right",
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, project, err := app.Tasks()
			if err != nil {
				return err
			}
			look := store.Check
			if fix {
				look = store.Fix
			}
			r, err := look(cmd.Context())
			if err != nil {
				return taskError(err)
			}
			if fix {
				app.tasksChanged(cmd.Context(), project.Name, r.Changes)
			}
			if asJSON {
				if err := printJSON(app.Out, r); err != nil {
					return err
				}
			} else {
				printCheck(app, r)
			}
			if len(r.Left) > 0 {
				return exitWithCode(ExitFailure)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&fix, "fix", false, "put it right, and say which side was taken")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

func printCheck(app *App, r task.Report) {
	if r.Damaged != "" {
		fmt.Fprintf(app.Out, "state.json could not be read: it is now %s, and was made anew from TODO.md\n", r.Damaged)
	}
	for _, f := range r.Mended {
		fmt.Fprintf(app.Out, "put right, as %s says: %s\n", f.Took, term.SafeLine(f.String()))
	}
	for _, f := range r.Left {
		says := ""
		if f.Took != "" {
			says = "; the next change takes it from " + f.Took
		}
		fmt.Fprintf(app.Out, "%s%s\n", term.SafeLine(f.String()), says)
	}
	if r.Agrees() {
		fmt.Fprintln(app.Out, "TODO.md and state.json agree")
	}
}

func newTaskTodoCmd(app *App) *cobra.Command {
	var dry bool
	var c taskChange
	cmd := &cobra.Command{
		Use: "todo [N ...]", Short: "Archive tasks that have ended: their sections and folders go to specs/archive/",
		RunE: func(cmd *cobra.Command, args []string) error {
			var only []int
			for _, a := range args {
				n, err := taskNumber(a)
				if err != nil {
					return err
				}
				only = append(only, n)
			}
			var gone []*task.Task
			errDry := errors.New("dry run")
			c.message = func(*task.Board) string { return task.TodoMessage(gone) }
			_, err := app.changeTasks(cmd.Context(), c, func(b *task.Board) (err error) {
				if gone, err = b.Archive(only...); err == nil && dry {
					return errDry
				}
				return err
			})
			if err != nil && !errors.Is(err, errDry) {
				return err
			}
			word := "archived"
			if dry {
				word = "would be archived"
			}
			for _, t := range gone {
				fmt.Fprintf(app.Out, "%s: task %d, %s (%s)\n", word, t.Number, term.SafeLine(t.Title), t.Status.Words())
			}
			if len(gone) == 0 {
				fmt.Fprintln(app.Out, "nothing has ended")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would be archived")
	noCommit(cmd, &c.noCommit)
	return cmd
}

func newTaskErrorsCmd(app *App) *cobra.Command {
	var asJSON, fix bool
	var kinds []string
	var c taskChange
	cmd := &cobra.Command{
		Use: "errors", Args: cobra.NoArgs, Short: "What went wrong, by kind and cause; whether fixes held; a task that fixes it",
		Long: `Draw what went wrong from the events of runs, checks, the loop and hooks into
specs/errors.json, and group what that holds by kind and cause: how often and since when,
and whether an earlier fix held. With --fix make a task whose plan has a phase for each
cause that is not fixed.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := app.drawnFailures(cmd.Context())
			if err != nil {
				return err
			}
			groups := slices.DeleteFunc(l.Groups(), func(g task.Group) bool { return len(kinds) > 0 && !slices.Contains(kinds, g.Type) })
			if !fix {
				if asJSON {
					return printJSON(app.Out, append([]task.Group{}, groups...))
				}
				return printErrors(app, groups)
			}
			open := task.OpenGroups(groups)
			if len(open) == 0 {
				fmt.Fprintln(app.Out, "nothing is left to fix")
				return nil
			}
			var made *task.Task
			c.message = func(*task.Board) string { return task.FixMessage(open, made.Number) }
			if _, err := app.changeTasks(cmd.Context(), c, func(b *task.Board) (err error) { made, err = b.FixPlan(open); return err }); err != nil {
				return err
			}
			fmt.Fprintf(app.Out, "task %d: %s, with a plan of %s\n", made.Number, term.SafeLine(made.Title), count(len(open), "phase"))
			fmt.Fprintf(app.Out, "`reprise task revise %d` has the error-analyst look for the causes and plan by them\n", made.Number)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print them for programs")
	cmd.Flags().BoolVar(&fix, "fix", false, "make a task with a plan for what is not fixed")
	cmd.Flags().StringSliceVar(&kinds, "type", nil, "only this `KIND`")
	noCommit(cmd, &c.noCommit)
	cmd.AddCommand(newTaskErrorsAddCmd(app))
	return cmd
}

// drawnFailures are what errors.json holds, with the failures that events tell of since
// it was looked at last. Where it cannot be written they are shown all the same.
func (a *App) drawnFailures(ctx context.Context) (*task.Failures, error) {
	store, _, err := a.Tasks()
	if err != nil {
		return nil, err
	}
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	b, err := store.Load(ctx)
	if err != nil {
		return nil, err
	}
	l, err := b.Failures()
	if err != nil {
		return nil, err
	}
	var list []event.Event
	for e, err := range event.ReadSince(home.EventsDir(), l.DrawFrom(a.Now())) {
		if err != nil {
			fmt.Fprintf(a.Err, "note: %v\n", err)
			continue
		}
		if e.Project == "" || e.Project == home.Project.Name {
			list = append(list, e)
		}
	}
	events := func(yield func(event.Event, error) bool) {
		for _, e := range list {
			if !yield(e, nil) {
				return
			}
		}
	}
	if n, err := l.Draw(events, a.Now()); err != nil || n == 0 {
		return l, err
	}
	_, err = store.Change(ctx, func(b *task.Board) error {
		fresh, err := b.Failures()
		if err == nil {
			_, err = fresh.Draw(events, a.Now())
			l = fresh
		}
		return err
	})
	if err != nil {
		fmt.Fprintf(a.Err, "note: what events tell of is shown, and not kept: %v\n", err)
	}
	return l, nil
}

func newTaskErrorsAddCmd(app *App) *cobra.Command {
	var f task.Failure
	cmd := &cobra.Command{
		Use: "add KIND MESSAGE", Args: cobra.ExactArgs(2), Short: "Note that something went wrong",
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.Severity != "" && !slices.Contains(task.Priorities, f.Severity) {
				return usagef("--severity %q: there are %s", clipText(f.Severity, 40), strings.Join(task.Priorities, ", "))
			}
			f.Type = args[0]
			f.Message, _ = redact.New().String(args[1])
			var noted *task.Failure
			_, err := app.changeTasks(cmd.Context(), taskChange{message: func(*task.Board) string { return "" }}, func(b *task.Board) error {
				l, err := b.Failures()
				if err == nil {
					noted = l.Record(f, app.Now())
				}
				return err
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(app.Out, "%s, seen %s\n", noted.ID, count(noted.Count, "time"))
			return nil
		},
	}
	cmd.Flags().IntVar(&f.Context.Task, "task", 0, "number of the `TASK` it happened at")
	cmd.Flags().IntVar(&f.Context.Phase, "phase", 0, "phase of its plan")
	cmd.Flags().StringVar(&f.Context.Command, "command", "", "what was being done: research, plan, implement, …")
	cmd.Flags().StringVar(&f.Context.Agent, "agent", "", "who did it")
	cmd.Flags().StringVar(&f.Context.Session, "session", "", "sess_… of the delegation")
	cmd.Flags().StringVar(&f.Severity, "severity", "", "critical, high, medium or low; by the kind where it is not given")
	offer(cmd, "severity", task.Priorities...)
	return cmd
}

func printErrors(app *App, groups []task.Group) error {
	if len(groups) == 0 {
		fmt.Fprintln(app.Err, "nothing went wrong so far")
		return nil
	}
	table := term.NewTable(app.Style(), "KIND", "TIMES", "LAST", "FIX", "MESSAGE").MaxWidth(app.Columns).AlignRight(1)
	for _, g := range groups {
		fix := strings.ReplaceAll(g.FixStatus, "_", " ")
		if g.FixTask > 0 {
			fix = fmt.Sprintf("%s (task %d)", fix, g.FixTask)
		}
		table.Row(g.Type, fmt.Sprint(g.Count), g.LastSeen.Local().Format("01-02 15:04"), fix, term.SafeLine(g.Message))
	}
	return table.Write(app.Out)
}
