//go:build unix

package durable_test

import (
	"os"
	"syscall"
)

func full() error { return &os.PathError{Op: "write", Path: "a", Err: syscall.ENOSPC} }
