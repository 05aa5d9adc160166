package durable

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// swapAt has two files change places; the error is errNoExchange where the system or the
// file system cannot do that.
func swapAt(from *os.File, a string, to *os.File, b string) error {
	err := unix.Renameat2(int(from.Fd()), a, int(to.Fd()), b, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) {
		return errNoExchange
	}
	if err != nil {
		return fmt.Errorf("exchange %s and %s: %w", a, b, err)
	}
	return nil
}
