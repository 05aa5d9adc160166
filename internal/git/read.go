package git

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git's object ids are SHA-1
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"reprise/internal/durable"
)

// A process of git is ten times the work of reading a file. So refs, and objects
// that are files of their own, are read here, in a repository that this package
// was given outright ([NewBare]). What is not found so, is packed, damaged or
// kept in another way is left to the git program, whose word counts.

// maxLoose is how large an object is read here.
const maxLoose = 64 << 20

// reads says that refs of this repository are files.
func (g *Git) reads() bool {
	if g.bare == "" {
		return false
	}
	_, err := os.Lstat(filepath.Join(g.bare, "reftable"))
	return errors.Is(err, fs.ErrNotExist)
}

// loose reads an object that is a file of its own, false where it is none or is
// damaged.
func (g *Git) loose(id string) (Object, bool) {
	if !isID(id) {
		return Object{}, false
	}
	raw, err := durable.Read(filepath.Join(g.bare, "objects", id[:2], id[2:]))
	if err != nil {
		return Object{}, false
	}
	z, err := zlib.NewReader(bytes.NewReader(raw))
	if err != nil {
		return Object{}, false
	}
	defer z.Close()
	data, err := io.ReadAll(io.LimitReader(z, maxLoose+1))
	if err != nil || len(data) > maxLoose {
		return Object{}, false
	}
	if sum := sha1.Sum(data); hex.EncodeToString(sum[:]) != id {
		return Object{}, false
	}
	head, body, ok := bytes.Cut(data, []byte{0})
	kind, size, ok2 := strings.Cut(string(head), " ")
	if n, err := strconv.Atoi(size); err != nil || !ok || !ok2 || n != len(body) {
		return Object{}, false
	}
	return Object{ID: id, Kind: kind, Data: body[:len(body):len(body)]}, true
}

func isID(s string) bool {
	if len(s) != 2*sha1.Size {
		return false
	}
	for _, c := range []byte(s) {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}

// reader answers names of objects, each ref and tree being read once.
type reader struct {
	g      *Git
	refs   map[string]string
	trees  map[string]map[string]Entry
	packed map[string]string
}

// object reads what a name stands for, as [Git.Objects] takes names; known is
// false where git has to be asked.
func (r *reader) object(name string) (o Object, known bool) {
	rev, path, hasPath := strings.Cut(name, ":")
	rev, toTree := strings.CutSuffix(rev, "^{tree}")
	id := rev
	if strings.HasPrefix(rev, "refs/") {
		if id, known = r.ref(rev, 0); !known || id == "" {
			return Object{}, known
		}
	}
	o, known = r.g.loose(id)
	if !known {
		return Object{}, false
	}
	if !hasPath && !toTree {
		return o, true
	}
	if o.Kind == "commit" {
		tree, _ := CommitOf(o.Data)
		if o, known = r.g.loose(tree); !known {
			return Object{}, false
		}
	}
	if o.Kind != "tree" {
		return Object{}, false
	}
	if !hasPath || path == "" {
		return o, true
	}
	return r.below(o, path)
}

// below reads what a path in a tree stands for.
func (r *reader) below(o Object, path string) (Object, bool) {
	for part := range strings.SplitSeq(path, "/") {
		if o.Kind != "tree" {
			return Object{}, true
		}
		entries, known := r.trees[o.ID]
		if !known {
			var err error
			if entries, err = ParseTree(o.Data); err != nil {
				return Object{}, false
			}
			r.trees[o.ID] = entries
		}
		e, there := entries[part]
		if !there {
			return Object{}, true
		}
		if e.Mode == ModeRepo {
			return Object{}, false
		}
		if o, known = r.g.loose(e.ID); !known {
			return Object{}, false
		}
	}
	return o, true
}

// ref is what a ref is at, "" where there is none; known is false where git has to
// be asked.
func (r *reader) ref(name string, depth int) (id string, known bool) {
	if id, known = r.refs[name]; known {
		return id, true
	}
	id, known = r.readRef(name, depth)
	if known {
		r.refs[name] = id
	}
	return id, known
}

func (r *reader) readRef(name string, depth int) (string, bool) {
	if depth > 5 || strings.Contains(name, "..") || strings.ContainsAny(name, "\\*?[^~ ") {
		return "", false
	}
	data, err := durable.Read(filepath.Join(r.g.bare, filepath.FromSlash(name)))
	text := strings.TrimRight(string(data), "\r\n \t")
	switch {
	case err == nil && isID(text):
		return text, true
	case err == nil:
		to, ok := strings.CutPrefix(text, "ref: ")
		if !ok {
			return "", false
		}
		return r.ref(strings.TrimSpace(to), depth+1)
	case !errors.Is(err, fs.ErrNotExist):
		if fi, serr := os.Lstat(filepath.Join(r.g.bare, filepath.FromSlash(name))); serr != nil || !fi.IsDir() {
			return "", false
		}
	}
	// A ref that is packed at this moment is written there before its file goes.
	packed, ok := r.readPacked()
	return packed[name], ok
}

func (r *reader) readPacked() (map[string]string, bool) {
	if r.packed != nil {
		return r.packed, true
	}
	f, err := durable.Open(filepath.Join(r.g.bare, "packed-refs"))
	if errors.Is(err, fs.ErrNotExist) {
		r.packed = map[string]string{}
		return r.packed, true
	}
	if err != nil {
		return nil, false
	}
	defer f.Close()
	out := map[string]string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "^") || line == "" {
			continue
		}
		id, name, ok := strings.Cut(line, " ")
		if !ok || !isID(id) {
			return nil, false
		}
		out[name] = id
	}
	if lines.Err() != nil {
		return nil, false
	}
	r.packed = out
	return out, true
}

func (g *Git) reader() *reader {
	return &reader{g: g, refs: map[string]string{}, trees: map[string]map[string]Entry{}}
}

// looseObjects answers as many names as it can; the numbers of the others are in rest.
func (g *Git) looseObjects(names []string) (list []Object, rest []int) {
	list = make([]Object, len(names))
	r := g.reader()
	for i, n := range names {
		o, known := r.object(n)
		if !known {
			rest = append(rest, i)
			continue
		}
		list[i] = o
	}
	return list, rest
}

// fileRefs is [Git.Refs] from the files; known is false where git has to be asked.
func (g *Git) fileRefs(prefixes []string) (refs map[string]string, known bool) {
	if !g.reads() {
		return nil, false
	}
	// The loose ones first: one that is being packed is then in one of both.
	names := map[string]bool{}
	for _, top := range tops(prefixes) {
		root := filepath.Join(g.bare, filepath.FromSlash(top))
		err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(g.bare, p)
			if err != nil {
				return err
			}
			if name := filepath.ToSlash(rel); !d.IsDir() && !strings.HasSuffix(name, ".lock") && refMatches(name, prefixes) {
				names[name] = true
			}
			return nil
		})
		if err != nil {
			return nil, false
		}
	}
	r := g.reader()
	out := map[string]string{}
	for name := range names {
		id, known := r.ref(name, 0)
		if !known {
			return nil, false
		}
		if id != "" {
			out[name] = id
		}
	}
	packed, ok := r.readPacked()
	for name, id := range packed {
		if _, have := out[name]; !have && !names[name] && refMatches(name, prefixes) {
			out[name] = id
		}
	}
	return out, ok
}

// tops are the directories that refs of these prefixes are below.
func tops(prefixes []string) []string {
	var out []string
	for _, p := range prefixes {
		if i := strings.IndexAny(p, "*?["); i >= 0 {
			p = p[:i]
		}
		if !strings.HasSuffix(p, "/") {
			out = append(out, path.Dir(p))
			continue
		}
		out = append(out, strings.TrimSuffix(p, "/"))
	}
	if len(prefixes) == 0 {
		out = []string{"refs"}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func refMatches(name string, prefixes []string) bool {
	if len(prefixes) == 0 {
		return true
	}
	return slices.ContainsFunc(prefixes, func(p string) bool {
		ok, err := path.Match(p, name)
		return err == nil && ok || name == p || strings.HasPrefix(name, strings.TrimSuffix(p, "/")+"/")
	})
}

// looseFiles is [Git.Files] where all trees are files of their own.
func (g *Git) looseFiles(rev string) (map[string]Entry, bool) {
	if !g.reads() {
		return nil, false
	}
	top, known := g.reader().object(rev + "^{tree}")
	if !known || top.Kind != "tree" {
		return nil, false
	}
	files := map[string]Entry{}
	var walk func(dir string, data []byte, depth int) bool
	walk = func(dir string, data []byte, depth int) bool {
		entries, err := ParseTree(data)
		if err != nil || depth > 200 {
			return false
		}
		for name, e := range entries {
			name = path.Join(dir, name)
			if e.Mode != ModeTree {
				files[name] = e
				continue
			}
			o, known := g.loose(e.ID)
			if !known || o.Kind != "tree" || !walk(name, o.Data, depth+1) {
				return false
			}
		}
		return true
	}
	return files, walk("", top.Data, 0)
}

// Contains says that a commit is in the history of a tip, as far as files near the tip
// tell; false says nothing.
func (g *Git) Contains(tip, commit string) bool {
	return g.bare != "" && isID(tip) && isID(commit) && g.ahead(commit, tip)
}

// near is how many commits are looked through here for whether one is in the
// history of another.
const near = 256

// ahead says that commit a is in the history of b, as far as this can be told from
// loose commits near b.
func (g *Git) ahead(a, b string) bool {
	todo, seen := []string{b}, map[string]bool{b: true}
	for n := 0; n < len(todo) && n < near; n++ {
		if todo[n] == a {
			return true
		}
		o, known := g.loose(todo[n])
		if !known || o.Kind != "commit" {
			continue
		}
		_, parents := CommitOf(o.Data)
		for _, p := range parents {
			if !seen[p] {
				seen[p] = true
				todo = append(todo, p)
			}
		}
	}
	return false
}
