//go:build unix

package tree

import (
	"syscall"
	"testing"
)

func pipe(t *testing.T, p string) {
	t.Helper()
	if err := syscall.Mkfifo(p, 0o600); err != nil {
		t.Fatal(err)
	}
}
