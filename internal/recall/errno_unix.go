//go:build unix

package recall

import (
	"errors"
	"syscall"
)

func isReadOnly(err error) bool { return errors.Is(err, syscall.EROFS) }
func isNotDir(err error) bool   { return errors.Is(err, syscall.ENOTDIR) }
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
