// Command rss runs a program and prints the most memory that it had, in
// kilobytes: rss PROGRAM [ARG ...] <input. The kernel counts what a process had
// before it became another program, so a large one cannot measure a small one.
// It writes no file and takes no lock.
package main

import (
	"os"
	"strconv"
	"syscall"
)

func main() {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		os.Exit(1)
	}
	p, err := os.StartProcess(os.Args[1], os.Args[1:], &os.ProcAttr{Files: []*os.File{os.Stdin, null, null}})
	if err != nil {
		os.Exit(1)
	}
	st, err := p.Wait()
	if err != nil {
		os.Exit(1)
	}
	usage, ok := st.SysUsage().(*syscall.Rusage)
	if !ok {
		os.Exit(1)
	}
	os.Stdout.WriteString(strconv.FormatInt(maxRSS(usage), 10) + "\n")
}
