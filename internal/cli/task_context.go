package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/durable"
	"reprise/internal/mdfile"
	"reprise/internal/task"
	"reprise/internal/term"
	"reprise/plugin"
)

// window is the size of a model's context by which budgets are measured, in tokens.
const window = 200_000

// Budgets of what the commands and agents of tasks put into a context.
const (
	orchestratorBudget = window * 5 / 100
	commandBudget      = window * 10 / 100
	agentBudget        = window * 25 / 100
	skillBudget        = 300 // tokens of one command in the session that it is called in
	skillLines         = 40
	maxOwnContext      = 64 << 10 // bytes of a project's own context file
)

func newTaskContextCmd(app *App) *cobra.Command {
	var explain, asJSON bool
	var language string
	cmd := &cobra.Command{
		Use: "context [NAME ...]", Short: "Print what agents are told beside their brief, or what it costs",
		Long: `Print context files by name: core/… for what holds everywhere, project/LANGUAGE for
what counts for a language, agent/NAME for how an agent works. A project adds its own by .reprise/context/NAME.md.

--explain measures: what a session pays for having the commands and agents at all
(orchestrator), what one command costs where it is called (command), and what an agent
begins with (agent), in tokens, each against its budget.`,
		RunE: func(_ *cobra.Command, args []string) error {
			if explain {
				return explainTaskContext(app, language, asJSON)
			}
			if len(args) == 0 {
				for _, n := range plugin.ContextNames() {
					fmt.Fprintln(app.Out, n)
				}
				return nil
			}
			return printTaskContext(app, args)
		},
	}
	cmd.Flags().BoolVar(&explain, "explain", false, "say what it costs, by tier")
	cmd.Flags().StringVar(&language, "language", "", "measure agents with what counts for this `LANGUAGE` (default: the longest)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "with --explain: print it for programs")
	return cmd
}

func printTaskContext(app *App, names []string) error {
	var all []string
	for _, n := range names {
		text, ok := plugin.Context(n)
		if agent, is := strings.CutPrefix(n, "agent/"); is {
			if text, ok = plugin.AgentText(agent); !ok {
				return exitWith(ExitNotFound, fmt.Errorf("there is no agent %q; there are %s", clipText(agent, 60), strings.Join(plugin.AgentNames(), ", ")))
			}
		}
		if lang, is := strings.CutPrefix(n, "project/"); !ok && is { // any other language is worked at as general
			if text, ok = plugin.Context("project/" + task.DefaultLanguage); ok {
				fmt.Fprintf(app.Err, "note: nothing is known of %s in particular; this is what counts everywhere\n", term.SafeLine(clipText(lang, 40)))
			}
		}
		own, err := ownContext(app, n)
		if err != nil {
			return err
		}
		if !ok && own == "" {
			return exitWith(ExitNotFound, fmt.Errorf("%q is no context file; `reprise task context` lists them", clipText(n, 60)))
		}
		if own != "" {
			text += "\nOf this repository (" + filepath.ToSlash(filepath.Join(".reprise", "context", n+".md")) + "):\n\n" + own
		}
		all = append(all, text)
	}
	fmt.Fprint(app.Out, strings.Join(all, "\n"))
	return nil
}

// ownContext is what a project adds to a context file, "" for nothing.
func ownContext(app *App, name string) (string, error) {
	home, err := app.Home()
	if err != nil || home.Project == nil || !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", err
	}
	root, err := durable.OpenRoot(home.Project.Root)
	if err != nil {
		return "", err
	}
	defer root.Close()
	file := filepath.Join(".reprise", "context", filepath.FromSlash(name)+".md")
	info, err := root.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxOwnContext) {
		err = fmt.Errorf("it is no file of at most %d bytes", maxOwnContext)
	}
	var text []byte
	if err == nil {
		text, err = root.ReadFile(file)
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", file, err)
	}
	return string(text), nil
}

// contextCost is what one part costs, in tokens.
type contextCost struct {
	Tier   string `json:"tier"`
	Part   string `json:"part"`
	Tokens int    `json:"tokens"`
	Lines  int    `json:"lines,omitempty"`
	Budget int    `json:"budget"`
	Over   bool   `json:"over"`
}

// taskContextCosts measures the tiers. The listing of a client holds a name and a
// description of each agent; commands that only a person calls are not listed.
func taskContextCosts(language string) ([]contextCost, error) {
	commands, err := plugin.Commands()
	if err != nil {
		return nil, err
	}
	agents, err := plugin.Agents()
	if err != nil {
		return nil, err
	}
	var out []contextCost
	var listing strings.Builder
	for _, a := range agents {
		fmt.Fprintf(&listing, "- %s:%s: %s\n", plugin.Name, a.Name, a.Description)
	}
	out = append(out, contextCost{Tier: "orchestrator", Part: "list of agents", Tokens: mdfile.Tokens(listing.String()), Budget: orchestratorBudget})
	for _, c := range commands {
		out = append(out, contextCost{
			Tier: "command", Part: "/" + plugin.Name + ":" + c.Name, Tokens: mdfile.Tokens(c.Body),
			Lines: mdfile.CountLines([]byte(c.Text)), Budget: skillBudget,
		})
	}
	core := 0
	for _, n := range plugin.ContextNames() {
		if strings.HasPrefix(n, "core/") {
			text, _ := plugin.Context(n)
			core += mdfile.Tokens(text)
		}
	}
	project := 0
	for _, n := range plugin.ContextNames() {
		if lang, ok := strings.CutPrefix(n, "project/"); ok && (language == "" || lang == language) {
			text, _ := plugin.Context(n)
			project = max(project, mdfile.Tokens(text))
		}
	}
	for _, a := range agents {
		out = append(out, contextCost{Tier: "agent", Part: a.Name, Tokens: mdfile.Tokens(a.Text) + core + project, Budget: agentBudget})
	}
	for i := range out {
		out[i].Over = out[i].Tokens > out[i].Budget || out[i].Tier == "command" && out[i].Lines > skillLines
	}
	return out, nil
}

func explainTaskContext(app *App, language string, asJSON bool) error {
	costs, err := taskContextCosts(language)
	if err != nil {
		return err
	}
	over := slices.ContainsFunc(costs, func(c contextCost) bool { return c.Over })
	if asJSON {
		if err := printJSON(app.Out, costs); err != nil {
			return err
		}
	} else {
		table := term.NewTable(app.Style(), "TIER", "PART", "TOKENS", "BUDGET", "").MaxWidth(app.Columns).AlignRight(2).AlignRight(3)
		for _, c := range costs {
			mark := ""
			if c.Over {
				mark = "over"
			}
			table.Row(c.Tier, c.Part, fmt.Sprint(c.Tokens), fmt.Sprint(c.Budget), mark)
		}
		if err := table.Write(app.Out); err != nil {
			return err
		}
		app.said("", fmt.Sprintf("budgets of a window of %d tokens: orchestrator 5 %%, all that a command puts into its session 10 %% (%d), agent 25 %%; one command %d tokens and %d lines",
			window, commandBudget, skillBudget, skillLines))
		app.said("", fmt.Sprintf("an agent's sum is its own text, all of core/ and %s; its brief comes on top", cmp.Or(language, "the longest of project/")))
	}
	if over {
		return exitWithCode(ExitFailure)
	}
	return nil
}
