package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/loop"
	"reprise/internal/run"
)

func newRunsGCCmd(app *App) *cobra.Command {
	var older time.Duration
	var all, dry, asJSON bool
	cmd := &cobra.Command{
		Use: "gc", Args: cobra.NoArgs,
		Short: "Remove the records and output of runs that ended long ago",
		Long: `Remove the records and output of runs that ended long ago: those of the project here, or
outside of any project those of none, and with --all those of every project. What a loop
may still go on from stays, such as the run of a question that nobody has answered; how
many these are is said. --dry-run says first what would go.`,
		Example: `  reprise runs gc --dry-run
  reprise runs gc --older 24h`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			runs, err := app.Runs()
			if err != nil {
				return err
			}
			may, kept, err := app.mayGo(cmd.Context(), runs, all)
			if err != nil {
				return err
			}
			var gone []string
			verb := "removed"
			if dry {
				verb = "would be removed"
				list, listErr := runs.List(cmd.Context())
				for _, r := range run.Ended(list, older, app.Now()) {
					if may(r) {
						gone = append(gone, r.ID)
					}
				}
				err = listErr
			} else {
				gone, err = runs.GCOf(cmd.Context(), older, may)
			}
			if asJSON { // what was removed before something failed is removed
				text := any(nil)
				if err != nil {
					text = err.Error()
				}
				return errors.Join(err, printJSON(app.Out, map[string]any{"dry_run": dry, "removed": append([]string{}, gone...), "kept": *kept, "error": text}))
			}
			for _, id := range gone {
				fmt.Fprintln(app.Out, id)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(app.Err, "%s %s.\n", count(len(gone), "run"), verb)
			if *kept > 0 {
				fmt.Fprintf(app.Err, "Kept of loops, which may go on from there: %s.\n", count(*kept, "run"))
			}
			return nil
		},
	}
	cmd.Flags().DurationVar(&older, "older", runsKept, "only runs that ended longer ago than this `TIME`")
	cmd.Flags().Lookup("older").DefValue = "720h, 30 days"
	cmd.Flags().BoolVar(&all, "all", false, "of every project, and of none")
	cmd.Flags().BoolVarP(&dry, "dry-run", "n", false, "say what would be removed, and remove nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was removed, or would be, for programs")
	return cmd
}

// mayGo says which runs may be removed: those of the project here, or with all of every one,
// but never one that a loop may go on from; kept counts those that it was asked about.
func (a *App) mayGo(ctx context.Context, runs *run.Manager, all bool) (may func(run.Record) bool, kept *int, err error) {
	home, err := a.Home()
	if err != nil {
		return nil, nil, err
	}
	here := ""
	if home.Project != nil {
		here = home.Project.Name
	}
	list, err := runs.List(ctx)
	if err != nil && len(list) == 0 {
		return nil, nil, err
	}
	needed := map[string]bool{}
	var projects []string
	for _, r := range list {
		if r.Origin == "loop" && !slices.Contains(projects, r.Project) {
			projects = append(projects, r.Project)
		}
	}
	for _, name := range projects {
		s, err := loop.ReadState(filepath.Join(home.Paths.ProjectDir(name), "loop"))
		if err != nil { // which of them are needed is not known, so all stay
			return nil, nil, errors.Join(errors.New("nothing was removed, for it cannot be seen which runs are still needed"), err)
		}
		for id := range loop.Needed(list, s) {
			needed[id] = true
		}
	}
	kept = new(int)
	return func(r run.Record) bool {
		if !all && r.Project != here {
			return false
		}
		if needed[r.ID] {
			*kept++
			return false
		}
		return true
	}, kept, nil
}
