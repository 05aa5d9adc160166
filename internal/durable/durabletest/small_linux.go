package durabletest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// SmallDisk mounts a file system of so many KiB at dir, and gives what fills it but for some
// KiB (0 or more) and, below 0, empties it. Where mounting is not allowed the test is left
// out.
func SmallDisk(t *testing.T, dir string, size int) (fill func(left int)) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dk,mode=700", size)); err != nil {
		t.Skip("no file system can be mounted here: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return func(left int) {
		ballast := filepath.Join(dir, "ballast")
		// What another test is just starting may have it open until it is started: removed, it
		// would take its room until then.
		if err := os.Truncate(ballast, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if err := os.RemoveAll(ballast); err != nil {
			t.Fatal(err)
		}
		if left < 0 {
			return
		}
		var st syscall.Statfs_t
		if err := syscall.Statfs(dir, &st); err != nil {
			t.Fatal(err)
		}
		n := int64(st.Bavail)*st.Bsize - int64(left)<<10
		if err := os.WriteFile(ballast, bytes.Repeat([]byte{'x'}, int(max(0, n))), 0o600); err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
}
