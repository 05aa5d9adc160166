package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"reprise/internal/event"
	"reprise/internal/staterepo"
	"reprise/internal/term"
)

func newStateMetricsCmd(app *App) *cobra.Command {
	var since string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "metrics", Args: cobra.NoArgs, Short: "Show whether the state is used: tools, learnings, searches",
		Long: `Show, from the project's events, whether the state is used: which of reprise's
tools agents called, what was written, which learnings and decisions were put
into a later session or used there, and how many searches found something.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			from, err := pastTime(app, "--since", since)
			if err != nil {
				return err
			}
			repo, err := app.State()
			if err != nil {
				return err
			}
			home, err := app.Home()
			if err != nil {
				return err
			}
			log, err := repo.Log(cmd.Context(), staterepo.Everyone)
			if err != nil {
				return stateError(err)
			}
			m := staterepo.Adopted(event.ReadSince(home.Paths.Events(home.Project.Name), from), log)
			if asJSON {
				return printJSON(app.Out, m)
			}
			showAdoption(app, m)
			return nil
		},
	}
	cmd.Flags().StringVar(&since, "since", "30d", "only since then: a duration such as 2d or 3h, or a date")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

func showAdoption(app *App, m staterepo.Adoption) {
	was := " were"
	if m.Sessions == 1 {
		was = " was"
	}
	fmt.Fprintln(app.Out, count(m.Sessions, "session")+was+" recorded, those of runs among them")
	for _, list := range []struct {
		what string
		of   []staterepo.Count
	}{{"tools called", m.Tools}, {"written", m.Writes}} {
		fmt.Fprintf(app.Out, "%s:\n", app.Style().Bold(list.what))
		for _, c := range list.of {
			fmt.Fprintf(app.Out, "  %6d  %s\n", c.Times, term.SafeLine(c.Name))
		}
		if len(list.of) == 0 {
			fmt.Fprintln(app.Out, "  none")
		}
	}
	fmt.Fprintf(app.Out, "%s: %d, of which %d were told to a later session and %d used\n", app.Style().Bold("learnings and decisions"), m.Lasting, m.Read, m.Used)
	for _, r := range m.Top {
		fmt.Fprintf(app.Out, "  %6d  %s  %s\n", r.Sessions, r.ID, term.SafeLine(clipText(r.Title, 80)))
	}
	fmt.Fprintf(app.Out, "%s: %d, of which %d found something\n", app.Style().Bold("searches"), m.Searches, m.Hits)
}
