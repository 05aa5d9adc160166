package staterepo

import "context"

// Change is something that was written into the state and committed.
type Change struct {
	Op     string   // add, accept, write, checkpoint, commit, merge, aggregate, promote, branch, collect, archive, reset, fork
	Agent  string   // whose state it is, "" for what all share
	Commit string   // that the branch is at since
	ID     string   // of the entry
	Type   string   // of the entry
	Title  string   // of the entry in one line
	Files  []string // that changed
}

// changed tells whoever wants to know. What they make of it is no part of the
// change, which is committed.
func (t *Tree) changed(ctx context.Context, c Change) {
	if t.r.o.Changed == nil {
		return
	}
	c.Agent = t.Agent()
	t.r.o.Changed(ctx, c)
}
