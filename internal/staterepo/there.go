package staterepo

import (
	"context"
	"fmt"
	"strings"

	"reprise/internal/git"
)

// takeOver makes of the copy of the remote's refs, as they were just fetched, what is
// known of them here. What the remote keeps is kept here, too, and nothing that is kept
// here goes because the remote has it not. A branch that somebody removed on the remote is
// said: one of this machine is sent again, and of another machine's what was fetched last
// stays under [formerRefs]. After a kill in the middle the next exchange does it.
func (r *Repo) takeOver(ctx context.Context, out *Synced) error {
	for try := 0; ; try++ { // gc may move refs at the same time
		if err := pause(ctx, try); err != nil {
			return err
		}
		refs, err := r.git.Refs(ctx, heads, tracking, headsThere, keptRefs, keptThere, formerRefs)
		if err != nil {
			return err
		}
		moves, notices, err := r.takenOver(ctx, refs)
		if err == nil && len(moves) > 0 {
			err = r.git.MoveRefs(ctx, "reprise: fetched", moves...)
		}
		if isRace(err) && try < tries {
			continue
		}
		if err == nil {
			out.Notices = append(out.Notices, notices...)
		}
		return err
	}
}

// takenOver are the moves of [Repo.takeOver], by the refs as they are.
func (r *Repo) takenOver(ctx context.Context, refs map[string]string) (moves []git.RefMove, notices []string, err error) {
	for ref, id := range refs {
		if name, ok := strings.CutPrefix(ref, keptThere); ok && refs[keptRefs+name] == "" {
			moves = append(moves, git.RefMove{Ref: keptRefs + name, New: id})
		}
		if branch, ok := strings.CutPrefix(ref, headsThere); ok && refs[tracking+branch] != id {
			moves = append(moves, git.RefMove{Ref: tracking + branch, New: id, Old: refs[tracking+branch]})
		}
		branch, ok := strings.CutPrefix(ref, tracking)
		if !ok || refs[headsThere+branch] != "" {
			continue
		}
		moves = append(moves, git.RefMove{Ref: ref, Old: id})
		kept, err := r.keepsThat(ctx, refs, branch, id)
		if err != nil {
			return nil, nil, err
		}
		former := formerRefs + branch + "/" + id[:12]
		switch {
		case kept: // by gc, under a new name, or before a new beginning
		case refs[heads+branch] != "":
			notices = append(notices, fmt.Sprintf("branch %s had been removed from the remote, which nothing of reprise does without keeping it; it is sent again", branch))
		default:
			if refs[former] == "" {
				moves = append(moves, git.RefMove{Ref: former, New: id})
			}
			notices = append(notices, fmt.Sprintf("branch %s, of another machine, had been removed from the remote; what was fetched of it stays here as %s (`git -C %s push %s %s:%s%s` puts it back)", branch, former, r.Dir(), remoteName, former, heads, branch))
		}
	}
	return moves, notices, nil
}

// keepsThat says that one of the refs that keep a branch has a commit in its history.
func (r *Repo) keepsThat(ctx context.Context, refs map[string]string, branch, commit string) (bool, error) {
	for ref, id := range refs {
		if !strings.HasPrefix(ref, keptRefs+branch+"/") && !strings.HasPrefix(ref, keptThere+branch+"/") {
			continue
		}
		if base, err := r.git.MergeBase(ctx, commit, id); err != nil || base == commit {
			return err == nil, err
		}
	}
	return false, nil
}
