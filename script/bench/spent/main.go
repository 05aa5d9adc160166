//go:build unix

// Command spent runs a program and prints what it cost with everything that it left behind:
// spent PROGRAM [ARG ...] <input. It waits for those processes, too, which on Linux become
// its own; it prints nanoseconds of processor time and pages that were touched for the first
// time, and ends as the program did. What the program writes is not kept. It writes no file
// and takes no lock.
package main

import (
	"fmt"
	"os"
	"syscall"
)

func main() {
	if err := adopt(); err != nil {
		fmt.Fprintln(os.Stderr, "spent:", err)
		os.Exit(1)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		fmt.Fprintln(os.Stderr, "spent:", err)
		os.Exit(1)
	}
	p, err := os.StartProcess(os.Args[1], os.Args[1:], &os.ProcAttr{Files: []*os.File{os.Stdin, null, os.Stderr}})
	if err != nil {
		fmt.Fprintln(os.Stderr, "spent:", err)
		os.Exit(1)
	}
	st, err := p.Wait()
	if err != nil {
		fmt.Fprintln(os.Stderr, "spent:", err)
		os.Exit(1)
	}
	for err == nil || err == syscall.EINTR { // those that it left
		_, err = syscall.Wait4(-1, nil, 0, nil)
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		fmt.Fprintln(os.Stderr, "spent:", err)
		os.Exit(1)
	}
	fmt.Println(u.Utime.Nano()+u.Stime.Nano(), u.Minflt)
	os.Exit(st.ExitCode())
}
