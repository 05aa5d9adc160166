//go:build unix

package queue

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// readRegular reads a file of at most that many bytes. Every claim reads one, and a listing
// all of them: to open a file the usual way costs five calls of the kernel more, which set
// up what nothing here needs. A pipe in the file's place is not waited for.
func readRegular(path string, most int64) ([]byte, error) {
	fd, err := again(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if _, err := again(func() (int, error) { return 0, unix.Fstat(fd, &st) }); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, fmt.Errorf("%w: no regular file", errNoItem)
	case st.Size > most:
		return nil, fmt.Errorf("%w: %d bytes, more than %d", errNoItem, st.Size, most)
	}
	data := make([]byte, st.Size)
	for got := 0; got < len(data); {
		n, err := again(func() (int, error) { return unix.Read(fd, data[got:]) })
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		if n == 0 { // it was cut meanwhile, by a hand
			return nil, errors.Join(errNoItem, io.ErrUnexpectedEOF)
		}
		got += n
	}
	return data, nil
}

// something reports whether anything is at a path, a link that leads nowhere too.
func something(path string) (bool, error) {
	var st unix.Stat_t
	_, err := again(func() (int, error) { return 0, unix.Lstat(path, &st) })
	switch err {
	case nil:
		return true, nil
	case unix.ENOENT:
		return false, nil
	}
	return false, &os.PathError{Op: "lstat", Path: path, Err: err}
}

// again asks once more where a signal came between.
func again(ask func() (int, error)) (int, error) {
	for {
		n, err := ask()
		if err != unix.EINTR {
			return n, err
		}
	}
}
