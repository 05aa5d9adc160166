//go:build unix

package main

import (
	"runtime"
	"syscall"
)

func maxRSS(u *syscall.Rusage) int64 {
	if runtime.GOOS == "darwin" {
		return int64(u.Maxrss) / 1024
	}
	return int64(u.Maxrss)
}
