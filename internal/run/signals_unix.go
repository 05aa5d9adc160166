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
