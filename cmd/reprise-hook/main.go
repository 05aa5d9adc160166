// Command reprise-hook is the small program beside reprise: what is started
// for every run and every hook, linked with as little as can be, because each
// linked package is paid for at every start.
package main

import (
	"os"
	"time"

	"reprise/internal/hookmain"
)

func main() {
	os.Exit(hookmain.Main(os.Args[1:], time.Now))
}
