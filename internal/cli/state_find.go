package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/git"
	"reprise/internal/staterepo"
	"reprise/internal/term"
)

func newStateHoldersCmd(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "find TEXT", Args: cobra.ExactArgs(1), Short: "Show which branches of the state hold a text, or held it",
		Long: `Show the branches in whose history TEXT stands as it is written, with how many
commits put it in or took it out: those of agents, what was collected, begun
anew or checkpointed, and what the remote has. TEXT of - reads standard input.

Commits are not rewritten: every clone would bring the old ones back with its
next exchange. To be rid of a text for good, forget it
(` + "`reprise memory forget --purge`" + `), let all exchange, and let each project's
state begin as a new repository.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := textArg(cmd.Context(), app, args[0])
			if err != nil {
				return err
			}
			repo, err := app.State()
			if err != nil {
				return err
			}
			list, err := repo.Holders(cmd.Context(), strings.TrimRight(text, "\n"))
			if err != nil {
				return stateError(err)
			}
			if asJSON {
				return printJSON(app.Out, append([]staterepo.Holder{}, list...))
			}
			for _, h := range list {
				fmt.Fprintln(app.Out, term.SafeLine(heldBy(h)))
			}
			if len(list) == 0 {
				fmt.Fprintln(app.Err, "no branch of the state holds it")
				return exitWithCode(ExitNotFound)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

func heldBy(h staterepo.Holder) string {
	s := fmt.Sprintf("%s  %s", h.Ref, count(h.Commits, "commit"))
	if h.Now {
		s += ", and as it is now"
	}
	if h.Remote {
		s += ", on the remote"
	}
	return s
}

// stateHolds is what still holds a text of a project, one line each.
func (a *App) stateHolds(ctx context.Context, project, text string) ([]string, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	repo, err := a.stateOf(home, project)
	if err != nil {
		return nil, err
	}
	list, err := repo.Holders(ctx, text)
	if errors.Is(err, git.ErrNotInstalled) {
		return nil, nil
	}
	var out []string
	for _, h := range list {
		out = append(out, heldBy(h))
	}
	return out, err
}

// ciNote is what is noted about a commit.
type ciNote struct {
	Commit string   `json:"commit"`
	Notes  []ciLine `json:"notes"` // the oldest first; a key may come again
}

type ciLine struct {
	Key   string `json:"key"` // "" of a line that some other program wrote
	Value string `json:"value"`
}

// ciLines are the lines of a note.
func ciLines(text string) []ciLine {
	out := []ciLine{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if key, value, ok := strings.Cut(line, ": "); ok {
			out = append(out, ciLine{key, value})
		} else {
			out = append(out, ciLine{"", line})
		}
	}
	return out
}

func newStateCICmd(app *App) *cobra.Command {
	var set []string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ci [COMMIT]", Args: cobra.MaximumNArgs(1), Short: "Show or add what continuous integration says of a commit",
		Long: `Show what is noted about a commit of the code (default: HEAD), or with --set add
to it: build status, approvals, and what else belongs to that very commit. It is
a git note (refs/notes/reprise-ci) in the code's repository, which rebases do
not carry along; what is to last stands in ` + "`reprise state branch`" + `. Git exchanges
notes only when told to: git push origin refs/notes/reprise-ci`,
		Example: `  reprise state ci --set build=passed --set "approved=by two"
  reprise state ci HEAD~1 --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			rev := "HEAD"
			if len(args) > 0 {
				rev = args[0]
			}
			home, err := app.Home()
			if err != nil {
				return err
			}
			dir := app.Env.Dir
			if home.Project != nil {
				dir = config.CheckoutRoot(home.Project, dir)
			}
			g := git.New(dir, git.Options{Vars: app.Env.Vars})
			commit, err := g.Resolve(ctx, rev)
			if err != nil {
				return stateError(err)
			}
			if commit == "" {
				return exitWith(ExitNotFound, fmt.Errorf("%q is no commit of the code", clipText(rev, 60)))
			}
			if len(set) > 0 {
				var lines []string
				for _, kv := range set {
					key, val, ok := strings.Cut(kv, "=")
					if !ok || strings.TrimSpace(key) == "" || strings.ContainsAny(kv, "\r\n") {
						return usagef("--set %q: give KEY=VALUE on one line", clipText(kv, 60))
					}
					lines = append(lines, strings.TrimSpace(key)+": "+redacted(strings.TrimSpace(val)))
				}
				if err := g.AddNote(ctx, "reprise-ci", commit, strings.Join(lines, "\n")); err != nil {
					return stateError(err)
				}
			}
			text, err := g.Note(ctx, "reprise-ci", commit)
			if err != nil {
				return stateError(err)
			}
			if asJSON {
				return printJSON(app.Out, ciNote{commit, ciLines(text)})
			}
			fmt.Fprint(app.Out, term.SafeText(text))
			if text == "" {
				fmt.Fprintln(app.Err, "nothing is noted about it")
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "add `KEY=VALUE`; may be given several times")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what is noted for programs")
	return cmd
}
