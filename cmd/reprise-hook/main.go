// A hook lives for milliseconds and does one thing at a time: it need not know what
// its control group leaves it, which takes a dozen calls of the kernel, nor have its
// memory named.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0
//go:debug decoratemappings=0

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
