package durable

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Hole gives the disk back what a file takes between two places of it, which is read as zeros
// from then on; whoever writes to the file, and the file's length, are not disturbed. Where
// the system or the file system cannot do that the error is [errors.ErrUnsupported].
func Hole(f *os.File, from, to int64) error {
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, to-from)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return errors.ErrUnsupported
	}
	if err != nil {
		return fmt.Errorf("give back a part of %s: %w", f.Name(), err)
	}
	return nil
}
