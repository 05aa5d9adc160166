package e2e

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// pipeEmpty reports whether everything written to the pipe has been read.
func pipeEmpty(t *testing.T, w *os.File) bool {
	t.Helper()
	n, err := unix.IoctlGetInt(int(w.Fd()), unix.TIOCINQ)
	if err != nil {
		t.Fatal(err)
	}
	return n == 0
}
