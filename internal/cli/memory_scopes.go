package cli

import (
	"context"

	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/learn/scopes"
	"reprise/internal/mdfile"
	"reprise/internal/term"
)

// knowledgeCommands are those about what is known, wherever it stands.
func knowledgeCommands(app *App) []*cobra.Command {
	return []*cobra.Command{
		memoryLearn(app), memoryDecide(app), memoryCorrect(app), memoryForget(app), memoryPromote(app), memoryDemote(app),
		memoryUseful(app, true), memoryUseful(app, false), memoryWhy(app), memoryConflicts(app), memoryProfile(app), memoryExpire(app),
		memorySummarize(app),
	}
}

// shown is a text on a terminal: the first lines, without control characters.
func shown(text string) string {
	text = term.SafeText(strings.TrimSpace(text))
	return strings.ReplaceAll(text, "\n", "\n  ")
}

// noteProject is the project that a note is for.
func noteProject(app *App, global bool, project string) (string, error) {
	if global {
		return "", nil
	}
	if project != "" {
		return project, nil
	}
	home, err := app.Home()
	if err != nil || home.Project == nil {
		return "", err
	}
	return home.Project.Name, nil
}

// noteFor is for which scope a note is, as its flags say.
type noteFor struct {
	global  bool
	project string
}

func noteFlags(cmd *cobra.Command, n *scopes.Note, to *noteFor) {
	cmd.Flags().BoolVar(&to.global, "global", false, "for all projects")
	cmd.Flags().StringVar(&to.project, "project", "", "for this `PROJECT` (default: the one around the working directory, else all)")
	cmd.Flags().BoolVar(&n.Private, "private", false, "for the agent alone that writes it")
	cmd.MarkFlagsMutuallyExclusive("global", "project")
}

// learnFlags and decideFlags are what `learn` and `decide` take, here and as commands
// of their own: whoever knows one of the two has to learn nothing for the other.
func learnFlags(cmd *cobra.Command, about *string) {
	cmd.Flags().StringVar(about, "context", "", "what prompted it")
}

func withContext(text, about string) string {
	if about = strings.TrimSpace(about); about == "" {
		return text
	}
	return strings.TrimSpace(text) + "\n\nContext: " + about
}

func decideFlags(cmd *cobra.Command, n *scopes.Note) {
	f := cmd.Flags()
	f.StringVar(&n.Rationale, "because", "", "why")
	f.StringArrayVar(&n.Alternatives, "over", nil, "what was decided against; may be given several times")
	f.StringVar(&n.Text, "text", "", "more about it, in markdown")
	f.StringVar(&n.Rationale, "rationale", "", "the same as --because")
	f.StringArrayVar(&n.Alternatives, "alternative", nil, "the same as --over")
	for _, two := range [...][2]string{{"because", "rationale"}, {"over", "alternative"}} {
		cmd.MarkFlagsMutuallyExclusive(two[0], two[1])
	}
}

func memoryLearn(app *App) *cobra.Command {
	var n scopes.Note
	var to noteFor
	var about string
	cmd := scopesCommand(app, "learn TEXT", "Keep something that was learnt", cobra.ExactArgs(1), func(ctx context.Context, s *scopes.Scopes, args []string) (c scopes.Change, err error) {
		if n.Text, err = saidArg(ctx, app, args[0]); err != nil {
			return c, err
		}
		n.Text = withContext(n.Text, about)
		if n.Project, err = noteProject(app, to.global, to.project); err != nil {
			return c, err
		}
		return s.Learn(ctx, n)
	})
	cmd.Long = `Add an entry to the project's learnings.md, or outside a project and with --global
to the block reference-learned of the global memory. What says otherwise is shown.
TEXT of - reads standard input. ` + "`reprise learn`" + ` is the same for a person; an agent's
goes into its own state there, until it is promoted.`
	cmd.Example = `  reprise memory learn "The port of billing is 6543"
  reprise memory learn --global "Run the linter before a commit"`
	learnFlags(cmd, &about)
	noteFlags(cmd, &n, &to)
	return cmd
}

func memoryDecide(app *App) *cobra.Command {
	n := scopes.Note{Type: mdfile.TypeDecision}
	var to noteFor
	cmd := scopesCommand(app, "decide DECISION", "Keep a decision, with what was decided against and why", cobra.ExactArgs(1), func(ctx context.Context, s *scopes.Scopes, args []string) (c scopes.Change, err error) {
		if n.Decision, err = saidArg(ctx, app, args[0]); err != nil {
			return c, err
		}
		if n.Project, err = noteProject(app, to.global, to.project); err != nil {
			return c, err
		}
		return s.Learn(ctx, n)
	})
	cmd.Example = `  reprise memory decide "Use pnpm" --because "one store for all checkouts" --over npm --over yarn`
	decideFlags(cmd, &n)
	noteFlags(cmd, &n, &to)
	return cmd
}

func memoryCorrect(app *App) *cobra.Command {
	var find string
	cmd := scopesCommand(app, "correct [ID] TEXT", "Put what holds in the place of what does not", cobra.RangeArgs(1, 2), func(ctx context.Context, s *scopes.Scopes, args []string) (scopes.Change, error) {
		text, err := saidArg(ctx, app, args[len(args)-1])
		if err != nil {
			return scopes.Change{}, err
		}
		switch {
		case len(args) == 2:
			return s.Correct(ctx, args[0], find, text)
		case find != "":
			return s.CorrectText(ctx, find, text)
		}
		return scopes.Change{}, usagef("correct: give the ID of what is wrong, or its words with --find")
	})
	cmd.Long = `From that moment the old is not served any more; it stays readable: an entry in
its file, a passage of a block and what was worked out in the event log.

ID is that of an entry, a block's section, an episode or a pattern. With --find,
only these words of it are replaced by TEXT, and without an ID the one item that
has them is looked for.`
	cmd.Example = `  reprise memory correct e-3f9a2c "The port of billing is 6543"
  reprise memory correct --find "billing is 5432" "billing is 6543"`
	cmd.Flags().StringVar(&find, "find", "", "the `WORDS` that are wrong")
	return cmd
}

func memoryPromote(app *App) *cobra.Command {
	var to string
	var budget time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use: "promote [ID]", Args: cobra.MaximumNArgs(1), Short: "Lift something to the project or to all projects; without an ID, run the gates",
		Long: `With an ID: make an entry of it in a wider scope, because you say so; of what an agent
of this project keeps for itself, one of the project (as ` + "`reprise context promote`" + ` does).

Without one: what was seen to work often enough becomes an entry (settings
learn.project_sessions, learn.global_projects and learn.min_confidence). This also
happens at the end of sessions. What was demoted or forgotten by hand does not
come back, and what reads like an instruction to a model is left to you.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return promoteOne(cmd.Context(), app, args[0], to, asJSON)
			}
			s, err := app.Scopes()
			if err != nil {
				return err
			}
			if to != "" {
				return usagef("promote: --to needs an ID")
			}
			organizer, err := app.Organizer()
			if err != nil {
				return err
			}
			if _, err := organizer.Run(cmd.Context(), 0); err != nil {
				return err
			}
			p, err := s.Promote(cmd.Context(), budget)
			if err != nil {
				return memoryError(err)
			}
			return showPromotion(app, p, asJSON)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "project or global (default: the next wider)")
	cmd.Flags().DurationVar(&budget, "budget", 0, "the longest that the gates may take; 0 is no limit")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer for programs")
	return cmd
}

func showPromotion(app *App, p scopes.Promotion, asJSON bool) error {
	if asJSON {
		return printJSON(app.Out, p)
	}
	for _, c := range p.Promoted {
		if err := changed(app, c, false); err != nil {
			return err
		}
	}
	for _, h := range p.Held {
		fmt.Fprintf(app.Out, "held back %s: %s\n  %s\n", h.ID, h.Reason, shown(h.Title))
	}
	if len(p.Promoted)+len(p.Held) == 0 {
		fmt.Fprintln(app.Err, "nothing was seen to work often enough yet")
	}
	if p.More {
		fmt.Fprintln(app.Err, "note: the budget ended first; run it again")
	}
	return nil
}

func memoryDemote(app *App) *cobra.Command {
	var reason string
	cmd := scopesCommand(app, "demote ID", "Take a promotion back; what it was made from stays", cobra.ExactArgs(1), func(ctx context.Context, s *scopes.Scopes, args []string) (scopes.Change, error) {
		return s.Demote(ctx, args[0], reason)
	})
	cmd.Flags().StringVar(&reason, "reason", "", "why; kept in the log")
	return cmd
}

func memoryUseful(app *App, useful bool) *cobra.Command {
	use, short := "useful ID", "Say that something helped: it is served sooner"
	if !useful {
		use, short = "useless ID", "Say that something did not help: it is served later"
	}
	return scopesCommand(app, use, short, cobra.ExactArgs(1), func(ctx context.Context, s *scopes.Scopes, args []string) (scopes.Change, error) {
		return s.Used(ctx, args[0], useful)
	})
}

func memoryConflicts(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "conflicts", Args: cobra.NoArgs, Short: "Show what contradicts each other, and which of it is served",
		Long: `Of two notes that say different things about one subject only one is served: the
correction, else the one of the narrower scope, else the newer, else the more
confident one. Of two corrections of one entry, as two machines make them that have
not met, it is the newer. Settle it with ` + "`reprise memory correct`" + ` or ` + "`forget`" + `.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := app.Scopes()
			if err != nil {
				return err
			}
			list, err := s.Conflicts(cmd.Context())
			if err != nil {
				return memoryError(err)
			}
			if asJSON {
				return printJSON(app.Out, list)
			}
			for _, c := range list {
				showConflict(app, c)
			}
			if len(list) == 0 {
				fmt.Fprintln(app.Err, "nothing contradicts anything else")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print them for programs")
	return cmd
}

func showConflict(app *App, c scopes.Conflict) {
	why := map[string]string{
		"correction": "it corrects the other", "scope": "its scope is narrower", "newer": "it is newer", "confidence": "it is more certain", "order": "nothing else tells them apart",
	}[c.Why]
	fmt.Fprintf(app.Out, "%s, %s:\n", term.SafeText(c.Subject), term.SafeText(c.Attribute))
	fmt.Fprintf(app.Out, "  served   %s  %s  %s, %s (%s)\n", term.SafeText(c.Winner.Value), c.Winner.ID, term.SafeText(c.Winner.Source), c.Winner.Time.Format(time.DateOnly), why)
	for _, l := range c.Losers {
		fmt.Fprintf(app.Out, "  left out %s  %s  %s, %s\n", term.SafeText(l.Value), l.ID, term.SafeText(l.Source), l.Time.Format(time.DateOnly))
	}
}

// noteRivals names, after an exchange with other machines, what was corrected here and
// there in different ways: of each only the newest is served from then on.
func noteRivals(ctx context.Context, app *App) error {
	s, err := app.Scopes()
	if err != nil {
		return err
	}
	list, err := s.Rivals(ctx)
	if err != nil {
		return memoryError(err)
	}
	for _, c := range list {
		var others []string
		for _, l := range c.Losers {
			others = append(others, fmt.Sprintf("%q (%s)", l.Value, l.ID))
		}
		fmt.Fprintf(app.Err, "%s %s was corrected in several ways: %q (%s) is served, as the newest, and not %s; `reprise memory conflicts` has more\n", app.Style().Yellow("look at this:"),
			term.SafeLine(fmt.Sprintf("%q", c.Subject)), term.SafeLine(c.Winner.Value), c.Winner.ID, term.SafeLine(strings.Join(others, ", ")))
	}
	return nil
}

func memoryExpire(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "expire", Args: cobra.NoArgs, Short: "Take out what is older than the settings keep it (learn.episode_days, …)",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := app.Scopes()
			if err != nil {
				return err
			}
			list, err := s.Expire(cmd.Context())
			if err != nil {
				return memoryError(err)
			}
			if asJSON {
				return printJSON(app.Out, list)
			}
			for _, x := range list {
				fmt.Fprintf(app.Out, "%s of class %s before %s %s\n", count(x.Docs, "document"), x.Class, x.Before.Format(time.DateOnly), x.Project)
			}
			if len(list) == 0 {
				fmt.Fprintln(app.Err, "nothing is too old; without settings everything is kept")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was done for programs")
	return cmd
}
