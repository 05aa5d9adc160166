package config

import (
	"errors"
	"syscall"
)

// notDir tells whether err says that a parent in the path is missing or a file.
func notDir(err error) bool { return errors.Is(err, syscall.ERROR_PATH_NOT_FOUND) }
