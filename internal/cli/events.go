package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/agent"
	"reprise/internal/config"
	"reprise/internal/event"
	"reprise/internal/proc"
	"reprise/internal/session"
	"reprise/internal/term"
)

func newEventsCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "events", Short: "Read the record of what happened, and look after it",
		Long: `The record of what happened: sessions, prompts, tool calls, memory, runs. It is the
truth that everything else is derived from, in plain files that are only ever
added to. Without more it is the log of the project around the working directory,
or the global one outside any.`,
	}
	cmd.AddCommand(newEventsListCmd(app), newEventsTailCmd(app), newEventsShowCmd(app), newEventsVerifyCmd(app),
		newEventsStatsCmd(app), newEventsExportCmd(app), newEventsMigrateCmd(app), newEventsOutboxCmd(app))
	return cmd
}

// Broker is the one way into the event logs, for this installation: see
// [session.Broker].
func (a *App) Broker(who ...event.Event) (*event.Broker, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	var defaults event.Event
	if len(who) > 0 {
		defaults = who[0]
	}
	return session.Broker(home, a.Env, a.Hostname, defaults, func(err error) {
		if log, lerr := a.Logger(); lerr == nil {
			log.Warn("an event could not be logged and waits in the outbox", "error", err)
		}
	}), nil
}

// eventLogs is which logs a command reads.
type eventLogs struct {
	project string
	global  bool
	all     bool
}

// flags adds the flags that choose logs.
func (l *eventLogs) flags(app *App, cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.project, "project", "", "the log of this `PROJECT`, wherever you are")
	cmd.Flags().BoolVar(&l.global, "global", false, "the global log")
	cmd.Flags().BoolVar(&l.all, "all-projects", false, "every log: the global one and all projects'")
	cmd.MarkFlagsMutuallyExclusive("project", "global", "all-projects")
	_ = cmd.RegisterFlagCompletionFunc("project", completeProjects(app))
}

// eventLog is one log: a project's, or with no name the global one.
type eventLog struct {
	project, dir string
}

func (l *eventLogs) find(app *App) ([]eventLog, error) {
	home, err := app.Home()
	if err != nil {
		return nil, err
	}
	switch {
	case l.all:
		logs := []eventLog{{"", home.Paths.Events("")}}
		for _, name := range session.Projects(home) {
			logs = append(logs, eventLog{name, home.Paths.Events(name)})
		}
		return logs, nil
	case l.project != "":
		if !slices.Contains(session.Projects(home), l.project) {
			return nil, exitWith(ExitNotFound, fmt.Errorf("there is no project %q; there are %s", l.project, orNone(session.Projects(home))))
		}
		return []eventLog{{l.project, home.Paths.Events(l.project)}}, nil
	case l.global || home.Project == nil:
		return []eventLog{{"", home.Paths.Events("")}}, nil
	}
	return []eventLog{{home.Project.Name, home.EventsDir()}}, nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// eventFilter is which events a command is about.
type eventFilter struct {
	types, outcomes             []string
	session, client, run, agent string
	since, until, text          string

	from, to time.Time
	hide     func(event.Type) bool // of what nobody asked for; nil = none
	sees     func(*event.Event) bool
}

func (f *eventFilter) flags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVarP(&f.types, "type", "t", nil, "only these `TYPES`; a first word such as tool or memory is all of its kind")
	cmd.Flags().StringVar(&f.session, "session", "", "only of the `SESSION` whose id begins so")
	cmd.Flags().StringVar(&f.run, "run", "", "only of this `RUN`")
	cmd.Flags().StringVar(&f.client, "client", "", "only of this `CLIENT`")
	cmd.Flags().StringVar(&f.agent, "agent", "", "only of this `AGENT`")
	cmd.Flags().StringSliceVar(&f.outcomes, "outcome", nil, "only with this `OUTCOME`")
	cmd.Flags().StringVar(&f.since, "since", "", "only from this `TIME` on: 2026-11-28, 2026-11-28T09:30, or 3h, 2d ago")
	cmd.Flags().StringVar(&f.until, "until", "", "only before this `TIME`")
	cmd.Flags().StringVarP(&f.text, "grep", "g", "", "only with this `TEXT` in them, in any case")
	var kinds []string
	for _, t := range event.Types() {
		kinds = append(kinds, string(t))
	}
	offer(cmd, "type", kinds...)
	offer(cmd, "client", "claude", "codex", "gemini", "copilot")
}

// prepare checks what was asked for.
func (f *eventFilter) prepare(app *App) (err error) {
	for _, t := range f.types {
		if !slices.ContainsFunc(event.Types(), func(have event.Type) bool { return isOfType(have, t) }) {
			return usagef("--type %q is no type of an event: see `reprise events list --help`", t)
		}
	}
	if f.sees, err = app.seesEvents(); err != nil {
		return err
	}
	if f.from, err = pastTime(app, "--since", f.since); err == nil {
		f.to, err = pastTime(app, "--until", f.until)
	}
	f.text = strings.ToLower(f.text)
	return err
}

// noClient says of a client's name that nobody has, where nothing was found by it, which there
// are: events are of others than those that we know, too.
func (f *eventFilter) noClient(app *App) {
	if f.client != "" && !slices.Contains(append(config.RouteClients(), agent.KindGeneric), f.client) {
		fmt.Fprintf(app.Err, "No client that is known is called %q: there are %s.\n", clipText(f.client, 40), strings.Join(config.RouteClients(), ", "))
	}
}

func isOfType(have event.Type, asked string) bool {
	asked = strings.TrimSuffix(asked, ".*")
	return string(have) == asked || strings.HasPrefix(string(have), asked+".")
}

// seesEvents says which events may be shown here: all to a person; to an agent
// with a name what everyone and it may read; and to a run that may not read the
// memory its own, for the log tells all that the memory knows.
func (a *App) seesEvents() (func(*event.Event) bool, error) {
	if a.person() {
		return func(*event.Event) bool { return true }, nil
	}
	access, err := a.memoryAccess()
	if err != nil {
		return nil, err
	}
	run, reads := a.Env.Get(proc.RunIDVar), access.MayRead() == nil
	who, err := a.reader()
	if err != nil {
		return nil, err
	}
	return func(e *event.Event) bool {
		if e.Run != "" && e.Run == run {
			return true
		}
		return reads && who.MayRead(e.ACL)
	}, nil
}

func (f *eventFilter) keeps(e *event.Event) bool {
	switch {
	case !f.sees(e):
		return false
	case f.hide != nil && f.hide(e.Type),
		len(f.types) > 0 && !slices.ContainsFunc(f.types, func(t string) bool { return isOfType(e.Type, t) }),
		f.session != "" && !strings.HasPrefix(e.Session, f.session),
		f.run != "" && e.Run != f.run,
		f.client != "" && e.Client != f.client,
		f.agent != "" && e.Agent != f.agent,
		len(f.outcomes) > 0 && !slices.Contains(f.outcomes, e.Outcome),
		!f.from.IsZero() && e.TS.Before(f.from),
		!f.to.IsZero() && !e.TS.Before(f.to):
		return false
	}
	return f.text == "" || strings.Contains(strings.ToLower(string(e.Data)), f.text) ||
		strings.Contains(strings.ToLower(e.Task+"\n"+strings.Join(e.Evidence, "\n")), f.text)
}

// collect reads the events that the filter keeps, oldest first: the last limit
// of them (0: all). Lines that cannot be used are told of and passed over.
func collect(app *App, logs []eventLog, f *eventFilter, limit int) ([]event.Event, error) {
	var out []event.Event
	bad := 0
	for _, log := range logs {
		for e, err := range event.ReadSince(log.dir, f.from) {
			if line := (*event.LineError)(nil); errors.As(err, &line) {
				bad++
				continue
			}
			if err != nil {
				return out, err
			}
			if !f.keeps(&e) {
				continue
			}
			if out = append(out, e); limit > 0 && len(out) > 2*limit+1000 && len(logs) == 1 {
				out = slices.Delete(out, 0, len(out)-limit) // a long log need not be held whole
			}
		}
	}
	if bad > 0 {
		fmt.Fprintf(app.Err, "note: %s cannot be read; `reprise events verify` says which\n", count(bad, "line"))
	}
	if len(logs) > 1 {
		slices.SortStableFunc(out, func(a, b event.Event) int { return a.TS.Compare(b.TS) })
	}
	if limit > 0 && len(out) > limit {
		out = out[len(out)-limit:]
	}
	return out, nil
}

func newEventsListCmd(app *App) *cobra.Command {
	var logs eventLogs
	var f eventFilter
	var asJSON, all bool
	var limit int
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: cobra.NoArgs, Short: "List events, the newest last",
		Long: `List events, the newest last, but for reprise's own bookkeeping
(compaction.finished, recall.served, recall.used). At a terminal lines are cut to
its width; ` + "`reprise events show ID`" + ` has the whole.`,
		RunE: func(*cobra.Command, []string) error {
			if err := f.prepare(app); err != nil {
				return err
			}
			where, err := logs.find(app)
			if err != nil {
				return err
			}
			if !all && !asJSON && len(f.types) == 0 {
				f.hide = bookkeeping
			}
			events, err := collect(app, where, &f, limit)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(app.Out, append([]event.Event{}, events...))
			}
			if len(events) == 0 {
				fmt.Fprintln(app.Err, "No such events.")
				f.noClient(app)
				return nil
			}
			return listEvents(app, events)
		},
	}
	logs.flags(app, cmd)
	f.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print events for programs, all of them")
	cmd.Flags().BoolVarP(&all, "all", "a", false, "reprise's own bookkeeping, too")
	cmd.Flags().IntVarP(&limit, "limit", "n", 50, "the last `N` (0: all)")
	return cmd
}

func newEventsVerifyCmd(app *App) *cobra.Command {
	var logs eventLogs
	var asJSON bool
	cmd := &cobra.Command{
		Use: "verify", Args: cobra.NoArgs, Short: "Check that no line of the event log was edited or is missing",
		Long: `Check the event log: every line must be an event, and name the line before it by
its hash. Ends with 1 if anything is wrong. Nothing is changed.`,
		RunE: func(*cobra.Command, []string) error {
			where, err := logs.find(app)
			if err != nil {
				return err
			}
			reports := map[string]event.Report{}
			wrong := false
			for _, log := range where {
				if _, err := os.Stat(log.dir); errors.Is(err, fs.ErrNotExist) {
					if len(where) == 1 {
						fmt.Fprintf(app.Err, "No events yet: %s is made by the first one.\n", log.dir)
						return nil
					}
					continue
				}
				report, err := event.Verify(log.dir)
				if err != nil {
					return err
				}
				wrong = wrong || !report.OK()
				reports[log.dir] = report
				if !asJSON {
					if err := showVerified(app, log.dir, report); err != nil {
						return err
					}
				}
			}
			if asJSON {
				var doc any = reports
				if len(where) == 1 {
					doc = reports[where[0].dir]
				}
				if err := printJSON(app.Out, doc); err != nil {
					return err
				}
			}
			if wrong {
				return exitWithCode(ExitFailure)
			}
			return nil
		},
	}
	logs.flags(app, cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report for programs")
	return cmd
}

func showVerified(app *App, dir string, r event.Report) error {
	for _, p := range r.Problems {
		fmt.Fprintf(app.Out, "%s:%d: %s\n", p.File, p.Line, term.SafeText(p.What))
	}
	for _, name := range r.Unfinished {
		fmt.Fprintf(app.Err, "note: the last line of %s is not finished: it is being written, or the next event sets it aside\n", name)
	}
	for _, t := range r.Torn {
		fmt.Fprintf(app.Err, "note: %s keeps %s that a crash cut off before they were events\n", t.File, count(int(t.Bytes), "byte"))
	}
	_, err := fmt.Fprintf(app.Out, "%s in %s of %s, %s\n", count(r.Events, "event"), count(r.Files, "file"), dir, count(len(r.Problems), "problem"))
	return err
}
