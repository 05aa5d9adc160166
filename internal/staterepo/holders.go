package staterepo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reprise/internal/clip"
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

// inSubject is how much of a text a commit's first line has at least.
const inSubject = 40

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
	var out []Holder
	for ref, id := range refs {
		if strings.HasPrefix(ref, claimRefs) || strings.HasPrefix(ref, claimsThere) || strings.HasPrefix(ref, headsThere) || strings.HasPrefix(ref, keptThere) {
			continue
		}
		commits, err := r.saying(ctx, text, id)
		if err != nil {
			return nil, fmt.Errorf("look for what holds it: %w", err)
		}
		h := Holder{Ref: strings.TrimPrefix(ref, heads), Commits: commits}
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
		// A branch that the remote has may hold it in commits that were not sent yet.
		seen := ref
		if !strings.HasPrefix(ref, tracking) {
			seen = tracking + h.Ref
		}
		if there := refs[seen]; there != "" {
			n, err := r.saying(ctx, text, there)
			if err != nil {
				return nil, fmt.Errorf("look for what holds it: %w", err)
			}
			h.Remote = n > 0
		}
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b Holder) int { return strings.Compare(a.Ref, b.Ref) })
	return out, nil
}

// saying counts the commits up to one that put a text in or took it out, and those that
// say the beginning of it in their message, which is made of what was written.
func (r *Repo) saying(ctx context.Context, text, upTo string) (int, error) {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	seen := map[string]bool{}
	for _, how := range [][]string{{"-S" + text}, {"--fixed-strings", "--grep=" + clip.Head(first, inSubject)}} {
		list, err := r.git.Run(ctx, append(append([]string{"log", "--format=%H", "--no-textconv", "--no-ext-diff"}, how...), upTo, "--")...)
		if err != nil {
			return 0, err
		}
		for id := range strings.FieldsSeq(string(list)) {
			seen[id] = true
		}
	}
	return len(seen), nil
}
