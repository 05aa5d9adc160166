//go:build unix

package setup

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// writableDir asks the system whether this user may make files in a directory. The
// answer counts on disks that are mounted for reading only, too.
func writableDir(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }

// writableFile asks the same of a file. Whoever may write anything, as root, may write it.
func writableFile(file string, _ fs.FileMode) error { return unix.Access(file, unix.W_OK) }
