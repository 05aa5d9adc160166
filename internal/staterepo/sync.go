package staterepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"reprise/internal/git"
)

// Direction of an exchange with the remote.
type Direction int

// Pull brings in, Push sends, Both do both.
const (
	Pull Direction = 1 << iota
	Push
	Both = Pull | Push
)

// Synced says what [Repo.Sync] did.
type Synced struct {
	Remote  string   `json:"remote,omitempty"`
	Commits []Commit `json:"branches,omitempty"` // branches that changed here or there
	Fetched []string `json:"fetched,omitempty"`  // agents of other machines of which something came
	Rounds  int      `json:"rounds"`             // exchanges it took: more than one where others pushed at the same time
	Notes   []string `json:"notes,omitempty"`
	Notices []string `json:"notices,omitempty"` // what a person has to look at
	// Namesakes are the agents of this machine that were left out, since another machine
	// has one of the same name.
	Namesakes []string `json:"namesakes,omitempty"`
}

// Commit is a branch with the commit that it is at.
type Commit struct {
	Branch string `json:"branch"`
	Commit string `json:"commit"`
	Merged bool   `json:"merged,omitempty"` // the remote's came in
	Pushed bool   `json:"pushed,omitempty"` // the remote has it
}

// Sync commits what is in the checkouts on this machine and exchanges it with the
// remote: the branch global, and the branches of the agents that work here or ended
// here. Those of agents elsewhere are fetched and left alone. Where others push at the same
// time, it fetches, merges and pushes again. Without a remote it commits only,
// and is ErrNoRemote unless the direction is Both.
func (r *Repo) Sync(ctx context.Context, dir Direction) (Synced, error) {
	var out Synced
	made, err := r.Ensure(ctx)
	if err != nil {
		return out, err
	}
	out.Notes = append(out.Notes, made.Repaired...)
	unlock, err := r.lock(ctx, "sync.lock")
	if err != nil {
		return out, fmt.Errorf("sync state: %w", err)
	}
	defer unlock()
	for try := 1; ; try++ {
		var trees []*Tree
		if trees, err = r.trees(ctx); err == nil {
			err = r.sync(ctx, trees, dir, &out)
		}
		if err == nil || try == tries || !left(trees) {
			break
		}
	}
	said := map[string]bool{} // a checkout is committed more than once
	out.Notes = slices.DeleteFunc(out.Notes, func(n string) bool {
		was := said[n]
		said[n] = true
		return was
	})
	if err != nil {
		return out, fmt.Errorf("sync state: %w", err)
	}
	return out, nil
}

// left reports whether a checkout is not there any more: its workspace was taken away
// since, which keeps nobody else from exchanging.
func left(trees []*Tree) bool {
	return slices.ContainsFunc(trees, func(t *Tree) bool {
		_, err := os.Lstat(t.Dir)
		return t.Branch != GlobalBranch && errors.Is(err, fs.ErrNotExist)
	})
}

func (r *Repo) sync(ctx context.Context, trees []*Tree, dir Direction, out *Synced) (err error) {
	for _, t := range trees {
		s, err := t.Save(ctx, "", "")
		out.Notes = append(out.Notes, s.Notes...)
		if err != nil {
			return err
		}
		if len(s.Changed) > 0 {
			out.commit(t.Branch, s.Commit)
			t.changed(ctx, Change{Op: "commit", Commit: s.Commit, Files: s.Changed})
		}
	}
	if out.Remote, err = r.Remote(ctx); err != nil {
		return err
	}
	if out.Remote == "" {
		if dir != Both {
			return fmt.Errorf("%w; `reprise state init --remote URL` names one", ErrNoRemote)
		}
		if err := r.aggregateIn(ctx, out); err != nil {
			return err
		}
		out.Notes = append(out.Notes, "no remote is set, so this stays on this machine; `reprise state init --remote URL` names one")
		return nil
	}
	for out.Rounds = 1; ; out.Rounds++ {
		if err := pause(ctx, out.Rounds-1); err != nil {
			return err
		}
		if err := r.fetch(ctx, trees, dir, out); err != nil {
			return away(err)
		}
		lost, err := r.lostClaims(ctx, trees)
		out.Notices = append(out.Notices, lost...)
		if err != nil {
			return err
		}
		if err := r.aggregateIn(ctx, out); err != nil {
			return err
		}
		if dir&Push == 0 {
			return nil
		}
		err = r.push(ctx, trees, out)
		if !errors.Is(err, git.ErrRejected) && !errors.Is(err, git.ErrLocked) {
			return away(err)
		}
		if out.Rounds >= tries {
			return fmt.Errorf("it is committed here, but not sent: %w: %w", ErrBusy, err)
		}
	}
}

// away says of a remote that could not be exchanged with why, and that nothing is lost by
// it; git's own words are for those who know its commands.
func away(err error) error {
	var e *git.Error
	if !errors.As(err, &e) || !slices.ContainsFunc([]error{git.ErrNetwork, git.ErrAuth, git.ErrNotRepo, git.ErrTimeout}, func(k error) bool { return errors.Is(err, k) }) {
		return err
	}
	why := ""
	for line := range strings.Lines(e.Stderr) {
		for _, prefix := range []string{"fatal: ", "error: ", "ERROR: ", "ssh: "} {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), prefix); ok && why == "" {
				why = " (" + rest + ")"
			}
		}
	}
	if _, rest, ok := strings.Cut(e.Stderr, "dubious ownership in repository at '"); ok {
		path, _, _ := strings.Cut(rest, "'")
		return fmt.Errorf("%w: git takes no repository that belongs to another user, %s, unless `git config --global --add safe.directory %s` was said; everything is committed here, and the next `reprise state sync` sends it", e.Kind, path, path)
	}
	return fmt.Errorf("%w%s; everything is committed here, and the next `reprise state sync` sends it; `reprise state show` says which remote it is", e.Kind, why)
}

// aggregateIn brings the agents' logs together, as a part of an exchange.
func (r *Repo) aggregateIn(ctx context.Context, out *Synced) error {
	s, came, err := r.Aggregate(ctx)
	out.Notes = append(out.Notes, s.Notes...)
	if came && err == nil {
		out.commit(GlobalBranch, s.Commit)
		r.Global().changed(ctx, Change{Op: "aggregate", Commit: s.Commit, Files: s.Changed})
	}
	return err
}

// trees are the checkouts on this machine, global first.
func (r *Repo) trees(ctx context.Context) ([]*Tree, error) {
	list := []*Tree{r.Global()}
	agents, err := r.Agents(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range agents {
		if a.Dir != "" {
			list = append(list, &Tree{r: r, Branch: agentPrefix + a.Name, Dir: a.Dir})
		}
	}
	return list, nil
}

func (s *Synced) commit(branch, id string) *Commit {
	i := slices.IndexFunc(s.Commits, func(c Commit) bool { return c.Branch == branch })
	if i < 0 {
		i = len(s.Commits)
		s.Commits = append(s.Commits, Commit{Branch: branch})
	}
	s.Commits[i].Commit = id
	return &s.Commits[i]
}

// fetch brings the remote's branches here and, unless only pushing is asked for
// and not needed, merges those that are checked out on this machine.
func (r *Repo) fetch(ctx context.Context, trees []*Tree, dir Direction, out *Synced) error {
	before, err := r.git.Refs(ctx, tracking)
	if err != nil {
		return err
	}
	err = r.git.FetchRefs(ctx, remoteName, "+"+heads+GlobalBranch+"*:"+headsThere+GlobalBranch+"*", "+"+heads+agentPrefix+"*:"+headsThere+agentPrefix+"*", "+"+keptRefs+"*:"+keptThere+"*", "+"+claimRefs+"*:"+claimsThere+"*",
		"+"+endedRefs+"*:"+endedThere+"*", "+"+doneRefs+"*:"+doneThere+"*")
	if err != nil {
		return err
	}
	if err := r.takeOver(ctx, out); err != nil {
		return err
	}
	after, err := r.git.Refs(ctx, heads, tracking, keptRefs, endedThere)
	if err != nil {
		return err
	}
	for _, t := range trees {
		their := after[tracking+t.Branch]
		delete(after, tracking+t.Branch)
		tip := after[t.ref()]
		if tip != "" && tip == after[endedThere+t.Branch] {
			if err := t.goOn(ctx, tip); err != nil {
				return err
			}
		}
		namesake, err := t.namesake(ctx, tip, their)
		if err != nil {
			return err
		}
		if namesake {
			out.clash(t.Agent())
			continue
		}
		if their == "" || their == after[t.ref()] || their == before[tracking+t.Branch] && dir&Pull == 0 && out.Rounds == 1 {
			continue
		}
		m, err := t.Merge(ctx, their, "Merge "+t.Branch+" of another machine")
		if err != nil {
			return err
		}
		out.Notes = append(out.Notes, m.Notes...)
		out.Notices = append(out.Notices, m.Notices...)
		if m.Merged {
			out.commit(t.Branch, m.Commit).Merged = true
			t.changed(ctx, Change{Op: "merge", Commit: m.Commit})
		}
	}
	for ref, id := range after {
		name, ok := strings.CutPrefix(ref, tracking+agentPrefix)
		if !ok {
			continue
		}
		if t := (&Tree{r: r, Branch: agentPrefix + name}); after[t.kept(id)] == id {
			// It was taken away elsewhere, and what keeps it came.
			if err := r.git.DropRef(ctx, ref, id); err != nil && !isRace(err) {
				return err
			}
			continue
		}
		if id != before[ref] {
			out.Fetched = append(out.Fetched, name)
		}
	}
	slices.Sort(out.Fetched)
	out.Fetched = slices.Compact(out.Fetched)
	return nil
}

// namesake says that the remote's branch is of another agent, which another machine gave
// the same name: the two have nothing in common but what every branch begins with.
func (t *Tree) namesake(ctx context.Context, ours, theirs string) (bool, error) {
	if t.Branch == GlobalBranch || ours == "" || theirs == "" || ours == theirs {
		return false, nil
	}
	base, err := t.r.git.MergeBase(ctx, ours, theirs)
	if err != nil || base == ours || base == theirs {
		return false, err
	}
	if base == "" {
		return true, nil
	}
	files, err := t.r.git.Files(ctx, base)
	if err != nil {
		return false, err
	}
	begin := seeds()
	for name, e := range files {
		if text, ok := begin[name]; !ok || e.ID != git.BlobID([]byte(text)) {
			return false, nil
		}
	}
	return true, nil
}

// clash notes that an agent is left out of the exchange.
func (s *Synced) clash(agent string) {
	if !slices.Contains(s.Namesakes, agent) {
		s.Namesakes = append(s.Namesakes, agent)
		s.Notices = append(s.Notices, "another machine has an agent "+agent+", too, so the one here is not exchanged; `reprise state rename NAME` gives it a name of its own")
	}
}

// goOn tells the other machines that an agent works here, of which the remote says that
// it ended: with a commit that changes nothing, since what is said holds for the one that
// it was said of.
func (t *Tree) goOn(ctx context.Context, tip string) error {
	d, c, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	defer c.Abort()
	files, err := t.r.git.Files(ctx, tip)
	if err != nil {
		return err
	}
	id, err := t.commit(files, []string{tip}, "reprise", "The agent goes on")
	if err != nil {
		return err
	}
	if err := t.r.git.MoveRef(ctx, t.ref(), id, tip, "reprise: goes on"); err != nil && !isRace(err) {
		return err
	}
	return nil
}

// gone are the branches of agents that work nowhere on this machine any more, and are to
// be on the remote as they are here: what they wrote last was committed when their
// checkout went. One that goes on elsewhere, or was taken away there, is left.
func (r *Repo) gone(ctx context.Context, local map[string]string) ([]*Tree, error) {
	agents, err := r.Agents(ctx)
	if err != nil {
		return nil, err
	}
	var out []*Tree
	for _, a := range agents {
		t := &Tree{r: r, Branch: agentPrefix + a.Name}
		if !a.Here || a.Dir != "" || local[t.kept(a.Commit)] == a.Commit || a.tracked == "" && a.Consolidated {
			continue
		}
		if a.tracked != "" && a.tracked != a.Commit {
			base, err := r.git.MergeBase(ctx, a.Commit, a.tracked)
			if err != nil {
				return nil, err
			}
			if base != a.tracked {
				continue
			}
		}
		out = append(out, t)
	}
	return out, nil
}

// marksToSend are the refspecs of what is said of agents that work nowhere any more.
// Nothing is lost where one takes another's place: it holds for the commit that it names,
// as long as that is the branch's. So they stay where a branch goes, too.
func marksToSend(gone []*Tree, local map[string]string) (specs []string) {
	send := func(ref, tip, there string) {
		if tip != there {
			specs = append(specs, "+"+tip+":"+ref)
		}
	}
	for _, t := range gone {
		tip := local[t.ref()]
		send(endedRefs+t.Branch, tip, local[endedThere+t.Branch])
		if local[doneRefs+t.Branch] == tip {
			send(doneRefs+t.Branch, tip, local[doneThere+t.Branch])
		}
	}
	for ref, tip := range local { // somebody looked here at what is left of one elsewhere
		if branch, ok := strings.CutPrefix(ref, doneRefs); ok && local[heads+branch] == "" && local[tracking+branch] == tip {
			send(ref, tip, local[doneThere+branch])
		}
	}
	slices.Sort(specs)
	return specs
}

// push sends what the remote does not have yet.
func (r *Repo) push(ctx context.Context, trees []*Tree, out *Synced) error {
	local, err := r.git.Refs(ctx, heads, tracking, claimRefs, claimsThere, keptRefs, doneRefs, endedThere, doneThere)
	if err != nil {
		return err
	}
	gone, err := r.gone(ctx, local)
	if err != nil {
		return err
	}
	trees = append(slices.Clone(trees), gone...)
	var specs []string
	var sent []string
	for _, t := range trees {
		id := local[t.ref()]
		// A checkout that went meanwhile is among both.
		if slices.Contains(out.Namesakes, t.Agent()) || slices.Contains(sent, t.Branch) {
			continue
		}
		if id == "" || id == local[tracking+t.Branch] {
			continue
		}
		specs, sent = append(specs, id+":"+t.ref()), append(sent, t.Branch)
	}
	claims, leases := claimsToSend(local)
	claims = append(claims, marksToSend(gone, local)...)
	if len(specs)+len(claims) == 0 {
		return nil
	}
	if err := r.git.PushRefs(ctx, remoteName, leases, append(specs, claims...)...); err != nil {
		return err
	}
	for i, branch := range sent {
		id, _, _ := strings.Cut(specs[i], ":")
		out.commit(branch, id).Pushed = true
		// Git notes what it sent by itself, unless the user's settings have their own view
		// of what a remote's branches are called here.
		at, err := r.tip(ctx, tracking+branch)
		if err != nil {
			return err
		}
		if at != id {
			if err := r.git.MoveRef(ctx, tracking+branch, id, at, "reprise: sent"); err != nil && !isRace(err) {
				return err
			}
		}
	}
	return nil
}
