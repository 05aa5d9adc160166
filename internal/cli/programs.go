package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/loop"
	"reprise/internal/loop/core"
)

// programsFile says, in a loop's directory, which programs the project's repository had git run
// when the loop began. It is there while a loop goes on, and stays where the repository was left
// with others: runs, which may write what all worktrees share, have no say in what git runs
// outside of their sandbox.
const programsFile = "programs.json"

type keptPrograms struct {
	V    int      `json:"v"`
	Sums []string `json:"sums"`
}

// programsIn are those of a loop's directory, nil where there are none.
func programsIn(dir string) (*git.Programs, error) {
	file := filepath.Join(dir, programsFile)
	data, err := durable.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var kept keptPrograms
	if err == nil {
		err = json.Unmarshal(data, &kept)
	}
	if err == nil && kept.V > 1 {
		return nil, fmt.Errorf("read which programs git may run (%s): it has format %d, this program knows up to 1: use a newer reprise", file, kept.V)
	}
	if err == nil && kept.V != 1 {
		err = fmt.Errorf("its version is %d, and this program knows 1", kept.V)
	}
	if err != nil {
		return nil, fmt.Errorf("read which programs git may run (%s): %w; where no loop runs, look at `git config --list --show-origin`, and remove the file", file, err)
	}
	return git.KnownPrograms(kept.Sums), nil
}

// gitPrograms are those that the project's repository may have git run, nil where that is for
// the user's own git to say.
func (a *App) gitPrograms(home *config.Home) (*git.Programs, error) {
	if a.programs != nil || home.Project == nil {
		return a.programs, nil
	}
	return programsIn(filepath.Join(home.Paths.ProjectDir(home.Project.Name), "loop"))
}

// holdPrograms holds git, for a loop that begins or is gone on with, to the programs that the
// repository has it run by now; what an earlier one left that is not its user's stands against
// it. Hooks do so where the loop pushes as the user does (asUser); else none is run.
func (a *App) holdPrograms(ctx context.Context, dir, root string, asUser bool) error {
	file := filepath.Join(dir, programsFile)
	was, err := programsIn(dir)
	if err != nil {
		return err
	}
	g := git.New(root, git.Options{Vars: a.Env.Vars}).OfUser()
	if was != nil {
		err := was.Check(ctx, g)
		hooks := was.Check(ctx, g.AsUser())
		if err == nil && asUser {
			err = hooks
		}
		if errors.Is(err, git.ErrPrograms) {
			return exitWith(ExitConflict, fmt.Errorf("%w. It came while a loop worked; where it is yours, remove %s, and begin the loop again", err, file))
		}
		if err != nil {
			return err
		}
		if hooks != nil { // a run's hook does not become the user's by a loop that runs none
			a.programs = was
			return nil
		}
	}
	a.programs = git.KnownPrograms(nil)
	if err := a.programs.Learn(ctx, g); err != nil {
		return err
	}
	sums := a.programs.Sums()
	if was != nil && slices.Equal(was.Sums(), sums) {
		return nil
	}
	data, err := json.Marshal(keptPrograms{V: 1, Sums: sums})
	if err != nil {
		return err
	}
	if err := (durable.Disk{}).MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return durable.WriteFile(file, append(data, '\n'), 0o600)
}

// releaseAfter has a loop end that when all else is done.
func (a *App) releaseAfter(ctx context.Context, opt *loop.Options, root string) {
	before, dir := opt.After, opt.Dir
	opt.After = func() {
		if before != nil {
			before()
		}
		if err := a.releasePrograms(context.WithoutCancel(ctx), dir, root); err != nil {
			fmt.Fprintf(a.Err, "note: %s\n", firstLine(err.Error(), 600))
		}
	}
}

// releasePrograms ends that with a loop that has ended and left the repository as it was. What is
// not as it was is said.
func (a *App) releasePrograms(ctx context.Context, dir, root string) error {
	if s, err := loop.ReadState(dir); err != nil || s == nil || s.Phase != core.Finished || a.programs == nil {
		return err // its runs go on
	}
	g := git.New(root, git.Options{Vars: a.Env.Vars}).OfUser()
	if err := a.programs.Check(ctx, g); err != nil {
		return err
	}
	if err := a.programs.Check(ctx, g.AsUser()); err != nil {
		return nil //nolint:nilerr // the loop has told of it
	}
	err := durable.Disk{}.Remove(filepath.Join(dir, programsFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}
