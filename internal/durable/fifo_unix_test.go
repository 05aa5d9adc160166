//go:build unix

package durable_test

import (
	"syscall"
	"testing"
)

func makeFIFO(t *testing.T, path string) {
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}
