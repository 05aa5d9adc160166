//go:build unix

package durable

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// openPlain is os.OpenFile without the runtime's poller, which can do nothing for
// files on disk: to set it up costs a program that is started for each tool call
// four calls of the kernel and some pages.
func openPlain(name string, flag int, perm fs.FileMode) (*os.File, error) {
	for {
		fd, err := unix.Open(name, flag|unix.O_CLOEXEC, uint32(perm.Perm()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil && flag&unix.O_NONBLOCK != 0 {
			// It was for a pipe that might be there. What the file is from here on, the
			// caller looks at.
			if err = unix.SetNonblock(fd, false); err != nil {
				_ = unix.Close(fd)
			}
		}
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: name, Err: err}
		}
		return os.NewFile(uintptr(fd), name), nil
	}
}
