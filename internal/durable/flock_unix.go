//go:build linux || darwin

package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// flocked is a file whose lock this process has.
type flocked struct{ f *os.File }

// tryFlock takes the lock of a file that is there, without waiting: nil when
// another has it. It is flock(2) itself, which the lock library comes to on these
// systems, without that library's own opening of the file, which sets up the
// runtime's poller.
func tryFlock(path string, shared bool) (*flocked, error) {
	how := unix.LOCK_EX | unix.LOCK_NB
	if shared {
		how = unix.LOCK_SH | unix.LOCK_NB
	}
	flag := os.O_RDONLY
	for {
		f, err := openPlain(path, flag|openFlags, 0)
		if err != nil {
			return nil, err
		}
		for {
			if err = unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
				break
			}
		}
		if err == nil {
			return &flocked{f}, nil
		}
		f.Close()
		switch {
		case errors.Is(err, unix.EWOULDBLOCK):
			return nil, nil
		case flag == os.O_RDONLY && !shared && (errors.Is(err, unix.EIO) || errors.Is(err, unix.EBADF)):
			flag = os.O_RDWR // NFS locks ranges, and for that the file has to be writable
		default:
			return nil, &os.PathError{Op: "flock", Path: path, Err: err}
		}
	}
}

func (l *flocked) stat() (os.FileInfo, error) { return l.f.Stat() }

// unlock gives the lock up. To close the file is not enough: a program that is just
// being started has it open for a moment, too.
func (l *flocked) unlock() error {
	return errors.Join(unix.Flock(int(l.f.Fd()), unix.LOCK_UN), l.f.Close())
}
