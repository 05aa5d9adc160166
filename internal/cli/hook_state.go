package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"reprise/internal/agent/dialect"
	"reprise/internal/session"
	"reprise/internal/term"
)

// notice works out what is to be said about the state of the agent that works here.
func (h *handlers) notice(ctx context.Context, ev dialect.Event) error {
	m, err := h.app.Remembered()
	if err != nil {
		return ignoreDenied(err)
	}
	return m.Notice(ctx, ev)
}

func newContextSuggestionsCmd(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "suggestions", Args: cobra.NoArgs, Short: "Show what the last session left to promote, learn or hand over",
		Long: `Show what the last session of the agent that works here left: learnings and
decisions that are not the project's yet, failures that were fixed, corrections
by the user, and work that its log does not end; each with the events and
entries that it is known from. Nothing is done with it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := app.Remembered()
			if err != nil {
				return err
			}
			l, err := m.Left(cmd.Context())
			if err != nil {
				return stateError(err)
			}
			if asJSON {
				if l.Items == nil {
					l.Items = []session.Nudge{}
				}
				return printJSON(app.Out, l)
			}
			if len(l.Items) == 0 {
				fmt.Fprintln(app.Err, "nothing was left")
				return nil
			}
			for _, x := range l.Items {
				fmt.Fprintf(app.Out, "%s  %s\n", app.Style().Bold(x.Kind), term.SafeLine(x.Text))
				if x.Kind == session.NudgePromote || x.Kind == session.NudgeDecision {
					fmt.Fprintf(app.Out, "  reprise context promote %s\n", term.SafeLine(x.Key))
				}
				for i, e := range x.Evidence {
					if i == 5 {
						fmt.Fprintf(app.Out, "  %s\n", app.Style().Dim(fmt.Sprintf("and %d more", len(x.Evidence)-i)))
						break
					}
					fmt.Fprintf(app.Out, "  %s\n", app.Style().Dim(term.SafeLine(e)))
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}
