package workspace

import (
	"context"
	"strconv"
	"strings"

	"reprise/internal/git"
)

// Detail is what git and the state repository tell of a workspace.
type Detail struct {
	Info
	Head      string `json:"head,omitempty"`      // commit
	OnBranch  string `json:"on_branch,omitempty"` // that is checked out now, "" for none
	Changed   int    `json:"changed"`             // tracked files
	Untracked int    `json:"untracked"`
	// Commits are how many there are since Base; Own are those that are on no other
	// branch, no tag and no branch of a remote.
	Commits    int `json:"commits"`
	Own        int `json:"own_commits"`
	Unpromoted int `json:"unpromoted"` // learnings and decisions of the agent
}

// Detail looks at a workspace. It changes nothing. Where the worktree is gone, what
// is in it is not told.
func (m *Manager) Detail(ctx context.Context, name string) (Detail, error) {
	w, err := m.Get(name)
	if err != nil {
		return Detail{}, err
	}
	d := Detail{Info: m.Look(w)}
	m.lookInside(&d.Info)
	if w.State == Ready {
		list, err := m.o.State.Unpromoted(ctx, w.Name)
		if err != nil {
			return d, err
		}
		d.Unpromoted = len(list)
	}
	if !m.here(&w) || w.State != Ready {
		return d, nil
	}
	g := m.git(w.Dir)
	if err := m.inPlace(ctx, g, w.Common); err != nil {
		return d, err
	}
	out, err := g.Run(ctx, "--no-optional-locks", "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
	if err != nil {
		return d, err
	}
	for f := range strings.SplitSeq(string(out), "\x00") {
		switch {
		case f == "":
		case strings.HasPrefix(f, "??"):
			d.Untracked++
		default:
			d.Changed++
		}
	}
	d.OnBranch = strings.TrimPrefix(headRef(git.LinkedDir(w.Dir)), "refs/heads/")
	if d.Head, err = g.Resolve(ctx, "HEAD"); err != nil || d.Head == "" {
		return d, err
	}
	if d.Commits, err = m.count(ctx, &w, d.Head, "^"+w.Base); err != nil {
		return d, err
	}
	except := d.OnBranch
	if except == "" {
		except = w.Branch
	}
	d.Own, err = m.count(ctx, &w, d.Head, "--not", "--exclude="+except, "--branches", "--tags", "--remotes")
	return d, err
}

func (m *Manager) count(ctx context.Context, w *Workspace, args ...string) (int, error) {
	out, err := m.git(w.Dir).Run(ctx, append([]string{"rev-list", "--count"}, args...)...)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(out)))
}
