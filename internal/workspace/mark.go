package workspace

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"reprise/internal/git"
)

// A branch that a program has made for an item is told from one of the same name that a person
// has, or that another item of that name has left, by who made it in its reflog: that is there
// as soon as the branch is, and goes with it.
const markName = "reprise"

// Mark is by whom the reflog says that the branch of an item is made which was added at a time.
func Mark(item string, added time.Time) string {
	born := "0"
	if !added.IsZero() {
		born = strconv.FormatInt(added.UnixNano(), 36)
	}
	return "item+" + item + "@" + born
}

// IsMarked reports whether a branch, in the repository of the checkout around a directory, was
// made with this mark, or made anew by the loop: from what another machine has, or from what
// lay in the item's worktree when its branch was gone. Where that cannot be told (a repository
// whose refs are no files) it counts as one.
func IsMarked(dir, branch, mark string) bool {
	by, what, known := git.MadeBy(dir, branch)
	return !known || by == mark || strings.HasPrefix(what, "loop: ")
}

// taken refuses a branch that has commits of somebody else's.
func taken(branch, name string) error {
	return fmt.Errorf("%w: there is a branch %s with commits that were not made for this item, and that would be mixed with its work; rename it (`git branch -m %s NAME`), or, where the item is to go on with them, `reprise workspace create %s --branch %s --attach`", ErrTaken, branch, branch, name, branch)
}

// takenPlace refuses a worktree that another one has left.
func takenPlace(w *Workspace) error {
	return fmt.Errorf("%w: %s has what was made for an earlier item of this id; `reprise workspace remove %s` takes it away and keeps its work, and where the item is to go on with that, `reprise workspace create %s --branch %s --attach` makes its place from it", ErrTaken, w.Dir, w.Name, w.Name, w.Branch)
}

// makeRoom takes a branch away that is somebody else's and has nothing of its own. It had not
// a moment ago: one that has moved since stays.
func (m *Manager) makeRoom(ctx context.Context, w *Workspace, out *Created) error {
	if w.over == "" {
		return nil
	}
	err := m.repo(w).DropRef(ctx, "refs/heads/"+w.Branch, w.over)
	if errors.Is(err, git.ErrMoved) {
		return taken(w.Branch, w.Name)
	}
	out.Taken = fmt.Sprintf("a branch %s of an earlier item, or of a person, was there, at %.12s and without a commit of its own; it had to make room", w.Branch, w.over)
	return err
}
