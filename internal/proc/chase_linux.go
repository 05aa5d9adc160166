package proc

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalGroup is PIDFD_SIGNAL_PROCESS_GROUP of <linux/pidfd.h>, Linux 6.9.
const signalGroup = 4

// maxChase bounds the rounds after inherited children.
const maxChase = 64

// chase kills what it finds at the moment it finds it: whoever has the marker,
// then the inherited children of a subreaper, again and again while they keep
// coming. It returns how many it found.
//
// It also notes in t.doubt whether a member may have slipped through: one that
// forks and ends stands in the list, is gone when it is looked at, and its child
// is not in the list yet.
func (t *tree) chase() (int, error) {
	found := 0
	t.doubt = false
	if t.marker != "" {
		before := lastPID()
		err := eachProcess(func(p info) {
			if p.pid == t.self || p.pid <= 1 {
				return
			}
			env, err := environOf(p, &t.env)
			switch {
			case !p.ended && err == nil && markerIn(env) == t.marker:
				t.killFound(p)
				found++
			case p.ended || errors.Is(err, ErrGone) || err == nil && len(env) == 0:
				// Dead, or between two programs: an exec has no environment for a moment.
				t.doubtful(p.pid)
			}
		}, t.doubtful)
		if err != nil {
			return found, err
		}
		if lastPID() < before {
			t.doubt = true // numbers begin at the bottom again, where the walk has been
		}
	}
	if !isSubreaper() {
		return found, nil
	}
	for range maxChase {
		kids, err := children()
		if err != nil {
			return found, err
		}
		own, ok := heldByPidfd()
		if !ok {
			return found, nil
		}
		before := found
		for _, pid := range kids {
			p, err := lookup(pid)
			if err != nil || p.ended || own[pid] || p.ppid != t.self {
				continue
			}
			t.killFound(p)
			found++
		}
		t.reap()
		if found == before {
			break
		}
	}
	return found, nil
}

// doubtful notes a process that could not be asked whose it is. One that the
// scan before has seen was asked then.
func (t *tree) doubtful(pid int) {
	if !t.table[pid] {
		t.doubt = true
	}
}

// lastPID is the number the kernel gave out last, the fifth field of
// proc_loadavg(5); 0 when it cannot be read.
func lastPID() int {
	var buf [128]byte
	n, err := readProc("/proc/loadavg", buf[:])
	if err != nil {
		return 0
	}
	f := strings.Fields(string(buf[:n]))
	if len(f) < 5 {
		return 0
	}
	pid, _ := strconv.Atoi(f[4])
	return pid
}

func (t *tree) killFound(p info) {
	id := ID{PID: p.pid, Start: p.start, Boot: t.boot}
	if _, ok := t.seen[id]; !ok {
		t.seen[id] = false
	}
	t.killMember(id)
}

// killGroup kills the group that the process leads, in one step of the kernel
// that no fork can slip through. It works through a pidfd only; on kernels
// before 6.9 members are killed one by one.
func killGroup(leader ID) {
	if leader.PID <= 1 || leader.PID == os.Getpid() {
		return
	}
	fd, err := unix.PidfdOpen(leader.PID, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	in, err := lookup(leader.PID)
	if err != nil || in.start != leader.Start || in.pgrp != in.pid || leader.Boot != bootName() {
		return
	}
	_ = unix.PidfdSendSignal(fd, syscall.SIGKILL, nil, signalGroup) // the scan finds what it did not reach
}
