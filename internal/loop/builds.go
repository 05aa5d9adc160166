package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"reprise/internal/git"
	"reprise/internal/loop/core"
	"reprise/internal/queue"
	"reprise/internal/workspace"
)

// begin is the commit that a new worktree of an item begins at, "" for what is checked
// out: with what the items made that it depends on, where that is on branches of their
// own. left are those of these branches that do not go together with the others: who works
// on the item has to merge them. lacks says what it builds on and is not in that. What is nowhere
// to be had is a [missingError], until a person lets it begin without.
func (t *Worktrees) begin(ctx context.Context, item queue.Item) (base string, left []string, lacks string, err error) {
	if len(item.DependsOn) == 0 && t.Base == "" {
		return "", nil, "", nil
	}
	g := t.git(t.Root)
	tips, err := t.tips(ctx, g, append([]string{item.ID}, item.DependsOn...))
	if err != nil {
		return "", nil, "", err
	}
	if own := tips[item.ID]; own.local && workspace.IsMarked(t.Root, own.name, workspace.Mark(item.ID, item.Created)) {
		if left, err = missing(ctx, g, item, tips, own.commit); err != nil {
			return "", nil, "", err
		}
		lacks, _, err = t.lacking(ctx, g, item, tips, own.commit)
		return "", left, lacks, err // of an earlier try, which is gone on with
	}
	now, err := g.Resolve(ctx, cmp.Or(t.Base, "HEAD"))
	if err != nil || now == "" {
		return t.Base, nil, "", err // whoever makes the worktree says what is wrong with it
	}
	first := true
	for _, id := range item.DependsOn {
		tip, ok := tips[id]
		if !ok { // it made nothing, or its branch went when it had been merged
			continue
		}
		next, err := t.joined(ctx, g, now, tip.commit, fmt.Sprintf("Bring %s together for %s", tip.name, item.ID))
		switch {
		case err != nil:
			return "", nil, "", err
		case next != "":
			now = next
		case first:
			now = tip.commit // what it builds on counts for more than what came meanwhile
		default:
			left = append(left, tip.name)
		}
		first = false
	}
	lacks, nowhere, err := t.lacking(ctx, g, item, tips, now)
	if err == nil && nowhere && !letGo(&item) {
		err = &missingError{lacks, item.ID}
	}
	return now, left, lacks, err
}

// missingError says that an item is not begun, because what it builds on is neither here nor at
// the remote: begun without that it would come to something else than was meant.
type missingError struct{ what, item string }

func (e *missingError) Error() string {
	return fmt.Sprintf("%s. Push that branch from where it was made, and let it go on; or let it begin without that: `reprise queue unpark %s`", e.what, e.item)
}

// letGo reports whether a person has let an item begin that was set aside because something was
// missing: what they saw then is known to them.
func letGo(item *queue.Item) bool {
	asked := false
	for _, e := range item.History {
		switch {
		case e.Op == queue.OpPark && strings.HasPrefix(e.Note, string(core.Missing)+": "):
			asked = true
		case e.Op == queue.OpUnpark && asked:
			return true
		}
	}
	return false
}

// lacking says what of all that an item builds on, and that has no branch any more, is not in
// the history of a commit; nowhere that some of it cannot be had at all.
func (t *Worktrees) lacking(ctx context.Context, g *git.Git, item queue.Item, tips map[string]tip, in string) (lacks string, nowhere bool, err error) {
	for _, id := range item.DependsOn {
		if _, ok := tips[id]; ok {
			continue
		}
		lack, gone, err := t.lacks(ctx, g, id, in)
		if err != nil {
			return "", false, err
		}
		lacks, nowhere = join(lacks, lack), nowhere || gone
	}
	return lacks, nowhere, nil
}

// missing are the branches of what an item builds on that its own branch does not have: an
// earlier try was to merge them and did not.
func missing(ctx context.Context, g *git.Git, item queue.Item, tips map[string]tip, own string) (left []string, err error) {
	for _, id := range item.DependsOn {
		t, ok := tips[id]
		if !ok {
			continue
		}
		has, err := g.IsAncestor(ctx, t.commit, own)
		if err != nil {
			return nil, err
		}
		if !has {
			left = append(left, t.name)
		}
	}
	return left, nil
}

// Building is from [Brancher].
func (t *Worktrees) Building(made func(ctx context.Context, id string) (commit string, err error)) {
	t.made = made
}

// lacks says that what an item has made which is done, and has no branch any more, is not in
// the history of a commit, nor in its files as another commit: then what builds on it is without
// that. It is "" also where nobody knows what it has made. nowhere says that its commit cannot be
// had, so that nobody could tell.
func (t *Worktrees) lacks(ctx context.Context, g *git.Git, id, in string) (what string, nowhere bool, err error) {
	if t.made == nil {
		return "", false, nil
	}
	commit, err := t.made(ctx, id)
	if err != nil || commit == "" {
		return "", false, err
	}
	there, err := g.Resolve(ctx, commit)
	if err == nil && there == "" && t.commit != nil {
		if err = t.commit(ctx, commit); err == nil {
			there, err = g.Resolve(ctx, commit)
		}
	}
	if err != nil {
		return "", false, err
	}
	if there == "" {
		return fmt.Sprintf("it builds on %s, of which neither the branch %s nor the commit %.12s is here, nor where this repository fetches from", id, placeName(id), commit), true, nil
	}
	if has, err := g.IsAncestor(ctx, commit, in); err != nil || has {
		return "", false, err
	}
	// As where it was merged by a squash: then to merge it changes nothing.
	tree, conflicts, err := g.MergeTree(ctx, in, commit)
	if err != nil {
		return "", false, err
	}
	if len(conflicts) == 0 {
		if has, err := g.Run(ctx, "rev-parse", "--verify", in+"^{tree}"); err != nil || strings.TrimSpace(string(has)) == tree {
			return "", false, err
		}
	}
	return fmt.Sprintf("it builds on %s, whose branch %s is gone, and it begins without its commit %.12s, unless somebody has brought that in as another one (`git branch %s %.12s` brings the branch back)", id, placeName(id), commit, placeName(id), commit), false, nil
}

// madeBy is the commit that an item has made which is done, as the queue keeps it; "" where
// that is not known.
func (l *Loop) madeBy(ctx context.Context, id string) (string, error) {
	it, err := l.opt.Queue.Get(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		return "", nil
	}
	if err != nil || it.State != queue.Done || it.Result == nil {
		return "", err
	}
	var made struct {
		Commit string `json:"commit"`
	}
	if json.Unmarshal(it.Result.Data, &made) != nil || strings.Trim(made.Commit, "0123456789abcdef") != "" {
		return "", nil // somebody else's
	}
	return made.Commit, nil
}

// tip is where the branch of an item is.
type tip struct {
	commit, name string
	local        bool
}

// tips are those of items that have a branch, here or at a remote.
func (t *Worktrees) tips(ctx context.Context, g *git.Git, ids []string) (map[string]tip, error) {
	args := []string{"for-each-ref", "--format=%(objectname) %(refname)"}
	for _, id := range ids {
		args = append(args, "refs/heads/"+placeName(id), "refs/remotes/*/"+placeName(id))
	}
	out, err := g.Run(ctx, args...)
	if err != nil {
		return nil, err
	}
	tips := map[string]tip{}
	for line := range strings.Lines(string(out)) {
		commit, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, local := strings.CutPrefix(ref, "refs/heads/")
		name = strings.TrimPrefix(name, "refs/remotes/")
		for _, id := range ids {
			if branch := placeName(id); name != branch && (local || !strings.HasSuffix(name, "/"+branch)) {
				continue
			}
			if have, ok := tips[id]; !ok || local && !have.local {
				tips[id] = tip{commit, name, local}
			}
		}
	}
	return tips, nil
}

// joined is a commit with the history of both, "" where they conflict. Nothing is checked
// out for that.
func (t *Worktrees) joined(ctx context.Context, g *git.Git, a, b, message string) (string, error) {
	base, err := g.MergeBase(ctx, a, b)
	switch {
	case err != nil:
		return "", err
	case base == b:
		return a, nil
	case base == a:
		return b, nil
	}
	tree, conflicts, err := g.MergeTree(ctx, a, b)
	if err != nil || len(conflicts) > 0 {
		return "", err
	}
	return g.CommitTree(ctx, t.who(ctx), tree, message, a, b)
}

// buildsOn is what a session is told of its place: of what became of that, and of the items
// that its own builds on.
func buildsOn(item queue.Item, p Place) string {
	var b strings.Builder
	if p.Note != "" {
		fmt.Fprintf(&b, "Mind your place: %s.\n\n", p.Note)
	}
	if len(item.DependsOn) == 0 {
		return b.String()
	}
	fmt.Fprintf(&b, "This item builds on %s, which are done.", strings.Join(item.DependsOn, ", "))
	if p.Branch != "" {
		b.WriteString(" What they made is in your place.")
	}
	if len(p.Unmerged) > 0 {
		fmt.Fprintf(&b, " But for %s: that conflicts with the rest. Merge it first, and settle the conflicts in the sense of both.", strings.Join(p.Unmerged, ", "))
	}
	return b.String()
}
