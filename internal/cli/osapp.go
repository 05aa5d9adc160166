package cli

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/term"

	"reprise/internal/config"
	"reprise/internal/proc"
	"reprise/internal/run"
)

// subscribe is called by the commands that act on signals only: a program that
// is asked to be stopped by the default action must not have subscribed.
func subscribe() <-chan os.Signal {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, run.StopSignals()...)
	return signals
}

// protectStdout keeps stray prints out of a protocol. It also makes a reader that
// went away an error of the write: by default the system would end the program at
// that write (SIGPIPE), before it has said in the log that its runs are stopped.
// Subscribing, and not ignoring, leaves the default to the programs that it starts.
func protectStdout() {
	os.Stdout = os.Stderr
	goOnUnread()
}

// goOnUnread makes a reader that went away an error of the write, for a command that has more
// to do than to print.
func goOnUnread() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// terminalSize is that of standard output, zeros where it is no terminal any more.
func terminalSize() (columns, rows int) {
	columns, rows, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0, 0
	}
	return columns, rows
}

// OSApp is the App of the real process. Only main calls it.
func OSApp() (*App, error) {
	env, err := config.OSEnv()
	if err != nil {
		return nil, err
	}
	if startedByClient(env) {
		for _, i := range config.Disown(env) {
			_ = os.Unsetenv(i.Name) // it fails for names that no environment has
			fmt.Fprintf(os.Stderr, "reprise: note: %s of %s is not heeded: a repository's file does not decide for the user\n", i.Name, i.File)
		}
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost" // names the event file; one machine without a name is still one
	}
	columns, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		columns = 0 // not a terminal: nothing is cut
	}
	return &App{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InIsTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
		OutIsTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		ErrIsTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Columns:       columns,
		Size:          terminalSize,
		Env:           env,
		// A hook or an alias of git that calls reprise hands it variables that name that
		// repository; what reprise starts works where it is started.
		Environ: proc.WithoutRepository(os.Environ()), Program: program, Hostname: host, PID: os.Getpid(),
		ProtectStdout: protectStdout,
		Signals:       subscribe,
	}, nil
}

// startedByClient reports whether a client started the program, by itself or in a command of
// its agent's: its environment may be what the project's files made of it; see
// [config.Disown].
func startedByClient(env config.Env) bool {
	return len(os.Args) > 1 && (os.Args[1] == "mcp" || os.Args[1] == "hook") || env.Get("CLAUDECODE") != "" || env.Get("GEMINI_CLI") != ""
}
