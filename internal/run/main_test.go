//go:build unix

package run_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"testing"
	"time"

	"reprise/internal/agent/scripted"
	"reprise/internal/durable/durabletest"
	"reprise/internal/run"
)

// TestMain makes the test binary its own helper program: the runs in these
// tests have real supervisors and real agents, all of them this binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "supervise":
			stop := make(chan os.Signal, 1)
			signal.Notify(stop, run.StopSignals()...)
			err := run.Supervise(context.Background(), run.SuperviseOptions{Dir: os.Args[2], Env: os.Environ(), Stop: stop, Host: "test", Now: time.Now, Disk: supervisorDisk()})
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case "script-agent":
			dir, err := os.Getwd()
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(scripted.Play(scripted.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ(), Dir: dir, Self: self()}, os.Args[2:]))
		case "start-and-die":
			startAndDie(os.Args[2], os.Args[3])
		}
	}
	os.Exit(durabletest.InMemory(m.Run))
}

func self() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

// options for a manager over dir, with this binary as every program.
func options(dir string) run.Options {
	return run.Options{
		Dir: filepath.Join(dir, "runs"), Env: os.Environ(), Home: dir, Hostname: "test",
		DefaultClient: "generic", DefaultTimeout: 30 * time.Second, MaxOutputTokens: 4000,
		Program: self(), Helper: self(), Grace: 300 * time.Millisecond, Now: time.Now,
		EventsDir: filepath.Join(dir, "events"),
		LookPath: func(name string) (string, error) {
			if _, err := os.Stat(name); err != nil {
				return "", err
			}
			return name, nil
		},
	}
}
