//go:build unix

package queue

import (
	"errors"
	"slices"
	"syscall"
)

// moments are errors of a file system that may be over the next time: a full disk, one
// that fails, or that of another machine that is away, and too little of what is shared.
var moments = []error{
	syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM, syscall.ENOLCK,
	syscall.ESTALE, syscall.ETIMEDOUT, syscall.EHOSTDOWN, syscall.EHOSTUNREACH, syscall.EBUSY,
}

func ofTheMoment(err error) bool {
	return slices.ContainsFunc(moments, func(e error) bool { return errors.Is(err, e) })
}
