package cli

import (
	"context"
	"errors"
	"fmt"
	"html"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/event"
	"reprise/internal/learn/scopes"
	"reprise/internal/proc"
	"reprise/internal/recall"
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

// webDeps is what the dashboard shows and changes.
func (a *App) webDeps(home *config.Home) (web.Deps, error) {
	d := web.Deps{Version: Version(), Now: a.Env.Now}
	d.Events = &web.Log{Dir: home.EventsDir(), What: func(e event.Event) string { return eventWhat(e, 200) }}
	var err error
	if d.Log, err = a.Logger(); err != nil {
		return d, err
	}
	if d.Runs, err = a.Runs(); err != nil {
		return d, err
	}
	if d.Queue, err = a.Queue(proc.ID{}); err != nil {
		return d, err
	}
	if d.Memory, err = a.webMemory(home); err != nil {
		return d, err
	}
	if d.Guard, err = a.webGuard(home); err != nil {
		return d, err
	}
	if p := home.Project; p != nil {
		d.Project, d.Root = p.Name, p.Root
		d.LoopDir = filepath.Join(home.Paths.ProjectDir(p.Name), "loop")
		store, _, err := a.Tasks()
		if err != nil {
			return d, err
		}
		d.Tasks = store
		d.Claim = func(ctx context.Context) error { return conflict(home.Paths.Claim(ctx, p, "", a.Now())) }
	}
	return d, nil
}

// webMemory is the memory for the dashboard. What of it is opened late in a command is
// opened here, before requests come side by side.
func (a *App) webMemory(home *config.Home) (*web.Remembering, error) {
	files, err := a.Layers()
	if err != nil {
		return nil, err
	}
	known, err := a.Remembered()
	if err != nil {
		return nil, err
	}
	knowledge, err := a.Scopes()
	if err != nil {
		return nil, err
	}
	m := &web.Remembering{Files: files, Knowledge: knowledge, Ready: a.finishForgetting, Saved: func(ctx context.Context, c scopes.Change) {
		a.saveGlobal(ctx, c.Project, c.Op+": "+c.Text)
	}}
	m.Recall = func(ctx context.Context, q recall.Question) (recall.Answer, error) {
		reader, err := a.reader()
		if err != nil {
			return recall.Answer{}, err
		}
		reader.All, reader.Wide = q.All, q.Wide
		q.Reader = reader
		if _, err := known.Organizer.Run(ctx, 0); err != nil {
			return recall.Answer{}, err
		}
		if q.Policy, err = known.Policy(ctx, q.Reader, q.AsOf); err != nil {
			return recall.Answer{}, err
		}
		return known.Index.Recall(ctx, q)
	}
	for _, l := range files {
		m.Dirs = append(m.Dirs, l.Store.Dir(), filepath.Join(l.Store.Dir(), "blocks"))
		if l.Entries != nil {
			m.Dirs = append(m.Dirs, l.Entries.Dir())
		}
	}
	return m, nil
}

// webGuard is what waits for the person's word, for the dashboard.
func (a *App) webGuard(home *config.Home) (*web.Guard, error) {
	q, err := a.pendingQueue()
	if err != nil {
		return nil, err
	}
	g := &web.Guard{Mode: home.Settings.Guard.Mode, Dir: q.dir}
	g.Waiting = func() ([]web.Waiting, error) {
		list, err := q.list()
		var out []web.Waiting
		for _, c := range list {
			out = append(out, web.Waiting{ID: c.ID, Client: c.Client, Tool: c.Tool, Input: c.Input, Cwd: c.Cwd, Rule: c.Rule, Reason: c.Reason,
				Session: c.Session, Run: c.Run, Since: c.At, Until: c.Until})
		}
		return out, err
	}
	g.Answer = func(id string, allow bool, why string) error {
		list, err := q.list()
		if err != nil {
			return err
		}
		// The whole id: what was shown is what is answered.
		if !slices.ContainsFunc(list, func(c pendingCall) bool { return c.ID == id }) {
			return errors.New("this call does not wait any more: it was answered, or its time was over")
		}
		answer := "deny"
		if allow {
			answer = "allow"
		}
		return q.answer(id, answer, why)
	}
	return g, nil
}

// openLink opens a link in the user's browser. The link does not stand on a command
// line, which everybody on the machine can read, but in a file that the user alone can.
func (a *App) openLink(ctx context.Context, home *config.Home, link string) {
	file := filepath.Join(home.Paths.State, "web.html")
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
