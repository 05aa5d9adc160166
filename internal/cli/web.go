package cli

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/proc"
	"reprise/internal/web"
)

type webFlags struct {
	listen         string
	open, readOnly bool
}

func newWebCmd(app *App) *cobra.Command {
	var f webFlags
	cmd := &cobra.Command{
		Use: "web", Args: cobra.NoArgs, Short: "Show and steer what there is in a browser, on this machine alone",
		Long: `Serve the dashboard on a loopback address and print a link that lets one browser in.
The link is good once; after each use another is printed, for a further browser. It
ends at Ctrl-C, and what it has let in is let in no more.

It shows the project around the working directory, and changes what the commands
change. With --read-only it changes nothing. Addresses that other machines could reach
are refused; docs/dashboard.md says how to look from one.`,
		Example: `  reprise web
  reprise web --open
  reprise web --listen 127.0.0.1:7878 --read-only`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runWeb(cmd.Context(), app, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", "127.0.0.1:0", "`ADDRESS` on this machine's loopback; port 0 takes a free one")
	fl.BoolVar(&f.open, "open", false, "open the link in the browser")
	fl.BoolVar(&f.readOnly, "read-only", false, "refuse every change")
	return cmd
}

func runWeb(ctx context.Context, app *App, f webFlags) error {
	if err := web.CheckListen(f.listen); err != nil {
		return exitWith(ExitUsage, err)
	}
	if !app.person() {
		return exitWith(ExitConflict, errors.New("the dashboard is for a person: it answers what agents ask of one, so no agent may start it"))
	}
	home, err := app.Home()
	if err != nil {
		return err
	}
	deps, err := app.webDeps(home)
	if err != nil {
		return err
	}
	deps.ReadOnly = f.readOnly
	server, err := web.New(deps)
	if err != nil {
		return err
	}
	if f.open {
		defer func() {
			if err := durable.Remove(linkFile(home)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				fmt.Fprintf(app.Err, "note: the page that led to the link is left, and leads nowhere any more: %v\n", err)
			}
		}()
	}
	return server.Serve(ctx, web.Options{Listen: f.listen, Ready: func(link string, first bool) {
		if first {
			fmt.Fprintln(app.Out, link)
			fmt.Fprintln(app.Err, "The link lets one browser in. Ctrl-C ends the dashboard.")
			if f.open {
				app.openLink(ctx, home, link)
			}
			return
		}
		fmt.Fprintf(app.Err, "A browser was let in. For another: %s\n", link)
	}})
}

// openLink opens a link in the user's browser. The link does not stand on a command
// line, which everybody on the machine can read, but in a file that the user alone can.
func (a *App) openLink(ctx context.Context, home *config.Home, link string) {
	file := linkFile(home)
	err := durable.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		to := html.EscapeString(link)
		err = durable.WriteFile(file, []byte(`<!doctype html><meta charset="utf-8"><title>reprise</title><meta http-equiv="refresh" content="0;url=`+to+`"><a href="`+to+"\">Open the dashboard</a>\n"), 0o600)
	}
	if err == nil {
		err = a.openFile(ctx, file)
	}
	if err != nil {
		fmt.Fprintf(a.Err, "note: no browser was opened (%v): open the link yourself\n", err)
	}
}

// linkFile is the page that leads a browser to the dashboard's link.
func linkFile(home *config.Home) string { return filepath.Join(home.Paths.State, "web.html") }

// openFile has the desktop open a file.
func (a *App) openFile(ctx context.Context, file string) error {
	names, args := []string{"xdg-open", "wslview"}, []string{file}
	switch a.Env.GOOS {
	case "darwin":
		names = []string{"open"}
	case "windows":
		names, args = []string{"rundll32.exe"}, []string{"url.dll,FileProtocolHandler", file}
	}
	for _, name := range names {
		path, err := a.lookPath(name)
		if err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, notifyTime)
		defer cancel()
		c := proc.Cmd{Path: path, Args: args, Env: a.Environ, NewSession: true}
		out, err := proc.Run(ctx, c, 4<<10)
		return exitError(c, out.Exit, string(out.Stderr), err)
	}
	return fmt.Errorf("%s is not here", strings.Join(names, " and "))
}
