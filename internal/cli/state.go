package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/event"
	"reprise/internal/git"
	"reprise/internal/hook"
	"reprise/internal/memory"
	"reprise/internal/staterepo"
	"reprise/internal/term"
)

// agentDirVar names the directory of the agent's state, where it is not the one
// of the checkout around the working directory.
const agentDirVar = "REPRISE_AGENT_DIR"

// State is the state repository of the project around the working directory.
func (a *App) State() (*staterepo.Repo, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	if home.Project == nil {
		return nil, exitWith(ExitNotFound, a.noProject())
	}
	if err := config.CheckName(home.Paths, home.Project); err != nil {
		return nil, conflict(err)
	}
	return a.stateOf(home, home.Project.Name)
}

func (a *App) stateOf(home *config.Home, project string) (*staterepo.Repo, error) {
	index, err := a.anyIndex()
	if err != nil {
		return nil, err
	}
	global := home.Paths.ProjectGlobal(project)
	return staterepo.New(staterepo.Options{
		Dir: home.Paths.ProjectDir(project), Project: project, Begun: home.Paths.NamesOf(project)[0], Git: git.Options{Vars: a.Env.Vars}, Now: a.Env.Now,
		Merge: memory.MergeFile,
		AfterWrite: func(path string) {
			if name, ok := strings.CutPrefix(path, global+string(os.PathSeparator)); ok {
				index.TouchIn(project, name)
			}
		},
		By:      a.writer(),
		Changed: func(ctx context.Context, c staterepo.Change) { a.stateChanged(ctx, project, c) },
	}), nil
}

// writer is who writes here: the agent's name, "" for a person.
func (a *App) writer() string {
	if a.person() {
		return ""
	}
	return a.Env.Get(hook.AgentVar)
}

// stateChanged records what was committed to a project's state. That it cannot be
// logged is a note: the state is what counts, and it is written.
func (a *App) stateChanged(ctx context.Context, project string, c staterepo.Change) {
	data, err := jsonData(event.StateData{Op: c.Op, Agent: c.Agent, Commit: c.Commit, ID: c.ID, Type: c.Type, Title: clipText(c.Title, 200), Files: c.Files[:min(len(c.Files), 20)]})
	if err == nil {
		var broker *event.Broker
		if broker, err = a.Broker(event.Event{Agent: a.Env.Get(hook.AgentVar)}); err == nil {
			_, err = broker.Record(ctx, event.Event{
				Scope: event.ScopeProject, Project: project, Session: a.clientSession(a.Now().Add(-turnAtMost))(ctx),
				Type: event.StateChanged, Data: data, Outcome: "success",
			})
		}
	}
	if err != nil {
		fmt.Fprintf(a.Err, "note: the change is made, but the event of it is not logged: %v\n", err)
	}
}

// mayWriteState refuses a run that may not write the memory: state is part of it.
func (a *App) mayWriteState() (memory.Access, error) {
	access, err := a.memoryAccess()
	if err != nil {
		return access, err
	}
	return access, access.MayWrite()
}

// ensureState makes the project's state repository, takes in what is there, and
// says what it made or mended.
func (a *App) ensureState(ctx context.Context) (*staterepo.Repo, memory.Access, error) {
	access, err := a.mayWriteState()
	if err != nil {
		return nil, access, err
	}
	repo, err := a.ensuredState(ctx)
	return repo, access, err
}

// ensuredState is [App.ensureState] for one who may write.
func (a *App) ensuredState(ctx context.Context) (*staterepo.Repo, error) {
	repo, err := a.State()
	if err != nil {
		return nil, err
	}
	if err := a.claim(ctx); err != nil {
		return nil, conflict(err)
	}
	made, err := repo.Ensure(ctx)
	a.noteState(made.Repaired)
	if err != nil {
		return nil, stateError(err)
	}
	if made.New {
		s, err := repo.Global().Save(ctx, "", "What was there before")
		a.noteState(s.Notes)
		if err != nil {
			return nil, stateError(err)
		}
	}
	return repo, nil
}

func (a *App) noteState(notes []string) {
	for _, n := range notes {
		fmt.Fprintf(a.Err, "note: %s\n", term.SafeLine(n))
	}
}

// agentTree is the state of the agent that works here. It is made when make is set
// and there is none; else it is nil then.
func (a *App) agentTree(ctx context.Context, repo *staterepo.Repo, make bool) (*staterepo.Tree, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	dir := a.Env.Get(agentDirVar)
	if dir == "" {
		dir = config.AgentDir(home.Project, a.Env.Dir)
	}
	t, err := repo.Open(ctx, dir)
	if t != nil || err != nil || !make {
		return t, stateError(err)
	}
	return a.makeAgent(ctx, repo, home, dir, "", false)
}

// ownTree is the state of the agent that works here, nil where there is none yet.
func (a *App) ownTree(ctx context.Context) (*staterepo.Tree, error) {
	repo, err := a.State()
	if err != nil {
		return nil, err
	}
	return a.readTree(ctx, repo)
}

// readTree is the state of the agent that works here, to be read: what is shown is that of
// the directory, and where REPRISE_AGENT names another agent, that is said.
func (a *App) readTree(ctx context.Context, repo *staterepo.Repo) (*staterepo.Tree, error) {
	t, err := a.agentTree(ctx, repo, false)
	if t != nil && err == nil && a.saysSo(t) != nil {
		a.noteState([]string{fmt.Sprintf("this is of %s, who works here; %s says %s", t.Agent(), hook.AgentVar, term.SafeLine(a.Env.Get(hook.AgentVar)))})
	}
	return t, err
}

// makeAgent makes an agent's state at dir. Without a name it takes that of the
// environment, the worktree's or the machine's, with a number where that is in use.
func (a *App) makeAgent(ctx context.Context, repo *staterepo.Repo, home *config.Home, dir, name string, attach bool) (*staterepo.Tree, error) {
	if err := a.workspaceThere(); err != nil {
		return nil, err
	}
	root := config.CheckoutRoot(home.Project, a.Env.Dir)
	if a.Env.Get(agentDirVar) == "" {
		if err := config.HideAgentDir(root); err != nil {
			return nil, err
		}
	}
	if name != "" {
		t, err := repo.CreateAgent(ctx, name, dir, attach)
		return t, stateError(err)
	}
	base := config.NameFrom(a.Env.Get(hook.AgentVar))
	if a.Env.Get(hook.AgentVar) == "" {
		base = config.NameFrom(a.Hostname)
		if main := home.Project.InMain(); root != main && root != home.Project.Root || home.Project.Root != main {
			base = config.NameFrom(root)
		}
	}
	if base == "" || staterepo.CheckName(base) != nil {
		base = "agent"
	}
	for n := 1; ; n++ {
		name := base
		if n > 1 {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		t, err := repo.CreateAgent(ctx, name, dir, attach)
		if !errors.Is(err, staterepo.ErrBranchExists) || n == 100 {
			return t, stateError(err)
		}
	}
}

func stateError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, staterepo.ErrNoAgent), errors.Is(err, staterepo.ErrUnknown):
		return exitWith(ExitNotFound, err)
	case errors.Is(err, staterepo.ErrName), errors.Is(err, staterepo.ErrType), errors.Is(err, staterepo.ErrStatus):
		return exitWith(ExitUsage, err)
	case errors.Is(err, staterepo.ErrBranchExists), errors.Is(err, staterepo.ErrLink), errors.Is(err, staterepo.ErrBusy), errors.Is(err, staterepo.ErrHeld), errors.Is(err, staterepo.ErrTaken), errors.Is(err, staterepo.ErrCheckpoint), errors.Is(err, staterepo.ErrArtifact):
		return exitWith(ExitConflict, err)
	}
	return memoryError(err)
}

func newStateCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{Use: "state", Short: "The repository of what a project's agents know, beside the code"}
	cmd.AddCommand(newStateInitCmd(app), newStateShowCmd(app),
		newStateSyncCmd(app, "sync", "Commit, and exchange with the remote", staterepo.Both),
		newStateSyncCmd(app, "pull", "Bring in what the remote has", staterepo.Pull),
		newStateSyncCmd(app, "push", "Send what the remote lacks; what came in is merged first", staterepo.Push),
		newStateFsckCmd(app), newStateGCCmd(app), newStatePlanCmd(app), newStateBranchCmd(app),
		newStateForkCmd(app), newStateRenameCmd(app), newStateResetCmd(app), newStateArchiveCmd(app), newStateHooksCmd(app), newStateMetricsCmd(app),
		newStateHoldersCmd(app), newStateCICmd(app))
	return cmd
}

func newStateInitCmd(app *App) *cobra.Command {
	var remote, agent, ignore string
	var attach bool
	cmd := &cobra.Command{
		Use: "init", Args: cobra.NoArgs, Short: "Make the repository and the state of the agent that works here",
		Long: `Make the project's state repository and check the agent's branch out at
.reprise/agent, where the code's git does not see it. Both are also made when
they are first needed; doing it again changes nothing.

What all agents share is the branch global, checked out among reprise's own
data. With --remote they are exchanged with another repository by
` + "`reprise state sync`" + `; --remote "" forgets it.

An agent's name is that of REPRISE_AGENT, of the linked worktree, or of this
machine. One that is in use is refused; --attach goes on with its branch where
its checkout is gone. Where another machine has an agent of the same name, the
one here is not exchanged until ` + "`reprise state rename`" + ` gave it another.`,
		Example: `  reprise state init
  reprise state init --remote git@example.org:team/shop-state.git
  reprise state init --agent tidy --ignore exclude`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			repo, _, err := app.ensureState(ctx)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("remote") {
				if strings.HasPrefix(remote, "./") || strings.HasPrefix(remote, "../") || remote == "." || remote == ".." {
					remote = filepath.Join(app.Env.Dir, remote) // git would take it from its own directory
				}
				if err := repo.SetRemote(ctx, remote); err != nil {
					return stateError(err)
				}
			}
			home, err := app.Home()
			if err != nil {
				return err
			}
			if ignore != "" {
				if err := app.hideAgentDir(home, ignore); err != nil {
					return err
				}
			}
			t, err := app.agentTree(ctx, repo, false)
			if err != nil {
				return err
			}
			switch {
			case t == nil:
				if t, err = app.makeAgent(ctx, repo, home, config.AgentDir(home.Project, app.Env.Dir), agent, attach); err != nil {
					return err
				}
			case agent != "" && agent != t.Agent():
				return exitWith(ExitConflict, fmt.Errorf("the agent that works here is %s already; `reprise state rename %s` gives it that name, and a linked worktree of the code gives another one a place", t.Agent(), agent))
			}
			fmt.Fprintf(app.Out, "state of project %s: %s\n", app.Style().Bold(home.Project.Name), term.SafeLine(repo.Dir()))
			fmt.Fprintf(app.Out, "  global  %s\n", term.SafeLine(repo.Global().Dir))
			fmt.Fprintf(app.Out, "  agent   %s, %s\n", t.Agent(), term.SafeLine(t.Dir))
			if !cmd.Flags().Changed("remote") {
				if remote, err = repo.Remote(ctx); err != nil {
					return stateError(err)
				}
			}
			showRemote(app, remote)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&remote, "remote", "", "exchange with the git repository at `URL`")
	f.StringVar(&agent, "agent", "", "the agent's `NAME`")
	f.BoolVar(&attach, "attach", false, "go on with the branch of that name")
	f.StringVar(&ignore, "ignore", "", "keep .reprise/agent out of the code's git by gitignore or by exclude (default: whichever has it, else exclude)")
	offer(cmd, "ignore", "gitignore", "exclude")
	return cmd
}

func (a *App) hideAgentDir(home *config.Home, how string) error {
	root := config.CheckoutRoot(home.Project, a.Env.Dir)
	switch how {
	case "exclude":
		return config.ExcludeAgentDir(root)
	case "gitignore":
		return config.IgnoreAgentDir(root)
	}
	return usagef("--ignore %q: there are gitignore and exclude", clipText(how, 40))
}

func showRemote(app *App, url string) {
	if url == "" {
		url = "none"
	}
	fmt.Fprintf(app.Out, "  remote  %s\n", term.SafeLine(app.plainURL(url)))
}

func newStateShowCmd(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show", Args: cobra.NoArgs, Short: "Show where state is, and which agents have some",
		RunE: func(cmd *cobra.Command, _ []string) error {
			repo, err := app.State()
			if err != nil {
				return err
			}
			if !repo.Exists() {
				return exitWith(ExitNotFound, errors.New("there is no state yet; `reprise state init` makes the repository, and so does the first entry"))
			}
			agents, err := repo.Agents(cmd.Context())
			if err != nil {
				return stateError(err)
			}
			url, err := repo.Remote(cmd.Context())
			if err != nil {
				return stateError(err)
			}
			if asJSON {
				if agents == nil {
					agents = []staterepo.AgentInfo{}
				}
				return printJSON(app.Out, map[string]any{"repository": repo.Dir(), "global": repo.Global().Dir, "remote": app.plainURL(url), "agents": agents})
			}
			fmt.Fprintf(app.Out, "%s\n  global  %s\n", term.SafeLine(repo.Dir()), term.SafeLine(repo.Global().Dir))
			showRemote(app, url)
			for _, a := range agents {
				where := a.Dir
				switch {
				case !a.Here && a.Ended:
					where = "of another machine, and works nowhere any more"
				case !a.Here:
					where = "on another machine"
				case where == "":
					where = "checked out nowhere"
				}
				if a.Consolidated {
					where += "  (consolidated)"
				}
				fmt.Fprintf(app.Out, "  agent   %s  %.12s  %s\n", app.Style().Bold(term.SafeLine(a.Name)), a.Commit, term.SafeLine(where))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

func newStateSyncCmd(app *App, use, short string, dir staterepo.Direction) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: use, Args: cobra.NoArgs, Short: short,
		Long: short + `.

What is on disk is committed first, edits by hand too. Entries of both sides
unite; of text that both sides changed in the same place both versions stay,
under a notice. An agent's scratch.md and context.md are its own. Where others
push at the same time, it fetches, merges and pushes again.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			repo, _, err := app.ensureState(cmd.Context())
			if err != nil {
				return err
			}
			s, err := repo.Sync(cmd.Context(), dir)
			if err != nil {
				app.noteState(s.Notes)
				return stateError(err)
			}
			if asJSON {
				s.Remote = app.plainURL(s.Remote)
				return printJSON(app.Out, s)
			}
			app.noteState(s.Notes)
			for _, n := range s.Notices {
				fmt.Fprintf(app.Err, "%s %s\n", app.Style().Yellow("look at this:"), term.SafeLine(n))
			}
			for _, c := range s.Commits {
				done := "committed"
				switch {
				case c.Pushed && c.Merged:
					done = "merged and sent"
				case c.Pushed:
					done = "sent"
				case c.Merged:
					done = "brought in"
				}
				fmt.Fprintf(app.Out, "%s  %.12s  %s\n", c.Branch, c.Commit, done)
			}
			for _, a := range s.Fetched {
				fmt.Fprintf(app.Out, "%s  of another machine, fetched\n", term.SafeLine(a))
			}
			if len(s.Commits)+len(s.Fetched) == 0 {
				fmt.Fprintln(app.Err, "nothing new")
			}
			if slices.ContainsFunc(s.Commits, func(c staterepo.Commit) bool { return c.Merged }) {
				return noteRivals(cmd.Context(), app)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was done for programs")
	return cmd
}

func newStateFsckCmd(app *App) *cobra.Command {
	var repair, asJSON bool
	cmd := &cobra.Command{
		Use: "fsck", Args: cobra.NoArgs, Short: "Check the repository, its checkouts and the entries",
		RunE: func(cmd *cobra.Command, _ []string) error {
			repo, err := app.State()
			if err != nil {
				return err
			}
			if repair {
				if _, err := app.mayWriteState(); err != nil {
					return err
				}
			}
			list, err := repo.Fsck(cmd.Context(), repair)
			if err != nil {
				return stateError(err)
			}
			open := 0
			for _, p := range list {
				if !p.Repaired {
					open++
				}
			}
			if asJSON {
				if list == nil {
					list = []staterepo.Problem{}
				}
				if err := printJSON(app.Out, list); err != nil {
					return err
				}
			} else {
				for _, p := range list {
					end := p.Remedy
					if p.Repaired {
						end = "mended"
					}
					fmt.Fprintf(app.Out, "%s: %s; %s\n", term.SafeLine(p.Where), term.SafeLine(p.Problem), term.SafeLine(end))
				}
				if len(list) == 0 {
					fmt.Fprintln(app.Err, "all is well")
				}
			}
			if open > 0 {
				return exitWithCode(ExitFailure)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "mend what can be mended without loss")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

func newStateGCCmd(app *App) *cobra.Command {
	var really, asJSON, repos, dry bool
	var unused string
	cmd := &cobra.Command{
		Use: "gc", Args: cobra.NoArgs, Short: "Take away branches of consolidated agents that work nowhere",
		Long: `Say which branches of agents could go, and with --yes take them away. Only those
go whose agent works nowhere on this machine and of which all that is to last is
on global (` + "`reprise context promote`" + ` marks them). Each is kept under
refs/reprise/kept/, here and on the remote, so that nothing is lost.

--repos looks at the repositories of all projects: one of which no checkout is
there any more, where no agent works and nothing was committed for --unused,
could go. With --yes it becomes one file below archive/ of reprise's data, which
` + "`git clone FILE`" + ` opens; what is in the project's global/ stays where it is.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if repos {
				return collectRepos(cmd.Context(), app, unused, really, asJSON)
			}
			if cmd.Flags().Changed("unused") {
				return usagef("--unused goes with --repos")
			}
			repo, err := app.State()
			if err != nil {
				return err
			}
			if really {
				if _, err := app.mayWriteState(); err != nil {
					return err
				}
			}
			list, err := repo.GC(cmd.Context(), really)
			if err != nil {
				return stateError(err)
			}
			if asJSON {
				if list == nil {
					list = []staterepo.GCItem{}
				}
				return printJSON(app.Out, list)
			}
			gone := 0
			for _, i := range list {
				done := "stays"
				if i.Remove {
					gone++
					done = "would go"
					if really {
						done = "gone"
					}
				}
				fmt.Fprintf(app.Out, "%s  %s: %s\n", term.SafeLine(i.Agent), done, term.SafeLine(i.Why))
			}
			if gone > 0 && !really {
				fmt.Fprintln(app.Err, "nothing was changed; pass --yes to do it")
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&really, "yes", "y", false, "do it")
	cmd.Flags().BoolVarP(&dry, "dry-run", "n", false, "say what would be removed, and remove nothing, as without --yes")
	cmd.MarkFlagsMutuallyExclusive("yes", "dry-run")
	cmd.Flags().BoolVar(&repos, "repos", false, "look at the repositories of projects that are gone")
	cmd.Flags().StringVar(&unused, "unused", "90d", "with --repos: only those to which nothing was committed for this `TIME`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

// plainURL is an address without a password in it.
func (a *App) plainURL(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return url
	}
	who, host, ok := strings.Cut(rest, "@")
	if name, _, secret := strings.Cut(who, ":"); ok && secret && !strings.Contains(who, "/") {
		return scheme + "://" + name + ":…@" + host
	}
	return url
}
