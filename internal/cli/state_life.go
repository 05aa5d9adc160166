package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/memory"
	"reprise/internal/redact"
	"reprise/internal/session"
	"reprise/internal/staterepo"
	"reprise/internal/term"
	"reprise/internal/workspace/find"
)

func newStatePlanCmd(app *App) *cobra.Command {
	var add bool
	cmd := &cobra.Command{
		Use: "plan [TEXT]", Args: cobra.MaximumNArgs(1), Short: "Show the project's plan, or write it",
		Long: `Show plan.md, which all agents share, or put TEXT in its place; --add puts TEXT
behind what is there. TEXT of - reads standard input. Where two changed the same
place, an exchange leaves both versions there under a notice.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if len(args) == 0 {
				repo, err := app.State()
				if err != nil {
					return err
				}
				if _, err := os.Stat(repo.Global().Dir); err != nil {
					return nil //nolint:nilerr // there is none yet
				}
				text, err := repo.Global().Read("plan.md")
				if err != nil {
					return stateError(err)
				}
				fmt.Fprint(app.Out, term.SafeText(text))
				return nil
			}
			if err := noCommand(cmd, args[0]); err != nil && !add {
				return err
			}
			text, err := textArg(ctx, app, args[0])
			if err != nil {
				return err
			}
			repo, access, err := app.ensureState(ctx)
			if err != nil {
				return err
			}
			was, err := repo.Global().Read("plan.md")
			if err != nil {
				return stateError(err)
			}
			if old := was; add {
				if old = strings.TrimRight(old, "\n"); old != "" {
					text = old + "\n\n" + text
				}
			}
			if text = strings.TrimRight(text, "\n") + "\n"; len(text) > memory.MaxContent {
				return usagef("the plan would have %d bytes, at most %d are allowed", len(text), memory.MaxContent)
			}
			s, err := repo.Global().Write(ctx, access, "plan.md", redacted(text), "plan")
			if err != nil {
				return stateError(err)
			}
			app.noteState(s.Notes)
			fmt.Fprintf(app.Out, "plan.md  %s\n", app.Style().Dim("(of all agents)"))
			if !add {
				app.sayReplaced(s, repo.Global().Dir, "plan.md", was, text)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&add, "add", false, "put it behind what is there, in place of replacing that")
	addShow(cmd, "show", "Show the project's plan")
	return cmd
}

func newStateBranchCmd(app *App) *cobra.Command {
	var asJSON, all bool
	var status string
	cmd := &cobra.Command{
		Use: "branch [TEXT]", Args: cobra.MaximumNArgs(1), Short: "Show what is known of the code's branch, or write it",
		Long: `Show what is known of the branch of the code that is checked out here, or put
TEXT in its place. It stands in branches/NAME.md of what all agents share, so
that it survives rebases; where the branch was renamed, it moves along. It is
made by the first TEXT, and where git's hooks are installed
(` + "`reprise state hooks`" + `) by a switch to the branch.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if err := noCommand(cmd, args[0]); err != nil {
					return err
				}
				if err := app.noBranch(cmd, args[0]); err != nil {
					return err
				}
			}
			return branchContext(cmd.Context(), app, args, status, all, asJSON)
		},
	}
	cmd.Flags().StringVar(&status, "status", "", strings.Join(staterepo.Statuses(), ", "))
	cmd.Flags().BoolVar(&all, "all", false, "list all branches of which something is known")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	offer(cmd, "status", staterepo.Statuses()...)
	cmd.AddCommand(newBranchShowCmd(app))
	return cmd
}

func newBranchShowCmd(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show [NAME]", Args: cobra.MaximumNArgs(1), Short: "Show what is known of a branch of the code (default: the one here)",
		RunE: func(_ *cobra.Command, args []string) error {
			repo, err := app.State()
			if err != nil {
				return err
			}
			list, err := repo.Branches()
			if err != nil {
				return stateError(err)
			}
			name, err := app.codeBranch()
			if len(args) > 0 {
				name, err = args[0], nil
			}
			if err != nil {
				return err
			}
			return showBranch(app, list, name, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

// codeBranch is the branch of the code around the working directory.
func (a *App) codeBranch() (string, error) {
	name := config.CodeBranch(a.Env.Dir)
	if name == "" {
		return "", exitWith(ExitNotFound, fmt.Errorf("the code here is on no branch: it is no git repository, or HEAD is at a commit"))
	}
	return name, nil
}

// noBranch refuses a text that is the name of a branch: who gives one wants to see what
// is known of it.
func (a *App) noBranch(cmd *cobra.Command, text string) error {
	if text == "-" || strings.ContainsAny(text, " \t\r\n") {
		return nil
	}
	id, err := git.New(topOf(a.Env.Dir), git.Options{Vars: a.Env.Vars}).Resolve(cmd.Context(), "refs/heads/"+text)
	if err != nil || id == "" {
		return nil //nolint:nilerr // no branch, or nothing that git can tell of
	}
	return usagef("%s is a branch of the code, so nothing was written: `%s show %s` shows what is known of it, and TEXT is what is to be known of the branch that is checked out", term.SafeLine(text), cmd.CommandPath(), shellWords([]string{text}))
}

func showBranch(app *App, list []staterepo.BranchContext, name string, asJSON bool) error {
	i := slices.IndexFunc(list, func(b staterepo.BranchContext) bool { return b.File == staterepo.BranchFile(name) })
	if i < 0 {
		fmt.Fprintf(app.Err, "nothing is known of branch %s yet\n", term.SafeLine(name))
		return nil
	}
	if asJSON {
		return printJSON(app.Out, list[i])
	}
	fmt.Fprintf(app.Out, "%s  %s  %s\n\n%s\n", app.Style().Bold(term.SafeLine(name)), term.SafeLine(statusSaid(list[i].Status)), app.Style().Dim(list[i].File), term.SafeText(list[i].Text))
	return nil
}

func branchContext(ctx context.Context, app *App, args []string, status string, all, asJSON bool) error {
	repo, err := app.State()
	if err != nil {
		return err
	}
	if status != "" && !slices.Contains(staterepo.Statuses(), status) {
		return usagef("--status %q: there are %s", clipText(status, 40), strings.Join(staterepo.Statuses(), ", "))
	}
	list, err := repo.Branches()
	if err != nil {
		return stateError(err)
	}
	if all {
		if asJSON {
			return printJSON(app.Out, append([]staterepo.BranchContext{}, list...))
		}
		for _, b := range list {
			fmt.Fprintf(app.Out, "%s  %s  %s\n", app.Style().Bold(term.SafeLine(b.Branch)), term.SafeLine(cmp.Or(statusSaid(b.Status), "–")), term.SafeLine(b.Agent))
		}
		return nil
	}
	name, err := app.codeBranch()
	if err != nil {
		return err
	}
	if len(args) == 0 && status == "" {
		return showBranch(app, list, name, asJSON)
	}
	text := ""
	if len(args) > 0 {
		if text, err = textArg(ctx, app, args[0]); err != nil {
			return err
		}
	}
	b, err := app.onBranch(ctx, name)
	if err == nil {
		b, err = repo.WriteBranch(ctx, memory.FullAccess, name, redacted(text), status)
	}
	if err != nil {
		return stateError(err)
	}
	if asJSON {
		return printJSON(app.Out, b)
	}
	fmt.Fprintf(app.Out, "%s  %s\n", b.File, app.Style().Dim("(of all agents)"))
	if i := slices.IndexFunc(list, func(x staterepo.BranchContext) bool { return x.File == b.File }); i >= 0 && text != "" && list[i].Text != b.Text {
		fmt.Fprintf(app.Err, "what stood there: git -C %s log -p -- %s\n", shellWords([]string{repo.Global().Dir}), shellWords([]string{b.File}))
	}
	return nil
}

// onBranch notes that the agent that works here is on a branch of the code.
func (a *App) onBranch(ctx context.Context, name string) (staterepo.BranchContext, error) {
	repo, access, err := a.ensureState(ctx)
	if err != nil {
		return staterepo.BranchContext{}, err
	}
	agent := a.writer()
	if t, err := a.agentTree(ctx, repo, false); err != nil {
		return staterepo.BranchContext{}, err
	} else if t != nil {
		agent = t.Agent()
	}
	b, _, err := repo.Switched(ctx, access, git.New(topOf(a.Env.Dir), git.Options{Vars: a.Env.Vars}), name, agent)
	return b, err
}

func newStateForkCmd(app *App) *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use: "fork NAME", Args: cobra.ExactArgs(1), Short: "Make an agent's state that goes on from another one's",
		Long: `Make the branch of an agent NAME that begins with all that the agent of --from
has (default: the one that works here). In the checkout that NAME is to work in,
` + "`reprise state init --agent NAME --attach`" + ` then goes on with it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			repo, _, err := app.ensureState(cmd.Context())
			if err != nil {
				return err
			}
			if from, err = app.agentNamed(cmd.Context(), repo, from); err != nil {
				return err
			}
			tip, err := repo.Fork(cmd.Context(), from, args[0])
			if err != nil {
				return stateError(err)
			}
			fmt.Fprintf(app.Out, "%s goes on from %s, %.12s\n", args[0], from, tip)
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "go on from this `AGENT`")
	return cmd
}

// agentNamed is the agent of that name, or without one the one that works here.
func (a *App) agentNamed(ctx context.Context, repo *staterepo.Repo, name string) (string, error) {
	if name != "" {
		return name, nil
	}
	t, err := a.agentTree(ctx, repo, false)
	if err != nil {
		return "", err
	}
	if t == nil {
		return "", stateError(fmt.Errorf("%w works here; name another", staterepo.ErrNoAgent))
	}
	return t.Agent(), nil
}

func newStateRenameCmd(app *App) *cobra.Command {
	return &cobra.Command{
		Use: "rename NAME", Args: cobra.ExactArgs(1), Short: "Give the agent that works here another name",
		Long: `Give the agent that works here another name, as where another machine has one of
the same name. What it wrote stays as it is; an entry of its log says what it
was called, so that ` + "`reprise team`" + ` shows one agent, and handoffs for the old
name reach it as long as no other agent has that name. An agent of a workspace
has the workspace's name.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			repo, access, err := app.ensureState(ctx)
			if err != nil {
				return err
			}
			home, err := app.Home()
			if err != nil {
				return err
			}
			t, err := app.agentTree(ctx, repo, false)
			if err != nil {
				return err
			}
			if t == nil {
				return stateError(fmt.Errorf("rename: %w works here", staterepo.ErrNoAgent))
			}
			if name, _ := find.Of(home.Paths.ProjectDir(home.Project.Name), t.Dir); name != "" {
				return exitWith(ExitConflict, fmt.Errorf("rename: %s is the agent of workspace %s; make another workspace, and go on there", t.Agent(), name))
			}
			next, err := t.Rename(ctx, access, args[0])
			if err != nil {
				return stateError(err)
			}
			fmt.Fprintf(app.Out, "agent %s is %s now\n", t.Agent(), next.Agent())
			return nil
		},
	}
}

func newStateResetCmd(app *App) *cobra.Command {
	var really bool
	cmd := &cobra.Command{
		Use: "reset", Args: cobra.NoArgs, Short: "Let the agent that works here begin anew",
		Long: `Let the agent that works here begin anew, with empty files. What it had is kept
under refs/reprise/kept/, here and on the remote; what was promoted stays with
all. What is not promoted yet is listed first, and only --yes does it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			repo, access, err := app.ensureState(ctx)
			if err != nil {
				return err
			}
			name, err := app.agentNamed(ctx, repo, "")
			if err != nil {
				return err
			}
			if !really {
				return app.unpromoted(ctx, repo, name)
			}
			t, err := app.agentTree(ctx, repo, false)
			if err != nil {
				return err
			}
			kept, err := t.Reset(ctx, access)
			if err != nil {
				return stateError(err)
			}
			fmt.Fprintf(app.Out, "agent %s begins anew; what it had is %s\n", name, kept)
			return nil
		},
	}
	cmd.Flags().BoolVarP(&really, "yes", "y", false, "do it")
	return cmd
}

// unpromoted lists what of an agent's is not the project's, before its state goes.
func (a *App) unpromoted(ctx context.Context, repo *staterepo.Repo, name string) error {
	list, err := repo.Unpromoted(ctx, name)
	if err != nil {
		return stateError(err)
	}
	for _, e := range list {
		fmt.Fprintf(a.Out, "%s  %s  %s\n", e.ID, e.Type, term.SafeLine(e.Title()))
	}
	left := "nothing of " + name + " is left to promote"
	if len(list) > 0 {
		left = fmt.Sprintf("of %s, %d learnings and decisions are not the project's", name, len(list))
		if len(list) == 1 {
			left = "of " + name + ", one learning or decision is not the project's"
		}
		left += "; `reprise context promote --agent " + name + "` gives them to all"
	}
	return exitWith(ExitConflict, fmt.Errorf("%s. Nothing was changed; pass --yes to do it", left))
}

func newStateArchiveCmd(app *App) *cobra.Command {
	var really bool
	cmd := &cobra.Command{
		Use: "archive AGENT", Args: cobra.ExactArgs(1), Short: "Take away the branch of an agent that works nowhere, and keep it",
		Long: `Take the branch of an agent away that works nowhere on this machine any more,
whether it was consolidated or not, and keep it under refs/reprise/kept/, here
and on the remote. What is not promoted yet is listed first, and only --yes does
it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			repo, _, err := app.ensureState(cmd.Context())
			if err != nil {
				return err
			}
			if !really {
				return app.unpromoted(cmd.Context(), repo, args[0])
			}
			item, err := repo.Archive(cmd.Context(), args[0])
			if err != nil {
				return stateError(err)
			}
			fmt.Fprintf(app.Out, "agent %s is %s\n", args[0], item.Why)
			return nil
		},
	}
	cmd.Flags().BoolVarP(&really, "yes", "y", false, "do it")
	return cmd
}

func newArtifactCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{Use: "artifact", Short: "Keep files that the agent made beside its state"}
	var name string
	var replace bool
	add := &cobra.Command{
		Use: "add FILE", Args: cobra.ExactArgs(1), Short: "Keep a copy of a file in the agent's artifacts/",
		Long: `Keep a copy of FILE in artifacts/ of the agent that works here, under its own
name or --name, and commit it. A text with a secret in it is refused: state is
exchanged.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			path := args[0]
			if !filepath.IsAbs(path) {
				path = filepath.Join(app.Env.Dir, path)
			}
			fi, err := os.Stat(path)
			switch {
			case err != nil:
				return exitWith(ExitNotFound, fmt.Errorf("keep artifact: %w", err))
			case !fi.Mode().IsRegular():
				return usagef("keep artifact: %s is no file", args[0])
			case fi.Size() > 32<<20:
				return usagef("keep artifact: %s has %d MB, at most 32 are kept", args[0], fi.Size()>>20)
			}
			data, err := durable.Read(path)
			if err != nil {
				return fmt.Errorf("keep artifact: %w", err)
			}
			if _, found := redact.New().String(string(data)); found > 0 {
				return exitWith(ExitConflict, fmt.Errorf("keep artifact: there is a secret in %s; take it out first", args[0]))
			}
			j, err := app.journal(cmd.Context())
			if err != nil {
				return err
			}
			at := filepath.ToSlash(cmp.Or(name, filepath.Base(path)))
			s, err := j.tree.AddArtifact(cmd.Context(), j.access, at, data, replace)
			if err != nil {
				return stateError(err)
			}
			app.noteState(s.Notes)
			fmt.Fprintf(app.Out, "artifacts/%s  %s\n", at, app.Style().Dim("(agent "+j.tree.Agent()+")"))
			return nil
		},
	}
	add.Flags().StringVar(&name, "name", "", "keep it as `NAME`, which may have directories")
	add.Flags().BoolVar(&replace, "replace", false, "in place of another one of that name")
	cmd.AddCommand(add)
	return cmd
}

// collectRepos is `state gc --repos`.
func collectRepos(ctx context.Context, app *App, unused string, really, asJSON bool) error {
	since, err := pastTime(app, "--unused", unused)
	if err != nil {
		return err
	}
	if really {
		if _, err := app.mayWriteState(); err != nil {
			return err
		}
	}
	home, err := app.Home()
	if err != nil {
		return err
	}
	out := []staterepo.Unused{}
	for _, name := range session.Projects(home) {
		if home.Project != nil && home.Project.Name == name {
			continue
		}
		repo, err := app.stateOf(home, name)
		if err != nil {
			return err
		}
		there := repo.Exists()
		roots, err := home.Paths.ClaimedRoots(name)
		if err != nil {
			return conflict(err)
		}
		bundle := ""
		if really {
			bundle = filepath.Join(home.Paths.Data, "archive", name+"-"+app.Now().UTC().Format("20060102-150405")+".bundle")
		}
		u, err := repo.Retire(ctx, roots, since, bundle)
		if err != nil {
			return stateError(err)
		}
		if there { // else what a killed command had left of it is gone now
			out = append(out, u)
		}
	}
	if asJSON {
		return printJSON(app.Out, out)
	}
	gone := 0
	for _, u := range out {
		done := "stays"
		if u.Remove {
			gone++
			if done = "would go"; really {
				done = "gone, kept in " + u.Bundle
			}
		}
		fmt.Fprintf(app.Out, "%s  %s: %s (last commit %s)\n", term.SafeLine(u.Project), term.SafeLine(done), term.SafeLine(u.Why), u.Last.Format(time.DateOnly))
	}
	if gone > 0 && !really {
		fmt.Fprintln(app.Err, "nothing was changed; pass --yes to do it")
	}
	return nil
}
