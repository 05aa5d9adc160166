package cli

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/task"
)

// taskStore is the list of tasks of a checkout.
func (a *App) taskStore(main string) *task.Store {
	return task.New(main, task.Options{Now: a.Env.Now, Committed: func(ctx context.Context, name string) bool {
		top := gitTop(main)
		if top == "" {
			return false
		}
		below, err := filepath.Rel(top, main)
		if err != nil {
			return false
		}
		_, err = git.New(top, git.Options{Vars: a.Env.Vars}).Run(ctx, "cat-file", "-e", "HEAD:"+path.Join(filepath.ToSlash(below), name))
		return err == nil
	}})
}

// underWay is what git is in the middle of in a checkout and would take a commit into,
// "" where it is in the middle of nothing.
func underWay(ctx context.Context, g *git.Git) string {
	out, err := g.Run(ctx, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return "" // said by the commit
	}
	dir := strings.TrimRight(string(out), "\r\n")
	for _, s := range [][2]string{
		{"rebase-merge", "rebase"}, {"rebase-apply", "rebase"}, {"CHERRY_PICK_HEAD", "cherry-pick"}, {"REVERT_HEAD", "revert"}, {"MERGE_HEAD", "merge"},
	} {
		if _, err := os.Lstat(filepath.Join(dir, s[0])); err == nil {
			return s[1]
		}
	}
	return ""
}

// errUnderWay says why nothing is committed just now.
func errUnderWay(what string) error {
	if what == "merge" {
		return fmt.Errorf("a merge is going on in this checkout; what changed in specs/ goes into its commit: add it there")
	}
	return fmt.Errorf("a %s is going on in this checkout and would take the commit along; once it is over, the next command that changes specs/ commits this, too; what is not committed is gone after `git %s --abort`", what, what)
}

// commitPatience is how long a commit waits for those of other commands.
const commitPatience = 30 * time.Second

// oneAtATime keeps commits of several commands apart: one would find committed what it
// had just found changed, which git calls a failure.
func oneAtATime(ctx context.Context, store *task.Store, commit func() error) error {
	wait, cancel := context.WithTimeout(ctx, commitPatience)
	defer cancel()
	if unlock, err := durable.Lock(wait, store.CommitLock()); err == nil {
		defer func() { _ = unlock() }() // it ends with the process
	}
	return commit()
}
