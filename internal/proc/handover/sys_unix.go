//go:build unix

package handover

import (
	"os"
	"syscall"
)

// attributes put the child into a group of its own, so that what it starts can
// be ended with it.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func kill(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL) // gone already is as good
	_ = p.Kill()
}
