package tree

import (
	"bytes"
	"context"
	"crypto/sha256"
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

	"reprise/internal/pathname"
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
	// Slot, where it is set, is the directory of Dir to make the snapshot in, if
	// nobody else is in it; see [SlotOf] and [Snapshot.Release].
	Slot string
	// Step is told each step before it is taken; for tests.
	Step func(name string)
}

// Snapshot is a copy of a tree for one process's use.
type Snapshot struct {
	Root string // <dir>/<id>, or <dir>/<slot>
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

	commits map[string]string // of the submodules, where a commit was copied

	places []place // what the copy stands in, the outermost first

	slot    bool // Root is a slot
	stale   bool // the copy may hold what an earlier snapshot, or try, left
	foreign bool // Root is somebody else's
}

// tries is how often a tree that changes meanwhile is copied anew.
const tries = 3

// minFree is what must be left on the disk, in bytes, so that a check is the
// only one to suffer from what it writes.
const minFree = 256 << 20

// errSlot says that what is in a slot could not be put in order.
var errSlot = errors.New("what an earlier verification left cannot be used")

// Snapshot copies the tree. The caller has to release or to remove it.
func (t Tree) Snapshot(ctx context.Context, o SnapshotOptions) (*Snapshot, error) {
	if o.Step == nil {
		o.Step = func(string) {}
	}
	s, err := t.snapshot(ctx, o)
	if errors.Is(err, errSlot) && ctx.Err() == nil {
		o.Slot = ""
		return t.snapshot(ctx, o)
	}
	return s, err
}

func (t Tree) snapshot(ctx context.Context, o SnapshotOptions) (s *Snapshot, err error) {
	s = &Snapshot{}
	defer func() {
		if err != nil {
			err = fmt.Errorf("copy the tree %s: %w", t.Top, err)
			if !s.foreign {
				err = errors.Join(err, s.Remove())
			}
			s = nil
		}
	}()
	if err := s.claim(o); err != nil {
		return s, err
	}
	o.Step("claimed")
	s.Tree = Tree{Top: filepath.Join(s.Root, "tree"), vars: t.vars, limits: t.limits, excludes: t.excludes}
	if o.Commit != "" {
		err = s.fromCommit(ctx, t, o)
	} else {
		err = s.fromTree(ctx, t, o)
	}
	if err != nil {
		return s, err
	}
	o.Step("copied")
	if err := s.carry(ctx, t); err != nil {
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
	if err := s.remember(o.Dir); err != nil {
		return s, err
	}
	o.Step("made")
	return s, nil
}

// ErrReplaced says that a snapshot's directory is not the one that was made: what
// works in it by its path works somewhere else, perhaps in the real tree.
var ErrReplaced = errors.New("the directory of the copy was replaced")

// place is a directory as it was when the snapshot was made.
type place struct {
	dir string
	fi  fs.FileInfo
}

// remember notes which directories the snapshot is in. They are looked at by
// their real path: what leads to them from above was there before any check.
func (s *Snapshot) remember(dir string) error {
	for _, d := range []string{dir, s.Root, s.Tree.Top} {
		look := os.Lstat
		if d == dir {
			look = os.Stat // a cache may well be reached through a link
		}
		fi, err := look(d)
		if err != nil {
			return err
		}
		if !os.SameFile(fi, fi) { // on Windows this reads which file it is, now and not later
			return fmt.Errorf("%s: it cannot be told which directory it is", d)
		}
		s.places = append(s.places, place{d, fi})
	}
	return nil
}

// Intact is [ErrReplaced] where the snapshot's path leads to anything but the
// directory that was made for it. One that is gone leads nowhere, and is intact.
func (s *Snapshot) Intact() error {
	for i, p := range s.places {
		look := os.Lstat
		if i == 0 {
			look = os.Stat
		}
		fi, err := look(p.dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%w, or cannot be looked at: %w", ErrReplaced, err)
		}
		if !fi.IsDir() || !os.SameFile(fi, p.fi) {
			return ErrReplaced
		}
	}
	return nil
}

// fromTree copies what the tree is now.
func (s *Snapshot) fromTree(ctx context.Context, t Tree, o SnapshotOptions) error {
	var moved []string
	for range tries {
		l, err := t.List(ctx, o.Now())
		if err != nil {
			return err
		}
		s.Notes = l.Left
		if err := s.alongside(ctx, t, l, o); err != nil {
			return err
		}
		all := append(slices.Clone(l.Entries), s.moved...)
		there, err := s.prune(all)
		if err != nil {
			return fmt.Errorf("%w: %w", errSlot, err)
		}
		if err := roomFor(s.Root, all, there); err != nil {
			return err
		}
		o.Step("listed")
		sums, err := s.copy(ctx, t.Top, l.Entries)
		if err != nil {
			return err
		}
		s.stale = true
		after, err := t.Again(ctx, o.Now(), l)
		if err != nil {
			return err
		}
		if moved, _ = Differ(l, after, 3); len(moved) == 0 {
			after.Repos, after.Left = l.Repos, l.Left
			s.From, s.Hash, s.sums = after, l.hash(sums), sums
			return nil
		}
	}
	return fmt.Errorf("%w: %s", ErrMoving, strings.Join(moved, ", "))
}

// roomFor wants the disk to have space for the files, of which so many bytes are
// there already.
func roomFor(dir string, entries []Entry, there int64) error {
	bytes := -there
	for i := range entries {
		bytes += entries[i].Size
	}
	if free, ok := freeBytes(dir); ok && free-bytes < minFree {
		return fmt.Errorf("the disk of %s has %d MiB left; a copy of the tree takes %d MiB, and %d MiB beside it stay free for others", dir, free>>20, max(0, bytes+1<<20-1)>>20, minFree>>20)
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
	return eachFile(ctx, entries, func(e *Entry, buf *[]byte) ([]byte, error) {
		name := filepath.FromSlash(e.Path)
		return s.copyFile(filepath.Join(from, name), filepath.Join(s.Tree.Top, name), e, buf)
	})
}

// small is the size up to which a file is read whole: then it is read once, and
// a larger one is left to the system to copy, which some file systems do by
// sharing the blocks.
const small = 1 << 20

// copyFile copies one file. buf is scratch of its worker, grown as needed.
func (s *Snapshot) copyFile(from, to string, e *Entry, buf *[]byte) (sum []byte, err error) {
	in, err := openFile(from)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		// Gone, which the second look finds; or nobody's to read.
		return []byte("unread"), s.drop(to)
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if fi, err := in.Stat(); err != nil || !fi.Mode().IsRegular() {
		return []byte("unread"), errors.Join(err, s.drop(to))
	}
	var data []byte
	if e.Size <= small {
		if data, err = readSmall(in, e.Size, buf); err != nil {
			return nil, err
		}
		h := sha256.Sum256(data)
		sum = h[:]
	} else if sum, err = hashOf(in, e.Size); err != nil {
		return nil, err
	}
	if s.stale {
		if same, err := reuse(to, e, sum); same || err != nil {
			return sum, err
		}
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if e.Size <= small {
		_, err = out.Write(data)
	} else if _, err = in.Seek(0, io.SeekStart); err == nil {
		_, err = io.Copy(out, io.LimitReader(in, e.Size))
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
	return sum, err
}

func hashOf(in io.Reader, size int64) ([]byte, error) {
	h := sha256.New()
	_, err := io.Copy(h, io.LimitReader(in, size))
	return h.Sum(nil), err
}

// drop removes what an earlier snapshot has of a file.
func (s *Snapshot) drop(to string) error {
	if !s.stale {
		return nil
	}
	return removeAll(to)
}

// readSmall reads a file that had so many bytes, and one more if it has grown.
func readSmall(in io.Reader, size int64, buf *[]byte) ([]byte, error) {
	if int64(cap(*buf)) <= size {
		*buf = make([]byte, size+1)
	}
	b := (*buf)[:size+1]
	n, err := io.ReadFull(in, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return b[:n], err
}

// eachFile does something with each regular file, several at a time. Those of
// one directory are one worker's: several that make files in the same one would
// only wait for each other, and burn a processor while they do.
func eachFile(ctx context.Context, entries []Entry, do func(e *Entry, buf *[]byte) ([]byte, error)) (map[string][]byte, error) {
	sums := make(map[string][]byte, len(entries))
	var mu sync.Mutex
	var first error
	work := make(chan []*Entry)
	var all sync.WaitGroup
	for range min(4, max(2, runtime.NumCPU())) {
		all.Go(func() {
			var buf []byte
			var mine [][]byte
			for list := range work {
				mine = mine[:0]
				var failed error
				for _, e := range list {
					if ctx.Err() != nil {
						break
					}
					sum, err := do(e, &buf)
					if err != nil && failed == nil {
						failed = err
					}
					mine = append(mine, sum)
				}
				mu.Lock()
				if failed != nil && first == nil {
					first = failed
				}
				for i, sum := range mine {
					sums[list[i].Path] = sum
				}
				mu.Unlock()
			}
		})
	}
	for _, list := range byDirectory(entries) {
		work <- list
	}
	close(work)
	all.Wait()
	if first == nil && ctx.Err() != nil {
		first = context.Cause(ctx)
	}
	return sums, first
}

// byDirectory are the regular files, those of each directory together.
func byDirectory(entries []Entry) [][]*Entry {
	var out [][]*Entry
	at := map[string]int{}
	for i := range entries {
		e := &entries[i]
		if !e.Mode.IsRegular() {
			continue
		}
		dir := path.Dir(e.Path)
		n, known := at[dir]
		if !known {
			n = len(out)
			at[dir] = n
			out = append(out, nil)
		}
		out[n] = append(out[n], e)
	}
	return out
}

// alongside finds what is ignored and still goes along.
func (s *Snapshot) alongside(ctx context.Context, t Tree, l Listing, o SnapshotOptions) error {
	s.moved = nil
	room := t.limits
	room.Bytes -= l.Bytes
	for _, p := range l.Ignored {
		if !carried(p, o.Sub, o.Carry) {
			continue
		}
		w := &walk{t: t, ctx: ctx, limits: room, ignored: map[string]bool{}, all: true}
		look := w.entry
		if t.leadsOut(p, s.Tree.Top) {
			look = w.through
		}
		if err := look(p); err != nil {
			return err
		}
		room.Bytes -= w.l.Bytes
		t.lead(p, w.l.Entries)
		s.moved = append(s.moved, w.l.Entries...)
		s.Notes = append(s.Notes, w.l.Left...)
	}
	return nil
}

// carry copies what goes along: never a link or a shared file, through which a
// check could change the original.
func (s *Snapshot) carry(ctx context.Context, t Tree) error {
	for i := range s.moved {
		dir := path.Dir(s.moved[i].Path)
		if err := os.MkdirAll(filepath.Join(s.Tree.Top, filepath.FromSlash(dir)), 0o700); err != nil {
			return err
		}
	}
	_, err := s.copy(ctx, t.Top, s.moved)
	return err
}

// leadsOut reports whether what is carried is itself a link to a directory elsewhere, as
// one that checkouts share: it is copied like any other. One that leads to where the tree
// or the copies are is not: the copy would hold itself.
func (t Tree) leadsOut(p, copies string) bool {
	full := filepath.Join(t.Top, filepath.FromSlash(p))
	if fi, err := os.Lstat(full); err != nil || fi.Mode()&fs.ModeSymlink == 0 {
		return false
	}
	real, err := filepath.EvalSymlinks(full)
	if err != nil {
		return false
	}
	if fi, err := os.Stat(real); err != nil || !fi.IsDir() {
		return false
	}
	for _, d := range []string{t.Top, copies} {
		if at, err := filepath.EvalSymlinks(d); err == nil {
			d = at
		}
		if pathname.Within(real, d) || pathname.Within(d, real) {
			return false
		}
	}
	return true
}

// lead has relative links of what is carried from p lead where they lead in the original,
// also those that lead out of it: to the same path of the copy where that is in the tree,
// and else to the same place, absolute.
func (t Tree) lead(p string, entries []Entry) {
	base := filepath.Join(t.Top, filepath.FromSlash(p))
	if len(entries) > 0 && entries[0].Mode.IsDir() {
		// It may itself be a link that was gone through.
		if real, err := filepath.EvalSymlinks(base); err == nil {
			base = real
		}
	}
	for i := range entries {
		e := &entries[i]
		if e.Mode&fs.ModeSymlink == 0 || filepath.IsAbs(e.Link) {
			continue
		}
		below, err := filepath.Rel(filepath.FromSlash(p), filepath.FromSlash(e.Path))
		if err != nil {
			continue
		}
		from := filepath.Join(base, below)
		there := filepath.Join(filepath.Dir(from), e.Link)
		if pathname.Within(base, there) {
			continue
		}
		if real, err := filepath.EvalSymlinks(from); err == nil && !pathname.Within(t.Top, there) {
			there = real
		}
		if !pathname.Within(t.Top, there) {
			e.Link = there
			continue
		}
		inside, err := filepath.Rel(t.Top, there)
		if err != nil {
			continue
		}
		if link, err := filepath.Rel(filepath.Dir(filepath.FromSlash(e.Path)), inside); err == nil && link != filepath.Clean(e.Link) {
			e.Link = link
		}
	}
}

// maxOutward bounds how many places are told apart to which carried links lead.
const maxOutward = 64

// Outward are the places outside the copy to which links lead that were carried along:
// what is written there is written in the original. They are files and directories;
// around says that there are others, which hold the copy itself or are too many.
func (s *Snapshot) Outward() (places []string, around bool) {
	top, err := filepath.EvalSymlinks(s.Tree.Top)
	if err != nil {
		return nil, true
	}
	for i := range s.moved {
		e := &s.moved[i]
		if e.Mode&fs.ModeSymlink == 0 || !filepath.IsAbs(e.Link) && filepath.IsLocal(path.Join(path.Dir(e.Path), filepath.ToSlash(e.Link))) {
			continue // it stays in the copy
		}
		real, err := filepath.EvalSymlinks(filepath.Join(s.Tree.Top, filepath.FromSlash(e.Path)))
		switch {
		case err != nil || pathname.Within(top, real): // it leads nowhere, or stays
		case pathname.Within(real, top):
			around = true
		case slices.ContainsFunc(places, func(p string) bool { return pathname.Within(p, real) }):
		case len(places) == maxOutward:
			return places, true
		default:
			places = append(places, real)
		}
	}
	return places, around
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
	l, err := s.Tree.Again(ctx, now, s.Listing)
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
