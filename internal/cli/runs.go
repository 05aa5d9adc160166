package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/clip"
	"reprise/internal/durable"
	"reprise/internal/loop"
	"reprise/internal/run"
	"reprise/internal/term"
	runoutput "reprise/internal/web/output"
	"reprise/internal/worker/elsewhere"
)

func newRunsCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "Look at runs, wait for them, stop them, go on with them, clear them away",
	}
	cmd.AddCommand(newRunsListCmd(app), newRunsShowCmd(app), newRunsLogsCmd(app), newRunsFilesCmd(app), newRunsWaitCmd(app),
		newRunsCancelCmd(app), newRunsResumeCmd(app), newRunsExtendCmd(app), newRunsGCCmd(app))
	return cmd
}

// runJSON is a run for programs: its record, what its result was, and what its
// agent said.
type runJSON struct {
	run.Record
	Task           string  `json:"task"` // its beginning; the whole is in prompt.md
	MCPStatus      string  `json:"mcp_status"`
	ElapsedSeconds float64 `json:"elapsed_seconds"`
	Dir            string  `json:"directory"`
	Item           string  `json:"item,omitempty"` // of the queue, where a loop started it
	Result         any     `json:"result,omitempty"`
	Output         *string `json:"output,omitempty"`
	Truncated      bool    `json:"output_truncated,omitempty"`
	// Elsewhere says that it is a run of another machine of the fleet, where its files are.
	// Worker is whose it is, where it goes on.
	Elsewhere bool   `json:"elsewhere,omitempty"`
	Worker    string `json:"worker,omitempty"`
}

func runDoc(app *App, r run.Record, out *run.Output) runJSON {
	doc := runJSON{Record: r, MCPStatus: r.MCPStatus(), ElapsedSeconds: r.Elapsed(app.Now()).Seconds(), Dir: r.Dir(), Item: loop.ItemOf(r)}
	if task, err := r.TaskStart(); err == nil {
		doc.Task = task // a record without its task is still a record
	}
	if r.Result != nil {
		doc.Result = r.Result
	}
	if out != nil {
		doc.Output, doc.Truncated = &out.Text, out.Truncated
	}
	return doc
}

func newRunsListCmd(app *App) *cobra.Command {
	var asJSON bool
	var status, project string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: cobra.NoArgs,
		Short: "List runs of every project, newest first",
		Long: `List runs of every project, newest first. What died without a word, as when the
machine went down, is found out about and put on record first. At a terminal
lines are cut to its width; ` + "`reprise runs show RUN`" + ` has the whole.

Where the settings name the servers of a fleet, runs of its workers on other machines come
after those of this one: those that go on, and those of the last seven days.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			runs, err := app.Runs()
			if err != nil {
				return err
			}
			list, err := runs.Sweep(cmd.Context())
			all := len(list)
			if cmd.Flags().Changed("project") {
				list = slices.DeleteFunc(list, func(r run.Record) bool { return r.Project != project })
			}
			list, filterErr := filterRuns(list, status, limit)
			if filterErr != nil {
				return filterErr
			}
			away := app.listThere(cmd.Context(), project, cmd.Flags().Changed("project"), status, limit)
			if len(away) > 0 {
				return errors.Join(app.printBoth(list, away, asJSON), err)
			}
			if len(list) == 0 && all > 0 && !asJSON {
				what := "like that"
				if !cmd.Flags().Changed("project") {
					what = fmt.Sprintf("in the state %q", status)
				}
				fmt.Fprintf(app.Err, "No run is %s, of %s in all.\n", what, count(all, "run"))
				return err
			}
			if printErr := printRuns(app, list, asJSON); printErr != nil {
				return printErr
			}
			return err // a record that cannot be read does not hide the others
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print records for programs")
	cmd.Flags().StringVar(&status, "status", "", "only runs in this `STATE`: "+strings.Join(runStates, ", "))
	cmd.Flags().StringVar(&project, "project", "", `only runs of the project `+"`NAME`"+`; "" for those of none`)
	cmd.Flags().IntVarP(&limit, "limit", "n", 0, "at most `N` (0: all)")
	offer(cmd, "status", runStates...)
	_ = cmd.RegisterFlagCompletionFunc("project", completeProjects(app))
	return cmd
}

// runStates are the states of a run, those that people ask for first.
var runStates = []string{"running", "completed", "failed", "timeout", "killed", "interrupted", "spawning", "completing", string(elsewhere.Lost)}

func filterRuns(list []run.Record, status string, limit int) ([]run.Record, error) {
	if status != "" {
		if !slices.Contains(runStates, status) {
			return nil, usagef("--status %q is not a state of a run: see `reprise runs list --help`", status)
		}
		kept := list[:0]
		for _, r := range list {
			if r.Status == run.Status(status) {
				kept = append(kept, r)
			}
		}
		list = kept
	}
	if limit > 0 && len(list) > limit {
		list = list[:limit]
	}
	return list, nil
}

func printRuns(app *App, list []run.Record, asJSON bool) error {
	if asJSON {
		docs := make([]runJSON, 0, len(list))
		for _, r := range list {
			docs = append(docs, runDoc(app, r, nil))
		}
		return printJSON(app.Out, docs)
	}
	if len(list) == 0 {
		fmt.Fprintln(app.Err, "No runs here yet. Start one: reprise spawn --agent script \"hello\"")
		return nil
	}
	style := app.Style()
	head := []string{"RUN", "STATUS", "CLIENT", "STARTED", "TOOK", "TASK"}
	items := slices.ContainsFunc(list, func(r run.Record) bool { return loop.ItemOf(r) != "" })
	if items { // what a loop's runs are told begins alike
		head = slices.Insert(head, 5, "ITEM")
	}
	projects := slices.ContainsFunc(list, func(r run.Record) bool { return r.Project != list[0].Project })
	if projects {
		head = slices.Insert(head, 2, "PROJECT")
	}
	var spare []int
	for _, name := range []string{"STARTED", "CLIENT", "ITEM", "TOOK"} {
		if i := slices.Index(head, name); i >= 0 {
			spare = append(spare, i)
		}
	}
	table := term.NewTable(style, head...).MaxWidth(app.Columns).Spare(spare...)
	for _, r := range list {
		row := []string{r.ID, statusCell(style, r), r.Client, r.StartedAt.Local().Format("2006-01-02 15:04"), ago(r.Elapsed(app.Now())), term.SafeLine(taskAndReason(r))}
		if items {
			row = slices.Insert(row, 5, orDash(loop.ItemOf(r)))
		}
		if projects {
			row = slices.Insert(row, 2, orDash(r.Project))
		}
		table.Row(row...)
	}
	return table.Write(app.Out)
}

func statusCell(style term.Style, r run.Record) string {
	switch {
	case r.Status == run.Completed:
		return style.Green(string(r.Status))
	case r.Status.Done():
		return style.Red(string(r.Status))
	}
	return style.Yellow(string(r.Status))
}

// taskAndReason is what a run was asked to do, and why it came to no good end.
func taskAndReason(r run.Record) string {
	if r.StatusReason == "" {
		return taskCell(r, 200)
	}
	return taskCell(r, 24) + " — " + firstLine(r.StatusReason, 60)
}

// taskCell is what a run is about, in one line.
func taskCell(r run.Record, n int) string {
	task, err := r.About()
	if err != nil {
		return "(its task cannot be read)"
	}
	return firstLine(task, n)
}

func firstLine(s string, n int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return clip.Runes(term.SafeText(s), n)
}

// settledRun is a run that was named on the command line, as it truly is.
func (a *App) settledRun(ctx context.Context, id string) (*run.Manager, run.Record, error) {
	runs, err := a.Runs()
	if err != nil {
		return nil, run.Record{}, err
	}
	r, err := runs.Settle(ctx, id)
	return runs, r, notFound(err)
}

func newRunsShowCmd(app *App) *cobra.Command {
	var asJSON, tools, messages, errorsOnly, usage bool
	cmd := &cobra.Command{
		Use: "show RUN", Args: cobra.ExactArgs(1), ValidArgsFunction: completeRuns(app, anyRun), Short: "Show one run: its record, its result, its files",
		RunE: func(cmd *cobra.Command, args []string) error {
			runs, r, err := app.settledRun(cmd.Context(), args[0])
			if errors.Is(err, run.ErrNotFound) && !tools && !usage && !errorsOnly && !messages {
				if done, away := app.showThere(cmd.Context(), args[0], asJSON); done || away != nil {
					return away
				}
			}
			if err != nil {
				return err
			}
			switch {
			case tools || usage || errorsOnly:
				return showParts(app, r, tools, usage, errorsOnly)
			case messages:
				return copyFile(cmd.Context(), app, r.Logs.Stdout, 0, nil)
			}
			out, err := runs.Output(r.ID, 0)
			if err != nil {
				return err
			}
			list, _ := runs.List(cmd.Context()) // one that cannot be read goes on with nothing
			r.ResumedBy = run.GoneOnBy(list, r)
			if asJSON {
				return printJSON(app.Out, runDoc(app, r, &out))
			}
			return showRun(app, r, out)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print the record for programs")
	f.BoolVar(&tools, "tools", false, "only the tools it called, with counts")
	f.BoolVar(&messages, "messages", false, "its output stream as the client wrote it")
	f.BoolVar(&errorsOnly, "errors", false, "only what went wrong")
	f.BoolVar(&usage, "usage", false, "only tokens and cost")
	cmd.MarkFlagsMutuallyExclusive("json", "tools", "messages", "errors", "usage")
	return cmd
}

func showParts(app *App, r run.Record, tools, usage, errorsOnly bool) error {
	if r.Result == nil {
		return fmt.Errorf("%s has no result yet: it is %s", r.ID, r.Status)
	}
	switch {
	case tools:
		return printJSON(app.Out, map[string]any{"calls": r.Result.Tools, "denied": r.Result.PermissionDenials})
	case usage:
		return printJSON(app.Out, map[string]any{"usage": r.Result.Usage, "cost_usd": r.Result.CostUSD, "turns": r.Result.NumTurns, "retries": r.Result.Retries})
	case errorsOnly:
		return printJSON(app.Out, map[string]any{"status": r.Status, "reason": r.StatusReason, "exit_code": r.ExitCode, "signal": r.Signal, "errors": r.Result.Errors, "api_status": r.Result.APIStatus})
	}
	return nil
}

func showRun(app *App, r run.Record, out run.Output) error {
	return showRunOf(app, r, out, func(line func(name, value string)) {
		line("task", taskCell(r, max(app.Columns-13, 60)))
		line("item", term.SafeLine(loop.ItemOf(r)))
		files := r.Dir()
		if n := r.Logs.CutBytes; n > 0 {
			files += " (of its output, which became too long, " + term.Size(n) + " in the middle are not kept)"
		}
		line("files", files)
	})
}

// showRunOf shows a run; more has what is told in another way of runs elsewhere.
func showRunOf(app *App, r run.Record, out run.Output, more func(line func(name, value string))) error {
	style := app.Style()
	line := func(name, value string) {
		if value != "" {
			app.said(style.Dim(fmt.Sprintf("%-12s", name))+" ", value)
		}
	}
	line("run", style.Bold(r.ID))
	status := statusCell(style, r)
	if r.StatusReason != "" {
		status += ": " + term.SafeText(r.StatusReason)
	}
	line("status", status)
	more(line)
	line("project", r.Project)
	line("goes on", r.Resumes)
	line("went on", r.ResumedBy)
	line("client", strings.TrimSpace(r.Client+" "+r.Model))
	line("directory", term.SafeLine(r.WorkDir))
	line("started", r.StartedAt.Local().Format(time.RFC1123))
	line("took", ago(r.Elapsed(app.Now())))
	if r.ExitCode != nil {
		line("exit code", fmt.Sprint(*r.ExitCode))
	}
	line("sandbox", r.Command.Sandbox)
	if r.Result != nil && r.Result.NumTurns > 0 {
		u := r.Result.Usage
		line("usage", fmt.Sprintf("%s, %s in, %d out, %.4f USD", count(r.Result.NumTurns, "turn"), count(int(u.InputTokens), "token"), u.OutputTokens, r.Result.CostUSD))
	}
	if r.Heartbeat.ToolCalls > 0 {
		line("tool calls", fmt.Sprint(r.Heartbeat.ToolCalls))
	}
	line("waiting", term.SafeLine(r.Heartbeat.Retrying))
	if out.Text != "" {
		fmt.Fprintf(app.Out, "\n%s\n", strings.TrimRight(term.SafeText(out.Text), "\n"))
	}
	return nil
}

func newRunsLogsCmd(app *App) *cobra.Command {
	var follow, stderr, text bool
	cmd := &cobra.Command{
		Use: "logs RUN", Args: cobra.ExactArgs(1), ValidArgsFunction: completeRuns(app, anyRun), Short: "Print a run's output as its client wrote it",
		Long: `Print a run's output as its client wrote it, which is one JSON object a line for most
clients; with --text as people read it: what it said, its tools and what they answered,
without secrets, long ones cut.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			runs, r, err := app.settledRun(cmd.Context(), args[0])
			if errors.Is(err, run.ErrNotFound) && !stderr {
				if done, away := app.logsElsewhere(cmd.Context(), args[0], follow, text); done || away != nil {
					return away
				}
			}
			if errors.Is(err, run.ErrNotFound) && stderr {
				if _, t, ok, away := app.runThere(cmd.Context(), args[0]); ok && away == nil {
					return exitWith(ExitNotFound, fmt.Errorf("the standard error of %s is only on the machine of its worker (%s), in %s; without --stderr you see what the run said", t.ID, t.Worker, t.Logs.Stderr))
				}
			}
			if err != nil {
				return err
			}
			path := r.Logs.Stdout
			if stderr {
				path = r.Logs.Stderr
			}
			if text {
				err := readLogs(cmd.Context(), app, runs, r, follow)
				return goesOn(cmd.Context(), err, r.ID)
			}
			if !follow {
				return copyFile(cmd.Context(), app, path, 0, nil)
			}
			err = copyFile(cmd.Context(), app, path, 0, func() (bool, error) {
				r, err := runs.Settle(cmd.Context(), r.ID)
				return r.Status.Settled(), err
			})
			return goesOn(cmd.Context(), err, r.ID)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on printing until the run ends")
	cmd.Flags().BoolVar(&stderr, "stderr", false, "standard error instead of standard output")
	cmd.Flags().BoolVar(&text, "text", false, "as people read it")
	cmd.MarkFlagsMutuallyExclusive("stderr", "text")
	return cmd
}

// readLogs prints what a run's client wrote as people read it, as the dashboard shows it;
// with follow until the run has ended.
func readLogs(ctx context.Context, app *App, runs *run.Manager, r run.Record, follow bool) error {
	for at := int64(0); ; {
		var err error
		if follow {
			// Asked before it is read: what was written before the end is then read after it.
			if r, err = runs.Settle(ctx, r.ID); err != nil {
				return err
			}
		}
		ended := r.Status.Settled()
		p, err := runoutput.Read(r, at, ended || !follow)
		if err != nil {
			return err
		}
		for _, s := range p.Said {
			fmt.Fprintln(app.Out, saidLine(app.Style(), s))
		}
		if p.To > at && p.Later() {
			at = p.To
			continue
		}
		if at = max(at, p.To); !follow || ended {
			return nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// saidLine is one thing that a run's output tells.
func saidLine(style term.Style, s runoutput.Said) string {
	text := strings.TrimRight(term.SafeText(s.Text), "\n")
	if s.Cut {
		text += " …"
	}
	switch s.Kind {
	case "tool":
		return strings.TrimRight(style.Bold("> "+term.SafeLine(s.Name))+" "+text, " ")
	case "answer":
		return style.Dim("< " + text)
	case "failed", "error":
		return style.Red("! " + text)
	}
	return text
}

// saidWriter prints what a client writes as people read it, line by line as it comes.
type saidWriter struct {
	out    io.Writer
	style  term.Style
	client func() string // asked once, when something has come

	name  string
	asked bool
	rest  []byte // of a line that has not ended
}

// Write implements io.Writer.
func (w *saidWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	whole := bytes.LastIndexByte(w.rest, '\n') + 1
	if whole == 0 && len(w.rest) >= runoutput.Window {
		whole = len(w.rest) // as the dashboard has it: such a line is shown in parts
	}
	if err := w.print(w.rest[:whole]); err != nil {
		return 0, err
	}
	w.rest = append([]byte(nil), w.rest[whole:]...)
	return len(p), nil
}

func (w *saidWriter) print(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	if !w.asked {
		w.name, w.asked = w.client(), true
	}
	for _, s := range runoutput.Of(w.name, text) {
		if _, err := fmt.Fprintln(w.out, saidLine(w.style, s)); err != nil {
			return err
		}
	}
	return nil
}

// end prints a last line that has no end.
func (w *saidWriter) end() {
	_ = w.print(w.rest) // who reads is gone, or sees it
}

// copyFile prints a file. With ended it goes on as the file grows, until ended
// says that nothing more will come.
func copyFile(ctx context.Context, app *App, path string, from int64, ended func() (bool, error)) error {
	f, err := durable.Open(path)
	for errors.Is(err, os.ErrNotExist) {
		if ended == nil {
			return nil // the agent never started, so it said nothing
		}
		done, endErr := ended()
		if endErr != nil || done {
			return endErr
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
		f, err = durable.Open(path)
	}
	if err != nil {
		return fmt.Errorf("read output: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return fmt.Errorf("read output: %w", err)
	}
	for {
		done := ended == nil
		if ended != nil {
			// Asked before the copy: what was written before the end is then
			// copied after it.
			if done, err = ended(); err != nil {
				return err
			}
		}
		if _, err := io.Copy(app.Out, f); err != nil {
			return err
		}
		if done {
			return nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// goesOn is the error of a look at runs that was broken off: the runs are none
// the worse for it, which a person who pressed Ctrl-C wants to know.
func goesOn(ctx context.Context, err error, ids ...string) error {
	if err == nil || !errors.Is(err, context.Canceled) || ctx.Err() == nil {
		return err
	}
	verb := "goes"
	if len(ids) > 1 {
		verb = "go"
	}
	return fmt.Errorf("%w; %s %s on", context.Cause(ctx), strings.Join(ids, ", "), verb)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func newRunsWaitCmd(app *App) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "wait RUN [RUN ...]", Args: cobra.MinimumNArgs(1), ValidArgsFunction: completeRuns(app, unsettledRun),
		Short: "Wait until runs have ended; the exit code is that of the worst",
		Long: `Wait until runs have ended; the exit code is that of the worst. Runs of workers of the
fleet are waited for, too, from any machine of it. While a worker is quiet (it died, or its
network did) its runs are waited for; --timeout bounds that.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			runs, err := app.Runs()
			if err != nil {
				return err
			}
			var worst error
			for i, id := range args {
				r, err := runs.Wait(ctx, id)
				if errors.Is(err, run.ErrNotFound) {
					if there, known, away := app.waitThere(ctx, id); known {
						r, err = there, away
					}
				}
				if cmd.Context().Err() != nil {
					return goesOn(cmd.Context(), cmd.Context().Err(), args[i:]...)
				}
				if errors.Is(err, context.DeadlineExceeded) {
					return exitWith(ExitTimeout, fmt.Errorf("%s is still %s after %s: it goes on; stop it with `reprise runs cancel %s`", id, r.Status, timeout, id))
				}
				if err != nil {
					return notFound(err)
				}
				fmt.Fprintf(app.Out, "%s %s\n", r.ID, strings.TrimSpace(string(r.Status)+" "+firstLine(r.StatusReason, 200)))
				if exit := spawnExit(r, nil); exit != nil {
					worst = exit
				}
			}
			return worst
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after this `TIME` (the runs go on)")
	return cmd
}

func newRunsCancelCmd(app *App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "cancel RUN [RUN ...]", Args: cobra.MinimumNArgs(1), ValidArgsFunction: completeRuns(app, unsettledRun),
		Short: "Stop runs and every process they started",
		Long: `Stop runs and every process they started. A run of a worker of the fleet is stopped there,
once the worker hears of it; its item is then set aside, as after a cancel on that machine.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			runs, err := app.Runs()
			if err != nil {
				return err
			}
			for _, id := range args {
				before, err := runs.Settle(cmd.Context(), id)
				if errors.Is(err, run.ErrNotFound) {
					if done, away := app.cancelThere(cmd.Context(), id, reason); away != nil {
						return away
					} else if done {
						continue
					}
				}
				if err != nil {
					return notFound(err)
				}
				r, err := runs.Cancel(cmd.Context(), id, reason)
				if err != nil {
					return err
				}
				note := string(r.Status)
				if before.Status.Settled() {
					note = "had ended already: " + note
				}
				fmt.Fprintf(app.Out, "%s %s\n", r.ID, note)
				if runs.WhyNotResume(r) == "" {
					fmt.Fprintf(app.Err, "Go on with it: reprise runs resume %s\n", r.ID)
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "cancelled on the command line", "`TEXT` for the record")
	return cmd
}

func newRunsExtendCmd(app *App) *cobra.Command {
	return &cobra.Command{
		Use: "extend RUN TIME", Args: cobra.ExactArgs(2), ValidArgsFunction: completeRuns(app, unsettledRun),
		Short: "Give a running run more time, as 10m",
		RunE: func(cmd *cobra.Command, args []string) error {
			by, err := time.ParseDuration(args[1])
			if err != nil {
				return usagef("%q is not a time: give it as 90s, 10m or 2h", args[1])
			}
			runs, err := app.Runs()
			if err != nil {
				return err
			}
			if err := runs.Extend(cmd.Context(), args[0], by); err != nil {
				return notFound(err)
			}
			_, err = fmt.Fprintf(app.Out, "%s may run %s longer\n", args[0], by)
			return err
		},
	}
}
