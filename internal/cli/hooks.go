package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/agent/dialect"
	"reprise/internal/agent/dialect/fixture"
	"reprise/internal/agent/dialect/schema"
	"reprise/internal/durable"
	"reprise/internal/term"
)

// hookCommands are the commands about hooks that people start. They stand below
// the one that clients start, and take nothing from it: no client and no event
// of one is called so.
func hookCommands(app *App) []*cobra.Command {
	record := newHookRecordCmd(app)
	mine := []*cobra.Command{newHookMatrixCmd(app), newHookReplayCmd(app), newHookSchemaCmd(app)}
	for _, cmd := range mine {
		cmd.SetFlagErrorFunc(flagError)
	}
	return append(mine, record)
}

// clientArg checks the name of a client whose hooks we speak.
func clientArg(name string) error {
	if slices.Contains(dialect.Clients(), name) {
		return nil
	}
	return usagef("no client %.40q: hooks are known of %s", name, strings.Join(dialect.Clients(), ", "))
}

// absPath is a path that a person named, seen from the working directory.
func absPath(app *App, path string) (string, error) {
	if strings.HasPrefix(path, "~") || app.Env.IsAbs(path) {
		return app.Env.Expand(path)
	}
	return app.Env.Join(app.Env.Dir, path), nil
}

// manifestJSON and eventJSON are the manifest for programs.
type manifestJSON struct {
	Client  string      `json:"client"`
	Program string      `json:"program"`
	Tested  string      `json:"tested_version"`
	Since   string      `json:"schema_since"`
	Before  string      `json:"schema_before"`
	Unit    string      `json:"timeout_unit"`
	Events  []eventJSON `json:"events"`
	Traps   []string    `json:"traps"`
}

type eventJSON struct {
	Name       string   `json:"event"`
	Kind       string   `json:"kind"`
	Type       string   `json:"recorded_as,omitempty"`
	Can        []string `json:"can"`
	Told       []string `json:"can_by_documentation_only,omitempty"`
	Payload    string   `json:"payload"` // seen or documented
	Installed  bool     `json:"installed"`
	ClientMS   int      `json:"client_timeout_ms,omitempty"`
	DeadlineMS int      `json:"deadline_ms,omitempty"`
	Note       string   `json:"note,omitempty"`
}

func manifestDoc(m *dialect.Manifest) manifestJSON {
	doc := manifestJSON{Client: m.Client, Program: m.Program, Tested: m.Tested, Since: m.Since, Before: m.Before, Unit: m.Unit, Traps: m.Traps}
	for _, s := range m.Events {
		can := s.Caps.Names()
		if can == nil {
			can = []string{}
		}
		doc.Events = append(doc.Events, eventJSON{
			Name: s.Name, Kind: string(s.Kind), Type: dialect.EventType(s.Kind), Can: can, Told: s.Told.Names(),
			Payload: string(s.Source), Installed: s.Install, ClientMS: s.ClientMS, DeadlineMS: s.DeadlineMS, Note: s.Note,
		})
	}
	return doc
}

func newHookMatrixCmd(app *App) *cobra.Command {
	var asJSON, notes bool
	cmd := &cobra.Command{
		Use: "matrix [CLIENT]", Args: cobra.MaximumNArgs(1), Short: "Show which client supports what in its hooks",
		Long: `Show the events of each client: what reprise takes them for, what an answer to
them can do, how long the client and reprise wait, and how that is known. An
effect with a star is known from the client's documentation only; the others were
tried with the version that is named. Under SETUP, "used" are the events that
` + "`reprise setup`" + ` installs a hook for.`,
		RunE: func(_ *cobra.Command, args []string) error {
			manifests := dialect.Manifests()
			if len(args) == 1 {
				name := clientName(args[0])
				if err := clientArg(name); err != nil {
					return err
				}
				manifests = []*dialect.Manifest{dialect.ManifestOf(name)}
			}
			if asJSON {
				docs := struct {
					V       int            `json:"v"`
					Clients []manifestJSON `json:"clients"`
				}{V: dialect.ManifestVersion}
				for _, m := range manifests {
					docs.Clients = append(docs.Clients, manifestDoc(m))
				}
				return printJSON(app.Out, docs)
			}
			for i, m := range manifests {
				if i > 0 {
					fmt.Fprintln(app.Out)
				}
				if err := writeMatrix(app, m, notes || len(args) == 1); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs, with everything that is known")
	cmd.Flags().BoolVar(&notes, "notes", false, "print what is odd about events and clients, too (default for one CLIENT)")
	return cmd
}

func writeMatrix(app *App, m *dialect.Manifest, notes bool) error {
	style, w := app.Style(), app.Out
	fmt.Fprintf(w, "%s (%s), tested with %s\n", style.Bold(m.Program), m.Client, m.Tested)
	narrow := app.Columns > 0 && app.Columns < wideEnough
	row := func(cells ...string) []string {
		if narrow { // what an event is taken for mostly shows in its name
			cells = slices.Delete(cells, 1, 2)
		}
		return cells
	}
	t := term.NewTable(style, row("EVENT", "TAKEN FOR", "AN ANSWER CAN", "WAITS", "REPRISE", "PAYLOAD", "SETUP")...).MaxWidth(app.Columns)
	for _, s := range m.Events {
		var can []string
		for _, name := range s.Caps.Names() {
			if slices.Contains(s.Told.Names(), name) {
				name += "*"
			}
			can = append(can, name)
		}
		kind := string(s.Kind)
		if s.Kind == dialect.Other {
			kind = "-"
		}
		t.Row(row(s.Name, kind, dash(strings.Join(can, " ")), seconds(s.ClientMS), seconds(s.DeadlineMS), string(s.Source), map[bool]string{true: "used", false: "-"}[s.Install])...)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if !notes {
		return nil
	}
	for _, s := range m.Events {
		if s.Note != "" {
			app.said("  ", s.Name+": "+s.Note)
		}
	}
	for _, trap := range m.Traps {
		app.said("  ! ", trap)
	}
	return nil
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// seconds is a time of the manifest as people read it.
func seconds(ms int) string {
	if ms == 0 {
		return "-"
	}
	return strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64) + " s"
}

func newHookSchemaCmd(app *App) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "schema [NAME]", Args: cobra.MaximumNArgs(1), Short: "Print the JSON Schemas of hook payloads and answers",
		Long: `Print a JSON Schema (draft 2020-12), or without NAME the names of all: what
clients send and what reprise answers to it, by client, and reprise's own forms.
A schema's name ends with its version, which goes up when what was valid no
longer is.`,
		Example: `  reprise hooks schema hook-input-codex.v1.json
  reprise hooks schema --write schemas`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 && dir != "" {
				return usagef("--write writes all schemas: leave out %q", args[0])
			}
			var names []string
			for _, n := range schema.All() {
				names = append(names, n.Name)
				data, err := fixture.Format(n.Schema)
				switch {
				case err != nil:
					return err
				case dir != "":
					dest, err := absPath(app, dir)
					if err != nil {
						return err
					}
					if err := durable.MkdirAll(dest, 0o755); err != nil {
						return err
					}
					if err := durable.WriteFile(filepath.Join(dest, n.Name), data, 0o644); err != nil {
						return err
					}
					fmt.Fprintln(app.Out, filepath.Join(dest, n.Name))
				case len(args) == 1 && (args[0] == n.Name || args[0]+".v"+strconv.Itoa(schema.Version)+".json" == n.Name):
					_, err := app.Out.Write(data)
					return err
				case len(args) == 0:
					fmt.Fprintln(app.Out, n.Name)
				}
			}
			if len(args) == 1 {
				return exitWith(ExitNotFound, fmt.Errorf("no schema %.80q; there are %s", args[0], strings.Join(names, ", ")))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "write", "", "write all schemas into `DIR`")
	return cmd
}
