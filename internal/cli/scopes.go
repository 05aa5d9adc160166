package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/event"
	"reprise/internal/learn"
	"reprise/internal/learn/scopes"
	"reprise/internal/memory"
	"reprise/internal/session"
)

// Scopes is all that is remembered, in every scope, for who asks: the person at
// the keyboard, or the agent or run whose environment this is.
func (a *App) Scopes() (*scopes.Scopes, error) { return a.scopesFor(a.person()) }

// scopesFor is [App.Scopes] for the person, or for the agent of the environment.
func (a *App) scopesFor(person bool) (*scopes.Scopes, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	index, err := a.Index()
	if err != nil {
		return nil, err
	}
	organizer, err := a.Organizer()
	if err != nil {
		return nil, err
	}
	access, err := a.memoryAccess()
	if err != nil {
		return nil, err
	}
	global, err := a.Memory()
	if err != nil {
		return nil, err
	}
	broker, err := a.Broker()
	if err != nil {
		return nil, err
	}
	who, err := a.reader()
	if err != nil {
		return nil, err
	}
	who.All = person
	retention, err := scopes.ParseRetention(map[string]int{
		"episode": home.Settings.Learn.EpisodeDays, "summary": home.Settings.Learn.SummaryDays,
		"pattern": home.Settings.Learn.PatternDays, "anti_pattern": home.Settings.Learn.AntiPatternDays,
	})
	if err != nil {
		return nil, err
	}
	names := session.Projects(home)
	if home.Project != nil && !slices.Contains(names, home.Project.Name) {
		names = append(names, home.Project.Name)
	}
	set := home.Settings.Learn
	claims := map[string]string{}
	return scopes.New(scopes.Options{
		Claims: func(dir string) string {
			name, known := claims[dir]
			if !known {
				name = config.ProjectOf(a.Env, home.Paths, dir)
				claims[dir] = name
			}
			return name
		},
		Index: index, Global: global, Now: a.Env.Now, Who: who, Events: home.Paths.Events,
		Projects: func() []string { return names },
		Entries: func(project string) *memory.Entries {
			if project != "" && !slices.Contains(names, project) {
				return nil
			}
			return session.Entries(home, project, access, a.Env.Now)
		},
		Blocks: func(project string) *memory.Store {
			return memory.New(memory.Options{Dir: home.Paths.ProjectMemory(project), Access: access, Now: a.Env.Now, Git: memory.GitOptions{Off: true}})
		},
		Record: func(ctx context.Context, e event.Event) (event.Event, error) {
			if err := access.MayWrite(); err != nil {
				return e, err
			}
			if e.Project != "" && home.Project != nil && e.Project == home.Project.Name {
				if err := a.claim(ctx); err != nil {
					return e, err
				}
			}
			return broker.Record(ctx, e)
		},
		Organize: func(ctx context.Context) error { _, err := organizer.Run(ctx, 0); return err },
		Rebuild:  func(ctx context.Context) error { _, err := index.Rebuild(ctx); return err },
		Purge:    func(ctx context.Context, p scopes.Purging) (scopes.Purged, error) { return a.purgeLog(ctx, broker, p) },
		Trace:    organizer.Trace, Pending: home.Paths.Forgetting(),
		Identify: memory.Identities{File: filepath.Join(home.Paths.Data, "identities.json"), Now: a.Env.Now}.Of,
		Gates: scopes.Gates{
			Off: set.Promote == "off", ProjectSessions: set.ProjectSessions, GlobalProjects: set.GlobalProjects, MinConfidence: float64(set.MinConfidence) / 100,
		},
		Retention: retention, Refused: session.Refused(home, a.Env),
		Holders: func(ctx context.Context, project, id, text string) ([]string, error) {
			// Committed first, so that what is said is how it is once the command has ended.
			a.saveGlobal(ctx, project, savedAs(scopes.Change{Op: "forget", ID: id}))
			return a.stateHolds(ctx, project, text)
		},
	}), nil
}

// changed reports what was done to the memory.
func changed(app *App, c scopes.Change, asJSON bool) error {
	if asJSON {
		return printJSON(app.Out, c)
	}
	style := app.Style()
	done := map[string]string{
		"learn": "learnt", "decide": "decided", "correct": "corrected", "forget": "forgotten", "promote": "promoted", "demote": "demoted",
		"keep": "kept", "drop": "dropped", learn.OpRestore: "back again", "useful": "noted as useful", "useless": "noted as of no use",
	}[c.Op]
	switch {
	case c.DryRun:
		return showGoing(app, c)
	case c.Existing:
		done = "already " + done
	}
	where := c.Scope
	if c.Project != "" {
		where += " " + c.Project
	}
	if c.File != "" {
		where += ", " + c.File
	}
	fmt.Fprintf(app.Out, "%s %s  %s\n", done, c.ID, style.Dim("("+where+")"))
	if c.Text != "" {
		fmt.Fprintf(app.Out, "  %s\n", shown(c.Text))
	}
	switch {
	case c.Old == "" || c.Old == c.ID:
	case c.Op == "promote": // what it was made from is served where it was, as before
		fmt.Fprintf(app.Out, "  %s\n", style.Dim("made from "+c.Old+", which stays"))
	default:
		fmt.Fprintf(app.Out, "  %s\n", style.Dim("in place of "+c.Old))
	}
	for _, id := range c.Also {
		what := id
		if i := slices.IndexFunc(c.Items, func(g scopes.Going) bool { return g.ID == id }); i >= 0 {
			what = goingLine(c.Items[i])
		}
		app.said("  ", style.Dim("and "+what))
	}
	showPurged(app, c)
	if c.Op == "forget" && !c.Existing && c.Purged == 0 && len(c.Items) > 0 && c.Items[0].Title != "" {
		fmt.Fprintf(app.Out, "  %s\n", style.Dim("`reprise memory forget --undo "+c.ID+"` takes it back"))
	}
	if c.Stays != "" {
		fmt.Fprintf(app.Out, "  %s\n", style.Dim("what it was made from stays: "+c.Stays))
	}
	for _, x := range c.Conflicts {
		showConflict(app, x)
	}
	for _, w := range c.Warnings {
		fmt.Fprintf(app.Err, "warning: %s\n", w)
	}
	return nil
}

// scopesCommand is what the commands about one item have in common.
func scopesCommand(app *App, use, short string, args cobra.PositionalArgs, run func(ctx context.Context, s *scopes.Scopes, args []string) (scopes.Change, error)) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: use, Args: args, Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := app.Scopes()
			if err != nil {
				return err
			}
			c, err := run(cmd.Context(), s, args)
			if err != nil {
				return memoryError(err)
			}
			app.saveGlobal(cmd.Context(), c.Project, savedAs(c))
			return changed(app, c, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer for programs")
	return cmd
}
