package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/mcpserver"
	"reprise/internal/proc"
	"reprise/internal/redact"
	"reprise/internal/session"
)

// legacyVar switches the protocol revisions without a handshake off, for a
// client whose support of them is broken.
const legacyVar = "REPRISE_MCP_LEGACY"

// fromSettings is what --http holds when it was given without an address.
const fromSettings = "settings"

// MCPOptions are the flags of `reprise mcp`.
type MCPOptions struct {
	HTTP     string
	Toolsets string
	ReadOnly bool
	NoAuth   bool
}

func newMCPCmd(app *App) *cobra.Command {
	var o MCPOptions
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve memory and agent runs to an MCP client",
		Long: `Serve memory and agent runs over the Model Context Protocol: on standard input
and output, as clients start it, or with --http over Streamable HTTP.

It ends when its input ends, when its parent does, or at a signal, within a
second, and stops the runs that it started. Until a client calls a tool it
writes nothing.

Over HTTP a bearer token is required (see ` + "`reprise mcp token`" + `), or a token of the
authorization server in the settings (http.oauth). --no-auth lets in every
program on this machine, and works on loopback addresses only. There is no TLS:
beyond this machine put a proxy in front of it, or a tunnel, and set http.public_url
to the address that clients use. http.limits bounds what one token may do.`,
		Example: `  reprise mcp
  reprise mcp --read-only --toolsets memory
  reprise mcp token create laptop && reprise mcp --http 127.0.0.1:8765`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) == 1 && o.HTTP == fromSettings {
				return nil
			}
			return unknownCommand(cmd, args[0])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.HTTP = args[0]
			}
			return runMCP(cmd.Context(), app, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.HTTP, "http", "", "serve over HTTP on `ADDRESS` instead (without one: http.addr of the settings)")
	f.Lookup("http").NoOptDefVal = fromSettings
	f.StringVar(&o.Toolsets, "toolsets", "default", "tools to offer: default, all, or some of runs,memory,state,loop,tasks")
	f.BoolVar(&o.ReadOnly, "read-only", false, "offer only the tools that change nothing")
	f.BoolVar(&o.NoAuth, "no-auth", false, "with --http on a loopback address: let every program on this machine in")
	offer(cmd, "toolsets", append([]string{"default", "all"}, mcpserver.Toolsets()...)...)
	cmd.AddCommand(newMCPTokenCmd(app), newMCPInstallCmd(app), newMCPUninstallCmd(app), newMCPVerifyCmd(app), newMCPBundleCmd(app))
	return cmd
}

func runMCP(ctx context.Context, app *App, o MCPOptions) error {
	if o.NoAuth && o.HTTP == "" {
		return usagef("--no-auth is about --http: leave it out, standard input needs no token")
	}
	home, err := app.Home()
	if err != nil {
		return err
	}
	log, err := app.Logger()
	if err != nil {
		return err
	}
	runs, err := app.Runs()
	if err != nil {
		return err
	}
	app.served = true
	memory, err := app.Layers()
	if err != nil {
		return err
	}
	access, err := app.memoryAccess()
	if err != nil {
		return err
	}
	reader, err := app.reader()
	if err != nil {
		return err
	}
	deps := mcpserver.Deps{
		Runs: runs, Memory: memory, Search: searcher{app}, Reader: reader,
		Settings: home.Settings, Source: home.Source, Log: log, Now: app.Env.Now, Version: Version(),
		Toolsets: mcpserver.ParseToolsets(o.Toolsets), ReadOnly: o.ReadOnly, MemoryAccess: access, InProject: home.Project != nil,
		LegacyOnly: app.Env.Get(legacyVar) != "", Redact: redact.New().String,
		Projects: func() []string { return session.OtherProjects(home) },
	}
	if home.Project != nil {
		if deps.StateAccess, err = app.stateAccess(); err != nil {
			return err
		}
		deps.State = app.desk(home, deps.StateAccess)
		deps.Tasks, deps.TaskAccess = app.newTaskDesk(), app.taskAccess()
	}
	if l := app.loopSession(); l != nil {
		deps.Loop = l
	}
	server, err := mcpserver.New(deps)
	if err != nil {
		return exitWith(ExitUsage, err)
	}
	if o.HTTP != "" {
		addr := o.HTTP
		if addr == fromSettings {
			addr = home.Settings.HTTP.Addr
		}
		tokens := app.tokens(home)
		return server.ServeHTTP(ctx, mcpserver.HTTPOptions{
			Addr: addr, AllowedOrigins: home.Settings.HTTP.AllowedOrigins, OAuth: home.Settings.HTTP.OAuth,
			PublicURL: home.Settings.HTTP.PublicURL, Limits: home.Settings.HTTP.Limits,
			Tokens: &tokens, NoAuth: o.NoAuth, Now: app.Env.Now,
			Ready: func(a net.Addr) {
				fmt.Fprintf(app.Err, "reprise: serving MCP on http://%s%s\n", a, mcpserver.EndpointPath)
			},
		})
	}
	// Every byte on standard output is the protocol's from here on.
	if app.ProtectStdout != nil {
		app.ProtectStdout()
	}
	ctx, stop := untilParentEnds(ctx)
	defer stop()
	return server.ServeStdio(ctx, app.In, app.Out)
}

// parentLook is the time between looks for the parent process. A client that
// was killed may leave the other end of our input with a child of its own, so
// its end is not enough to go by.
const parentLook = 250 * time.Millisecond

// untilParentEnds returns a context that ends with the process that started
// this one. A parent that cannot be told apart, such as the first process of a
// container, is not watched.
func untilParentEnds(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := func() { cancel(nil) }
	pid := os.Getppid()
	if pid <= 1 {
		return ctx, stop
	}
	parent, err := proc.Identify(pid)
	if err != nil {
		return ctx, stop
	}
	go func() {
		ticker := time.NewTicker(parentLook)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if os.Getppid() != pid || !parent.Alive() {
					cancel(fmt.Errorf("the parent process ended (%d)", pid))
					return
				}
			}
		}
	}()
	return ctx, stop
}
