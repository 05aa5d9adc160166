package durabletest

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// InMemory runs tests with their temporary directories in memory, for a test program's
// TestMain: most of what tests write is small and gone in a moment, and waiting for a disk
// is half of what they take. Where TMPDIR was set, where there is no such place, where it
// has less than 2 GiB of room or forbids to start programs from it, they have what they
// always had. It returns what run returns.
func InMemory(run func() int) int {
	if os.Getenv("TMPDIR") != "" {
		return run()
	}
	dir, err := os.MkdirTemp("/dev/shm", "reprise-test-")
	if err != nil {
		return run()
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, "durabletest:", err)
		}
	}()
	if !suits(dir) {
		return run()
	}
	if err := os.Setenv("TMPDIR", dir); err != nil {
		fmt.Fprintln(os.Stderr, "durabletest:", err)
		return 1
	}
	return run()
}

func suits(dir string) bool {
	const room = 2 << 30
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	return err == nil && st.Bavail*uint64(st.Bsize) >= room && st.Flags&(unix.ST_NOEXEC|unix.ST_RDONLY) == 0
}
