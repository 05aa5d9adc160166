//go:build !linux

package durable

import (
	"errors"
	"os"
)

// Hole is what [errors.ErrUnsupported] says: there is no such step here.
func Hole(*os.File, int64, int64) error { return errors.ErrUnsupported }
