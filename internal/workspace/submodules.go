package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/git"
)

// A linked worktree has none of the submodules that the checkout has from which it was
// made, and `git submodule update` would fetch them from wherever they came. They are
// here already; so they are cloned from the checkout's own, and then told where they
// came from.

// gitDirOf is the git directory of a checkout, "" where dir is none.
func gitDirOf(dir string) string {
	if admin := git.LinkedDir(dir); admin != "" {
		return admin
	}
	if fi, err := os.Stat(filepath.Join(dir, ".git")); err == nil && fi.IsDir() {
		return filepath.Join(dir, ".git")
	}
	return ""
}

// links are the paths of the submodules that a checkout's index has.
func (m *Manager) links(ctx context.Context, dir string) ([]string, error) {
	out, err := m.git(dir).Run(ctx, "ls-files", "--stage", "-z")
	if err != nil {
		return nil, err
	}
	var list []string
	for f := range strings.SplitSeq(string(out), "\x00") {
		info, name, ok := strings.Cut(f, "\t")
		if ok && strings.HasPrefix(info, git.ModeRepo+" ") && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list, nil
}

// addSubmodules checks out the submodules of dir that one of the checkouts of the same
// code has, and theirs, without asking any remote. What cannot be had is told and is no
// error: the workspace is whole as far as its own repository goes.
func (m *Manager) addSubmodules(ctx context.Context, dir string, from []string) (notes []string, err error) {
	if _, err := os.Lstat(filepath.Join(dir, ".gitmodules")); err != nil {
		return nil, nil //nolint:nilerr // it has none
	}
	paths, err := m.links(ctx, dir)
	if err != nil || len(paths) == 0 {
		return nil, err
	}
	names, err := m.submoduleNames(ctx, m.git(dir), "--file", ".gitmodules")
	if err != nil {
		return nil, err
	}
	var left []string
	for _, path := range paths {
		var source string
		for _, f := range from {
			if at := filepath.Join(f, filepath.FromSlash(path)); gitDirOf(at) != "" {
				source = at
				break
			}
		}
		name := names[path]
		if source == "" || name == "" {
			left = append(left, path)
			continue
		}
		inner, err := m.addSubmodule(ctx, dir, path, name, source)
		if err := ctx.Err(); err != nil {
			return notes, err
		}
		if err != nil {
			notes = append(notes, fmt.Sprintf("its submodule %s is not checked out: %v", path, err))
			continue
		}
		notes = append(notes, inner...)
	}
	if len(left) > 0 {
		notes = append(notes, fmt.Sprintf("its submodules %s are not checked out, and not in %s either; `git submodule update --init` in %s does that", strings.Join(left, ", "), from[0], dir))
	}
	return notes, nil
}

// submoduleNames are the names that .gitmodules gives to paths; where says to git's
// config which file, or file of a commit, that is.
func (m *Manager) submoduleNames(ctx context.Context, g *git.Git, where ...string) (map[string]string, error) {
	names := map[string]string{}
	out, err := g.Run(ctx, slices.Concat([]string{"config", "--null"}, where, []string{"--get-regexp", `^submodule\..*\.path$`})...)
	var e *git.Error
	if errors.As(err, &e) && e.Code == 1 {
		return names, nil
	}
	if err != nil {
		return nil, err
	}
	for kv := range strings.SplitSeq(string(out), "\x00") {
		key, path, ok := strings.Cut(kv, "\n")
		name := strings.TrimSuffix(strings.TrimPrefix(key, "submodule."), ".path")
		if ok && !strings.ContainsAny(name, "=\n") { // such a name cannot be said on a command line
			names[path] = name
		}
	}
	return names, nil
}

// addSubmodule checks one submodule out from the one in source.
func (m *Manager) addSubmodule(ctx context.Context, dir, path, name, source string) ([]string, error) {
	repo := gitDirOf(source)
	_, err := m.git(dir).Run(ctx, "-c", "protocol.file.allow=always", "-c", "submodule."+name+".url="+filepath.ToSlash(repo), "-c", "submodule."+name+".active=true",
		"submodule", "--quiet", "update", "--checkout", "--", path)
	if err != nil {
		return nil, err
	}
	own := filepath.Join(dir, filepath.FromSlash(path))
	g := m.git(own)
	url, err := m.git(source).Run(ctx, "config", "--get", "remote.origin.url")
	if text := strings.TrimRight(string(url), "\r\n"); err == nil && text != "" {
		if _, err := g.Run(ctx, "config", "remote.origin.url", text); err != nil {
			return nil, err
		}
	}
	// What the remote has is what the source knows of it, and not what the source has.
	if _, err := g.Run(ctx, "-c", "protocol.file.allow=always", "fetch", "--quiet", "--no-tags", "--prune", "--", filepath.ToSlash(repo), "+refs/remotes/origin/*:refs/remotes/origin/*"); err != nil {
		return nil, err
	}
	notes, err := m.addSubmodules(ctx, own, []string{source})
	for i, n := range notes {
		notes[i] = path + ": " + n
	}
	return notes, err
}

// submodules are those with work that only the workspace has: not committed, or in
// commits of their branches that neither their remote has, as far as is known there, nor
// the main checkout's own. What git ignores in them is added to what it ignores in k.
func (m *Manager) submodules(ctx context.Context, w *Workspace, k *work) ([]string, error) {
	if !fileThere(filepath.Join(k.admin, "modules")) && noLinks(k.index) {
		return nil, nil
	}
	k.common = w.Common
	paths, err := m.links(ctx, w.Dir)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, path := range paths {
		main := ""
		if top := config.MainCheckout(w.Common); top != "" {
			main = filepath.Join(top, filepath.FromSlash(path))
		}
		own, err := m.ownWork(ctx, k, filepath.Join(w.Dir, filepath.FromSlash(path)), main, path)
		if err != nil {
			return nil, err
		}
		if own {
			found = append(found, path)
		}
	}
	return found, nil
}

// noLinks says that an index has no entry of another repository for sure, also none
// that .gitmodules does not name.
func noLinks(index string) bool {
	data, err := durable.Read(index)
	if errors.Is(err, os.ErrNotExist) {
		return true
	}
	return err == nil && git.PlainIndex(index) && !bytes.Contains(data, []byte{0, 0, 0xe0, 0}) // the mode, as the index has it
}

// mainModule is the git directory that the main checkout has of a submodule whose own one
// is admin: that of where it is checked out there, and else, where it was, the one that
// stayed. "" is none.
func mainModule(k *work, admin, dir string) string {
	if dir == "" {
		return ""
	}
	if at := gitDirOf(dir); at != "" {
		return at
	}
	rel, err := filepath.Rel(k.admin, admin)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	if at := filepath.Join(k.common, rel); isGitDir(at) {
		return at
	}
	return ""
}

// ownWork says whether a submodule, or one in it, has work that is nowhere else; main is
// where another checkout has the same one, "" for nowhere, and name its path from the top.
func (m *Manager) ownWork(ctx context.Context, k *work, dir, main, name string) (bool, error) {
	admin := gitDirOf(dir)
	if admin == "" {
		return false, nil
	}
	k.within = append(k.within, module{dir: admin, key: "in/" + name, label: name})
	inner := &work{admin: admin, index: filepath.Join(admin, "reprise-index")}
	g := m.git(dir)
	// As in the workspace itself, no file is passed over because it is marked.
	if err := m.copyIndex(ctx, g.WithIndex(inner.index), dir, inner); err != nil {
		return true, err
	}
	state, err := g.WithIndex(inner.index).Run(ctx, "-c", "core.splitIndex=false", "status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignored=matching", "--ignore-submodules=none", "--no-renames")
	if err != nil {
		return true, err
	}
	own := false
	for f := range strings.SplitSeq(string(state), "\x00") {
		if file, ok := strings.CutPrefix(f, "!! "); ok {
			k.ignored = append(k.ignored, name+"/"+file)
		} else if f != "" {
			own = true
		}
	}
	ahead, err := g.Run(ctx, "rev-list", "HEAD", "--branches", "--not", "--remotes")
	if err != nil {
		return true, err
	}
	if ids := strings.Fields(string(ahead)); len(ids) > 0 && !own {
		at := mainModule(k, admin, main)
		if at == "" {
			return true, nil
		}
		missing, err := m.inModule(at).RunInput(ctx, []byte(strings.Join(ids, "\n")+"\n"), "rev-list", "--max-count=1", "--stdin", "--not", "HEAD", "--branches", "--tags", "--remotes")
		if err != nil || len(missing) > 0 {
			return true, ctx.Err() // it does not even know the commit
		}
	}
	links, err := m.links(ctx, dir)
	if err != nil {
		return true, err
	}
	for _, path := range links {
		at := ""
		if main != "" {
			at = filepath.Join(main, filepath.FromSlash(path))
		}
		theirs, err := m.ownWork(ctx, k, filepath.Join(dir, filepath.FromSlash(path)), at, name+"/"+path)
		if err != nil {
			return true, err
		}
		own = own || theirs
	}
	return own, nil
}
