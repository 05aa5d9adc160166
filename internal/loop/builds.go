package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"reprise/internal/git"
	"reprise/internal/queue"
	"reprise/internal/workspace"
)

// begin is the commit that a new worktree of an item begins at, "" for what is checked
// out: with what the items made that it depends on, where that is on branches of their
// own. left are those of these branches that do not go together with the others: who works
// on the item has to merge them. lacks says what it builds on and is nowhere to be found.
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
		left, err := missing(ctx, g, item, tips, own.commit)
		return "", left, "", err // of an earlier try, which is gone on with
	}
	now, err := g.Resolve(ctx, cmp.Or(t.Base, "HEAD"))
	if err != nil || now == "" {
		return t.Base, nil, "", err // whoever makes the worktree says what is wrong with it
	}
	first := true
	for _, id := range item.DependsOn {
		tip, ok := tips[id]
		if !ok { // it made nothing, or its branch went when it had been merged
			lack, err := t.lacks(ctx, g, id, now)
			if err != nil {
				return "", nil, "", err
			}
			lacks = join(lacks, lack)
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
	return now, left, lacks, nil
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
// the history of a commit: then what builds on it begins without that. It is "" also where
// nobody knows what it has made.
func (t *Worktrees) lacks(ctx context.Context, g *git.Git, id, in string) (string, error) {
	if t.made == nil {
		return "", nil
	}
	commit, err := t.made(ctx, id)
	if err != nil || commit == "" {
		return "", err
	}
	if there, err := g.Resolve(ctx, commit); err != nil {
		return "", err
	} else if there == "" {
		return fmt.Sprintf("it builds on %s, whose branch %s is gone, and its commit %.12s is not in this repository: it begins without that, unless somebody has brought it in as another commit", id, placeName(id), commit), nil
	}
	if has, err := g.IsAncestor(ctx, commit, in); err != nil || has {
		return "", err
	}
	return fmt.Sprintf("it builds on %s, whose branch %s is gone, and it begins without its commit %.12s, unless somebody has brought that in as another one (`git branch %s %.12s` brings the branch back)", id, placeName(id), commit, placeName(id), commit), nil
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
