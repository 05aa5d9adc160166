package proc

import (
	"bytes"
	"encoding/binary"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

type clock struct{}

func newClock() clock { return clock{} }

// began: start times are microseconds since 1970 here.
func (clock) began(start uint64) time.Time { return time.UnixMicro(int64(start)) }

func adopts(info) bool { return false }

// describe reads who owns a process and what it was started with. The system has
// no call for another's working directory without its private libraries.
func describe(p info, e *Entry) {
	if k, err := unix.SysctlKinfoProc("kern.proc.pid", p.pid); err == nil {
		e.Mine = int(k.Eproc.Ucred.Uid) == os.Geteuid()
	}
	raw, err := unix.SysctlRaw("kern.procargs2", p.pid)
	if err != nil || len(raw) < 4 {
		return
	}
	argc, rest := int(binary.NativeEndian.Uint32(raw)), raw[4:]
	end := bytes.IndexByte(rest, 0)
	if end < 0 {
		return
	}
	all := words(bytes.TrimLeft(rest[end:], "\x00"))
	e.Args = all[:min(argc, len(all))]
}
