package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/proc"
	"reprise/internal/setup"
	"reprise/internal/term"
)

func newInitCmd(app *App) *cobra.Command {
	var name string
	var yes bool
	cmd := &cobra.Command{
		Use: "init", Args: cobra.NoArgs, Short: "Make this directory tree a project",
		Long: `Make this directory tree a project: write .reprise/project.yaml, add one line to
.gitignore, and make the project's directory among reprise's own data. In a git
working tree the project is its top. Nothing else is touched, no client's
settings either; doing it again changes nothing.

--yes consents to exactly that without asking. At a terminal it also offers to go
on with ` + "`reprise setup`" + `, which connects your clients.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return initProject(cmd.Context(), app, name, yes) },
	}
	cmd.Flags().StringVar(&name, "name", "", "the project's name (default: made of the directory's name)")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do it without asking")
	return cmd
}

func initProject(ctx context.Context, app *App, name string, yes bool) error {
	paths, err := config.FindPaths(app.Env)
	if err != nil {
		return err
	}
	root, existing, err := config.InitRoot(app.Env, app.Env.Dir)
	if err != nil {
		return err
	}
	project := existing
	if existing == nil {
		if project, err = config.Prospect(root, name); err != nil {
			return usagef("%w", err)
		}
	}
	commit := rootCommit(ctx, app, root)
	if err := paths.CheckClaim(project, commit); err != nil {
		return conflict(err)
	}
	if existing == nil && !yes {
		if err := askInit(ctx, app, project); err != nil {
			return err
		}
	}
	made, err := config.InitProject(root, name)
	if err != nil {
		var ce *config.Error
		if errors.As(err, &ce) && existing != nil {
			return exitWith(ExitConflict, err)
		}
		return err
	}
	if err := paths.Claim(ctx, made, commit, app.Now()); err != nil {
		return conflict(err)
	}
	style := app.Style()
	if existing != nil {
		fmt.Fprintf(app.Out, "%s is project %s already.\n", term.SafeLine(made.Root), style.Bold(made.Name))
		return nil
	}
	fmt.Fprintf(app.Out, "%s is now project %s.\n", term.SafeLine(made.Root), style.Bold(made.Name))
	fmt.Fprintf(app.Out, "  commit %s and .gitignore\n", ".reprise/project.yaml")
	fmt.Fprintf(app.Out, "  its data are in %s\n", term.SafeLine(paths.ProjectDir(made.Name)))
	if !yes && app.InIsTerminal && app.OutIsTerminal {
		return offerSetup(ctx, app)
	}
	fmt.Fprintf(app.Out, "Next: %s connects your clients.\n", style.Cyan("reprise setup"))
	return nil
}

// offerSetup asks whether to go on with the user's clients, where there are any
// that have no hooks yet. --yes of init is no consent to that.
func offerSetup(ctx context.Context, app *App) error {
	home, err := app.Home()
	if err != nil {
		return err
	}
	s := setupFor(app, home)
	clients, err := setupClients(app, s, setupOptions{installOptions: installOptions{scope: setup.User}}, nil)
	if err != nil {
		return nil // none is here: there is nothing to offer
	}
	installed, err := s.Installed()
	if err != nil {
		return err
	}
	clients = slices.DeleteFunc(clients, func(c string) bool {
		return slices.ContainsFunc(installed, func(h setup.InstalledHooks) bool { return h.Client == c })
	})
	if len(clients) == 0 {
		return nil
	}
	fmt.Fprintf(app.Out, "Put reprise into %s too? It shows the changes first. [y/N] ", strings.Join(clients, ", "))
	line, err := app.ask(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); err != nil && line == "" || answer != "y" && answer != "yes" {
		fmt.Fprintf(app.Out, "Later: %s.\n", app.Style().Cyan("reprise setup"))
		return nil
	}
	return runSetup(ctx, app, setupOptions{installOptions: installOptions{scope: setup.User}}, clients)
}

func conflict(err error) error {
	var taken *config.NameTakenError
	if errors.As(err, &taken) {
		return exitWith(ExitConflict, err)
	}
	return err
}

// askInit says what would be written and asks. Where nobody can be asked it is
// an error: consent is then given by --yes.
func askInit(ctx context.Context, app *App, p *config.Project) error {
	if !app.OutIsTerminal {
		return usagef("nobody can be asked here: pass --yes to make %s the project %q", p.Root, p.Name)
	}
	fmt.Fprintf(app.Out, "Make %s the project %s?\n", term.SafeLine(p.Root), app.Style().Bold(p.Name))
	fmt.Fprintf(app.Out, "  writes .reprise/project.yaml and one line of .gitignore\nProceed? [Y/n] ")
	line, err := app.ask(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil && line == "" {
		return exitWith(ExitConflict, errors.New("not made: no answer came"))
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "", "y", "yes":
		return nil
	}
	return exitWith(ExitConflict, errors.New("not made: you said no"))
}

// rootCommit is the id of the first commit of the repository at root, by which
// clones recognise each other; "" where there is none, or no git. A shallow
// clone has no first commit to speak of.
func rootCommit(ctx context.Context, app *App, root string) string {
	git, err := proc.LookPath("git", app.Env.Vars, app.Env.GOOS)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	env := slices.DeleteFunc(slices.Clone(app.Environ), func(v string) bool {
		return strings.HasPrefix(v, "GIT_DIR=") || strings.HasPrefix(v, "GIT_WORK_TREE=") || strings.HasPrefix(v, "GIT_INDEX_FILE=")
	}) // set inside git's own hooks, and about another repository there
	ask := func(args ...string) string {
		out, err := proc.Run(ctx, proc.Cmd{Path: git, Args: args, Env: env, Dir: root}, 64<<10)
		if err != nil || out.Exit.Code != 0 {
			return ""
		}
		return strings.TrimSpace(string(out.Stdout))
	}
	if ask("rev-parse", "--is-shallow-repository") != "false" {
		return ""
	}
	first := strings.Fields(ask("rev-list", "--max-parents=0", "HEAD"))
	if len(first) == 0 {
		return ""
	}
	return first[len(first)-1]
}
