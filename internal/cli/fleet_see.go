package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/internal/config"
	"reprise/internal/fleet"
	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/queue"
	"reprise/internal/relay"
	"reprise/internal/run"
	"reprise/internal/term"
	"reprise/internal/worker/elsewhere"
)

// standFleet is what the fleet does, as far as it concerns the project, or outside any
// project all of it.
type standFleet struct {
	Servers string         `json:"servers"`
	Workers []relay.Worker `json:"workers"` // null where the servers did not tell
	Runs    []standRun     `json:"runs"`    // that go on, on other machines
}

// there is a run on another machine of the fleet.
type there elsewhere.Run

// runsThere are the runs of other machines of the fleet that go on or have ended, the
// newest first: of one project, or of all that its workers work for. None where there is no
// fleet.
func (a *App) runsThere(ctx context.Context, project string) ([]elsewhere.Run, error) {
	f, err := a.elsewhere(ctx, "runs")
	if f == nil || err != nil {
		return nil, err
	}
	workers, err := f.Workers(ctx)
	if err != nil {
		return nil, err
	}
	return f.RunsOf(ctx, workers, project)
}

// runThere is a run of another machine of the fleet; false where nobody there knows it.
func (a *App) runThere(ctx context.Context, id string) (f *elsewhere.Fleet, t there, ok bool, err error) {
	f, err = a.elsewhere(ctx, "runs")
	if f == nil || err != nil || f.Project == "" {
		return nil, there{}, false, err
	}
	r, err := f.Run(ctx, id)
	if errors.Is(err, relay.ErrNotFound) {
		return nil, there{}, false, nil
	}
	return f, there(r), err == nil, err
}

// doc is the run for programs. Its files are on the other machine.
func (t *there) doc(app *App) runJSON {
	r := (*elsewhere.Run)(t)
	return runJSON{Record: t.Record, MCPStatus: r.MCPStatus(), ElapsedSeconds: r.Elapsed(app.Now()).Seconds(), Item: t.Item, Elsewhere: true, Worker: t.Worker}
}

// printRunsThere is a table of runs of other machines.
func printRunsThere(app *App, list []elsewhere.Run) error {
	if len(list) == 0 {
		return nil
	}
	style := app.Style()
	table := term.NewTable(style, "ON WORKERS", "STATUS", "WORKER", "PROJECT", "CLIENT", "STARTED", "TOOK", "ITEM").MaxWidth(app.Columns)
	for _, t := range list {
		status := statusCell(style, t.Record)
		if t.Status == elsewhere.Lost {
			status = style.Red(string(t.Status))
		}
		table.Row(term.SafeLine(t.ID), status, term.SafeLine(t.Where()), term.SafeLine(t.Project), term.SafeLine(orDash(t.Client)), t.StartedAt.Local().Format("2006-01-02 15:04"), ago(t.Elapsed(app.Now())),
			term.SafeLine(strings.TrimSpace(orDash(t.Item)+" "+firstLine(t.StatusReason, 60))))
	}
	return table.Write(app.Out)
}

// listThere is what `runs list` shows of other machines: as its flags say. Servers that are
// away are noted.
func (a *App) listThere(ctx context.Context, project string, named bool, status string, limit int) []elsewhere.Run {
	if named && project == "" {
		return nil // runs outside any project are this machine's alone
	}
	list, err := a.runsThere(ctx, project)
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(a.Err, "note: runs of workers on other machines are not listed: %s\n", term.SafeLine(err.Error()))
	}
	list = slices.DeleteFunc(list, func(t elsewhere.Run) bool { return status != "" && t.Status != run.Status(status) })
	if limit > 0 {
		list = list[:min(len(list), limit)]
	}
	return list
}

// printBoth prints runs of this machine and of others.
func (a *App) printBoth(here []run.Record, away []elsewhere.Run, asJSON bool) error {
	if asJSON {
		docs := make([]runJSON, 0, len(here)+len(away))
		for _, r := range here {
			docs = append(docs, runDoc(a, r, nil))
		}
		for _, t := range away {
			docs = append(docs, (*there)(&t).doc(a))
		}
		return printJSON(a.Out, docs)
	}
	if len(here) > 0 {
		if err := printRuns(a, here, false); err != nil {
			return err
		}
		fmt.Fprintln(a.Out)
	}
	return printRunsThere(a, away)
}

// showThere shows a run of another machine; false where nobody there knows it. Of one that
// has ended the result is fetched, too.
func (a *App) showThere(ctx context.Context, id string, asJSON bool) (bool, error) {
	f, t, ok, err := a.runThere(ctx, id)
	if !ok || err != nil {
		return false, err
	}
	doc := t.doc(a)
	if t.Status.Settled() {
		if res := f.Result(ctx, id); res != nil {
			t.Result, doc.Result, doc.Output = res, res, &res.Text
		}
	}
	if asJSON {
		return true, printJSON(a.Out, doc)
	}
	text := run.Output{}
	if t.Result != nil {
		text.Text = t.Result.Text
	}
	return true, showRunOf(a, t.Record, text, func(line func(name, value string)) {
		line("worker", (*elsewhere.Run)(&t).Where())
		line("item", term.SafeLine(t.Item))
		line("files", "on the worker's machine; `reprise runs files "+id+"` has what it sent, `reprise runs logs "+id+"` what the run said")
	})
}

// cancelThere asks the worker to stop a run; false where no other machine has it.
func (a *App) cancelThere(ctx context.Context, id, reason string) (bool, error) {
	f, t, ok, err := a.runThere(ctx, id)
	if !ok || err != nil {
		return false, err
	}
	if t.Status.Settled() {
		fmt.Fprintf(a.Out, "%s had ended already: %s\n", t.ID, t.Status)
		return true, nil
	}
	if t.Status == elsewhere.Lost {
		return true, exitWith(ExitConflict, fmt.Errorf("%s is %s: %s. Where it goes on over there, that machine's worker stops it when it is back, for its claim is over", t.ID, t.Status, t.StatusReason))
	}
	if err := f.Cancel(ctx, elsewhere.Run(t), reason); err != nil {
		return true, err
	}
	when := "as soon as it hears of it"
	if t.Quiet {
		when = "when it is back: it is quiet since " + t.StatusUpdatedAt.Local().Format(time.DateTime)
	}
	fmt.Fprintf(a.Out, "asked: the worker %s stops %s %s\n", t.Worker, id, when)
	return true, nil
}

// cancel stops a run of the loop here. Of a run that is none of its, or that has ended,
// nothing is done: it may be asked twice.
func (l *telling) cancel(ctx context.Context, c elsewhere.CancelRequest) error {
	r, err := l.runs.Get(c.Run)
	if errors.Is(err, run.ErrNotFound) || err == nil && (r.Status.Settled() || loop.ItemOf(r) == "") {
		return nil
	}
	if err == nil {
		_, err = l.runs.Cancel(ctx, c.Run, "cancelled from another machine: "+firstLine(c.Why, 200))
	}
	return err
}

// loopThere is the loop of a worker, as `loop status` tells it.
type loopThere struct {
	Worker    string          `json:"worker"`
	Heard     *time.Time      `json:"heard,omitempty"` // null where the worker has ended
	Quiet     bool            `json:"quiet,omitempty"`
	Metrics   loop.Metrics    `json:"metrics"`
	Reason    string          `json:"reason,omitempty"`
	Unsaved   string          `json:"unsaved,omitempty"` // why what is told is from before: its state cannot be written
	Interrupt *core.Interrupt `json:"interrupt,omitempty"`
	Workers   []workerView    `json:"workers"`
	Questions []loop.Question `json:"questions,omitempty"`
}

// loopsThere are the loops of the project's workers, but for the one whose id is own: those
// whose worker has not ended, or on which something waits for a person.
func (a *App) loopsThere(ctx context.Context, own string) ([]loopThere, error) {
	f, all, err := a.statesElsewhere(ctx)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	workers, err := f.Workers(ctx)
	if err != nil {
		return nil, err
	}
	var out []loopThere
	for _, l := range all {
		if own != "" && l.State.Loop == own {
			continue
		}
		t := loopThere{Worker: l.Worker, Metrics: loop.MetricsOf(l.State), Reason: l.State.Reason, Interrupt: l.State.Interrupt, Workers: []workerView{}, Questions: l.Questions}
		i := slices.IndexFunc(workers, func(w relay.Worker) bool { return w.Name == l.Worker })
		if i < 0 && len(l.Questions) == 0 {
			continue
		}
		var doing []relay.Doing
		if i >= 0 {
			t.Heard, t.Quiet, doing = &workers[i].Heard, workers[i].Quiet, workers[i].Doing
			t.Unsaved = workers[i].UnsavedOf(f.Project)
		}
		for n := range l.State.Slots {
			p := &l.State.Slots[n]
			w := workerView{Worker: n + 1, Step: string(p.Step), Iteration: p.Iteration, Item: p.Claim.Item.ID, Run: p.Run, Stop: string(p.Stop), Trouble: p.Trouble}
			for _, d := range doing {
				if d.Run == p.Run && p.Run != "" && !d.Since.IsZero() {
					w.Seconds, w.ToolCalls, w.LastTool, w.Tokens = a.Now().Sub(d.Since).Seconds(), d.ToolCalls, d.LastTool, d.Tokens
				}
			}
			t.Workers = append(t.Workers, w)
		}
		out = append(out, t)
	}
	return out, nil
}

// loopsThereText is that for people.
func (a *App) loopsThereText(list []loopThere, columns int) string {
	style := a.Style()
	var b strings.Builder
	for i := range list {
		t := &list[i]
		head := "on the worker " + style.Bold(t.Worker)
		switch {
		case t.Heard == nil:
			head += ", which has ended"
		case t.Quiet:
			head += ", " + style.Red("quiet since "+t.Heard.Local().Format(time.DateTime))
		}
		b.WriteString(wrapLine(head+":", columns))
		v := loopView{Running: true, Unsaved: t.Unsaved, Metrics: t.Metrics, Reason: t.Reason, Interrupt: t.Interrupt, Workers: t.Workers, Questions: t.Questions}
		b.WriteString(a.viewText(&v, columns))
	}
	return b.String()
}

// standFleet looks at the fleet for the page of where things stand.
func (a *App) standFleet(ctx context.Context, s *standing, home *config.Home) error {
	if home.Settings.Queue == config.QueueFiles {
		return nil
	}
	s.Fleet = &standFleet{Servers: home.Settings.Queue, Runs: []standRun{}}
	f, err := a.elsewhere(ctx, "list of workers")
	if err != nil {
		return err
	}
	workers, err := f.Workers(ctx)
	if err != nil {
		return err
	}
	project := ""
	if home.Project != nil {
		project = home.Project.Name
		workers = slices.DeleteFunc(workers, func(w relay.Worker) bool { return !slices.Contains(w.Projects, project) })
	}
	s.Fleet.Workers = append([]relay.Worker{}, workers...)
	going, _ := f.Going(ctx, workers, project)
	for _, t := range going {
		s.Fleet.Runs = append(s.Fleet.Runs, standRun{ID: t.ID, Status: string(t.Status), Client: t.Client, Project: t.Project, Seconds: t.Elapsed(a.Now()).Seconds(), Task: t.Item, Tool: t.Heartbeat.LastTool, Worker: t.Worker})
	}
	if home.Project == nil {
		return nil
	}
	own := ""
	if _, st, err := a.loopState(); err == nil {
		own = st.Loop
	}
	loops, err := a.loopsThere(ctx, own)
	for _, l := range loops {
		for _, q := range l.Questions {
			if q.Open() {
				s.Waits = append(s.Waits, standWait{term.SafeLine("on the worker " + l.Worker + ", " + q.Words()), q.Command()})
			}
		}
		if i := l.Interrupt; i != nil && len(l.Questions) == 0 && l.Metrics.Phase != core.Finished {
			s.Waits = append(s.Waits, standWait{term.SafeLine("the worker " + l.Worker + " waits: " + firstLine(i.Why, 200)), "reprise loop resume"})
		}
	}
	return errors.Join(err, a.standAsked(ctx, s, f, loops))
}

// standAsked tells of questions of which only the items say: of loops in other checkouts, and
// of workers that are forgotten.
func (a *App) standAsked(ctx context.Context, s *standing, f *elsewhere.Fleet, loops []loopThere) error {
	if s.Queue[string(queue.Blocked)] == 0 {
		return nil
	}
	var own []loop.Question
	if dir, st, err := a.loopState(); err == nil {
		if own, err = a.questions(ctx, dir, &st); err != nil {
			return err
		}
	}
	list, err := f.OthersAsk(ctx, func(item string) bool {
		known := func(q loop.Question) bool { return q.Item == item }
		return slices.ContainsFunc(own, known) || slices.ContainsFunc(loops, func(l loopThere) bool { return slices.ContainsFunc(l.Questions, known) })
	})
	for _, one := range list {
		s.Waits = append(s.Waits, standWait{term.SafeLine("on another machine (" + one.By + "), " + one.Words()), one.Command()})
	}
	return err
}

// live reports whether a worker lives that works on the project.
func (f *standFleet) live() bool {
	return f != nil && slices.ContainsFunc(f.Workers, func(w relay.Worker) bool { return !w.Quiet })
}

// text is the fleet in one line.
func (f *standFleet) text() string {
	if f.Workers == nil {
		return "not known"
	}
	live, room := 0, 0
	var quiet []string
	for _, w := range f.Workers {
		if w.Quiet {
			quiet = append(quiet, w.Name)
			continue
		}
		live, room = live+1, room+w.Room
	}
	text := "no worker lives"
	if live > 0 {
		text = fmt.Sprintf("%s, with room for %s; %s on other machines", count(live, "worker"), count(room, "item"), count(len(f.Runs), "run"))
	}
	if len(quiet) > 0 {
		text += "; quiet: " + strings.Join(quiet, ", ")
	}
	return text
}

// statesElsewhere are how the loops of the project's workers stand, whether or not one runs
// here; nil and none where there is no fleet.
func (a *App) statesElsewhere(ctx context.Context) (*elsewhere.Fleet, []elsewhere.Loop, error) {
	f, err := a.elsewhere(ctx, "loop")
	if f == nil || err != nil || f.Project == "" {
		return nil, nil, err
	}
	list, err := f.Loops(ctx, func(worker string, err error) { fmt.Fprintf(a.Err, "note: the worker %s: %v\n", worker, err) })
	return f, list, err
}

// waitThere waits until a run of another machine has ended; known is false where nobody
// there knows it. The error of ctx leaves r as the run was heard of last. Servers that are
// away are waited for, and so is a worker that is quiet, until its claim is over: the run may
// go on.
func (a *App) waitThere(ctx context.Context, id string) (r run.Record, known bool, err error) {
	f, err := a.elsewhere(ctx, "runs")
	if f == nil || err != nil || f.Project == "" {
		return r, err != nil, err
	}
	quiet := a.noteQuiet(ctx, f, id)
	away := false
	var lost time.Time // since when nobody tells of a run that was told of
	item := ""
	for {
		t, err := f.Run(ctx, id)
		switch {
		case err == nil && t.Over():
			return t.Record, true, nil
		case err == nil:
			r, known, lost, item = t.Record, true, time.Time{}, t.Item
			_ = quiet() // it has none
		case errors.Is(err, relay.ErrNotFound) && !known:
			return r, false, nil
		case errors.Is(err, relay.ErrNotFound):
			// A worker tells that it has something else to do before it tells how this ended.
			if lost.IsZero() {
				lost = a.Now()
			}
			if a.Now().Sub(lost) > relay.QuietAfter {
				return r, true, exitWith(ExitNotFound, fmt.Errorf("%s: its worker tells of it no more, and has not told how it ended; `reprise queue show %s` says what became of its item", id, item))
			}
		case errors.Is(err, fleet.ErrUnreachable):
			if !away {
				fmt.Fprintf(a.Err, "note: %s; it is waited for them\n", term.SafeLine(err.Error()))
			}
			away = true
		case ctx.Err() == nil:
			return r, true, err
		}
		if err := pause(ctx, time.Second/2); err != nil {
			return r, true, err
		}
	}
}
