package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// initialPIDNamespace is the inode of the first pid namespace
// (PROC_PID_INIT_INO in the kernel's proc_ns.h).
const initialPIDNamespace = "pid:[4026531836]"

// bootName is the kernel's boot id and, outside the first pid namespace, the
// namespace's inode: two containers on one machine share the boot id, but
// their numbers mean different processes.
func bootName() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	name := strings.TrimSpace(string(b))
	if ns, err := os.Readlink("/proc/self/ns/pid"); err == nil && ns != initialPIDNamespace {
		name += "/" + strings.Trim(strings.TrimPrefix(ns, "pid:"), "[]")
	}
	return name
}

func lookup(pid int) (info, error) {
	var buf [1024]byte
	return readStat(pid, buf[:])
}

// readStat reads /proc/<pid>/stat into buf, which must hold the whole line
// (about 350 bytes).
func readStat(pid int, buf []byte) (info, error) {
	n, err := readProc("/proc/"+strconv.Itoa(pid)+"/stat", buf)
	if err != nil {
		return info{}, err
	}
	in, err := parseStat(buf[:n])
	if err != nil {
		return info{}, fmt.Errorf("read /proc/%d/stat: %w", pid, err)
	}
	return in, nil
}

// readProc reads up to len(buf) bytes of a file under /proc. A process that
// ends between open and read answers ESRCH.
func readProc(path string, buf []byte) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, goneErr(path, err)
	}
	defer unix.Close(fd)
	total := 0
	for total < len(buf) {
		n, err := unix.Read(fd, buf[total:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return total, goneErr(path, err)
		}
		if n == 0 {
			break
		}
		total += n
	}
	return total, nil
}

func goneErr(path string, err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	return fmt.Errorf("read %s: %w", path, err)
}

// parseStat reads the fields of proc_pid_stat(5): pid (1), comm (2), state (3),
// ppid (4), pgrp (5), session (6), tty_nr (7), starttime (22). The name is in parentheses
// and may hold anything, parentheses and newlines included, so counting starts
// after the last one.
func parseStat(b []byte) (info, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return info{}, errors.New("not a stat line")
	}
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 20 {
		return info{}, fmt.Errorf("%d fields after the name, want 20 or more", len(f))
	}
	var in info
	var err error
	num := func(s string) int {
		n, e := strconv.Atoi(s)
		if e != nil && err == nil {
			err = e
		}
		return n
	}
	in.pid = num(strings.TrimSpace(string(b[:open])))
	in.ppid, in.pgrp, in.session = num(f[1]), num(f[2]), num(f[3])
	in.terminal = f[4] != "0"
	in.ended = f[0] == "Z" || f[0] == "X" || f[0] == "x"
	if err != nil {
		return info{}, err
	}
	in.start, err = strconv.ParseUint(f[19], 10, 64)
	return in, err
}

// table reads the process table. Processes that end meanwhile are left out;
// kernel threads (children of 2) too.
func table() ([]info, error) {
	var out []info
	err := eachProcess(func(in info) { out = append(out, in) }, func(int) {})
	return out, err
}

// eachProcess calls fn for each process in the order of numbers. The kernel
// walks on from the last number it gave, so one that is started meanwhile with
// a higher number is seen too. gone is called for a number that was listed and
// had no process any more when it was looked at.
func eachProcess(fn func(info), gone func(pid int)) error {
	d, err := os.Open("/proc")
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	defer d.Close()
	var buf [1024]byte
	for {
		names, err := d.Readdirnames(256)
		for _, name := range names {
			pid, aerr := strconv.Atoi(name)
			if aerr != nil {
				continue
			}
			in, serr := readStat(pid, buf[:])
			if serr != nil {
				gone(pid)
				continue
			}
			if in.pid == 2 || in.ppid == 2 {
				continue
			}
			fn(in)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list processes: %w", err)
		}
	}
}

// environBuf is the first size tried for a process's environment.
const environBuf = 64 << 10

// environTries is how often a process is asked that is in the middle of an exec.
const environTries = 5

// environOf reads the environment a process was started with, as
// "NAME=value" entries divided by NUL. It grows *buf as needed. One that cannot be
// asked now, as it is becoming another program, answers ErrGone like one that ended.
func environOf(in info, buf *[]byte) ([]byte, error) {
	path := "/proc/" + strconv.Itoa(in.pid) + "/environ"
	if len(*buf) == 0 {
		*buf = make([]byte, environBuf)
	}
	for tries := 0; ; {
		n, err := readProc(path, *buf)
		if err != nil {
			return nil, err
		}
		if n == 0 && betweenPrograms(in.pid) {
			if tries++; tries < environTries {
				continue
			}
			return nil, ErrGone
		}
		if n < len(*buf) || len(*buf) >= 64<<20 {
			return (*buf)[:n], nil
		}
		*buf = make([]byte, 4*len(*buf))
	}
}

// signalID signals through a pidfd: the descriptor pins the process that had
// the number when it was opened, and the start time read afterwards proves
// that this was the right one.
func signalID(id ID, sig os.Signal) error {
	s, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("signal %v: not a signal of this system", sig)
	}
	fd, err := unix.PidfdOpen(id.PID, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return ErrGone
	case err != nil:
		// No pidfd here (kernel before 5.3, or refused by a filter).
		return signalChecked(id, s)
	}
	defer unix.Close(fd)
	in, err := lookup(id.PID)
	if err != nil {
		return err
	}
	if in.start != id.Start || in.ended {
		return ErrGone
	}
	if err := unix.PidfdSendSignal(fd, s, nil, 0); err != nil {
		if errors.Is(err, unix.ESRCH) {
			return ErrGone
		}
		return err
	}
	return nil
}

// betweenPrograms reports whether a process whose environment was read as empty may
// have one: proc_pid_stat(5) gives its place in memory, fields 50 and 51. In the middle
// of an exec that place is not known yet and the end is 0; where it is not empty, the
// reading met an exec that is over now. One that was started with no environment has a
// place of no length.
func betweenPrograms(pid int) bool {
	var buf [1024]byte
	n, err := readProc("/proc/"+strconv.Itoa(pid)+"/stat", buf[:])
	if err != nil {
		return true
	}
	f := strings.Fields(string(buf[bytes.LastIndexByte(buf[:n], ')')+1 : n]))
	return len(f) > 48 && (f[48] == "0" || f[47] != f[48])
}
