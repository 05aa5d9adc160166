package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/learn"
	"reprise/internal/recall"
	"reprise/internal/session"
	"reprise/internal/term"
)

func newIndexCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{Use: "index", Short: "Look after the search index, which is derived and may be deleted"}
	var asJSON, rest bool
	show := func(st recall.Stats) error {
		if asJSON {
			return printJSON(app.Out, st)
		}
		home, err := app.Home()
		if err != nil {
			return err
		}
		fmt.Fprintf(app.Out, "index     %s\nfiles     %d\nsections  %d\nbytes     %d\n", session.IndexFile(home), st.Files, st.Sections, st.Bytes)
		if st.Derived > 0 {
			fmt.Fprintf(app.Out, "derived   %d\n", st.Derived)
		}
		if st.Took > 0 {
			fmt.Fprintf(app.Out, "took      %s\n", st.Took.Round(time.Millisecond))
		}
		if st.InMemory {
			fmt.Fprintln(app.Err, "note: its file cannot be written, so it was built in memory and is gone with this command")
		}
		for _, s := range st.Skipped {
			fmt.Fprintf(app.Err, "warning: not indexed: %s\n", term.SafeText(s))
		}
		return nil
	}
	rebuild := &cobra.Command{
		Use: "rebuild", Args: cobra.NoArgs, Short: "Read every file and make the index anew",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if rest {
				return app.rest(cmd.Context())
			}
			index, err := app.Index()
			if err != nil {
				return err
			}
			line := app.progress(asJSON)
			app.onRebuild = func(r learn.Report) {
				line.Show("%s read, %s worked out", count(r.Events, "event"), count(r.Sessions, "session"))
			}
			st, err := index.Rebuild(cmd.Context())
			line.Clear()
			if err != nil {
				return err
			}
			return show(st)
		},
	}
	rebuild.Flags().BoolVar(&rest, "rest", false, "make only what is missing, unless another process is at it")
	_ = rebuild.Flags().MarkHidden("rest") // it was defined just above
	status := &cobra.Command{
		Use: "status", Args: cobra.NoArgs, Short: "Describe the index as it is",
		RunE: func(cmd *cobra.Command, _ []string) error {
			index, err := app.Index()
			if err != nil {
				return err
			}
			st, err := index.Status(cmd.Context())
			if errors.Is(err, fs.ErrNotExist) {
				return exitWith(ExitNotFound, err)
			}
			if err != nil {
				return err
			}
			return show(st)
		},
	}
	cmd.PersistentFlags().BoolVar(&asJSON, "json", false, "print it for programs")
	cmd.AddCommand(rebuild, status, newIndexEmbedCmd(app))
	return cmd
}
