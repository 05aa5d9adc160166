// Package tree looks at a working tree and copies it, so that checks can run on
// what is there without touching it: uncommitted and untracked work, deletions,
// modes, links and submodules as they are, without what git ignores.
//
// It owns the directories <dir>/<id>/ of its snapshots, which are for one
// process and thrown away by it, or by the next one when that was killed. They
// are written past package durable: nothing in them has to outlive anything, and
// a wait for the disk at each of thousands of files would. Nothing is ever
// written in the tree itself nor in its repository: git is only asked, with an
// index of our own where it wants to write one. It takes no lock; a directory's
// owner.json names the process it belongs to.
package tree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
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
	"time"

	"reprise/internal/durable"
	"reprise/internal/git"
)

// ErrTooLarge says that a tree has more files or bytes than may be copied.
var ErrTooLarge = errors.New("the tree is too large to be copied")

// ErrMoving says that a tree kept changing while it was being copied.
var ErrMoving = errors.New("the tree kept changing while it was copied")

// Limits bound what is looked at and copied.
type Limits struct {
	Entries int   // files, links and directories; 0 is 500,000
	Bytes   int64 // of the files; 0 is 2 GiB
}

func (l Limits) withDefaults() Limits {
	if l.Entries == 0 {
		l.Entries = 500_000
	}
	if l.Bytes == 0 {
		l.Bytes = 2 << 30
	}
	return l
}

// Tree is a directory whose work is looked at.
type Tree struct {
	Top    string // absolute, without symbolic links in it
	Git    bool   // it is the top of a git working tree
	Common string // git's own directory, shared by all working trees; "" without git

	vars     map[string]string
	limits   Limits
	programs *git.Programs
	excludes string   // the user's own list of what git ignores
	outside  []string // paths from the top that are not looked at
	own      repository
	plain    []string // arguments of git by which no filter is run
}

// Options is what a tree needs of the world.
type Options struct {
	Vars   map[string]string // the environment, for git
	Limits Limits
	// Outside are directories that are no part of any tree: where snapshots are,
	// above all, should they lie in one.
	Outside []string
	// Programs, where it is set, are those that repositories may have git run.
	Programs *git.Programs
}

// Find is the tree that dir is in: the top of its git working tree, or without
// git root, the directory of the project.
func Find(ctx context.Context, dir, root string, o Options) (Tree, error) {
	t := Tree{vars: o.Vars, limits: o.Limits.withDefaults(), programs: o.Programs}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return t, fmt.Errorf("find the working tree: %w", err)
	}
	if top := git.Top(real); top != "" {
		t.Top = top
		own, err := t.repository(ctx, top)
		switch {
		case err == nil:
			t.Git, t.Common, t.own = true, own.common, own
			t.excludes = t.userExcludes(ctx)
			if t.plain, err = t.noFilters(ctx); err != nil {
				return t, fmt.Errorf("find the working tree: %w", err)
			}
			t.leaveOut(o.Outside)
			return t, nil
		case !errors.Is(err, git.ErrNotInstalled) && !errors.Is(err, git.ErrNotRepo):
			return t, fmt.Errorf("find the working tree: %w", err)
		}
	}
	if root == "" {
		root = real
	}
	if t.Top, err = filepath.EvalSymlinks(root); err != nil {
		return t, fmt.Errorf("find the working tree: %w", err)
	}
	t.leaveOut(o.Outside)
	return t, nil
}

func (t *Tree) leaveOut(dirs []string) {
	for _, d := range dirs {
		if real, err := filepath.EvalSymlinks(d); err == nil {
			d = real
		}
		if rel, err := filepath.Rel(t.Top, d); err == nil && filepath.IsLocal(rel) && rel != "." {
			t.outside = append(t.outside, filepath.ToSlash(rel))
		}
	}
}

func (t Tree) git(dir string) *git.Git {
	return git.New(dir, git.Options{Vars: t.vars, Local: 2 * time.Minute, MaxOut: 256 << 20, Programs: t.programs})
}

// userExcludes is the file of further ignore rules, the repository's or the user's
// own. Package git leaves the user's settings out, and what they ignore is no part of
// the work.
func (t Tree) userExcludes(ctx context.Context) string {
	for _, in := range [...]struct{ dir, scope string }{{t.own.dir, "--worktree"}, {t.own.common, "--local"}} {
		text := readText(filepath.Join(in.dir, "config"))
		if in.scope == "--worktree" {
			text = readText(filepath.Join(in.dir, "config.worktree"))
		}
		if text = strings.ToLower(text); !strings.Contains(text, "excludesfile") && !strings.Contains(text, "include") {
			continue // nobody has to be asked
		}
		if out, err := t.git(t.Top).Run(ctx, "config", in.scope, "--includes", "--type=path", "--get", "core.excludesFile"); err == nil {
			name := strings.TrimSuffix(string(out), "\n")
			if name != "" && !filepath.IsAbs(name) {
				name = filepath.Join(t.Top, name)
			}
			return name
		}
	}
	if !t.userSettings() {
		// As above.
	} else if out, err := t.git(t.Top).Run(ctx, "config", "--global", "--type=path", "--get", "core.excludesFile"); err == nil {
		return strings.TrimSuffix(string(out), "\n")
	}
	if dir := t.vars["XDG_CONFIG_HOME"]; filepath.IsAbs(dir) {
		return filepath.Join(dir, "git", "ignore")
	}
	if home := t.vars["HOME"]; filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "git", "ignore")
	}
	return ""
}

// noFilters are arguments of git by which it runs no filter of the settings, as
// that of LFS: a look at a tree runs nothing, and files are taken as they lie.
func (t Tree) noFilters(ctx context.Context) ([]string, error) {
	text := strings.ToLower(readText(filepath.Join(t.own.common, "config")) + readText(filepath.Join(t.own.dir, "config.worktree")))
	if !t.userSettings() && !strings.Contains(text, "filter") && !strings.Contains(text, "include") {
		return nil, nil
	}
	out, err := t.git(t.Top).Run(ctx, "config", "-z", "--name-only", "--get-regexp", `^filter\..*\.`)
	var e *git.Error
	if errors.As(err, &e) && e.Code == 1 {
		return nil, nil // there are none
	}
	if err != nil {
		return nil, err
	}
	var args []string
	seen := map[string]bool{}
	for key := range strings.SplitSeq(string(out), "\x00") {
		at := strings.LastIndexByte(key, '.')
		if at < 0 || seen[key[:at]] {
			continue
		}
		name := key[:at]
		seen[name] = true
		if strings.Contains(name, "=") {
			return nil, fmt.Errorf("the setting %s of git cannot be overruled; give the filter another name", key)
		}
		args = append(args, "-c", name+".clean=", "-c", name+".smudge=", "-c", name+".process=", "-c", name+".required=false")
	}
	return args, nil
}

// userSettings reports whether the user has settings of git at all.
func (t Tree) userSettings() bool {
	for _, name := range [...]string{filepath.Join(t.vars["HOME"], ".gitconfig"), filepath.Join(t.vars["XDG_CONFIG_HOME"], "git", "config"), filepath.Join(t.vars["HOME"], ".config", "git", "config")} {
		if _, err := os.Stat(name); err == nil {
			return true
		}
	}
	return runtime.GOOS == "windows" // there it may be elsewhere
}

// Entry is one thing in a tree.
type Entry struct {
	Path string      // from the top, with slashes, in the bytes that it has
	Mode fs.FileMode // kind and permission
	Size int64       // of a file
	Link string      // of a symbolic link
	seen seen
}

// seen is what tells a file's later change without reading it.
type seen struct {
	modified, changed int64 // nanoseconds since 1970; changed is 0 where the system has none
	device, inode     uint64
}

// Listing is what a tree held at a time, in the order of the paths.
type Listing struct {
	Entries []Entry
	Repos   []string // further repositories in it (submodules), by their path
	Ignored []string // directories and files that git ignores, the outermost ones
	Bytes   int64    // of all files
	// Left are things that cannot be copied, with the reason.
	Left []string
	// Settled says that the times seen tell every later change.
	Settled bool
}

// racy is how coarse a file system's clock may be: a file that changed this
// recently may change again without a trace.
const racy = 20 * time.Millisecond

// List looks at the tree as it is now. now is the machine's clock, by which the
// file system dates changes.
func (t Tree) List(ctx context.Context, now time.Time) (Listing, error) {
	return t.list(now, &walk{t: t, ctx: ctx, limits: t.limits, ignored: map[string]bool{}, ask: t.Git})
}

// Again is List of a tree that most likely still is what it was: git is only
// asked what it ignores where something is different or new.
func (t Tree) Again(ctx context.Context, now time.Time, was Listing) (Listing, error) {
	w := &walk{t: t, ctx: ctx, limits: t.limits, ignored: map[string]bool{}}
	for _, p := range was.Ignored {
		w.ignored[p] = true
	}
	l, err := t.list(now, w)
	if _, all := Differ(was, l, 0); err == nil && all == 0 && len(l.Left) == len(was.Left) {
		return l, nil
	}
	return t.List(ctx, now)
}

func (t Tree) list(now time.Time, w *walk) (Listing, error) {
	if w.ask {
		if err := w.repo(""); err != nil {
			return Listing{}, err
		}
	}
	if err := w.dir(""); err != nil {
		return Listing{}, err
	}
	slices.SortFunc(w.l.Entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	w.l.Settled = w.last < now.Add(-racy).UnixNano()
	for p := range w.ignored {
		w.l.Ignored = append(w.l.Ignored, p)
	}
	slices.Sort(w.l.Ignored)
	return w.l, nil
}

// walk is one look at a tree.
type walk struct {
	t       Tree
	ctx     context.Context
	limits  Limits
	ignored map[string]bool // by path, as the walk spells it
	all     bool            // what git ignores counts, too
	ask     bool            // ask git what it ignores; else ignored has all of it
	l       Listing
	large   Entry // the largest file seen
	last    int64 // time of the last change seen
}

// repo learns what git ignores in the repository at rel.
func (w *walk) repo(rel string) error {
	args := []string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"}
	if w.t.excludes != "" {
		args = append([]string{"-c", "core.excludesFile=" + w.t.excludes}, args...)
	}
	out, err := w.t.git(filepath.Join(w.t.Top, filepath.FromSlash(rel))).Run(w.ctx, args...)
	if err != nil {
		return fmt.Errorf("ask git what it ignores: %w", err)
	}
	for p := range bytes.SplitSeq(out, []byte{0}) {
		if len(p) > 0 {
			w.ignored[path.Join(rel, strings.TrimSuffix(string(p), "/"))] = true
		}
	}
	return nil
}

func (w *walk) dir(rel string) error {
	if err := w.ctx.Err(); err != nil {
		return fmt.Errorf("look at %s: %w", w.t.Top, context.Cause(w.ctx))
	}
	names, err := readNames(filepath.Join(w.t.Top, filepath.FromSlash(rel)))
	if err != nil {
		if rel == "" {
			return fmt.Errorf("look at the tree: %w", err)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			w.l.Left = append(w.l.Left, rel+": "+reason(err))
		}
		return nil
	}
	if rel != "" && !w.all && slices.Contains(names, ".git") {
		w.l.Repos = append(w.l.Repos, rel)
		if w.ask {
			if err := w.repo(rel); err != nil && !errors.Is(err, git.ErrNotRepo) {
				return err
			}
		}
	}
	for _, name := range names {
		p := path.Join(rel, name)
		if name == ".git" && !w.all || w.ignored[p] || slices.Contains(w.t.outside, p) {
			continue
		}
		if err := w.entry(p); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) entry(p string) error {
	full := filepath.Join(w.t.Top, filepath.FromSlash(p))
	fi, err := os.Lstat(full)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			w.l.Left = append(w.l.Left, p+": "+reason(err))
		}
		return nil // gone meanwhile
	}
	e := Entry{Path: p, Mode: fi.Mode() & (fs.ModeType | fs.ModePerm), seen: seeInfo(fi)}
	switch {
	case fi.IsDir():
		e.seen = seen{} // it changes with what is in it, which is looked at
	case fi.Mode()&fs.ModeSymlink != 0:
		if e.Link, err = os.Readlink(full); err != nil {
			return nil
		}
		e.Mode = fs.ModeSymlink // its permission means nothing
	case fi.Mode().IsRegular():
		e.Size = fi.Size()
		w.l.Bytes += e.Size
		if e.Size > w.large.Size {
			w.large = e
		}
		w.last = max(w.last, e.seen.modified, e.seen.changed)
	default:
		w.l.Left = append(w.l.Left, p+": neither a file, a directory nor a link")
		return nil
	}
	w.l.Entries = append(w.l.Entries, e)
	if len(w.l.Entries) > w.limits.Entries || w.l.Bytes > w.limits.Bytes {
		return fmt.Errorf("%w: more than %d files or %d MiB in %s (seen so far, %s is the largest, of %d MiB); ignore what is not part of the work, or raise verify.max_mb",
			ErrTooLarge, w.limits.Entries, w.limits.Bytes>>20, w.t.Top, w.large.Path, w.large.Size>>20)
	}
	if fi.IsDir() {
		return w.dir(p)
	}
	return nil
}

// through looks at what a link leads to as if it were the directory.
func (w *walk) through(p string) error {
	fi, err := os.Stat(filepath.Join(w.t.Top, filepath.FromSlash(p)))
	if err != nil {
		return nil // gone meanwhile
	}
	w.l.Entries = append(w.l.Entries, Entry{Path: p, Mode: fi.Mode() & (fs.ModeType | fs.ModePerm)})
	return w.dir(p)
}

func readNames(dir string) ([]string, error) {
	f, err := durable.OpenDirectory(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// Stamp is a hash of everything that can be seen without reading a file. Two
// equal stamps of a settled listing mean the same content; different ones mean
// little, for a checkout touches what it does not change.
func (l Listing) Stamp() string {
	h := sha256.New()
	for i := range l.Entries {
		e := &l.Entries[i]
		l.head(h, e)
		var b [40]byte
		binary.LittleEndian.PutUint64(b[0:], uint64(e.Size))
		binary.LittleEndian.PutUint64(b[8:], uint64(e.seen.modified))
		binary.LittleEndian.PutUint64(b[16:], uint64(e.seen.changed))
		binary.LittleEndian.PutUint64(b[24:], e.seen.device)
		binary.LittleEndian.PutUint64(b[32:], e.seen.inode)
		h.Write(b[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// head writes what both hashes have of an entry.
func (l Listing) head(h io.Writer, e *Entry) {
	var b [12]byte
	binary.LittleEndian.PutUint32(b[0:], uint32(e.Mode))
	binary.LittleEndian.PutUint32(b[4:], uint32(len(e.Path)))
	binary.LittleEndian.PutUint32(b[8:], uint32(len(e.Link)))
	_, _ = h.Write(b[:]) // a hash takes everything
	_, _ = io.WriteString(h, e.Path)
	_, _ = io.WriteString(h, e.Link)
}

// Hash is the SHA-256, in hex, of what the tree holds: names, kinds,
// permissions, where links lead, and the files' content.
func (t Tree) Hash(ctx context.Context, l Listing) (string, error) {
	sums, err := eachFile(ctx, l.Entries, func(e *Entry, _ *[]byte) ([]byte, error) {
		return sumFile(filepath.Join(t.Top, filepath.FromSlash(e.Path)))
	})
	if err != nil {
		return "", fmt.Errorf("hash the tree: %w", err)
	}
	return l.hash(sums), nil
}

func (l Listing) hash(sums map[string][]byte) string {
	h := sha256.New()
	for i := range l.Entries {
		e := &l.Entries[i]
		l.head(h, e)
		h.Write(sums[e.Path])
	}
	return hex.EncodeToString(h.Sum(nil))
}

func sumFile(name string) ([]byte, error) {
	f, err := openFile(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return []byte("unread"), nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}

// Differ are the paths in which two listings of a tree differ, by what can be
// seen without reading: at most so many, and how many there are in all.
func Differ(a, b Listing, most int) (paths []string, all int) {
	return differ(a, b, most, func(x, y *Entry) bool { return *x == *y })
}

func differ(a, b Listing, most int, same func(x, y *Entry) bool) (paths []string, all int) {
	i, j := 0, 0
	add := func(p string) {
		if all++; len(paths) < most {
			paths = append(paths, p)
		}
	}
	for i < len(a.Entries) || j < len(b.Entries) {
		switch {
		case j == len(b.Entries) || i < len(a.Entries) && a.Entries[i].Path < b.Entries[j].Path:
			add(a.Entries[i].Path)
			i++
		case i == len(a.Entries) || a.Entries[i].Path > b.Entries[j].Path:
			add(b.Entries[j].Path)
			j++
		default:
			if !same(&a.Entries[i], &b.Entries[j]) {
				add(a.Entries[i].Path)
			}
			i++
			j++
		}
	}
	return paths, all
}
