//go:build unix

package proc

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

func start(c Cmd, attr *os.ProcAttr) (*Process, error) {
	closeOnExec()
	attr.Sys = &syscall.SysProcAttr{
		Setsid:  c.NewSession,
		Setpgid: c.NewGroup && !c.NewSession, // a session leader cannot change its group
	}
	return launch(c, attr, nil)
}

func exitOf(st *os.ProcessState) Exit {
	e := Exit{Code: st.ExitCode(), UserTime: st.UserTime(), SysTime: st.SystemTime()}
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Code = 128 + int(ws.Signal())
		e.Signal = unix.SignalName(ws.Signal())
	}
	if ru, ok := st.SysUsage().(*syscall.Rusage); ok {
		e.MaxRSS = int64(ru.Maxrss)
		if runtime.GOOS != "darwin" {
			e.MaxRSS *= 1024 // kilobytes everywhere but on macOS
		}
	}
	return e
}
