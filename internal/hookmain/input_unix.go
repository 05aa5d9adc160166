//go:build unix

package hookmain

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"reprise/internal/agent/dialect"
)

// noCore keeps a crash from leaving a file behind.
func noCore() {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // then it leaves one
}

// readInput reads the standard input for at most that long. Of a large payload
// that takes longer, what came is what there is; mark is that of what was cut.
// It waits in the system's poll, for a timer of the runtime costs every hook a
// thread.
func readInput(f *os.File, patience time.Duration) (data []byte, mark string, err error) {
	fd := int(f.Fd())
	began := time.Now()
	var in dialect.Intake
	chunk := make([]byte, 16<<10)
	for {
		left := patience - time.Since(began)
		if in.Big() {
			left = bigShare(patience) - time.Since(began)
		}
		if left <= 0 && in.Big() {
			data, mark = in.Payload(false)
			return data, mark, nil
		}
		if left <= 0 {
			return nil, "", errSlow
		}
		fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds[:], int(left.Milliseconds())+1)
		if err == unix.EINTR || err == nil && n == 0 {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		if in.Big() && len(chunk) < 1<<20 {
			chunk = make([]byte, 1<<20)
		}
		m, err := unix.Read(fd, chunk)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
			continue
		case err != nil:
			return nil, "", err
		case m == 0:
			data, mark = in.Payload(true)
			return data, mark, nil
		}
		in.Add(chunk[:m])
	}
}
