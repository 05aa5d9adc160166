//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "chaos: it looks for processes by /proc, so it runs on Linux only")
	os.Exit(2)
}
