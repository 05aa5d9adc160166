// Package proc starts, identifies and stops processes. It is linked into the
// small hook and supervisor program, so it imports little: no os/exec, no
// reflection, nothing with an expensive package initialiser.
//
// It owns no files and takes no lock. It writes nothing to disk: a child's
// standard streams are files that the caller opened. State that has to outlive
// a call (which children are ours) is asked from the kernel every time and not
// kept here.
//
// What it can promise depends on the system; each function says how. The short
// form: on Linux a tree is stopped whole (process group, walk of parents,
// subreaper, sweep of environments, signals through pidfds); on macOS the
// subreaper is missing and the environment of protected programs cannot be
// read; on Windows a job object holds the tree and the kernel ends it.
package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// RunIDVar is the name of the environment variable that holds the id of the
// run a process belongs to. Every descendant inherits it, which is what makes
// Sweep find processes that left their group, session and parent.
const RunIDVar = "REPRISE_RUN_ID"

// ErrGone says that the process of an ID has ended, or that its number belongs
// to another process by now. Nothing was signalled.
var ErrGone = errors.New("process is gone")

// ID names one process for all time: numbers are reused, the pair of number
// and start time within one boot is not. The zero ID names no process.
type ID struct {
	// PID is the process number.
	PID int `json:"pid"`
	// Start is when it started, in the platform's own unit: clock ticks since
	// boot on Linux (field 22 of /proc/<pid>/stat), microseconds since 1970 on
	// macOS (kinfo_proc), 100 ns since 1601 on Windows (GetProcessTimes). Only
	// equality means anything.
	Start uint64 `json:"start"`
	// Boot names the boot and, in a container, the pid namespace in which PID
	// counts. It is empty where the system has no such name.
	Boot string `json:"boot,omitempty"`
}

// Self identifies the calling process.
func Self() (ID, error) { return Identify(os.Getpid()) }

// Identify returns the identity of a running process. A process that has ended
// but was not waited for yet (a zombie) is reported as ErrGone, as is a number
// that nobody has.
func Identify(pid int) (ID, error) {
	if pid <= 0 {
		return ID{}, fmt.Errorf("identify process %d: %w", pid, ErrGone)
	}
	p, err := lookup(pid)
	if err != nil {
		return ID{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	if p.ended {
		return ID{}, fmt.Errorf("identify process %d: %w", pid, ErrGone)
	}
	return ID{PID: pid, Start: p.start, Boot: bootName()}, nil
}

// IsZero reports whether the ID names no process.
func (id ID) IsZero() bool { return id == ID{} }

// String is for logs: "4711@81234".
func (id ID) String() string {
	return strconv.Itoa(id.PID) + "@" + strconv.FormatUint(id.Start, 10)
}

// Alive reports whether exactly this process still runs. A zombie has ended.
// When the system refuses to tell, the answer is false.
func (id ID) Alive() bool {
	now, err := Identify(id.PID)
	return err == nil && now == id
}

// Signal sends sig to exactly this process, or returns an error that matches
// ErrGone. On Linux from 5.3 on it goes through a pidfd and cannot hit another
// process; elsewhere the identity is checked directly before. Windows knows
// os.Kill only, and os.Interrupt for a process that was started with NewGroup.
func (id ID) Signal(sig os.Signal) error {
	if id.PID <= 0 || id.Boot != bootName() {
		return fmt.Errorf("signal process %s: %w", id, ErrGone)
	}
	if err := signalID(id, sig); err != nil {
		return fmt.Errorf("signal process %s: %w", id, err)
	}
	return nil
}

// info is what a snapshot of the process table says about one process.
type info struct {
	pid, ppid, pgrp, session int
	start                    uint64
	ended                    bool // zombie or dead
	terminal                 bool // it has a controlling one
}

// Cmd says what to start. Nothing is taken from the calling process but its
// working directory, and that only where Dir is empty.
type Cmd struct {
	// Path is the absolute path of the program (see LookPath).
	Path string
	// Args are the arguments after the program's own name.
	Args []string
	// Env is the whole environment; nil means an empty one. A command whose
	// Env has RunIDVar belongs to that run; on Windows it is put into the
	// run's job object, which ends it when the caller ends.
	Env []string
	// Dir is the working directory; it must exist.
	Dir string
	// Stdin, Stdout and Stderr are used as they are, without pipes and copying
	// goroutines; nil means the null device.
	Stdin, Stdout, Stderr *os.File
	// ExtraFiles become descriptors 3 and up. Not on Windows.
	ExtraFiles []*os.File
	// NewSession puts the child into a session (and so a group) of its own
	// without a terminal; NewGroup only into a group of its own.
	NewSession, NewGroup bool
}

// Exit is how a process ended and what it used.
type Exit struct {
	// Code is the exit code; 128 + the signal's number if a signal ended it.
	Code int `json:"code"`
	// Signal is the name of that signal, such as "SIGKILL", else empty.
	Signal string `json:"signal,omitempty"`
	// UserTime and SysTime count the process and the children it waited for.
	UserTime time.Duration `json:"user_time,omitempty"`
	SysTime  time.Duration `json:"sys_time,omitempty"`
	// MaxRSS is the largest resident size in bytes; 0 where it is unknown.
	MaxRSS int64 `json:"max_rss,omitempty"`
}

// Process is a started child. Its exit status is collected in the background,
// so that it never stays a zombie.
type Process struct {
	id   ID
	proc *os.Process
	done chan struct{}
	exit Exit
	err  error
}

// Start starts a command. The child gets the named files and nothing else:
// descriptors that this process itself inherited are closed for it. It fails
// if the program or the directory is not there.
func Start(c Cmd) (*Process, error) {
	if !filepath.IsAbs(c.Path) {
		return nil, fmt.Errorf("start %q: the program must be an absolute path", c.Path)
	}
	if c.Dir != "" {
		// The kernel's own message would blame the program.
		if st, err := os.Stat(c.Dir); err != nil {
			return nil, fmt.Errorf("start %s in its working directory: %w", c.Path, err)
		} else if !st.IsDir() {
			return nil, fmt.Errorf("start %s: working directory %s is not a directory", c.Path, c.Dir)
		}
	}
	files, closeNull, err := stdio(c)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	defer closeNull()
	env := c.Env
	if env == nil {
		env = []string{} // nil would mean "the parent's"
	}
	return start(c, &os.ProcAttr{Dir: c.Dir, Env: env, Files: files})
}

// stdio lists the child's files, with the null device where none is named.
func stdio(c Cmd) ([]*os.File, func(), error) {
	files := []*os.File{c.Stdin, c.Stdout, c.Stderr}
	var null *os.File
	closeNull := func() {
		if null != nil {
			_ = null.Close() // nothing was written through it
		}
	}
	for i, f := range files {
		if f != nil {
			continue
		}
		if null == nil {
			var err error
			if null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
				return nil, nil, fmt.Errorf("open the null device: %w", err)
			}
		}
		files[i] = null
	}
	return append(files, c.ExtraFiles...), closeNull, nil
}

// launch starts the process and the goroutine that collects its status. after
// runs before the child's status can be collected, so the number is still its
// own there; if it fails, the child is killed.
func launch(c Cmd, attr *os.ProcAttr, after func(*os.Process) error) (*Process, error) {
	p, err := os.StartProcess(c.Path, append([]string{c.Path}, c.Args...), attr)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	if after != nil {
		if err := after(p); err != nil {
			_ = p.Kill()    // it may have ended by itself
			_, _ = p.Wait() // the first error is the one to tell
			return nil, fmt.Errorf("start %s: %w", c.Path, err)
		}
	}
	// Not Identify: a child that ended already is a zombie here, still has its
	// start time, and its name is wanted all the same.
	in, err := lookup(p.Pid)
	if err != nil {
		_ = p.Kill()
		_, _ = p.Wait()
		return nil, fmt.Errorf("start %s: identify process %d: %w", c.Path, p.Pid, err)
	}
	pr := &Process{id: ID{PID: p.Pid, Start: in.start, Boot: bootName()}, proc: p, done: make(chan struct{})}
	go func() {
		defer close(pr.done)
		st, err := p.Wait()
		if err != nil {
			pr.err = fmt.Errorf("wait for %s (process %d): %w", c.Path, p.Pid, err)
			return
		}
		pr.exit = exitOf(st)
	}()
	return pr, nil
}

// ID returns the child's identity.
func (p *Process) ID() ID { return p.id }

// Done is closed when the child has ended and its status is there.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end. It may be called any number of times. An error means
// that the status could not be had; a failing child is not an error.
func (p *Process) Wait() (Exit, error) {
	<-p.done
	return p.exit, p.err
}

// EnvValue returns the value of a variable in an environment list; the last
// entry counts, as it does for most programs' start code on duplicates.
func EnvValue(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], name+"="); ok {
			return v
		}
	}
	return ""
}
