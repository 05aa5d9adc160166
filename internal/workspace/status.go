package workspace

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/durable"
	"reprise/internal/git"
)

// work is what is in a worktree and nowhere else, as git tells it.
type work struct {
	admin    string
	common   string   // git directory of the repository
	index    string   // a copy of the index, which is changed and thrown away
	head     string   // commit, "" before the first one
	branch   string   // full name of the ref, "" when detached
	changed  []string // tracked files that differ, staged or not
	unmerged bool
	untried  []string // untracked files
	repos    []string // repositories of their own in it
	ignored  []string // ignored files, and directories with a slash at the end
	// heads are commits that only the worktree's own files name: an unfinished merge
	// or rebase, the reflog.
	heads []string
	// within are the git directories of submodules that are checked out, and modules
	// those that go with the worktree.
	within  []module
	modules []*module
}

func (k *work) clean() bool { return len(k.changed)+len(k.untried) == 0 }

// look finds what is in the worktree. It works on a copy of the index, in which no
// file is passed over: changes in those that are marked as unchanged are changes.
func (m *Manager) look(ctx context.Context, w *Workspace) (*work, error) {
	g := m.git(w.Dir)
	if err := m.inPlace(ctx, g, w.Common); err != nil {
		return nil, fmt.Errorf("look at %s: %w", w.Dir, err)
	}
	k := &work{admin: git.LinkedDir(w.Dir)}
	k.index = filepath.Join(k.admin, "reprise-index")
	g = g.WithIndex(k.index)
	if err := m.copyIndex(ctx, g, w.Dir, k); err != nil {
		return nil, fmt.Errorf("look at %s: %w", w.Dir, err)
	}
	out, err := g.Run(ctx, "-c", "core.splitIndex=false", "status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignored=matching", "--ignore-submodules=none", "--no-renames")
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", w.Dir, err)
	}
	agent := path.Join(w.Sub, ".reprise/agent") + "/"
	var files []string // that differ in themselves alone
	for f := range strings.SplitSeq(string(out), "\x00") {
		if len(f) < 4 {
			continue
		}
		kind, name := f[:2], f[3:]
		switch {
		case strings.HasPrefix(name, agent), name == strings.TrimSuffix(agent, "/"):
		case kind == "!!":
			k.ignored = append(k.ignored, name)
		case kind == "??" && strings.HasSuffix(name, "/"):
			k.repos = append(k.repos, name)
		case kind == "??":
			k.untried = append(k.untried, name)
		case kind == " M":
			files = append(files, name)
		default:
			k.unmerged = k.unmerged || strings.Contains(kind, "U") || kind == "AA" || kind == "DD"
			k.changed = append(k.changed, name)
		}
	}
	if err := m.changed(ctx, g, k, files); err != nil {
		return nil, fmt.Errorf("look at %s: %w", w.Dir, err)
	}
	var known bool
	if k.head, known = m.headIn(ctx, w.Common, k.admin); !known {
		if k.head, err = g.Resolve(ctx, "HEAD"); err != nil {
			return nil, err
		}
	}
	k.branch = headRef(k.admin)
	k.heads = ownHeads(k.admin)
	return k, nil
}

// changed adds those of the files that git calls changed which somebody has changed.
func (m *Manager) changed(ctx context.Context, g *git.Git, k *work, files []string) error {
	fresh, err := g.Unchanged(ctx, files)
	if err != nil {
		return err
	}
	for _, name := range files {
		if !fresh[name] {
			k.changed = append(k.changed, name)
		}
	}
	return nil
}

// headRef is the branch that a worktree is on.
func headRef(admin string) string {
	data, err := durable.Read(filepath.Join(admin, "HEAD"))
	if err != nil {
		return ""
	}
	ref, _ := strings.CutPrefix(strings.TrimSpace(string(data)), "ref: ")
	if !strings.HasPrefix(ref, "refs/") {
		return ""
	}
	return ref
}

// copyIndex copies the index and unmarks the files that git would pass over.
func (m *Manager) copyIndex(ctx context.Context, g *git.Git, dir string, k *work) error {
	there, err := git.CopyIndex(m.o.Disk, filepath.Join(k.admin, "index"), k.index)
	if err != nil {
		return err
	}
	if !there {
		return m.o.Disk.RemoveAll(k.index)
	}
	if git.PlainIndex(k.index) {
		return nil
	}
	out, err := g.Run(ctx, "ls-files", "-v", "-z")
	if err != nil {
		return err
	}
	var marked []string
	for f := range strings.SplitSeq(string(out), "\x00") {
		if len(f) < 3 || f[0] != 'S' && (f[0] < 'a' || f[0] > 'z') {
			continue
		}
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(f[2:]))); err == nil {
			marked = append(marked, f[2:])
		}
	}
	for _, how := range [...]string{"--no-assume-unchanged", "--no-skip-worktree"} {
		if len(marked) == 0 {
			break
		}
		if _, err := g.RunInput(ctx, nul(marked), "-c", "core.splitIndex=false", "update-index", how, "-z", "--stdin"); err != nil {
			return err
		}
	}
	return nil
}

func nul(names []string) []byte { return []byte(strings.Join(names, "\x00") + "\x00") }

// ownHeads are commits that the worktree's own files name.
func ownHeads(admin string) []string {
	var out []string
	add := func(id string) {
		if len(id) >= 40 && strings.Trim(id, "0123456789abcdef") == "" && strings.Trim(id, "0") != "" && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	for _, name := range [...]string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "ORIG_HEAD", "rebase-merge/orig-head", "rebase-apply/orig-head"} {
		data, err := durable.Read(filepath.Join(admin, filepath.FromSlash(name)))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			add(strings.TrimSpace(line))
		}
	}
	data, err := durable.Read(filepath.Join(admin, "logs", "HEAD"))
	if err != nil {
		return out
	}
	for line := range strings.Lines(string(data)) {
		if part := strings.SplitN(line, " ", 3); len(part) == 3 {
			add(part[0])
			add(part[1])
		}
	}
	return out
}
