//go:build unix

package setup

import "golang.org/x/sys/unix"

// writableDir asks the system whether this user may make files in a directory. The
// answer counts on disks that are mounted for reading only, too.
func writableDir(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
