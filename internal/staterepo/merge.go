package staterepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/mdfile"
)

// MergeFile merges one file that both sides changed since base, which may be
// empty. It is what push, pull and git's own merges by hand use. A notice says
// what a person has to look at; no line and no entry of either side is lost, but
// those that a tombstone names.
func (o Options) MergeFile(name string, base, ours, theirs []byte) (merged []byte, notice string) {
	if bytes.Equal(ours, theirs) {
		return ours, ""
	}
	if entryFile(name) {
		// Edits were settled where they were made; what was committed by hand
		// is settled here, with a time that is the same wherever it is done.
		if name == logFile {
			return mergeLog(base, ours, theirs), ""
		}
		out, _, _ := mergeSettled(base, ours, theirs)
		return out, ""
	}
	m := mdfile.TextMerge{}
	ok := false
	if o.Merge != nil {
		m.Data, m.Conflicts, ok = o.Merge(name, base, ours, theirs)
	}
	if !ok {
		m = mdfile.MergeText(base, ours, theirs)
	}
	if m.Conflicts > 0 {
		places := "a place was"
		if m.Conflicts > 1 {
			places = fmt.Sprintf("%d places were", m.Conflicts)
		}
		notice = fmt.Sprintf("%s: %s changed here and elsewhere; both versions stand there", name, places)
	}
	return m.Data, notice
}

// mergeSettled unites two files of entries whose edits it settles first, and gives the
// entries of both.
func mergeSettled(base, ours, theirs []byte) (merged []byte, here, there []mdfile.Entry) {
	var a mdfile.Settled
	var both sync.WaitGroup
	both.Go(func() { a = mdfile.SettleEdits(ours, base, time.Time{}) })
	b := mdfile.SettleEdits(theirs, base, time.Time{})
	both.Wait()
	return mdfile.MergeSettled(a, b)
}

// loader gives the content of files by id.
type loader func(ids []string) ([][]byte, error)

// merged is the outcome of merging two versions.
type merged struct {
	files   map[string]git.Entry
	data    map[string][]byte // contents that neither side has
	notices []string
}

// mergeVersions merges two versions of a branch. It is a function of its input.
// own names files that are the branch's owner's alone: where both sides changed
// one, ours stays and theirs is put beside it.
func (o Options) mergeVersions(base, ours, theirs map[string]git.Entry, own func(name string) bool, load loader) (merged, error) {
	out := merged{files: map[string]git.Entry{}, data: map[string][]byte{}}
	names := map[string]bool{}
	for _, m := range []map[string]git.Entry{base, ours, theirs} {
		for n := range m {
			names[n] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		b, inBase := base[name]
		a, inOurs := ours[name]
		c, inTheirs := theirs[name]
		switch {
		case inOurs == inTheirs && a == c: // the same on both sides, or gone on both
			if inOurs {
				out.files[name] = a
			}
		case entryFile(name) && (!inOurs || !inTheirs):
			out.files[name] = a // a set that only grows is not removed
			if !inOurs {
				out.files[name] = c
			}
		case inTheirs == inBase && c == b:
			if inOurs {
				out.files[name] = a
			}
		case inOurs == inBase && a == b:
			if inTheirs {
				out.files[name] = c
			}
		case !inOurs: // removed here, changed there
			out.files[name] = c
		case !inTheirs:
			out.files[name] = a
		default:
			if err := o.mergeBoth(&out, name, [3]git.Entry{b, a, c}, own, load); err != nil {
				return out, err
			}
		}
	}
	out.unclash(ours)
	return out, nil
}

// mergeBoth merges a file that both sides have, each its own.
func (o Options) mergeBoth(out *merged, name string, e [3]git.Entry, own func(string) bool, load loader) error {
	mode := e[1].Mode
	plain := func(m string) bool { return m == git.ModeFile || m == git.ModeExec || m == "" }
	if !plain(e[0].Mode) || !plain(e[1].Mode) || !plain(e[2].Mode) {
		out.files[name] = e[1]
		out.notices = append(out.notices, name+": it is no plain file on one side; ours stays")
		return nil
	}
	if e[1].ID == e[2].ID {
		out.files[name] = git.Entry{Mode: git.ModeExec, ID: e[1].ID}
		return nil
	}
	data, err := load([]string{e[0].ID, e[1].ID, e[2].ID})
	if err != nil {
		return err
	}
	beside := ""
	switch {
	case own(name) && e[0].ID == "" && blank(data[2]): // as it was made there
		out.files[name] = e[1]
		return nil
	case own(name) && e[0].ID == "" && blank(data[1]):
		out.files[name] = e[2]
		return nil
	case own(name):
		beside = path.Join("notes", strings.TrimSuffix(name, ".md")+"-from-"+e[2].ID[:8]+".md")
	case !entryFile(name) && (!isText(data[1]) || !isText(data[2])):
		ext := path.Ext(name)
		beside = strings.TrimSuffix(name, ext) + "-from-" + e[2].ID[:8] + ext
	}
	if beside != "" {
		out.files[name] = e[1]
		out.files[beside] = e[2]
		out.notices = append(out.notices, fmt.Sprintf("%s: changed here and elsewhere; what came is in %s", name, beside))
		return nil
	}
	text, notice := o.MergeFile(name, data[0], data[1], data[2])
	if notice != "" {
		out.notices = append(out.notices, notice)
	}
	id := git.BlobID(text)
	out.files[name] = git.Entry{Mode: mode, ID: id}
	if id != e[1].ID && id != e[2].ID {
		out.data[id] = text
	}
	return nil
}

func blank(b []byte) bool { return len(bytes.TrimSpace(b)) == 0 }

func isText(b []byte) bool { return bytes.IndexByte(b[:min(len(b), 8000)], 0) < 0 }

// unclash gives another name to what came as a file where a directory is, or
// differs only in case from what is there: not every system can hold both.
func (m *merged) unclash(ours map[string]git.Entry) {
	dirs := map[string]bool{}
	lower := map[string]string{} // in lower case → name, those of ours first
	for _, mine := range []bool{true, false} {
		for _, name := range slices.Sorted(maps.Keys(m.files)) {
			if _, ok := ours[name]; ok != mine {
				continue
			}
			if key := strings.ToLower(name); lower[key] == "" {
				lower[key] = name
			}
		}
	}
	for name := range m.files {
		for d := path.Dir(name); d != "."; d = path.Dir(d) {
			dirs[d] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		if !dirs[name] && lower[strings.ToLower(name)] == name {
			continue
		}
		e := m.files[name]
		delete(m.files, name)
		ext := path.Ext(name)
		other := strings.TrimSuffix(name, ext) + "-from-" + e.ID[:8] + ext
		m.files[other] = e
		m.notices = append(m.notices, fmt.Sprintf("%s: another name stands in its way; it is now %s", name, other))
	}
}

// own are the files of an agent's branch that are its owner's alone.
func (t *Tree) own(name string) bool {
	return t.Branch != GlobalBranch && (name == "scratch.md" || name == "context.md")
}

// Merged says what [Tree.Merge] did.
type Merged struct {
	Saved
	Merged  bool     `json:"merged"` // something came in
	Notices []string `json:"notices,omitempty"`
}

// Merge brings a commit into the branch and its checkout. What is on disk is
// committed first; then the merge is made beside the checkout, put into it as one
// change of all files, and only then does the branch move. A kill in between
// leaves the old branch with the new files, which the next command finishes.
func (t *Tree) Merge(ctx context.Context, their, message string) (Merged, error) {
	var out Merged
	for try := range tries {
		if err := pause(ctx, try); err != nil {
			return out, err
		}
		again, err := t.mergeOnce(ctx, their, message, &out)
		if err != nil {
			return out, fmt.Errorf("merge state: %w", err)
		}
		if !again {
			return out, nil
		}
	}
	return out, fmt.Errorf("merge state: %w: %s", ErrBusy, t.Branch)
}

func (t *Tree) mergeOnce(ctx context.Context, their, message string, out *Merged) (again bool, err error) {
	d, c, err := t.open(ctx)
	if err != nil {
		return false, err
	}
	defer d.Close()
	defer c.Abort()
	unlock, err := t.lockMemory(ctx, d)
	if err != nil {
		return false, err
	}
	defer unlock()
	s, err := t.save(ctx, d, "", "")
	if err != nil {
		return false, err
	}
	out.Notes = append(out.Notes, s.Notes...)
	out.Commit, out.Changed = s.Commit, append(out.Changed, s.Changed...)
	base, err := t.r.git.MergeBase(ctx, s.Commit, their)
	if err != nil || base == their {
		return false, err
	}
	target, notices, old, next, err := t.mergeCommit(ctx, base, s.Commit, their, message)
	if err != nil {
		return false, err
	}
	pending := pendingRefs + t.Branch
	was, err := t.r.tip(ctx, pending)
	if err != nil {
		return false, err
	}
	if was != target {
		if err := t.r.git.MoveRef(ctx, pending, target, was, "reprise: merge"); err != nil {
			return retry(err)
		}
	}
	files, err := t.apply(ctx, c, old, next)
	if err != nil {
		return false, err
	}
	if err := c.Commit(); err != nil {
		return false, err
	}
	out.Merged, out.Notices = true, notices
	if err := t.r.git.MoveRefs(ctx, "reprise: "+firstLine(message),
		git.RefMove{Ref: t.ref(), New: target, Old: s.Commit}, git.RefMove{Ref: pending, Old: target}); err != nil {
		return retry(err)
	}
	out.Commit = target
	for _, f := range files {
		t.wrote(f)
	}
	return false, t.index(ctx, target, next)
}

// isRace says that a ref was moved by someone else, or is being moved.
func isRace(err error) bool { return errors.Is(err, git.ErrMoved) || errors.Is(err, git.ErrLocked) }

// retry says whether an error of moving a ref is a race that was lost.
func retry(err error) (bool, error) {
	if isRace(err) {
		return true, nil
	}
	return false, err
}

// lockMemory takes the lock of the memory directory within the checkout, if there
// is one: its writers read a file and write it back under that.
func (t *Tree) lockMemory(ctx context.Context, d *durable.Dir) (func(), error) {
	if _, err := d.Stat("memory"); err != nil {
		return func() {}, nil //nolint:nilerr // there is none
	}
	m, err := t.r.o.Disk.OpenDir(filepath.Join(t.Dir, "memory"))
	if err != nil {
		return nil, err
	}
	c, err := m.Begin(ctx)
	if err != nil {
		m.Close()
		return nil, err
	}
	return func() { _ = c.Abort(); m.Close() }, nil
}

// mergeCommit is the commit that has both sides: theirs, where nothing happened
// here since, else one with both as parents.
func (t *Tree) mergeCommit(ctx context.Context, base, our, their, message string) (id string, notices []string, old, next map[string]git.Entry, err error) {
	sides := make([]map[string]git.Entry, 3)
	for i, rev := range []string{base, our, their} {
		if sides[i], err = t.r.git.Files(ctx, rev); err != nil {
			return "", nil, nil, nil, err
		}
	}
	if base == our {
		return their, nil, sides[1], sides[2], nil
	}
	m, err := t.r.o.mergeVersions(sides[0], sides[1], sides[2], t.own, func(ids []string) ([][]byte, error) { return t.r.blobs(ctx, ids) })
	if err != nil {
		return "", nil, nil, nil, err
	}
	for _, data := range m.data {
		if _, err := t.r.git.Store("blob", data); err != nil {
			return "", nil, nil, nil, err
		}
	}
	id, err = t.commit(m.files, []string{our, their}, "reprise", message)
	return id, m.notices, sides[1], m.files, err
}

// blobs are the contents of files by id; none for "".
func (r *Repo) blobs(ctx context.Context, ids []string) ([][]byte, error) {
	out := make([][]byte, len(ids))
	var ask []string
	for _, id := range ids {
		if id != "" {
			ask = append(ask, id)
		}
	}
	list, err := r.git.Objects(ctx, ask...)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		if id == "" {
			continue
		}
		if list[0].Kind != "blob" {
			return nil, fmt.Errorf("object %s is missing from %s; `reprise state fsck` says more", id, r.Dir())
		}
		out[i], list = list[0].Data, list[1:]
	}
	return out, nil
}

// apply adds to a change of the checkout what leads from one version to another.
func (t *Tree) apply(ctx context.Context, c *durable.Change, old, next map[string]git.Entry) (names []string, err error) {
	var ids []string
	for _, name := range slices.Sorted(maps.Keys(next)) {
		e := next[name]
		if old[name] != e && ours(name) && e.Mode != git.ModeLink && e.Mode != git.ModeRepo {
			names, ids = append(names, name), append(ids, e.ID)
		}
	}
	data, err := t.r.blobs(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		perm := filePerm
		if next[name].Mode == git.ModeExec {
			perm = 0o700
		}
		c.Write(name, data[i], perm)
	}
	for name := range old {
		if _, ok := next[name]; !ok && ours(name) {
			c.Remove(name)
			names = append(names, name)
		}
	}
	return names, nil
}

// finish ends a merge whose files are in the checkout while the branch has not
// moved yet, because the process was killed. Where the files are others by now,
// they are the newer word; the merge is then made again by the next pull.
func (t *Tree) finish(ctx context.Context, d *durable.Dir, old *version) (moved bool, note string, err error) {
	pending := pendingRefs + t.Branch
	if !fileExists(filepath.Join(t.r.Dir(), filepath.FromSlash(pending))) {
		return false, "", nil // refs of this kind are never packed
	}
	list, err := t.r.git.Objects(ctx, pending)
	if err != nil || list[0].Kind != "commit" {
		return false, "", err
	}
	id := list[0].ID
	_, parents := git.CommitOf(list[0].Data)
	drop := func() error {
		err := t.r.git.DropRef(ctx, pending, id)
		if isRace(err) {
			return nil
		}
		return err
	}
	ahead, err := t.r.git.MergeBase(ctx, old.commit, id)
	if err != nil {
		return false, "", err
	}
	if !slices.Contains(parents, old.commit) && ahead != old.commit || id == old.commit {
		return false, "", drop() // it was done, or was overtaken
	}
	want, err := t.r.git.Files(ctx, id)
	if err != nil {
		return false, "", err
	}
	was, err := t.r.git.Files(ctx, old.commit)
	if err != nil {
		return false, "", err
	}
	for name, e := range want {
		if was[name] == e || !ours(name) || e.Mode == git.ModeLink || e.Mode == git.ModeRepo {
			continue
		}
		data, err := d.ReadFile(name)
		if err != nil || git.BlobID(data) != e.ID {
			return false, "", drop()
		}
	}
	if err := t.r.git.MoveRefs(ctx, "reprise: finish a merge", git.RefMove{Ref: t.ref(), New: id, Old: old.commit}, git.RefMove{Ref: pending, Old: id}); err != nil {
		return false, "", err
	}
	return true, "a merge into " + t.Branch + " that was not finished was finished", nil
}
