// Command reprise-hook, here, is the real program with a clock that is wrong by as much as
// REPRISE_CHAOS_CLOCK says. Package chaos builds it in place of cmd/reprise-hook.
package main

import (
	"os"
	"time"

	"reprise/internal/hookmain"
)

func main() {
	now := time.Now
	if off, err := time.ParseDuration(os.Getenv("REPRISE_CHAOS_CLOCK")); err == nil {
		now = func() time.Time { return time.Now().Add(off) }
	}
	os.Exit(hookmain.Main(os.Args[1:], now))
}
