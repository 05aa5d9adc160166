//go:build unix && !linux

package proc

// closeOnExec marks every descriptor from 3 up close-on-exec: those this
// process was born with would leak into every agent.
func closeOnExec() { closeOnExecIn("/dev/fd") }
