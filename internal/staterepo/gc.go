package staterepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/mdfile"
)

// Consolidate marks an agent's branch as one of which everything that is to last
// is on global: only such a branch may gc take away, and only as long as nothing
// is added to it.
func (r *Repo) Consolidate(ctx context.Context, agent string) error {
	for try := 0; ; try++ { // two may look at the same agent at once
		if err := pause(ctx, try); err != nil {
			return err
		}
		if err := r.consolidate(ctx, agent); !isRace(err) || try >= tries {
			return err
		}
	}
}

func (r *Repo) consolidate(ctx context.Context, agent string) error {
	t := &Tree{r: r, Branch: agentPrefix + agent}
	list, err := r.git.Objects(ctx, t.ref(), tracking+t.Branch, doneRefs+t.Branch)
	if err != nil {
		return err
	}
	tip, done := cmp.Or(list[0].ID, list[1].ID), list[2].ID // one of another machine is as it was fetched
	if tip == "" {
		return fmt.Errorf("consolidate: %w: %q", ErrNoAgent, agent)
	}
	if tip == done {
		return nil
	}
	if err := r.git.MoveRef(ctx, doneRefs+t.Branch, tip, done, "reprise: consolidated"); err != nil {
		return fmt.Errorf("consolidate: %w", err)
	}
	t.changed(ctx, Change{Op: "consolidate", Commit: tip})
	return nil
}

// Unpromoted are the agent's learnings and decisions that hold and are not on global.
func (r *Repo) Unpromoted(ctx context.Context, agent string) ([]LogEntry, error) {
	list, err := r.Log(ctx, agent)
	if err != nil {
		return nil, err
	}
	p, err := r.promoted()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, p.has), nil
}

// promoted is what global has of agents' entries, or has forgotten.
type promoted struct{ there, gone map[string]bool }

func (r *Repo) promoted() (promoted, error) {
	all, err := r.Global().withTombstones()
	return promotedIn(all), err
}

// withTombstones are the entries of a checkout with the tombstones among them, none
// where there is no checkout yet.
func (t *Tree) withTombstones() ([]mdfile.Entry, error) {
	var all []mdfile.Entry
	for _, name := range entryFiles() {
		text, err := t.Read(name)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		all = append(all, mdfile.ParseEntries([]byte(text)).Entries...)
	}
	return all, nil
}

func promotedIn(shared []mdfile.Entry) promoted {
	p := promoted{there: make(map[string]bool, len(shared)), gone: mdfile.Retired(shared)}
	for i := range shared {
		e := &shared[i]
		from, made := strings.CutPrefix(e.Source, "entry:")
		switch {
		case e.Type != mdfile.TypeTombstone:
			p.there[e.ID], p.there[from] = true, true
		case made: // what was promoted and then forgotten is not left to be promoted
			p.gone[from] = true
		}
	}
	return p
}

// has says that nothing would be lost with an agent's entry: it is not one that is to
// last, holds no more, or is on global.
func (p promoted) has(e LogEntry) bool {
	lasting := e.Type == mdfile.TypeLearning || e.Type == mdfile.TypeDecision || e.Type == mdfile.TypePreference
	return !lasting || e.State.Status != mdfile.StatusActive || p.there[e.ID] || p.gone[e.ID]
}

// Conclude ends an agent whose work is done and that works nowhere on this machine any
// more: what it logged is brought together on global, and where everything that is to
// last is there, its branch is marked as consolidated and taken away as gc does. One
// that was exchanged is only marked, since gc asks the remote, and nobody should have
// to wait for that here. left is how many learnings and decisions keep the agent from
// all this: somebody has to look at them first. An agent that there is none of is no
// error.
func (r *Repo) Conclude(ctx context.Context, agent string) (left int, err error) {
	if left, err = r.conclude(ctx, agent); err != nil {
		return left, fmt.Errorf("conclude agent %s: %w", agent, err)
	}
	return left, nil
}

func (r *Repo) conclude(ctx context.Context, agent string) (int, error) {
	if err := CheckName(agent); err != nil || !r.Exists() {
		return 0, err
	}
	t := &Tree{r: r, Branch: agentPrefix + agent}
	id, err := r.tip(ctx, t.ref())
	if err != nil || id == "" {
		return 0, err
	}
	s, came, err := r.Aggregate(ctx)
	if err != nil {
		return 0, err
	}
	if came {
		r.Global().changed(ctx, Change{Op: "aggregate", Commit: s.Commit, Files: s.Changed})
	}
	list, err := r.Unpromoted(ctx, agent)
	if err != nil || len(list) > 0 {
		return len(list), err
	}
	unlock, err := r.lock(ctx, "state.lock")
	if err != nil {
		return 0, err
	}
	defer unlock()
	refs, err := r.git.Refs(ctx, t.ref(), tracking+t.Branch, doneRefs+t.Branch)
	if err != nil {
		return 0, err
	}
	if refs[t.ref()] != id {
		return 0, nil // somebody goes on with it
	}
	if refs[tracking+t.Branch] != "" || t.works() {
		return 0, r.Consolidate(ctx, agent) // gc is to see to the rest
	}
	item := GCItem{Agent: agent, Commit: id, Kept: t.kept(id)}
	if err := r.collectHere(ctx, t, item, refs); err != nil {
		return 0, err
	}
	t.changed(ctx, Change{Op: "consolidate", Commit: id})
	t.changed(ctx, Change{Op: "collect", Commit: id})
	return 0, nil
}

// collectHere is collect for a branch that was never exchanged: its refs change in one
// step, and in one process.
func (r *Repo) collectHere(ctx context.Context, t *Tree, item GCItem, refs map[string]string) error {
	if err := r.o.Disk.RemoveAll(t.admin()); err != nil {
		return err
	}
	moves := []git.RefMove{{Ref: item.Kept, New: item.Commit}, {Ref: t.ref(), Old: item.Commit}}
	if done := refs[doneRefs+t.Branch]; done != "" {
		moves = append(moves, git.RefMove{Ref: doneRefs + t.Branch, Old: done})
	}
	err := r.git.MoveRefs(ctx, "reprise: kept", moves...)
	if isRace(err) { // such as one that is kept already: step by step
		return r.collect(ctx, t, item, refs)
	}
	return err
}

// works says that the branch is checked out on this machine.
func (t *Tree) works() bool {
	at := t.where()
	if at == "" {
		return false
	}
	link, err := readSmall(filepath.Join(at, ".git"))
	if err != nil {
		return fileExists(filepath.Join(at, ".git")) // it cannot be read
	}
	other := path.Base(filepath.ToSlash(strings.TrimRight(link, "\r\n")))
	return other == t.Branch || !strings.HasPrefix(other, agentPrefix) // else it is another agent's by now
}

// GCItem is a branch that gc looked at.
type GCItem struct {
	Agent  string `json:"agent"`
	Commit string `json:"commit"`
	Remove bool   `json:"remove"`
	Why    string `json:"why"`            // why it stays, or what becomes of it
	Kept   string `json:"kept,omitempty"` // the ref that keeps it
}

// GC takes away the branches of agents that are consolidated and work nowhere any
// more. Each is kept under a ref of its own, refs/reprise/kept/BRANCH/COMMIT, so that
// nothing is lost. Without really it says what it would do and changes nothing;
// with it the repository is packed afterwards, too.
func (r *Repo) GC(ctx context.Context, really bool) ([]GCItem, error) {
	agents, err := r.Agents(ctx)
	if err != nil || !r.Exists() {
		return nil, err
	}
	if really { // what they logged is with all before a branch goes
		if _, _, err := r.Aggregate(ctx); err != nil {
			return nil, err
		}
	}
	unlock, err := r.lock(ctx, "state.lock")
	if err != nil {
		return nil, fmt.Errorf("collect: %w", err)
	}
	defer unlock()
	refs, err := r.git.Refs(ctx, heads, tracking, doneRefs, doneThere, keptRefs)
	if err != nil {
		return nil, err
	}
	for ref, id := range refs {
		branch, ok := strings.CutPrefix(ref, doneRefs)
		if ok && really && refs[heads+branch] == "" && refs[tracking+branch] == "" { // killed before the last step
			if err := r.git.DropRef(ctx, ref, id); err != nil {
				return nil, err
			}
		}
	}
	var out []GCItem
	for _, a := range agents {
		if err := r.follow(ctx, &a); err != nil {
			return nil, err
		}
		t := &Tree{r: r, Branch: agentPrefix + a.Name}
		if !a.Here || refs[t.ref()] == "" { // another one took it away meanwhile
			continue
		}
		if a.Dir == "" && t.works() { // somebody went on with it meanwhile
			a.Dir = t.where()
		}
		item := GCItem{Agent: a.Name, Commit: refs[t.ref()], Kept: t.kept(refs[t.ref()])}
		done := refs[doneRefs+t.Branch]
		if a.Consolidated { // here, or by somebody elsewhere
			done = item.Commit
		}
		left := 0
		if done == "" && a.Dir == "" {
			list, err := r.Unpromoted(ctx, a.Name)
			if err != nil {
				return nil, err
			}
			left = len(list)
		}
		switch {
		case a.Dir != "":
			item.Why = "it works in " + filepath.Dir(filepath.Dir(a.Dir))
		case refs[item.Kept] == item.Commit:
			item.Remove, item.Why = true, "taken away on another machine; kept as "+item.Kept
		case done == "" && left == 0:
			item.Why = "nobody has said that it is over: nothing is left to promote, `reprise context promote --agent " + a.Name + " --done` marks it"
		case done == "":
			item.Why = "it is not consolidated: `reprise context promote --agent " + a.Name + "` looks at what is to be kept"
		case done != item.Commit:
			item.Why = "something was added since it was consolidated"
		default:
			item.Remove, item.Why = true, "consolidated; kept as "+item.Kept
		}
		if !item.Remove {
			item.Kept = ""
		} else if really {
			switch err := r.collect(ctx, t, item, refs); {
			case errors.Is(err, git.ErrForbidden): // in the way of no other
				item.Remove, item.Kept, item.Why = false, "", err.Error()
			case err != nil:
				return out, fmt.Errorf("collect %s: %w", t.Branch, err)
			default:
				t.changed(ctx, Change{Op: "collect", Commit: item.Commit})
			}
		}
		out = append(out, item)
	}
	if really {
		if err := r.removeTemps(); err != nil {
			return out, err
		}
		// Objects that no ref names are left for two weeks: a command may be about
		// to name them.
		_, err := r.git.Long().Run(ctx, "gc", "--quiet", "--prune=2.weeks.ago")
		var e *git.Error
		if errors.As(err, &e) && strings.Contains(e.Stderr, "gc is already running") {
			err = nil // another command's, or that of a killed one, does just that
		}
		if err != nil {
			return out, fmt.Errorf("pack the repository: %w", err)
		}
	}
	return out, nil
}

// collect takes one branch away; what keeps it comes first. After a kill in the
// middle the next call goes on.
func (r *Repo) collect(ctx context.Context, t *Tree, item GCItem, refs map[string]string) error {
	// On the remote first: as long as the branch is here, gc comes back to it.
	if err := r.keep(ctx, t, item.Commit, item.Kept, refs); err != nil {
		return err
	}
	if err := r.o.Disk.RemoveAll(t.admin()); err != nil {
		return err
	}
	if err := r.git.DropRef(ctx, t.ref(), item.Commit); err != nil {
		return err
	}
	if done := refs[doneRefs+t.Branch]; done != "" {
		return r.git.DropRef(ctx, doneRefs+t.Branch, done)
	}
	return nil
}

// tempAge is how old a file that is being written must be to count as left by a killed
// command: writing one takes moments.
const tempAge = time.Hour

// removeTemps removes the temporary files that killed commands have left in the
// project's directory, the repository's objects, and the checkouts on this machine.
func (r *Repo) removeTemps() error {
	dirs := []string{r.o.Dir, r.Dir()}
	objects := filepath.Join(r.Dir(), "objects")
	list, err := durable.ReadDir(objects)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range list {
		dirs = append(dirs, filepath.Join(objects, e.Name()))
	}
	for _, t := range r.known() {
		if NoLink(t.Dir) != nil {
			continue
		}
		err := filepath.WalkDir(t.Dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil // what cannot be looked at stays
		})
		if err != nil {
			return err
		}
	}
	for _, dir := range dirs {
		if _, err := r.o.Disk.RemoveStale(dir, r.o.Now().Add(-tempAge)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
