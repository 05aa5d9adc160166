package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/proc"
	"reprise/internal/setup"
	"reprise/internal/term"
)

// serverPatience is how long a server may take to start and answer, as long as Claude
// Code waits for one.
const serverPatience = 30 * time.Second

func newMCPVerifyCmd(app *App) *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use: "verify CLIENT", Args: cobra.ExactArgs(1), ValidArgs: setup.Clients(),
		Short: "See that a client's MCP servers start and answer",
		Long: `Look for reprise in a client's MCP servers, start it as the client would, and ask it
for its tools. With --with-server NAME look at that one, too, whoever's it is.`,
		Example: "  reprise mcp verify claude-code\n  reprise mcp verify claude-code --with-server lean-lsp",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, _, s, err := namedClient(app, args[0], o.scope)
			if err != nil {
				return err
			}
			return verifyServers(cmd.Context(), app, s, client, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.scope, "scope", "", "user, local or project (default: user)")
	offer(cmd, "scope", "user", "local", "project")
	f.StringArrayVar(&o.servers, "with-server", nil, "also the server `NAME` (can be given again)")
	f.BoolVar(&o.asJSON, "json", false, "print it for programs")
	return cmd
}

// serverCheck is how one server was found to be.
type serverCheck struct {
	Server string `json:"server"`
	File   string `json:"file"`
	Tools  int    `json:"tools"`
	Wrong  string `json:"wrong,omitempty"`
}

func verifyServers(ctx context.Context, app *App, s setup.Setup, client string, o installOptions) error {
	t, err := setup.Locate(s.Where, client, o.scope)
	if err != nil {
		return err
	}
	var all []serverCheck
	for _, name := range append([]string{setup.Name}, o.servers...) {
		c := serverCheck{Server: name, File: t.File}
		e, ok, err := setup.Find(t, name)
		if err == nil && !ok {
			err = fmt.Errorf("it is not there; `reprise mcp install %s --scope %s` puts it in", client, t.Scope)
			if name != setup.Name {
				err = fmt.Errorf("it is not there; `reprise mcp install %s --scope %s --with-server %s` copies it from the project's settings", client, t.Scope, name)
			}
		}
		if err == nil {
			c.Tools, err = tryServer(ctx, app, e)
		}
		if err != nil {
			c.Wrong = err.Error()
		}
		all = append(all, c)
	}
	if o.asJSON {
		err = printJSON(app.Out, all)
	} else {
		for _, c := range all {
			if c.Wrong != "" {
				fmt.Fprintf(app.Out, "%s: %s %s\n", c.Server, app.Style().Red("does not work:"), term.SafeLine(c.Wrong))
			} else {
				fmt.Fprintf(app.Out, "%s: answers, with %s (%s)\n", c.Server, count(c.Tools, "tool"), term.SafeLine(c.File))
			}
		}
	}
	if err == nil && slices.ContainsFunc(all, func(c serverCheck) bool { return c.Wrong != "" }) {
		return exitWithCode(ExitFailure)
	}
	return err
}

// tryServer starts a server as a client would: with the entry's words and variables,
// in the working directory.
func tryServer(ctx context.Context, app *App, e setup.Entry) (tools int, err error) {
	if e.Command == "" {
		return 0, errors.New("its entry has no command")
	}
	program := e.Command
	if !filepath.IsAbs(program) {
		if program, err = proc.LookPath(e.Command, app.Env.Vars, app.Env.GOOS); err != nil {
			return 0, err
		}
	}
	env := slices.Clone(app.Environ)
	for name, v := range e.Env {
		env = append(env, name+"="+v)
	}
	ctx, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	peer, err := startPeer(ctx, app, program, e.Args, env, app.Env.Dir)
	if err != nil {
		return 0, err
	}
	raw, err := peer.call("tools/list", map[string]any{})
	if _, serr := peer.stop(5 * time.Second); err == nil {
		err = serr
	}
	if err != nil {
		return 0, err
	}
	names, err := toolNames(raw)
	return len(names), err
}
