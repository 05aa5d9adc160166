//go:build unix && !linux

package e2e

import "errors"

const readOnly = 0

func mountTmpfs(string, string, uintptr) error {
	return errors.New("only Linux has tmpfs")
}

func unmount(string) error { return nil }
