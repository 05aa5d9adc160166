package tree

import (
	"io/fs"
	"os"
	"syscall"
)

func seeInfo(fi fs.FileInfo) seen {
	s := seen{modified: fi.ModTime().UnixNano()}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		s.changed, s.device, s.inode = st.Ctim.Nano(), uint64(st.Dev), st.Ino
	}
	return s
}

// openFile opens a file for reading that was a regular one a moment ago: a link
// or a pipe in its place is an error and not something to follow or wait for.
func openFile(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// freeBytes is what a user may still write on the file system of a directory.
func freeBytes(dir string) (int64, bool) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * st.Bsize, true
}

// alone reports whether a file has no other name.
func alone(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 1
}
