package tree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrLacking says that what a commit consists of cannot be had: a submodule's commit is
// not here.
var ErrLacking = errors.New("not all of the commit is here")

// link is a submodule as a commit records it.
type link struct{ path, commit string }

// links are the submodules of a commit.
func (t Tree) links(ctx context.Context, commit string) ([]link, error) {
	out, err := t.git(t.Top).Run(ctx, "ls-tree", "-r", "-z", commit)
	if err != nil {
		return nil, err
	}
	var list []link
	for entry := range strings.SplitSeq(string(out), "\x00") {
		head, p, _ := strings.Cut(entry, "\t")
		if f := strings.Fields(head); len(f) == 3 && f[0] == "160000" {
			list = append(list, link{p, f[2]})
		}
	}
	return list, nil
}

// submodule is the repository that is checked out in the tree; ok is false where there
// is none.
func (t Tree) submodule(ctx context.Context, rel string) (sub Tree, ok bool, err error) {
	sub = Tree{Top: filepath.Join(t.Top, filepath.FromSlash(rel)), Git: true, vars: t.vars, limits: t.limits, programs: t.programs, excludes: t.excludes}
	if _, err := os.Lstat(filepath.Join(sub.Top, ".git")); err != nil {
		return sub, false, nil
	}
	if sub.own, err = t.repository(ctx, sub.Top); err != nil {
		return sub, false, err
	}
	sub.Common = sub.own.common
	sub.plain, err = sub.noFilters(ctx)
	return sub, err == nil, err
}

// checkout writes a commit's files below the copy, with those of its submodules as it
// records them: what is in one now may be what broke it. t is the repository whose files
// are at rel of the copy.
func (s *Snapshot) checkout(ctx context.Context, t Tree, rel, commit string) error {
	to := filepath.Join(s.Tree.Top, filepath.FromSlash(rel))
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	index, g := filepath.Join(s.Root, "index"), t.git(t.Top)
	if err := os.RemoveAll(index); err != nil {
		return err
	}
	if _, err := g.RunIndex(ctx, index, "read-tree", commit); err != nil {
		return err
	}
	if _, err := g.RunIndex(ctx, index, t.with("checkout-index", "--all", "--force", "--prefix="+to+string(filepath.Separator))...); err != nil {
		return err
	}
	list, err := t.links(ctx, commit)
	if err != nil {
		return err
	}
	for _, l := range list {
		sub, ok, err := t.submodule(ctx, l.path)
		if err != nil {
			return err
		}
		if !ok {
			if _, err := os.Lstat(filepath.Join(t.Common, "modules", filepath.FromSlash(l.path))); err == nil {
				return fmt.Errorf("%w: the submodule %s is not checked out any more", ErrLacking, path.Join(rel, l.path))
			}
			continue // it never was
		}
		if !sub.Has(ctx, l.commit) {
			return fmt.Errorf("%w: the submodule %s has no commit %.12s", ErrLacking, path.Join(rel, l.path), l.commit)
		}
		in := path.Join(rel, l.path)
		if err := s.checkout(ctx, sub, in, l.commit); err != nil {
			return err
		}
		s.From.Repos = append(s.From.Repos, in)
		s.commits[in] = l.commit
	}
	return nil
}

// within adds what changed in the submodules since the commits that this one records.
func (c *Change) within(ctx context.Context, t Tree, scratch string) error {
	if _, err := os.Lstat(filepath.Join(t.Top, ".gitmodules")); err != nil || c.Commit == "" {
		return nil
	}
	list, err := t.links(ctx, c.Commit)
	if err != nil {
		return err
	}
	for _, l := range list {
		sub, ok, err := t.submodule(ctx, l.path)
		if err != nil {
			return err
		}
		if !ok || !sub.Has(ctx, l.commit) {
			continue // that it has another commit was counted
		}
		in, err := sub.ChangeSince(ctx, l.commit, scratch)
		if err != nil {
			return err
		}
		if len(in.Paths) == 0 {
			continue
		}
		for _, p := range in.Paths {
			c.Paths = append(c.Paths, path.Join(l.path, p))
		}
		c.Lines += in.Lines
		c.subs = append(c.subs, changed{sub, l})
	}
	return nil
}

// changed is a submodule in which something changed.
type changed struct {
	tree Tree
	link
}

// diff is what changed in the submodule, as text.
func (c changed) diff(ctx context.Context, scratch string, most int) (string, error) {
	text, err := c.tree.Diff(ctx, c.commit, scratch, most)
	return "\nin the submodule " + c.path + ":\n" + text, err
}

// in reports whether a path is one of a submodule in which something changed.
func (c Change) in(p string) bool {
	return slices.ContainsFunc(c.subs, func(s changed) bool { return strings.HasPrefix(p, s.path+"/") })
}

// active are the lines of a repository's settings that say which submodules are checked
// out.
func (s *Snapshot) active(ctx context.Context, t Tree, from, rel string) string {
	if _, err := os.Lstat(filepath.Join(from, ".gitmodules")); err != nil || len(s.From.Repos) == 0 {
		return ""
	}
	out, err := t.git(from).Run(ctx, "config", "-z", "-f", ".gitmodules", "--get-regexp", `^submodule\..*\.path$`)
	if err != nil {
		return "" // then they look as if they were not
	}
	var text strings.Builder
	for entry := range strings.SplitSeq(string(out), "\x00") {
		key, p, _ := strings.Cut(entry, "\n")
		name := strings.TrimSuffix(strings.TrimPrefix(key, "submodule."), ".path")
		if slices.Contains(s.From.Repos, path.Join(rel, p)) && !strings.ContainsAny(name, "\n\x00") {
			text.WriteString("[submodule " + strconv.Quote(name) + "]\n\tactive = true\n\turl = .\n")
		}
	}
	return text.String()
}
