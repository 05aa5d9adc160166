package tree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"reprise/internal/proc"
)

// SnapshotOptions say where a snapshot goes and what goes along.
type SnapshotOptions struct {
	Dir  string // of all snapshots, such as <cache>/verify
	ID   string // of this one; also what marks the processes that work in it
	Sub  string // the project's root below the tree's top, "" for the top
	Host string
	Now  func() time.Time
	// Carry are patterns of ignored directories that are copied, too: a name
	// alone is found anywhere, a path is from the project's root.
	Carry []string
	// Commit, where it is set, is copied in place of the tree as it is.
	Commit string
	// Step is told each step before it is taken; for tests.
	Step func(name string)
}

// Snapshot is a copy of a tree for one process's use.
type Snapshot struct {
	Root string // <dir>/<id>
	Tree Tree   // the copy
	Tmp  string // a directory for temporary files
	// Hash is what the tree held: of the copied tree and of the copy alike.
	Hash string
	// From is what was copied, Listing what the copy was when it was made.
	From, Listing Listing
	// Notes are what the copy lacks.
	Notes []string

	sums  map[string][]byte // of the files, where they are known
	moved []Entry           // what was carried along
}

// owner is owner.json of a snapshot.
type owner struct {
	V       int       `json:"v"`
	Process proc.ID   `json:"process"`
	Host    string    `json:"host"`
	At      time.Time `json:"at"`
}

// tries is how often a tree that changes meanwhile is copied anew.
const tries = 3

// minFree is what must be left on the disk, in bytes, so that a check is the
// only one to suffer from what it writes.
const minFree = 256 << 20

// Snapshot copies the tree. The caller has to remove it.
func (t Tree) Snapshot(ctx context.Context, o SnapshotOptions) (s *Snapshot, err error) {
	if o.Step == nil {
		o.Step = func(string) {}
	}
	s = &Snapshot{Root: filepath.Join(o.Dir, o.ID)}
	s.Tmp = filepath.Join(s.Root, "tmp")
	defer func() {
		if err != nil {
			err = fmt.Errorf("copy the tree %s: %w", t.Top, err)
			if rerr := s.Remove(); rerr != nil {
				err = errors.Join(err, rerr)
			}
			s = nil
		}
	}()
	if err := s.claim(o); err != nil {
		return s, err
	}
	o.Step("claimed")
	dst := filepath.Join(s.Root, "tree")
	s.Tree = Tree{Top: dst, vars: t.vars, limits: t.limits, excludes: t.excludes}
	if o.Commit != "" {
		err = s.fromCommit(ctx, t, o)
	} else {
		err = s.fromTree(ctx, t, o)
	}
	if err != nil {
		return s, err
	}
	o.Step("copied")
	if err := s.carry(ctx, t, o); err != nil {
		return s, err
	}
	o.Step("carried")
	if t.Git {
		if err := s.repositories(ctx, t, o.Commit); err != nil {
			return s, err
		}
		s.Tree.Git = true
	}
	o.Step("repository")
	if err := s.modes(t.Top); err != nil {
		return s, err
	}
	if s.Listing, err = s.Tree.List(ctx, o.Now()); err != nil {
		return s, err
	}
	o.Step("made")
	return s, nil
}

// claim makes the snapshot's directory and says whose it is.
func (s *Snapshot) claim(o SnapshotOptions) error {
	self, err := proc.Self()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Root, 0o700); err != nil {
		return err
	}
	data, err := json.Marshal(owner{V: 1, Process: self, Host: o.Host, At: o.Now().UTC()})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.Root, "owner.json"), data, 0o600); err != nil {
		return err
	}
	return os.MkdirAll(s.Tmp, 0o700)
}

// fromTree copies what the tree is now.
func (s *Snapshot) fromTree(ctx context.Context, t Tree, o SnapshotOptions) error {
	var moved []string
	for range tries {
		if err := removeAll(s.Tree.Top); err != nil {
			return err
		}
		l, err := t.List(ctx, o.Now())
		if err != nil {
			return err
		}
		if err := roomFor(s.Root, l.Bytes); err != nil {
			return err
		}
		o.Step("listed")
		sums, err := s.copy(ctx, t.Top, l.Entries)
		if err != nil {
			return err
		}
		after, err := t.List(ctx, o.Now())
		if err != nil {
			return err
		}
		if moved, _ = Differ(l, after, 3); len(moved) == 0 {
			after.Repos, after.Left = l.Repos, l.Left
			s.From, s.Hash, s.Notes, s.sums = after, l.hash(sums), l.Left, sums
			return nil
		}
	}
	return fmt.Errorf("%w: %s", ErrMoving, strings.Join(moved, ", "))
}

// roomFor wants the disk to have space for so many bytes.
func roomFor(dir string, bytes int64) error {
	if free, ok := freeBytes(dir); ok && free-bytes < minFree {
		return fmt.Errorf("the disk of %s has %d MiB left, too few for a copy of %d MiB", dir, free>>20, bytes>>20)
	}
	return nil
}

// copy makes the entries in the snapshot and returns the hash of each file.
// Directories are writable until all is in them; see modes.
func (s *Snapshot) copy(ctx context.Context, from string, entries []Entry) (map[string][]byte, error) {
	if err := os.MkdirAll(s.Tree.Top, 0o700); err != nil {
		return nil, err
	}
	for i := range entries {
		e := &entries[i]
		to := filepath.Join(s.Tree.Top, filepath.FromSlash(e.Path))
		switch {
		case e.Mode.IsDir():
			if err := os.MkdirAll(to, 0o700); err != nil {
				return nil, err
			}
		case e.Mode&fs.ModeSymlink != 0:
			if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
				return nil, err
			}
			if err := os.Symlink(e.Link, to); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, err
			}
		}
	}
	return eachFile(ctx, entries, func(e *Entry) ([]byte, error) {
		name := filepath.FromSlash(e.Path)
		return copyFile(filepath.Join(from, name), filepath.Join(s.Tree.Top, name), e)
	})
}

// small is the size up to which a file is read whole: then it is read once, and
// a larger one is left to the system to copy, which some file systems do by
// sharing the blocks.
const small = 1 << 20

func copyFile(from, to string, e *Entry) (sum []byte, err error) {
	in, err := openFile(from)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return []byte("unread"), nil // gone, which the second look finds; or nobody's to read
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if fi, err := in.Stat(); err != nil || !fi.Mode().IsRegular() {
		return []byte("unread"), err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	if e.Size <= small {
		_, err = io.Copy(io.MultiWriter(out, h), io.LimitReader(in, small+1))
	} else if _, err = io.Copy(out, io.LimitReader(in, e.Size)); err == nil {
		if _, err = in.Seek(0, io.SeekStart); err == nil {
			_, err = io.Copy(h, io.LimitReader(in, e.Size))
		}
	}
	if err == nil {
		err = out.Chmod(e.Mode.Perm())
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		at := time.Unix(0, e.seen.modified)
		err = os.Chtimes(to, at, at) // what builds by time must not build all anew
	}
	return h.Sum(nil), err
}

// eachFile does something with each regular file, several at a time.
func eachFile(ctx context.Context, entries []Entry, do func(*Entry) ([]byte, error)) (map[string][]byte, error) {
	sums := make(map[string][]byte, len(entries))
	var mu sync.Mutex
	var first error
	work := make(chan *Entry)
	var all sync.WaitGroup
	for range min(4, max(2, runtime.NumCPU())) {
		all.Go(func() {
			for e := range work {
				sum, err := do(e)
				mu.Lock()
				if err != nil && first == nil {
					first = err
				}
				sums[e.Path] = sum
				mu.Unlock()
			}
		})
	}
	for i := range entries {
		if !entries[i].Mode.IsRegular() {
			continue
		}
		if ctx.Err() != nil {
			break
		}
		work <- &entries[i]
	}
	close(work)
	all.Wait()
	if first == nil && ctx.Err() != nil {
		first = context.Cause(ctx)
	}
	return sums, first
}

// carry copies what is ignored and still needed: never a link or a shared file,
// through which a check could change the original.
func (s *Snapshot) carry(ctx context.Context, t Tree, o SnapshotOptions) error {
	if len(o.Carry) == 0 {
		return nil
	}
	ignored := s.From.Ignored
	if o.Commit != "" {
		l, err := t.List(ctx, o.Now())
		if err != nil {
			return err
		}
		ignored = l.Ignored
	}
	room := t.limits
	room.Bytes -= s.From.Bytes
	for _, p := range ignored {
		if !carried(p, o.Sub, o.Carry) {
			continue
		}
		w := &walk{t: t, ctx: ctx, limits: room, ignored: map[string]bool{}, all: true}
		if err := w.entry(p); err != nil {
			return err
		}
		if err := roomFor(s.Root, w.l.Bytes); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(s.Tree.Top, filepath.FromSlash(path.Dir(p))), 0o700); err != nil {
			return err
		}
		if _, err := s.copy(ctx, t.Top, w.l.Entries); err != nil {
			return err
		}
		room.Bytes -= w.l.Bytes
		s.moved = append(s.moved, w.l.Entries...)
		s.Notes = append(s.Notes, w.l.Left...)
	}
	return nil
}

func carried(p, sub string, patterns []string) bool {
	rel := p
	if sub != "" {
		rel = strings.TrimPrefix(p, sub+"/")
	}
	for _, pattern := range patterns {
		pattern = strings.TrimSuffix(pattern, "/")
		name := rel
		if !strings.Contains(pattern, "/") {
			name = path.Base(p)
		}
		if ok, err := doublestar.Match(pattern, name); err == nil && ok {
			return true
		}
	}
	return false
}

// modes gives the directories the permissions that they have in the tree, the
// inner ones first.
func (s *Snapshot) modes(top string) error {
	for _, list := range [...][]Entry{s.moved, s.From.Entries} {
		for i := range slices.Backward(list) {
			e := &list[i]
			if !e.Mode.IsDir() {
				continue
			}
			if err := os.Chmod(filepath.Join(s.Tree.Top, filepath.FromSlash(e.Path)), e.Mode.Perm()); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	fi, err := os.Stat(top)
	if err != nil {
		return err
	}
	return os.Chmod(s.Tree.Top, fi.Mode().Perm())
}

// Changed are paths that differ from when the snapshot was made, and how many
// there are: what git ignores does not count, nor that a file was written anew
// with what it held.
func (s *Snapshot) Changed(ctx context.Context, now time.Time) (paths []string, all int, err error) {
	l, err := s.Tree.List(ctx, now)
	if err != nil {
		return nil, 0, err
	}
	paths, all = differ(s.Listing, l, 5, func(x, y *Entry) bool {
		if *x == *y {
			return true
		}
		a, b := *x, *y
		a.seen, b.seen = seen{}, seen{}
		if a != b || !a.Mode.IsRegular() {
			return a == b
		}
		was, known := s.sums[a.Path]
		is, err := sumFile(filepath.Join(s.Tree.Top, filepath.FromSlash(a.Path)))
		return known && err == nil && bytes.Equal(was, is)
	})
	return paths, all, nil
}

// Size is how many bytes the snapshot takes now, with everything that checks
// wrote into it, up to the limit.
func (s *Snapshot) Size(limit int64) int64 {
	var size int64
	_ = filepath.WalkDir(s.Root, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it goes away under our feet
		}
		if d.Type().IsRegular() {
			if fi, err := d.Info(); err == nil {
				size += fi.Size()
			}
		}
		if size > limit {
			return fs.SkipAll
		}
		return nil
	})
	return size
}

// DiskLow reports whether the disk that the snapshot is on is nearly full.
func (s *Snapshot) DiskLow() bool {
	free, ok := freeBytes(s.Root)
	return ok && free < minFree/2
}

// Remove takes the snapshot away.
func (s *Snapshot) Remove() error {
	if err := removeAll(s.Root); err != nil {
		return fmt.Errorf("remove the snapshot %s: %w; the next verification tries again", s.Root, err)
	}
	return nil
}

// removeAll is os.RemoveAll that also removes what lies in directories that
// were made read-only.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700) // before what is in it is read
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// ownerless is how old a snapshot's directory must be to be taken for left
// behind when it does not say whose it is.
const ownerless = time.Minute

// otherHost is how old a snapshot of another machine must be.
const otherHost = 24 * time.Hour

// Sweep removes the snapshots of processes that are no more, and ends what is
// left of their checks. It returns the ids of those.
func Sweep(ctx context.Context, dir, host string, now time.Time) (ids []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sweep snapshots: %w", err)
	}
	var errs []error
	for _, d := range entries {
		root := filepath.Join(dir, d.Name())
		if strings.HasPrefix(d.Name(), scratchPrefix) {
			if fi, err := d.Info(); err == nil && now.Sub(fi.ModTime()) > time.Hour {
				errs = append(errs, removeAll(root))
			}
			continue
		}
		if !d.IsDir() || !abandoned(root, host, now) {
			continue
		}
		kctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, kerr := proc.StopTree(kctx, proc.ID{}, d.Name(), 0)
		cancel()
		if rerr := (&Snapshot{Root: root}).Remove(); rerr != nil || kerr != nil {
			errs = append(errs, rerr, kerr)
			continue
		}
		ids = append(ids, d.Name())
	}
	return ids, errors.Join(errs...)
}

func abandoned(root, host string, now time.Time) bool {
	fi, err := os.Lstat(root)
	if err != nil {
		return false
	}
	age := now.Sub(fi.ModTime())
	data, err := os.ReadFile(filepath.Join(root, "owner.json"))
	var o owner
	if err != nil || json.Unmarshal(data, &o) != nil || o.Process.IsZero() {
		return age > ownerless
	}
	if o.Host != host {
		return now.Sub(o.At) > otherHost
	}
	return !o.Process.Alive()
}
