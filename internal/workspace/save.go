package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/git"
)

// savedRefs is where the code repository keeps what was in workspaces.
const savedRefs = "refs/reprise/saved/"

// identity is who makes the commits that keep what was in a workspace.
func identity() []string {
	return []string{"-c", "user.name=reprise", "-c", "user.email=reprise@localhost"}
}

// save keeps what is in the worktree, and the commits that nothing else names, under
// a ref of its own. The commit has the form of a stash, so that `git stash apply`
// brings it back: its parents are HEAD, the index, the untracked files, and then the
// commits. It touches neither the worktree nor its index. "" where there is nothing and
// must is false.
func (m *Manager) save(ctx context.Context, w *Workspace, k *work, lost []string, must bool) (string, error) {
	if k.clean() && len(lost) == 0 && !must {
		return "", nil
	}
	g := m.git(w.Dir).WithIndex(k.index)
	head := k.head
	var err error
	if head == "" {
		if head, err = m.emptyCommit(ctx, g); err != nil {
			return "", err
		}
	}
	staged := ""
	if !k.unmerged {
		if staged, err = writeTree(ctx, g); err != nil {
			return "", err
		}
	} else if staged, err = treeOf(ctx, g, head); err != nil {
		return "", err
	}
	if len(k.changed) > 0 {
		// --sparse: what lies outside of a sparse checkout and was changed all the same is
		// work, too.
		if _, err := g.RunInput(ctx, nul(k.changed), "--literal-pathspecs", "add", "-u", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul"); err != nil {
			return "", fmt.Errorf("keep changed files: %w", err)
		}
	}
	whole, err := writeTree(ctx, g)
	if err != nil {
		return "", err
	}
	untracked, err := m.untracked(ctx, g, k, len(lost) > 0)
	if err != nil {
		return "", err
	}
	return m.saveTrees(ctx, w, k, g, saved{head: head, staged: staged, whole: whole, untracked: untracked, lost: lost})
}

// saved are the parts of what is kept.
type saved struct {
	head                     string
	staged, whole, untracked string // trees; untracked may be "" where lost is empty
	lost                     []string
}

// saveTrees makes the commit and the ref.
func (m *Manager) saveTrees(ctx context.Context, w *Workspace, k *work, g *git.Git, s saved) (string, error) {
	on := strings.TrimPrefix(k.branch, "refs/heads/")
	if on == "" {
		on = "(no branch)"
	}
	about := fmt.Sprintf("%s: workspace %s of project %s", on, w.Name, w.Project)
	index, err := g.CommitTree(ctx, identity(), s.staged, "index on "+about, s.head)
	if err != nil {
		return "", err
	}
	parents := []string{s.head, index}
	if s.untracked == "" && len(s.lost) > 0 {
		id, err := g.RunInput(ctx, []byte{}, "mktree")
		if err != nil {
			return "", err
		}
		s.untracked = strings.TrimSpace(string(id))
	}
	if s.untracked != "" {
		id, err := g.CommitTree(ctx, identity(), s.untracked, "untracked files on "+about)
		if err != nil {
			return "", err
		}
		parents = append(append(parents, id), s.lost...)
	}
	if ref, err := m.sameSaved(ctx, w, s); ref != "" || err != nil {
		return ref, err
	}
	message := fmt.Sprintf("WIP on %s\n\nSaved-Workspace: %s\nSaved-Branch: %s\nSaved-Dir: %s\n", about, w.Name, strings.TrimPrefix(k.branch, "refs/heads/"), w.Dir)
	id, err := g.CommitTree(ctx, identity(), s.whole, message, parents...)
	if err != nil {
		return "", err
	}
	ref := savedRefs + w.Name + "/" + m.o.Env.Now().UTC().Format(stampForm) + "-" + id[:10]
	if err := m.repo(w).MoveRef(ctx, ref, id, "", "reprise: workspace "+w.Name+" saved"); err != nil && !errors.Is(err, git.ErrMoved) {
		return "", err
	}
	return ref, nil
}

// sameSaved is the ref that keeps exactly this already, "" where none does.
func (m *Manager) sameSaved(ctx context.Context, w *Workspace, s saved) (string, error) {
	g := m.repo(w)
	refs, err := g.Refs(ctx, savedRefs+w.Name+"/")
	if err != nil {
		return "", err
	}
	for ref := range refs {
		if w.Removal == nil || ref < savedRefs+w.Name+"/"+w.Removal.At.UTC().Format(stampForm) {
			continue // of an earlier removal, and belongs to what that kept beside it
		}
		list, err := g.Objects(ctx, ref, ref+"^2", ref+"^3")
		if err != nil {
			return "", err
		}
		whole, parents := git.CommitOf(list[0].Data)
		staged, _ := git.CommitOf(list[1].Data)
		untracked, _ := git.CommitOf(list[2].Data)
		if whole == s.whole && staged == s.staged && untracked == s.untracked && len(parents) > 1 && parents[0] == s.head && slices.Equal(parents[min(3, len(parents)):], s.lost) {
			return ref, nil
		}
	}
	return "", nil
}

func writeTree(ctx context.Context, g *git.Git) (string, error) {
	out, err := g.Run(ctx, "write-tree")
	return strings.TrimSpace(string(out)), err
}

func treeOf(ctx context.Context, g *git.Git, commit string) (string, error) {
	out, err := g.Run(ctx, "rev-parse", "--verify", "--quiet", commit+"^{tree}")
	return strings.TrimSpace(string(out)), err
}

func (m *Manager) emptyCommit(ctx context.Context, g *git.Git) (string, error) {
	id, err := g.RunInput(ctx, []byte{}, "mktree")
	if err != nil {
		return "", err
	}
	return g.CommitTree(ctx, identity(), strings.TrimSpace(string(id)), "nothing was committed")
}

// untracked is a tree of the untracked files, "" for none unless there must be one.
func (m *Manager) untracked(ctx context.Context, g *git.Git, k *work, must bool) (string, error) {
	if len(k.untried) == 0 && !must {
		return "", nil
	}
	index := filepath.Join(k.admin, "reprise-untracked")
	if err := m.o.Disk.RemoveAll(index); err != nil {
		return "", err
	}
	g = g.WithIndex(index)
	if len(k.untried) > 0 {
		if _, err := g.RunInput(ctx, nul(k.untried), "update-index", "--add", "-z", "--stdin"); err != nil {
			return "", fmt.Errorf("keep untracked files: %w", err)
		}
	} else if _, err := g.Run(ctx, "read-tree", "--empty"); err != nil {
		return "", err
	}
	id, err := writeTree(ctx, g)
	return id, errors.Join(err, m.o.Disk.RemoveAll(index))
}

// lost are those of the commits that nothing else in the repository names, without
// those that another of them has in its history. except is a branch that does not
// count, "" for none.
func (m *Manager) lost(ctx context.Context, w *Workspace, heads []string, except string) ([]string, error) {
	if len(heads) == 0 {
		return nil, nil
	}
	g := m.repo(w)
	// What was collected as garbage meanwhile cannot be kept.
	known, err := g.Objects(ctx, heads...)
	if err != nil {
		return nil, err
	}
	var in strings.Builder
	for i, id := range heads {
		if known[i].Kind == "commit" {
			in.WriteString(id + "\n")
		}
	}
	if in.Len() == 0 {
		return nil, nil
	}
	args := []string{"rev-list", "--parents", "--stdin", "--not"}
	if except != "" {
		args = append(args, "--exclude="+except)
	}
	args = append(args, "--branches", "--tags", "--remotes", "--glob="+savedRefs+"*", "--glob=refs/stash*")
	out, err := g.RunInput(ctx, []byte(in.String()), args...)
	if err != nil {
		return nil, err
	}
	inner := map[string]bool{}
	var all []string
	for line := range strings.Lines(string(out)) {
		ids := strings.Fields(line)
		if len(ids) == 0 {
			continue
		}
		all = append(all, ids[0])
		for _, p := range ids[1:] {
			inner[p] = true
		}
	}
	return slices.DeleteFunc(all, func(id string) bool { return inner[id] }), nil
}

// branchHeads are the tip of the workspace's branch and the commits of its reflog.
func (m *Manager) branchHeads(w *Workspace, tip string) []string {
	out := []string{tip}
	data, err := durable.Read(filepath.Join(w.Common, "logs", "refs", "heads", filepath.FromSlash(w.Branch)))
	if err != nil {
		return out
	}
	for line := range strings.Lines(string(data)) {
		if part := strings.SplitN(line, " ", 3); len(part) == 3 && strings.Trim(part[1], "0") != "" && !slices.Contains(out, part[1]) {
			out = append(out, part[1])
		}
	}
	return out
}

const (
	// keptMost is how many bytes of ignored files are kept; more is refused, unless the
	// caller lets them go.
	keptMost = 64 << 20
)

// remade says that a directory of this name is one that tools fill again: it is not
// kept, and nobody is asked.
func remade(name string) bool {
	switch name {
	case "node_modules", "bower_components", ".venv", "venv", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", ".nox",
		"target", "build", "dist", "out", ".next", ".nuxt", ".svelte-kit", ".turbo", ".parcel-cache", ".cache", ".gradle", ".terraform",
		"coverage", ".nyc_output", "htmlcov", "bazel-bin", "bazel-out", "zig-cache", ".zig-cache", "_build", "deps", "vendor", "Pods", ".dart_tool", "obj":
		return true
	}
	return false
}

// extras are the ignored files that are worth keeping, and what is too much.
type extras struct {
	files   []string // by their path from the top, with slashes
	bytes   int64
	dropped []string // directories that tools fill again
	large   []string // what made it more than is kept
}

// extras looks through what git ignores. What the main checkout has with the same
// content is no loss.
func (m *Manager) extras(w *Workspace, k *work) (extras, error) {
	var x extras
	main := config.MainCheckout(w.Common)
	for _, name := range k.ignored {
		if !strings.HasSuffix(name, "/") {
			m.extra(&x, w, main, name)
			continue
		}
		name = strings.TrimSuffix(name, "/")
		if remade(path.Base(name)) {
			x.dropped = append(x.dropped, name+"/")
			continue
		}
		before := x
		err := filepath.WalkDir(filepath.Join(w.Dir, filepath.FromSlash(name)), func(p string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && remade(d.Name()):
				return fs.SkipDir
			case d.IsDir():
				return nil
			}
			rel, err := filepath.Rel(w.Dir, p)
			if err != nil {
				return err
			}
			m.extra(&x, w, main, filepath.ToSlash(rel))
			if x.bytes > keptMost {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			return x, fmt.Errorf("look at what git ignores: %w", err)
		}
		if x.bytes > keptMost {
			before.large = append(before.large, name+"/")
			x = before
		}
	}
	return x, nil
}

func (m *Manager) extra(x *extras, w *Workspace, main, name string) {
	from := filepath.Join(w.Dir, filepath.FromSlash(name))
	fi, err := os.Lstat(from)
	if err != nil || !fi.Mode().IsRegular() {
		return // a link or a socket is nothing by itself
	}
	if main != "" && sameContent(from, filepath.Join(main, filepath.FromSlash(name)), fi.Size()) {
		return
	}
	if x.bytes+fi.Size() > keptMost && fi.Size() > keptMost/2 {
		x.large = append(x.large, name)
		return
	}
	x.files, x.bytes = append(x.files, name), x.bytes+fi.Size()
}

func sameContent(a, b string, size int64) bool {
	fi, err := os.Lstat(b)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() != size || size > keptMost {
		return false
	}
	x, err := durable.Read(a)
	if err != nil {
		return false
	}
	y, err := durable.Read(b)
	return err == nil && string(x) == string(y)
}

// keep copies files out of the workspace into a directory of ours: git would not.
func (m *Manager) keep(w *Workspace, files []string, to string) error {
	for _, name := range files {
		from := filepath.Join(w.Dir, filepath.FromSlash(name))
		fi, err := os.Lstat(from)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		data, err := durable.Read(from)
		if err != nil {
			return err
		}
		dest := filepath.Join(to, filepath.FromSlash(name))
		if err := m.o.Disk.MkdirAll(filepath.Dir(dest), 0o700); err != nil {
			return err
		}
		if err := m.o.Disk.WriteFileHot(dest, data, 0o600|fi.Mode().Perm()&0o100); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manager) keptDir() string { return filepath.Join(m.dir(), "kept") }

// keptAt is where ignored files of a workspace go that is removed now.
func (m *Manager) keptAt(w *Workspace) string {
	return filepath.Join(m.keptDir(), w.Name, w.Removal.At.UTC().Format(stampForm))
}

// stampForm is a time in names of refs and directories: their order is that of time.
const stampForm = "20060102T150405.000Z"
