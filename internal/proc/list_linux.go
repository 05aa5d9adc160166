package proc

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// userHZ is the unit of a start time in /proc, USER_HZ: 100 on every architecture
// that Go runs on.
const userHZ = 100

type clock struct{ boot time.Time }

// newClock reads when the machine started (btime of /proc/stat, whole seconds).
func newClock() clock {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return clock{}
	}
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(line, "btime "); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64); err == nil {
				return clock{time.Unix(n, 0)}
			}
		}
	}
	return clock{}
}

// began is the zero time where it cannot be told.
func (c clock) began(start uint64) time.Time {
	if c.boot.IsZero() {
		return time.Time{}
	}
	return c.boot.Add(time.Duration(start) * (time.Second / userHZ))
}

// adopts reports whether orphans may be given to a process: a user's systemd.
func adopts(p info) bool {
	if p.ppid != 1 {
		return false
	}
	var buf [64]byte
	n, err := readProc("/proc/"+strconv.Itoa(p.pid)+"/comm", buf[:])
	return err == nil && strings.TrimSpace(string(buf[:n])) == "systemd"
}

// describe reads what /proc says of a process beyond its numbers.
func describe(p info, e *Entry) {
	dir := "/proc/" + strconv.Itoa(p.pid)
	if fi, err := os.Stat(dir); err == nil {
		st, ok := fi.Sys().(*syscall.Stat_t)
		e.Mine = ok && int(st.Uid) == os.Geteuid()
	}
	buf := make([]byte, 16<<10)
	if n, err := readProc(dir+"/cmdline", buf); err == nil && n > 0 {
		e.Args = words(buf[:n])
	}
	e.Dir, _ = os.Readlink(dir + "/cwd")
}
