package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

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

func newVersionCmd(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Args: cobra.NoArgs, Short: "Say which build this is",
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return printJSON(app.Out, map[string]any{"v": 1, "version": Version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
			}
			_, err := fmt.Fprintf(app.Out, "reprise %s\n", Version())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

// typedOutput is an output that is told what is printed for programs, as the value that
// it is made of: docs/json.md is held to that.
type typedOutput interface{ Typed(v any) }

func typed(w io.Writer, v any) {
	if t, ok := w.(typedOutput); ok {
		t.Typed(v)
	}
}

// printJSON writes v for programs: two spaces of indent, characters as they are.
func printJSON(w io.Writer, v any) error {
	typed(w, v)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// jsonData is v as one line, for the data of an event.
func jsonData(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// ago is a time as people say it.
func ago(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < 48*time.Hour:
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%.0f days", d.Hours()/24)
}
