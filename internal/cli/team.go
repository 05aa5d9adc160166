package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/git"
	"reprise/internal/staterepo"
	"reprise/internal/term"
)

func newTeamCmd(app *App) *cobra.Command {
	var asJSON, fetch, all bool
	cmd := &cobra.Command{
		Use: "team", Args: cobra.NoArgs, Short: "Show who works on the project, on what, and what waits to be taken",
		Long: `Show the agents of the project, those of other machines as they were when
` + "`reprise state pull`" + ` last looked: what each is at and on which branches of the
code, how far it has come, when it last wrote, and the handoffs that nobody took
yet. --fetch looks at the remote first. An agent that works nowhere any more,
and of whom everything that is to last is the project's, is only shown with
--all.`,
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
					if !errors.Is(err, git.ErrNetwork) && !errors.Is(err, git.ErrAuth) && !errors.Is(err, git.ErrTimeout) && !errors.Is(err, git.ErrNotRepo) {
						return stateError(err)
					}
					fmt.Fprintf(app.Err, "warning: this is as it was last fetched: %v\n", err)
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
			over := 0
			if !all {
				n := len(list)
				list = slices.DeleteFunc(list, func(m staterepo.Member) bool { return m.Over() })
				over = n - len(list)
			}
			if asJSON {
				return printJSON(app.Out, append([]staterepo.Member{}, list...))
			}
			return showTeam(app, list, over)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	cmd.Flags().BoolVar(&all, "all", false, "those whose work is over, too")
	cmd.Flags().BoolVar(&fetch, "fetch", false, "bring in what the remote has first")
	return cmd
}

func showTeam(app *App, list []staterepo.Member, over int) error {
	if len(list)+over == 0 {
		fmt.Fprintln(app.Err, "no agent has state yet")
	}
	style := app.Style()
	desk := app.Env.Get(agentDirVar)
	if home, err := app.Home(); desk == "" && err == nil && home.Project != nil {
		desk = config.AgentDir(home.Project, app.Env.Dir)
	}
	table := term.NewTable(style, "AGENT", "STATUS", "WROTE", "WHERE", "BRANCHES", "AT WORK ON").MaxWidth(app.Columns)
	for _, m := range list {
		when := "never"
		if !m.Last.IsZero() {
			when = term.Ago(app.Now().Sub(m.Last))
		}
		where := "elsewhere"
		switch {
		case m.Here && m.Dir == desk:
			where = "here"
		case m.Here:
			where = "on this machine"
		case m.Nowhere:
			where = "nowhere any more"
		}
		table.Row(style.Bold(term.SafeLine(m.Agent)), term.SafeLine(cmp.Or(statusSaid(m.Status), "–")), when, where, term.SafeLine(cmp.Or(strings.Join(m.Branches, ", "), "–")), term.SafeLine(cmp.Or(m.On, "–")))
	}
	if len(list) > 0 {
		if err := table.Write(app.Out); err != nil {
			return err
		}
	}
	for _, m := range list {
		for _, h := range m.Open {
			fmt.Fprintf(app.Out, "%s %s → %s  %s  %s\n", style.Yellow("waits:"), h.ID, term.SafeLine(cmp.Or(h.To, "anyone")), term.SafeLine(clipText(h.Title(), 80)), style.Dim("from "+term.SafeLine(m.Agent)))
		}
	}
	for _, m := range list {
		if m.Left > 0 {
			fmt.Fprintf(app.Out, "of %s is left to promote: %d; `reprise context promote --agent %s` lists them\n", m.Agent, m.Left, m.Agent)
		}
	}
	if over > 0 {
		fmt.Fprintf(app.Err, "%d more whose work is over; --all shows them\n", over)
	}
	return nil
}
