package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/learn/scopes"
	"reprise/internal/term"
)

func memoryProfile(app *App) *cobra.Command {
	var asJSON bool
	show := func(cmd *cobra.Command, _ []string) error {
		s, err := app.Scopes()
		if err != nil {
			return err
		}
		list, err := s.Profile(cmd.Context())
		if err != nil {
			return memoryError(err)
		}
		if asJSON {
			return printJSON(app.Out, list)
		}
		showProfile(app, list)
		return nil
	}
	cmd := &cobra.Command{
		Use: "profile", Args: cobra.NoArgs, Short: "How the user likes things: what is kept, and what their words suggest",
		Long: `Preferences that were kept are told to sessions. Suggestions are the user's own
words, from prompts and corrections: keep them, say them better, or drop them.`,
		RunE: show,
	}
	shows := &cobra.Command{Use: "show", Args: cobra.NoArgs, Short: "List them", RunE: show}
	for _, c := range []*cobra.Command{cmd, shows} {
		c.Flags().BoolVar(&asJSON, "json", false, "print them for programs")
	}
	var to string
	keep := scopesCommand(app, "keep ID", "Make a suggestion a preference that sessions are told", cobra.ExactArgs(1), func(ctx context.Context, s *scopes.Scopes, args []string) (scopes.Change, error) {
		return s.Keep(ctx, args[0], "", to)
	})
	keep.Flags().StringVar(&to, "to", "", "project or global (default: where it was said)")
	drop := scopesCommand(app, "drop ID", "Take a preference out, or stop a suggestion", cobra.ExactArgs(1), func(ctx context.Context, s *scopes.Scopes, args []string) (scopes.Change, error) {
		return s.DropPreference(ctx, args[0])
	})
	edit := scopesCommand(app, "edit ID TEXT", "Say a preference or a suggestion better, and keep it", cobra.ExactArgs(2), func(ctx context.Context, s *scopes.Scopes, args []string) (scopes.Change, error) {
		text, err := saidArg(ctx, app, args[1])
		if err != nil {
			return scopes.Change{}, err
		}
		return s.Keep(ctx, args[0], text, to)
	})
	edit.Flags().StringVar(&to, "to", "", "project or global (default: where it was said)")
	cmd.AddCommand(shows, keep, drop, edit)
	return cmd
}

func showProfile(app *App, list []scopes.Preference) {
	for i, p := range list {
		switch {
		case p.Kept && i == 0:
			fmt.Fprintln(app.Out, "Kept:")
		case !p.Kept && (i == 0 || list[i-1].Kept):
			fmt.Fprintln(app.Out, "Suggested by what was said:")
		}
		said := ""
		if !p.Kept {
			said = fmt.Sprintf(", in %s, last on %s", count(p.Sessions, "session"), p.Last.Format(time.DateOnly))
		}
		fmt.Fprintf(app.Out, "  %s\n    %s\n", term.SafeText(p.Text), app.Style().Dim(p.ID+"  "+p.Scope+said))
	}
	if len(list) == 0 {
		fmt.Fprintln(app.Err, "Nothing is known yet. `reprise memory learn` keeps what you say.")
	}
}
