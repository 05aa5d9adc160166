package workspace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"reprise/internal/config"
	"reprise/internal/git"
	"reprise/internal/pathname"
	"reprise/internal/staterepo"
)

// A repository and its worktrees name each other by where they are. So who renames a
// project's directory, or moves it to another disk, cuts each worktree off, with all that is
// not committed in it. Both ends are there still: what the repository has of the worktree
// went with it, under the name that the record knows.

// Refind looks for a workspace that was cut off because its repository was moved, or itself, or
// both, and joins it again, by git. found says that it did. Where only the repository is found, the
// record names that from then on, so that the rest can be made anew there. A workspace that is
// whole, or that is nowhere, stays as it is; that is no error.
func (m *Manager) Refind(ctx context.Context, name string) (found bool, err error) {
	w, err := m.Get(name)
	if err != nil || w.State != Ready && !abandoned(&w) || m.here(&w) {
		return false, err
	}
	next := m.followed(w)
	if next == nil {
		return false, nil
	}
	if found = next.Dir != ""; found {
		if err := m.rejoin(ctx, next); err != nil {
			return false, fmt.Errorf("find workspace %s again, which was moved: %w", name, err)
		}
	} else {
		next.Dir = w.Dir
	}
	w, err = m.change(ctx, name, func(r *Workspace) error {
		if rel, err := filepath.Rel(r.Dir, r.AgentDir); err == nil {
			r.AgentDir = filepath.Join(next.Dir, rel)
		}
		r.Dir, r.Common, r.Admin, r.StateRepo = next.Dir, next.Common, next.Admin, m.o.State.Dir()
		return nil
	})
	if err != nil || !found {
		return false, err
	}
	// The state of its agent is cut off like the code.
	if _, err := m.o.State.Open(ctx, w.AgentDir); err != nil && !errors.Is(err, staterepo.ErrNoAgent) {
		return true, fmt.Errorf("join the state of agent %s again: %w", name, err)
	}
	return true, nil
}

// followed is where a workspace is now that is not where its record has it; its Dir is "" where only
// the repository was found. nil: it is where it was, or nobody can tell.
func (m *Manager) followed(w Workspace) *Workspace {
	from, err := m.origin("")
	if err != nil {
		return nil // whoever makes a workspace says what is wrong
	}
	common := commonOf(from.top)
	if common == "" {
		return nil
	}
	moved := !pathname.Same(common, w.Common)
	if moved && isGitDir(w.Common) {
		return nil // the project is another copy of it
	}
	next := w
	next.Common, next.Dir = common, ""
	if w.Admin == "" { // it was not finished
		next.Admin = findAdmin(common, w.Dir)
	} else {
		next.Admin = filepath.Join(common, "worktrees", filepath.Base(w.Admin))
	}
	at := checkedOut(next.Admin)
	for _, dir := range m.maybeAt(&w, from.top) {
		has := git.LinkedDir(dir)
		ours := has != "" && (has == filepath.Clean(w.Admin) || has == next.Admin)
		if ours && (at == filepath.Clean(w.Dir) || at != "" && pathname.Same(at, dir)) {
			next.Dir = dir
			return &next
		}
	}
	if !moved {
		return nil
	}
	return &next
}

// maybeAt are the directories in which a worktree may be that is not where it was, of a repository
// whose checkout is at top now: where it was, where it would be made, and where it is if it
// was moved with the checkout, or renamed like it.
func (m *Manager) maybeAt(w *Workspace, top string) []string {
	dirs := []string{w.Dir, filepath.Join(filepath.Dir(config.Outermost(top)), m.o.Project.Name+workspacesSuffix, w.Name)}
	was := config.MainCheckout(w.Common)
	if was == "" {
		return dirs
	}
	rel, err := filepath.Rel(was, w.Dir)
	if err != nil {
		return dirs
	}
	dirs = append(dirs, filepath.Join(top, rel))
	if rest, ok := strings.CutPrefix(filepath.ToSlash(rel), "../"+filepath.Base(was)+"."); ok {
		dirs = append(dirs, filepath.Join(filepath.Dir(top), filepath.Base(top)+"."+filepath.FromSlash(rest)))
	}
	return dirs
}

// rejoin has git write where a worktree and its repository are, and its submodules.
func (m *Manager) rejoin(ctx context.Context, w *Workspace) error {
	if _, err := m.repo(w).Run(ctx, "worktree", "repair", "--", w.Dir); err != nil {
		return err
	}
	if !m.here(w) || !pathname.Same(checkedOut(w.Admin), w.Dir) {
		return fmt.Errorf("%w: git has not joined %s and %s", ErrRefused, w.Dir, w.Common)
	}
	return m.rejoinSubmodules(ctx, w.Dir, w.Admin)
}

// rejoinSubmodules does the same for the submodules of a checkout, whose git directories lie
// in its own one.
func (m *Manager) rejoinSubmodules(ctx context.Context, dir, admin string) error {
	if !fileThere(filepath.Join(admin, "modules")) || !fileThere(filepath.Join(dir, ".gitmodules")) {
		return nil
	}
	names, err := m.submoduleNames(ctx, m.git(dir), "--file", ".gitmodules")
	if err != nil {
		return err
	}
	for path, name := range names {
		own, module := filepath.Join(dir, filepath.FromSlash(path)), filepath.Join(admin, "modules", filepath.FromSlash(name))
		if git.LinkedDir(own) == "" || !isGitDir(module) {
			continue // it was not checked out, or has a repository in it
		}
		if git.LinkedDir(own) != module {
			if err := m.pointTo(ctx, own, module); err != nil {
				return fmt.Errorf("join submodule %s again: %w", path, err)
			}
		}
		if err := m.rejoinSubmodules(ctx, own, module); err != nil {
			return err
		}
	}
	return nil
}

// pointTo has a checkout and its git directory name each other, as git itself does: by how one
// gets from one to the other. The checkout's own end is the last, by which it is seen that both are
// there.
func (m *Manager) pointTo(ctx context.Context, dir, admin string) error {
	out, err := filepath.Rel(admin, dir)
	if err != nil {
		return err
	}
	back, err := filepath.Rel(dir, admin)
	if err != nil {
		return err
	}
	if _, err := m.inModule(admin).Run(ctx, "config", "core.worktree", filepath.ToSlash(out)); err != nil {
		return err
	}
	return m.o.Disk.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: "+filepath.ToSlash(back)+"\n"), 0o644)
}
