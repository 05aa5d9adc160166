//go:build !windows

package config

import (
	"errors"
	"syscall"
)

// notDir tells whether err says that a parent in the path is a file.
func notDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }
