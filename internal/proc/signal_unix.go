//go:build unix

package proc

import (
	"errors"
	"syscall"
)

// signalChecked signals by number directly after checking whose it is. Between
// the two the process could end and its number be given out again, which the
// kernels of today do only after going round the whole number space.
func signalChecked(id ID, s syscall.Signal) error {
	in, err := lookup(id.PID)
	if err != nil {
		return err
	}
	if in.start != id.Start || in.ended {
		return ErrGone
	}
	if err := syscall.Kill(id.PID, s); err != nil {
		if errors.Is(err, syscall.ESRCH) {
			return ErrGone
		}
		return err
	}
	return nil
}
