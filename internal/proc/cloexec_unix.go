//go:build unix

package proc

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// closeOnExecIn marks the descriptors listed in dir close-on-exec.
func closeOnExecIn(dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return
	}
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}
