package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/fleet"
	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/proc"
	"reprise/internal/queue"
	"reprise/internal/relay"
	"reprise/internal/run"
	"reprise/internal/term"
	"reprise/internal/worker/elsewhere"
)

// elsewhere is what workers on other machines do for the project here, or outside any for
// all; nil where the queue is on this machine.
func (a *App) elsewhere(ctx context.Context, purpose string) (*elsewhere.Fleet, error) {
	home, err := a.Home()
	if err != nil || home.Settings.Queue == config.QueueFiles {
		return nil, err
	}
	runs, err := a.Runs()
	if err != nil {
		return nil, err
	}
	conn, err := a.Fleet(ctx, purpose)
	if err != nil {
		return nil, err
	}
	f := &elsewhere.Fleet{Conn: conn, Runs: runs, Queue: a.queuesOf(conn), Now: a.Now}
	if p := home.Project; p != nil {
		f.Project, f.LoopDir = p.Name, filepath.Join(home.Paths.ProjectDir(p.Name), "loop")
	}
	return f, nil
}

// queuesOf gives the queues of projects on the servers, each of which is opened once.
func (a *App) queuesOf(conn *fleet.Conn) func(project string) (queue.Queue, error) {
	var mu sync.Mutex
	open := map[string]queue.Queue{}
	return func(project string) (queue.Queue, error) {
		mu.Lock()
		defer mu.Unlock()
		if q, ok := open[project]; ok {
			return q, nil
		}
		q, err := a.openFleetQueue(conn, project, proc.ID{})
		if err != nil {
			return nil, err
		}
		a.servers.queues = append(a.servers.queues, q)
		open[project] = q
		return q, nil
	}
}

// inFleet reports whether the queue is on servers, which other machines may have worked off.
func (a *App) inFleet() bool {
	home, err := a.Home()
	return err == nil && home.Project != nil && home.Settings.Queue != config.QueueFiles
}

// fleetRelay is what the fleet tells of the project here; nil where the queue is on this
// machine.
func (a *App) fleetRelay(ctx context.Context, purpose string) (*relay.Relay, error) {
	home, err := a.Home()
	if err != nil || home.Settings.Queue == config.QueueFiles || home.Project == nil {
		return nil, err
	}
	conn, err := a.Fleet(ctx, purpose)
	if err != nil {
		return nil, err
	}
	return relay.Open(conn, home.Project.Name), nil
}

func newWorkerListCmd(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Args: cobra.NoArgs, Short: "The workers of the fleet, and what they do",
		Long: `List the workers of the fleet that the settings name (queue: nats://…): when each was
heard last, for which projects it works, and what it does. One that said nothing for 35
seconds is quiet: it died, or its network did. Its items go to others when their leases
end. A clock that differs from the servers' is told: what the fleet decides by is the servers'
time, but logs of that machine have its own.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := app.fleetWorkers(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(app.Out, append([]relay.Worker{}, list...))
			}
			if len(list) == 0 {
				fmt.Fprintln(app.Err, "No worker lives. `reprise worker` starts one, on a machine whose settings name the same servers.")
				return nil
			}
			table := term.NewTable(app.Style(), "WORKER", "HEARD", "PROJECTS", "CLIENTS", "DOES").MaxWidth(app.Columns)
			for _, w := range list {
				heard := w.Heard.Local().Format("15:04:05")
				if w.Quiet {
					heard = app.Style().Red("quiet since " + w.Heard.Local().Format("2006-01-02 15:04:05"))
				}
				if off := clockWords(w.Off()); off != "" {
					heard += "; " + app.Style().Red("its clock is "+off)
				}
				var does []string
				for _, u := range w.Unsaved {
					does = append(does, "cannot go on ("+u.Project+"): "+firstLine(u.Why, 200))
				}
				for _, d := range w.Doing {
					if w.Quiet { // others may have it by now
						d.Step = "was " + d.Step
					}
					does = append(does, strings.TrimSpace(d.Item+" ("+d.Step+") "+d.Run))
				}
				table.Row(term.SafeLine(w.Name), heard, term.SafeLine(strings.Join(w.Projects, " ")), term.SafeLine(orDash(strings.Join(w.Clients, " "))), term.SafeLine(orDash(strings.Join(does, ", "))))
			}
			return table.Write(app.Out)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

// clockWords say by how much a clock differs from the servers'; "" is not at all.
func clockWords(ahead time.Duration) string {
	switch {
	case ahead > 0:
		return ago(ahead) + " ahead"
	case ahead < 0:
		return ago(-ahead) + " behind"
	}
	return ""
}

func (a *App) fleetWorkers(ctx context.Context) ([]relay.Worker, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	if home.Settings.Queue == config.QueueFiles {
		return nil, exitWith(ExitNotFound, errors.New("the settings name no servers of a fleet (queue: nats://host:port), so nobody is heard of"))
	}
	conn, err := a.Fleet(ctx, "list of workers")
	if err != nil {
		return nil, err
	}
	return relay.Workers(ctx, conn)
}

// logsElsewhere prints what a run of another machine says; done is false where the fleet
// knows nothing of it, or there is none. A run that its worker tells of may have said
// nothing yet, or nothing that has come to the servers: that is waited for, with follow.
// text has it printed as people read it.
func (a *App) logsElsewhere(ctx context.Context, id string, follow, text bool) (done bool, err error) {
	f, err := a.elsewhere(ctx, "logs")
	if f == nil || err != nil || f.Project == "" || !run.ValidID(id) {
		return false, err
	}
	note := func(text string) { fmt.Fprintf(a.Err, "note: %s\n", text) }
	out := a.Out
	if text {
		read := &saidWriter{out: a.Out, style: a.Style(), client: func() string {
			r, err := f.Run(ctx, id)
			if err != nil {
				return "" // read as what most clients write
			}
			return r.Client
		}}
		defer read.end()
		out = read
	}
	end, err := f.Relay().Follow(ctx, id, follow, out, note, a.noteQuiet(ctx, f, id))
	for errors.Is(err, relay.ErrNotFound) {
		switch t, err := f.Run(ctx, id); {
		case errors.Is(err, relay.ErrNotFound):
			return false, nil
		case err != nil:
			return true, goesOn(ctx, err, id)
		case t.Status == elsewhere.Lost:
			note("nothing that it says has come to the servers; " + lostWords(&t))
			return true, nil
		case !follow:
			note("nothing that it says has come to the servers yet")
			return true, nil
		}
		if err := pause(ctx, 250*time.Millisecond); err != nil {
			return true, goesOn(ctx, err, id)
		}
		end, err = f.Relay().Follow(ctx, id, follow, out, note, a.noteQuiet(ctx, f, id))
	}
	if gone, ok := errors.AsType[*lostError](err); ok {
		note(lostWords(&gone.run))
		return true, nil
	}
	if err != nil {
		return true, goesOn(ctx, err, id)
	}
	var rec run.Record
	if end.Over && json.Unmarshal(end.Doc, &rec) == nil && rec.Status != run.Completed {
		fmt.Fprintf(a.Err, "note: %s: %s\n", rec.Status, term.SafeLine(firstLine(rec.StatusReason, 200)))
	}
	return true, nil
}

// lostError ends the waiting for a run that is lost.
type lostError struct{ run elsewhere.Run }

func (e *lostError) Error() string { return lostWords(&e.run) }

// lostWords say that a run is lost, and where what it may still come to is to be seen.
func lostWords(t *elsewhere.Run) string {
	return fmt.Sprintf("%s: %s; what the worker says of it when it is back is added then", t.Status, term.SafeLine(t.StatusReason))
}

// noteQuiet is called while nothing comes of a run, and says once that its worker is not
// heard of. Its error says that the run is lost.
func (a *App) noteQuiet(ctx context.Context, f *elsewhere.Fleet, id string) func() error {
	told := false
	return func() error {
		list, err := f.Workers(ctx)
		if err != nil {
			return nil // the servers are away, which is waited for
		}
		for _, w := range list {
			if !w.Quiet || !slices.ContainsFunc(w.Doing, func(d relay.Doing) bool { return d.Run == id }) {
				continue
			}
			if t, err := f.Run(ctx, id); err == nil && t.Status == elsewhere.Lost {
				return &lostError{t}
			}
			if !told {
				told = true
				fmt.Fprintf(a.Err, "note: the worker %s is quiet since %s; what comes is printed when it is back\n", term.SafeLine(w.Name), w.Heard.Local().Format("15:04:05"))
			}
		}
		return nil
	}
}

// loopsElsewhere are the loops of the project's workers; none where a loop runs here, which
// is the one that is meant.
func (a *App) loopsElsewhere(ctx context.Context) (*elsewhere.Fleet, []elsewhere.Loop, error) {
	home, dir, err := a.loopDir()
	if err != nil || home.Settings.Queue == config.QueueFiles {
		return nil, nil, err
	}
	if running, _, err := loop.Running(durable.Disk{}, dir); err != nil || running {
		return nil, nil, err
	}
	return a.statesElsewhere(ctx)
}

// askLoopsElsewhere asks the loops of all workers of the project that go on; done is false
// where there is none.
func (a *App) askLoopsElsewhere(ctx context.Context, req loop.Request) (done bool, err error) {
	f, list, err := a.loopsElsewhere(ctx)
	if err != nil {
		return false, err
	}
	for _, l := range list {
		if l.State.Phase == core.Finished {
			continue
		}
		req.Loop = l.State.Loop
		if err := f.Ask(ctx, l.Worker, req); err != nil {
			return true, err
		}
		fmt.Fprintf(a.Out, "asked: the worker %s\n", l.Worker)
		done = true
	}
	return done, nil
}

// saidHere reports whether what a person says is for the loop of this machine: for a question
// of its, or where it runs for whatever else it waits for.
func (a *App) saidHere(ctx context.Context, say loop.Said) (bool, error) {
	dir, s, err := a.loopState()
	if errors.Is(err, errNoLoopYet) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	running, _, err := loop.Running(durable.Disk{}, dir)
	if err != nil {
		return false, err
	}
	list, err := a.questions(ctx, dir, &s)
	if err != nil {
		return false, err
	}
	if len(say.Items) > 0 {
		return !slices.ContainsFunc(say.Items, func(id string) bool {
			return !slices.ContainsFunc(list, func(q loop.Question) bool { return q.Item == id })
		}), nil
	}
	open := slices.ContainsFunc(list, func(q loop.Question) bool { return q.Open() })
	return running && (say.Answer == "" || open || loop.Waits(dir, &s, list)), nil
}

// resumeElsewhere leaves what a person says for the worker whose question it answers, or with
// the item where its loop tells nobody; done is false where no machine of the fleet has one.
func (a *App) resumeElsewhere(ctx context.Context, say loop.Said) (done bool, err error) {
	if ours, err := a.saidHere(ctx, say); ours || err != nil {
		return false, err
	}
	f, list, err := a.statesElsewhere(ctx)
	if f == nil || err != nil {
		return false, err
	}
	to, err := f.Resume(ctx, list, say)
	if len(to) == 0 && err == nil && len(say.Items) > 0 && say.More == nil {
		var back []elsewhere.Asked
		back, err = f.Answer(ctx, say)
		for _, one := range back {
			fmt.Fprintf(a.Out, "%s: put back with that, for whichever loop is next; %s set it aside\n", one.Item, one.By)
			done = true
		}
	}
	for _, l := range to {
		switch {
		case len(l.Back) > 0 && l.Silent:
			fmt.Fprintf(a.Out, "%s: put back, for whichever worker is next: %s, which set it aside, does not answer\n", strings.Join(l.Back, ", "), l.Worker)
		case l.Silent:
			fmt.Fprintf(a.Out, "asked: the worker %s, which does not answer, goes on so when it is there again\n", l.Worker)
		case len(l.Back) > 0:
			fmt.Fprintf(a.Out, "%s: put back, for whichever worker is next: %s, which set it aside, is not running\n", strings.Join(l.Back, ", "), l.Worker)
		case l.Away:
			fmt.Fprintf(a.Out, "asked: the worker %s, which is not running, goes on so when it is started again\n", l.Worker)
		default:
			fmt.Fprintf(a.Out, "asked: the worker %s goes on so as soon as it hears of it\n", l.Worker)
		}
	}
	switch {
	case errors.Is(err, loop.ErrWhich), errors.Is(err, loop.ErrUnanswered), errors.Is(err, loop.ErrCeiling):
		return true, exitWith(ExitUsage, err)
	case errors.Is(err, loop.ErrNothingWaits):
		return true, exitWith(ExitNotFound, err)
	case err != nil:
		return true, err
	}
	return done || len(to) > 0, nil
}

func newRunsFilesCmd(app *App) *cobra.Command {
	var get string
	cmd := &cobra.Command{
		Use: "files RUN", Args: cobra.ExactArgs(1), Short: "Files that came of a worker's run, from any machine of the fleet",
		Long: `List the files that a worker sent of a run of this project: its result, its summary, and
what its agent kept as artifacts. --get prints one; redirect it to keep it. The servers
keep them for 30 days.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := app.fleetRelay(cmd.Context(), "files")
			if err != nil {
				return err
			}
			if r == nil {
				return exitWith(ExitNotFound, fmt.Errorf("the settings name no servers of a fleet, or there is no project here; files of a run of this machine are in its directory (`reprise runs show %s`)", clipText(args[0], 20)))
			}
			if get != "" {
				err := r.GetFile(cmd.Context(), args[0], get, app.Out)
				if errors.Is(err, relay.ErrNotFound) {
					return exitWith(ExitNotFound, err)
				}
				return err
			}
			list, err := r.Files(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if len(list) == 0 {
				return exitWith(ExitNotFound, fmt.Errorf("the servers have no files of %s", clipText(args[0], 20)))
			}
			for _, f := range list {
				fmt.Fprintf(app.Out, "%s  %d bytes  %s\n", term.SafeLine(f.Name), f.Bytes, f.At.Local().Format(time.DateTime))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&get, "get", "", "print the file of this `NAME`")
	return cmd
}
