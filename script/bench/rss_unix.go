//go:build unix

package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// childRSS is the most memory that an ended process had.
func childRSS(p *os.ProcessState) string {
	u, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return "unknown"
	}
	bytes := int64(u.Maxrss)
	if runtime.GOOS == "linux" {
		bytes <<= 10 // there it is kilobytes
	}
	return fmt.Sprintf("%.0f MB", float64(bytes)/1e6)
}

// spent is what an ended process cost, with those of its children that it waited for.
func spent(p *os.ProcessState) (c cost, ok bool) {
	u, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return c, false
	}
	return cost{p.UserTime() + p.SystemTime(), int64(u.Minflt)}, true
}
