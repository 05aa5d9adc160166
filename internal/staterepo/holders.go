package staterepo

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Holder is a branch, or what keeps one, in whose history a text stands.
type Holder struct {
	Ref     string `json:"ref"` // without refs/heads/
	Commits int    `json:"commits"`
	// Now says that it stands in the files as they are, too.
	Now bool `json:"now"`
	// Remote says that the remote has it, as far as is known here.
	Remote bool `json:"remote"`
}

// Holders are the branches in whose history a text stands or stood: those of agents
// here and elsewhere, what gc and reset kept, and checkpoints. Nothing is changed:
// commits are not rewritten, because every clone would bring the old ones back.
func (r *Repo) Holders(ctx context.Context, text string) ([]Holder, error) {
	if strings.TrimSpace(text) == "" || !r.Exists() {
		return nil, nil
	}
	refs, err := r.git.Refs(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for what holds it: %w", err)
	}
	pushed := map[string]bool{}
	for ref := range refs {
		if name, ok := strings.CutPrefix(ref, tracking); ok {
			pushed[name] = true
		}
	}
	var out []Holder
	for ref, id := range refs {
		if strings.HasPrefix(ref, claimRefs) || strings.HasPrefix(ref, claimsThere) || strings.HasPrefix(ref, headsThere) || strings.HasPrefix(ref, keptThere) {
			continue
		}
		// Commits that put it in or took it out; git looks for it as it stands.
		list, err := r.git.Run(ctx, "log", "--format=%H", "--no-textconv", "--no-ext-diff", "-S"+text, id, "--")
		if err != nil {
			return nil, fmt.Errorf("look for what holds it: %w", err)
		}
		h := Holder{Ref: strings.TrimPrefix(ref, heads), Commits: len(strings.Fields(string(list)))}
		if h.Commits == 0 {
			continue
		}
		files, err := r.git.Files(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("look for what holds it: %w", err)
		}
		var ids []string
		for _, e := range files {
			ids = append(ids, e.ID)
		}
		blobs, err := r.git.Objects(ctx, ids...)
		if err != nil {
			return nil, fmt.Errorf("look for what holds it: %w", err)
		}
		for _, b := range blobs {
			h.Now = h.Now || strings.Contains(string(b.Data), text)
		}
		name, there := strings.CutPrefix(ref, tracking)
		if !there {
			name = h.Ref
		}
		h.Remote = there || pushed[name]
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b Holder) int { return strings.Compare(a.Ref, b.Ref) })
	return out, nil
}
