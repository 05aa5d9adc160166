// Package checkout is what git says of the checkouts in which items are worked on, and of
// the main one: what has changed there, which commits came in that belong elsewhere, and
// whose lock is in the way. It owns no file; of others' it removes locks of gits that were
// killed.
package checkout

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"reprise/internal/git"
)

// MaxStatus bounds what git may say of a worktree, in bytes: an agent can make many files.
const MaxStatus = 256 << 20

// Status is all that git says of a worktree at once.
type Status struct {
	Head     string   // commit, "" before the first one
	Branch   string   // short, "" for none
	Unmerged []string // paths
	Changed  bool     // something but the place of the agent's state differs
	Inner    []string // repositories of their own that are new in it
	Dirty    []string // submodules with changed or new files
	New      bool     // there are files, or repositories, that git does not know yet
	Own      bool     // the place of the agent's state is new in it, and not ignored
	Fresh    []string // files that git calls changed and that nobody has changed; see [git.Git.Fresh]
}

// fresh finds out which of the files that differ from the index nobody has changed, and counts
// the others.
func (w *Status) fresh(ctx context.Context, g *git.Git, maybe map[string]string) error {
	if len(maybe) == 0 {
		return nil
	}
	fresh, err := g.Fresh(ctx, maybe)
	if err != nil {
		return err
	}
	w.Fresh = slices.Sorted(maps.Keys(fresh))
	w.Changed = w.Changed || len(fresh) < len(maybe)
	return nil
}

// maybeFresh is the blob of a file of which git's status, its fields parted, says that it
// differs from the index by its content alone, "" for all else.
func maybeFresh(f []string) (blob string) {
	if f[0] == ".M" && f[1] == "N..." && f[3] == f[4] && (f[3] == "100644" || f[3] == "100755") {
		return f[6]
	}
	return ""
}

// Look is how a worktree stands. own is the place of the agent's state in it, as git spells
// it, which is never part of the work.
func Look(ctx context.Context, g *git.Git, own string) (w Status, err error) {
	out, err := g.Run(ctx, "status", "--porcelain=v2", "-z", "--branch", "--untracked-files=all", "--no-renames", "--ignore-submodules=none")
	if err != nil {
		return w, err
	}
	maybe := map[string]string{}
	for rec := range strings.SplitSeq(string(out), "\x00") {
		kind, rest, _ := strings.Cut(rec, " ")
		switch kind {
		case "#":
			if id, ok := strings.CutPrefix(rest, "branch.oid "); ok && id != "(initial)" {
				w.Head = id
			}
			if name, ok := strings.CutPrefix(rest, "branch.head "); ok && name != "(detached)" {
				w.Branch = name
			}
		case "u": // XY sub m1 m2 m3 mW h1 h2 h3 path
			if f := strings.SplitN(rest, " ", 10); len(f) == 10 {
				w.Unmerged = append(w.Unmerged, f[9])
			}
		case "1": // XY sub mH mI mW hH hI path
			f := strings.SplitN(rest, " ", 8)
			if len(f) != 8 {
				continue
			}
			if sub := f[1]; strings.HasPrefix(sub, "S") && strings.ContainsAny(sub[1:], "MU") && f[7] != own {
				w.Dirty = append(w.Dirty, f[7])
			}
			if blob := maybeFresh(f); blob != "" {
				maybe[f[7]] = blob
				continue
			}
			w.add(f[7], f[2] == "000000" && f[3] == git.ModeRepo, own)
		case "?":
			w.New = true
			w.add(strings.TrimSuffix(rest, "/"), strings.HasSuffix(rest, "/"), own) // a directory that it does not look into
		}
	}
	return w, w.fresh(ctx, g, maybe)
}

func (w *Status) add(name string, repository bool, own string) {
	switch {
	case name == own || strings.HasPrefix(name, own+"/"):
		w.Own = true
		return
	case repository:
		w.Inner = append(w.Inner, name)
	}
	w.Changed = true
}

// Differs says whether the working tree, as it was looked at, differs from a commit. What was
// committed and taken back again is no difference, nor is a file that nobody has changed.
func (w *Status) Differs(ctx context.Context, g *git.Git, base string) (bool, error) {
	if w.Changed || len(w.Unmerged) > 0 || len(w.Dirty) > 0 {
		return true, nil
	}
	if w.Head == base {
		return false, nil
	}
	_, err := g.Run(ctx, "diff", "--quiet", "--no-renames", base, "HEAD", "--")
	var e *git.Error
	if errors.As(err, &e) && e.Code == 1 {
		return true, nil
	}
	return false, err
}

// maxExcluded is how many files may be left out of a diff: each is an argument.
const maxExcluded = 1000

// Compare is what differs between a working tree and a commit: the names of the files that
// changed, and how those did that git knows.
func Compare(ctx context.Context, g *git.Git, base string) (files []string, patch string, err error) {
	out, err := g.Run(ctx, "status", "--porcelain=v2", "-z", "--untracked-files=normal", "--no-renames")
	if err != nil {
		return nil, "", err
	}
	var w Status
	var changed []string
	maybe := map[string]string{}
	for rec := range strings.SplitSeq(string(out), "\x00") {
		kind, rest, _ := strings.Cut(rec, " ")
		n := map[string]int{"1": 8, "u": 10, "?": 1}[kind]
		f := strings.SplitN(rest, " ", n)
		if n == 0 || len(f) != n {
			continue
		}
		name := f[n-1]
		if kind == "1" && maybeFresh(f) != "" {
			maybe[name] = f[6]
		}
		changed = append(changed, name)
	}
	if err := w.fresh(ctx, g, maybe); err != nil {
		return nil, "", err
	}
	args := []string{"diff", "--raw", "-z", "--patch", "--no-renames", base, "--"}
	if len(w.Fresh) <= maxExcluded {
		for _, name := range w.Fresh {
			args = append(args, ":(top,literal,exclude)"+name)
		}
	}
	diff, err := g.Run(ctx, args...)
	if err != nil {
		return nil, "", err
	}
	seen := map[string]bool{}
	for _, name := range w.Fresh {
		seen[name] = true
	}
	add := func(name string) {
		if name != "" && !seen[name] {
			seen[name] = true
			files = append(files, name)
		}
	}
	// What changed, an empty record, and then how.
	for rest := string(diff); ; {
		rec, more, ok := strings.Cut(rest, "\x00")
		if !ok || !strings.HasPrefix(rec, ":") {
			patch = strings.TrimPrefix(rest, "\x00")
			break
		}
		var name string
		name, rest, _ = strings.Cut(more, "\x00")
		add(name)
	}
	for _, name := range changed {
		add(name)
	}
	return files, patch, nil
}

// NoCommitIn is the repository without a commit at which an add has failed.
func NoCommitIn(err error) (name string, ok bool) {
	var e *git.Error
	if !errors.As(err, &e) {
		return "", false
	}
	before, _, ok := strings.Cut(e.Stderr, "' does not have a commit checked out")
	return strings.TrimSuffix(before[strings.LastIndexByte(before, '\'')+1:], "/"), ok
}
