//go:build unix

package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A request to stop ends the wait for a pipe that nobody writes to, and what is written to
// one is read as a file would be.
func TestReadNamedPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := readNamed(ctx, pipe, 4)
		ended <- err
	}()
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the end of the context", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("still waiting at a pipe a minute after it was to stop")
	}

	full := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(full, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		if w, err := os.OpenFile(full, os.O_WRONLY, 0); err == nil {
			_, _ = w.WriteString("four")
			_ = w.Close()
		}
	}()
	if data, err := readNamed(t.Context(), full, 4); err != nil || string(data) != "four" {
		t.Errorf("%q, %v", data, err)
	}
}
