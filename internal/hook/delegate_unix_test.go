//go:build unix

package hook

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A pipe in a count's place keeps nobody waiting, and resets nothing.
func TestCountThatIsAPipe(t *testing.T) {
	heldByTheLog(t, func(file string) error {
		if err := os.Remove(file); err != nil {
			return err
		}
		return unix.Mkfifo(file, 0o600)
	})
}
