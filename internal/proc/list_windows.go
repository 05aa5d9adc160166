package proc

import (
	"time"

	"golang.org/x/sys/windows"
)

type clock struct{}

func newClock() clock { return clock{} }

// began: start times are those of a FILETIME here.
func (clock) began(start uint64) time.Time {
	ft := windows.Filetime{LowDateTime: uint32(start), HighDateTime: uint32(start >> 32)}
	return time.Unix(0, ft.Nanoseconds())
}

func adopts(info) bool { return false }

// describe names a process's program. There are no controlling terminals as
// elsewhere, so each is taken to have one.
func describe(p info, e *Entry) {
	e.Terminal = true
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(p.pid))
	if err != nil {
		return
	}
	defer windows.CloseHandle(h)
	e.Mine = true // of others none may be opened
	buf := make([]uint16, windows.MAX_LONG_PATH)
	n := uint32(len(buf))
	if err := windows.QueryFullProcessImageName(h, 0, &buf[0], &n); err == nil {
		e.Args = []string{windows.UTF16ToString(buf[:n])}
	}
}
