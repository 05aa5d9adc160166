package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/git"
	"reprise/internal/guard"
	"reprise/internal/hook"
	"reprise/internal/pathname"
	"reprise/internal/run"
	"reprise/internal/staterepo"
	"reprise/internal/term"
	"reprise/internal/workspace"
	"reprise/internal/workspace/find"
)

// Workspaces are those of the project around the working directory.
func (a *App) Workspaces() (*workspace.Manager, error) {
	repo, err := a.State()
	if err != nil {
		return nil, err
	}
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	programs, err := a.gitPrograms(home)
	if err != nil {
		return nil, err
	}
	return workspace.New(workspace.Options{
		Env: a.Env, Paths: home.Paths, Project: home.Project, State: repo, Programs: programs,
		RunLive: func(id string) bool {
			runs, err := a.Runs()
			if err != nil {
				return true // when it cannot be told, nobody's tree is taken away
			}
			r, err := runs.Get(id)
			if err != nil {
				return !errors.Is(err, run.ErrNotFound)
			}
			// One that a person was to decide about may be gone on with, and has no process
			// until it is: it would hold the place in which it goes on for ever.
			return !r.Status.Settled()
		},
	}), nil
}

// workspaceThere refuses to make anything for an agent whose workspace is gone:
// another place would be somebody else's.
func (a *App) workspaceThere() error {
	ws := a.Env.Get(hook.WorkspaceVar)
	if ws == "" {
		return nil
	}
	why := guard.Gone(ws)
	if why == "" {
		return nil
	}
	return exitWith(ExitConflict, fmt.Errorf("%s; end the session, and start it anew in a workspace", why))
}

func workspaceError(err error) error {
	var loss *workspace.LossError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, workspace.ErrNotFound):
		return exitWith(ExitNotFound, err)
	case errors.As(err, &loss), errors.Is(err, workspace.ErrExists), errors.Is(err, workspace.ErrLive), errors.Is(err, workspace.ErrBusy),
		errors.Is(err, workspace.ErrUnfinished), errors.Is(err, workspace.ErrMissing), errors.Is(err, workspace.ErrRefused),
		errors.Is(err, workspace.ErrPlace), errors.Is(err, workspace.ErrAmbiguous):
		return exitWith(ExitConflict, err)
	}
	return stateError(err)
}

func newWorkspaceCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "workspace", Aliases: []string{"ws"}, Short: "Places for agents to work in: a worktree of the code, with the agent's state in it",
		Long: `A workspace is a git worktree of the project on a branch of its own, and in it,
at .reprise/agent, the state of the agent that works there. Both are made in one
step and taken away in one step; what is in a workspace and nowhere else is
never lost by that.`,
	}
	cmd.AddCommand(newWorkspaceCreateCmd(app), newWorkspaceListCmd(app), newWorkspaceShowCmd(app), newWorkspaceEnvCmd(app), newWorkspaceEnterCmd(app),
		newWorkspaceRemoveCmd(app), newWorkspaceSavedCmd(app), newWorkspaceRestoreCmd(app))
	return cmd
}

func newWorkspaceCreateCmd(app *App) *cobra.Command {
	var o workspace.CreateOptions
	var tmux, noCarry, asJSON bool
	var path string
	cmd := &cobra.Command{
		Use: "create NAME", Args: cobra.ExactArgs(1), Short: "Make one: branch, worktree and the agent's state, or nothing of it",
		Long: `Make a workspace for the agent NAME (lower-case letters, digits, - _ .). The
worktree goes to PROJECT.workspaces/NAME beside the main checkout, or to --path;
its branch has the workspace's name, or is --branch, which is gone on with where
it exists. It begins at the commit that is checked out here, or at --base;
changes that are not committed do not come along, nor does what git ignores, but
for the directories that "carry" of the approved project file or --carry names.

A command that is killed leaves nothing: the next one that makes or removes a
workspace takes back what there was, and says so.`,
		Example: `  reprise workspace create auth
  reprise workspace create auth --base origin/main --branch feature/auth --tmux
  eval "$(reprise workspace env auth)"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name, o.From = args[0], app.Env.Dir
			if err := staterepo.CheckName(o.Name); err != nil {
				return exitWith(ExitUsage, err)
			}
			if path != "" {
				o.Dir = app.abs(path)
			}
			if _, _, err := app.ensureState(cmd.Context()); err != nil {
				return err
			}
			ws, err := app.Workspaces()
			if err != nil {
				return err
			}
			if tmux {
				if _, err := ws.FindTmux(); err != nil {
					return err
				}
			}
			home, err := app.Home()
			if err != nil {
				return err
			}
			if !noCarry {
				o.Carry = append(o.Carry, carried(home)...)
			}
			if err := app.ownRepository(cmd.Context(), home.Project.Root); err != nil {
				return err
			}
			c, err := ws.Create(cmd.Context(), o)
			app.noteState(c.Notes)
			if errors.Is(err, workspace.ErrPlace) {
				err = fmt.Errorf("%w; or pass another directory by --path", err)
			}
			if err != nil {
				return workspaceError(err)
			}
			if tmux {
				if _, err := ws.Tmux(cmd.Context(), c.Workspace, app.Environ); err != nil {
					fmt.Fprintf(app.Err, "note: the workspace is there, and has no tmux session: %s\n", term.SafeLine(err.Error()))
				}
			}
			if asJSON {
				return printJSON(app.Out, c)
			}
			return sayCreated(app, &c.Workspace, tmux)
		},
	}
	f := cmd.Flags()
	f.StringVar(&path, "path", "", "`DIR` for the worktree, not there yet or empty")
	f.StringVar(&o.Branch, "branch", "", "the code `BRANCH`; one that exists is gone on with")
	f.StringVar(&o.Base, "base", "", "`REVISION` that a new branch begins at")
	f.BoolVar(&o.Attach, "attach", false, "go on with the branches that an earlier workspace of that name left")
	f.StringArrayVar(&o.Carry, "carry", nil, "`PATTERN` of directories that git ignores and that are copied; may be repeated")
	f.BoolVar(&noCarry, "no-carry", false, "copy only what --carry names")
	f.BoolVar(&tmux, "tmux", false, "start a tmux session in it, too")
	f.BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

// carried are the patterns of the project file, where that is approved.
func carried(home *config.Home) []string {
	t, err := home.Paths.Trust(home.Project)
	if err != nil || !t.Approved || t.Says.Verify == nil {
		return nil
	}
	return t.Says.Verify.Carry
}

func sayCreated(app *App, w *workspace.Workspace, tmux bool) error {
	fmt.Fprintf(app.Out, "workspace %s: %s\n", app.Style().Bold(w.Name), term.SafeLine(w.Dir))
	fmt.Fprintf(app.Out, "  branch  %s, at %.12s\n", term.SafeLine(w.Branch), w.Base)
	fmt.Fprintf(app.Out, "  agent   %s, %s\n", w.AgentBranch(), term.SafeLine(w.AgentDir))
	if tmux {
		fmt.Fprintf(app.Out, "  tmux    tmux attach -t =%s\n", w.TmuxName())
	}
	fmt.Fprintf(app.Out, "  enter   reprise workspace enter %s\n", w.Name)
	return nil
}

func newWorkspaceListCmd(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: cobra.NoArgs, Short: "List the workspaces, who works in them, and what is wrong",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ws, err := app.Workspaces()
			if err != nil {
				return err
			}
			list, err := ws.List()
			if asJSON {
				if list == nil {
					list = []workspace.Info{}
				}
				return errors.Join(printJSON(app.Out, list), workspaceError(err))
			}
			if len(list) == 0 && err == nil {
				fmt.Fprintln(app.Err, "there is no workspace; `reprise workspace create NAME` makes one")
				return nil
			}
			table := term.NewTable(app.Style(), "NAME", "STATUS", "BRANCH", "WHO", "DIRECTORY").MaxWidth(app.Columns)
			for _, i := range list {
				table.Row(i.Name, i.Status, term.SafeLine(i.Branch), term.SafeLine(whoWorks(i)), term.SafeLine(i.Dir))
			}
			if err := table.Write(app.Out); err != nil {
				return err
			}
			for _, i := range list {
				if i.Note != "" {
					fmt.Fprintf(app.Err, "%s: %s\n", i.Name, term.SafeLine(i.Note))
				}
			}
			return workspaceError(err)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print them for programs")
	return cmd
}

func whoWorks(i workspace.Info) string {
	var who []string
	for _, h := range i.Live {
		who = append(who, h.String())
	}
	who = append(who, i.Inside...)
	switch {
	case len(who) == 0 && i.Kept != "":
		return "kept: " + i.Kept
	case len(who) == 0:
		return "nobody"
	}
	return strings.Join(who, ", ")
}

// unpromoted says how much of an agent's is not the project's.
func unpromoted(n int) string {
	switch n {
	case 0:
		return "nothing left to promote"
	case 1:
		return "1 learning or decision not promoted"
	}
	return fmt.Sprintf("%d learnings and decisions not promoted", n)
}

// completeWorkspaces offers the names of workspaces.
func completeWorkspaces(app *App) completer {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		ws, err := app.Workspaces()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list, _ := ws.List() // what can be read is offered
		var words []string
		for _, i := range list {
			words = append(words, cobra.CompletionWithDesc(i.Name, i.Status+", branch "+i.Branch))
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// thisWorkspace is the name that was given, or that of the workspace around the
// working directory.
func (a *App) thisWorkspace(args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	home, err := a.Home()
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(a.Env.Dir)
	if err != nil {
		return "", err
	}
	name, _ := find.Of(home.Paths.ProjectDir(home.Project.Name), real)
	if name == "" {
		return "", usagef("this directory is in no workspace; give a name (`reprise workspace list`)")
	}
	return name, nil
}

func newWorkspaceShowCmd(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show [NAME]", Args: cobra.MaximumNArgs(1), Short: "Show a workspace: what is in it, who works there", ValidArgsFunction: completeWorkspaces(app),
		RunE: func(cmd *cobra.Command, args []string) error {
			ws, err := app.Workspaces()
			if err != nil {
				return err
			}
			name, err := app.thisWorkspace(args)
			if err != nil {
				return err
			}
			d, err := ws.Detail(cmd.Context(), name)
			if err != nil {
				return workspaceError(err)
			}
			if asJSON {
				return printJSON(app.Out, d)
			}
			showWorkspace(app, &d)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

func showWorkspace(app *App, d *workspace.Detail) {
	line := func(name, format string, args ...any) {
		app.said(fmt.Sprintf("  %-9s ", name), term.SafeLine(fmt.Sprintf(format, args...)))
	}
	fmt.Fprintf(app.Out, "workspace %s of project %s: %s\n", app.Style().Bold(d.Name), d.Project, d.Status)
	line("directory", "%s", d.Dir)
	line("branch", "%s", d.Branch)
	if d.Head != "" && d.OnBranch != d.Branch {
		on := "no branch"
		if d.OnBranch != "" {
			on = d.OnBranch
		}
		line("now on", "%s", on)
	}
	if d.Head != "" {
		line("work", "%s since %.12s, %d of them nowhere else; %s changed, %d untracked", term.Plural(d.Commits, "commit"), d.Base, d.Own, term.Plural(d.Changed, "file"), d.Untracked)
	}
	line("agent", "%s, %s", d.AgentBranch(), unpromoted(d.Unpromoted))
	line("state", "%s", d.AgentDir)
	line("made", "%s", d.CreatedAt.Format("2006-01-02 15:04:05Z"))
	for _, who := range d.Inside {
		line("at work", "%s", who)
	}
	for _, h := range d.Live {
		line("at work", "%s, since %s", h, h.Since.Format("2006-01-02 15:04:05Z"))
	}
	if d.Kept != "" {
		line("kept", "%s", d.Kept)
	}
	if d.Note != "" {
		line("note", "%s", d.Note)
	}
}

func newWorkspaceRemoveCmd(app *App) *cobra.Command {
	var o workspace.RemoveOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use: "remove NAME", Aliases: []string{"rm"}, Args: cobra.ExactArgs(1), Short: "Take a workspace away, without losing what is in it", ValidArgsFunction: completeWorkspaces(app),
		Long: `Take a workspace away: the worktree, the checkout of the agent's state, and the
code branch where it was made for the workspace and all its commits are
elsewhere, too. The agent's branch always stays (` + "`reprise state gc`" + ` sees to it
once it is consolidated).

What is in the workspace and nowhere else is listed, and nothing is done. With
--yes it is kept, and the workspace goes: changed and untracked files and
commits on no branch under refs/reprise/saved/NAME/, in the form of a stash;
files that git ignores, and stashes and branches of submodules, among
reprise's data. ` + "`reprise workspace restore`" + ` brings it back, and so does
` + "`git stash apply REF`" + `. Directories that tools fill again (node_modules, target and
their like) are not kept.

A workspace that somebody works in is refused, whatever is passed.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := app.mayWriteState(); err != nil {
				return err
			}
			ws, err := app.Workspaces()
			if err != nil {
				return err
			}
			was, _ := ws.Get(args[0]) // what is wrong with it is said by the removal
			r, err := ws.Remove(cmd.Context(), args[0], o)
			if err != nil {
				return workspaceError(err)
			}
			app.noteState(r.Notes)
			if asJSON {
				return printJSON(app.Out, r)
			}
			fmt.Fprintf(app.Out, "removed workspace %s\n", app.Style().Bold(r.Name))
			for _, kept := range []string{r.Saved, r.Kept} {
				if kept != "" {
					fmt.Fprintf(app.Out, "  kept    %s\n", kept)
				}
			}
			if r.Saved != "" || r.Kept != "" {
				there, main := "", cmp.Or(config.MainCheckout(was.Common), filepath.Dir(was.Common))
				if home, err := app.Home(); err == nil && r.Saved != "" && was.Common != "" && !pathname.Same(main, home.Project.Main) && !pathname.Same(git.CommonDir(home.Project.Root), was.Common) {
					there = "cd " + shellWords([]string{main}) + " && " // it is of another clone, whose git has it
				}
				fmt.Fprintf(app.Out, "  back    %sreprise workspace restore %s\n", there, r.Name)
			}
			switch {
			case r.Branch == "" || r.BranchAt == "":
			case r.BranchGone:
				fmt.Fprintf(app.Out, "  branch  %s is gone; it was at %.12s\n", term.SafeLine(r.Branch), r.BranchAt)
			default:
				fmt.Fprintf(app.Out, "  branch  %s stays, at %.12s\n", term.SafeLine(r.Branch), r.BranchAt)
			}
			if r.AgentBranch != "" {
				fmt.Fprintf(app.Out, "  agent   branch %s of its state stays; `reprise workspace create %s --attach` goes on with it\n", r.AgentBranch, r.Name)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.Save, "yes", "y", false, "keep what is in it and nowhere else, and take it away")
	f.BoolVar(&o.DeleteBranch, "delete-branch", false, "take the code branch away, too; its own commits are kept under the ref")
	f.BoolVar(&o.DropIgnored, "drop-ignored", false, "let go what git ignores and is too large to be kept")
	f.BoolVar(&asJSON, "json", false, "print what was done for programs")
	return cmd
}

func newWorkspaceSavedCmd(app *App) *cobra.Command {
	var drop string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "saved [NAME]", Args: cobra.MaximumNArgs(1), Short: "List what was kept of workspaces that were removed",
		RunE: func(cmd *cobra.Command, args []string) error {
			ws, err := app.Workspaces()
			if err != nil {
				return err
			}
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			list, err := ws.ListSaved(cmd.Context(), name)
			if err != nil {
				return workspaceError(err)
			}
			if drop != "" {
				return dropSaved(cmd.Context(), app, ws, list, drop)
			}
			if asJSON {
				if list == nil {
					list = []workspace.Saved{}
				}
				return printJSON(app.Out, list)
			}
			for _, root := range ws.Elsewhere(cmd.Context(), name) {
				fmt.Fprintf(app.Err, "note: another clone keeps something, which is listed and brought back there: %s\n", term.SafeLine(root))
			}
			if len(list) == 0 {
				fmt.Fprintln(app.Err, "nothing was kept in this clone")
				return nil
			}
			for _, s := range list {
				fmt.Fprintf(app.Out, "%s  %s  %s\n", app.Style().Bold(term.SafeLine(s.Workspace)), s.At.Format("2006-01-02 15:04:05Z"), term.SafeLine(savedText(s)))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&drop, "drop", "", "forget, for good, what was kept under `REF` (or the directory of ignored files)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

func savedText(s workspace.Saved) string {
	var parts []string
	if s.Ref != "" {
		parts = append(parts, s.Ref)
	}
	if s.Kept != "" {
		parts = append(parts, fmt.Sprintf("%s (%d bytes that git ignores, or that submodules had)", s.Kept, s.Bytes))
	}
	return strings.Join(parts, " and ")
}

func dropSaved(ctx context.Context, app *App, ws *workspace.Manager, list []workspace.Saved, drop string) error {
	if _, err := app.mayWriteState(); err != nil {
		return err
	}
	for _, s := range list {
		if s.Ref == drop || s.Ref == "" && s.Kept == drop {
			if err := ws.DropSaved(ctx, s); err != nil {
				return workspaceError(err)
			}
			fmt.Fprintf(app.Out, "forgot %s\n", term.SafeLine(savedText(s)))
			return nil
		}
	}
	return exitWith(ExitNotFound, fmt.Errorf("nothing is kept under %s; `reprise workspace saved` lists what is", drop))
}

func newWorkspaceRestoreCmd(app *App) *cobra.Command {
	var o workspace.RestoreOptions
	var path string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "restore NAME", Args: cobra.ExactArgs(1), Short: "Make a workspace again of what was kept of it",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			if path != "" {
				o.Dir = app.abs(path)
			}
			if _, _, err := app.ensureState(cmd.Context()); err != nil {
				return err
			}
			ws, err := app.Workspaces()
			if err != nil {
				return err
			}
			r, err := ws.Restore(cmd.Context(), o)
			app.noteState(r.Notes)
			if err != nil {
				return workspaceError(err)
			}
			if asJSON {
				return printJSON(app.Out, r)
			}
			return sayCreated(app, &r.Workspace, false)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Ref, "ref", "", "which `REF`, where several things were kept")
	f.BoolVar(&o.Newest, "newest", false, "the newest, where several things were kept")
	f.StringVar(&o.As, "as", "", "the new workspace's `NAME`")
	f.StringVar(&path, "path", "", "`DIR` for the worktree, not there yet or empty")
	f.StringVar(&o.Branch, "branch", "", "the code `BRANCH`, in place of the one it was on")
	f.BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}
