// Command reprise, here, is the real program with a clock that is wrong by as much as
// REPRISE_CHAOS_CLOCK says. Package chaos builds it in place of cmd/reprise.
package main

import (
	"context"
	"os"
	"time"

	"reprise/internal/cli"
)

func main() {
	app, err := cli.OSApp()
	if err != nil {
		os.Stderr.WriteString("reprise: " + err.Error() + "\n")
		os.Exit(cli.ExitFailure)
	}
	if off, err := time.ParseDuration(os.Getenv("REPRISE_CHAOS_CLOCK")); err == nil {
		app.Env.Now = func() time.Time { return time.Now().Add(off) }
	}
	os.Exit(cli.Main(context.Background(), os.Args[1:], app))
}
