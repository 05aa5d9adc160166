package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"reprise/internal/learn/improve"
	"reprise/internal/term"
)

func newMetricsCmd(app *App) *cobra.Command {
	var since, by string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "metrics", Args: cobra.NoArgs, Short: "Show what recall is good for: sessions with it beside sessions without",
		Long: `Show what recall is good for. A few sessions (setting recall.hold_out_percent) are
told nothing recalled; they are compared with those that were, in how they ended,
retries, corrections by the user and tool calls. Intervals are of 95 %, and where
there are too few sessions it says so.

Above that stands how many sessions went through each phase: recorded from start
to end, organised, told something that was remembered, and used it.`,
		Example: `  reprise metrics --since 30d
  reprise metrics --by client --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			from, err := pastTime(app, "--since", since)
			if err != nil {
				return err
			}
			switch by {
			case "", "client", "role", "project":
			default:
				return usagef("--by: %q is not one of client, role, project", clipText(by, 40))
			}
			organizer, err := app.Organizer()
			if err != nil {
				return memoryError(err)
			}
			if _, err := organizer.Run(cmd.Context(), 0); err != nil {
				return err
			}
			m, err := improve.Measure(cmd.Context(), organizer, from, by)
			if err != nil {
				return err
			}
			if asJSON {
				if m.Groups == nil {
					m.Groups = []improve.Group{}
				}
				return printJSON(app.Out, m)
			}
			showMetrics(app, m)
			return nil
		},
	}
	cmd.Flags().StringVar(&since, "since", "", "only sessions that began since this `TIME`: 30d, 12h, yesterday or a date")
	cmd.Flags().StringVar(&by, "by", "", "apart for each client, role or project")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the figures for programs")
	offer(cmd, "by", "client", "role", "project")
	return cmd
}

func showMetrics(app *App, m improve.Metrics) {
	if len(m.Groups) == 0 {
		fmt.Fprintln(app.Err, "no session was recorded in that time")
	}
	style := app.Style()
	for i, g := range m.Groups {
		if i > 0 {
			fmt.Fprintln(app.Out)
		}
		c := g.Cycle
		fmt.Fprintf(app.Out, "%s: %s\n", style.Bold(term.SafeLine(g.Name)), count(c.Sessions, "session"))
		for _, row := range []struct {
			name string
			n    int
		}{
			{"recorded from start to end", c.Whole}, {"organised, with an outcome", c.Organised}, {"told something remembered", c.Recalled},
			{"used it", c.Used}, {"held out", c.Withheld},
		} {
			fmt.Fprintf(app.Out, "  %-28s %5d  %3.0f %%\n", row.name, row.n, 100*float64(row.n)/float64(max(c.Sessions, 1)))
		}
		if c.Asked+c.Answered > 0 {
			fmt.Fprintf(app.Out, "  questions: the user answered %d, memory %d\n", c.Asked, c.Answered)
		}
		lift := func(name string) string {
			for _, l := range g.Lifts {
				if l.Name == name && g.With.Sessions > 0 && g.Without.Sessions > 0 {
					return fmt.Sprintf("%+.2f (%.2f to %.2f)", l.Diff, l.Low, l.High)
				}
			}
			return ""
		}
		share := func(a improve.Arm) string {
			if a.Judged == 0 {
				return "–"
			}
			return fmt.Sprintf("%.0f %% (%.0f–%.0f)", 100*a.Success, 100*a.SuccessLow, 100*a.SuccessHigh)
		}
		mean := func(a improve.Arm, m improve.Mean) string {
			if a.Sessions == 0 {
				return "–"
			}
			return fmt.Sprintf("%.2f ± %.2f", m.Mean, m.Half)
		}
		rows := [][4]string{
			{"", fmt.Sprintf("with (n=%d)", g.With.Sessions), fmt.Sprintf("without (n=%d)", g.Without.Sessions), "difference"},
			{"ended well", share(g.With), share(g.Without), lift("success rate")},
		}
		for _, row := range []struct {
			name, lift string
			a, b       improve.Mean
		}{
			{"retries", "retries", g.With.Retries, g.Without.Retries}, {"user's corrections", "corrections by the user", g.With.Corrections, g.Without.Corrections},
			{"tool calls", "tool calls", g.With.Calls, g.Without.Calls}, {"failed calls", "failed calls", g.With.Failures, g.Without.Failures}, {"tokens told", "tokens told", g.With.Tokens, g.Without.Tokens},
		} {
			rows = append(rows, [4]string{row.name, mean(g.With, row.a), mean(g.Without, row.b), lift(row.lift)})
		}
		app.compared(rows)
		if g.With.Items > 0 {
			fmt.Fprintf(app.Out, "  recall hits: %.0f %% of %s told were used\n", 100*g.With.Hits, count(g.With.Items, "item"))
		}
		app.said("  ", g.Verdict)
	}
}

// compared prints two columns of figures and what is between them. A terminal that has no room
// for the last has it below: cut off it would say nothing.
func (a *App) compared(rows [][4]string) {
	const apart = 76
	narrow := a.Columns > 0 && a.Columns < apart
	t := term.NewTable(a.Style()).AlignRight(1).AlignRight(2)
	for _, r := range rows {
		cells := []string{"  " + r[0], r[1], r[2]}
		if !narrow {
			cells = append(cells, r[3])
		}
		t.Row(cells...)
	}
	_ = t.Write(a.Out) // to a terminal or a pipe, as all else here
	for _, r := range rows[1:] {
		if narrow && r[3] != "" {
			fmt.Fprint(a.Out, wrapLine("  difference, "+r[0]+": "+r[3], a.Columns))
		}
	}
}
