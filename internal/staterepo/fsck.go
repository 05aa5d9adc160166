package staterepo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/git"
	"reprise/internal/mdfile"
)

// Problem is something that [Repo.Fsck] found.
type Problem struct {
	Where    string `json:"where"`
	Problem  string `json:"problem"`
	Remedy   string `json:"remedy"`
	Repaired bool   `json:"repaired,omitempty"`
}

// Fsck looks at the repository, its branches, checkouts and entries. With repair it
// mends what can be mended without loss: branches whose commit is damaged go back
// to the last good one (what is on disk is committed again), links, and locks that
// killed gits left.
func (r *Repo) Fsck(ctx context.Context, repair bool) ([]Problem, error) {
	if !r.Exists() {
		return nil, nil
	}
	var out []Problem
	for _, look := range []func(context.Context, bool) ([]Problem, error){r.fsckLocks, r.fsckLinks, r.fsckBranches, r.fsckObjects, r.fsckEntries} {
		list, err := look(ctx, repair)
		if err != nil {
			return out, fmt.Errorf("check state: %w", err)
		}
		out = append(out, list...)
	}
	if repair {
		if err := r.removeTemps(); err != nil {
			return out, fmt.Errorf("check state: %w", err)
		}
	}
	return out, nil
}

func (r *Repo) fsckLocks(_ context.Context, repair bool) (out []Problem, err error) {
	list, err := r.git.Locks()
	if err != nil {
		return nil, err
	}
	var gone []string
	if repair {
		if gone, err = r.git.RemoveLeft(); err != nil {
			return nil, err
		}
	}
	for _, l := range list {
		p := Problem{Where: l.Path, Problem: "git's lock is there", Remedy: "a killed git leaves one; `reprise state fsck --repair`, and any command that fails at it, removes it when it is older than a minute and no git from before it works there"}
		p.Repaired = slices.Contains(gone, l.Path)
		out = append(out, p)
	}
	return out, nil
}

// known are all checkouts that the repository names, whether they are there or not.
func (r *Repo) known() []*Tree {
	list := []*Tree{r.Global()}
	for name, dir := range Checkouts(r.o.Dir) {
		list = append(list, &Tree{r: r, Branch: agentPrefix + name, Dir: dir})
	}
	return list
}

func (r *Repo) fsckLinks(_ context.Context, repair bool) (out []Problem, err error) {
	for _, t := range r.known() {
		if t.linked() {
			continue
		}
		p := Problem{Where: t.Dir, Problem: "the checkout and the repository do not name each other", Remedy: "run `reprise state fsck --repair`"}
		if repair {
			if err := t.link(); err != nil {
				return out, err
			}
			p.Repaired = true
		}
		out = append(out, p)
	}
	return out, nil
}

// Relink has the checkouts name the repository where that is now, after it was moved.
func (r *Repo) Relink(ctx context.Context) error {
	if !r.Exists() {
		return nil
	}
	if _, err := r.fsckLinks(ctx, true); err != nil {
		return fmt.Errorf("join the checkouts of the state again: %w", err)
	}
	return nil
}

// fsckBranches finds branches that are at nothing that can be read.
func (r *Repo) fsckBranches(ctx context.Context, repair bool) (out []Problem, err error) {
	for _, t := range r.known() {
		list, err := r.git.Objects(ctx, t.ref()+"^{tree}")
		if err == nil && list[0].Kind == "tree" {
			continue
		}
		p := Problem{Where: t.Branch, Problem: "its last commit is not there, or cannot be read", Remedy: "run `reprise state fsck --repair`: the branch goes back to the last good commit, and what is on disk is committed again"}
		if refs, rerr := r.git.Refs(ctx, t.ref()); rerr == nil && refs[t.ref()] == "" {
			p.Problem = "the branch is not there, and " + t.Dir + " is its checkout"
			p.Remedy = "run `reprise state fsck --repair`: it is made from what is on disk there. A removal of that workspace which was cut off is finished by the next `reprise workspace` command"
		}
		if repair {
			if err := r.restore(ctx, t); err != nil {
				return out, err
			}
			p.Repaired = true
		}
		out = append(out, p)
	}
	return out, nil
}

// restore puts a branch at the newest of its commits that is whole: one of those
// that it was at before, what the remote has, or the first of all.
func (r *Repo) restore(ctx context.Context, t *Tree) error {
	id, err := r.lastGood(ctx, t)
	if err != nil {
		return err
	}
	// What is there cannot be read, so that there is no old value to compare.
	if _, err := r.git.Run(ctx, "update-ref", "-m", "reprise: fsck", t.ref(), id); err != nil {
		if err := r.o.Disk.WriteFile(filepath.Join(r.Dir(), filepath.FromSlash(t.ref())), []byte(id+"\n"), 0o644); err != nil {
			return err
		}
	}
	_, err = t.Save(ctx, "reprise", "What was on disk when the branch was mended")
	return err
}

// lastGood is the commit that restore goes back to.
func (r *Repo) lastGood(ctx context.Context, t *Tree) (string, error) {
	candidates := r.reflog(t)
	root, err := rootCommit(r.git, r.o.begun())
	if err != nil {
		return "", err
	}
	for _, id := range append(candidates, tracking+t.Branch, root) {
		list, err := r.git.Objects(ctx, id, id+"^{tree}")
		if err != nil || list[0].Kind != "commit" || list[1].Kind != "tree" {
			continue
		}
		if _, err := r.git.Run(ctx, "rev-list", "--objects", "--quiet", list[0].ID); err != nil {
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			continue
		}
		return list[0].ID, nil
	}
	return "", errors.New("there is no commit to go back to")
}

// errNoBranch is a checkout whose branch there is not.
var errNoBranch = errors.New("the branch of this checkout is not there")

// remake makes the branch of a checkout anew, which a killed command, or somebody's git, has
// taken away or never made: what is on disk is committed upon it then. One that gc or the
// end of the agent took away is kept under a ref, and does not come back by itself, such as
// by a hook that comes late; then missing is the error.
func (t *Tree) remake(ctx context.Context, missing error) (note string, err error) {
	r := t.r
	refs, err := r.git.Refs(ctx, t.ref(), keptRefs+t.Branch+"/")
	if err != nil || refs[t.ref()] != "" {
		return "", err // somebody has made it
	}
	if len(refs) > 0 || t.Branch == GlobalBranch || !t.linked() {
		return "", missing
	}
	id, err := r.lastGood(ctx, t)
	if err != nil {
		return "", err
	}
	if err := r.git.MoveRef(ctx, t.ref(), id, "", "reprise: made again"); err != nil && !isRace(err) {
		return "", err
	}
	return fmt.Sprintf("branch %s was not there, and was made again from what is on disk", t.Branch), nil
}

// reflog is where a branch was, the newest first.
func (r *Repo) reflog(t *Tree) []string {
	text, err := readSmall(filepath.Join(r.Dir(), "logs", filepath.FromSlash(t.ref())))
	if err != nil {
		return nil // there is none
	}
	var out []string
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 1 && len(f[1]) == 40 {
			out = append(out, f[1])
		}
	}
	slices.Reverse(out)
	return out
}

func (r *Repo) fsckObjects(ctx context.Context, _ bool) (out []Problem, err error) {
	// What somebody writes while git looks is no damage: that is gone when it looks again.
	for range 3 {
		if _, err = r.git.Long().Run(ctx, "fsck", "--no-dangling", "--no-progress", "--connectivity-only"); err == nil {
			return nil, nil
		}
	}
	var e *git.Error
	if !errors.As(err, &e) || e.Code <= 0 {
		return nil, err
	}
	for line := range strings.Lines(e.Stderr) {
		out = append(out, Problem{Where: "state.git", Problem: strings.TrimSpace(line), Remedy: "`reprise state fsck --repair`, then `reprise state pull`: what another machine has comes back"})
		if len(out) == 20 {
			break
		}
	}
	if len(out) == 0 {
		out = []Problem{{Where: "state.git", Problem: e.Error(), Remedy: "`reprise state fsck --repair`, then `reprise state pull`: what another machine has comes back"}}
	}
	return out, nil
}

// fsckEntries finds entries that cannot be read whole, ids that stand for two
// things, and entries that name others that nobody has.
func (r *Repo) fsckEntries(ctx context.Context, _ bool) (out []Problem, err error) {
	all, err := r.Log(ctx, Everyone)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, e := range all {
		there[e.ID] = true
	}
	for _, t := range r.known() {
		list, err := t.withTombstones()
		if err != nil {
			return out, err
		}
		for id := range mdfile.Retired(list) {
			there[id] = true
		}
	}
	if err := r.keptEntries(ctx, there); err != nil {
		return out, err
	}
	for _, e := range all {
		where := fmt.Sprintf("%s:%s:%d", e.Branch, e.File, e.Line)
		if e.Problem != "" {
			out = append(out, Problem{Where: where, Problem: e.Problem, Remedy: "mend its front matter"})
		}
		if e.Edited && e.Problem == "" && !e.Short && e.ID != mdfile.EntryID(e.Entry) {
			out = append(out, Problem{Where: where, Problem: "entry " + e.ID + " was edited by hand", Remedy: "`reprise state sync` makes an entry of the edit"})
		}
		for _, id := range append(slices.Clone(e.DependsOn), e.Parent) {
			if id != "" && !there[id] {
				out = append(out, Problem{Where: where, Problem: "it names " + id + ", which is not here", Remedy: "`reprise state pull` brings what other machines have"})
			}
		}
	}
	return out, nil
}

// keptEntries adds the entries of what was taken away: others may name them still.
func (r *Repo) keptEntries(ctx context.Context, there map[string]bool) error {
	refs, err := r.git.Refs(ctx, keptRefs)
	if err != nil {
		return err
	}
	var ask []string
	for _, id := range refs {
		for _, name := range entryFiles() {
			ask = append(ask, id+":"+name)
		}
	}
	list, err := r.git.Objects(ctx, ask...)
	if err != nil {
		return nil //nolint:nilerr // what cannot be read of it is told where objects are looked at
	}
	for _, o := range list {
		for _, e := range mdfile.ParseEntries(o.Data).Entries {
			there[e.ID] = true
		}
	}
	return nil
}
