//go:build !linux

package confine

import (
	"fmt"

	"reprise/internal/proc"
)

// Supported returns 0 and the reason: only Linux has Landlock.
func Supported() (abi int, why string) { return 0, "only Linux has Landlock" }

// Start starts the command if the Spec forbids nothing, and refuses otherwise.
func Start(s Spec, c proc.Cmd) (*proc.Process, error) {
	if s.Empty() {
		return proc.Start(c)
	}
	return nil, fmt.Errorf("confine %s: %w: only Linux has Landlock", c.Path, ErrUnsupported)
}
