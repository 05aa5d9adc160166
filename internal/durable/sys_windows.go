package durable

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

const openFlags = 0

// dontWait is about named pipes, which do not lie in directories there.
const dontWait = 0

// dirFlag: see dontWait.
const dirFlag = 0

// appendFlag: a file opened for appending cannot be cut there, and a torn tail
// must be. The lock keeps writers apart.
const appendFlag = 0

// dirsNeedSync: NTFS journals its names, and a directory handle cannot be
// flushed without rights that a plain user lacks.
const dirsNeedSync = false

func unsupportedSync(error) bool { return true }

// retrySharing tries again for up to a second while another process, such as a
// reader or a virus scanner, has the file open in a way that forbids the change.
func retrySharing(f func() error) error {
	wait := time.Millisecond
	for total := time.Duration(0); ; total += wait {
		err := f()
		if err == nil || total > time.Second ||
			!errors.Is(err, windows.ERROR_SHARING_VIOLATION) && !errors.Is(err, windows.ERROR_ACCESS_DENIED) {
			return err
		}
		time.Sleep(wait)
		wait = min(2*wait, 50*time.Millisecond)
	}
}

func keepOwner(*os.File, fs.FileInfo) {}
