package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// release is set by the release build with -ldflags "-X reprise/internal/cli.release=v1.2.3".
var release string

// Version says which build this is: the release's number, else the commit the
// Go tool recorded, else "dev".
func Version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	var revision, modified string
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				modified = "+changes"
			}
		}
	}
	if revision == "" {
		return "dev"
	}
	return strings.Join([]string{"dev", revision[:min(12, len(revision))] + modified}, "-")
}

func newVersionCmd(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Args: cobra.NoArgs, Short: "Say which build this is",
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return printJSON(app.Out, map[string]any{"v": 1, "version": Version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
			}
			_, err := fmt.Fprintf(app.Out, "reprise %s\n", Version())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}
