// Package checkout is what git says of the checkouts in which items are worked on, and of
// the main one: what has changed there, which commits came in that belong elsewhere, and
// whose lock is in the way. It owns no file; of others' it removes locks of gits that were
// killed.
package checkout

import (
	"context"
	"errors"
	"strconv"
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
}

// Look is how a worktree stands. own is the place of the agent's state in it, as git spells
// it, which is never part of the work.
func Look(ctx context.Context, g *git.Git, own string) (w Status, err error) {
	out, err := g.Run(ctx, "status", "--porcelain=v2", "-z", "--branch", "--untracked-files=all", "--no-renames", "--ignore-submodules=none")
	if err != nil {
		return w, err
	}
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
			w.add(f[7], f[2] == "000000" && f[3] == git.ModeRepo, own)
		case "?":
			w.New = true
			w.add(strings.TrimSuffix(rest, "/"), strings.HasSuffix(rest, "/"), own) // a directory that it does not look into
		}
	}
	return w, nil
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

// Changed says whether a working tree differs from a commit. What was committed and
// taken back again is no difference.
func Changed(ctx context.Context, g *git.Git, base string) (bool, error) {
	status, err := g.Run(ctx, "status", "--porcelain=v2", "--branch", "--untracked-files=normal", "--no-renames")
	if err != nil {
		return false, err
	}
	head := ""
	for line := range strings.Lines(string(status)) {
		if !strings.HasPrefix(line, "#") {
			return true, nil
		}
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "# branch.oid "); ok {
			head = id
		}
	}
	if head == base {
		return false, nil
	}
	_, err = g.Run(ctx, "diff", "--quiet", "--no-renames", base, "--")
	var e *git.Error
	if errors.As(err, &e) && e.Code == 1 {
		return true, nil
	}
	return false, err
}

// Compare is what differs between a working tree and a commit: the names of the files that
// changed, and how those did that git knows.
func Compare(ctx context.Context, g *git.Git, base string) (files []string, patch string, err error) {
	status, err := g.Run(ctx, "status", "--porcelain=v1", "--untracked-files=normal", "--no-renames")
	if err != nil {
		return nil, "", err
	}
	diff, err := g.Run(ctx, "diff", "--raw", "--patch", "--no-renames", base, "--")
	if err != nil {
		return nil, "", err
	}
	// Lines of what changed, a blank one, and then how.
	names, patch, _ := strings.Cut(string(diff), "\n\n")
	seen := map[string]bool{}
	add := func(name string) {
		if plain, err := strconv.Unquote(name); err == nil { // one with a space, or what is rarer
			name = plain
		}
		if name != "" && !seen[name] {
			seen[name] = true
			files = append(files, name)
		}
	}
	for line := range strings.Lines(names) {
		if _, name, ok := strings.Cut(line, "\t"); ok && line[0] == ':' {
			add(strings.TrimSpace(name))
		}
	}
	for line := range strings.Lines(string(status)) {
		if len(line) > 3 {
			add(strings.TrimSpace(line[3:]))
		}
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
