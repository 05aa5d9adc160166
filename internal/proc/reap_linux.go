package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// BecomeSubreaper makes this process the parent of every descendant whose own
// parent dies, in place of init. It should look after one tree only: StopTree
// ends all it inherited. Call ReapOrphans now and then, or those that end stay
// zombies.
func BecomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	return nil
}

func isSubreaper() bool {
	var on int32
	if err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, addrOf(&on), 0, 0, 0); err != nil {
		return false
	}
	return on != 0
}

// ReapOrphans collects inherited children that have ended and returns how
// many. It never takes the exit status of a child that this process started
// itself, be it through Start or os/exec: for those the Go runtime holds a
// pidfd from the fork on, and what it holds is listed in /proc/self/fdinfo. On
// kernels without pidfds (before 5.4) it does nothing.
func ReapOrphans() (int, error) {
	if !isSubreaper() && os.Getpid() != 1 {
		return 0, nil
	}
	kids, err := children()
	if err != nil || len(kids) == 0 {
		return 0, err
	}
	// Order matters: a child forked after this list was read is not in kids.
	own, ok := heldByPidfd()
	if !ok {
		return 0, nil
	}
	n := 0
	for _, pid := range kids {
		if own[pid] {
			continue
		}
		got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		if err == nil && got == pid {
			n++
		}
	}
	return n, nil
}

// NothingLeft reports that this process is a subreaper and has no child, living
// or dead: then it has no descendant either, however they tried to get away,
// and a look through the process table can be spared. False means that one
// must look.
func NothingLeft() bool {
	if !isSubreaper() {
		return false
	}
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == unix.ECHILD
}

// adoptedBy returns the children of self that it inherited as a subreaper.
func adoptedBy(self int, all []info) map[int]bool {
	if !isSubreaper() {
		return nil
	}
	own, ok := heldByPidfd()
	if !ok {
		return nil
	}
	out := map[int]bool{}
	for _, p := range all {
		if p.ppid == self && !own[p.pid] {
			out[p.pid] = true
		}
	}
	return out
}

// children lists this process's children, started and inherited.
func children() ([]int, error) {
	const dir = "/proc/self/task"
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list children: %w", err)
	}
	var out []int
	for _, t := range tasks {
		b, err := os.ReadFile(dir + "/" + t.Name() + "/children")
		if err != nil {
			continue // the thread ended: its children moved to another one
		}
		for _, s := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(s); err == nil {
				out = append(out, pid)
			}
		}
	}
	return out, nil
}

// heldByPidfd returns the processes for which this process holds a pidfd. ok
// is false if the kernel has no pidfds or does not show them.
func heldByPidfd() (pids map[int]bool, ok bool) {
	// A pidfd of our own proves that they are shown.
	self := os.Getpid()
	fd, err := unix.PidfdOpen(self, 0)
	if err != nil {
		return nil, false
	}
	defer unix.Close(fd)
	d, err := os.Open("/proc/self/fdinfo")
	if err != nil {
		return nil, false
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, false
	}
	pids = map[int]bool{}
	var buf [512]byte
	for _, name := range names {
		n, err := readProc("/proc/self/fdinfo/"+name, buf[:])
		if err != nil {
			continue // closed meanwhile
		}
		if pid, found := pidOfFdinfo(buf[:n]); found {
			pids[pid] = true
		}
	}
	return pids, pids[self]
}

// pidOfFdinfo finds the "Pid:" line that only pidfds have (see
// proc_pid_fdinfo(5)); it is -1 once the process was waited for.
func pidOfFdinfo(b []byte) (int, bool) {
	for line := range bytes.Lines(b) {
		if v, ok := bytes.CutPrefix(line, []byte("Pid:")); ok {
			pid, err := strconv.Atoi(string(bytes.TrimSpace(v)))
			return pid, err == nil && pid > 0
		}
	}
	return 0, false
}
