package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/git"
	"reprise/internal/pathname"
)

// The submodules of a worktree have repositories of their own, which go with it. What was
// committed in one is therefore brought into that of the same submodule in another
// checkout of the project, before the work counts as kept: otherwise a branch that was
// merged names a commit that is nowhere.

// BringOptions say what [Manager.BringSubmodules] looks at.
type BringOptions struct {
	Dir    string // top of the worktree in which the work was done
	Main   string // top of the checkout that is to have the commits, or a directory in it
	Base   string // commit at which the work began; "" for none
	Branch string // under which they are to be there

	ask bool // the remotes for what they have; else what is known of them counts
}

// Submodule is one whose commit the work has changed, and that was checked out in the
// worktree when that was done.
type Submodule struct {
	Path    string // from the top, with slashes
	Commit  string // that the work names
	Brought string // branch of the main checkout's own that has it from now on; "": it had it, or the remote has
	Main    string // where the main checkout has it, for people
	Remote  bool   // its remote origin has the commit
}

// Brought are the submodules that the work has changed, those within others first.
type Brought []Submodule

// Note says where the commits are that were brought, "" for none.
func (b Brought) Note() string {
	var said []string
	for _, s := range b {
		if s.Brought != "" {
			said = append(said, fmt.Sprintf("submodule %s is at %s, which is on the branch %s of %s", s.Path, s.Commit[:min(len(s.Commit), 12)], s.Brought, s.Main))
		}
	}
	return strings.Join(said, "; ")
}

// StrandedError is a submodule whose commit has nowhere to go.
type StrandedError struct {
	Path, Commit string
	Dir, Main    string // the submodule in the worktree; the checkout that has none
}

func (e *StrandedError) Error() string {
	return fmt.Sprintf("submodule %s is at %s, which only the worktree has: its remote does not have it, and %s has no such submodule. Push it (`git push origin HEAD:refs/heads/NAME` in %s), or have it there (`git submodule update --init %s` in %s)",
		e.Path, e.Commit[:min(len(e.Commit), 12)], e.Main, e.Dir, e.Path, e.Main)
}

// BringSubmodules brings the commits of submodules that HEAD of a worktree names, and Base
// did not, into the repositories that the main checkout has of these submodules, and tells
// of each. Where a ref there has the commit already, or the submodule's remote origin has
// it, nothing is done. No other ref is moved, other than forward, no file is changed, and
// nothing is pushed. What it does can be repeated after a kill. A [StrandedError] is a
// commit that cannot be brought anywhere.
func (m *Manager) BringSubmodules(ctx context.Context, o BringOptions) (Brought, error) {
	if _, err := os.Lstat(filepath.Join(o.Dir, ".gitmodules")); err != nil {
		return nil, nil //nolint:nilerr // it has none
	}
	out, err := m.git(o.Main).Run(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, fmt.Errorf("bring commits of submodules: %w", err)
	}
	top := filepath.FromSlash(strings.TrimRight(string(out), "\r\n"))
	if pathname.Same(top, o.Dir) {
		return nil, nil
	}
	b := &bringing{m: m, o: o, top: top}
	here, there := half{gitDirOf(o.Dir), o.Dir}, half{gitDirOf(top), top}
	if err := b.below(ctx, here, there, "", o.Base, "HEAD"); err != nil {
		return b.list, fmt.Errorf("bring commits of submodules: %w", err)
	}
	return b.list, nil
}

// NotPushed asks the remotes of the submodules that the work has changed, and says which
// of them lack the commit that Branch names, "" for none: who takes that branch up
// elsewhere does not get these. Nothing is pushed; what a kill leaves is as after
// [Manager.BringSubmodules], which it does, too.
func (m *Manager) NotPushed(ctx context.Context, o BringOptions) string {
	o.ask = true
	list, err := m.BringSubmodules(ctx, o)
	if err != nil {
		return "whether the remotes of its submodules have their commits could not be seen: " + err.Error()
	}
	var lack []string
	for _, s := range list {
		if !s.Remote {
			lack = append(lack, fmt.Sprintf("%s (`git push origin %s:refs/heads/%s` in %s)", s.Path, s.Commit[:min(len(s.Commit), 12)], o.Branch, s.Main))
		}
	}
	if len(lack) == 0 {
		return ""
	}
	return fmt.Sprintf("the remotes of these submodules do not have the commits that %s names, so that others cannot take it: %s", o.Branch, strings.Join(lack, ", "))
}

// half is a repository in one of two checkouts of it: its git directory, "" for none, and
// where its files are, "" where it is not checked out.
type half struct{ admin, dir string }

// sub is a submodule. One that is not checked out any more has its repository still.
func (h half) sub(path, name string) half {
	if h.dir != "" {
		at := filepath.Join(h.dir, filepath.FromSlash(path))
		if admin := gitDirOf(at); admin != "" {
			return half{admin, at}
		}
	}
	if h.admin == "" || name == "" || !filepath.IsLocal(filepath.FromSlash(name)) {
		return half{}
	}
	if admin := filepath.Join(h.admin, "modules", filepath.FromSlash(name)); isGitDir(admin) {
		return half{admin: admin}
	}
	return half{}
}

type bringing struct {
	m    *Manager
	o    BringOptions
	top  string
	list Brought
}

// below brings what the submodules of one repository have, where it went from one commit
// to another; above is its path from the top, with a slash at its end.
func (b *bringing) below(ctx context.Context, here, there half, above, from, to string) error {
	g := b.m.inModule(here.admin)
	links, err := b.m.changedLinks(ctx, g, from, to)
	if err != nil || len(links) == 0 {
		return err
	}
	names, err := b.m.submoduleNames(ctx, g, "--blob", to+":.gitmodules")
	if err != nil {
		return err
	}
	for _, l := range links {
		own := here.sub(l.path, names[l.path])
		if own.admin == "" {
			continue // nobody has committed in it here
		}
		if known, err := present(ctx, b.m.inModule(own.admin), []string{l.to}); err != nil {
			return err
		} else if len(known) == 0 {
			continue // somebody else's, as of a branch that was merged
		}
		main := there.sub(l.path, names[l.path])
		if err := b.below(ctx, own, main, above+l.path+"/", l.from, l.to); err != nil {
			return err
		}
		s, err := b.one(ctx, own, main, Submodule{Path: above + l.path, Commit: l.to})
		if err != nil {
			return err
		}
		b.list = append(b.list, s)
	}
	return nil
}

// one brings the commit of one submodule.
func (b *bringing) one(ctx context.Context, own, main half, s Submodule) (_ Submodule, err error) {
	g := b.m.inModule(own.admin)
	if s.Remote, err = reached(ctx, g, s.Commit, "--remotes=origin"); err != nil {
		return s, err
	}
	if !s.Remote && b.o.ask {
		if _, err := g.AsUser().Run(ctx, "fetch", "--quiet", "--no-tags", "origin"); ctx.Err() != nil {
			return s, err
		} // a remote that does not answer has nothing
		if s.Remote, err = reached(ctx, g, s.Commit, "--remotes=origin"); err != nil {
			return s, err
		}
	}
	s.Main = filepath.Join(b.top, filepath.FromSlash(s.Path))
	if main.admin != "" {
		if has, err := b.has(ctx, main, s.Commit); err != nil || has {
			return s, err
		}
	}
	switch {
	case s.Remote:
		return s, nil
	case main.admin == "":
		return s, &StrandedError{Path: s.Path, Commit: s.Commit, Dir: own.dir, Main: b.top}
	}
	// A commit is asked for by a ref, which older ways to fetch insist on.
	const ref = "refs/reprise/brought"
	if _, err := g.Run(ctx, "update-ref", ref, s.Commit); err != nil {
		return s, err
	}
	if s.Brought, err = b.free(ctx, g, main, s.Commit); err != nil {
		return s, err
	}
	if _, err := b.m.inModule(main.admin).Run(ctx, "-c", "protocol.file.allow=always", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", filepath.ToSlash(own.admin), ref+":refs/heads/"+s.Brought); err != nil {
		return s, err
	}
	if has, err := b.has(ctx, main, s.Commit); err != nil || !has { // from a clone that is not whole git takes no refs, and says nothing
		return s, errors.Join(fmt.Errorf("submodule %s: %s of %s did not arrive in %s", s.Path, s.Commit, own.admin, main.admin), err)
	}
	return s, nil
}

// has says whether a ref of the main checkout's own has the commit. What is only checked
// out there does not count: that moves on.
func (b *bringing) has(ctx context.Context, main half, id string) (bool, error) {
	g := b.m.inModule(main.admin)
	known, err := present(ctx, g, []string{id})
	if err != nil || len(known) == 0 {
		return false, err
	}
	return reached(ctx, g, id, "--branches", "--tags", "--remotes")
}

// free is the branch to bring a commit to: the one that was asked for where that is new,
// or goes on to the commit and is not checked out, and else one with the commit in its
// name.
func (b *bringing) free(ctx context.Context, own *git.Git, main half, id string) (string, error) {
	ref := "refs/heads/" + b.o.Branch
	refs, err := b.m.inModule(main.admin).Refs(ctx, ref)
	if err != nil {
		return "", err
	}
	tip := refs[ref]
	if tip == "" {
		return b.o.Branch, nil
	}
	known, err := present(ctx, own, []string{tip})
	if err != nil {
		return "", err
	}
	if len(known) > 0 && headRef(main.admin) != ref {
		if ok, err := own.IsAncestor(ctx, tip, id); err != nil || ok {
			return b.o.Branch, err
		}
	}
	return b.o.Branch + "-" + id[:min(len(id), 12)], nil
}

// reached says whether one of the refs has a commit, which must be there.
func reached(ctx context.Context, g *git.Git, id string, refs ...string) (bool, error) {
	out, err := g.Run(ctx, slices.Concat([]string{"rev-list", "--max-count=1", id, "--not"}, refs)...)
	return err == nil && len(out) == 0, err
}

// link is a submodule as a commit names it, and as an earlier one did, "" for not at all.
type link struct{ path, from, to string }

// changedLinks are the submodules that differ between two commits; all of the second one
// where the first is not there.
func (m *Manager) changedLinks(ctx context.Context, g *git.Git, from, to string) (list []link, err error) {
	var known []string
	if from != "" {
		if known, err = present(ctx, g, []string{from}); err != nil {
			return nil, err
		}
	}
	if len(known) == 0 {
		out, err := g.Run(ctx, "ls-tree", "-r", "-z", "--full-tree", to)
		if err != nil {
			return nil, err
		}
		for f := range strings.SplitSeq(string(out), "\x00") {
			info, path, ok := strings.Cut(f, "\t")
			if part := strings.Fields(info); ok && len(part) == 3 && part[0] == git.ModeRepo {
				list = append(list, link{path: path, to: part[2]})
			}
		}
		return list, nil
	}
	out, err := g.Run(ctx, "diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--ignore-submodules=none", from, to)
	if err != nil {
		return nil, err
	}
	rec := strings.Split(string(out), "\x00")
	for i := 0; i+1 < len(rec); i += 2 { // :mode mode id id letter, and the path
		part := strings.Fields(strings.TrimPrefix(rec[i], ":"))
		if len(part) != 5 || part[1] != git.ModeRepo {
			continue
		}
		l := link{path: rec[i+1], to: part[3]}
		if part[0] == git.ModeRepo {
			l.from = part[2]
		}
		list = append(list, l)
	}
	return list, nil
}
