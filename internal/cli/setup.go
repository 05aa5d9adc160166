package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/memory"
	"reprise/internal/pathname"
	"reprise/internal/proc"
	"reprise/internal/setup"
	"reprise/internal/term"
)

type setupOptions struct {
	installOptions
	remove                  bool
	yes                     bool
	noMCP, noHooks, noSkill bool
	noCommands              bool
}

func newSetupCmd(app *App) *cobra.Command {
	var o setupOptions
	cmd := &cobra.Command{
		Use:   "setup [CLIENT...]",
		Short: "Put reprise's hooks, MCP server and skill into your clients",
		Long: `Put reprise into agent clients in one go: its hooks, so that sessions are
recorded and the next one knows; its MCP server; the skill that says how to use it;
and the commands of the task list (/reprise:research and so on). Without CLIENT,
every client found on this machine.

CLIENT is one of ` + strings.Join(setup.Clients(), ", ") + `.
Of these ` + strings.Join(withoutHooks(), ", ") + ` have no hooks that reprise
knows; they get the server.

Everything else in the files stays as it is, to the byte, and doing it again
changes nothing. At a terminal it asks first; --dry-run shows the difference.
--remove takes it all out again: where nothing else was changed since, the files
are what they were before.`,
		Example: `  reprise setup --dry-run
  reprise setup claude-code codex --yes
  reprise setup --remove --yes`,
		ValidArgs: setup.Clients(),
		RunE:      func(cmd *cobra.Command, args []string) error { return runSetup(cmd.Context(), app, o, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.scope, "scope", setup.User, "user (everywhere) or project (everybody in this project; the files are committed)")
	offer(cmd, "scope", setup.User, setup.Project)
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would be changed, and change nothing")
	f.BoolVar(&o.full, "full", false, "with --dry-run: show new files to their end")
	f.BoolVar(&o.asJSON, "json", false, "print the changes for programs")
	f.BoolVar(&o.remove, "remove", false, "take reprise out again")
	f.BoolVarP(&o.yes, "yes", "y", false, "do it without asking")
	f.BoolVar(&o.instructions, "with-instructions", false, "also put a short section about reprise into the client's instructions file")
	f.BoolVar(&o.noMCP, "no-mcp", false, "leave the MCP server out")
	f.BoolVar(&o.noHooks, "no-hooks", false, "leave the hooks out")
	f.BoolVar(&o.noSkill, "no-skill", false, "leave the skill out")
	f.BoolVar(&o.noCommands, "no-commands", false, "leave the slash commands and agents out")
	return cmd
}

// withoutHooks are the clients that have none.
func withoutHooks() []string {
	return slices.DeleteFunc(setup.Clients(), func(c string) bool { return slices.Contains(setup.HookClients(), c) })
}

func runSetup(ctx context.Context, app *App, o setupOptions, args []string) error {
	if o.scope != setup.User && o.scope != setup.Project {
		return usagef("--scope %q: there are user and project", o.scope)
	}
	home, err := app.Home()
	if err != nil {
		return err
	}
	s := setupFor(app, home)
	clients, err := setupClients(app, s, o, args)
	if err != nil {
		return err
	}
	if o.scope == setup.Project && home.Project == nil {
		return usagef("%s is in no project; run `reprise init` there first, or leave out --scope project", app.Env.Dir)
	}
	skill := ""
	if !o.noSkill {
		if skill, err = memory.Skill(memory.FlavourReprise, home.MemoryDir()); err != nil {
			return err
		}
	}
	var all []setup.Change
	do := func(dry bool) error {
		all = nil
		var bad []error
		for _, client := range clients { // one whose settings are broken keeps nothing from the others
			if ctx.Err() != nil {
				return ctx.Err()
			}
			a := setup.All{
				Request: setup.Request{Client: client, Scope: o.scope, Program: app.Program, MemoryDir: home.MemoryDir(),
					Instructions: o.instructions, DryRun: dry},
				HookProgram: setup.Beside(app.Program, setup.HookProgram), Skill: skill, NoMCP: o.noMCP, NoHooks: o.noHooks,
				Commands: !o.noCommands,
			}
			if app.ConfigFlag != "" {
				a.ConfigFile = home.Source
			}
			change := s.InstallAll
			if o.remove {
				change = s.RemoveAll
			}
			changes, err := change(ctx, a)
			all = append(all, changes...)
			if err != nil {
				bad = append(bad, fmt.Errorf("%s: %w", client, err))
			}
		}
		all = eachOnce(all)
		if o.remove && !o.asJSON { // of a client that is not here nothing is worth a line
			all = slices.DeleteFunc(all, func(c setup.Change) bool {
				_, err := os.Lstat(c.File)
				return c.Action == "unchanged" && len(c.Warnings) == 0 && errors.Is(err, fs.ErrNotExist)
			})
		}
		return errors.Join(bad...)
	}
	if !o.yes && !o.dryRun {
		if !app.InIsTerminal || !app.OutIsTerminal || o.asJSON {
			return usagef("nobody can be asked here: pass --yes to change the files, or --dry-run to see what would be changed")
		}
		if err := askSetup(ctx, app, o, do, &all); err != nil {
			return err
		}
	}
	err = do(o.dryRun)
	for i := range all {
		if !o.dryRun && !o.asJSON {
			all[i].Diff = "" // --dry-run shows it; here it would hide what was done
		}
	}
	if perr := printChanges(app, o.installOptions, all); err == nil {
		err = perr
	}
	if err == nil && !o.dryRun && !o.asJSON {
		if o.remove {
			if len(all) == 0 {
				fmt.Fprintln(app.Out, "Nothing of reprise is in the settings of your clients.")
			}
			sayWhatStays(app, home)
			return nil
		}
		app.restSaid(ctx)
		fmt.Fprintln(app.Out, "Next: start a session as always; `reprise doctor` proves the hooks live.")
		for _, c := range clients {
			if name := app.missingProgram(c, home); name != "" {
				fmt.Fprint(app.Err, wrapLine(term.SafeLine(fmt.Sprintf("note: there is no %s in PATH here: install it to start %s", name, c)), app.Columns))
			}
		}
		if !o.noHooks && slices.Contains(clients, "claude-code") {
			app.sayToldClaude()
		}
	}
	return err
}

// sayWhatStays names what is reprise's alone and can be deleted, each place for itself: the
// project around, which is the person's own, is none of them.
func sayWhatStays(app *App, home *config.Home) {
	fmt.Fprintln(app.Out, "What was recorded stays, until you delete it:")
	for _, p := range []string{home.Paths.Data, home.Paths.State, home.Paths.Cache, home.MemoryDir(), home.Paths.ConfigFile} {
		if _, err := os.Stat(p); err == nil && (p == home.Paths.Data || !pathname.Within(home.Paths.Data, p)) {
			fmt.Fprintf(app.Out, "  %s\n", term.SafeLine(p))
		}
	}
	fmt.Fprint(app.Out, wrapLine("In your repositories .reprise/ stays, specs/, and branches loop-… with work that may be nowhere else.", app.Columns))
}

// eachOnce leaves out what several clients share and was told of for the one before: the
// skill, which three of them read at one place.
func eachOnce(changes []setup.Change) []setup.Change {
	var out []setup.Change
	for _, c := range changes {
		i := slices.IndexFunc(out, func(o setup.Change) bool { return o.File == c.File && o.What == c.What })
		if i < 0 || c.Action != "unchanged" && c.Action != out[i].Action {
			out = append(out, c)
			continue
		}
		for _, w := range c.Warnings {
			if !slices.Contains(out[i].Warnings, w) {
				out[i].Warnings = append(out[i].Warnings, w)
			}
		}
	}
	return out
}

// askSetup says which files would be changed, shows how if asked, and asks.
func askSetup(ctx context.Context, app *App, o setupOptions, do func(bool) error, all *[]setup.Change) error {
	show := o.installOptions
	show.dryRun, show.fullBy = true, "f at the next question"
	bad := do(true)
	if ctx.Err() != nil || !slices.ContainsFunc(*all, func(c setup.Change) bool { return c.Action != "unchanged" }) {
		return bad
	}
	short := slices.Clone(*all)
	for i := range short {
		short[i].Diff, short[i].Warnings = "", nil // they are told when it is done
	}
	if err := printChanges(app, show, short); err != nil {
		return err
	}
	if bad != nil {
		fmt.Fprintf(app.Err, "this cannot be done, and is left out: %v\n", bad)
	}
	for {
		app.prompt("Proceed? [y]es, [n]o, [d]ifferences, [f]ull differences:")
		line, err := app.ask(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && line == "" {
			return exitWith(ExitConflict, errors.New("nothing was changed: no answer came"))
		}
		switch strings.ToLower(line) {
		case "y", "yes":
			return nil
		case "n", "no":
			return exitWith(ExitConflict, errors.New("nothing was changed: you said no"))
		case "d", "differences", "f", "full", "full differences":
			show.full = strings.HasPrefix(strings.ToLower(line), "f")
			if err := printChanges(app, show, *all); err != nil {
				return err
			}
		default:
			fmt.Fprintf(app.Out, "%s is none of these.\n", term.SafeLine(clipText(line, 40)))
		}
	}
}

// setupClients are the clients that were named, or those that are here.
func setupClients(app *App, s setup.Setup, o setupOptions, args []string) ([]string, error) {
	var out []string
	for _, name := range args {
		client, err := setup.Canonical(name)
		if err != nil {
			return nil, usagef("%w", err)
		}
		if o.scope == setup.Project && !slices.Contains(setup.Scopes(client), setup.Project) && !slices.Contains(setup.HookClients(), client) {
			return nil, usagef("%s has no settings of a project", client)
		}
		if !slices.Contains(out, client) {
			out = append(out, client)
		}
	}
	if len(args) > 0 {
		return out, nil
	}
	look := func(name string) (string, error) { return proc.LookPath(name, app.Env.Vars, app.Env.GOOS) }
	for _, client := range setup.Clients() {
		if !s.Found(client, look) && !o.remove {
			continue
		}
		if o.scope == setup.Project && !slices.Contains(setup.HookClients(), client) {
			continue
		}
		out = append(out, client)
	}
	if len(out) == 0 {
		return nil, exitWith(ExitNotFound, fmt.Errorf("no client was found on this machine; name the one to set up: %s", strings.Join(setup.Clients(), ", ")))
	}
	return out, nil
}
