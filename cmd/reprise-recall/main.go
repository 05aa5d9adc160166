// It lives for milliseconds: see reprise-hook.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0
//go:debug decoratemappings=0

// Command reprise-recall says what is remembered at an event of a session: what
// the hook program starts in place of reprise where the index alone is needed,
// because a client waits for it at each prompt.
package main

import (
	"os"

	"reprise/internal/recallmain"
)

func main() {
	os.Exit(recallmain.Main(os.Args[1:]))
}
