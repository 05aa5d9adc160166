package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/session"
)

// place is one line of `reprise paths`.
type place struct {
	Name string `json:"name"`
	Path string `json:"path"`
	What string `json:"what"`
}

func newPathsCmd(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "paths [NAME]", Args: cobra.MaximumNArgs(1), ValidArgsFunction: completePlaces(app), Short: "Print where everything is",
		Long: `Print where reprise keeps everything, as it is decided by the environment, the
settings and the project around the working directory. With a name, print that
one path alone, for scripts. Nothing is made by asking.`,
		RunE: func(_ *cobra.Command, args []string) error {
			list, err := places(app)
			if err != nil && len(list) == 0 {
				return err
			}
			if len(args) == 1 {
				return onePlace(app, list, args[0], err)
			}
			if asJSON {
				m := make(map[string]string, len(list))
				for _, p := range list {
					m[p.Name] = p.Path
				}
				if perr := printJSON(app.Out, m); perr != nil {
					return perr
				}
				return err
			}
			for _, p := range list {
				if p.Path != "" {
					fmt.Fprintf(app.Out, "%-14s %s\n", p.Name, p.Path)
				}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print them for programs")
	return cmd
}

func onePlace(app *App, list []place, name string, err error) error {
	var names []string
	for _, p := range list {
		if p.Name == name {
			if p.Path == "" {
				return exitWith(ExitNotFound, fmt.Errorf("there is no %s here: the working directory is in no project", name))
			}
			fmt.Fprintln(app.Out, p.Path)
			return nil
		}
		names = append(names, p.Name)
	}
	if err != nil {
		return err
	}
	return usagef("no place is named %q; there are %s", name, strings.Join(names, ", "))
}

// places lists what can be known. With wrong settings it is the base
// directories and the error: that is when a person wants to know them.
func places(app *App) ([]place, error) {
	paths, err := config.FindPaths(app.Env)
	if err != nil {
		return nil, err
	}
	list := []place{
		{"settings", paths.ConfigFile, "settings file"},
		{"data", paths.Data, "what must not be lost"},
		{"state", paths.State, "logs"},
		{"cache", paths.Cache, "derived; may be deleted"},
	}
	home, err := app.Home()
	if err != nil {
		return list, err
	}
	if home.Source != "" {
		list[0].Path = home.Source
	}
	list = append(list,
		place{"memory", home.MemoryDir(), "memory"},
		place{"runs", home.RunsDir(), "records of runs"},
		place{"events", home.EventsDir(), "event log"},
		place{"log", home.LogFile(), "reprise's own log"},
		place{"index", session.IndexFile(home), "search index"},
		place{"tokens", home.Paths.Tokens(), "hashes of HTTP bearer tokens"},
	)
	project := []place{{Name: "project"}, {Name: "project_root"}, {Name: "project_data"}}
	if p := home.Project; p != nil {
		project[0].Path, project[1].Path, project[2].Path = p.Name, p.Root, home.Paths.ProjectDir(p.Name)
	}
	return append(list, project...), nil
}
