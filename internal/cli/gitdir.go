package cli

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"reprise/internal/config"
	"reprise/internal/git"
)

// topOf is the top of the working tree that a directory lies in, and the directory itself
// outside git. Git is asked there: it looks at no repository above where it is.
func topOf(dir string) string { return cmp.Or(git.Top(dir), dir) }

// checkoutOf is topOf a project.
func checkoutOf(p *config.Project) string { return topOf(p.Root) }

// noGitDir refuses a root that is a bare repository, or lies within the directory of one:
// nothing is checked out there that could be worked on. Where git is not, nobody knows.
func (a *App) noGitDir(ctx context.Context, root string) error {
	out, err := git.New(root, git.Options{Vars: a.Env.Vars}).Run(ctx, "rev-parse", "--is-inside-git-dir")
	if err == nil && strings.TrimSpace(string(out)) == "true" {
		return usagef("%s is within the directory of a git repository, in which nothing is checked out: make the project in a clone of it, or in its working tree", root)
	}
	return nil
}

// ownRepository refuses a repository that another user owns, and that git does not read for
// that: its settings may name programs. root is a directory in it.
func (a *App) ownRepository(ctx context.Context, root string) error {
	_, err := git.New(root, git.Options{Vars: a.Env.Vars}).AsUser().Run(ctx, "rev-parse", "--git-dir")
	if said := (*git.Error)(nil); errors.As(err, &said) && strings.Contains(said.Stderr, dubiousOwnership) {
		return exitWith(ExitConflict, dubiousOwner(said.Stderr))
	}
	return nil
}
