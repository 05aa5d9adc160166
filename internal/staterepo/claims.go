package staterepo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reprise/internal/git"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
)

// A handoff is accepted by a ref to the name of who has it. On one machine git
// decides who makes it first; between machines the remote does, which takes each
// such ref once. So who exchanges first has it, whatever clocks say, and where two
// accepted the same thing before they exchanged, the other learns of it then.
const (
	claimRefs   = "refs/reprise/handoff/" // here, and on the remote
	claimsThere = "refs/reprise/claims/"  // the remote's, as they were last fetched
	lostSource  = "handoff-lost:"
)

// claims are the agents that have a handoff, by its id; the remote's word counts.
func (r *Repo) claims(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	refs, err := r.git.Refs(ctx, claimRefs, claimsThere)
	if err != nil || len(refs) == 0 {
		return out, err
	}
	for _, prefix := range []string{claimRefs, claimsThere} {
		var ids, blobs []string
		for ref, blob := range refs {
			if id, ok := strings.CutPrefix(ref, prefix); ok {
				ids, blobs = append(ids, id), append(blobs, blob)
			}
		}
		list, err := r.git.Objects(ctx, blobs...)
		if err != nil {
			return nil, err
		}
		for i, id := range ids {
			if name := string(list[i].Data); CheckName(name) == nil {
				out[id] = name
			}
		}
	}
	return out, nil
}

// claim takes a handoff for the agent on this machine.
func (t *Tree) claim(ctx context.Context, h Handoff) error {
	name, err := t.r.git.Store("blob", []byte(t.Agent()))
	if err != nil {
		return err
	}
	ref := claimRefs + h.ID
	for try := 0; ; try++ {
		if err := pause(ctx, try); err != nil {
			return err
		}
		err := t.r.git.MoveRef(ctx, ref, name, "", "reprise: accepted")
		if err == nil || !isRace(err) || try >= tries {
			return err
		}
		has, err := t.r.git.Objects(ctx, ref)
		switch {
		case err != nil:
			return err
		case string(has[0].Data) == t.Agent(): // we were killed before the entry
			return nil
		case has[0].Kind != "":
			return fmt.Errorf("%w, by %s", ErrTaken, has[0].Data)
		}
	}
}

// claimsToSend are the refspecs and leases of what was accepted here and is not on
// the remote.
func claimsToSend(refs map[string]string) (specs, leases []string) {
	for ref, blob := range refs {
		if id, ok := strings.CutPrefix(ref, claimRefs); ok && refs[claimsThere+id] == "" {
			specs, leases = append(specs, blob+":"+ref), append(leases, ref+":")
		}
	}
	slices.Sort(specs)
	slices.Sort(leases)
	return specs, leases
}

// lostClaims tells the agents on this machine whose handoff another one had first,
// by an entry in their log, once.
func (r *Repo) lostClaims(ctx context.Context, trees []*Tree) (notices []string, err error) {
	refs, err := r.git.Refs(ctx, claimRefs, claimsThere)
	if err != nil {
		return nil, err
	}
	for ref, mine := range refs {
		id, ok := strings.CutPrefix(ref, claimRefs)
		there := refs[claimsThere+id]
		if !ok || there == "" || there == mine {
			continue
		}
		list, err := r.git.Objects(ctx, mine, there)
		if err != nil {
			return notices, err
		}
		loser, winner := string(list[0].Data), string(list[1].Data)
		notice := fmt.Sprintf("handoff %s, which %s accepted here, had been accepted by %s", id, loser, winner)
		for _, t := range trees {
			if t.Agent() != loser {
				continue
			}
			own, err := t.entriesOnDisk()
			if err != nil {
				return notices, err
			}
			if slices.ContainsFunc(own, func(e LogEntry) bool { return e.Source == lostSource+id }) {
				continue // killed before the ref was moved
			}
			e := mdfile.Entry{
				Type: mdfile.TypeError, Status: "blocked", Source: lostSource + id, DependsOn: []string{id}, Time: r.o.Now(),
				Text: "Not ours: handoff " + id + " is " + winner + "'s\n\n" + notice + ". What was done for it is for " + winner + " to see.",
			}
			if _, err := t.Add(ctx, memory.FullAccess, e); err != nil && !errors.Is(err, ErrUnknown) {
				return notices, err
			}
		}
		if err := r.git.MoveRef(ctx, ref, there, mine, "reprise: another had it first"); err != nil && !errors.Is(err, git.ErrMoved) {
			return notices, err
		}
		notices = append(notices, notice)
	}
	slices.Sort(notices)
	return notices, nil
}
