package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/pathname"
)

// The git directory of a submodule of a workspace lies in that of the worktree, and goes
// with it: its stashes, what was amended or reset away in it, its branches also where it
// is not checked out any more. Of the workspace itself all these are in the repository
// that stays. What a submodule has of the kind is kept as a git bundle, which holds no
// more than the commits that its remote does not have.

// module is the git directory of a submodule.
type module struct {
	dir   string
	key   string // names it beside the others, also in a workspace made again
	label string // for people
	main  string // the git directory that the main checkout has of it, "" for none

	stashes  []string // commits, the newest first
	branches []string // names of those with commits of their own
	tips     []string // commits that are nowhere else and not in one of the others
	broken   string   // why it cannot be kept
}

const (
	// modulesDir is where the bundles are among what is kept. No file that git ignores
	// can have that path.
	modulesDir   = ".git"
	bundleSuffix = ".bundle"
	keptRefs     = "refs/reprise/kept/"
)

// modules are the git directories of submodules that go with a worktree: below admin,
// and where one was never moved there, in the worktree itself (k.within).
func (m *Manager) modules(ctx context.Context, w *Workspace, k *work) ([]*module, error) {
	var out []*module
	root := filepath.Join(k.admin, "modules")
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && p == root {
			return fs.SkipAll
		}
		if err != nil || !d.IsDir() {
			return err
		}
		// Of a git directory only its own submodules are of interest.
		if up := filepath.Dir(p); isGitDir(up) && d.Name() != "modules" {
			return fs.SkipDir
		}
		if !isGitDir(p) {
			return nil
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		out = append(out, &module{dir: p, key: "modules/" + name, label: strings.ReplaceAll(name, "/modules/", "/"), main: filepath.Join(w.Common, "modules", rel)})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for submodules: %w", err)
	}
	for _, x := range k.within {
		if !within(x.dir, w.Dir) || slices.ContainsFunc(out, func(o *module) bool { return pathname.Same(o.dir, x.dir) }) {
			continue // it lies elsewhere, and stays
		}
		if top := config.MainCheckout(w.Common); top != "" {
			x.main = gitDirOf(filepath.Join(top, filepath.FromSlash(x.label)))
		}
		out = append(out, &x)
	}
	for _, x := range out {
		if x.main != "" && !isGitDir(x.main) {
			x.main = ""
		}
		if err := m.lookModule(ctx, x); err != nil {
			return nil, fmt.Errorf("look at submodule %s: %w", x.label, err)
		}
	}
	return out, nil
}

func isGitDir(dir string) bool {
	return fileThere(filepath.Join(dir, "HEAD")) && fileThere(filepath.Join(dir, "objects"))
}

// inModule runs in a submodule's git directory. The checkout that its settings name may
// be gone, and git would insist on it; so it is told another one.
func (m *Manager) inModule(dir string) *git.Git { return git.NewBare(dir, m.gitOptions()).At(dir, dir) }

// lookModule finds what only this git directory has.
func (m *Manager) lookModule(ctx context.Context, x *module) error {
	if fileThere(filepath.Join(x.dir, "reftable")) {
		x.broken = "its refs are in a reftable"
		return nil
	}
	list, err := durable.ReadDir(filepath.Join(x.dir, "worktrees"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range list {
		if at := checkedOut(filepath.Join(x.dir, "worktrees", e.Name())); at != "" && fileThere(at) {
			x.broken = "it has a worktree of its own, " + at
			return nil
		}
	}
	g := m.inModule(x.dir)
	refs, err := g.Refs(ctx, "refs/")
	if err != nil {
		return err
	}
	ids, err := namedIn(x.dir)
	if err != nil {
		return err
	}
	for ref, id := range refs {
		if !strings.HasPrefix(ref, "refs/remotes/") && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	own, tips, err := m.ownCommits(ctx, g, x.main, ids)
	if err != nil {
		return err
	}
	x.tips = tips
	for ref, id := range refs {
		if name, ok := strings.CutPrefix(ref, "refs/heads/"); ok && own[id] {
			x.branches = append(x.branches, name)
		}
	}
	slices.Sort(x.branches)
	for _, id := range slices.Backward(movedTo(filepath.Join(x.dir, "logs", "refs", "stash"))) {
		if own[id] {
			x.stashes = append(x.stashes, id)
		}
	}
	if id := refs["refs/stash"]; len(x.stashes) == 0 && own[id] {
		x.stashes = []string{id}
	}
	return nil
}

// namedIn are the commits that a git directory's own files name: every reflog, and
// what git was in the middle of, also those of its worktrees.
func namedIn(dir string) ([]string, error) {
	ids := ownHeads(dir)
	add := func(list []string) {
		for _, id := range list {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	if data, err := durable.Read(filepath.Join(dir, "HEAD")); err == nil && headRef(dir) == "" {
		add([]string{strings.TrimSpace(string(data))})
	}
	err := filepath.WalkDir(filepath.Join(dir, "logs"), func(p string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.IsDir() && p == filepath.Join(dir, "logs", "refs", "remotes"):
			return fs.SkipDir // of what a remote had
		case !d.IsDir():
			add(movedTo(p))
		}
		return nil
	})
	return ids, err
}

// movedTo are the commits that a reflog went to, the oldest first.
func movedTo(file string) []string {
	data, err := durable.Read(file)
	if err != nil {
		return nil
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		if part := strings.SplitN(line, " ", 3); len(part) == 3 && strings.Trim(part[1], "0") != "" {
			out = append(out, part[1])
		}
	}
	return out
}

// present are those of the ids that are commits in a repository, or tags of such: the
// commits. What was collected as garbage meanwhile cannot be kept.
func present(ctx context.Context, g *git.Git, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	out, err := g.RunInput(ctx, []byte(strings.Join(ids, "^{commit}\n")+"^{commit}\n"), "cat-file", "--batch-check")
	if err != nil {
		return nil, err
	}
	var there []string
	for line := range strings.Lines(string(out)) {
		if part := strings.Fields(line); len(part) == 3 && part[1] == "commit" {
			there = append(there, part[0])
		}
	}
	return there, nil
}

// ownCommits are those among the ids and their histories that neither a remote has, as
// far as is known there, nor the main checkout's own; and those of them that no other
// has in its history.
func (m *Manager) ownCommits(ctx context.Context, g *git.Git, main string, ids []string) (own map[string]bool, tips []string, err error) {
	own = map[string]bool{}
	if ids, err = present(ctx, g, ids); err != nil || len(ids) == 0 {
		return own, nil, err
	}
	out, err := g.RunInput(ctx, []byte(strings.Join(ids, "\n")+"\n"), "rev-list", "--parents", "--stdin", "--not", "--remotes")
	if err != nil {
		return own, nil, err
	}
	var all [][]string
	var names []string
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 0 {
			all, names = append(all, f), append(names, f[0])
			own[f[0]] = true
		}
	}
	if main != "" && len(names) > 0 {
		h := m.inModule(main)
		known, err := present(ctx, h, names)
		if err != nil {
			return own, nil, err
		}
		safe := map[string]bool{}
		for _, id := range known {
			safe[id] = true
		}
		if len(known) > 0 {
			out, err := h.RunInput(ctx, []byte(strings.Join(known, "\n")+"\n"), "rev-list", "--stdin", "--not", "HEAD", "--branches", "--tags", "--remotes", "--glob=refs/stash*")
			if err != nil {
				return own, nil, err
			}
			for _, id := range strings.Fields(string(out)) {
				delete(safe, id)
			}
		}
		for id := range safe {
			delete(own, id)
		}
	}
	inner := map[string]bool{}
	for _, f := range all {
		for _, p := range f[1:] {
			if own[f[0]] {
				inner[p] = true
			}
		}
	}
	for _, id := range names {
		if own[id] && !inner[id] {
			tips = append(tips, id)
		}
	}
	return own, tips, nil
}

// moduleLosses are what a removal would have to keep of submodules, and asks for.
func moduleLosses(mods []*module, work []string) (broken, stashes, branches []string) {
	for _, x := range mods {
		if x.broken != "" {
			broken = append(broken, x.label+": "+x.broken)
		}
		for i := range x.stashes {
			stashes = append(stashes, fmt.Sprintf("%s: stash@{%d}", x.label, i))
		}
		if !slices.ContainsFunc(work, func(path string) bool { return x.label == path || strings.HasPrefix(x.label, path+"/") }) {
			for _, b := range x.branches {
				branches = append(branches, x.label+": "+b)
			}
		}
	}
	return broken, stashes, branches
}

// keepModules writes the bundles, and says of how many submodules.
func (m *Manager) keepModules(ctx context.Context, mods []*module, to string) (labels []string, err error) {
	for _, x := range mods {
		if len(x.tips)+len(x.stashes) == 0 {
			continue
		}
		if err := m.keepModule(ctx, x, filepath.Join(to, modulesDir, filepath.FromSlash(x.key)+bundleSuffix)); err != nil {
			return labels, fmt.Errorf("keep what submodule %s has: %w", x.label, err)
		}
		labels = append(labels, x.label)
	}
	return labels, nil
}

func (m *Manager) keepModule(ctx context.Context, x *module, file string) error {
	// A bundle holds refs: so everything gets one, in the git directory that goes.
	var refs, updates strings.Builder
	add := func(name, id string) {
		fmt.Fprintf(&refs, "%s%s\n", keptRefs, name)
		fmt.Fprintf(&updates, "update %s%s %s\n", keptRefs, name, id)
	}
	for i, id := range x.stashes {
		add(fmt.Sprintf("stash-%04d", i), id)
	}
	for _, id := range x.tips {
		if !slices.Contains(x.stashes, id) {
			add(id, id)
		}
	}
	g := m.inModule(x.dir)
	if _, err := g.RunInput(ctx, []byte(updates.String()), "update-ref", "--stdin"); err != nil {
		return err
	}
	for _, b := range x.branches {
		refs.WriteString("refs/heads/" + b + "\n")
	}
	data, err := g.RunInput(ctx, []byte(refs.String()), "bundle", "create", "-", "--stdin", "--not", "--remotes")
	if err != nil {
		return err
	}
	if err := m.o.Disk.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return m.o.Disk.WriteFile(file, data, 0o600)
}

// putModulesBack brings what was kept of submodules into those of a workspace that was
// made again: stashes become stashes, branches that it does not have branches, and the
// rest is under refs. What does not fit stays where it is, and that is a note.
func (m *Manager) putModulesBack(ctx context.Context, kept, dir string) (notes []string, err error) {
	root := filepath.Join(kept, modulesDir)
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && p == root {
			return fs.SkipAll
		}
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, strings.TrimSuffix(p, bundleSuffix))
		if err != nil {
			return err
		}
		at := filepath.Join(git.LinkedDir(dir), rel)
		if path, ok := strings.CutPrefix(filepath.ToSlash(rel), "in/"); ok {
			at = gitDirOf(filepath.Join(dir, filepath.FromSlash(path)))
		}
		if at == "" || !isGitDir(at) {
			notes = append(notes, fmt.Sprintf("a submodule is not checked out; what was kept of it is in %s, a git bundle: `git fetch BUNDLE '%s*:%s*'` in the submodule brings it", p, keptRefs, keptRefs))
			return nil
		}
		if err := m.putModuleBack(ctx, at, p); err != nil {
			if ctx.Err() != nil {
				return err
			}
			notes = append(notes, fmt.Sprintf("what was kept of a submodule could not be put back; it is in %s, a git bundle: %v", p, err))
		}
		return nil
	})
	return notes, err
}

func (m *Manager) putModuleBack(ctx context.Context, at, bundle string) error {
	g := m.inModule(at)
	had, err := g.Refs(ctx, "refs/heads/")
	if err != nil {
		return err
	}
	if _, err := g.Run(ctx, "fetch", "--quiet", "--no-tags", "--", bundle, "+"+keptRefs+"*:"+keptRefs+"*", "+refs/heads/*:"+keptRefs+"heads/*"); err != nil {
		return err
	}
	refs, err := g.Refs(ctx, keptRefs)
	if err != nil {
		return err
	}
	var names []string
	for ref := range refs {
		names = append(names, ref)
	}
	slices.Sort(names)
	for _, ref := range slices.Backward(names) { // the newest stash last
		id, name := refs[ref], strings.TrimPrefix(ref, keptRefs)
		branch, isBranch := strings.CutPrefix(name, "heads/")
		switch {
		case strings.HasPrefix(name, "stash-"):
			about, err := g.Run(ctx, "log", "-1", "--format=%s", id)
			if err != nil {
				return err
			}
			if _, err := g.Run(ctx, "update-ref", "--create-reflog", "-m", strings.TrimSpace(string(about)), "refs/stash", id); err != nil {
				return err
			}
		case isBranch && had["refs/heads/"+branch] == "":
			if err := g.MoveRef(ctx, "refs/heads/"+branch, id, "", "reprise: brought back"); err != nil {
				return err
			}
		default:
			continue
		}
		if err := g.DropRef(ctx, ref, id); err != nil {
			return err
		}
	}
	return nil
}
