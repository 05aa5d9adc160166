package recall

import (
	"io/fs"
	"syscall"
)

// changeOf gives the change time, which no program can set, and the inode.
func changeOf(fi fs.FileInfo) (ctime, ino int64) {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return st.Ctimespec.Nano(), int64(st.Ino)
	}
	return 0, 0
}
