package cli

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"reprise/internal/agent/scripted"
	"reprise/internal/guard"
	"reprise/internal/run"
)

// The hidden commands: what reprise starts of itself. The small program
// reprise-supervise has the first two too.

func newSuperviseCmd(app *App) *cobra.Command {
	return &cobra.Command{
		Use: "supervise DIR", Hidden: true, Args: cobra.ExactArgs(1),
		Short:       "Own one run until it has ended (started by reprise itself)",
		Annotations: map[string]string{ownsSignals: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			var stop <-chan os.Signal
			if app.Signals != nil {
				stop = app.Signals()
			}
			return run.Supervise(cmd.Context(), run.SuperviseOptions{
				Dir: args[0], Env: app.Environ, Stop: stop, Host: app.Hostname, Now: app.Env.Now,
			})
		},
	}
}

func newProtectCmd(app *App) *cobra.Command {
	return &cobra.Command{
		Use: "protect POLICY", Hidden: true, Args: cobra.ExactArgs(1),
		Short: "Answer a client's PreToolUse hook about the memory directory (started by a client)",
		RunE: func(_ *cobra.Command, args []string) error {
			code := guard.HookProtect(app.In, app.Out, args[0])
			return exitWithCode(code)
		},
	}
}

func newScriptAgentCmd(app *App) *cobra.Command {
	return &cobra.Command{
		Use: "script-agent [--file FILE]", Hidden: true, DisableFlagParsing: true,
		Short:       "Play a scripted agent (the client named script)",
		Annotations: map[string]string{ownsSignals: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			out := app.outFile()
			errOut, errIsFile := app.Err.(*os.File)
			if out == nil || !errIsFile {
				return errors.New("play script: its output must be a file, a pipe or a terminal")
			}
			return exitWithCode(scripted.Play(scripted.IO{
				In: app.In, Out: out, Err: errOut, Env: app.Environ, Dir: app.Env.Dir, Self: app.Program,
			}, args))
		},
	}
}

// exitWithCode ends the program with a code and no further words.
func exitWithCode(code int) error {
	if code == 0 {
		return nil
	}
	return &ExitError{Code: code}
}
