//go:build unix

package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// Background has this process give way to others: it is at work that nobody waits for. It is
// meant for one in a session of its own (NewSession), for on Linux each thread has its own
// priority, and only a group's is set at once.
func Background() error {
	const nice = 10
	if unix.Getpgrp() == os.Getpid() {
		return unix.Setpriority(unix.PRIO_PGRP, 0, nice)
	}
	return unix.Setpriority(unix.PRIO_PROCESS, 0, nice)
}
