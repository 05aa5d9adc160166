package tree

import (
	"io/fs"
	"os"
	"syscall"
)

func seeInfo(fi fs.FileInfo) seen {
	s := seen{modified: fi.ModTime().UnixNano()}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		s.changed, s.device, s.inode = st.Ctimespec.Nano(), uint64(st.Dev), st.Ino
	}
	return s
}

func openFile(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

func freeBytes(dir string) (int64, bool) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true
}

// alone reports whether a file has no other name.
func alone(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 1
}
