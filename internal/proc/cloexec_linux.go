package proc

import "golang.org/x/sys/unix"

// closeOnExec marks every descriptor from 3 up close-on-exec. Go opens its own
// that way; those this process was born with are not, and would leak into
// every agent. Needs Linux 5.11; before that the list in /proc is walked.
func closeOnExec() {
	if err := unix.CloseRange(3, ^uint(0)>>1&0xffffffff, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		closeOnExecIn("/proc/self/fd")
	}
}
