package tree

import (
	"context"
	"path"
	"slices"
)

// Carry copies what git ignores in the tree and these patterns name into another
// checkout of the same repository: directories of dependencies, which a checkout does
// not bring along. sub is the project's root below the top, "" for the top. What is
// there already with the same content stays. It is a copy and never a link, so that
// nobody changes the original. notes are what could not be copied.
func (t Tree) Carry(ctx context.Context, to, sub string, patterns []string) (notes []string, err error) {
	w := &walk{t: t, ctx: ctx, limits: t.limits, ignored: map[string]bool{}, ask: true}
	if !t.Git {
		return nil, nil
	}
	if err := w.repo(""); err != nil {
		return nil, err
	}
	var l Listing
	for p := range w.ignored {
		if dir := path.Dir(p); path.Base(p) != ".reprise" && path.Base(dir) != ".reprise" {
			l.Ignored = append(l.Ignored, p)
		}
	}
	slices.Sort(l.Ignored)
	s := &Snapshot{Tree: Tree{Top: to, vars: t.vars, limits: t.limits}, stale: true}
	if err := s.alongside(ctx, t, l, SnapshotOptions{Sub: sub, Carry: patterns}); err != nil {
		return s.Notes, err
	}
	if len(s.moved) == 0 {
		return s.Notes, nil
	}
	if err := roomFor(to, s.moved, 0); err != nil {
		return s.Notes, err
	}
	if err := s.carry(ctx, t); err != nil {
		return s.Notes, err
	}
	return s.Notes, s.modes(t.Top)
}

// RemoveAll removes a directory and all in it, also what lies in directories that
// were made read-only.
func RemoveAll(dir string) error { return removeAll(dir) }
