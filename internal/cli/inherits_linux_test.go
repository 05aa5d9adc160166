package cli_test

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// inherits reports whether this test program has become a subreaper: then a command that
// one test runs in it ends what others have left running. It is said once, at the end.
func inherits() error {
	var on int32
	if err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&on)), 0, 0, 0); err != nil {
		return err
	}
	if on != 0 {
		return errors.New("a command that was run in the test program made it a subreaper: tests give App.Guest")
	}
	return nil
}
