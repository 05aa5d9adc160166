package staterepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/git"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
)

// Fork makes an agent's branch that goes on from where another one is: an agent of
// that name then attaches to it. A name that is in use is ErrBranchExists.
func (r *Repo) Fork(ctx context.Context, from, name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", fmt.Errorf("fork: %w", err)
	}
	if err := r.saveAgent(ctx, from); err != nil {
		return "", fmt.Errorf("fork: %w", err)
	}
	unlock, err := r.lock(ctx, "state.lock")
	if err != nil {
		return "", fmt.Errorf("fork: %w", err)
	}
	defer unlock()
	src, dst := &Tree{r: r, Branch: agentPrefix + from}, &Tree{r: r, Branch: agentPrefix + name}
	refs, err := r.git.Refs(ctx, src.ref(), dst.ref(), tracking+src.Branch, tracking+dst.Branch)
	if err != nil {
		return "", fmt.Errorf("fork: %w", err)
	}
	tip := refs[src.ref()]
	if tip == "" {
		tip = refs[tracking+src.Branch]
	}
	switch {
	case tip == "":
		return "", fmt.Errorf("fork: %w: %q", ErrNoAgent, from)
	case refs[dst.ref()] != "" || refs[tracking+dst.Branch] != "":
		return "", fmt.Errorf("fork: %w: %s; take another name", ErrBranchExists, dst.Branch)
	}
	if err := r.git.MoveRef(ctx, dst.ref(), tip, "", "reprise: forked from "+src.Branch); err != nil {
		return "", fmt.Errorf("fork: %w", err)
	}
	dst.changed(ctx, Change{Op: "fork", Commit: tip})
	return tip, nil
}

// Rename gives the agent that works in a checkout another name: its branch, and who writes
// there from now on. What it wrote stays as it is, and an entry of its log says what it was
// called, so that the team shows the two as one. After a kill in the middle another call
// goes on.
func (t *Tree) Rename(ctx context.Context, access memory.Access, name string) (*Tree, error) {
	if err := access.MayWrite(); err != nil {
		return nil, err
	}
	next, err := t.rename(ctx, access, name)
	if err != nil {
		return nil, fmt.Errorf("rename agent %s: %w", t.Agent(), err)
	}
	return next, nil
}

func (t *Tree) rename(ctx context.Context, access memory.Access, name string) (*Tree, error) {
	r, next := t.r, &Tree{r: t.r, Branch: agentPrefix + name, Dir: t.Dir}
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if t.Branch == GlobalBranch {
		return nil, errors.New("what all agents share has no other name")
	}
	old := t.Agent()
	if t.Branch == next.Branch { // it is called so already: by a call that was cut off, maybe
		if old = r.calledBefore(next); old == "" {
			return nil, fmt.Errorf("%w: it is called %s already", ErrName, name)
		}
	} else {
		unlock, err := r.lock(ctx, "state.lock")
		if err != nil {
			return nil, err
		}
		err = t.renameLocked(ctx, next)
		if err = errors.Join(err, unlock()); err != nil {
			return nil, err
		}
	}
	return next, next.sayRenamed(ctx, access, old)
}

// renamedSource is the source of the entry that says what an agent was called before.
const renamedSource = "renamed:"

const renamedReason = "reprise: renamed from "

// calledBefore is the name that the agent had before its last one, as the branch's reflog
// tells; "" for none.
func (r *Repo) calledBefore(t *Tree) string {
	text, err := readSmall(filepath.Join(r.Dir(), "logs", filepath.FromSlash(t.ref())))
	if err != nil {
		return "" // there is none
	}
	old := ""
	for line := range strings.Lines(text) {
		if _, branch, ok := strings.Cut(strings.TrimSpace(line), renamedReason+agentPrefix); ok {
			old = branch
		}
	}
	return old
}

// sayRenamed writes the entry, once, and commits what was written meanwhile.
func (t *Tree) sayRenamed(ctx context.Context, access memory.Access, old string) error {
	own, err := t.entriesOnDisk()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(own, func(e LogEntry) bool { return e.Source == renamedSource+old }) {
		_, err = t.Save(ctx, "", "")
		return err
	}
	_, err = t.Add(ctx, access, mdfile.Entry{Type: mdfile.TypeStart, Text: "Called " + t.Agent() + " from now on, and " + old + " before.", Source: renamedSource + old, Time: t.r.o.Now()})
	return err
}

// renameLocked does it with the checkout's lock held, so that nobody commits to the old
// branch meanwhile.
func (t *Tree) renameLocked(ctx context.Context, next *Tree) error {
	r := t.r
	d, c, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	defer c.Abort()
	s, err := t.save(ctx, d, t.Agent(), "Before the agent's new name")
	if err != nil {
		return err
	}
	refs, err := r.git.Refs(ctx, t.ref(), next.ref(), tracking+t.Branch, tracking+next.Branch, doneRefs+t.Branch)
	if err != nil {
		return err
	}
	at := refs[next.ref()]
	if tracked := refs[tracking+next.Branch]; tracked != "" || at != "" && (at != s.Commit || next.works() && !next.isAt(t.Dir)) {
		return fmt.Errorf("%w: %s; take another name", ErrBranchExists, next.Branch)
	}
	if refs[t.ref()] != s.Commit {
		return fmt.Errorf("%w: %s; try again", ErrBusy, t.Branch)
	}
	if at == "" {
		if err := r.git.MoveRef(ctx, next.ref(), s.Commit, "", renamedReason+t.Branch); err != nil {
			return err
		}
	}
	if err := next.link(); err != nil {
		return err
	}
	if err := r.o.Disk.RemoveAll(t.admin()); err != nil {
		return err
	}
	namesake, err := t.namesake(ctx, s.Commit, refs[tracking+t.Branch])
	if err != nil {
		return err
	}
	if refs[tracking+t.Branch] != "" && !namesake { // the remote has it under the old name
		if err := r.keep(ctx, t, s.Commit, t.kept(s.Commit), refs); err != nil {
			return err
		}
	}
	moves := []git.RefMove{{Ref: t.ref(), Old: s.Commit}}
	if done := refs[doneRefs+t.Branch]; done != "" {
		moves = append(moves, git.RefMove{Ref: doneRefs + t.Branch, Old: done})
	}
	if err := r.git.MoveRefs(ctx, "reprise: renamed", moves...); err != nil {
		return err
	}
	next.changed(ctx, Change{Op: "rename", Commit: s.Commit})
	return nil
}

// saveAgent commits what an agent has on disk, where it works on this machine.
func (r *Repo) saveAgent(ctx context.Context, name string) error {
	agents, err := r.Agents(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(agents, func(a AgentInfo) bool { return a.Name == name })
	if i < 0 {
		return fmt.Errorf("%w: %q; `reprise state show` lists them", ErrNoAgent, name)
	}
	if agents[i].Dir == "" {
		return nil
	}
	_, err = (&Tree{r: r, Branch: agentPrefix + name, Dir: agents[i].Dir}).Save(ctx, "", "")
	return err
}

// Archive takes an agent's branch away, whether it was consolidated or not, and
// keeps it as gc does. An agent that works somewhere on this machine, or on another
// one only, is left.
func (r *Repo) Archive(ctx context.Context, name string) (GCItem, error) {
	item := GCItem{Agent: name}
	agents, err := r.Agents(ctx)
	if err != nil {
		return item, fmt.Errorf("archive: %w", err)
	}
	i := slices.IndexFunc(agents, func(a AgentInfo) bool { return a.Name == name })
	switch {
	case i < 0:
		return item, fmt.Errorf("archive: %w: %q; `reprise state show` lists them", ErrNoAgent, name)
	case !agents[i].Here:
		return item, fmt.Errorf("archive: %s is of another machine; archive it there", name)
	case agents[i].Dir != "":
		return item, fmt.Errorf("archive: %w: it works in %s; remove that checkout first", ErrBranchExists, agents[i].Dir)
	}
	unlock, err := r.lock(ctx, "state.lock")
	if err != nil {
		return item, fmt.Errorf("archive: %w", err)
	}
	defer unlock()
	refs, err := r.git.Refs(ctx, heads, tracking, doneRefs)
	if err != nil {
		return item, fmt.Errorf("archive: %w", err)
	}
	t := &Tree{r: r, Branch: agentPrefix + name}
	switch item.Commit = refs[t.ref()]; { // as it is by now: others may have been quicker
	case item.Commit == "":
		return item, fmt.Errorf("archive: %w: %q was taken away at this moment", ErrNoAgent, name)
	case t.works():
		return item, fmt.Errorf("archive: %w: it works in %s since this moment", ErrBranchExists, t.where())
	}
	item.Kept, item.Remove = t.kept(item.Commit), true
	item.Why = "kept as " + item.Kept
	if err := r.collect(ctx, t, item, refs); err != nil {
		return item, fmt.Errorf("archive %s: %w", name, err)
	}
	t.changed(ctx, Change{Op: "archive", Commit: item.Commit})
	return item, nil
}

// kept is the ref that keeps the branch as it was at a commit.
func (t *Tree) kept(commit string) string { return keptRefs + t.Branch + "/" + commit[:12] }

// Reset lets an agent begin anew: its branch is what every agent begins with, and
// what was on it is kept as gc does, here and on the remote. A kill in the middle
// leaves the old or the new state; from the old one the next call goes on.
func (t *Tree) Reset(ctx context.Context, access memory.Access) (kept string, err error) {
	if err := access.MayWrite(); err != nil {
		return "", err
	}
	if t.Branch == GlobalBranch {
		return "", errors.New("reset: what all agents share cannot begin anew")
	}
	r := t.r
	s, err := t.Save(ctx, t.Agent(), "Before the reset")
	if err != nil {
		return "", fmt.Errorf("reset: %w", err)
	}
	unlock, err := r.lock(ctx, "state.lock")
	if err != nil {
		return "", fmt.Errorf("reset: %w", err)
	}
	defer unlock()
	d, c, err := t.open(ctx)
	if err != nil {
		return "", fmt.Errorf("reset: %w", err)
	}
	defer d.Close()
	defer c.Abort()
	refs, err := r.git.Refs(ctx, t.ref(), tracking+t.Branch, doneRefs+t.Branch)
	if err != nil {
		return "", fmt.Errorf("reset: %w", err)
	}
	if refs[t.ref()] != s.Commit {
		return "", fmt.Errorf("reset: %w: %s; try again", ErrBusy, t.Branch)
	}
	kept = t.kept(s.Commit)
	if err := r.keep(ctx, t, s.Commit, kept, refs); err != nil {
		return "", fmt.Errorf("reset: %w", err)
	}
	files := map[string]git.Entry{}
	for name, text := range seeds() {
		id, err := r.git.Store("blob", []byte(text))
		if err != nil {
			return kept, fmt.Errorf("reset: %w", err)
		}
		files[name] = git.Entry{Mode: git.ModeFile, ID: id}
	}
	root, err := rootCommit(r.git, r.o.begun())
	if err != nil {
		return kept, fmt.Errorf("reset: %w", err)
	}
	id, err := t.commit(files, []string{root}, t.Agent(), "State of agent "+t.Agent()+", begun anew")
	if err != nil {
		return kept, fmt.Errorf("reset: %w", err)
	}
	old, err := r.git.Files(ctx, s.Commit)
	if err != nil {
		return kept, fmt.Errorf("reset: %w", err)
	}
	moves := []git.RefMove{{Ref: t.ref(), New: id, Old: s.Commit}}
	if done := refs[doneRefs+t.Branch]; done != "" {
		moves = append(moves, git.RefMove{Ref: doneRefs + t.Branch, Old: done})
	}
	// The branch first: files that a kill leaves are then newer than it, and come
	// back as they were.
	if err := r.git.MoveRefs(ctx, "reprise: reset", moves...); err != nil {
		return kept, fmt.Errorf("reset: %w", err)
	}
	if _, err := t.apply(ctx, c, old, files); err != nil {
		return kept, fmt.Errorf("reset: %w", err)
	}
	if err := c.Commit(); err != nil {
		return kept, fmt.Errorf("reset: %w", err)
	}
	t.changed(ctx, Change{Op: "reset", Commit: id})
	return kept, t.index(ctx, id, files)
}

// keep makes the ref that keeps a branch's commit, here and on the remote, where
// the branch itself goes.
func (r *Repo) keep(ctx context.Context, t *Tree, commit, kept string, refs map[string]string) error {
	if err := r.git.MoveRef(ctx, kept, commit, "", "reprise: kept"); err != nil && !isRace(err) {
		return err
	}
	has, err := r.tip(ctx, kept)
	if err != nil || has != commit {
		return fmt.Errorf("%s is at %s and not at %s: %w", kept, has, commit, git.ErrMoved)
	}
	there := refs[tracking+t.Branch]
	if there == "" {
		return nil
	}
	if base, err := r.git.MergeBase(ctx, commit, there); err != nil || base != there {
		return cmp.Or(err, fmt.Errorf("%w: another machine went on with %s; if it works here, `reprise state sync` brings that in, else see to it there", ErrBusy, t.Branch))
	}
	url, err := r.Remote(ctx)
	if err != nil || url == "" {
		return err
	}
	err = r.git.PushRefs(ctx, remoteName, []string{t.ref() + ":" + there}, kept+":"+kept, ":"+t.ref())
	if errors.Is(err, git.ErrRejected) {
		// By one that was killed right after this, the branch is gone there already.
		at, rerr := r.git.RemoteRef(ctx, remoteName, t.ref())
		switch {
		case rerr != nil:
			err = rerr
		case at == "":
			err = r.git.PushRefs(ctx, remoteName, nil, kept+":"+kept)
		}
	}
	switch {
	case errors.Is(err, git.ErrRejected):
		return fmt.Errorf("%w in %s; run `reprise state sync` first", git.ErrRejected, t.Branch)
	case errors.Is(err, git.ErrForbidden):
		return fmt.Errorf("%w (receive.denyDeletes there, or a protected branch), so %s stays; allow it there for agent-*", git.ErrForbidden, t.Branch)
	case err != nil:
		return away(err)
	}
	if err := r.git.DropRef(ctx, tracking+t.Branch, there); err != nil && !isRace(err) {
		return err
	}
	return nil
}

// Copy puts an entry of another log, of what all share or of another agent, into
// the agent's own: the same entry, so that it counts once.
func (t *Tree) Copy(ctx context.Context, access memory.Access, id string) (LogEntry, Saved, error) {
	if err := access.MayWrite(); err != nil {
		return LogEntry{}, Saved{}, err
	}
	e, err := t.r.Entry(ctx, id)
	if err != nil {
		return e, Saved{}, fmt.Errorf("copy entry: %w", err)
	}
	text, err := t.r.entryText(ctx, e)
	if err != nil {
		return e, Saved{}, fmt.Errorf("copy entry: %w", err)
	}
	d, c, err := t.open(ctx)
	if err != nil {
		return e, Saved{}, fmt.Errorf("copy entry: %w", err)
	}
	defer d.Close()
	defer c.Abort()
	old, err := d.ReadFile(e.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return e, Saved{}, fmt.Errorf("copy entry: %w", err)
	}
	if slices.ContainsFunc(mdfile.ParseEntries(old).Entries, func(x mdfile.Entry) bool { return x.ID == e.ID }) {
		return e, Saved{}, nil
	}
	if err := d.WriteFile(e.File, mdfile.ParseEntries(old).WithEntry(text), filePerm); err != nil {
		return e, Saved{}, fmt.Errorf("copy entry: %w", err)
	}
	t.wrote(e.File)
	s, err := t.save(ctx, d, t.Agent(), "copy: "+shortTitle(e.Entry, 60))
	if err == nil {
		t.changed(ctx, Change{Op: "copy", Commit: s.Commit, ID: e.ID, Type: e.Type, Title: e.Title(), Files: []string{e.File}})
	}
	return e, s, err
}

// Entry finds an entry by its id or the beginning of it, in whosever log it stands;
// what all share comes first.
func (r *Repo) Entry(ctx context.Context, id string) (LogEntry, error) {
	all, err := r.Log(ctx, Everyone)
	if err != nil {
		return LogEntry{}, err
	}
	var found []LogEntry
	for _, e := range all {
		if e.ID == id || len(id) >= 4 && strings.HasPrefix(e.ID, id) {
			found = append(found, e)
		}
	}
	switch len(found) {
	case 0:
		return LogEntry{}, fmt.Errorf("%w: %s; `reprise log --all` lists them", ErrUnknown, id)
	case 1:
		return found[0], nil
	}
	return LogEntry{}, fmt.Errorf("%w: %d entries begin with %s; say more of it", ErrUnknown, len(found), id)
}

// entryText is an entry as it stands in its file.
func (r *Repo) entryText(ctx context.Context, e LogEntry) ([]byte, error) {
	var data []byte
	if e.Branch == GlobalBranch {
		text, err := r.Global().Read(e.File)
		if err != nil {
			return nil, err
		}
		data = []byte(text)
	} else {
		agents, err := r.Agents(ctx)
		if err != nil {
			return nil, err
		}
		for _, a := range agents {
			if agentPrefix+a.Name == e.Branch {
				files, err := r.agentFiles(ctx, a, e.File)
				if err != nil {
					return nil, err
				}
				data = files[e.File]
			}
		}
	}
	f := mdfile.ParseEntries(data)
	for _, x := range f.Entries {
		if x.ID == e.ID {
			return append([]byte(strings.TrimRight(string(f.Bytes()[x.Start:x.End]), "\r\n")), '\n'), nil
		}
	}
	return nil, fmt.Errorf("%w: %s has gone", ErrUnknown, e.ID)
}

// AddArtifact keeps a file in the agent's artifacts. One of that name that differs
// is left, unless replace is set.
func (t *Tree) AddArtifact(ctx context.Context, access memory.Access, name string, data []byte, replace bool) (Saved, error) {
	file := "artifacts/" + name
	switch {
	case !portable(file) || !ours(file):
		return Saved{}, fmt.Errorf("keep artifact: %q is no name that every system takes; give another with --name", name)
	case len(data) > maxFile:
		return Saved{}, fmt.Errorf("keep artifact: %s has %d MB, at most %d are kept", name, len(data)>>20, maxFile>>20)
	}
	old, err := t.Read(file)
	if err != nil {
		return Saved{}, fmt.Errorf("keep artifact: %w", err)
	}
	if old != "" && old != string(data) && !replace {
		return Saved{}, fmt.Errorf("keep artifact: %w: %s; pass --replace, or another --name", ErrArtifact, file)
	}
	return t.Write(ctx, access, file, string(data), "artifact: "+name)
}

// ErrArtifact is the error of an artifact's name that is in use.
var ErrArtifact = errors.New("there is another artifact of this name")

// Unused is a project's state that nothing on this machine uses any more.
type Unused struct {
	Project string    `json:"project"`
	Dir     string    `json:"directory"`
	Last    time.Time `json:"last_commit"`
	Agents  int       `json:"agents"`
	Remove  bool      `json:"remove"`
	Why     string    `json:"why"`
	Bundle  string    `json:"bundle,omitempty"` // what keeps it once it is removed
}

// Retire looks whether the repository is used: whether one of the project's
// checkouts is there still, an agent works, or something was committed since. With a
// bundle it then puts all of it into that file, checks it, and removes the
// repository; the files of global/ stay, and with them a repository is made anew.
func (r *Repo) Retire(ctx context.Context, roots []string, since time.Time, bundle string) (Unused, error) {
	u := Unused{Project: r.o.Project, Dir: r.Dir()}
	if !r.Exists() {
		if bundle == "" || !fileExists(r.abs(goneDir)) {
			return u, nil
		}
		unlock, err := r.lock(ctx, "state.lock")
		if err != nil {
			return u, fmt.Errorf("put state of %s away: %w", u.Project, err)
		}
		defer unlock()
		return u, r.removeLeft(&Made{})
	}
	agents, err := r.Agents(ctx)
	if err != nil {
		return u, fmt.Errorf("look at state of %s: %w", u.Project, err)
	}
	u.Agents = len(agents)
	out, err := r.git.Run(ctx, "for-each-ref", "--sort=-committerdate", "--count=1", "--format=%(committerdate:unix)", heads)
	if err != nil {
		return u, fmt.Errorf("look at state of %s: %w", u.Project, err)
	}
	var sec int64
	if _, err := fmt.Sscan(string(out), &sec); err == nil {
		u.Last = time.Unix(sec, 0).UTC()
	}
	for _, root := range roots {
		if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
			u.Why = "its checkout is " + root
			return u, nil
		}
	}
	for _, a := range agents {
		if a.Dir != "" {
			u.Why = "agent " + a.Name + " works in " + a.Dir
			return u, nil
		}
	}
	if u.Last.After(since) {
		u.Why = "something was committed on " + u.Last.Format(time.DateOnly)
		return u, nil
	}
	u.Remove, u.Why = true, "none of its checkouts is there"
	if bundle == "" {
		return u, nil
	}
	u.Bundle = bundle
	if err := r.bundle(ctx, bundle); err != nil {
		return u, fmt.Errorf("put state of %s away: %w", u.Project, err)
	}
	return u, nil
}

func (r *Repo) bundle(ctx context.Context, file string) error {
	unlock, err := r.lock(ctx, "state.lock")
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := r.Global().Save(ctx, "", ""); err != nil {
		return err
	}
	if err := r.o.Disk.MkdirAll(filepath.Dir(file), dirPerm); err != nil {
		return err
	}
	// Under a name that is always the same, so that what a killed one left is in
	// nobody's way; git locks it by a file beside it.
	tmp := r.abs("state.bundle.tmp")
	for _, left := range [...]string{tmp, tmp + ".lock", r.abs(goneDir)} {
		if err := r.o.Disk.RemoveAll(left); err != nil {
			return err
		}
	}
	if _, err := r.git.Run(ctx, "bundle", "create", "--quiet", tmp, "--all"); err != nil {
		return err
	}
	if _, err := r.git.Run(ctx, "bundle", "verify", "--quiet", tmp); err != nil {
		return err
	}
	if err := r.o.Disk.Rename(tmp, file); err != nil {
		return err
	}
	if err := r.o.Disk.Rename(r.Dir(), r.abs(goneDir)); err != nil {
		return err
	}
	return r.o.Disk.RemoveAll(r.abs(goneDir))
}
