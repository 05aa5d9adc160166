//go:build !unix

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "spent: what processes cost is not known on this system")
	os.Exit(1)
}
