// Command reprise gives coding agents a working memory and a harness.
package main

import (
	"context"
	"os"

	"reprise/internal/cli"
)

func main() {
	app, err := cli.OSApp()
	if err != nil {
		os.Stderr.WriteString("reprise: " + err.Error() + "\n")
		os.Exit(cli.ExitFailure)
	}
	os.Exit(cli.Main(context.Background(), os.Args[1:], app))
}
