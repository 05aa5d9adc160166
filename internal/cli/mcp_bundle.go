package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/durable"
	"reprise/internal/mcpserver/bundle"
)

// beside are the programs that reprise starts, which lie where it lies.
var beside = []string{"reprise-hook", "reprise-recall", "reprise-supervise"}

func newMCPBundleCmd(app *App) *cobra.Command {
	var program, system, version, out string
	cmd := &cobra.Command{
		Use: "bundle", Args: cobra.NoArgs, Short: "Pack the server for Claude Desktop (.mcpb)",
		Long: `Pack this program and those that lie beside it as an MCP bundle, which Claude
Desktop installs when it is opened. Without --output it is in reprise's cache
directory; its path is printed.

With --program and --os it packs programs that were built for another system.`,
		Example: `  reprise mcp bundle -o reprise.mcpb`,
		RunE: func(*cobra.Command, []string) error {
			if (program == "") != (system == "") {
				return usagef("--program and --os go together: which program, and which system it is for")
			}
			if program == "" {
				program, system = app.Program, runtime.GOOS
			}
			data, err := packBundle(app.abs(program), system, version)
			if err != nil {
				return err
			}
			return app.writePacked(out, "reprise.mcpb", data, "open it with Claude Desktop.")
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "", "`FILE` to write; - is standard output (default: reprise.mcpb in the cache directory)")
	f.StringVar(&program, "program", "", "pack this `FILE`, a build of reprise, and the other programs beside it")
	f.StringVar(&system, "os", "", "the `SYSTEM` that --program was built for: darwin, linux or windows")
	f.StringVar(&version, "as-version", Version(), "the `VERSION` that the bundle says it has")
	offer(cmd, "os", "darwin", "linux", "windows")
	return cmd
}

// packBundle packs the program at path and those of ours that lie beside it.
func packBundle(path, system, version string) ([]byte, error) {
	files := []string{path}
	for _, name := range beside {
		name = filepath.Join(filepath.Dir(path), name+filepath.Ext(path))
		switch _, err := os.Stat(name); {
		case err == nil:
			files = append(files, name)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	o := bundle.Options{Version: version, GOOS: system}
	for i, name := range files {
		f, err := durable.Open(name)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil, exitWith(ExitNotFound, err)
			}
			return nil, err
		}
		defer f.Close()
		base := filepath.Base(name)
		if i == 0 {
			base = "reprise"
			if strings.EqualFold(system, "windows") {
				base += ".exe"
			}
		}
		o.Programs = append(o.Programs, bundle.Program{Name: base, Data: f})
	}
	var b bytes.Buffer
	if err := bundle.Write(&b, o); err != nil {
		return nil, usagef("%w", err)
	}
	return b.Bytes(), nil
}

// writePacked writes what was packed for a client to the file out (- is standard output),
// without one under name into the cache directory, and prints the path. At a terminal it
// says what is next.
func (a *App) writePacked(out, name string, data []byte, next string) error {
	if out == "-" {
		_, err := a.Out.Write(data)
		return err
	}
	if out == "" {
		home, err := a.Home()
		if err != nil {
			return err
		}
		if err := durable.MkdirAll(home.Paths.Cache, 0o700); err != nil {
			return err
		}
		out = filepath.Join(home.Paths.Cache, name)
	}
	if err := a.writeOutput(out, data, 0o644); err != nil {
		return err
	}
	if a.OutIsTerminal {
		fmt.Fprintln(a.Err, "Next: "+next)
	}
	return nil
}

// writeOutput writes a file that was named on the command line, and prints its path. A
// directory that is not there is exit code 3.
func (a *App) writeOutput(file string, data []byte, perm fs.FileMode) error {
	path := a.abs(file)
	if err := durable.WriteFile(path, data, perm); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return exitWith(ExitNotFound, err)
		}
		return err
	}
	_, err := fmt.Fprintln(a.Out, path)
	return err
}
