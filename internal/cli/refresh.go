package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/proc"
	"reprise/internal/refresh"
	"reprise/internal/run"
	"reprise/internal/session"
	"reprise/internal/setup"
	"reprise/internal/term"
)

// runsKept is how long the records of runs stay when nothing else is said, here and
// in `reprise runs gc`.
const runsKept = 30 * 24 * time.Hour

type refreshOptions struct {
	dry, force, all, asJSON      bool
	olderText                    string
	older                        time.Duration // what that comes to
	clients                      []string
	installAliases, dropsAliases bool
}

func newRefreshCmd(app *App) *cobra.Command {
	var o refreshOptions
	cmd := &cobra.Command{
		Use: "refresh", Args: cobra.NoArgs,
		Short: "Clean up what clients leave behind: old transcripts, debug output, caches, orphaned processes",
		Long: `Remove old files from the directories of Claude Code, Codex, Gemini CLI and Copilot
CLI (transcripts, debug output, snapshots, caches) and temporary files and old runs
from reprise's own, and stop what is left of processes.

Settings, credentials, histories and memories are never removed, nor what was
written within the last hour, nor what may be of a session that runs now. A
transcript that is gone cannot be resumed; what reprise recorded of it stays.

Processes of runs that have ended are stopped, by the run's id. Clients' processes
without a terminal, whose parent is dead, are shown, and you are asked about each;
nobody is asked with --force, and they stay.`,
		Example: `  reprise refresh --dry-run
  reprise refresh --force --older 48h`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runRefresh(cmd.Context(), app, o) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.dry, "dry-run", false, "show what would be removed, and remove nothing")
	f.BoolVar(&o.force, "force", false, "do it without asking")
	f.StringVar(&o.olderText, "older", shortDuration(refresh.DefaultOlder), "only what was last written longer ago than this `TIME` (8h, 2d)")
	f.BoolVar(&o.all, "all", false, "everything that is older than an hour")
	f.StringSliceVar(&o.clients, "client", nil, "only `CLIENT`: "+strings.Join(append(refresh.Clients(), refresh.Own), ", "))
	offer(cmd, "client", append(refresh.Clients(), refresh.Own)...)
	f.BoolVar(&o.asJSON, "json", false, "print what was done for programs")
	f.BoolVar(&o.installAliases, "install-aliases", false, "put the aliases claude-refresh and claude-refresh-force into your shell's file, and do no more")
	f.BoolVar(&o.dropsAliases, "remove-aliases", false, "take those aliases out again, and do no more")
	cmd.MarkFlagsMutuallyExclusive("older", "all")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "force")
	cmd.MarkFlagsMutuallyExclusive("install-aliases", "remove-aliases")
	return cmd
}

// refreshDoc is what --json prints.
type refreshDoc struct {
	DryRun bool `json:"dry_run"`
	refresh.Report
	Runs      []string         `json:"runs"`       // whose records were removed
	Stopped   []string         `json:"stopped"`    // processes
	Orphans   []refreshProcess `json:"orphans"`    // that were left
	OlderThan string           `json:"older_than"` // such as "8h"
}

type refreshProcess struct {
	Process string    `json:"process"`
	Client  string    `json:"client"`
	Began   time.Time `json:"began"`
	Command string    `json:"command"`
}

func runRefresh(ctx context.Context, app *App, o refreshOptions) error {
	home, err := app.Home()
	if err != nil {
		return err
	}
	if o.installAliases || o.dropsAliases {
		ch, err := setupFor(app, home).Aliases(ctx, app.Program, o.dropsAliases, o.dry)
		if err != nil {
			return err
		}
		if !o.dry {
			ch.Diff = ""
		}
		return printChanges(app, installOptions{dryRun: o.dry, asJSON: o.asJSON}, []setup.Change{ch})
	}
	var ok bool
	if o.older, ok = lengthOfTime(o.olderText); !ok {
		return usagef("--older %q is no length of time: give hours or days (8h, 2d)", clipText(o.olderText, 40))
	}
	if o.older < refresh.Margin {
		return usagef("--older %s: nothing that is younger than %s is removed", o.olderText, shortDuration(refresh.Margin))
	}
	if o.all {
		o.older = refresh.Margin
	}
	asks := !o.dry && !o.force
	if asks && (!app.InIsTerminal || !app.OutIsTerminal || o.asJSON) {
		return usagef("nobody can be asked here: pass --dry-run to see what would be removed, or --force to remove it")
	}
	places, err := refreshPlaces(app, o.clients)
	if err != nil {
		return err
	}
	doc := refreshDoc{DryRun: o.dry, Runs: []string{}, Stopped: []string{}, Orphans: []refreshProcess{}}
	if err := refreshProcesses(ctx, app, &doc, asks); err != nil {
		return err
	}
	if asks {
		if o.older, err = askAge(ctx, app, o.older); err != nil {
			return err
		}
	}
	doc.OlderThan = shortDuration(o.older)
	if err := refreshFiles(ctx, app, o, places, &doc); err != nil {
		return err
	}
	if o.asJSON {
		if err := printJSON(app.Out, doc); err != nil {
			return err
		}
	} else {
		printRefresh(app, doc)
	}
	if len(doc.Problems) > 0 {
		return exitWithCode(ExitFailure)
	}
	return nil
}

func refreshPlaces(app *App, only []string) ([]refresh.Place, error) {
	for _, c := range only {
		if c != refresh.Own && !slices.Contains(refresh.Clients(), canonical(c)) {
			return nil, usagef("--client %q: there are %s, %s", clipText(c, 40), strings.Join(refresh.Clients(), ", "), refresh.Own)
		}
	}
	home, err := app.Home()
	if err != nil {
		return nil, err
	}
	places, err := refresh.Places(app.Env)
	if err != nil {
		return nil, err
	}
	places = append(places, refresh.OwnPlaces(home.Paths)...)
	return slices.DeleteFunc(places, func(p refresh.Place) bool {
		return len(only) > 0 && !slices.ContainsFunc(only, func(c string) bool { return canonical(c) == p.Client })
	}), nil
}

// canonical is a client's own name for one of its names.
func canonical(name string) string {
	if c, err := setup.Canonical(name); err == nil {
		return c
	}
	return name
}

// refreshProcesses stops what is left of runs, and asks about orphans where somebody
// can be asked.
func refreshProcesses(ctx context.Context, app *App, doc *refreshDoc, asks bool) error {
	runs, err := app.Runs()
	if err != nil {
		return err
	}
	if !doc.DryRun {
		if _, err := runs.List(ctx); err != nil { // settles those whose supervisor is dead
			doc.Problems = append(doc.Problems, err.Error())
		}
	}
	left, err := runs.Orphans()
	if err != nil {
		return err
	}
	for id, ids := range left {
		for _, p := range ids {
			doc.Stopped = append(doc.Stopped, fmt.Sprintf("%s of %s", p, id))
		}
		if doc.DryRun {
			continue
		}
		if _, err := proc.StopTree(ctx, proc.ID{}, id, run.DefaultGrace); err != nil {
			doc.Problems = append(doc.Problems, fmt.Sprintf("stop what %s left: %v", id, err))
		}
	}
	live, err := liveClients()
	if err != nil {
		return err
	}
	for _, l := range refresh.Orphans(live, app.Now()) {
		p := refreshProcess{Process: l.ID.String(), Client: l.Client, Began: l.Began, Command: clipText(l.Words, 200)}
		if !asks {
			doc.Orphans = append(doc.Orphans, p)
			continue
		}
		fmt.Fprintf(app.Out, "%s: %s, since %s, without a terminal and without a parent\n  %s\nStop it? [y/N]: ",
			p.Process, p.Client, p.Began.Local().Format("2006-01-02 15:04"), term.SafeLine(p.Command))
		yes, err := saysYes(ctx, app)
		if err != nil {
			return err
		}
		if !yes {
			doc.Orphans = append(doc.Orphans, p)
			continue
		}
		if _, err := proc.StopTree(ctx, l.ID, "", run.DefaultGrace); err != nil {
			doc.Problems = append(doc.Problems, fmt.Sprintf("stop %s: %v", p.Process, err))
			continue
		}
		doc.Stopped = append(doc.Stopped, fmt.Sprintf("%s (%s)", p.Process, l.Client))
	}
	return nil
}

// liveClients are the clients' processes that run now. Where the table cannot be read
// nothing can be told to be unused, so that is an error.
func liveClients() ([]refresh.Live, error) {
	table, err := proc.List()
	if err != nil {
		return nil, err
	}
	return refresh.Sessions(table), nil
}

func saysYes(ctx context.Context, app *App) (bool, error) {
	line, err := app.ask(ctx)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil && line == "" {
		return false, exitWith(ExitConflict, errors.New("no answer came; nothing more was done"))
	}
	return strings.EqualFold(line, "y") || strings.EqualFold(line, "yes"), nil
}

// askAge asks how old is old.
func askAge(ctx context.Context, app *App, usual time.Duration) (time.Duration, error) {
	fmt.Fprintf(app.Out, "Remove files that were last written\n  1  more than %s ago\n  2  more than 2 days ago\n  3  more than an hour ago\n  n  none\nWhich? [1]: ", shortDuration(usual))
	line, err := app.ask(ctx)
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if err != nil && line == "" {
		return 0, exitWith(ExitConflict, errors.New("no answer came; no file was removed"))
	}
	switch strings.ToLower(line) {
	case "", "1":
		return usual, nil
	case "2":
		return 48 * time.Hour, nil
	case "3":
		return refresh.Margin, nil
	}
	return 0, exitWith(ExitConflict, errors.New("no file was removed"))
}

// shortDuration is a duration without the parts that are nought: "8h".
func shortDuration(d time.Duration) string {
	s := d.String()
	for _, end := range []string{"0s", "0m"} {
		if t, ok := strings.CutSuffix(s, end); ok && t != "" && t[len(t)-1] > '9' {
			s = t
		}
	}
	return s
}

func refreshFiles(ctx context.Context, app *App, o refreshOptions, places []refresh.Place, doc *refreshDoc) error {
	runs, err := app.Runs()
	if err != nil {
		return err
	}
	live, err := liveClients()
	if err != nil {
		return err
	}
	list, err := runs.List(ctx)
	if err != nil {
		return err
	}
	opt := refresh.Options{Places: places, Older: o.older, Live: live, Now: app.Env.Now}
	for _, r := range list {
		if !r.Status.Settled() {
			opt.Sessions = append(opt.Sessions, r.SessionID)
		}
	}
	found, err := refresh.Scan(ctx, opt)
	if err != nil {
		return err
	}
	before := doc.Problems
	doc.Report = found
	if !o.dry {
		if doc.Report, err = refresh.Clean(ctx, opt, found); err != nil {
			return err
		}
	}
	doc.Problems = append(before, doc.Problems...)
	own := slices.ContainsFunc(places, func(p refresh.Place) bool { return p.Client == refresh.Own })
	if !own || o.dry {
		return nil
	}
	home, err := app.Home()
	if err != nil {
		return err
	}
	may, _, err := app.mayGo(ctx, runs, true)
	if err != nil {
		return err
	}
	gone, err := runs.GCOf(ctx, runsKept, may)
	doc.Runs = append(doc.Runs, gone...)
	if err == nil {
		err = session.SweepTold(home.Paths.State, app.Now())
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		doc.Problems = append(doc.Problems, err.Error())
	}
	return nil
}

func printRefresh(app *App, doc refreshDoc) {
	style := app.Style()
	type key struct{ client, what string }
	var order []key
	sums := map[key]refresh.Report{}
	for _, it := range doc.Items {
		k := key{it.Client, it.What}
		s, ok := sums[k]
		if !ok {
			order = append(order, k)
		}
		s.Files, s.Bytes = s.Files+it.Files, s.Bytes+it.Bytes
		sums[k] = s
	}
	if len(order) > 0 {
		table := term.NewTable(style, "CLIENT", "WHAT", "FILES", "SIZE").MaxWidth(app.Columns).AlignRight(2).AlignRight(3)
		for _, k := range order {
			table.Row(k.client, k.what, fmt.Sprint(sums[k].Files), size(sums[k].Bytes))
		}
		if err := table.Write(app.Out); err != nil {
			fmt.Fprintf(app.Err, "note: %v\n", err)
		}
	}
	why := map[string]int{}
	for _, k := range doc.Kept {
		why[k.Why]++
	}
	var reasons []string
	for w := range why {
		reasons = append(reasons, w)
	}
	slices.Sort(reasons)
	for _, w := range reasons {
		fmt.Fprintf(app.Out, "kept %d: %s\n", why[w], term.SafeLine(w))
	}
	stopped, removed := "stopped", "freed"
	if doc.DryRun {
		stopped, removed = "would be stopped", "would be freed"
	}
	for _, s := range doc.Stopped {
		fmt.Fprintf(app.Out, "%s: process %s\n", stopped, s)
	}
	for _, p := range doc.Orphans {
		fmt.Fprintf(app.Out, "left: process %s (%s), without a terminal and without a parent: stop it yourself, or run this at a terminal\n", p.Process, p.Client)
	}
	if n := len(doc.Runs); n > 0 {
		fmt.Fprintf(app.Out, "removed: the records of %s that ended more than 30 days ago\n", count(n, "run"))
	}
	fmt.Fprintf(app.Out, "%s: %s in %s, last written more than %s ago\n", removed, size(doc.Bytes), count(doc.Files, "file"), doc.OlderThan)
	for _, p := range doc.Problems {
		fmt.Fprintf(app.Err, "%s %s\n", style.Yellow("warning:"), term.SafeLine(p))
	}
}
