package git

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"context"
	"crypto/sha1" //nolint:gosec // git's object ids are SHA-1
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A commit by git's own commands is five processes. Loose objects have had one
// form since git's first year (zlib over "kind length NUL data", named by its
// SHA-1), so they are written here, each synced before a ref can name it; refs
// are only ever changed by the git program.

// NewBare returns a Git for a repository directory, which is named outright: git
// then neither looks for another one nor minds settings that forbid to find it.
func NewBare(dir string, o Options) *Git {
	g := New(dir, o)
	g.gitDir, g.bare = dir, dir
	return g
}

// At returns a Git for one checkout of this repository: admin is its directory
// among the repository's worktrees, dir is where its files are.
func (g *Git) At(admin, dir string) *Git {
	h := *g
	h.dir, h.gitDir, h.workTree = dir, admin, dir
	return &h
}

// Modes of tree entries.
const (
	ModeFile = "100644"
	ModeExec = "100755"
	ModeLink = "120000"
	ModeTree = "40000"
	ModeRepo = "160000" // a commit of another repository
)

// Entry is one file of a tree, by its path from the top.
type Entry struct {
	Mode string
	ID   string
}

// BlobID is the id that data has as a file.
func BlobID(data []byte) string {
	sum := sha1.Sum(framed("blob", data))
	return hex.EncodeToString(sum[:])
}

func framed(kind string, data []byte) []byte {
	out := make([]byte, 0, len(data)+32)
	out = append(out, kind...)
	out = append(out, ' ')
	out = strconv.AppendInt(out, int64(len(data)), 10)
	out = append(out, 0)
	return append(out, data...)
}

// Store writes an object into the repository, unless it is there as a file of
// its own, and syncs the file: not the directory, as git does not either.
func (g *Git) Store(kind string, data []byte) (id string, err error) {
	raw := framed(kind, data)
	sum := sha1.Sum(raw)
	id = hex.EncodeToString(sum[:])
	path := filepath.Join(g.gitDir, "objects", id[:2], id[2:])
	if fi, err := os.Lstat(path); err == nil && fi.Mode().IsRegular() && fi.Size() > 0 {
		return id, nil
	}
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	if _, err := w.Write(raw); err != nil {
		return "", fmt.Errorf("pack object: %w", err)
	}
	if err := w.Close(); err != nil {
		return "", fmt.Errorf("pack object: %w", err)
	}
	if err := g.o.Disk.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return "", fmt.Errorf("store object: %w", err)
	}
	if err := g.o.Disk.WriteFileHot(path, z.Bytes(), 0o444); err != nil {
		return "", fmt.Errorf("store object: %w", err)
	}
	return id, nil
}

// StoreTree writes the trees of a set of files, which must be stored already.
func (g *Git) StoreTree(files map[string]Entry) (id string, err error) {
	top := map[string]Entry{}
	below := map[string]map[string]Entry{}
	for p, e := range files {
		dir, rest, nested := strings.Cut(p, "/")
		if !nested {
			top[p] = e
			continue
		}
		if below[dir] == nil {
			below[dir] = map[string]Entry{}
		}
		below[dir][rest] = e
	}
	for dir, sub := range below {
		if _, both := top[dir]; both {
			return "", fmt.Errorf("store tree: %s is a file and a directory", dir)
		}
		id, err := g.StoreTree(sub)
		if err != nil {
			return "", err
		}
		top[dir] = Entry{ModeTree, id}
	}
	names := make([]string, 0, len(top))
	for n := range top {
		names = append(names, n)
	}
	// A directory sorts as if its name ended in a slash.
	key := func(n string) string {
		if top[n].Mode == ModeTree {
			return n + "/"
		}
		return n
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(key(a), key(b)) })
	var b bytes.Buffer
	for _, n := range names {
		raw, err := hex.DecodeString(top[n].ID)
		if err != nil || len(raw) != sha1.Size || n == "" {
			return "", fmt.Errorf("store tree: %q has no object", n)
		}
		b.WriteString(top[n].Mode + " " + n + "\x00")
		b.Write(raw)
	}
	return g.Store("tree", b.Bytes())
}

// Person is who made a commit, and when.
type Person struct {
	Name, Email string
	Time        time.Time
}

func (p Person) line() string {
	plain := func(s string) string {
		return strings.TrimSpace(strings.Map(func(r rune) rune {
			if r < ' ' || r == '<' || r == '>' {
				return -1
			}
			return r
		}, s))
	}
	return fmt.Sprintf("%s <%s> %d +0000", plain(p.Name), plain(p.Email), p.Time.Unix())
}

// StoreCommit writes a commit. It names no ref.
func (g *Git) StoreCommit(tree string, parents []string, author, committer Person, message string) (id string, err error) {
	var b strings.Builder
	b.WriteString("tree " + tree + "\n")
	for _, p := range parents {
		b.WriteString("parent " + p + "\n")
	}
	b.WriteString("author " + author.line() + "\ncommitter " + committer.line() + "\n\n")
	b.WriteString(strings.TrimRight(strings.ReplaceAll(message, "\x00", ""), "\n") + "\n")
	return g.Store("commit", []byte(b.String()))
}

// ErrMoved says that a ref was not, or was no longer, where it was expected.
var ErrMoved = errors.New("the branch has moved")

// MoveRef sets a ref to a commit, if it is at old; old "" means that it must not
// be there. A ref that someone else moves is ErrMoved, one that is being moved
// at this moment ErrLocked.
func (g *Git) MoveRef(ctx context.Context, ref, id, old, why string) error {
	if old == "" {
		old = strings.Repeat("0", len(id)) // the user's repository may be one of SHA-256
	}
	_, err := g.Run(ctx, "update-ref", "--create-reflog", "-m", why, ref, id, old)
	return movedError(err)
}

// RefMove is one change of a ref; New "" removes it, Old "" makes it.
type RefMove struct{ Ref, New, Old string }

// MoveRefs changes several refs, all or none, with the errors of [Git.MoveRef].
func (g *Git) MoveRefs(ctx context.Context, why string, moves ...RefMove) error {
	var in strings.Builder
	for _, m := range moves {
		if strings.ContainsAny(m.Ref, " \n\x00") {
			return fmt.Errorf("move ref: %q is no name of one", m.Ref)
		}
		if m.New == "" {
			fmt.Fprintf(&in, "delete %s %s\n", m.Ref, m.Old)
			continue
		}
		fmt.Fprintf(&in, "update %s %s %s\n", m.Ref, m.New, cmp.Or(m.Old, strings.Repeat("0", len(m.New))))
	}
	_, err := g.RunInput(ctx, []byte(in.String()), "update-ref", "--create-reflog", "-m", why, "--stdin")
	return movedError(err)
}

// DropRef removes a ref, if it is at old.
func (g *Git) DropRef(ctx context.Context, ref, old string) error {
	_, err := g.Run(ctx, "update-ref", "-d", ref, old)
	return movedError(err)
}

func movedError(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	switch {
	case strings.Contains(e.Stderr, "File exists"):
		return fmt.Errorf("%w: %w", ErrLocked, err)
	case strings.Contains(e.Stderr, "but expected"), strings.Contains(e.Stderr, "reference already exists"), strings.Contains(e.Stderr, "unable to resolve reference"):
		return fmt.Errorf("%w: %w", ErrMoved, err)
	}
	return err
}

// Object is an object as git gives it.
type Object struct {
	ID, Kind string // "" where there is none
	Data     []byte
}

// Objects reads what the names stand for, in one process at most: ids, refs by
// their whole names, or REV:PATH. What is not there has no Kind.
func (g *Git) Objects(ctx context.Context, names ...string) ([]Object, error) {
	if len(names) == 0 {
		return nil, nil
	}
	for _, n := range names {
		if strings.ContainsAny(n, "\n\x00") {
			return nil, fmt.Errorf("read objects: %q cannot be asked for", n)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read objects: %w", err)
	}
	if !g.reads() {
		return g.askObjects(ctx, names)
	}
	list, rest := g.looseObjects(names)
	if len(rest) == 0 {
		return list, nil
	}
	ask := make([]string, len(rest))
	for i, n := range rest {
		ask[i] = names[n]
	}
	more, err := g.askObjects(ctx, ask)
	if err != nil {
		return nil, err
	}
	for i, n := range rest {
		list[n] = more[i]
	}
	return list, nil
}

// askObjects is Objects by the git program.
func (g *Git) askObjects(ctx context.Context, names []string) ([]Object, error) {
	out, err := g.RunInput(ctx, []byte(strings.Join(names, "\n")+"\n"), "cat-file", "--batch")
	if err != nil {
		return nil, fmt.Errorf("read objects: %w", err)
	}
	list := make([]Object, 0, len(names))
	for range names {
		head, rest, ok := bytes.Cut(out, []byte("\n"))
		if !ok {
			return nil, errors.New("read objects: git's answer ends early")
		}
		out = rest
		part := strings.Split(string(head), " ")
		size := -1
		if n := len(part); n == 3 {
			if size, err = strconv.Atoi(part[2]); err != nil {
				size = -1
			}
		}
		if size < 0 { // "<name> missing", and a name may have spaces
			if !bytes.HasSuffix(head, []byte(" missing")) {
				return nil, fmt.Errorf("read objects: git said %q", head)
			}
			list = append(list, Object{})
			continue
		}
		if len(out) < size+1 {
			return nil, errors.New("read objects: git's answer ends early")
		}
		list = append(list, Object{ID: part[0], Kind: part[1], Data: out[:size:size]})
		out = out[size+1:]
	}
	return list, nil
}

// ParseTree reads one tree object: names and what they stand for.
func ParseTree(data []byte) (map[string]Entry, error) {
	out := map[string]Entry{}
	for len(data) > 0 {
		mode, rest, ok := bytes.Cut(data, []byte(" "))
		name, rest, ok2 := bytes.Cut(rest, []byte("\x00"))
		if !ok || !ok2 || len(rest) < sha1.Size {
			return nil, errors.New("read tree: it is damaged")
		}
		out[string(name)] = Entry{Mode: string(mode), ID: hex.EncodeToString(rest[:sha1.Size])}
		data = rest[sha1.Size:]
	}
	return out, nil
}

// CommitOf reads the tree and the parents of a commit object.
func CommitOf(data []byte) (tree string, parents []string) {
	for line := range strings.Lines(string(data)) {
		key, val, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		switch key {
		case "":
			return tree, parents
		case "tree":
			tree = val
		case "parent":
			parents = append(parents, val)
		}
	}
	return tree, parents
}

// Files lists all files of a commit by their paths; none for "".
func (g *Git) Files(ctx context.Context, rev string) (map[string]Entry, error) {
	files := map[string]Entry{}
	if rev == "" {
		return files, nil
	}
	if files, ok := g.looseFiles(rev); ok {
		return files, nil
	}
	out, err := g.Run(ctx, "ls-tree", "-r", "-z", "--full-tree", rev)
	if err != nil {
		return nil, fmt.Errorf("list files of %s: %w", rev, err)
	}
	for _, f := range splitNUL(out) {
		info, path, ok := strings.Cut(f, "\t")
		part := strings.Fields(info)
		if !ok || len(part) != 3 {
			return nil, fmt.Errorf("list files of %s: git's answer was not understood: %q", rev, f)
		}
		files[path] = Entry{Mode: part[0], ID: part[2]}
	}
	return files, nil
}

// MergeBase is the newest common ancestor of two commits, "" when there is none.
func (g *Git) MergeBase(ctx context.Context, a, b string) (string, error) {
	switch {
	case a == b:
		return a, nil
	case g.bare == "" || !isID(a) || !isID(b):
	case g.ahead(a, b):
		return a, nil
	case g.ahead(b, a):
		return b, nil
	}
	out, err := g.Run(ctx, "merge-base", a, b)
	var e *Error
	if errors.As(err, &e) && e.Code == 1 && e.Stderr == "" {
		return "", nil
	}
	return strings.TrimSpace(string(out)), err
}

// Refs lists refs below prefixes with the commits that they are at.
func (g *Git) Refs(ctx context.Context, prefixes ...string) (map[string]string, error) {
	if refs, ok := g.fileRefs(prefixes); ok {
		return refs, ctx.Err()
	}
	out, err := g.Run(ctx, append([]string{"for-each-ref", "--format=%(objectname) %(refname)"}, prefixes...)...)
	if err != nil {
		return nil, fmt.Errorf("list branches: %w", err)
	}
	refs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if id, ref, ok := strings.Cut(strings.TrimRight(line, "\n"), " "); ok {
			refs[ref] = id
		}
	}
	return refs, nil
}

// InitBare makes the directory, which must exist, a repository without a
// checkout: of SHA-1 and with refs as files, which is what this package writes,
// whatever the user's settings prefer.
func (g *Git) InitBare(ctx context.Context, branch string) error {
	h := *g
	h.gitDir = ""
	if _, err := h.Run(ctx, "-c", "init.defaultRefFormat=files", "init", "--quiet", "--bare", "--template=", "--object-format=sha1", "--initial-branch="+branch, "."); err != nil {
		return fmt.Errorf("make repository %s: %w", g.dir, err)
	}
	return nil
}

// FetchRefs makes the right sides of refspecs what the remote has of the left ones:
// refs that it has no more go here, too, whatever the user's fetch.prune says. So they
// must be copies, and nothing else.
func (g *Git) FetchRefs(ctx context.Context, remote string, specs ...string) error {
	args := append([]string{"fetch", "--quiet", "--prune", "--no-prune-tags", "--no-tags", "--no-write-fetch-head", "--refmap=", "--", remote}, specs...)
	if _, err := g.run(ctx, g.o.Remote, nil, args...); err != nil {
		return fmt.Errorf("fetch from %s: %w", remote, err)
	}
	return nil
}

// PushRefs sends refs to a remote, by refspecs; by force only what says so. leases are
// --force-with-lease arguments for refs that are to be removed there.
func (g *Git) PushRefs(ctx context.Context, remote string, leases []string, specs ...string) error {
	args := []string{"push", "--quiet", "--no-verify"}
	for _, l := range leases {
		args = append(args, "--force-with-lease="+l)
	}
	args = append(append(args, "--", remote), specs...)
	if _, err := g.run(ctx, g.o.Remote, nil, args...); err != nil {
		return fmt.Errorf("push to %s: %w", remote, err)
	}
	return nil
}
