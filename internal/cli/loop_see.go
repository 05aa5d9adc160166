package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/loop/report"
	"reprise/internal/proc"
	"reprise/internal/queue"
	"reprise/internal/run"
	"reprise/internal/term"
	"reprise/internal/workspace"
)

// loopView is what there is to see of a loop.
type loopView struct {
	Running   bool            `json:"running"`
	PID       int             `json:"pid,omitempty"`
	Unsaved   string          `json:"unsaved,omitempty"` // why what is told is from before: its state cannot be written
	Metrics   loop.Metrics    `json:"metrics"`
	Reason    string          `json:"reason,omitempty"`
	Works     []string        `json:"works,omitempty"` // how it was told to work, in words
	Interrupt *core.Interrupt `json:"interrupt,omitempty"`
	HoldUntil *time.Time      `json:"hold_until,omitempty"`
	HoldWhy   string          `json:"hold_why,omitempty"`
	// Asked is what people have asked of the loop, and it has not done yet: pause, interrupt, stop,
	// and higher ceilings, such as "more (2.00 USD)".
	Asked   []string     `json:"asked,omitempty"`
	Trouble string       `json:"trouble,omitempty"` // why what was set aside could not be put back; it is tried again
	Rests   []string     `json:"rests,omitempty"`   // worktrees that could not be made or taken away to the end, and why
	Left    string       `json:"left,omitempty"`    // what the queue has, of which nothing is ready
	Workers []workerView `json:"workers"`
	Parked  []string     `json:"parked,omitempty"`
	// Questions are what waits for a person, and what was answered and not told yet.
	Questions []loop.Question `json:"questions,omitempty"`
	// Elsewhere are the loops of the project's workers on other machines of the fleet.
	Elsewhere []loopThere `json:"elsewhere,omitempty"`
}

type workerView struct {
	Worker    int     `json:"worker"`
	Step      string  `json:"step"`
	Iteration int     `json:"iteration,omitempty"`
	Item      string  `json:"item,omitempty"`
	Run       string  `json:"run,omitempty"`
	Seconds   float64 `json:"seconds,omitempty"`
	Messages  int     `json:"messages,omitempty"`
	ToolCalls int     `json:"tool_calls,omitempty"`
	LastTool  string  `json:"last_tool,omitempty"`
	Tokens    int64   `json:"tokens,omitempty"`
	LastCheck string  `json:"last_check,omitempty"`
	Waiting   string  `json:"waiting,omitempty"`
	Stop      string  `json:"stop,omitempty"`
	// Trouble is why what the worker is at could not be done; it is tried again.
	Trouble string `json:"trouble,omitempty"`
	// Progress is how far the run says that it is.
	Progress *queue.Progress `json:"progress,omitempty"`
}

// view looks at a loop: its state, and the records of its runs, which are newer.
func (a *App) view() (loopView, error) {
	dir, s, err := a.loopState()
	away, awayErr := a.loopsThere(context.Background(), s.Loop)
	if awayErr != nil && (err == nil || err.Error() != awayErr.Error()) { // else it is told once
		fmt.Fprintf(a.Err, "note: what workers on other machines do is not known: %s\n", term.SafeLine(awayErr.Error()))
	}
	if err != nil {
		if len(away) > 0 { // none has run here
			return loopView{Workers: []workerView{}, Elsewhere: away}, nil
		}
		return loopView{}, err
	}
	running, owner, err := loop.Running(durable.Disk{}, dir)
	if err != nil {
		return loopView{}, err
	}
	runs, err := a.Runs()
	if err != nil {
		return loopView{}, err
	}
	if running && (s.Phase == core.Working || s.Phase == core.Draining) {
		s.Worked += min(max(a.Now().Sub(s.Now.Wall), 0), loop.Lease) // since it was written down
	}
	v := loopView{Elsewhere: away, Running: running, Metrics: loop.MetricsOf(s), Reason: s.Reason, Interrupt: s.Interrupt, HoldWhy: s.HoldWhy}
	if running {
		v.PID, v.Unsaved = owner.Process.PID, loop.Unsaved(dir, &s, a.Now())
	}
	if s.Phase != core.Finished {
		v.Works = append(core.GivenWords(s.Given), core.LimitWords(s.Limits)...)
	}
	v.Trouble, v.Rests = s.Trouble, a.unfinished()
	if v.Asked, err = loop.Pending(dir, &s); err != nil {
		return loopView{}, err
	}
	if s.Phase == core.Working && s.Busy() == 0 {
		v.Left = s.Left
	}
	if s.Phase == core.Working && s.HoldUntil > s.Now.Loop {
		at := s.Now.Wall.Add(s.HoldUntil - s.Now.Loop)
		v.HoldUntil = &at
	} else {
		v.HoldWhy = ""
	}
	q, err := a.Queue(proc.ID{})
	if err != nil {
		return loopView{}, err
	}
	for i := range s.Slots {
		p := &s.Slots[i]
		w := workerView{Worker: i + 1, Step: string(p.Step), Iteration: p.Iteration, Item: p.Claim.Item.ID, Run: p.Run, Stop: string(p.Stop), Trouble: p.Trouble}
		if r, err := runs.Get(p.Run); err == nil {
			h := r.Heartbeat
			if !running && p.Step == core.Running && r.Status.Settled() {
				w.Step = "ended" // and the next loop sees to it
			}
			w.Seconds = r.Elapsed(a.Now()).Seconds()
			w.Messages, w.ToolCalls, w.LastTool, w.Tokens, w.Waiting = h.MessageCount, h.ToolCalls, h.LastTool, h.Tokens, h.Retrying
			if !h.LastCheck.IsZero() {
				w.LastCheck = h.LastCheck.Format(time.RFC3339)
			}
		}
		if p.Claim.Fence != 0 {
			if it, err := q.Get(context.Background(), p.Claim.Item.ID); err == nil && it.Fence == uint64(p.Claim.Fence) {
				w.Progress = it.Progress
			}
		}
		v.Workers = append(v.Workers, w)
	}
	if v.Questions, err = loop.Questions(context.Background(), dir, &s, q); err != nil {
		return loopView{}, err
	}
	for _, one := range v.Questions {
		if s.Items[one.Item].Parked { // whatever was said to it meanwhile
			v.Parked = append(v.Parked, one.Item)
		}
	}
	return v, nil
}

func newLoopStatusCmd(app *App) *cobra.Command {
	var asJSON, watch bool
	cmd := &cobra.Command{
		Use: "status", Args: cobra.NoArgs, Short: "What the loop is doing: workers, items, time, tokens, cost, last tool",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if watch && !asJSON {
				return app.watchLoop(cmd.Context())
			}
			v, err := app.view()
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(app.Out, v)
			}
			_, err = fmt.Fprint(app.Out, app.viewText(&v, app.Columns))
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show it anew every two seconds, until the loop has ended or Ctrl-C")
	return cmd
}

func newLoopLogsCmd(app *App) *cobra.Command {
	var follow, all bool
	cmd := &cobra.Command{
		Use: "logs", Args: cobra.NoArgs, Short: "What the last loop has done and does, line by line, as JSON",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, s, err := app.loopState()
			if err != nil {
				return err
			}
			from := int64(0)
			if !all {
				if from, err = loop.AuditFrom(dir, s.Loop); err != nil {
					return err
				}
			}
			var ended func() (bool, error)
			if follow {
				ended = func() (bool, error) {
					running, _, err := loop.Running(durable.Disk{}, dir)
					return !running, err
				}
			}
			err = copyFile(cmd.Context(), app, loop.AuditFile(dir), from, ended)
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on printing until the loop has ended")
	cmd.Flags().BoolVar(&all, "all", false, "of all loops there were")
	return cmd
}

func newLoopAuditCmd(app *App) *cobra.Command {
	var asJSON, all bool
	var item string
	cmd := &cobra.Command{
		Use: "audit", Args: cobra.NoArgs, Short: "Every operation of the last loop",
		RunE: func(*cobra.Command, []string) error {
			dir, s, err := app.loopState()
			if err != nil {
				return err
			}
			id := s.Loop
			if all {
				id = ""
			}
			lines, bad, err := loop.Audit(dir, id)
			if err != nil {
				return err
			}
			if bad > 0 {
				fmt.Fprintf(app.Err, "note: %s of the audit cannot be read\n", count(bad, "line"))
			}
			kept := lines[:0]
			for _, l := range lines {
				if item == "" || l.Item == item {
					kept = append(kept, l)
				}
			}
			if asJSON {
				return printJSON(app.Out, kept)
			}
			if item != "" && len(kept) == 0 {
				fmt.Fprintf(app.Err, "note: no operation of this loop is about %s; `--all` looks at those of all loops, `reprise queue list --all` has the items\n", term.SafeLine(item))
			}
			for _, l := range kept {
				fmt.Fprintln(app.Out, term.Wrap("", l.At.Local().Format("2006-01-02 ")+lineText(app.Style(), l), "    ", app.Columns))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the lines for programs")
	cmd.Flags().BoolVar(&all, "all", false, "of all loops there were")
	cmd.Flags().StringVar(&item, "item", "", "only of this `ITEM`")
	return cmd
}

func newLoopMetricsCmd(app *App) *cobra.Command {
	var asJSON, prometheus bool
	cmd := &cobra.Command{
		Use: "metrics", Args: cobra.NoArgs, Short: "Figures of the last loop, as JSON or for Prometheus",
		RunE: func(*cobra.Command, []string) error {
			_, s, err := app.loopState()
			if err != nil {
				return err
			}
			if prometheus {
				home, err := app.Home()
				if err != nil {
					return err
				}
				return loop.MetricsOf(s).Prometheus(app.Out, home.Project.Name)
			}
			return printJSON(app.Out, loop.MetricsOf(s))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", true, "as JSON, which is the default")
	cmd.Flags().BoolVar(&prometheus, "prometheus", false, "as Prometheus reads it (text format 0.0.4)")
	return cmd
}

func newLoopReportCmd(app *App) *cobra.Command {
	var asJSON bool
	var id, since string
	cmd := &cobra.Command{
		Use: "report", Args: cobra.NoArgs, Short: "What the last loop has done, in a page of markdown",
		Example: `  reprise loop report
  reprise loop report --since 12h`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			begins, err := pastTime(app, "--since", since)
			if err != nil {
				return err
			}
			dir, s, err := app.loopState()
			fleet := errors.Is(err, errNoLoopYet) && app.inFleet() // other machines may have worked, and none here
			if err != nil && !fleet {
				return err
			}
			past := id != "" || since != ""
			if fleet && !past {
				since, past, begins = "24h", true, app.Now().Add(-lastDay)
				fmt.Fprintln(app.Err, "note: no loop has run here; this is what other machines did in the last 24 hours (`--since 2d`)")
			}
			its, bad, err := loop.Iterations(dir, id)
			if since != "" {
				its, bad, err = app.worked(cmd.Context(), dir)
			} else if !past {
				its, bad, err = loop.Iterations(dir, s.Loop)
			}
			if err != nil {
				return err
			}
			its = slices.DeleteFunc(its, func(it loop.Iteration) bool { return it.Ended.Before(begins) || id != "" && it.Loop != id })
			if id != "" && len(its) == 0 {
				return exitWith(ExitNotFound, fmt.Errorf("no iteration of a loop %s is kept", id))
			}
			if !past && s.Iterations == 0 {
				fmt.Fprintln(app.Err, "note: this loop began nothing; `reprise loop report --since 24h` has what those before it did")
			}
			if bad > 0 {
				fmt.Fprintf(app.Err, "note: %s cannot be read\n", count(bad, "iteration"))
			}
			if past && asJSON {
				return printJSON(app.Out, map[string]any{"iterations": append([]loop.Iteration{}, its...)})
			}
			if asJSON {
				return printJSON(app.Out, map[string]any{"metrics": loop.MetricsOf(s), "reason": s.Reason, "interrupt": s.Interrupt, "iterations": its})
			}
			home, err := app.Home()
			if err != nil {
				return err
			}
			said, err := app.questions(cmd.Context(), dir, &s)
			if err != nil {
				return err
			}
			said = append(said, app.questionsThere(cmd.Context(), s.Loop)...)
			now, err := app.standsNow(cmd.Context(), dir)
			if err != nil {
				return err
			}
			if now.Running {
				now.Unsaved = loop.Unsaved(dir, &s, app.Now())
			}
			text := report.Night(home.Project.Name, s, its, said, now)
			if past {
				text = report.Past(home.Project.Name, s, its, said, now)
			}
			if app.Columns > 0 {
				text = folded(text, app.Columns)
			}
			_, err = fmt.Fprint(app.Out, text)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	cmd.Flags().StringVar(&id, "loop", "", "of this `LOOP`, such as one that the audit names")
	cmd.Flags().StringVar(&since, "since", "", "of all loops, since this `TIME`: 12h, 2d, yesterday or a date")
	return cmd
}

// standsNow is how things stand beside what the loop in a directory has written down.
func (a *App) standsNow(ctx context.Context, dir string) (now report.Standing, err error) {
	if now.Running, _, err = loop.Running(durable.Disk{}, dir); err != nil {
		return now, err
	}
	q, err := a.Queue(proc.ID{})
	if err != nil {
		return now, err
	}
	now.State = func(item string) queue.State {
		it, err := q.Get(ctx, item)
		if err != nil && !errors.Is(err, queue.ErrNotFound) {
			return "unread"
		}
		return it.State
	}
	now.Title = func(item string) string {
		it, err := q.Get(ctx, item)
		if err != nil {
			return ""
		}
		return it.Title
	}
	now.Unmerged, now.Remote = a.unmerged(ctx), a.remoteOf(ctx)
	if !now.Running { // or one that is being taken away would be told
		now.Staying = a.staying(ctx)
	}
	if now.All, _, err = a.worked(ctx, dir); err != nil {
		return now, err
	}
	if now.Unmerged != nil {
		if err := a.unmergedThere(ctx, now.All, now.Unmerged); err != nil {
			return now, err
		}
	}
	now.Queue, now.Unread, err = countQueue(ctx, q)
	return now, err
}

// unmerged are the branches of the project that are not merged into what is checked out; nil
// where git cannot say.
func (a *App) unmerged(ctx context.Context) map[string]bool {
	home, err := a.Home()
	if err != nil || home.Project == nil {
		return nil
	}
	out, err := git.New(checkoutOf(home.Project), git.Options{Vars: a.Env.Vars}).Run(ctx, "for-each-ref", "--format=%(refname:lstrip=2)", "--no-merged=HEAD", "refs/heads/")
	if err != nil {
		return nil
	}
	list := map[string]bool{}
	for _, name := range strings.Fields(string(out)) {
		list[name] = true
	}
	return list
}

func branches(n int) string {
	if n == 1 {
		return "1 branch"
	}
	return fmt.Sprintf("%d branches", n)
}

// toMerge are the iterations whose branches hold work of loops that is done and nowhere else;
// loop "" is all loops.
func (a *App) toMerge(ctx context.Context, dir, id string) ([]loop.Iteration, error) {
	its, _, err := loop.Iterations(dir, id)
	if err == nil && id == "" {
		its, _, err = a.worked(ctx, dir)
	}
	return a.notMerged(ctx, its, err)
}

// notMerged are those of iterations whose work is done and nowhere else than in a branch.
func (a *App) notMerged(ctx context.Context, its []loop.Iteration, err error) ([]loop.Iteration, error) {
	if err != nil || len(report.Unmerged(its, nil)) == 0 { // which needs no git
		return nil, err
	}
	open := a.unmerged(ctx)
	if open != nil {
		if err := a.unmergedThere(ctx, its, open); err != nil {
			return nil, err
		}
	}
	list := report.Unmerged(its, open)
	remote := ""
	for i := range list {
		if it := &list[i]; it.On != "" { // where git has it once it was fetched
			if remote == "" {
				remote = cmp.Or(a.remoteOf(ctx), "origin")
			}
			it.Branch = remote + "/" + it.Branch
		}
	}
	return list, nil
}

func newLoopBootstrapCmd(app *App) *cobra.Command {
	var variables bool
	cmd := &cobra.Command{
		Use: "bootstrap", Args: cobra.NoArgs, Short: "Print the template of what each session is told",
		Long: `Print the template of what each session is told: the project's .reprise/bootstrap.md, or
the one that reprise has, also where that file is empty. A project's own begins best as
a copy of that.`,
		RunE: func(*cobra.Command, []string) error {
			if variables {
				for _, name := range loop.Variables() {
					fmt.Fprintln(app.Out, name)
				}
				return nil
			}
			home, _, err := app.loopDir()
			if err != nil {
				return err
			}
			own, err := bootstrapOf(home)
			if err != nil {
				return err
			}
			if own == "" {
				own = loop.Bootstrap()
			}
			_, err = fmt.Fprint(app.Out, own)
			return err
		},
	}
	cmd.Flags().BoolVar(&variables, "variables", false, "print the names that a template may use")
	return cmd
}

func newLoopGCCmd(app *App) *cobra.Command {
	var dry, asJSON, places bool
	var days, mb int
	cmd := &cobra.Command{
		Use: "gc", Args: cobra.NoArgs, Short: "Remove files of loops' runs that are old, or take too much space",
		Long: `Remove files of loops' runs that are old, or take too much space. With --workspaces also
the worktrees of items that have ended and still have one, such as those that were given
up: where nothing is in them that is nowhere else. What is not committed there, what an
agent learnt and nobody promoted, and who works there keeps one, and it is said. A branch
with commits of its own always stays. --dry-run says first what would go.`,
		Example: `  reprise loop gc --dry-run
  reprise loop gc --workspaces --dry-run`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, dir, err := app.loopDir()
			if err != nil {
				return err
			}
			set := home.Settings.Loop
			if !cmd.Flags().Changed("days") {
				days = set.RunDays
			}
			if !cmd.Flags().Changed("mb") {
				mb = set.RunMB
			}
			age := time.Duration(days) * 24 * time.Hour
			if days == 0 && cmd.Flags().Changed("days") {
				age = 1 // who says so wants none to be kept; in the settings it is no bound
			}
			runs, err := app.Runs()
			if err != nil {
				return err
			}
			list, err := runs.List(cmd.Context())
			if err != nil && len(list) == 0 {
				return err
			}
			s, err := loop.ReadState(dir)
			if err != nil {
				return err
			}
			old := loop.Sweep(ofProject(list, home.Project.Name), s, loop.Retention{Age: age, Size: int64(mb) << 20}, app.Now())
			var ended []loop.OldPlace
			var ws *workspace.Manager
			if places {
				if ws, ended, err = app.endedPlaces(cmd.Context()); err != nil {
					return err
				}
			}
			say := app.Out
			if asJSON {
				say = io.Discard
			}
			var bytes int64
			for _, o := range old {
				if !dry {
					if err := runs.Remove(cmd.Context(), o.Run); err != nil {
						return err
					}
				}
				bytes += o.Bytes
				fmt.Fprintf(say, "%s %s %s (%s)\n", o.Run, o.Ended.Local().Format("2006-01-02"), count(int(o.Bytes), "byte"), o.Why)
			}
			if asJSON {
				if err := removePlaces(cmd.Context(), say, ws, ended, dry); err != nil {
					return err
				}
				return printJSON(app.Out, map[string]any{"dry_run": dry, "removed": old, "workspaces": ended, "error": nil})
			}
			verb := "removed"
			if dry {
				verb = "would be removed"
			}
			fmt.Fprintf(app.Err, "%s %s, %s.\n", count(len(old), "run"), verb, count(int(bytes), "byte"))
			return removePlaces(cmd.Context(), app.Out, ws, ended, dry)
		},
	}
	cmd.Flags().BoolVarP(&dry, "dry-run", "n", false, "say what would be removed, and remove nothing")
	cmd.Flags().BoolVar(&places, "workspaces", false, "also worktrees of items that have ended, where nothing is lost by it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was removed, or would be, for programs")
	cmd.Flags().IntVar(&days, "days", 0, "days that runs are kept, 0 keeps none (default: loop.run_days, 30, where 0 is no bound)")
	cmd.Flags().IntVar(&mb, "mb", 0, "megabytes that they may take together, 0 is no bound (default: loop.run_mb, 2048)")
	return cmd
}

// endedPlaces are the workspaces of items that have ended.
func (a *App) endedPlaces(ctx context.Context) (*workspace.Manager, []loop.OldPlace, error) {
	ws, err := a.Workspaces()
	if err != nil {
		return nil, nil, err
	}
	q, err := a.Queue(proc.ID{})
	if err != nil {
		return nil, nil, err
	}
	list, err := loop.EndedPlaces(ctx, ws, q)
	return ws, list, err
}

// removePlaces takes those away that may go, and says of the others why they stay.
func removePlaces(ctx context.Context, say io.Writer, ws *workspace.Manager, list []loop.OldPlace, dry bool) error {
	for _, p := range list {
		state := cmp.Or(string(p.State), "not in the queue")
		switch {
		case p.Stays != "":
			fmt.Fprintf(say, "%s (item %s, %s) stays: %s\n", p.Workspace, p.Item, state, term.SafeLine(p.Stays))
		case dry:
			fmt.Fprintf(say, "%s (item %s, %s) would be removed\n", p.Workspace, p.Item, state)
		default:
			gone, err := ws.Remove(ctx, p.Workspace, workspace.RemoveOptions{Ended: true})
			if err != nil {
				return err
			}
			fmt.Fprintf(say, "%s (item %s, %s) removed\n", p.Workspace, p.Item, state)
			for _, n := range gone.Notes {
				fmt.Fprintf(say, "  %s\n", term.SafeLine(n))
			}
		}
	}
	return nil
}

func ofProject(list []run.Record, project string) (out []run.Record) {
	for _, r := range list {
		if r.Project == project {
			out = append(out, r)
		}
	}
	return out
}
