package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// start starts the child. One that belongs to a run is created suspended, put
// into the run's job object and only then let go, so that nothing it starts is
// outside the job.
func start(c Cmd, attr *os.ProcAttr) (*Process, error) {
	if len(c.ExtraFiles) > 0 {
		return nil, fmt.Errorf("start %s: extra files: %w", c.Path, errors.ErrUnsupported)
	}
	if err := checkBatch(c); err != nil {
		return nil, err
	}
	sys := &syscall.SysProcAttr{HideWindow: true}
	if c.NewGroup || c.NewSession {
		sys.CreationFlags |= windows.CREATE_NEW_PROCESS_GROUP
	}
	if c.NewSession {
		sys.CreationFlags |= windows.DETACHED_PROCESS
	}
	attr.Sys = sys
	marker := EnvValue(c.Env, RunIDVar)
	if marker == "" {
		return launch(c, attr, nil)
	}
	sys.CreationFlags |= windows.CREATE_SUSPENDED
	var job windows.Handle
	p, err := launch(c, attr, func(p *os.Process) error {
		var err error
		if job, err = openJob(marker, true); err != nil {
			return err
		}
		if err := assign(job, p.Pid); err != nil {
			return err
		}
		return resume(p.Pid)
	})
	if err != nil && job != 0 {
		_ = windows.CloseHandle(job)
	}
	// On success the handle stays open on purpose for the life of this
	// process: closing the last one ends the job's members, which is what
	// makes the tree end when its supervisor is killed.
	return p, err
}

// checkBatch refuses arguments that cmd.exe, which the system runs for batch
// files (npm's .cmd shims among them), would take as commands: no quoting is
// safe there.
func checkBatch(c Cmd) error {
	ext := strings.ToLower(filepath.Ext(c.Path))
	if ext != ".cmd" && ext != ".bat" {
		return nil
	}
	for _, a := range c.Args {
		if strings.ContainsAny(a, "\"%!^&|<>\r\n") {
			return fmt.Errorf("start %s: argument %q cannot be passed safely to a batch file; name the program it starts", c.Path, a)
		}
	}
	return nil
}

func exitOf(st *os.ProcessState) Exit {
	return Exit{Code: st.ExitCode(), UserTime: st.UserTime(), SysTime: st.SystemTime()}
}

// jobName is the name of a run's job object in the session's namespace.
func jobName(marker string) string { return `Local\reprise-run-` + marker }

// openJob opens a run's job object. With create it makes one whose members end
// when the last handle is closed.
func openJob(marker string, create bool) (windows.Handle, error) {
	if err := checkMarker(marker); err != nil {
		return 0, err
	}
	name, err := windows.UTF16PtrFromString(jobName(marker))
	if err != nil {
		return 0, fmt.Errorf("name job object: %w", err)
	}
	// There is no OpenJobObject in x/sys; creating with a name that is there
	// opens it and says so.
	job, err := windows.CreateJobObject(nil, name)
	if job == 0 {
		return 0, fmt.Errorf("open job object: %w", err)
	}
	if errors.Is(err, windows.ERROR_ALREADY_EXISTS) {
		return job, nil
	}
	if !create {
		_ = windows.CloseHandle(job)
		return 0, nil
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		_ = windows.CloseHandle(job)
		return 0, fmt.Errorf("limit job object: %w", err)
	}
	return job, nil
}

func assign(job windows.Handle, pid int) error {
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return fmt.Errorf("open process %d: %w", pid, err)
	}
	defer windows.CloseHandle(h)
	if err := windows.AssignProcessToJobObject(job, h); err != nil {
		return fmt.Errorf("put process %d into its job: %w", pid, err)
	}
	return nil
}

// resume lets the only thread of a process that was created suspended run.
func resume(pid int) error {
	snap, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return fmt.Errorf("list threads: %w", err)
	}
	defer windows.CloseHandle(snap)
	e := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(snap, &e); err == nil; err = windows.Thread32Next(snap, &e) {
		if int(e.OwnerProcessID) != pid {
			continue
		}
		h, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, e.ThreadID)
		if err != nil {
			return fmt.Errorf("open thread of process %d: %w", pid, err)
		}
		defer windows.CloseHandle(h)
		if _, err := windows.ResumeThread(h); err != nil {
			return fmt.Errorf("resume process %d: %w", pid, err)
		}
		return nil
	}
	return fmt.Errorf("resume process %d: no thread found: %w", pid, err)
}
