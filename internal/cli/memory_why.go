package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/learn/scopes"
	"reprise/internal/recall"
	"reprise/internal/term"
)

func memoryWhy(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "why ID", Args: cobra.ExactArgs(1), Short: "Say why something is remembered: evidence, signals, scopes, what replaced it",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := app.Scopes()
			if err != nil {
				return err
			}
			x, err := s.Why(cmd.Context(), args[0])
			if err != nil {
				return memoryError(err)
			}
			if asJSON {
				return printJSON(app.Out, x)
			}
			showWhy(app, x)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

// tells says that a text begins with its title, which an entry's does: the title
// is its first line, without marks and cut to a length.
func tells(text, title string) bool {
	bare := func(s string) string { return strings.Join(strings.Fields(strings.TrimLeft(s, "#-* \t\n")), " ") }
	title = strings.TrimRight(strings.TrimSuffix(bare(title), "…"), " .")
	return title != "" && strings.HasPrefix(bare(text), title)
}

func showWhy(app *App, x scopes.Account) {
	out, d := app.Out, x.Doc
	fmt.Fprintf(out, "%s  %s\n", d.ID, x.Status)
	text := strings.TrimSpace(d.Text)
	if d.Title != "" && !tells(text, d.Title) {
		app.said("  ", term.SafeText(d.Title))
	}
	if text != "" {
		app.said("  ", shown(text))
	}
	line := func(name, value string) {
		if value != "" {
			app.said(fmt.Sprintf("%-12s ", name), term.SafeText(value))
		}
	}
	line("class", string(d.Class))
	scope := d.Scope
	if d.Project != "" {
		scope += " " + strings.TrimPrefix(recall.Where(d.Project), "project ")
	}
	line("scope", scope)
	line("source", d.Source)
	line("made from", x.MadeFrom)
	line("by", d.Author)
	line("readers", strings.Join(d.ACL, ", "))
	if !d.Time.IsZero() {
		line("known since", d.Time.Local().Format(time.DateTime))
	}
	if !d.Until.IsZero() {
		line("until", d.Until.Local().Format(time.DateTime))
	}
	line("replaces", x.Supersedes)
	line("replaced by", x.Superseded)
	if d.Confidence > 0 {
		line("confidence", fmt.Sprintf("%.2f", d.Confidence))
	}
	importance := fmt.Sprintf("%.2f", d.Importance)
	if scopes.ByKind(d.Class) {
		importance += "  for what it is and who said it; use counts beside that" // its signals say nothing of it
	}
	line("importance", importance)
	for _, s := range x.Signals {
		app.said(fmt.Sprintf("  %-10s %.2f × %.2f  ", s.Name, s.Value, s.Weight), term.SafeText(s.Because))
	}
	for _, g := range x.Gates {
		mark := "not yet"
		if g.Passed {
			mark = "passed"
		}
		if g.Forgotten != "" {
			line("gate "+g.To, fmt.Sprintf("what it would be part of there, %s, was forgotten on %s, and stays so whatever is seen later; `reprise memory forget --undo %s` takes that back",
				g.Forgotten, g.Since.Local().Format(time.DateOnly), g.Forgotten))
			continue
		}
		line("gate "+g.To, fmt.Sprintf("%s: %d of %d, %s", g.Needs, g.Have, g.Need, mark))
	}
	for _, h := range x.History {
		what := h.Op
		if h.From != "" || h.To != "" {
			what += " " + strings.TrimSpace(h.From+" → "+h.To)
		}
		if h.By != "" {
			what += " by " + h.By
		}
		if h.Reason != "" {
			what += ": " + h.Reason
		}
		line("history", h.Time.Local().Format(time.DateTime)+"  "+what)
	}
	for _, e := range x.Evidence {
		when := "not in the logs any more, or of another machine"
		if e.Type != "" {
			when = e.Time.Local().Format(time.DateTime) + "  " + e.Type + "  " + e.What
		}
		line("evidence", e.Event+"  "+when)
	}
	line("says it too", strings.Join(x.Kin, ", "))
	for _, c := range x.Conflicts {
		showConflict(app, c)
	}
}
