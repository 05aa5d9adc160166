//go:build unix

package durable

import (
	"errors"
	"slices"
	"syscall"
)

// moments are errors of a file system that may be over the next time: a full disk, one
// that fails, or that of another machine that is away, and too little of what is shared.
var moments = []syscall.Errno{
	syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM, syscall.ENOLCK,
	syscall.ESTALE, syscall.ETIMEDOUT, syscall.EHOSTDOWN, syscall.EHOSTUNREACH, syscall.EBUSY,
}

func passing(err error) bool {
	return slices.ContainsFunc(moments, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

// momentsInWords are the moments in the words of the C library, in which programs of others say them.
func momentsInWords() (words []string) {
	for _, e := range moments {
		if e != syscall.EAGAIN && e != syscall.EBUSY { // words that mean much else
			words = append(words, e.Error())
		}
	}
	return words
}
