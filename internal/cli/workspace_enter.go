package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/proc"
	"reprise/internal/workspace"
)

func newWorkspaceEnvCmd(app *App) *cobra.Command {
	var shell string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "env [NAME]", Args: cobra.MaximumNArgs(1), Short: "Print a workspace's variables for a shell", ValidArgsFunction: completeWorkspaces(app),
		Long: `Print the variables of who works in a workspace, as assignments that the shell
evaluates. Whoever has REPRISE_WORKSPACE among them is held to the workspace by
the guard: no write in another checkout of the repository, and none at all once
the workspace is gone.`,
		Example: `  eval "$(reprise workspace env auth)"
  reprise workspace env auth --shell fish | source
  reprise workspace env auth --shell powershell | Invoke-Expression`,
		RunE: func(_ *cobra.Command, args []string) error {
			ws, err := app.Workspaces()
			if err != nil {
				return err
			}
			name, err := app.thisWorkspace(args)
			if err != nil {
				return err
			}
			w, err := ws.Get(name)
			if err != nil {
				return workspaceError(err)
			}
			if asJSON {
				vars := map[string]string{}
				for _, v := range w.Vars() {
					vars[v[0]] = v[1]
				}
				return printJSON(app.Out, vars)
			}
			for _, v := range w.Vars() {
				line, ok := assignment(shell, v[0], v[1])
				if !ok {
					return usagef("--shell %q: there are sh, fish, powershell and cmd", clipText(shell, 40))
				}
				fmt.Fprintln(app.Out, line)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&shell, "shell", "sh", "the `SHELL` that reads it: sh, fish, powershell or cmd")
	offer(cmd, "shell", "sh", "fish", "powershell", "cmd")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print them for programs")
	return cmd
}

// assignment sets a variable in a shell's own words. Nothing in the value is
// evaluated.
func assignment(shell, name, value string) (string, bool) {
	switch shell {
	case "sh":
		return "export " + name + "='" + strings.ReplaceAll(value, "'", `'\''`) + "'", true
	case "fish":
		return "set -gx " + name + " '" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(value) + "'", true
	case "powershell":
		return "$env:" + name + " = '" + strings.ReplaceAll(value, "'", "''") + "'", true
	case "cmd":
		return `set "` + name + "=" + strings.ReplaceAll(value, "%", "%%") + `"`, true
	}
	return "", false
}

func newWorkspaceEnterCmd(app *App) *cobra.Command {
	var tmux bool
	cmd := &cobra.Command{
		Use: "enter NAME [-- COMMAND ...]", Short: "Start a shell or a command in a workspace", ValidArgsFunction: completeWorkspaces(app),
		Long: `Start your shell in a workspace, or COMMAND, with the workspace's variables. As
long as it runs nobody takes the workspace away. The exit code is that of what
was started. With --tmux it is a tmux session, which goes on when you leave it.`,
		Example: `  reprise workspace enter auth
  reprise workspace enter auth -- claude
  reprise workspace enter auth --tmux`,
		Annotations: map[string]string{ownsSignals: "yes"},
		Args: func(cmd *cobra.Command, args []string) error {
			n := len(args)
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				n = at
			}
			if n != 1 {
				return usagef("enter takes one NAME, and a command after --")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ws, err := app.Workspaces()
			if err != nil {
				return err
			}
			w, err := ws.Get(args[0])
			if err != nil {
				return workspaceError(err)
			}
			if tmux {
				if len(args) > 1 {
					return usagef("--tmux starts a session with your shell; a command goes without it")
				}
				return enterTmux(cmd.Context(), app, ws, w)
			}
			return enterWorkspace(cmd.Context(), app, ws, w, args[1:])
		},
	}
	cmd.Flags().BoolVar(&tmux, "tmux", false, "attach to a tmux session in it, made where there is none")
	return cmd
}

func enterWorkspace(ctx context.Context, app *App, ws *workspace.Manager, w workspace.Workspace, argv []string) error {
	self, err := proc.Self()
	if err != nil {
		return err
	}
	what := "shell"
	if len(argv) > 0 {
		what = argv[0]
	} else {
		argv = []string{app.shell()}
	}
	path, err := proc.LookPath(argv[0], app.Env.Vars, app.Env.GOOS)
	if err != nil {
		return exitWith(ExitNotFound, fmt.Errorf("enter workspace %s: %w", w.Name, err))
	}
	l, err := ws.Lease(ctx, w.Name, workspace.Holder{Process: self, What: what, Shared: true})
	if err != nil {
		return workspaceError(err)
	}
	if info := ws.Look(w); len(info.Live) > 0 {
		fmt.Fprintf(app.Err, "note: at work there: %s\n", whoWorks(info))
	}
	code, err := app.foreground(proc.Cmd{Path: path, Args: argv[1:], Env: w.Environ(app.Environ), Dir: w.Root()})
	err = errors.Join(err, l.Release(context.WithoutCancel(ctx)))
	if err != nil {
		return fmt.Errorf("enter workspace %s: %w", w.Name, err)
	}
	return exitWithCode(code)
}

// shell is the user's.
func (a *App) shell() string {
	if a.Env.GOOS == "windows" {
		if s := a.Env.Get("COMSPEC"); s != "" {
			return s
		}
		return "cmd.exe"
	}
	if s := a.Env.Get("SHELL"); s != "" {
		return s
	}
	return "/bin/sh"
}

// foreground runs a program at this one's terminal until it ends. An interrupt from
// the keyboard reaches both; what it means is the program's affair. Other requests to
// stop are handed on to it.
func (a *App) foreground(c proc.Cmd) (int, error) {
	c.Stdin, _ = a.In.(*os.File)
	c.Stdout = a.outFile()
	c.Stderr, _ = a.Err.(*os.File)
	var signals <-chan os.Signal
	if a.Signals != nil {
		signals = a.Signals()
	}
	p, err := proc.Start(c)
	if err != nil {
		return 0, err
	}
	for {
		select {
		case sig := <-signals:
			if sig != os.Interrupt {
				if err := p.ID().Signal(sig); err != nil && !errors.Is(err, proc.ErrGone) {
					return 0, err
				}
			}
		case <-p.Done():
			exit, err := p.Wait()
			return exit.Code, err
		}
	}
}

func enterTmux(ctx context.Context, app *App, ws *workspace.Manager, w workspace.Workspace) error {
	path, err := ws.FindTmux()
	if err != nil {
		return err
	}
	if _, err := ws.Tmux(ctx, w, app.Environ); err != nil {
		return workspaceError(err)
	}
	args := []string{"attach-session", "-t", "=" + w.TmuxName()}
	if app.Env.Get("TMUX") != "" {
		args[0] = "switch-client"
	}
	code, err := app.foreground(proc.Cmd{Path: path, Args: args, Env: app.Environ, Dir: w.Root()})
	if err != nil {
		return err
	}
	return exitWithCode(code)
}
