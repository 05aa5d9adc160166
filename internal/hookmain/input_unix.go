//go:build unix

package hookmain

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// noCore keeps a crash from leaving a file behind.
func noCore() {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // then it leaves one
}

// readInput reads all of the standard input: at most limit bytes, for at most
// that long. It waits in the system's poll, for a timer of the runtime costs
// every hook a thread.
func readInput(f *os.File, limit int, patience time.Duration) ([]byte, error) {
	fd := int(f.Fd())
	until := time.Now().Add(patience)
	buf := make([]byte, 0, 16<<10)
	for {
		left := time.Until(until)
		if left <= 0 {
			return nil, errSlow
		}
		fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds[:], int(left.Milliseconds())+1)
		if err == unix.EINTR || err == nil && n == 0 {
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		m, err := unix.Read(fd, buf[len(buf):min(cap(buf), limit+1)])
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
			continue
		case err != nil:
			return nil, err
		case m == 0:
			return buf, nil
		}
		if buf = buf[:len(buf)+m]; len(buf) > limit {
			return nil, errLong
		}
	}
}
