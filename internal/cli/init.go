package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/proc"
	"reprise/internal/setup"
	"reprise/internal/term"
	"reprise/internal/transcript"
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

--yes consents to exactly that without asking. At a terminal it shows what would be
written, and then offers to go on: to connect the clients that it finds, as
` + "`reprise setup`" + ` does, and to take in their past sessions, as
` + "`reprise import transcripts`" + ` does. Each is asked about, and shown, on its own.`,
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
	if err := app.noGitDir(ctx, root); err != nil {
		return err
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
		if !yes && app.InIsTerminal && app.OutIsTerminal {
			return offerMore(ctx, app)
		}
		return nil
	}
	fmt.Fprintf(app.Out, "%s is now project %s.\n", term.SafeLine(made.Root), style.Bold(made.Name))
	fmt.Fprintf(app.Out, "  commit %s and .gitignore\n", ".reprise/project.yaml")
	fmt.Fprintf(app.Out, "  its data are in %s\n", term.SafeLine(paths.ProjectDir(made.Name)))
	if !yes && app.InIsTerminal && app.OutIsTerminal {
		return offerMore(ctx, app)
	}
	fmt.Fprintf(app.Out, "Next: %s connects your clients.\n", style.Cyan("reprise setup"))
	return nil
}

// offerMore goes on with what makes a first day: the clients, and what they have from
// before. What is declined there is no failure of init.
func offerMore(ctx context.Context, app *App) error {
	if err := offerSetup(ctx, app); err != nil {
		var exit *ExitError
		if !errors.As(err, &exit) || exit.Code != ExitConflict {
			return err
		}
		fmt.Fprintf(app.Out, "Not connected: %v. Later: %s.\n", err, app.Style().Cyan("reprise setup"))
	}
	if err := offerImport(ctx, app); err != nil {
		return err
	}
	fmt.Fprintf(app.Out, "See whether all is well: %s\n", app.Style().Cyan("reprise doctor"))
	return nil
}

// offerImport asks whether to take in the clients' past sessions, where there are any.
func offerImport(ctx context.Context, app *App) error {
	places, err := transcript.FindPlaces(app.Env)
	if err != nil {
		return err
	}
	found := transcript.Find(places, nil)
	defer found.Close()
	n, bytes := map[string]int{}, int64(0)
	for _, src := range found.Sources {
		n[src.Client]++
		bytes += src.Size
	}
	if len(n) == 0 {
		return nil
	}
	var list []string
	for _, client := range transcript.Clients() {
		if n[client] > 0 {
			list = append(list, fmt.Sprintf("%d of %s", n[client], client))
		}
	}
	fmt.Fprintf(app.Out, "There are transcripts of past sessions: %s (%.1f MB). Take in what happened in them? They are only read. [y/N] ",
		strings.Join(list, ", "), float64(bytes)/1e6)
	yes, err := app.sayYes(ctx)
	if err != nil {
		return err
	}
	if !yes {
		fmt.Fprintf(app.Out, "Later: %s.\n", app.Style().Cyan("reprise import transcripts"))
		return nil
	}
	return importTranscripts(ctx, app, importOptions{})
}

// sayYes reads the answer to a question whose answer is no where nothing is said.
func (a *App) sayYes(ctx context.Context) (bool, error) {
	line, err := a.ask(ctx)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return (err == nil || line != "") && (answer == "y" || answer == "yes"), nil
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
	yes, err := app.sayYes(ctx)
	if err != nil {
		return err
	}
	if !yes {
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
	edits, err := config.InitEdits(p)
	if err != nil {
		return err
	}
	for _, e := range edits {
		name := filepath.ToSlash(strings.TrimPrefix(e.File, p.Root+string(filepath.Separator)))
		fmt.Fprint(app.Out, app.Style().Diff(term.SafeText(udiff.Unified(name, name, e.Before, e.After))))
	}
	for {
		fmt.Fprint(app.Out, "Proceed? [Y/n] ")
		line, err := app.ask(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && line == "" {
			return exitWith(ExitConflict, errors.New("not made: no answer came"))
		}
		switch strings.ToLower(line) {
		case "", "y", "yes":
			return nil
		case "n", "no":
			return exitWith(ExitConflict, errors.New("not made: you said no"))
		}
		fmt.Fprintf(app.Out, "%s is neither yes nor no.\n", term.SafeLine(clipText(line, 40)))
	}
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
