//go:build !linux && !darwin && !windows

package proc

import (
	"errors"
	"os"
)

// These systems are not supported; the package compiles there and says so.

func bootName() string                        { return "" }
func lookup(int) (info, error)                { return info{}, errors.ErrUnsupported }
func table() ([]info, error)                  { return nil, errors.ErrUnsupported }
func environOf(info, *[]byte) ([]byte, error) { return nil, errors.ErrUnsupported }
func signalID(ID, os.Signal) error            { return errors.ErrUnsupported }
