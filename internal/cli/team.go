package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/staterepo"
	"reprise/internal/term"
)

func newTeamCmd(app *App) *cobra.Command {
	var asJSON, fetch bool
	cmd := &cobra.Command{
		Use: "team", Args: cobra.NoArgs, Short: "Show who works on the project, on what, and what waits to be taken",
		Long: `Show the agents of the project, those of other machines as they were when
` + "`reprise state pull`" + ` last looked: what each is at and on which branches of the code, how
far it has come, when it last wrote, and the handoffs that nobody took yet. --fetch
looks at the remote first.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			repo, err := app.State()
			if err != nil {
				return err
			}
			if fetch {
				if repo, _, err = app.ensureState(ctx); err != nil {
					return err
				}
				if _, err := repo.Sync(ctx, staterepo.Pull); err != nil {
					return stateError(err)
				}
			}
			list, err := repo.Team(ctx)
			if err != nil {
				return stateError(err)
			}
			may := app.may()
			for i := range list {
				open := []staterepo.Handoff{}
				for _, h := range list[i].Open {
					if may == nil || may(h.ACL) {
						open = append(open, h)
					}
				}
				list[i].Open = open
			}
			if asJSON {
				return printJSON(app.Out, append([]staterepo.Member{}, list...))
			}
			showTeam(app, list)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	cmd.Flags().BoolVar(&fetch, "fetch", false, "bring in what the remote has first")
	return cmd
}

func showTeam(app *App, list []staterepo.Member) {
	if len(list) == 0 {
		fmt.Fprintln(app.Err, "no agent has state yet")
	}
	style := app.Style()
	for _, m := range list {
		when := "never"
		if !m.Last.IsZero() {
			when = ago(app.Now().Sub(m.Last)) + " ago"
		}
		where := "elsewhere"
		if m.Here {
			where = "here"
		}
		fmt.Fprintf(app.Out, "%s  %s  %s  %s  %s\n", style.Bold(term.SafeLine(m.Agent)), term.SafeLine(cmp.Or(m.Status, "–")), when, where, term.SafeLine(m.On))
		if len(m.Branches) > 0 {
			fmt.Fprintf(app.Out, "  on %s\n", term.SafeLine(strings.Join(m.Branches, ", ")))
		}
		for _, h := range m.Open {
			fmt.Fprintf(app.Out, "  %s %s → %s  %s\n", style.Yellow("waits:"), h.ID, term.SafeLine(cmp.Or(h.To, "anyone")), term.SafeLine(clipText(h.Title(), 80)))
		}
	}
}
