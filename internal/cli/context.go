package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/agent/dialect"
	"reprise/internal/brief"
	"reprise/internal/event"
	"reprise/internal/term"
)

func newContextCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{Use: "context", Short: "See what sessions are told, and say what is to be passed on"}
	cmd.AddCommand(newContextShowCmd(app), newContextSetCmd(app), newContextPromoteCmd(app), newContextSuggestionsCmd(app))
	return cmd
}

func newContextShowCmd(app *App) *cobra.Command {
	var explain, asJSON bool
	var prompt, failure, command, client string
	cmd := &cobra.Command{
		Use: "show", Args: cobra.NoArgs, Short: "Show exactly what a session would be told now, and what it costs",
		Long: `Show exactly what a session in this directory would be told now: at its start,
or with --prompt along with a prompt, or with --failure when a command fails
with such an output. Nothing is recorded.

--explain shows the parts with their budgets, what each line costs and why it is
there, and what was left out.`,
		Example: `  reprise context show --explain
  reprise context show --prompt "deploy the shop to staging"
  reprise context show --command "go test ./..." --failure "connection refused"`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r := brief.Request{At: brief.SessionStart}
			switch {
			case prompt != "" && failure != "":
				return usagef("--prompt and --failure are two moments; give one")
			case prompt != "":
				r.At, r.Text = brief.Prompt, prompt
			case failure != "":
				r.At, r.Failed = brief.ToolFailure, event.ToolData{Tool: "shell", Name: "Bash", Error: failure}
				if command != "" {
					input, err := jsonData(map[string]any{"command": command})
					if err != nil {
						return err
					}
					r.Failed.Input = input
				}
			}
			if command != "" && failure == "" {
				return usagef("--command is the command that failed: say with --failure how")
			}
			if !slices.Contains(dialect.Clients(), client) {
				return usagef("--client %q: there are %s", clipText(client, 40), strings.Join(dialect.Clients(), ", "))
			}
			return contextShow(cmd.Context(), app, r, client, explain, asJSON)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&explain, "explain", false, "show budgets, costs, reasons and what was left out")
	f.BoolVar(&asJSON, "json", false, "print it for programs")
	f.StringVar(&prompt, "prompt", "", "what is told with this prompt")
	f.StringVar(&failure, "failure", "", "what is told when a command fails with this output")
	f.StringVar(&command, "command", "", "the command that fails, with --failure")
	f.StringVar(&client, "client", "claude", "as a session of this client")
	offer(cmd, "client", "claude", "codex", "gemini", "copilot")
	return cmd
}

func contextShow(ctx context.Context, app *App, r brief.Request, client string, explain, asJSON bool) error {
	m, err := app.Remembered()
	if err != nil {
		return err
	}
	r.Reader = m.Reader()
	r.Reader.Client = client
	if _, err := m.Organizer.Run(ctx, 0); err != nil {
		return err
	}
	if r.Policy, err = m.Policy(ctx, r.Reader, time.Time{}); err != nil {
		return err
	}
	b, err := brief.Make(ctx, m.Brief(), r)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(app.Out, b)
	}
	if b.Text == "" {
		fmt.Fprintln(app.Err, "Nothing would be told.")
	}
	fmt.Fprint(app.Out, term.SafeText(b.Text))
	if explain {
		explainBrief(app, b)
	}
	for _, p := range b.Parts {
		if p.Cut != "" && (p.Name == "core" || p.Name == "index") {
			fmt.Fprintf(app.Err, "%s.md is cut: a session's start tells up to %d tokens of it (recall.%[1]s_tokens), whatever the file itself may have\n", p.Name, p.Budget)
		}
	}
	for _, t := range b.Troubles {
		fmt.Fprintf(app.Err, "%s %s\n", app.Style().Yellow("warning:"), term.SafeLine(t))
	}
	return nil
}

func explainBrief(app *App, b brief.Brief) {
	style := app.Style()
	fmt.Fprintf(app.Out, "\n%s %d of %d tokens", style.Bold("cost"), b.Tokens, b.Budget)
	if b.Policy != "" {
		fmt.Fprintf(app.Out, ", policy %s", b.Policy)
	}
	fmt.Fprintln(app.Out)
	for _, p := range b.Parts {
		fmt.Fprintf(app.Out, "%s  %d of %d tokens", style.Bold(p.Name), p.Tokens, p.Budget)
		if p.Cut != "" {
			fmt.Fprintf(app.Out, "  (%s)", term.SafeLine(p.Cut))
		}
		fmt.Fprintln(app.Out)
		for _, l := range p.Lines {
			name := l.ID
			if name == "" {
				name = l.Source
			}
			var why []string
			for _, k := range slices.Sorted(maps.Keys(l.Signals)) {
				why = append(why, fmt.Sprintf("%s %.2f", k, l.Signals[k]))
			}
			if name == "" && len(why) == 0 { // of the state: what it says is all that there is to tell
				fmt.Fprintf(app.Out, "  %4d  %s\n", l.Tokens, term.SafeLine(clipText(strings.TrimLeft(strings.TrimSpace(l.Text), "- "), 70)))
				continue
			}
			fmt.Fprintf(app.Out, "  %4d  %s  %s  %s\n", l.Tokens, term.SafeLine(string(l.Class)), term.SafeLine(name), style.Dim(strings.Join(why, " ")))
		}
	}
	reasons := map[string][]string{}
	for id, why := range b.Dropped {
		reasons[why] = append(reasons[why], id)
	}
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		ids := reasons[why]
		slices.Sort(ids)
		more := ""
		if len(ids) > 5 {
			more = fmt.Sprintf(" and %d more", len(ids)-5)
			ids = ids[:5]
		}
		fmt.Fprintf(app.Out, "%s %s%s\n", style.Dim("left out ("+why+"):"), term.SafeLine(strings.Join(ids, ", ")), more)
	}
	fmt.Fprintf(app.Out, "%s\n", style.Dim("as of "+app.Now().UTC().Format(time.RFC3339)))
}
