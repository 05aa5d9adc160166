package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/event"
	"reprise/internal/hook"
	"reprise/internal/task"
	"reprise/internal/term"
)

func newTaskCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "task", Short: "The project's list of tasks: specs/TODO.md for people, specs/state.json for programs",
		Long: `Tasks stand in specs/TODO.md, which is yours to edit: a status, a priority, a new
heading without a number. The next of these commands understands what you did, and
keeps every other line as it is. ` + "`reprise task check`" + ` says where the two files
disagree.`,
		Example: `  reprise task new "Fix the login" --priority high --language go
  reprise task list
  reprise task block 3 "no access yet"`,
	}
	cmd.AddCommand(newTaskNewCmd(app), newTaskListCmd(app), newTaskShowCmd(app), newTaskEditCmd(app),
		newTaskResearchCmd(app), newTaskPlanCmd(app), newTaskReviseCmd(app), newTaskImplementCmd(app), newTaskReviewCmd(app), newTaskRunCmd(app),
		newTaskBeginCmd(app), newTaskFinishCmd(app), newTaskCancelCmd(app), newTaskDepsCmd(app),
		newTaskBlockCmd(app), newTaskAbandonCmd(app), newTaskRecoverCmd(app), newTaskPhaseCmd(app),
		newTaskCheckCmd(app), newTaskTodoCmd(app), newTaskErrorsCmd(app), newTaskMetaCmd(app), newTaskContextCmd(app))
	return cmd
}

// Tasks is the list of tasks of the project around the working directory. It lies in
// the project's main checkout: a linked worktree's specs/ is a copy of its branch.
func (a *App) Tasks() (*task.Store, *config.Project, error) {
	home, err := a.Home()
	if err != nil {
		return nil, nil, err
	}
	if home.Project == nil {
		return nil, nil, exitWith(ExitNotFound, a.noProject())
	}
	return a.taskStore(home.Project.InMain()), home.Project, nil
}

// loadTasks is the list as it stands, to be looked at.
func (a *App) loadTasks(ctx context.Context) (*task.Board, error) {
	store, _, err := a.Tasks()
	if err != nil {
		return nil, err
	}
	b, err := store.Load(ctx)
	return b, taskError(err)
}

// tasksOf loads the list of a project that has one, for a hook; nil where there is none.
func (a *App) tasksOf(home *config.Home) func(context.Context) (*task.Board, error) {
	return func(ctx context.Context) (*task.Board, error) {
		store := a.taskStore(home.Project.InMain())
		if _, err := os.Stat(store.Dir()); err != nil {
			return nil, nil
		}
		return store.Load(ctx)
	}
}

// taskChange is a change of the list with what follows it: events, and a commit.
type taskChange struct {
	message  func(*task.Board) string // of the commit; empty = none
	noCommit bool
}

func (a *App) changeTasks(ctx context.Context, c taskChange, fn func(*task.Board) error) (*task.Board, error) {
	store, project, err := a.Tasks()
	if err != nil {
		return nil, err
	}
	b, err := store.Change(ctx, fn)
	if err != nil {
		return nil, taskError(err)
	}
	for _, f := range b.Taken {
		fmt.Fprintf(a.Err, "note: taken over from TODO.md: %s\n", term.SafeLine(f.String()))
	}
	for _, f := range b.Problems {
		fmt.Fprintf(a.Err, "note: %s; `reprise task check --fix` puts it right\n", term.SafeLine(f.String()))
	}
	a.tasksChanged(ctx, project.Name, b.Changes)
	if msg := c.message(b); msg != "" && !c.noCommit && len(b.Changes) > 0 {
		return b, a.commitTasks(ctx, store, project.InMain(), msg, b.Files())
	}
	return b, nil
}

// taskError gives an error of the list its exit code.
func taskError(err error) error {
	var legal *task.TransitionError
	var draft *task.DraftError
	switch {
	case errors.As(err, &draft):
		return exitWith(ExitUsage, err)
	case errors.Is(err, task.ErrNoStep):
		return exitWith(ExitNotFound, err)
	case errors.Is(err, task.ErrNoPlan), errors.Is(err, task.ErrNothingLeft), errors.Is(err, task.ErrEnded), errors.Is(err, task.ErrConflict), errors.Is(err, task.ErrDoubled), errors.Is(err, task.ErrNewer),
		errors.Is(err, task.ErrTwice), errors.Is(err, task.ErrLost), errors.Is(err, task.ErrReadBack):
		return exitWith(ExitConflict, err)
	case errors.Is(err, task.ErrNoTask):
		return exitWith(ExitNotFound, fmt.Errorf("%w; `reprise task list` shows them", err))
	case errors.As(err, &legal), errors.Is(err, task.ErrOperation), errors.Is(err, task.ErrBusy), errors.Is(err, task.ErrLimit), errors.Is(err, task.ErrWaits):
		return exitWith(ExitConflict, err)
	}
	return err
}

// tasksChanged records what happened to tasks. That it cannot be logged is a note:
// the files are what counts, and they are written.
func (a *App) tasksChanged(ctx context.Context, project string, list []task.Change) {
	if len(list) == 0 {
		return
	}
	broker, err := a.Broker(event.Event{Agent: a.Env.Get(hook.AgentVar)})
	for _, c := range list {
		if err != nil {
			break
		}
		d := event.TaskData{Number: c.Number, Op: c.Op, Title: clipText(c.Title, 200), From: string(c.From), To: string(c.To),
			Phase: c.Phase, Operation: c.Operation, Session: c.Session, Reason: clipText(c.Reason, 500), Files: c.Files, ByHand: c.ByHand}
		e := event.Event{Scope: event.ScopeProject, Project: project, Type: event.TaskChanged, Task: strconv.Itoa(c.Number), Outcome: "success"}
		if e.Data, err = jsonData(d); err == nil {
			_, err = broker.Record(ctx, e)
		}
	}
	if err != nil {
		fmt.Fprintf(a.Err, "note: the change is made, but the event of it is not logged: %v\n", a.withPlace(err))
	}
}

type draftFlags struct {
	title, priority, language, effort string
	dependsOn                         []int
}

func (d *draftFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&d.priority, "priority", task.DefaultPriority, "`PRIORITY`: "+strings.Join(task.Priorities, ", "))
	f.StringVar(&d.language, "language", task.DefaultLanguage, "`LANGUAGE` that decides who works at it: go, python, markdown, …")
	f.StringVar(&d.effort, "effort", "", "how long it may take: \"3 hours\"")
	f.IntSliceVar(&d.dependsOn, "depends-on", nil, "`NUMBERS` of tasks that come before it")
	offer(cmd, "priority", task.Priorities...)
}

// draft is what of the flags was given.
func (d *draftFlags) draft(cmd *cobra.Command) task.Draft {
	var out task.Draft
	for name, to := range map[string]**string{"title": &out.Title, "priority": &out.Priority, "language": &out.Language, "effort": &out.Effort} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			v := f.Value.String()
			*to = &v
		}
	}
	if cmd.Flags().Changed("depends-on") {
		out.DependsOn = &d.dependsOn
	}
	return out
}

func newTaskNewCmd(app *App) *cobra.Command {
	var d draftFlags
	var body string
	var c taskChange
	var asJSON bool
	cmd := &cobra.Command{
		Use: "new TITLE", Args: cobra.ExactArgs(1), Short: "Make a task",
		RunE: func(cmd *cobra.Command, args []string) error {
			draft := d.draft(cmd)
			draft.Title, draft.Body = &args[0], body
			if body == "-" {
				text, err := readInput(cmd.Context(), app, "text", 1<<20)
				if err != nil {
					return err
				}
				draft.Body = text
			}
			var made *task.Task
			c.message = func(*task.Board) string { return fmt.Sprintf("task %d: create %s", made.Number, made.Title) }
			_, err := app.changeTasks(cmd.Context(), c, func(b *task.Board) (err error) { made, err = b.Add(draft); return err })
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(app.Out, taskView(made, nil))
			}
			fmt.Fprintf(app.Out, "task %d: %s\n", made.Number, term.SafeLine(made.Title))
			return nil
		},
	}
	d.add(cmd)
	cmd.Flags().StringVar(&body, "body", "", "what else is to be said; - reads standard input")
	noCommit(cmd, &c.noCommit)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

func noCommit(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "no-commit", false, "do not commit what changes in specs/")
}

func taskView(t *task.Task, b *task.Board) task.Named {
	d := task.Named{Task: t}
	if b != nil {
		d.Waits = b.Waits(t)
	}
	return d
}

func newTaskListCmd(app *App) *cobra.Command {
	var only []string
	var all, asJSON bool
	cmd := &cobra.Command{
		Use: "list", Args: cobra.NoArgs, Short: "Show the tasks: what is being worked on first, then by priority",
		RunE: func(cmd *cobra.Command, _ []string) error {
			want := map[task.Status]bool{}
			for _, s := range only {
				status, ok := task.ParseStatus(s)
				if !ok {
					return usagef("--status %q is none of %s", clipText(s, 40), statusWords())
				}
				want[status] = true
			}
			collectLate()
			b, err := app.loadTasks(cmd.Context())
			if err != nil {
				return err
			}
			var list []*task.Task
			for _, n := range b.State.Numbers() {
				t := b.State.Tasks[n]
				if len(want) > 0 && want[t.Status] || len(want) == 0 && (all || !t.Status.Ended()) {
					list = append(list, t)
				}
			}
			if !asJSON {
				task.SortByWork(list)
			}
			docs := make([]task.Named, 0, len(list))
			for _, t := range list {
				docs = append(docs, taskView(t, b))
			}
			if all {
				archived, err := b.Archived(want)
				if err != nil {
					return err
				}
				docs = append(docs, archived...)
			}
			if asJSON {
				typed(app.Out, docs)
				data, err := task.MarshalList(docs)
				if err == nil {
					_, err = app.Out.Write(data)
				}
				return err
			}
			return printTasks(app, docs, len(b.State.Tasks))
		},
	}
	cmd.Flags().StringSliceVar(&only, "status", nil, "only those of this `STATUS`")
	cmd.Flags().BoolVar(&all, "all", false, "those that have ended, and those of the archive, too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print them for programs")
	var words []string
	for _, s := range task.Statuses() {
		words = append(words, string(s))
	}
	offer(cmd, "status", words...)
	return cmd
}

// collectLate has no memory freed before there are 256 MB of it: a command that reads a long
// list, prints it and ends would spend a fifth of its time at that.
func collectLate() {
	debug.SetMemoryLimit(256 << 20)
	debug.SetGCPercent(-1)
}

func statusWords() string {
	var out []string
	for _, s := range task.Statuses() {
		out = append(out, string(s))
	}
	return strings.Join(out, ", ")
}

func printTasks(app *App, list []task.Named, all int) error {
	if len(list) == 0 {
		if all > 0 {
			fmt.Fprintf(app.Err, "none of %s; --all shows those that have ended\n", count(all, "task"))
		} else {
			fmt.Fprintln(app.Err, "no tasks yet; `reprise task new TITLE` makes one")
		}
		return nil
	}
	style := app.Style()
	table := term.NewTable(style, "TASK", "STATUS", "PRIORITY", "LANGUAGE", "TITLE").MaxWidth(app.Columns).AlignRight(0).Spare(3, 2)
	for _, t := range list {
		title := t.Title
		switch {
		case len(t.Waits) > 0:
			title += " — waits for " + numbersText(t.Waits)
		case t.Reason != "":
			title += " — " + t.Reason
		}
		status := taskStatusCell(style, t.Status)
		if t.Archived {
			status = style.Dim(t.Status.Words() + ", archived")
		}
		table.Row(strconv.Itoa(t.Number), status, t.Priority, t.Language, term.SafeLine(title))
	}
	return table.Write(app.Out)
}

func numbersText(list []int) string {
	var words []string
	for _, n := range list {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, ", ")
}

func taskStatusCell(style term.Style, s task.Status) string {
	switch s {
	case task.Completed:
		return style.Green(s.Words())
	case task.InProgress:
		return style.Cyan(s.Words())
	case task.Blocked, task.Partial:
		return style.Yellow(s.Words())
	case task.Abandoned:
		return style.Dim(s.Words())
	case task.NotStarted, task.Researched, task.Planned:
	}
	return s.Words()
}

func newTaskShowCmd(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show N", Args: cobra.ExactArgs(1), Short: "Show a task: its fields, its files, the phases of its plan and what was done",
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := taskNumber(args[0])
			if err != nil {
				return err
			}
			b, err := app.loadTasks(cmd.Context())
			if err != nil {
				return err
			}
			at, t, err := b.Listed(n)
			if err != nil {
				return taskError(err)
			}
			view := taskView(t, at)
			view.Archived = at != b
			b = at
			own, err := b.Own(t)
			if err != nil {
				fmt.Fprintf(app.Err, "note: %v\n", err)
			}
			var phases []task.Phase
			if p, _, perr := b.Plan(t); perr == nil {
				phases = p.Phases
			} else if len(t.Plans) > 0 {
				fmt.Fprintf(app.Err, "note: %v\n", perr)
			}
			if asJSON {
				return printJSON(app.Out, struct {
					Task       task.Named     `json:"task"`
					Phases     []phaseDoc     `json:"phases"`
					Operations []task.Outcome `json:"operations"`
				}{view, phaseDocs(phases, own), own})
			}
			app.showTask(view, b, phases, own)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

// phaseDoc is a phase with how long was worked at it.
type phaseDoc struct {
	task.Phase
	Seconds float64 `json:"seconds,omitempty"`
}

func phaseDocs(phases []task.Phase, own []task.Outcome) []phaseDoc {
	times := task.PhaseTimes(own)
	out := []phaseDoc{}
	for _, p := range phases {
		out = append(out, phaseDoc{p, times[p.Number].Seconds()})
	}
	return out
}

func (a *App) showTask(t task.Named, b *task.Board, phases []task.Phase, own []task.Outcome) {
	style := a.Style()
	a.said("", style.Bold(fmt.Sprintf("%d. %s", t.Number, term.SafeLine(t.Title))))
	line := func(name, value string) {
		if value != "" {
			a.said(fmt.Sprintf("  %-10s ", name), term.SafeLine(value))
		}
	}
	status := t.Status.Words()
	if t.Reason != "" {
		status += ": " + t.Reason
	}
	if t.Archived {
		status += " (archived)"
	}
	line("status", status)
	line("priority", t.Priority)
	line("language", t.Language)
	line("effort", t.Effort)
	if len(t.DependsOn) > 0 {
		line("depends on", numbersText(t.DependsOn))
		line("waits for", numbersText(t.Waits))
	}
	for _, o := range t.Operations {
		what := o.Name
		if o.Phase > 0 {
			what = fmt.Sprintf("%s phase %d", what, o.Phase)
		}
		line("now", fmt.Sprintf("%s by %s since %s", what, o.Session, o.Started.Local().Format("2006-01-02 15:04")))
	}
	for _, f := range slices.Concat(t.Research, t.Plans, []string{t.Summary}) {
		if f != "" {
			line("file", "specs/"+f)
		}
	}
	times := task.PhaseTimes(own)
	for _, p := range phases {
		took := ""
		if d := times[p.Number]; d > 0 {
			took = " " + ago(d)
		}
		a.said(fmt.Sprintf("  %-10s %d ", "phase", p.Number), term.SafeLine(p.Title)+" "+style.Dim(p.Status.Marker())+took)
	}
	for _, o := range own {
		what := o.Op
		if o.Phase > 0 {
			what = fmt.Sprintf("%s phase %d", what, o.Phase)
		}
		took := ""
		if d := o.Ended.Sub(o.Started); d > 0 {
			took = " in " + ago(d)
		}
		reason := ""
		if o.Reason != "" {
			reason = ": " + o.Reason
		}
		line("done", fmt.Sprintf("%s %s%s%s", what, o.Status, took, reason))
	}
	if s := b.Todo.Find(t.Number); s != nil {
		if body := b.Todo.Body(s); body != "" {
			fmt.Fprintln(a.Out)
			for line := range strings.Lines(term.SafeText(body)) {
				a.said("", strings.TrimRight(line, "\n"))
			}
		}
	}
}

func taskNumber(word string) (int, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(word, "#"))
	if err != nil || n < 1 {
		return 0, usagef("%q is no number of a task", clipText(word, 40))
	}
	return n, nil
}
