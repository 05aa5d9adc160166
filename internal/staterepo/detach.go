package staterepo

import (
	"context"
	"fmt"

	"reprise/internal/pathname"
)

// Detach lets the repository forget that an agent's branch is checked out at dir,
// which is about to go or is gone. The branch stays. Where the branch is checked out
// elsewhere, or nowhere, nothing is done.
func (r *Repo) Detach(ctx context.Context, agent, dir string) error {
	t, unlock, err := r.lockAgent(ctx, agent)
	if err != nil {
		return fmt.Errorf("detach agent %s: %w", agent, err)
	}
	defer unlock()
	if err := t.detach(dir); err != nil {
		return fmt.Errorf("detach agent %s: %w", agent, err)
	}
	return nil
}

// TakeBack undoes a [Repo.CreateAgent] that made a new branch: the branch goes too,
// as long as it holds nothing but what every agent begins with.
func (r *Repo) TakeBack(ctx context.Context, agent, dir string) error {
	t, unlock, err := r.lockAgent(ctx, agent)
	if err != nil {
		return fmt.Errorf("take back agent %s: %w", agent, err)
	}
	defer unlock()
	if err := t.takeBack(ctx, dir); err != nil {
		return fmt.Errorf("take back agent %s: %w", agent, err)
	}
	return nil
}

func (r *Repo) lockAgent(ctx context.Context, agent string) (*Tree, func() error, error) {
	if err := CheckName(agent); err != nil {
		return nil, nil, err
	}
	if !r.Exists() {
		return &Tree{r: r, Branch: agentPrefix + agent}, func() error { return nil }, nil
	}
	unlock, err := r.lock(ctx, "state.lock")
	return &Tree{r: r, Branch: agentPrefix + agent}, unlock, err
}

// isAt says that the repository believes the branch to be checked out at dir.
func (t *Tree) isAt(dir string) bool {
	at := t.where()
	return at != "" && pathname.Same(at, dir)
}

func (t *Tree) detach(dir string) error {
	if !t.isAt(dir) {
		return nil
	}
	return t.r.o.Disk.RemoveAll(t.admin())
}

func (t *Tree) takeBack(ctx context.Context, dir string) error {
	if !t.r.Exists() || t.where() != "" && !t.isAt(dir) {
		return nil // there is none, or it is somebody else's
	}
	tip, err := t.r.tip(ctx, t.ref())
	if err != nil {
		return err
	}
	same := false
	if tip != "" {
		if same, err = t.asSeeded(ctx, tip); err != nil {
			return err
		}
	}
	// The checkout first: one that is known without its branch would be damage. Where the
	// making was cut off before there was a branch, it is all that there is.
	if err := t.detach(dir); err != nil || !same {
		return err // or it was worked in
	}
	if err := t.r.git.DropRef(ctx, t.ref(), tip); err != nil && !isRace(err) {
		return err
	}
	return nil
}

// asSeeded says that a commit holds nothing but what every agent begins with.
func (t *Tree) asSeeded(ctx context.Context, tip string) (bool, error) {
	files, err := t.r.git.Files(ctx, tip)
	if err != nil {
		return false, err
	}
	ids := make([]string, 0, len(files))
	names := make([]string, 0, len(files))
	for name, e := range files {
		names, ids = append(names, name), append(ids, e.ID)
	}
	blobs, err := t.r.git.Objects(ctx, ids...)
	if err != nil {
		return false, err
	}
	begin := seeds()
	for i, name := range names {
		if text, ok := begin[name]; !ok || text != string(blobs[i].Data) {
			return false, nil
		}
	}
	return true, nil
}

// Branch is what there is of an agent's branch on this machine: whether it exists, and
// whether anything was written to it since it was made.
func (r *Repo) Branch(ctx context.Context, agent string) (exists, written bool, err error) {
	if err := CheckName(agent); err != nil || !r.Exists() {
		return false, false, err
	}
	t := &Tree{r: r, Branch: agentPrefix + agent}
	tip, err := r.tip(ctx, t.ref())
	if err != nil || tip == "" {
		return false, false, err
	}
	same, err := t.asSeeded(ctx, tip)
	return true, !same, err
}
