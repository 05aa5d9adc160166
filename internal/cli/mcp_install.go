package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/setup"
	"reprise/internal/term"
)

type installOptions struct {
	scope        string
	filesystem   []string
	servers      []string // of the project, to be copied
	verify       bool
	instructions bool
	dryRun       bool
	full         bool   // new files are shown to their end
	fullBy       string // how they are, where that is not --full
	asJSON       bool
}

func newMCPInstallCmd(app *App) *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:   "install CLIENT",
		Short: "Add reprise to a client's MCP servers",
		Long: `Add reprise to a client's MCP servers, by editing the client's own settings file.

CLIENT is one of ` + strings.Join(setup.Clients(), ", ") + `.
Everything else in the file stays as it is, to the byte. What was there is kept
beside it as <file>.bak-<time>. Doing it again changes nothing.

The scope says for whom the entry counts: user (everywhere, the default), local
(Claude Code: in this directory) or project (everybody; the file is committed).`,
		Example: `  reprise mcp install claude-code
  reprise mcp install codex --dry-run
  reprise mcp install claude-desktop --with-filesystem ~/notes
  reprise mcp install claude-code --scope user --with-server lean-lsp --verify`,
		Args: cobra.ExactArgs(1), ValidArgs: setup.Clients(),
		RunE: func(cmd *cobra.Command, args []string) error { return mcpInstall(cmd, app, o, args[0], true) },
	}
	f := cmd.Flags()
	o.common(cmd)
	f.StringArrayVar(&o.filesystem, "with-filesystem", nil, "also add the filesystem server with this `DIR` allowed (can be given again; needs npx)")
	f.BoolVar(&o.instructions, "with-instructions", false, "also put a short section about reprise into the client's instructions file")
	f.StringArrayVar(&o.servers, "with-server", nil, "also copy the server `NAME` of the project's own settings: agents within a session of Claude Code do not get those (can be given again)")
	f.BoolVar(&o.verify, "verify", false, "then start each of the servers as the client would, and see that it answers")
	return cmd
}

func newMCPUninstallCmd(app *App) *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:   "uninstall CLIENT",
		Short: "Take reprise out of a client's MCP servers",
		Long: `Take out what ` + "`reprise mcp install`" + ` put into a client's settings and instructions.
Where nothing else was changed since, the files are what they were before.`,
		Args: cobra.ExactArgs(1), ValidArgs: setup.Clients(),
		RunE: func(cmd *cobra.Command, args []string) error { return mcpInstall(cmd, app, o, args[0], false) },
	}
	o.common(cmd)
	return cmd
}

func (o *installOptions) common(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.scope, "scope", "", "user, local or project (default: user)")
	offer(cmd, "scope", "user", "local", "project")
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would be changed, and change nothing")
	f.BoolVar(&o.full, "full", false, "with --dry-run: show new files to their end")
	f.BoolVar(&o.asJSON, "json", false, "print the changes for programs")
}

// namedClient is a client by the name that was given, with a setup that knows where its
// settings of the scope are.
func namedClient(app *App, name, scope string) (client string, home *config.Home, s setup.Setup, err error) {
	if client, err = setup.Canonical(name); err != nil {
		return "", nil, s, usagef("%w", err)
	}
	if home, err = app.Home(); err != nil {
		return "", nil, s, err
	}
	s = setupFor(app, home)
	if _, err := setup.Locate(s.Where, client, scope); err != nil {
		return "", nil, s, usagef("%w", err)
	}
	return client, home, s, nil
}

func mcpInstall(cmd *cobra.Command, app *App, o installOptions, name string, install bool) error {
	client, home, s, err := namedClient(app, name, o.scope)
	if err != nil {
		return err
	}
	req := setup.Request{
		Client: client, Scope: o.scope, Program: app.Program, Filesystem: o.filesystem,
		MemoryDir: home.MemoryDir(), Instructions: o.instructions, DryRun: o.dryRun, Copy: o.servers,
	}
	if app.ConfigFlag != "" {
		req.ConfigFile = home.Source
	}
	do := s.Uninstall
	if install {
		do = s.Install
	}
	changes, err := do(cmd.Context(), req)
	if perr := printChanges(app, o, changes); err == nil {
		err = perr
	}
	if err == nil && install && o.verify && !o.dryRun {
		return verifyServers(cmd.Context(), app, s, client, o)
	}
	return err
}

// wholeFileLines are shown of the difference where a file comes or goes as a whole:
// the texts for models are long, and the same for every client.
const wholeFileLines = 20

// firstLines cuts a text after so many lines and says how many were left out.
func firstLines(text string, most int) (head string, left int) {
	n := 0
	for line := range strings.Lines(text) {
		if n++; n <= most {
			head += line
		}
	}
	return head, max(n-most, 0)
}

func setupFor(app *App, home *config.Home) setup.Setup {
	root := app.Env.Dir
	if home.Project != nil {
		root = home.Project.Root
	}
	return setup.Setup{Where: setup.Where{Env: app.Env, Dir: app.Env.Dir, Root: root}, Paths: home.Paths, Now: app.Env.Now}
}

func printChanges(app *App, o installOptions, changes []setup.Change) error {
	if o.asJSON {
		if changes == nil {
			changes = []setup.Change{}
		}
		return printJSON(app.Out, changes)
	}
	style := app.Style()
	for _, c := range changes {
		action := c.Action
		if o.dryRun && action != "unchanged" {
			action = "would be " + action
		}
		fmt.Fprintln(app.Out, app.beside(term.SafeLine(c.File)+":", fmt.Sprintf("%s (%s)", style.Bold(action), c.What), "  "))
		if c.Real != "" {
			fmt.Fprintf(app.Out, "  it is a link to %s\n", term.SafeLine(c.Real))
		}
		if c.Backup != "" {
			fmt.Fprintf(app.Out, "  backup: %s\n", term.SafeLine(c.Backup))
		}
		if c.Diff != "" {
			text, left := c.Diff, 0
			if c.Action != "changed" && !o.full {
				text, left = firstLines(c.Diff, wholeFileLines)
			}
			fmt.Fprint(app.Out, style.Diff(term.SafeText(text)))
			if left > 0 {
				fmt.Fprintln(app.Out, style.Dim(fmt.Sprintf("  … and %s of this file; %s shows them", count(left, "line"), cmp.Or(o.fullBy, "--full"))))
			}
		}
		for _, w := range c.Warnings {
			fmt.Fprintln(app.Err, term.Wrap("", style.Yellow("warning:")+" "+term.SafeLine(w), "  ", app.Columns))
		}
	}
	return nil
}
