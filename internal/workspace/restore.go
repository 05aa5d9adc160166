package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/pathname"
)

// Saved is what was kept of a workspace that was removed.
type Saved struct {
	Workspace string    `json:"workspace"`
	Ref       string    `json:"ref,omitempty"`    // "" where only ignored files were kept
	Commit    string    `json:"commit,omitempty"` // in the form of a stash
	Branch    string    `json:"branch,omitempty"` // that it was on, "" for none
	At        time.Time `json:"at"`
	// Kept is a directory with files that git ignores, of the same removal, and what its
	// submodules had.
	Kept  string `json:"kept,omitempty"`
	Bytes int64  `json:"bytes,omitempty"` // of these
}

// ErrAmbiguous says that more than one thing was kept of a workspace.
var ErrAmbiguous = errors.New("more than one thing was kept of it")

// ListSaved is what was kept of workspaces, the newest first. name is one of them,
// "" all.
func (m *Manager) ListSaved(ctx context.Context, name string) ([]Saved, error) {
	from, err := m.origin("")
	if err != nil {
		return nil, err
	}
	out, err := m.git(from.top).Run(ctx, "for-each-ref", "--format=%(objectname)%00%(refname)%00%(committerdate:unix)%00%(contents:body)%00%00", savedRefs+strings.TrimSuffix(name, "/"))
	if err != nil {
		return nil, fmt.Errorf("list what was kept: %w", err)
	}
	var list []Saved
	for rec := range strings.SplitSeq(string(out), "\x00\x00\n") {
		part := strings.SplitN(rec, "\x00", 4)
		if len(part) != 4 {
			continue
		}
		rest, ok := strings.CutPrefix(part[1], savedRefs)
		ws, stamp, ok2 := strings.Cut(rest, "/")
		if !ok || !ok2 {
			continue
		}
		s := Saved{Workspace: ws, Ref: part[1], Commit: part[0]}
		if at, err := time.Parse(stampForm, stamp[:min(len(stamp), len(stampForm))]); err == nil {
			s.At = at
		}
		for line := range strings.Lines(part[3]) {
			if b, ok := strings.CutPrefix(strings.TrimSpace(line), "Saved-Branch: "); ok {
				s.Branch = b
			}
		}
		list = append(list, s)
	}
	if err := m.addKept(&list, name); err != nil {
		return nil, fmt.Errorf("list what was kept: %w", err)
	}
	slices.SortStableFunc(list, func(a, b Saved) int { return b.At.Compare(a.At) })
	return list, nil
}

// Elsewhere are the main checkouts of other clones of the project on this machine that keep
// something of a workspace, "" for any: what was kept is in the repository that it came from.
func (m *Manager) Elsewhere(ctx context.Context, name string) (roots []string) {
	all, err := m.o.Paths.ClaimedRoots(m.o.Project.Name)
	if err != nil {
		return nil // it is only a hint
	}
	for _, root := range all {
		g := m.git(root)
		if pathname.Same(root, m.o.Project.Main) || !g.IsTop() {
			continue
		}
		if out, err := g.Run(ctx, "for-each-ref", "--count=1", "--format=%(refname)", savedRefs+name); err == nil && len(out) > 0 {
			roots = append(roots, root)
		}
	}
	return roots
}

// keptDirs are kept/NAME/TIME, the newest first: what was kept later takes the
// nearest ref after it.
func (m *Manager) keptDirs() ([]string, error) {
	names, err := durable.ReadDir(m.keptDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []string
	for _, n := range names {
		times, terr := durable.ReadDir(filepath.Join(m.keptDir(), n.Name()))
		err = errors.Join(err, terr)
		for _, t := range slices.Backward(times) {
			out = append(out, filepath.Join(m.keptDir(), n.Name(), t.Name()))
		}
	}
	return out, err
}

// addKept finds the directories of ignored files. What was kept in one removal
// belongs together.
func (m *Manager) addKept(list *[]Saved, name string) error {
	dirs, err := m.keptDirs()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		ws := filepath.Base(filepath.Dir(dir))
		at, err := time.Parse(stampForm, filepath.Base(dir))
		if err != nil || name != "" && ws != name {
			continue
		}
		var bytes int64
		err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			fi, err := d.Info()
			if err == nil {
				bytes += fi.Size()
			}
			return err
		})
		if err != nil {
			return err
		}
		i := -1
		for n, s := range *list { // the first ref that was made after it
			if s.Workspace == ws && s.Kept == "" && !s.At.Before(at) && s.At.Sub(at) < time.Hour && (i < 0 || s.At.Before((*list)[i].At)) {
				i = n
			}
		}
		if i < 0 {
			*list = append(*list, Saved{Workspace: ws, At: at})
			i = len(*list) - 1
		}
		(*list)[i].Kept, (*list)[i].Bytes = dir, bytes
	}
	return nil
}

// RestoreOptions say what to bring back, and where.
type RestoreOptions struct {
	Name string // of the workspace that was removed
	Ref  string // which of those that were kept; "" is the only one, or the newest with Newest
	// Newest takes the newest where several were kept.
	Newest bool
	As     string // the new workspace's name; "" is the old one
	Dir    string // as in CreateOptions
	Branch string // the code branch; "" is the one it was on, else a new one
}

// Restored is a workspace that was made of what was kept.
type Restored struct {
	Created
	From Saved `json:"from"`
}

// Restore makes a workspace of what was kept of one: the code branch (made again
// where it went), what was staged, changed and untracked, the files that git ignores,
// and the agent's branch. What was kept stays kept.
func (m *Manager) Restore(ctx context.Context, o RestoreOptions) (Restored, error) {
	out, err := m.restore(ctx, o)
	if err != nil {
		return out, fmt.Errorf("restore workspace %s: %w", o.Name, err)
	}
	return out, nil
}

func (m *Manager) restore(ctx context.Context, o RestoreOptions) (out Restored, err error) {
	list, err := m.ListSaved(ctx, o.Name)
	if err != nil {
		return out, err
	}
	list = slices.DeleteFunc(list, func(s Saved) bool {
		return s.Workspace != o.Name || o.Ref != "" && s.Ref != o.Ref && strings.TrimPrefix(s.Ref, savedRefs) != o.Ref
	})
	switch {
	case len(list) == 0 && len(m.Elsewhere(ctx, o.Name)) > 0:
		return out, fmt.Errorf("%w: nothing was kept of it in this clone; %s has it: run `reprise workspace restore %s` there", ErrNotFound, strings.Join(m.Elsewhere(ctx, o.Name), " and "), o.Name)
	case len(list) == 0:
		return out, fmt.Errorf("%w: nothing was kept of it; its branches may be there still: `reprise workspace create %s --attach` goes on with them", ErrNotFound, o.Name)
	case len(list) > 1 && !o.Newest:
		var refs []string
		for _, s := range list {
			refs = append(refs, s.Ref)
		}
		return out, fmt.Errorf("%w: pass one by --ref, or --newest: %s", ErrAmbiguous, strings.Join(refs, ", "))
	}
	s := list[0]
	c := CreateOptions{Name: o.Name, Dir: o.Dir, Branch: o.Branch, Attach: true}
	if o.As != "" {
		c.Name = o.As
	}
	if c.Branch == "" {
		c.Branch = s.Branch
	}
	if err := m.restoreBranch(ctx, &c, s); err != nil {
		return out, err
	}
	out.From = s
	if out.Created, err = m.Create(ctx, c); err != nil {
		return out, err
	}
	if s.Ref != "" {
		// What is in no stash is nothing to apply; git says so and succeeds.
		if _, err := m.git(out.Dir).Run(ctx, "stash", "apply", "--quiet", "--index", s.Commit); err != nil {
			return out, fmt.Errorf("the workspace is there, in %s, but what was kept does not fit on branch %s, which has moved on: %w; `git stash apply %s` in it tries again", out.Dir, out.Branch, err, s.Ref)
		}
		if err := m.putOutside(ctx, out.Dir, s.Commit); err != nil {
			return out, fmt.Errorf("the workspace is there, in %s, but not all that was kept in %s: %w", out.Dir, s.Ref, err)
		}
	}
	if s.Kept != "" {
		if err := m.putBack(s.Kept, out.Dir); err != nil {
			return out, fmt.Errorf("the workspace is there, but files that git ignores could not be put back from %s: %w", s.Kept, err)
		}
		notes, err := m.putModulesBack(ctx, s.Kept, out.Dir)
		if err != nil {
			return out, fmt.Errorf("the workspace is there, but what was kept of its submodules could not be put back from %s: %w", s.Kept, err)
		}
		out.Notes = append(out.Notes, notes...)
	}
	return out, nil
}

// putOutside puts the files of a stash into a worktree that git left out when it was
// applied: where something was staged, it passes over what lies outside of a sparse
// checkout.
func (m *Manager) putOutside(ctx context.Context, dir, stash string) error {
	g := m.git(dir)
	out, err := g.Run(ctx, "diff", "--name-only", "-z", "--no-ext-diff", "--no-renames", "--diff-filter=d", stash+"^1", stash)
	if err != nil {
		return err
	}
	var missing []string
	for name := range strings.SplitSeq(string(out), "\x00") {
		if name != "" && !fileThere(filepath.Join(dir, filepath.FromSlash(name))) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = g.RunInput(ctx, nul(missing), "--literal-pathspecs", "restore", "--quiet", "--source="+stash, "--worktree", "--ignore-skip-worktree-bits", "--pathspec-from-file=-", "--pathspec-file-nul")
	return err
}

// restoreBranch decides whether the branch is gone on with or made anew where it was.
func (m *Manager) restoreBranch(ctx context.Context, c *CreateOptions, s Saved) error {
	if s.Commit == "" {
		return nil
	}
	from, err := m.origin("")
	if err != nil {
		return err
	}
	g := m.git(from.top)
	if c.Branch == "" { // it was on none: a new one, where it was
		c.Branch = c.Name
		for n := 1; ; n++ {
			at, err := g.Resolve(ctx, "refs/heads/"+c.Branch)
			if err != nil {
				return err
			}
			if at == "" {
				break
			}
			c.Branch = fmt.Sprintf("%s-restored-%d", c.Name, n)
		}
	} else {
		at, err := g.Resolve(ctx, "refs/heads/"+c.Branch)
		if err != nil || at != "" {
			return err
		}
	}
	c.Base, err = g.Resolve(ctx, s.Commit+"^1")
	if err == nil && c.Base == "" {
		err = fmt.Errorf("%w: commit %s is damaged", git.ErrMoved, s.Commit)
	}
	return err
}

// putBack copies kept files into a workspace; what is there stays.
func (m *Manager) putBack(from, to string) error {
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && p == filepath.Join(from, modulesDir) {
			return fs.SkipDir // see putModulesBack
		}
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		dest := filepath.Join(to, rel)
		if _, err := os.Lstat(dest); err == nil {
			return nil
		}
		data, err := durable.Read(p)
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		if err := m.o.Disk.MkdirAll(filepath.Dir(dest), 0o755); err != nil {
			return err
		}
		return m.o.Disk.WriteFile(dest, data, fi.Mode().Perm())
	})
}

// DropSaved forgets what was kept, for good: the ref, as it is named, and the
// directory of ignored files that belongs to it.
func (m *Manager) DropSaved(ctx context.Context, s Saved) error {
	from, err := m.origin("")
	if err != nil {
		return err
	}
	if s.Kept != "" {
		if err := m.o.Disk.RemoveAll(s.Kept); err != nil {
			return fmt.Errorf("forget what was kept: %w", err)
		}
	}
	if s.Ref == "" {
		return nil
	}
	if err := m.git(from.top).DropRef(ctx, s.Ref, s.Commit); err != nil {
		return fmt.Errorf("forget what was kept: %w", err)
	}
	return nil
}
