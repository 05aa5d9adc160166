//go:build unix

package proc

import "syscall"

// makePollable lets the watcher wait in the runtime's poller and not in a
// thread of its own.
func makePollable(fd int) {
	syscall.CloseOnExec(fd)
	_ = syscall.SetNonblock(fd, true) // without it a thread waits: slower, not wrong
}
