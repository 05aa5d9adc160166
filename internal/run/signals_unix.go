//go:build unix

package run

import (
	"os"
	"syscall"
)

// StopSignals are the signals that ask a program of ours to end.
func StopSignals() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
}

// politeStop makes a supervisor stop its run.
var politeStop os.Signal = syscall.SIGTERM

// wakeUp lets a supervisor go on that somebody has stopped (SIGSTOP).
func wakeUp(r Record) error {
	if r.Supervisor == nil {
		return nil
	}
	return r.Supervisor.Signal(syscall.SIGCONT)
}
