//go:build !linux

package confine

import "fmt"

// Supported returns 0 and the reason: only Linux has Landlock.
func Supported() (abi int, why string) { return 0, "only Linux has Landlock" }

// Exec refuses: nothing is run unconfined.
func Exec(Spec, []string, []string) error {
	return fmt.Errorf("confine: %w: only Linux has Landlock", ErrUnsupported)
}
