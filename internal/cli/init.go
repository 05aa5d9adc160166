package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/git"
	"reprise/internal/setup"
	"reprise/internal/term"
	"reprise/internal/transcript"
)

func newInitCmd(app *App) *cobra.Command {
	var name string
	var yes, adopt bool
	cmd := &cobra.Command{
		Use: "init", Args: cobra.NoArgs, Short: "Make this directory tree a project",
		Long: `Make this directory tree a project: write .reprise/project.yaml, add one line to
.gitignore, and make the project's directory among reprise's own data. In a git
working tree the project is its top. Nothing else is touched, no client's
settings either; doing it again changes nothing.

--yes consents to exactly that without asking; for your home directory as a whole it does
not count. A name that another project on this machine has is refused, with one that is
free. So is that of one whose directory is away (moved, removed, or its disk not mounted)
while data of it are kept, unless the repository shows that it is the same: by its first
commit, its origin, or the agent's state in it. Where only you know that, --adopt takes name
and data over; the directory that had them is refused from then on, should it come back.
Where git has a project's file that is not here (a sparse checkout, another branch), how
it comes back is said, and no second project is made over it. ` + "`reprise project rename`" + `
gives a project another name; with one that was only written into its file it begins anew,
and what is known of it waits under the first.
At a terminal it shows what would be written, and then offers to go on: to connect
the clients that it finds, as ` + "`reprise setup`" + ` does, and to take in their past
sessions, as ` + "`reprise import transcripts`" + ` does. Each is asked about, and shown,
on its own.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return initProject(cmd.Context(), app, name, yes, adopt) },
	}
	cmd.Flags().StringVar(&name, "name", "", "the project's name (default: made of the directory's name)")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do it without asking")
	cmd.Flags().BoolVar(&adopt, "adopt", false, "take over the name and the data of a project whose directory is away")
	return cmd
}

func initProject(ctx context.Context, app *App, name string, yes, adopt bool) error {
	paths, err := config.FindPaths(app.Env)
	if err != nil {
		return err
	}
	root, existing, err := config.InitRoot(app.Env, app.Env.Dir)
	if err != nil {
		return err
	}
	if err := app.noGitDir(ctx, root); err != nil {
		return err
	}
	atTerminal := app.InIsTerminal && app.OutIsTerminal
	commit := rootCommit(ctx, app, root)
	project := existing
	if existing == nil {
		if name, err = app.absentName(ctx, paths, root, name, commit); err != nil {
			return err
		}
		if project, err = newProject(ctx, app, paths, root, name, commit, yes, adopt); err != nil {
			return err
		}
	}
	kept, err := paths.Kept(project.Name)
	if err != nil {
		return err
	}
	var made *config.Project
	if existing != nil {
		claim := paths.Claim
		if adopt {
			claim = paths.Adopt
		}
		if err := claim(ctx, project, commit, app.Now()); err != nil {
			return takenFor(paths, project, true, commit, err)
		}
		made, err = config.InitProject(root, name)
	} else { // the name first: where it cannot be had, the tree stays as it is
		err = paths.ClaimNew(ctx, project, commit, app.Now(), adopt, func() (err error) {
			made, err = config.InitProject(root, project.Name)
			return err
		})
		err = takenFor(paths, project, false, commit, err)
	}
	if err != nil {
		var ce *config.Error
		if errors.As(err, &ce) && existing != nil {
			return exitWith(ExitConflict, err)
		}
		return err
	}
	style := app.Style()
	if existing != nil {
		fmt.Fprintf(app.Out, "%s is project %s already.\n", term.SafeLine(made.Root), style.Bold(made.Name))
		if !yes && atTerminal {
			return offerMore(ctx, app)
		}
		app.restSaid(ctx)
		return nil
	}
	fmt.Fprintf(app.Out, "%s is now project %s.\n", term.SafeLine(made.Root), style.Bold(made.Name))
	fmt.Fprintf(app.Out, "  commit %s and .gitignore\n", ".reprise/project.yaml")
	fmt.Fprintln(app.Out, app.beside("  its data are in", term.SafeLine(paths.ProjectDir(made.Name)), "    "))
	if top := git.Top(made.Root); top != "" {
		if _, err := git.New(top, git.Options{Vars: app.Env.Vars}).OfUser().Run(ctx, "check-ignore", "--quiet", "--", made.File()); err == nil {
			fmt.Fprint(app.Err, wrapLine("note: git ignores .reprise/project.yaml here (`git check-ignore -v .reprise/project.yaml` says by which line): other checkouts and machines know nothing of the project until it is committed", app.Columns))
		}
	}
	if len(kept) > 0 {
		fmt.Fprint(app.Err, wrapLine(fmt.Sprintf("note: data of that name were there, and are this project's now: %s", strings.Join(kept, ", ")), app.Columns))
	}
	if git.Top(made.Root) == "" {
		fmt.Fprint(app.Err, wrapLine("note: it is in no git repository: what is done there has no history and no branches, and nothing can be committed; `git init` makes one", app.Columns))
	}
	if !yes && atTerminal {
		return offerMore(ctx, app)
	}
	home, err := app.Home()
	if err != nil {
		return err
	}
	found, open, err := clientsHere(app, setupFor(app, home))
	if err != nil {
		return err
	}
	fmt.Fprint(app.Out, wrapLine(nextOfClients(style, found, open), app.Columns))
	app.sayOfClients(home, slices.DeleteFunc(found, func(c string) bool { return slices.Contains(open, c) }))
	app.restSaid(ctx)
	return nil
}

// absentName is the name for a project in place of one whose file is not here: where git has
// that file, which a new one would be committed over, or be in the way of, it is refused;
// where it is only gone, and nothing else was said, the name stays as it was.
func (a *App) absentName(ctx context.Context, paths config.Paths, root, name, commit string) (string, error) {
	ab := a.absentProject(ctx, a.Env.Dir)
	switch {
	case ab == nil:
		return name, nil
	case ab.sparse, ab.deleted:
		return "", exitWith(ExitConflict, fmt.Errorf("not made: %s", ab.why()))
	case ab.ref != "" && name == "":
		return "", exitWith(ExitConflict, fmt.Errorf("not made: %s; where another project is meant, give it a name: `reprise init --name NAME`", ab.why()))
	case ab.former != "" && name == "":
		if p, err := config.Prospect(root, ab.former); err == nil && paths.CheckClaim(p, commit) == nil {
			return ab.former, nil
		}
	}
	return name, nil
}

// beside is head and tail on one line, or where the terminal is narrower the tail below:
// a path is not broken, so that it can be copied.
func (a *App) beside(head, tail, indent string) string {
	if line := head + " " + tail; a.Columns <= 0 || term.Width(line) <= a.Columns {
		return line
	}
	return head + "\n" + indent + tail
}

// clientsHere are the clients that were found on this machine, and those of them that have
// no hooks of reprise yet.
func clientsHere(app *App, s setup.Setup) (found, open []string, err error) {
	found, err = setupClients(app, s, setupOptions{installOptions: installOptions{scope: setup.User}}, nil)
	var exit *ExitError
	if errors.As(err, &exit) && exit.Code == ExitNotFound {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	installed, err := s.Installed()
	if err != nil { // what cannot be read keeps the others from nothing
		for line := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprint(app.Err, wrapLine("note: "+term.SafeLine(line)+"; correct that file, or its client is left out", app.Columns))
		}
	}
	open = slices.DeleteFunc(slices.Clone(found), func(c string) bool {
		return slices.ContainsFunc(installed, func(h setup.InstalledHooks) bool { return h.Client == c })
	})
	return found, open, nil
}

// nextOfClients is what to do next, by which clients are here and which are connected.
func nextOfClients(style term.Style, found, open []string) string {
	switch {
	case len(found) == 0:
		return fmt.Sprintf("No client was found here. Once one is, %s connects it.", style.Cyan("reprise setup"))
	case len(open) == 0:
		return fmt.Sprintf("Your clients are connected. Next: start a session as always; %s says whether all is well.", style.Cyan("reprise doctor"))
	}
	return fmt.Sprintf("Next: %s connects %s.", style.Cyan("reprise setup"), strings.Join(open, ", "))
}

// sayOfClients says what keeps clients that are connected from what they are connected for.
func (a *App) sayOfClients(home *config.Home, connected []string) {
	note := func(format string, args ...any) {
		fmt.Fprint(a.Err, wrapLine(term.SafeLine("note: "+fmt.Sprintf(format, args...)), a.Columns))
	}
	su := setupFor(a, home)
	for _, c := range connected {
		if name := a.missingProgram(c, home); name != "" {
			note("%s is connected, but there is no %s in PATH here to start it with", c, name)
			continue
		}
		hooks, _ := su.Installed() // doctor says what cannot be read
		for _, h := range hooks {
			if h.Client != c {
				continue
			}
			if list, err := (setup.Doctor{Setup: su}).Unaccepted(h); err == nil && len(list) > 0 {
				note("Codex runs its %s once you trust them: start codex, and accept them there (/hooks)", count(len(list), "hook"))
			}
		}
	}
}

// newProject is the project that root would be, with the consent to it: under a name that
// is free, and not of a whole home directory by accident.
func newProject(ctx context.Context, app *App, paths config.Paths, root, name, commit string, yes, adopt bool) (*config.Project, error) {
	ask := !yes && app.InIsTerminal && app.OutIsTerminal
	p, err := config.Prospect(root, cmp.Or(name, inLetters(filepath.Base(root))))
	if errors.Is(err, config.ErrNoName) && ask {
		if p, err = askFirstName(ctx, app, root); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, usagef("%w", err)
	}
	if err := paths.CheckClaim(p, commit); err != nil {
		var taken *config.NameTakenError
		switch {
		case !errors.As(err, &taken), !ask && !(adopt && taken.Away):
			return nil, takenFor(paths, p, false, commit, err)
		case !adopt || !taken.Away:
			if p, err = askName(ctx, app, paths, p, commit, taken); err != nil {
				return nil, err
			}
		}
	}
	if app.isHome(root) { // that is a rare wish and a common slip: --yes may stand in a script
		what := fmt.Sprintf("%s is your home directory: every directory in it that is in no other project would be part of this one", term.SafeLine(root))
		if !app.InIsTerminal || !app.OutIsTerminal {
			return nil, exitWith(ExitConflict, fmt.Errorf("not made: %s; go to the directory of a project (and make it a git repository of its own: `git init`), or say yes to this at a terminal", what))
		}
		sure, err := app.confirm(ctx, what+". Make it one?", false)
		if err != nil {
			return nil, err
		}
		if !sure {
			return nil, exitWith(ExitConflict, errors.New("not made: you said no"))
		}
	}
	if yes {
		return p, nil
	}
	return p, askInit(ctx, app, p)
}

// isHome tells whether dir is the user's home directory.
func (a *App) isHome(dir string) bool {
	home, err := a.Env.Home()
	if err != nil {
		return false
	}
	one, err := os.Stat(home)
	if err != nil {
		return false
	}
	other, err := os.Stat(dir)
	return err == nil && os.SameFile(one, other)
}

// takenFor is the error of a name that another project has, with what to do about it:
// `reprise init` has looked at origin and history already.
func takenFor(paths config.Paths, p *config.Project, existing bool, commit string, err error) error {
	var taken *config.NameTakenError
	switch {
	case !errors.As(err, &taken):
		return err
	case existing && (taken.Away || !taken.Given.IsZero()):
	case existing:
		err = fmt.Errorf("project name %q is taken by %s, and nothing shows that %s is a clone of it: they have neither an origin nor a first commit in common; give this one another name in %s",
			taken.Name, taken.By, taken.Root, config.ProjectFile(taken.Root))
	default:
		remedy := "`reprise init --name NAME`"
		if free := freeName(paths, p, commit); free != "" {
			remedy = fmt.Sprintf("`reprise init --yes --name %s`, or any other name", free)
		}
		err = fmt.Errorf("project name %q is taken by %s; give this one another: %s", taken.Name, taken.By, remedy)
		if taken.Away {
			err = fmt.Errorf("%s; if it is not, give this one another name: %s; if it is, `reprise init --adopt` takes name and data over", taken.Whose(), remedy)
		}
	}
	return exitWith(ExitConflict, err)
}

// freeName is a name for p that no other project has, made of its own and that of the
// directory above it; "" where none was found.
func freeName(paths config.Paths, p *config.Project, commit string) string {
	base := p.Name
	if above := config.NameFrom(filepath.Dir(p.Root)); above != "" && len(above)+1+len(base) <= 60 {
		base = above + "-" + p.Name
	}
	for n := 1; n < 100; n++ {
		other := *p
		if other.Name = base; n > 1 {
			other.Name = fmt.Sprintf("%s-%d", base, n)
		}
		if config.CheckProjectName(other.Name) == nil && paths.CheckClaim(&other, commit) == nil {
			return other.Name
		}
	}
	return ""
}

// askName asks for another name than the one that is taken, until one is free.
func askName(ctx context.Context, app *App, paths config.Paths, p *config.Project, commit string, taken *config.NameTakenError) (*config.Project, error) {
	for {
		free := freeName(paths, p, commit)
		offer := ""
		if free != "" {
			offer = " [" + free + "]"
		}
		whose := fmt.Sprintf("Another project is named %s: %s.", taken.Name, term.SafeLine(taken.By))
		if taken.Away {
			whose = fmt.Sprintf("%s; if it is, `reprise init --adopt` takes them over.", term.SafeLine(taken.Whose()))
		}
		app.prompt(fmt.Sprintf("%s A name for this one%s:", whose, offer))
		line, err := app.ask(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if line == "" && err == nil {
			line = free
		}
		if line == "" {
			return nil, exitWith(ExitConflict, errors.New("not made: no name was given"))
		}
		next, err := config.Prospect(p.Root, line)
		if err != nil {
			fmt.Fprint(app.Out, wrapLine(term.SafeLine(strings.TrimPrefix(err.Error(), "make project: ")), app.Columns))
			continue
		}
		err = paths.CheckClaim(next, commit)
		if errors.As(err, &taken) {
			continue
		}
		return next, err
	}
}

// offerMore goes on with what makes a first day: the clients, and what they have from
// before. What is declined there is no failure of init.
func offerMore(ctx context.Context, app *App) error {
	told, err := offerSetup(ctx, app)
	if err != nil {
		var exit *ExitError
		if !errors.As(err, &exit) || exit.Code != ExitConflict {
			return err
		}
		fmt.Fprintf(app.Out, "Not connected: %v. Later: %s.\n", err, app.Style().Cyan("reprise setup"))
	}
	if err := offerImport(ctx, app); err != nil {
		return err
	}
	if !told {
		app.restSaid(ctx)
		fmt.Fprintf(app.Out, "See whether all is well: %s\n", app.Style().Cyan("reprise doctor"))
	}
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
	yes, err := app.confirm(ctx, fmt.Sprintf("There are transcripts of past sessions: %s (%.1f MB). Take in what happened in them? They are only read.",
		strings.Join(list, ", "), float64(bytes)/1e6), false)
	if err != nil {
		return err
	}
	if !yes {
		fmt.Fprintf(app.Out, "Later: %s.\n", app.Style().Cyan("reprise import transcripts"))
		return nil
	}
	return importTranscripts(ctx, app, importOptions{})
}

// offerSetup asks whether to go on with the user's clients, where there are any that have
// no hooks yet; told says that what to do next was said with it. --yes of init is no
// consent to that.
func offerSetup(ctx context.Context, app *App) (told bool, err error) {
	home, err := app.Home()
	if err != nil {
		return false, err
	}
	found, open, err := clientsHere(app, setupFor(app, home))
	if err != nil {
		return false, err
	}
	if len(open) == 0 {
		if len(found) == 0 {
			fmt.Fprint(app.Out, wrapLine(nextOfClients(app.Style(), nil, nil), app.Columns))
		}
		return false, nil
	}
	// Yes is what most come for, and changes nothing yet: what would be changed is shown, and asked about.
	chosen, err := app.chooseClients(ctx, open)
	if err != nil && !errors.Is(err, errNoAnswer) {
		return false, err
	}
	if len(chosen) == 0 {
		later := "reprise setup"
		if len(open) > 1 {
			later += " [CLIENT...]"
		}
		fmt.Fprintf(app.Out, "Later: %s.\n", app.Style().Cyan(later))
		return false, nil
	}
	return true, runSetup(ctx, app, setupOptions{installOptions: installOptions{scope: setup.User}}, chosen)
}

// chooseClients asks into which of the clients reprise is to be put: all, none, or those
// that are named.
func (a *App) chooseClients(ctx context.Context, open []string) ([]string, error) {
	choice := "[Y/n]"
	if len(open) > 1 {
		choice = "[Y/n, or which of them]"
	}
	a.prompt(fmt.Sprintf("Put reprise into %s too? It shows the changes first. %s", strings.Join(open, ", "), choice))
	for {
		line, err := a.answered(ctx)
		if err != nil {
			return nil, err
		}
		switch strings.ToLower(line) {
		case "", "y", "yes":
			return open, nil
		case "n", "no":
			return nil, nil
		}
		var chosen []string
		bad := ""
		for _, word := range strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' }) {
			client, err := setup.Canonical(strings.ToLower(word))
			if err != nil || !slices.Contains(open, client) {
				bad = cmp.Or(bad, word)
			}
			chosen = append(chosen, client)
		}
		if bad == "" && len(chosen) > 0 {
			return chosen, nil
		}
		none := term.SafeLine(clipText(cmp.Or(bad, line), 40)) + " is neither yes nor no"
		if len(open) > 1 {
			none += ", nor one of " + strings.Join(open, ", ")
		}
		a.prompt(none + ". Which is it?")
	}
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
	yes, err := app.confirm(ctx, "Proceed?", true)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return exitWith(ExitConflict, fmt.Errorf("not made: %w", err))
	case !yes:
		return exitWith(ExitConflict, errors.New("not made: you said no"))
	}
	return nil
}

// rootCommit is the id of the first commit of the repository at root, by which
// clones recognise each other; "" where there is none, or no git. A shallow
// clone has no first commit to speak of.
func rootCommit(ctx context.Context, app *App, root string) string {
	top := git.Top(root)
	if top == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	g := git.New(top, git.Options{Vars: app.Env.Vars})
	ask := func(args ...string) string {
		out, err := g.Run(ctx, args...)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(out))
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
