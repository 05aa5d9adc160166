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

func newEventsCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{Use: "events", Short: "Look after the record of what happened"}
	var asJSON bool
	verify := &cobra.Command{
		Use: "verify", Args: cobra.NoArgs, Short: "Check that no line of the event log was edited or is missing",
		Long: `Check the event log of the project around the working directory, or of the global
scope: every line must be an event, and name the line before it by its hash. Ends
with 1 if anything is wrong. Nothing is changed.`,
		RunE: func(*cobra.Command, []string) error {
			home, err := app.Home()
			if err != nil {
				return err
			}
			dir := home.EventsDir()
			if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
				fmt.Fprintf(app.Err, "No events yet: %s is made by the first one.\n", dir)
				return nil
			}
			report, err := event.Verify(dir)
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(app.Out, report)
			} else {
				err = showVerified(app, dir, report)
			}
			if err == nil && len(report.Problems) > 0 {
				return exitWithCode(ExitFailure)
			}
			return err
		},
	}
	verify.Flags().BoolVar(&asJSON, "json", false, "print the report for programs")
	cmd.AddCommand(verify)
	return cmd
}

func showVerified(app *App, dir string, r event.Report) error {
	for _, p := range r.Problems {
		fmt.Fprintf(app.Out, "%s:%d: %s\n", p.File, p.Line, term.SafeText(p.What))
	}
	for _, name := range r.Unfinished {
		fmt.Fprintf(app.Err, "note: the last line of %s is not finished: it is being written, or the next event sets it aside\n", name)
	}
	_, err := fmt.Fprintf(app.Out, "%d events in %d files of %s, %d problems\n", r.Events, r.Files, dir, len(r.Problems))
	return err
}
