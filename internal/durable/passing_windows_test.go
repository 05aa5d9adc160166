package durable_test

import (
	"os"
	"syscall"
)

// full is ERROR_DISK_FULL.
func full() error { return &os.PathError{Op: "write", Path: "a", Err: syscall.Errno(112)} }
