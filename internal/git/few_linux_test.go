package git

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// What the system says where git cannot be started is an error that callers know, so that
// what may be otherwise in a moment is tried again.
func TestNoFilesLeft(t *testing.T) {
	g := New(t.TempDir(), Options{Vars: map[string]string{"PATH": os.Getenv("PATH")}})
	if !g.Installed() {
		t.Skip("git is not here")
	}
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	few := old
	few.Cur = 3
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	_, err := g.Run(t.Context(), "status")
	if rerr := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); rerr != nil {
		t.Fatal(rerr)
	}
	if !errors.Is(err, syscall.EMFILE) {
		t.Errorf("%v", err)
	}
	var e *Error
	if !errors.As(err, &e) || e.Kind != nil {
		t.Errorf("%+v", e)
	}
}
