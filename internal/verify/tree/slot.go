package tree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/proc"
)

// A slot is a directory that a tree's snapshots are made in, one after the other.
// What stays the same between two of them is not written again, and tools that
// keep results by path (the Go build cache, for one) find theirs.
//
// Nothing that a check left in it is believed: what the tree does not have is
// removed, every file is compared with its original by content, and one that has
// a second name is replaced, for that name may be anywhere.

const (
	ownerFile = "owner.json"
	keptFile  = "kept" // its time says when the slot was used last
)

// keepSlot is how long a slot that nobody uses is kept, and maxSlots how many.
const (
	keepSlot = 3 * 24 * time.Hour
	maxSlots = 8
)

// SlotOf is the name of the slot of whatever the parts name together.
func SlotOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return "tree-" + hex.EncodeToString(sum[:8])
}

// owner is owner.json of a snapshot.
type owner struct {
	V       int       `json:"v"`
	ID      string    `json:"id,omitempty"` // of the snapshot, and what marks the processes of its checks
	Process proc.ID   `json:"process"`
	Host    string    `json:"host"`
	At      time.Time `json:"at"`
}

// claim makes the snapshot's directory, or takes its slot where that is free.
func (s *Snapshot) claim(o SnapshotOptions) error {
	self, err := proc.Self()
	if err != nil {
		return err
	}
	data, err := json.Marshal(owner{V: 1, ID: o.ID, Process: self, Host: o.Host, At: o.Now().UTC()})
	if err != nil {
		return err
	}
	if o.Slot != "" {
		s.Root = filepath.Join(o.Dir, o.Slot)
		err := own(s.Root, data)
		if err == nil {
			s.slot, s.stale = true, true
			// Whoever kills this process now leaves what nobody kept.
			if err := os.Remove(filepath.Join(s.Root, keptFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return s.scratch()
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		// Somebody else is in it.
	}
	s.Root = filepath.Join(o.Dir, o.ID)
	if err := own(s.Root, data); err != nil {
		s.foreign = errors.Is(err, fs.ErrExist)
		return err
	}
	return s.scratch()
}

// own makes a directory this process's; the error is [fs.ErrExist] where it is
// somebody else's.
func own(root string, data []byte) error {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(root, ownerFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// scratch makes the place for temporary files, empty.
func (s *Snapshot) scratch() error {
	s.Tmp = filepath.Join(s.Root, "tmp")
	if err := removeAll(s.Tmp); err != nil {
		return err
	}
	return os.MkdirAll(s.Tmp, 0o700)
}

// Release gives the slot back with the tree in it, for the next snapshot, and
// takes away what checks left. Without a slot, with a disk that is nearly full or
// with anything that does not go as it should, all of it is removed.
func (s *Snapshot) Release() error {
	if !s.slot || s.DiskLow() || s.tidy() != nil {
		return s.Remove()
	}
	return nil
}

func (s *Snapshot) tidy() error {
	if _, err := s.prune(append(slices.Clone(s.From.Entries), s.moved...)); err != nil {
		return err
	}
	names, err := readNames(s.Root)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != "tree" && name != ownerFile {
			if err := removeAll(filepath.Join(s.Root, name)); err != nil {
				return err
			}
		}
	}
	if err := os.WriteFile(filepath.Join(s.Root, keptFile), nil, 0o600); err != nil {
		return err
	}
	return os.Remove(filepath.Join(s.Root, ownerFile))
}

// prune removes from the copy what is not among the entries, or is of another
// kind than its entry. What it leaves are files, links that lead where they
// should, and directories that are none of anything else's: no path of an entry
// leads through a link any more. Directories are writable afterwards.
func (s *Snapshot) prune(entries []Entry) (int64, error) {
	p := pruning{want: make(map[string]*Entry, len(entries)), above: map[string]bool{"": true}, top: s.Tree.Top}
	for i := range entries {
		p.want[entries[i].Path] = &entries[i]
		for d := path.Dir(entries[i].Path); d != "." && !p.above[d]; d = path.Dir(d) {
			p.above[d] = true
		}
	}
	fi, err := os.Lstat(p.top)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if !fi.IsDir() {
		return 0, removeAll(p.top)
	}
	err = p.dir("", fi)
	return p.bytes, err
}

// pruning is one walk through a copy.
type pruning struct {
	top   string
	want  map[string]*Entry
	above map[string]bool // directories that wanted things are in
	bytes int64
}

func (w *pruning) dir(rel string, fi fs.FileInfo) error {
	dir := filepath.Join(w.top, filepath.FromSlash(rel))
	if fi.Mode().Perm()&0o700 != 0o700 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return err
		}
	}
	names, err := readNames(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		p := path.Join(rel, name)
		full := filepath.Join(dir, name)
		fi, err := os.Lstat(full)
		if err != nil {
			return err
		}
		e := w.want[p]
		if fi.IsDir() && (e == nil && w.above[p] || e != nil && e.Mode.IsDir()) {
			if err := w.dir(p, fi); err != nil {
				return err
			}
			continue
		}
		if e != nil && e.Mode.Type() == fi.Mode().Type() {
			if !e.Mode.IsDir() && e.Mode&fs.ModeSymlink == 0 {
				w.bytes += fi.Size()
				continue // a file, which is compared later
			}
			if link, err := os.Readlink(full); err == nil && link == e.Link {
				continue
			}
		}
		if err := removeAll(full); err != nil {
			return err
		}
	}
	return nil
}

// reuse reports whether a file of an earlier snapshot is what its original is:
// data, where it was read, or else the original itself, by its sum. What is not
// is removed.
func reuse(to string, e *Entry, sum []byte) (bool, error) {
	fi, err := os.Lstat(to)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if fi.Mode().IsRegular() && fi.Size() == e.Size && fi.Mode().Perm() == e.Mode.Perm() && alone(fi) {
		if is, err := sumFile(to); err == nil && bytes.Equal(is, sum) {
			if fi.ModTime().UnixNano() == e.seen.modified {
				return true, nil
			}
			at := time.Unix(0, e.seen.modified)
			return true, os.Chtimes(to, at, at)
		}
	}
	return false, removeAll(to)
}

// ownerless is how old a snapshot's directory must be to be taken for left
// behind when it does not say whose it is.
const ownerless = time.Minute

// otherHost is how old a snapshot of another machine must be.
const otherHost = 24 * time.Hour

// Sweep removes the snapshots of processes that are no more, and ends what is
// left of their checks; and slots that nobody used for days. It returns the ids
// of the former.
func Sweep(ctx context.Context, dir, host string, now time.Time) (ids []string, err error) {
	entries, err := durable.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sweep snapshots: %w", err)
	}
	var errs []error
	idle := map[string]time.Time{}
	for _, d := range entries {
		root := filepath.Join(dir, d.Name())
		if strings.HasPrefix(d.Name(), scratchPrefix) {
			if fi, err := d.Info(); err == nil && now.Sub(fi.ModTime()) > time.Hour {
				errs = append(errs, removeAll(root))
			}
			continue
		}
		if !d.IsDir() {
			continue
		}
		if used, ok := kept(root); ok {
			idle[root] = used
			continue
		}
		id, gone := abandoned(root, host, now)
		if !gone {
			continue
		}
		kctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, kerr := proc.StopTree(kctx, proc.ID{}, id, 0)
		cancel()
		if rerr := (&Snapshot{Root: root}).Remove(); rerr != nil || kerr != nil {
			errs = append(errs, rerr, kerr)
			continue
		}
		ids = append(ids, id)
	}
	errs = append(errs, sweepSlots(idle, host, now))
	return ids, errors.Join(errs...)
}

// kept says when a slot that nobody is in was used last.
func kept(root string) (time.Time, bool) {
	if _, err := os.Lstat(filepath.Join(root, ownerFile)); err == nil {
		return time.Time{}, false
	}
	fi, err := os.Lstat(filepath.Join(root, keptFile))
	if err != nil {
		return time.Time{}, false
	}
	return fi.ModTime(), true
}

// sweepSlots removes slots that were not used for long, and the oldest where
// there are too many.
func sweepSlots(idle map[string]time.Time, host string, now time.Time) error {
	roots := make([]string, 0, len(idle))
	for root := range idle {
		roots = append(roots, root)
	}
	slices.SortFunc(roots, func(a, b string) int { return idle[b].Compare(idle[a]) })
	self, err := proc.Self()
	if err != nil {
		return err
	}
	data, err := json.Marshal(owner{V: 1, ID: "sweep", Process: self, Host: host, At: now.UTC()})
	if err != nil {
		return err
	}
	var errs []error
	for i, root := range roots {
		if i < maxSlots && now.Sub(idle[root]) <= keepSlot {
			continue
		}
		switch err := own(root, data); {
		case err == nil:
			errs = append(errs, removeAll(root))
		case !errors.Is(err, fs.ErrExist): // then it is in use again
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// abandoned reports whether a snapshot is nobody's any more, and which one it is.
func abandoned(root, host string, now time.Time) (id string, gone bool) {
	id = filepath.Base(root)
	fi, err := os.Lstat(root)
	if err != nil {
		return id, false
	}
	age := now.Sub(fi.ModTime())
	data, err := durable.Read(filepath.Join(root, ownerFile))
	var o owner
	if err != nil || json.Unmarshal(data, &o) != nil || o.Process.IsZero() {
		return id, age > ownerless
	}
	if o.ID != "" {
		id = o.ID
	}
	if o.Host != host {
		return id, now.Sub(o.At) > otherHost
	}
	return id, !o.Process.Alive()
}
