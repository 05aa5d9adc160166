// Package cli is the command line: one file a command, each with its flags,
// its output and its errors. It owns no files of its own and takes no locks;
// everything it changes, it changes through the packages below it.
//
// It is also where the parts are wired together: the settings, the run
// manager, the memory store and the search index are built here, lazily, so
// that a command pays only for what it uses.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/term"
)

// Exit codes of the program. They are part of its interface: scripts and
// hooks branch on them.
const (
	ExitOK       = 0 // done
	ExitFailure  = 1 // it went wrong; the message says what, where and what to do
	ExitUsage    = 2 // the words of the command line are off
	ExitNotFound = 3 // the thing that was named does not exist
	ExitConflict = 4 // refused: stale, locked or held by somebody else
	ExitTimeout  = 5 // it did not end within the time that was given
)

// ExitError carries the exit code that an error should end the program with.
// An Err of nil ends it with the code and no message: the command has already
// said everything, as `reprise memory check` does when it finds something.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// exitWith wraps err so that the program ends with code. A nil error stays nil.
func exitWith(code int, err error) error {
	if err == nil {
		return nil
	}
	return &ExitError{Code: code, Err: err}
}

// usagef is an error about the words of the command line (exit code 2).
func usagef(format string, args ...any) error {
	return &ExitError{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// Main runs the program with args (without the program's name) and returns
// its exit code. It is the only place that turns errors into codes and prints
// them; it touches nothing but what app holds.
func Main(ctx context.Context, args []string, app *App) int {
	defer app.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out, was := &output{Writer: app.Out}, app.Out
	app.Out = out
	defer func() { app.Out = was }()
	root := newRoot(app, chosen(args))
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if err := app.mayCall(cmd, args); err != nil {
			return err
		}
		if err := errors.Join(clientNames(cmd), noneNegative(cmd), noneEmpty(cmd, args)); err != nil {
			return err
		}
		if app.Signals != nil && cmd.Annotations[ownsSignals] == "" {
			signals := app.Signals()
			go func() {
				select {
				case sig := <-signals:
					cancel(fmt.Errorf("stopped by signal (%s)", sig))
				case <-ctx.Done():
				}
			}()
		}
		if readsMemory(cmd) {
			return app.finishForgetting(cmd.Context())
		}
		return nil
	}
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if lost := out.err(); lost != nil && !errors.As(err, new(*outputError)) {
		printError(app.Err, lost)
		if err == nil {
			return ExitFailure
		}
	}
	if err == nil {
		return ExitOK
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
		err = cause
	}
	var exit *ExitError
	if errors.As(err, &exit) {
		if exit.Err != nil {
			printError(app.Err, app.withPlace(exit.Err))
		}
		return exit.Code
	}
	printError(app.Err, app.withPlace(err))
	if isUsageError(err) {
		return ExitUsage
	}
	return ExitFailure
}

// readsMemory says that a command may show something of memory or of the logs, or says how
// things stand: what was to be forgotten when a process was killed goes first.
func readsMemory(cmd *cobra.Command) bool {
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	switch cmd.Name() {
	case "memory", "recall", "context", "events", "index", "qa", "policy", "metrics", "mcp", "import", "web",
		"reprise", "status", "log", "state": // the first is the program with no command
		return true
	}
	return false
}

// ownsSignals annotates a command that sees to signals itself; every other
// command's context ends at the first one.
const ownsSignals = "owns-signals"

func printError(w io.Writer, err error) {
	fmt.Fprintf(w, "reprise: %s\n", term.SafeText(strings.TrimSpace(err.Error()))) // it may have an agent's words
}

// isUsageError recognises what cobra and pflag say of a wrong command line;
// they have no type for it.
func isUsageError(err error) bool {
	msg := err.Error()
	for _, prefix := range []string{
		"unknown command", "unknown flag", "unknown shorthand", "flag needs an argument",
		"invalid argument", "accepts ", "requires at least", "requires at most", "required flag",
		"if any flags in the group", "at least one of the flags",
	} {
		if strings.HasPrefix(msg, prefix) {
			return true
		}
	}
	return false
}

// chosen are the commands that a line can mean: the one that its first word names, or all
// of them. A process runs one, and making them all takes longer than most of them.
func chosen(args []string) []command {
	all := commands()
	if len(args) > 0 {
		if i := slices.IndexFunc(all, func(c command) bool { return c.word == args[0] }); i >= 0 {
			return all[i : i+1]
		}
	}
	return all
}

// newRoot is the program with these of its commands.
func newRoot(app *App, list []command) *cobra.Command {
	root := &cobra.Command{
		Use:   "reprise",
		Short: "Working memory and a harness for coding agents",
		Long: `reprise gives coding agents a working memory and a harness: their sessions are
recorded and the next one is told what matters, memory is plain markdown, and
agents run in the background over MCP.

` + "`reprise`" + ` alone says where things stand (see ` + "`reprise status`" + `). Start with:
  reprise demo           the main job, shown step by step, no account needed
  reprise init           make this directory a project; asks about the next two
  reprise setup          connect your clients (claude-code, codex, gemini, …)
  reprise import --help  take in the sessions and notes that you have
  reprise doctor         what is set up, what is not, and what to do about it

A command ends with 0 when it is done, 1 when it went wrong, 2 when its words are
off, 3 when what was named is not there, 4 when it was refused because something
changed, exists or is held, and 5 when time ran out.`,
		Args:          onlyCommands,
		RunE:          func(cmd *cobra.Command, _ []string) error { return showStatus(cmd.Context(), app, false) },
		Version:       Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(app.In)
	root.SetOut(app.Out)
	root.SetErr(app.Err)
	root.SetVersionTemplate("reprise {{.Version}}\n")
	root.PersistentFlags().StringVar(&app.ConfigFlag, "config", "", "read the settings from `FILE` (default: $REPRISE_CONFIG, else what \"reprise paths settings\" says)")
	root.SetFlagErrorFunc(flagError)
	for _, c := range list {
		root.AddCommand(c.make(app))
	}
	root.SetHelpCommand(newHelpCmd(root))
	root.InitDefaultHelpCmd()
	if len(list) == 1 {
		root.CompletionOptions.DisableDefaultCmd = true // it is another command
	}
	root.InitDefaultCompletionCmd()
	if len(list) > 1 { // who completes makes them all
		offerNames(app, root)
	}
	standAlone(root)
	withExamples(root, examples())
	finish(root)
	return root
}
