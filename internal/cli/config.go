package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/term"
)

func newConfigCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Show, change and check the settings",
		Long: `Show, change and check the settings. They are in a file of yours, which
` + "`reprise paths settings`" + ` names: change it with ` + "`reprise config set`" + `, or in an editor; start
it then with what ` + "`reprise config show`" + ` prints, and keep the lines that you change.`,
		Example: `  reprise config show guard
  reprise config set guard.writes allow
  reprise config unset guard.writes`,
	}
	cmd.AddCommand(newConfigShowCmd(app), newConfigGetCmd(app), newConfigSetCmd(app), newConfigUnsetCmd(app), newConfigCheckCmd(app))
	return cmd
}

func newConfigGetCmd(app *App) *cobra.Command {
	return &cobra.Command{
		Use: "get NAME", Args: cobra.ExactArgs(1), ValidArgsFunction: completeSettings(app), Short: "Print the value of a setting that is in force, for scripts",
		Long: `Print the value of one setting that is in force, whether from the file or by default;
of a list each item on a line. ` + "`reprise config show NAME`" + ` says what it means and where it is
from, and prints it for programs.`,
		Example: `  reprise config get guard.writes`,
		RunE: func(_ *cobra.Command, args []string) error {
			_, items, _, err := explained(app)
			if err != nil {
				return err
			}
			for _, it := range items {
				if it.Key != args[0] {
					continue
				}
				if list, ok := it.Value.([]string); ok {
					for _, v := range list {
						fmt.Fprintln(app.Out, v)
					}
					return nil
				}
				fmt.Fprintln(app.Out, it.Value)
				return nil
			}
			return usagef("there is no setting %q; `reprise config show` prints all", clipText(args[0], 60))
		},
	}
}

func newConfigSetCmd(app *App) *cobra.Command {
	return &cobra.Command{
		Use: "set NAME VALUE...", Args: cobra.MinimumNArgs(2), ValidArgsFunction: completeSettings(app), Short: "Give a setting a value, in your settings file",
		Long: `Give a setting a value in your settings file, which is made where it is not there. A
list takes all its items, each as a VALUE. The other lines of the file, and what you noted in
them, stay as they are; a value that is not allowed changes nothing. Settings are yours: no
agent and no run may change them.`,
		Example: `  reprise config set guard.writes allow
  reprise config set logging.level debug`,
		RunE: func(_ *cobra.Command, args []string) error { return setSetting(app, args[0], args[1:]) },
	}
}

func newConfigUnsetCmd(app *App) *cobra.Command {
	return &cobra.Command{
		Use: "unset NAME", Args: cobra.ExactArgs(1), ValidArgsFunction: completeSettings(app), Short: "Take a setting out of your settings file: its default holds again",
		Example: `  reprise config unset guard.writes`,
		RunE:    func(_ *cobra.Command, args []string) error { return setSetting(app, args[0], nil) },
	}
}

// setSetting writes a setting, or without values takes it out.
func setSetting(app *App, name string, values []string) error {
	if !app.person() {
		return exitWith(ExitConflict, errors.New("the settings are the user's: an agent or a run changes none; say what should be changed, and leave it to them"))
	}
	paths, err := config.FindPaths(app.Env)
	if err != nil {
		return err
	}
	file, changed, err := config.SetInFile(app.Env, paths, app.ConfigFlag, name, values...)
	if e := (*config.Error)(nil); errors.As(err, &e) {
		switch {
		case e.Key == name && e.Problem == "is not a setting":
			hint := strings.TrimPrefix(e.Remedy, config.RemoveIt) // it stands in no file
			return usagef("there is no setting %q: %s", clipText(name, 60), hint)
		case e.File == config.CommandLine:
			return exitWith(ExitUsage, err)
		}
	}
	if err != nil {
		return err
	}
	_, items, _, err := explained(app)
	if err != nil {
		return err
	}
	for _, it := range items {
		if it.Key != name {
			continue
		}
		was := ""
		if !changed {
			was = " already"
		}
		fmt.Fprintf(app.Out, "%s is%s %s (%s)\n", name, was, term.SafeLine(yamlValue(it.Value)), term.SafeLine(it.Origin))
	}
	if changed && len(values) == 0 {
		fmt.Fprintf(app.Out, "  taken out of %s\n", term.SafeLine(file))
	}
	return nil
}

// explained are all settings as they are in force, with the file that they are from.
func explained(app *App) (paths config.Paths, items []config.Item, source string, err error) {
	if paths, err = config.FindPaths(app.Env); err == nil {
		items, source, err = config.Explain(app.Env, paths, app.ConfigFlag)
	}
	return paths, items, source, err
}

// completeSettings offers the names of settings, with what they mean.
func completeSettings(app *App) completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		_, items, _, err := explained(app)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if len(args) > 0 && cmd.Name() != "show" { // which takes several
			i := slices.IndexFunc(items, func(it config.Item) bool { return it.Key == args[0] })
			if i < 0 || len(args) > 1 || cmd.Name() != "set" {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return items[i].Words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		}
		var words []string
		for _, it := range items {
			if !slices.Contains(args, it.Key) {
				words = append(words, cobra.CompletionWithDesc(it.Key, it.Doc))
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

func newConfigShowCmd(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show [NAME...]", Short: "Print every setting as it is in force, and where it is from",
		Long: `Print every setting as it is in force, with what it means and where its value
is from. What is printed is itself a valid settings file. With NAME only that
setting, or that section.`,
		Example: `  reprise config show
  reprise config show loop guard.mode`,
		ValidArgsFunction: completeSettings(app),
		RunE: func(_ *cobra.Command, names []string) error {
			paths, items, source, err := explained(app)
			if err != nil {
				return err
			}
			if items, err = settingsNamed(items, names); err != nil {
				return err
			}
			if asJSON {
				return printJSON(app.Out, map[string]any{"source": source, "settings": items})
			}
			if source == "" {
				fmt.Fprintln(app.Out, term.Wrap("# ", "No settings file ("+paths.ConfigFile+"): these are the defaults.", "# ", app.Columns))
			} else {
				fmt.Fprintln(app.Out, term.Wrap("# ", "Settings of "+source+".", "# ", app.Columns))
			}
			fmt.Fprint(app.Out, settingsYAML(items, app.Columns))
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print them for programs")
	return cmd
}

// settingsNamed are the items with one of the names, or in a section of that name;
// without names all.
func settingsNamed(items []config.Item, names []string) ([]config.Item, error) {
	if len(names) == 0 {
		return items, nil
	}
	found := map[string]bool{}
	kept := slices.DeleteFunc(items, func(it config.Item) bool {
		keep := false
		for _, n := range names {
			if it.Key == n || strings.HasPrefix(it.Key, n+".") {
				found[n], keep = true, true
			}
		}
		return !keep
	})
	for _, n := range names {
		if !found[n] {
			return nil, usagef("there is no setting and no section %q; `reprise config show` prints all", clipText(n, 60))
		}
	}
	return kept, nil
}

// settingsYAML writes the items as a settings file, whose comments are no wider than so many
// columns; 0 breaks none. Empty texts are commented out: an empty value is refused on reading,
// because it is mostly a slip.
func settingsYAML(items []config.Item, columns int) string {
	var b strings.Builder
	open := []string{}
	for _, it := range items {
		parts := strings.Split(it.Key, ".")
		sections, name := parts[:len(parts)-1], parts[len(parts)-1]
		for i, s := range sections {
			if i < len(open) && open[i] == s {
				continue
			}
			open = append(open[:i:i], s)
			fmt.Fprintf(&b, "%s%s:\n", strings.Repeat("  ", i), s)
		}
		open = open[:len(sections)]
		mark := ""
		if it.Value == "" {
			mark = "# "
		}
		indent := strings.Repeat("  ", len(sections))
		comment := term.Wrap(indent+"# ", it.Doc+" ("+it.Origin+")", indent+"# ", columns)
		fmt.Fprintf(&b, "%s\n%s%s%s: %s\n", comment, indent, mark, name, yamlValue(it.Value))
	}
	return b.String()
}

// yamlValue writes a value the way JSON does, which YAML reads too.
func yamlValue(v any) string {
	if list, ok := v.([]string); ok && len(list) == 0 {
		return "[]"
	}
	raw, err := jsonData(v)
	if err != nil { // cannot be: the values are numbers, texts and lists of texts
		return fmt.Sprint(v)
	}
	return string(raw)
}

func newConfigCheckCmd(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "check [FILE]", Args: cobra.MaximumNArgs(1), Short: "Check a settings file and say everything that is wrong with it",
		RunE: func(_ *cobra.Command, args []string) error {
			paths, err := config.FindPaths(app.Env)
			if err != nil {
				return err
			}
			flag := app.ConfigFlag
			if len(args) == 1 {
				flag = args[0]
			}
			_, source, err := config.Load(app.Env, paths, flag)
			if asJSON {
				return checkJSON(app, source, err)
			}
			if err != nil {
				return err
			}
			if source == "" {
				fmt.Fprintf(app.Out, "No settings file (%s): the defaults hold.\n", paths.ConfigFile)
				return nil
			}
			fmt.Fprintf(app.Out, "%s is valid.\n", source)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result for programs")
	return cmd
}

func checkJSON(app *App, source string, err error) error {
	type problem struct {
		File    string `json:"file"`
		Line    int    `json:"line,omitempty"`
		Column  int    `json:"column,omitempty"`
		Key     string `json:"key,omitempty"`
		Problem string `json:"problem"`
		Remedy  string `json:"remedy,omitempty"`
	}
	problems := []problem{}
	var many config.Errors
	var one *config.Error
	switch {
	case errors.As(err, &many):
	case errors.As(err, &one):
		many = config.Errors{one}
	case err != nil:
		return err
	}
	for _, e := range many {
		problems = append(problems, problem{e.File, e.Line, e.Column, e.Key, e.Problem, e.Remedy})
	}
	if perr := printJSON(app.Out, map[string]any{"source": source, "valid": err == nil, "problems": problems}); perr != nil {
		return perr
	}
	if err != nil {
		return &ExitError{Code: ExitFailure}
	}
	return nil
}
