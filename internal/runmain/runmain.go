// Package runmain is the command line of reprise-supervise, the small program
// that every run has two uses for: supervise and protect. It is apart from
// package cli so that the program links neither cobra nor SQLite nor the MCP
// SDK, and from the hook program so that a hook does not pay for what runs
// need; a rule test lists what each links. It owns no files and takes no
// locks; what it starts does.
package runmain

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"reprise/internal/guard"
	"reprise/internal/run"
)

const usage = `reprise-supervise is started by reprise and by clients, not by people:
  reprise-supervise supervise DIR    own one run until it has ended
  reprise-supervise protect POLICY   answer a PreToolUse hook
For everything else there is reprise.
`

// Exit codes. In a hook 2 means "block the tool", so nothing here but a block
// may end with it: a Go panic does too, which is why protect recovers.
const (
	exitFailure = 1
	exitUsage   = 64 // EX_USAGE of sysexits.h
)

// Main runs the program and returns its exit code.
func Main(args []string) int {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return exitUsage
	}
	switch {
	case args[0] == "supervise" && len(args) == 2:
		return report(supervise(args[1]))
	case args[0] == "protect" && len(args) == 2:
		return protect(os.Stdin, os.Stdout, args[1])
	}
	fmt.Fprint(os.Stderr, usage)
	return exitUsage
}

func report(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "reprise-supervise: %v\n", err)
	return exitFailure
}

func supervise(dir string) error {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	stop := make(chan os.Signal, 4)
	signal.Notify(stop, run.StopSignals()...)
	return run.Supervise(context.Background(), run.SuperviseOptions{
		Dir: dir, Env: os.Environ(), Stop: stop, Host: host, Now: time.Now,
	})
}

// protect answers the hook; whatever goes wrong in it, the tool does not run.
func protect(in io.Reader, out io.Writer, policy string) (code int) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(os.Stderr, "reprise-supervise: the guard failed (%v), so the tool call is refused; please report this\n", r)
			code = 2
		}
	}()
	return guard.HookProtect(in, out, policy)
}
