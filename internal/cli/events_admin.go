package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"reprise/internal/event"
	"reprise/internal/term"
)

func newEventsMigrateCmd(app *App) *cobra.Command {
	var logs eventLogs
	var asJSON, dryRun bool
	cmd := &cobra.Command{
		Use: "migrate", Args: cobra.NoArgs, Short: "Bring older events to this version, into new files",
		Long: `Bring every event of the log to the version that this program writes. A file with
older events is replaced by a new one with its chain made anew; the old one is kept
in a directory before-<time> beside it, with a report. A log of one file,
events.jsonl, as older programs kept it, is divided by month. Lines that no
migration knows stay as they are and are listed. What is derived from the log is
made again by itself. With --dry-run nothing is changed.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			access, err := app.memoryAccess()
			if err != nil {
				return err
			}
			if err := access.MayWrite(); err != nil {
				return err
			}
			where, err := logs.find(app)
			if err != nil {
				return err
			}
			audits := []event.Audit{}
			line := app.progress(asJSON)
			for _, log := range where {
				if _, err := os.Stat(log.dir); errors.Is(err, fs.ErrNotExist) {
					continue
				}
				a, err := event.Migrate(cmd.Context(), event.MigrateOptions{Dir: log.dir, Host: app.Hostname, Now: app.Env.Now, DryRun: dryRun,
					Progress: func(file string, n, of int) { line.Show("file %d of %d  %s of %s", n, of, file, log.dir) }})
				line.Clear()
				if err != nil {
					return err
				}
				audits = append(audits, a)
				if !asJSON {
					showAudit(app, a)
				}
			}
			if asJSON {
				return printJSON(app.Out, audits)
			}
			if len(audits) == 0 {
				fmt.Fprintln(app.Err, "No events yet: there is nothing to migrate.")
			}
			return nil
		},
	}
	logs.flags(app, cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be done, and do nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the reports for programs")
	return cmd
}

func showAudit(app *App, a event.Audit) {
	fmt.Fprintf(app.Out, "%s, to version %d\n", a.Dir, a.To)
	for _, f := range a.Files {
		what := "is as it should be"
		switch {
		case f.Changed && a.DryRun:
			what = "would be replaced"
		case f.Changed:
			what = "was replaced"
		}
		fmt.Fprintf(app.Out, "  %s %s: %s\n", f.File, what, count(f.Events, "event"))
		for _, into := range f.Into {
			fmt.Fprintf(app.Out, "    into %s\n", into)
		}
		for step, n := range f.Steps {
			fmt.Fprintf(app.Out, "    version %s: %s\n", step, count(n, "event"))
		}
		if f.Redacted > 0 {
			fmt.Fprintf(app.Out, "    secrets taken out of %s\n", count(f.Redacted, "event"))
		}
		if f.Changed {
			fmt.Fprintf(app.Out, "    chain before %s\n    chain after  %s\n", orNothing(f.OldChain), orNothing(f.NewChain))
		}
		for _, p := range append(f.Before, f.Refused...) {
			fmt.Fprintf(app.Out, "    line %d: %s\n", p.Line, term.SafeLine(p.What))
		}
	}
	switch {
	case !a.Changed():
		fmt.Fprintln(app.Out, "  nothing to do")
	case a.DryRun:
		fmt.Fprintln(app.Out, "  nothing was changed (--dry-run)")
	default:
		fmt.Fprintf(app.Out, "  what was there is in %s\n", a.Aside)
	}
}

func orNothing(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

func newEventsOutboxCmd(app *App) *cobra.Command {
	var asJSON, replay bool
	cmd := &cobra.Command{
		Use: "outbox", Args: cobra.NoArgs, Short: "Show the events that could not be logged, and log them",
		Long: `Show the events that could not be logged when they happened, because the disk was
full, the log was locked for too long or could not be written. The next hook logs
them by itself, and so does --replay. An event is logged once, however often it is
tried.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := app.Broker()
			if err != nil {
				return err
			}
			if replay {
				return replayOutbox(cmd, app, b, asJSON)
			}
			waiting, err := b.Outbox()
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(app.Out, append([]event.Waiting{}, waiting...))
			}
			if len(waiting) == 0 {
				fmt.Fprintln(app.Err, "Nothing waits: every event is in its log.")
				return nil
			}
			table := term.NewTable(app.Style(), "ID", "SINCE", "TYPE", "WHY").MaxWidth(app.Columns)
			for _, w := range waiting {
				since, why := "", w.Why
				if !w.At.IsZero() {
					since = w.At.Local().Format("2006-01-02 15:04:05")
				}
				if w.Bad != "" {
					why = "cannot be logged: " + w.Bad
				}
				table.Text(w.ID, since, string(w.Type), why)
			}
			return table.Write(app.Out)
		},
	}
	cmd.Flags().BoolVar(&replay, "replay", false, "log them now")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print for programs")
	return cmd
}

func replayOutbox(cmd *cobra.Command, app *App, b *event.Broker, asJSON bool) error {
	r, err := b.Replay(cmd.Context(), 0)
	if err != nil {
		return err
	}
	if asJSON {
		err = printJSON(app.Out, r)
	} else {
		_, err = fmt.Fprintf(app.Out, "%s logged, %d had been logged already, %d left\n", count(r.Added, "event"), r.Known, r.Left)
		for _, s := range r.Aside {
			fmt.Fprintf(app.Err, "note: set aside: %s\n", term.SafeLine(s))
		}
		for _, s := range r.Trouble {
			fmt.Fprintf(app.Err, "note: %s\n", term.SafeLine(s))
		}
	}
	if err == nil && r.Left > 0 {
		return exitWithCode(ExitFailure)
	}
	return err
}
