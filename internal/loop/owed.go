package loop

import (
	"context"
	"encoding/json"
	"strings"

	"reprise/internal/git"
	"reprise/internal/queue"
)

// owed is a branch that has to be in the work on an item before that may be called done:
// to merge it is what the item is for, or what it builds on is there.
type owed struct {
	Branch string `json:"branch"`
	Commit string `json:"commit,omitempty"` // of the branch when that was asked for
}

// mergeData is the data of an item that is there to merge a branch.
type mergeData struct {
	Merge *owed `json:"merge,omitempty"`
}

// mergeKey begins the key of such an item; then come the item whose branch it is, and the
// number of the claim.
const mergeKey = "merge:"

// sourceLoop is where the items are from that a loop has added.
const sourceLoop = "loop"

func (o *owed) data() json.RawMessage {
	data, _ := json.Marshal(mergeData{o})
	return data
}

// owes are the branches that the work on an item owes.
func owes(item *queue.Item, p *Place) (out []owed) {
	var d mergeData
	if item.Source == sourceLoop && json.Unmarshal(item.Data, &d) == nil && d.Merge != nil {
		out = append(out, *d.Merge)
	} else if key, ok := strings.CutPrefix(item.Key, mergeKey); ok && item.Source == sourceLoop {
		id, _, _ := strings.Cut(key, ":")
		out = append(out, owed{Branch: placeName(id)})
	}
	for _, b := range p.Unmerged {
		out = append(out, owed{Branch: b})
	}
	return out
}

// Tip is the commit at which a branch is in the project, "" for none.
func (t *Worktrees) Tip(ctx context.Context, branch string) (string, error) {
	ref := "refs/heads/" + branch
	common := git.CommonDir(t.Root)
	if common == "" {
		return t.git(t.Root).Resolve(ctx, ref)
	}
	refs, err := git.NewBare(common, t.Git).Refs(ctx, ref) // from files, as a rule
	return refs[ref], err
}

// Brancher are places whose work is on branches.
type Brancher interface {
	// Tip is the commit at which a branch is, "" for none.
	Tip(ctx context.Context, branch string) (string, error)
	// Building is told, before the loop begins, how to find the commit that an item has made
	// which is done, "" for one of which that is not known.
	Building(made func(ctx context.Context, id string) (commit string, err error))
}

// settled looks whether the work has all that it owes: an agent that settled a conflict by
// throwing one side away, or that did something else, has merged nothing.
func (t *Worktrees) settled(ctx context.Context, g *git.Git, p Place, item queue.Item) error {
	for _, o := range owes(&item, &p) {
		commit := o.Commit
		if commit == "" {
			var err error
			if commit, err = t.Tip(ctx, o.Branch); err != nil {
				return err
			}
		} else if known, err := g.Resolve(ctx, commit+"^{commit}"); err != nil {
			return err
		} else if known == "" {
			return unkept("the branch %s was to be merged at %s, which is not there any more: drop this item if that is not wanted", o.Branch, short(commit))
		}
		if commit == "" { // who took the branch away had it, or did not want it
			continue
		}
		ok, err := g.IsAncestor(ctx, commit, "HEAD")
		if err != nil {
			return err
		}
		if !ok {
			return unkept("the branch %s is not merged into it: `git merge %s`, and settle conflicts in the sense of both; its changes without its commits, as by a squash, are not enough, for it would conflict again", o.Branch, name(o, commit))
		}
	}
	return nil
}

// name is what to merge: the branch, or where it went elsewhere the commit.
func name(o owed, commit string) string {
	if o.Commit == "" {
		return o.Branch
	}
	return short(commit)
}

func short(commit string) string { return commit[:min(len(commit), 12)] }
