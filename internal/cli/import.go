package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/event"
	"reprise/internal/term"
	"reprise/internal/transcript"
)

func newImportCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{Use: "import", Short: "Take in what clients wrote down before reprise was there"}
	cmd.AddCommand(newImportTranscriptsCmd(app), newImportMemoryCmd(app))
	return cmd
}

func newImportTranscriptsCmd(app *App) *cobra.Command {
	var clients []string
	var since, project string
	var dryRun, asJSON bool
	cmd := &cobra.Command{
		Use: "transcripts", Args: cobra.NoArgs, Short: "Read past sessions of the clients into the event log",
		Long: `Read the transcripts that Claude Code, Codex, Gemini CLI and Copilot CLI keep of
their sessions, and add to the event log what happened in them: prompts, tool
calls and how they ended, answers, compactions. Each session goes to the log of
the project that it worked in, or to the global one; events keep their times.

It can be stopped and goes on the next time. Doing it again adds only what is
new, and what hooks recorded already is not added twice. Lines that cannot be
used are counted and told of. The clients' own files are only read. Secrets are
taken out, as from everything that is recorded.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, c := range clients {
				if !slices.Contains(transcript.Clients(), c) {
					return usagef("--client %q is none of %s", c, strings.Join(transcript.Clients(), ", "))
				}
			}
			from, err := pastTime(app, "--since", since)
			if err != nil {
				return err
			}
			return importTranscripts(cmd.Context(), app, importOptions{clients: clients, since: from, project: project, dryRun: dryRun, asJSON: asJSON})
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&clients, "client", nil, "only this client: "+strings.Join(transcript.Clients(), ", ")+" (may be given more than once)")
	f.StringVar(&since, "since", "", "only transcripts that were written to since: a time back (36h, 7d) or a day (2026-02-21)")
	f.StringVar(&project, "project", "", "only what happened in this project")
	f.BoolVar(&dryRun, "dry-run", false, "read and count, and write nothing")
	f.BoolVar(&asJSON, "json", false, "print the report for programs")
	return cmd
}

// importOptions say which past sessions are taken in.
type importOptions struct {
	clients        []string
	since          time.Time
	project        string
	dryRun, asJSON bool
}

func importTranscripts(ctx context.Context, app *App, o importOptions) error {
	home, err := app.Home()
	if err != nil {
		return err
	}
	places, err := transcript.FindPlaces(app.Env)
	if err != nil {
		return err
	}
	found := transcript.Find(places, o.clients)
	defer found.Close()
	report, err := transcript.Import(ctx, transcript.Options{
		Found: found, Since: o.since, Project: o.project, DryRun: o.dryRun,
		StateDir: filepath.Join(home.Paths.State, "import"), Now: app.Now,
		Resolve:  func(cwd string) string { return projectOf(app, home, cwd) },
		Log:      func(ctx context.Context) iter.Seq2[transcript.LogEvent, error] { return allEvents(ctx, home) },
		Append:   appender(app, home),
		Progress: importProgress(app, o.asJSON),
	})
	if o.asJSON {
		if perr := printJSON(app.Out, report); perr != nil {
			return errors.Join(err, perr)
		}
	} else {
		showImport(app, report)
	}
	if errors.Is(err, durable.ErrLocked) {
		return exitWith(ExitConflict, err)
	}
	if err != nil {
		return fmt.Errorf("%w\nWhat was added stays; the same command goes on from there", err)
	}
	if !o.dryRun && addedAny(report) { // so that the next session knows of it at once
		if err := app.organize(ctx); err != nil {
			return fmt.Errorf("what was added is not worked out yet: %w; the next session or `reprise recall` goes on with it", err)
		}
	}
	if len(report.Problems) > 0 {
		return exitWithCode(ExitFailure)
	}
	return nil
}

func addedAny(r transcript.Report) bool {
	return slices.ContainsFunc(r.Clients, func(c transcript.ClientReport) bool { return c.Added > 0 })
}

// organize works out what is in the logs and not in the index yet.
func (a *App) organize(ctx context.Context) error {
	m, err := a.Remembered()
	if err != nil {
		return err
	}
	_, err = m.Organizer.Run(ctx, 0)
	return err
}

// projectOf is the name of the project that a directory belongs to, as far as
// that can be told today: of a directory that is gone, by what is left above it.
func projectOf(app *App, home *config.Home, dir string) string {
	if !app.Env.IsAbs(dir) {
		return ""
	}
	user, _ := app.Env.Home() // "": no directory is the home
	for dir = app.Env.Clean(dir); ; dir = filepath.Dir(dir) {
		if dir == user || dir == filepath.Dir(dir) {
			return ""
		}
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			break
		}
	}
	p, err := config.FindProject(app.Env, dir)
	if err != nil || p == nil || config.CheckName(home.Paths, p) != nil {
		return ""
	}
	return p.Name
}

// logDirs are the directories of all logs: the global one and each project's.
func logDirs(home *config.Home) ([]string, error) {
	dirs := []string{home.Paths.Events("")}
	projects, err := durable.ReadDir(filepath.Join(home.Paths.Data, "projects"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, p := range projects {
		if p.IsDir() {
			dirs = append(dirs, home.Paths.Events(p.Name()))
		}
	}
	return dirs, nil
}

// allEvents yields what all logs hold.
func allEvents(ctx context.Context, home *config.Home) iter.Seq2[transcript.LogEvent, error] {
	return func(yield func(transcript.LogEvent, error) bool) {
		dirs, err := logDirs(home)
		if err != nil {
			yield(transcript.LogEvent{}, err)
			return
		}
		for _, dir := range dirs {
			for item, err := range event.ReadFrom(dir, nil) {
				if err == nil {
					err = context.Cause(ctx)
				}
				if !yield(transcript.LogEvent{Event: item.Event, Imported: event.IsImport(item.File)}, err) {
					return
				}
			}
		}
	}
}

// appender writes imported events to the logs of their projects.
func appender(app *App, home *config.Home) func(context.Context, string, []event.Event) error {
	logs := map[string]*event.Log{}
	return func(ctx context.Context, project string, events []event.Event) error {
		log := logs[project]
		if log == nil {
			log = event.Open(home.Paths.Events(project), event.ImportHost(app.Hostname), app.Env.Now)
			logs[project] = log
		}
		return log.Import(ctx, events)
	}
}

// importProgress shows on a terminal how far the import is.
func importProgress(app *App, quiet bool) func(transcript.Progress) {
	line := app.progress(quiet)
	return func(p transcript.Progress) {
		if p.Path == "" {
			line.Clear()
			return
		}
		line.Show("%d of %d transcripts, %.0f of %.0f MB, %d events  %s %s",
			p.Done, p.Files, float64(p.Bytes)/1e6, float64(p.All)/1e6, p.Events, p.Client, filepath.Base(p.Path))
	}
}

func showImport(app *App, r transcript.Report) {
	style := app.Style()
	if len(r.Clients) == 0 {
		fmt.Fprintln(app.Out, "No transcripts of any client were found.")
	}
	table := term.NewTable(style, "client", "transcripts", "unchanged", "read", "added", "known", "bad lines")
	for i := 1; i < 7; i++ {
		table.AlignRight(i)
	}
	added := 0
	for _, c := range r.Clients {
		added += c.Added
		table.Row(c.Client, fmt.Sprint(c.Transcripts), fmt.Sprint(c.Unchanged), fmt.Sprint(c.Sessions), fmt.Sprint(c.Added), fmt.Sprint(c.Known), fmt.Sprint(c.BadLines))
	}
	if len(r.Clients) > 0 {
		_ = table.Write(app.Out) // a broken pipe shows at the next line, too
	}
	verb := "added"
	if r.DryRun {
		verb = "would be added"
	}
	var names []string
	for name := range r.Projects {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if r.Projects[name] == 0 {
			continue
		}
		where := "project " + name
		if name == "" {
			where = "the global scope (no project knows the directory)"
		}
		fmt.Fprintf(app.Out, "%s %s to %s\n", count(r.Projects[name], "event"), verb, term.SafeLine(where))
	}
	for _, b := range r.Bad {
		fmt.Fprintf(app.Err, "%s:%d: %s\n", term.SafeLine(b.File), b.Line, term.SafeLine(b.Why))
	}
	for _, p := range r.Problems {
		fmt.Fprintf(app.Err, "error: %s\n", term.SafeLine(p))
	}
}
