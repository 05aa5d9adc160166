package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reprise/internal/git"
	"reprise/internal/queue"
)

// Prune deletes the branches of items that are settled, in this clone alone, and gives their
// names. One stays whose commit the remote has not, on the branch of an item or on the one
// that work begins at, as it says now and not as it was once copied; and one that a worktree
// or a workspace is on. An item that is begun again is taken up from the remote.
func (s *Shared) Prune(ctx context.Context, q queue.Queue) (gone []string, err error) {
	list, err := s.idle(ctx)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	var settled []string
	for name := range list {
		it, gerr := q.Get(ctx, strings.TrimPrefix(name, placeName("")))
		switch {
		case gerr == nil && (it.State == queue.Done || it.State == queue.Dead), errors.Is(gerr, queue.ErrNotFound):
			settled = append(settled, name)
		case gerr != nil:
			err = errors.Join(err, gerr)
		}
	}
	if len(settled) == 0 {
		return nil, err
	}
	slices.Sort(settled)
	if ferr := s.Fetch(ctx); ferr != nil {
		return nil, errors.Join(err, ferr)
	}
	// Nobody makes a worktree meanwhile.
	s.placing.Lock()
	defer s.placing.Unlock()
	list, ierr := s.idle(ctx)
	if ierr != nil {
		return nil, errors.Join(err, ierr)
	}
	for _, name := range settled {
		commit, ok := list[name]
		if !ok {
			continue
		}
		sent, serr := s.sent(ctx, commit)
		if serr == nil && sent {
			serr = s.git().DropRef(ctx, "refs/heads/"+name, commit)
		}
		switch {
		case errors.Is(serr, git.ErrMoved): // somebody works on it by hand
		case serr != nil:
			err = errors.Join(err, fmt.Errorf("delete the branch %s: %w", name, serr))
		case sent:
			gone = append(gone, name)
		}
	}
	return gone, err
}

// idle are the branches of items that no worktree and no workspace is on, with their commits.
func (s *Shared) idle(ctx context.Context) (map[string]string, error) {
	out, err := s.git().Run(ctx, "for-each-ref", "--format=%(objectname) %(refname:lstrip=2) %(worktreepath)", "refs/heads/"+placeName("*"))
	if err != nil {
		return nil, err
	}
	list := map[string]string{}
	for line := range strings.Lines(string(out)) {
		commit, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		if name, where, _ := strings.Cut(rest, " "); where == "" {
			list[name] = commit
		}
	}
	if s.Workspaces == nil || len(list) == 0 {
		return list, nil
	}
	places, err := s.Workspaces.List()
	if err != nil {
		return nil, err
	}
	for _, w := range places {
		delete(list, w.Branch)
	}
	return list, nil
}

// sent reports whether the remote has a commit, by the copies that Fetch keeps as they are
// there: those of all items, and of the branch that work begins at.
func (s *Shared) sent(ctx context.Context, commit string) (bool, error) {
	there := "refs/remotes/" + s.Remote + "/"
	out, err := s.git().Run(ctx, "for-each-ref", "--count=1", "--contains", commit, there+placeName("*"), there+s.Main)
	return len(out) > 0, err
}
