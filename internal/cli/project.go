package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/event"
	"reprise/internal/learn"
	"reprise/internal/term"
	"reprise/internal/workspace"
)

func newProjectCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{Use: "project", Short: "Look after the project around the working directory"}
	cmd.AddCommand(newProjectRenameCmd(app))
	return cmd
}

func newProjectRenameCmd(app *App) *cobra.Command {
	var yes, dry bool
	cmd := &cobra.Command{
		Use: "rename NAME", Args: cobra.ExactArgs(1), Short: "Give the project another name, with all that is known of it",
		Long: `Give the project around the working directory another name. Its data go along:
memory and state, queue, runs, events, the loop's records, workspaces, approvals. The
name is written into .reprise/project.yaml, which keeps the one before as an alias, and
into worker.projects of your settings. What was approved of the file stays approved.

The name before keeps leading to the project on this machine, so that a worktree or a
branch that has it in its file still belongs to it. Event logs are not rewritten: what they
say of the one name is taken for the other. Another checkout or machine goes on under
the old name, also with the new file, until this command is run there, too. Where the
name was changed in the file by hand, this has what is known go along.

It is refused while a loop, a run or somebody in a workspace is at work, and where the
queue is on servers, which know it by its name. A command that was killed is gone on with by
the next one of the same name; to take it back, rename it back.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := app.planRename(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return r.run(cmd.Context(), dry, yes)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&dry, "dry-run", false, "only say what would go along, and what would be written")
	f.BoolVarP(&yes, "yes", "y", false, "do it without asking")
	return cmd
}

// renaming is a project on its way to another name.
type renaming struct {
	app      *App
	home     *config.Home
	project  config.Project // by the name that its data have
	to       string
	moved    bool // its data have the name already
	kept     []string
	edits    []config.Edit
	approved bool // the file as it is before the edit
}

// planRename looks what a renaming comes to. It writes nothing.
func (a *App) planRename(ctx context.Context, to string) (*renaming, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	if home.Project == nil {
		return nil, exitWith(ExitNotFound, a.noProject())
	}
	if err := config.CheckProjectName(to); err != nil {
		return nil, usagef("rename project: %w; a name is 1 to 63 lower-case letters, digits, '-', '_' and '.', beginning and ending with a letter or digit", err)
	}
	r := &renaming{app: a, home: home, project: *home.Project, to: to}
	if r.project.Name == to && !home.Paths.Begun(to) {
		// Somebody wrote the name into the file: what is known is under the one before.
		former, err := home.Paths.FormerNames(home.Project)
		if err != nil {
			return nil, err
		}
		if len(former) > 0 {
			r.project.Name = former[len(former)-1]
		}
	}
	r.moved = r.project.Name == to
	if home.Settings.Queue != config.QueueFiles {
		return nil, exitWith(ExitConflict, fmt.Errorf("rename project %s: its queue is on the fleet's servers, where all machines know it by that name: bring it back with `reprise queue migrate --to files` and take `queue` out of the settings, rename it on each machine that works on it, then set `queue` again and `reprise queue migrate`", r.project.Name))
	}
	if !r.moved {
		if err := home.Paths.CheckMove(&r.project, to); err != nil {
			return nil, exitWith(ExitConflict, fmt.Errorf("rename project %s: %w", r.project.Name, err))
		}
	}
	if r.kept, err = home.Paths.Kept(r.project.Name); err != nil {
		return nil, err
	}
	var settings config.Edit
	for _, name := range append(home.Paths.NamesOf(r.project.Name), r.project.Name) { // one that was cut off may have left any of them
		if settings, err = config.SettingsEdit(a.Env, home.Paths, a.ConfigFlag, name, to); err != nil {
			return nil, err
		}
		if settings.Before != settings.After {
			break
		}
	}
	file, err := config.RenameEdit(&r.project, to)
	if err != nil {
		return nil, err
	}
	for _, e := range []config.Edit{settings, file} {
		if e.Before != e.After {
			r.edits = append(r.edits, e)
		}
	}
	trust, err := home.Paths.Trust(&r.project)
	r.approved = err == nil && trust.Approved
	return r, nil
}

func (r *renaming) run(ctx context.Context, dry, yes bool) error {
	app, style := r.app, r.app.Style()
	if r.moved && len(r.edits) == 0 {
		fmt.Fprintf(app.Out, "It is project %s already.\n", style.Bold(r.to))
		return nil
	}
	if !r.moved {
		kept := strings.Join(r.kept, ", ")
		if kept == "" {
			kept = "nothing yet"
		}
		fmt.Fprint(app.Out, wrapLine(fmt.Sprintf("Project %s → %s. What is known of it goes along: %s.", style.Bold(r.project.Name), style.Bold(r.to), kept), app.Columns))
		fmt.Fprintln(app.Out, app.beside("  from", term.SafeLine(r.home.Paths.ProjectDir(r.project.Name)), "    "))
		fmt.Fprintln(app.Out, app.beside("  to", term.SafeLine(r.home.Paths.ProjectDir(r.to)), "    "))
	}
	for _, e := range r.edits {
		fmt.Fprint(app.Out, style.Diff(term.SafeText(udiff.Unified(e.File, e.File, e.Before, e.After))))
	}
	unlock, err := r.still(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if dry {
		return nil
	}
	if !yes {
		if !app.InIsTerminal || !app.OutIsTerminal {
			return usagef("nobody can be asked here: pass --yes to do what is shown above")
		}
		sure, err := app.confirm(ctx, "Proceed?", true)
		if err != nil {
			return err
		}
		if !sure {
			return exitWith(ExitConflict, errors.New("not renamed: you said no"))
		}
	}
	if runtime.GOOS == "windows" {
		unlock() // a directory with an open file is not moved there
	}
	return r.do(ctx)
}

// still wants nobody to be at work in the project, and keeps a loop, a verification and an
// exchange from beginning meanwhile.
func (r *renaming) still(ctx context.Context) (unlock func(), err error) {
	dir := r.home.Paths.ProjectDir(r.project.Name)
	var held []func() error
	unlock = func() {
		for _, free := range held {
			_ = free()
		}
		held = nil
	}
	busy := func(what string) (func(), error) {
		unlock()
		return nil, exitWith(ExitConflict, fmt.Errorf("rename project %s: %s; run this again when that has ended", r.project.Name, what))
	}
	if !r.moved {
		if what := r.atWork(ctx); what != "" {
			return busy(what)
		}
	}
	for _, l := range [...][2]string{{"loop/loop.lock", "its loop is at work (`reprise loop stop` ends it)"}, {"sync.lock", "its state is being exchanged"}, {"verify/run.lock", "its checks are being run"}} {
		file := filepath.Join(dir, filepath.FromSlash(l[0]))
		if _, err := durable.ReadDir(filepath.Dir(file)); err != nil {
			continue // there is no such thing yet
		}
		free, err := durable.TryLock(file)
		if errors.Is(err, durable.ErrLocked) {
			return busy(l[1])
		}
		if err != nil {
			unlock()
			return nil, err
		}
		held = append(held, free)
	}
	return unlock, nil
}

// atWork says who is at work in the project, "" for nobody.
func (r *renaming) atWork(ctx context.Context) string {
	runs, err := r.app.Runs()
	if err != nil {
		return err.Error()
	}
	list, err := runs.List(ctx)
	for _, one := range list {
		if one.Project == r.project.Name && !one.Status.Settled() {
			return fmt.Sprintf("run %s is at work (`reprise runs cancel %s` ends it)", one.ID, one.ID)
		}
	}
	if err != nil && len(list) == 0 {
		return err.Error()
	}
	if waiting, err := durable.ReadDir(r.home.Paths.Forgetting()); err == nil {
		for _, e := range waiting {
			if strings.HasSuffix(e.Name(), ".json") {
				return "something is being forgotten, or was cut off in that (`reprise memory list` finishes it)"
			}
		}
	}
	spaces, err := r.app.Workspaces()
	if err != nil {
		return err.Error()
	}
	all, err := spaces.List()
	if err != nil {
		return err.Error()
	}
	for _, w := range all {
		if len(w.Live) > 0 {
			return fmt.Sprintf("somebody works in workspace %s", w.Name)
		}
		if w.State != workspace.Ready {
			return fmt.Sprintf("workspace %s is being made or removed, or was cut off in that (`reprise workspace list` says more)", w.Name)
		}
	}
	return ""
}

func (r *renaming) do(ctx context.Context) error {
	app, was := r.app, r.project.Name
	if !r.moved {
		if err := r.home.Paths.Claim(ctx, &r.project, rootCommit(ctx, app, r.project.Main), app.Now()); err != nil {
			return conflict(err)
		}
		if err := r.home.Paths.Move(ctx, durable.Disk{}, &r.project, r.to); err != nil {
			return err
		}
	}
	app.reopen()
	home, err := app.Home()
	if err != nil {
		return err
	}
	repo, err := app.stateOf(home, r.to)
	if err == nil {
		err = repo.Relink(ctx)
	}
	if err != nil {
		return fmt.Errorf("rename project: its data have the new name; %w; run this again", err)
	}
	for _, e := range r.edits {
		if err := config.WriteEdit(e); err != nil {
			return fmt.Errorf("rename project: its data have the new name; %w", err)
		}
	}
	app.reopen()
	if home, err = app.Home(); err != nil {
		return err
	}
	if home.Project == nil || home.Project.Name != r.to {
		return fmt.Errorf("rename project: it is not found by its new name in %s; `reprise doctor` says more", r.project.Root)
	}
	if r.approved {
		if err := r.approve(ctx, home); err != nil {
			return err
		}
	}
	data, err := jsonData(event.MemoryData{Op: "rename", From: was, To: r.to, By: "hand"})
	if err != nil {
		return err
	}
	broker, err := app.Broker()
	if err != nil {
		return err
	}
	if _, err := broker.Record(ctx, event.Event{Scope: event.ScopeProject, Project: r.to, Type: event.MemoryWritten, Data: data, Outcome: "success"}); err != nil {
		fmt.Fprint(app.Err, wrapLine("warning: it is renamed, but the event of it is not written: "+term.SafeLine(err.Error()), app.Columns))
	}
	if err := r.rebuild(ctx); err != nil {
		fmt.Fprint(app.Err, wrapLine("warning: it is renamed, but the index is not made anew: "+term.SafeLine(err.Error())+"; the next session does it, or `reprise index rebuild`", app.Columns))
	}
	style := app.Style()
	fmt.Fprintf(app.Out, "%s is project %s now.\n", term.SafeLine(home.Project.Root), style.Bold(r.to))
	fmt.Fprintf(app.Out, "  commit .reprise/project.yaml\n")
	fmt.Fprintln(app.Out, app.beside("  its data are in", term.SafeLine(home.Paths.ProjectDir(r.to)), "    "))
	fmt.Fprint(app.Out, wrapLine(fmt.Sprintf("Begin open sessions of it anew. Other checkouts and machines go on as %s until %s is run there.", was, style.Cyan("reprise project rename "+r.to)), app.Columns))
	return nil
}

// approve has what was approved of the file stay approved: what changed in it is the name.
func (r *renaming) approve(ctx context.Context, home *config.Home) error {
	trust, err := home.Paths.Trust(home.Project)
	if err != nil {
		return err
	}
	last := r.edits[len(r.edits)-1]
	if trust.Approved || trust.Text != last.After || trust.Before != last.Before {
		return nil // another text by now: that is for a person to look at
	}
	if err := home.Paths.Approve(ctx, home.Project, trust, r.app.Now()); err != nil {
		return conflict(err)
	}
	return trustChanged(ctx, r.app, home, "approve", trust)
}

// rebuild makes the index anew, which says of all that is remembered whose it is.
func (r *renaming) rebuild(ctx context.Context) error {
	index, err := r.app.anyIndex()
	if err != nil {
		return err
	}
	line := r.app.progress(false)
	r.app.onRebuild = func(p learn.Report) {
		line.Show("%s read, %s worked out", count(p.Events, "event"), count(p.Sessions, "session"))
	}
	_, err = index.Rebuild(ctx)
	line.Clear()
	return err
}

// reopen has everything that was opened be opened anew, by the settings and the project as
// they are now.
func (a *App) reopen() {
	if a.known != nil {
		a.known.Close()
	}
	a.home, a.known, a.runs, a.memory, a.programs = nil, nil, nil, nil, nil
}
