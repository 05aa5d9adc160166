//go:build ignore

// Writes ../know/table.go; see package knowledge.
package main

import (
	"fmt"
	"os"

	"reprise/internal/guard/knowledge"
)

func main() {
	src, err := knowledge.Table()
	if err == nil {
		err = os.WriteFile("../know/table.go", src, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
