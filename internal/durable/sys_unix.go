//go:build unix

package durable

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFlags refuse a symbolic link that was put in place after the check, and
// do not wait for the other end of a pipe that was.
const openFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK

// dontWait opens a pipe without waiting for its other end.
const dontWait = unix.O_NONBLOCK

// dirFlag opens nothing but a directory. What else is there is refused before it is opened,
// so that nobody waits for the other end of a pipe.
const dirFlag = unix.O_DIRECTORY

// appendFlag: a writer that does not know our lock cannot be overwritten.
const appendFlag = os.O_APPEND

// dirsNeedSync: a new name lasts only once its directory was synced.
const dirsNeedSync = true

// unsupportedSync tells a file system that cannot sync a directory (some
// network and FUSE ones) from one that failed to.
func unsupportedSync(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS)
}

func retrySharing(f func() error) error { return f() }

func keepOwner(f *os.File, old fs.FileInfo) {
	fi, err := f.Stat()
	if err != nil {
		return
	}
	uid, gid, ok := owner(old)
	if uidNow, gidNow, okNow := owner(fi); ok && okNow && (uid != uidNow || gid != gidNow) {
		_ = f.Chown(int(uid), int(gid)) // only root may; anyone else's file becomes theirs
	}
}

func owner(fi fs.FileInfo) (uid, gid uint32, ok bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return st.Uid, st.Gid, true
}
