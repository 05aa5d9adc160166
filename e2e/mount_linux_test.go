package e2e

import "syscall"

const readOnly = syscall.MS_RDONLY

func mountTmpfs(dir, options string, flags uintptr) error {
	return syscall.Mount("reprise-test", dir, "tmpfs", flags, options)
}

func unmount(dir string) error { return syscall.Unmount(dir, syscall.MNT_DETACH) }
