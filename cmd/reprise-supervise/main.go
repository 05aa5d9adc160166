// Command reprise-supervise is the small program that owns a run, and that
// answers for the memory directory in it: linked with as little as can be,
// because one is started for each run.
package main

import (
	"os"

	"reprise/internal/runmain"
)

func main() {
	os.Exit(runmain.Main(os.Args[1:]))
}
