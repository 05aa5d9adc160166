package proc

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// stillActive is STILL_ACTIVE of GetExitCodeProcess.
const stillActive = 259

// bootName is empty: the creation time is an absolute time to 100 ns, which
// names a process across boots by itself.
func bootName() string { return "" }

func lookup(pid int) (info, error) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		// ERROR_INVALID_PARAMETER is the answer for a number nobody has.
		if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
			return info{}, ErrGone
		}
		return info{}, fmt.Errorf("open process %d: %w", pid, err)
	}
	defer windows.CloseHandle(h)
	return infoOf(pid, h)
}

// infoOf asks an open process. The number of an open process is not reused.
func infoOf(pid int, h windows.Handle) (info, error) {
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(h, &created, &exited, &kernel, &user); err != nil {
		return info{}, fmt.Errorf("read times of process %d: %w", pid, err)
	}
	var code uint32
	if err := windows.GetExitCodeProcess(h, &code); err != nil {
		return info{}, fmt.Errorf("read state of process %d: %w", pid, err)
	}
	return info{
		pid:   pid,
		start: uint64(created.HighDateTime)<<32 | uint64(created.LowDateTime),
		ended: code != stillActive,
	}, nil
}

// table takes a snapshot of the processes. A parent counts only if it started
// before its child: the system keeps the number of a parent that has ended,
// and that number may be somebody else's by now.
func table() ([]info, error) {
	snap, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer windows.CloseHandle(snap)
	var out []info
	started := map[int]uint64{}
	e := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	for err = windows.Process32First(snap, &e); err == nil; err = windows.Process32Next(snap, &e) {
		in, lerr := lookup(int(e.ProcessID))
		if lerr != nil {
			continue // ended meanwhile, or not ours to open
		}
		in.ppid = int(e.ParentProcessID)
		started[in.pid] = in.start
		out = append(out, in)
	}
	if !errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	for i := range out {
		if at, ok := started[out[i].ppid]; !ok || at > out[i].start {
			out[i].ppid = 0
		}
	}
	return out, nil
}

// environOf is not used: runs are found by their job object.
func environOf(info, *[]byte) ([]byte, error) { return nil, errors.ErrUnsupported }

func signalID(id ID, sig os.Signal) error {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.PROCESS_TERMINATE, false, uint32(id.PID))
	if err != nil {
		if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
			return ErrGone
		}
		return fmt.Errorf("open process: %w", err)
	}
	defer windows.CloseHandle(h)
	in, err := infoOf(id.PID, h)
	if err != nil {
		return err
	}
	if in.start != id.Start || in.ended {
		return ErrGone
	}
	switch sig {
	case os.Kill:
		return windows.TerminateProcess(h, 1)
	case os.Interrupt:
		return windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(id.PID))
	}
	return fmt.Errorf("signal %v: %w", sig, errors.ErrUnsupported)
}
