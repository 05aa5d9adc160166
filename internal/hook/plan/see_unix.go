//go:build unix

package plan

import (
	"errors"
	"syscall"
)

// The system is asked directly: package os would make a file known to the
// runtime's poller, and a name and an error of each answer, which costs a hook
// a tenth of a millisecond and more.

// See takes the stamp of a path as it is now.
func See(path string) Stamp {
	s := Stamp{Path: path, Kind: Unknown}
	var st syscall.Stat_t
	err := stat(syscall.Lstat, path, &st)
	if err == nil && st.Mode&syscall.S_IFMT == syscall.S_IFLNK {
		s.Link = true
		err = stat(syscall.Stat, path, &st)
	}
	switch {
	case err == syscall.ENOENT || err == syscall.ENOTDIR:
		s.Kind = Absent
		return s
	case err != nil:
		return s
	}
	s.Device, s.Inode = uint64(st.Dev), uint64(st.Ino)
	switch st.Mode & syscall.S_IFMT {
	case syscall.S_IFDIR:
		s.Kind = Dir
	case syscall.S_IFREG:
		s.Kind, s.Size = File, st.Size
		s.Modified, s.Changed = times(&st)
	default:
		s.Kind = Other
	}
	return s
}

func stat(how func(string, *syscall.Stat_t) error, path string, st *syscall.Stat_t) error {
	for {
		if err := how(path, st); err != syscall.EINTR {
			return err
		}
	}
}

var (
	errNotRegular = errors.New("not a regular file, or too long")
	errNotOwn     = errors.New("it belongs to somebody else, or others may write it")
)

// ReadFile reads a regular file of at most limit bytes that this user alone may
// write: it says which program is run and where events go.
func ReadFile(path string, limit int) ([]byte, error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd)
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFREG || st.Size > int64(limit) {
		return nil, errNotRegular
	}
	if int(st.Uid) != syscall.Geteuid() || st.Mode&0o022 != 0 {
		return nil, errNotOwn
	}
	buf := make([]byte, st.Size+1)
	n := 0
	for n < len(buf) {
		m, err := syscall.Read(fd, buf[n:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		if m == 0 {
			break
		}
		n += m
	}
	return buf[:n], nil
}
