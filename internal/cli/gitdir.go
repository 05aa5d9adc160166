package cli

import (
	"context"
	"strings"

	"reprise/internal/git"
)

// noGitDir refuses a root that is a bare repository, or lies within the directory of one:
// nothing is checked out there that could be worked on. Where git is not, nobody knows.
func (a *App) noGitDir(ctx context.Context, root string) error {
	out, err := git.New(root, git.Options{Vars: a.Env.Vars}).Run(ctx, "rev-parse", "--is-inside-git-dir")
	if err == nil && strings.TrimSpace(string(out)) == "true" {
		return usagef("%s is within the directory of a git repository, in which nothing is checked out: make the project in a clone of it, or in its working tree", root)
	}
	return nil
}
