package durable

import (
	"errors"
	"slices"
	"syscall"
)

// moments are errors of a file system that may be over the next time: a full disk (39,
// 112), one that fails (23, 1117), a file that another program has open (32, 33), a share
// that is away (53, 59, 64), and too little of what is shared (4, 8).
var moments = []syscall.Errno{4, 8, 23, 32, 33, 39, 53, 59, 64, 112, 1117}

func passing(err error) bool {
	var no syscall.Errno
	return errors.As(err, &no) && slices.Contains(moments, no)
}

// momentsInWords are in the words that git for Windows has for them.
func momentsInWords() []string {
	return []string{"no space left on device", "input/output error", "too many open files", "not enough space"}
}
