package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/config"
)

func newConfigCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Show and check the settings",
		Long: `Show and check the settings. They are in a file that you write yourself; start
it with what ` + "`reprise config show`" + ` prints, and keep the lines that you change.
` + "`reprise paths settings`" + ` says where it belongs.`,
	}
	cmd.AddCommand(newConfigShowCmd(app), newConfigCheckCmd(app))
	return cmd
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
		RunE: func(_ *cobra.Command, names []string) error {
			paths, err := config.FindPaths(app.Env)
			if err != nil {
				return err
			}
			items, source, err := config.Explain(app.Env, paths, app.ConfigFlag)
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
				fmt.Fprintf(app.Out, "# No settings file (%s): these are the defaults.\n", paths.ConfigFile)
			} else {
				fmt.Fprintf(app.Out, "# Settings of %s.\n", source)
			}
			fmt.Fprint(app.Out, settingsYAML(items))
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

// settingsYAML writes the items as a settings file. Empty texts are commented
// out: an empty value is refused on reading, because it is mostly a slip.
func settingsYAML(items []config.Item) string {
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
		fmt.Fprintf(&b, "%s# %s (%s)\n%s%s%s: %s\n", indent, it.Doc, it.Origin, indent, mark, name, yamlValue(it.Value))
	}
	return b.String()
}

// yamlValue writes a value the way JSON does, which YAML reads too.
func yamlValue(v any) string {
	if list, ok := v.([]string); ok && len(list) == 0 {
		return "[]"
	}
	raw, err := json.Marshal(v)
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
