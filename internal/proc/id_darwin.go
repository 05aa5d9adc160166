package proc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// zombie is SZOMB of <sys/proc.h>.
const zombie = 5

// bootName is kern.bootsessionuuid, new at each boot.
func bootName() string {
	s, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return s
}

func lookup(pid int) (info, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		// The call answers EIO, not ESRCH, for a number nobody has.
		if errors.Is(err, unix.EIO) || errors.Is(err, unix.ESRCH) {
			return info{}, ErrGone
		}
		return info{}, fmt.Errorf("read kern.proc.pid.%d: %w", pid, err)
	}
	if int(k.Proc.P_pid) != pid {
		return info{}, ErrGone
	}
	return infoOf(k), nil
}

func infoOf(k *unix.KinfoProc) info {
	return info{
		pid:  int(k.Proc.P_pid),
		ppid: int(k.Eproc.Ppid),
		pgrp: int(k.Eproc.Pgid),
		// The structure has no number of the session, only a pointer.
		start: uint64(k.Proc.P_starttime.Sec)*1e6 + uint64(k.Proc.P_starttime.Usec),
		ended: k.Proc.P_stat == zombie,
		// NODEV of <sys/param.h>.
		terminal: k.Eproc.Tdev != -1,
	}
}

func table() ([]info, error) {
	ks, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	out := make([]info, 0, len(ks))
	for i := range ks {
		if ks[i].Proc.P_pid > 0 {
			out = append(out, infoOf(&ks[i]))
		}
	}
	return out, nil
}

// environOf reads the environment through KERN_PROCARGS2. The system gives it
// for the user's own processes only, and leaves it out for programs that its
// integrity protection covers.
func environOf(in info, _ *[]byte) ([]byte, error) {
	raw, err := unix.SysctlRaw("kern.procargs2", in.pid)
	if err != nil {
		return nil, fmt.Errorf("read kern.procargs2.%d: %w", in.pid, err)
	}
	if len(raw) < 4 {
		return nil, fmt.Errorf("read kern.procargs2.%d: %d bytes", in.pid, len(raw))
	}
	return environAfterArgs(int(binary.NativeEndian.Uint32(raw)), raw[4:]), nil
}

func signalID(id ID, sig os.Signal) error {
	s, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("signal %v: not a signal of this system", sig)
	}
	return signalChecked(id, s)
}
