package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/proc"
	"reprise/internal/verify/tree"
)

// Mend finishes what commands left that were killed: a making is taken back, a
// removal gone on with. It says what it did, one sentence each. Commands that make or
// remove workspaces do it first. One that cannot be finished is in nobody's way but its
// own: that is a note, too, and the next command tries again.
func (m *Manager) Mend(ctx context.Context) ([]string, error) {
	done, err := m.mend(ctx)
	var notes []string
	for _, d := range done {
		notes = append(notes, d.notes...)
	}
	return notes, err
}

// mended is one workspace that was finished, or with no name one that was found again.
type mended struct {
	name  string
	notes []string
	gone  *Removed // of a removal that was gone on with
	err   error    // why it could not be finished
}

func (m *Manager) mend(ctx context.Context) ([]mended, error) {
	names, err := m.names()
	if err != nil {
		return nil, err
	}
	if len(names) > 0 { // records that a killed command was writing; they are in nobody's way
		_, _ = m.o.Disk.RemoveStale(m.dir(), m.o.Env.Now().Add(-time.Hour))
	}
	var out []mended
	for _, name := range names {
		w, err := readRecord(m.file(name))
		if err == nil && !m.here(&w) {
			found, err := m.Refind(ctx, name)
			switch {
			case ctx.Err() != nil:
				return out, ctx.Err()
			case err != nil:
				out = append(out, mended{notes: []string{err.Error()}})
			case found:
				out = append(out, mended{notes: []string{"workspace " + name + " was found again: its repository, or it, had been moved"}})
			}
		}
		if err != nil || !abandoned(&w) {
			continue // one that cannot be read is in nobody's way but its own
		}
		d, err := m.mendOne(ctx, name)
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		if err != nil {
			d = &mended{name: name, err: err, notes: []string{"workspace " + name + " stays unfinished, and the next command tries again: " + err.Error()}}
		}
		if d != nil {
			out = append(out, *d)
		}
	}
	return out, nil
}

// abandoned says that whoever made or removed the workspace is gone.
func abandoned(w *Workspace) bool {
	return w.State != Ready && (w.By == nil || !w.By.Alive())
}

var errNothingToDo = errors.New("nothing to do")

func (m *Manager) mendOne(ctx context.Context, name string) (*mended, error) {
	self, err := proc.Self()
	if err != nil {
		return nil, err
	}
	w, err := m.change(ctx, name, func(w *Workspace) error {
		if !abandoned(w) {
			return errNothingToDo // another one was quicker
		}
		w.By = &self
		return nil
	})
	if errors.Is(err, errNothingToDo) || isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d := &mended{name: name}
	if w.State == Making {
		notes, err := m.takeBack(ctx, w)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("take back workspace %s, whose making was cut off: %w", name, err), m.disown(context.WithoutCancel(ctx), name))
		}
		d.notes = append([]string{fmt.Sprintf("the making of workspace %s had been cut off; what there was of it was taken back", name)}, notes...)
		return d, nil
	}
	gone, err := m.carryOut(ctx, w)
	if err != nil {
		return nil, fmt.Errorf("go on with the removal of workspace %s: %w", name, err)
	}
	d.gone = &gone
	d.notes = append([]string{fmt.Sprintf("the removal of workspace %s had been cut off; it was finished", name)}, gone.Notes...)
	return d, nil
}

// takeBack removes what a making has made. Nobody was told of it, so nothing in it is
// anybody's work.
func (m *Manager) takeBack(ctx context.Context, w Workspace) (notes []string, err error) {
	admin := git.LinkedDir(w.Dir)
	if admin != "" && filepath.Dir(filepath.Dir(admin)) != filepath.Clean(w.Common) {
		admin = ""
		notes = append(notes, w.Dir+" is another repository's; it was left alone")
	} else if admin == "" {
		admin = findAdmin(w.Common, w.Dir)
	}
	if err := m.o.Disk.Step("remove", w.Dir); err != nil {
		return notes, err
	}
	switch list, rerr := durable.ReadDir(w.Dir); {
	case rerr != nil: // not there
	case git.LinkedDir(w.Dir) != "" && len(notes) == 0:
		err = tree.RemoveAll(w.Dir)
	case len(list) == 0:
		err = m.o.Disk.Remove(w.Dir)
	case len(notes) == 0:
		notes = append(notes, w.Dir+" holds files of somebody else; they were left alone")
	}
	if err != nil {
		return notes, err
	}
	if admin != "" {
		if err := m.o.Disk.RemoveAll(admin); err != nil {
			return notes, err
		}
	}
	if w.NewBranch {
		if err := m.dropBranch(ctx, &w, w.Base); err != nil && !errors.Is(err, git.ErrMoved) {
			return notes, err
		}
	}
	undo := m.o.State.Detach
	if w.NewAgent {
		undo = m.o.State.TakeBack
	}
	if err := undo(ctx, w.Name, w.AgentDir); err != nil {
		return notes, err
	}
	return notes, m.forget(ctx, &w)
}

// dropBranch removes the code branch, if it is at the commit.
func (m *Manager) dropBranch(ctx context.Context, w *Workspace, at string) error {
	err := m.repo(w).DropRef(ctx, "refs/heads/"+w.Branch, at)
	if errors.Is(err, git.ErrLocked) {
		// The repository is the user's, and so may be the lock: it is never removed here.
		for _, name := range []string{"refs/heads/" + w.Branch, "packed-refs", "HEAD"} {
			if path := filepath.Join(w.Common, filepath.FromSlash(name)+".lock"); fileThere(path) {
				return fmt.Errorf("branch %s cannot be removed, for %s is there; if no git is at work in the repository, a killed one left it: remove that file (%w)", w.Branch, path, git.ErrLocked)
			}
		}
	}
	return err
}

func fileThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// repo is the code repository, by its git directory: also where no checkout is left.
func (m *Manager) repo(w *Workspace) *git.Git { return git.NewBare(w.Common, m.gitOptions()) }

// forget removes the record, which is the last step.
func (m *Manager) forget(ctx context.Context, w *Workspace) error {
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := m.o.Disk.Remove(m.file(w.Name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// The directory above is ours where it has the usual name and nothing in it.
	above := filepath.Dir(w.Dir)
	if filepath.Base(above) == m.o.Project.Name+workspacesSuffix {
		if list, err := durable.ReadDir(above); err == nil && len(list) == 0 {
			_ = m.o.Disk.Remove(above) // somebody else may make one there at this moment
		}
	}
	return nil
}
