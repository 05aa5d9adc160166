package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/durable"
	"reprise/internal/git"
)

// Marks are what is in a tree's repositories beside files and objects, by what a person calls
// it: branches, tags, settings, hooks. A check has no business with any of them.
type Marks map[string]string

// maxMarks bounds how many are looked at in a repository.
const maxMarks = 100_000

// Marks are those of now, of the tree and of the repositories that a listing of it has. What
// cannot be read is not looked at.
func (t Tree) Marks(l Listing) Marks {
	m := Marks{}
	if !t.Git {
		return m
	}
	m.of(t.own.dir, t.own.common, "")
	for _, rel := range l.Repos {
		if common := git.CommonDir(filepath.Join(t.Top, filepath.FromSlash(rel))); common != "" && common != t.own.common {
			m.of(common, common, " of "+rel)
		}
	}
	return m
}

// of notes those of a repository.
func (m Marks) of(admin, common, where string) {
	for ref := range strings.Lines(readText(filepath.Join(common, "packed-refs"))) {
		if id, name, ok := strings.Cut(strings.TrimSpace(ref), " "); ok && !strings.HasPrefix(id, "#") {
			m.ref(name, id, where)
		}
	}
	files(filepath.Join(common, "refs"), func(rel string, data []byte) { m.ref("refs/"+rel, strings.TrimSpace(string(data)), where) })
	files(filepath.Join(common, "reftable"), func(rel string, data []byte) { m["branches or tags"+where] += sum(rel, data) })
	files(filepath.Join(common, "hooks"), func(rel string, data []byte) {
		if !strings.HasSuffix(rel, ".sample") {
			m["the hook "+rel+where] = sum("", data)
		}
	})
	for _, name := range [...]string{filepath.Join(common, "config"), filepath.Join(common, "config.worktree"), filepath.Join(admin, "config.worktree")} {
		if text := readText(name); text != "" {
			m["settings in "+name] = sum("", []byte(text))
		}
	}
	for _, name := range [...]string{"exclude", "attributes"} {
		if text := readText(filepath.Join(common, "info", name)); text != "" {
			m["what info/"+name+where+" says"] = sum("", []byte(text))
		}
	}
	m["what is checked out"+where] = strings.TrimSpace(readText(filepath.Join(admin, "HEAD")))
}

// ref notes one of a repository. What was fetched is none: that happens beside.
func (m Marks) ref(name, id, where string) {
	switch what, rest, _ := strings.Cut(strings.TrimPrefix(name, "refs/"), "/"); what {
	case "heads":
		m["the branch "+rest+where] = id
	case "tags":
		m["the tag "+rest+where] = id
	case "remotes", "prefetch":
	default:
		m[name+where] = id
	}
}

// files reads what is in a directory and below it.
func files(dir string, each func(rel string, data []byte)) {
	n := 0
	_ = fs.WalkDir(os.DirFS(dir), ".", func(p string, d fs.DirEntry, err error) error {
		if n++; n > maxMarks {
			return fs.SkipAll
		}
		if err != nil || d.IsDir() || strings.HasSuffix(p, ".lock") {
			return nil //nolint:nilerr // what cannot be read is not looked at
		}
		if data, err := durable.Read(filepath.Join(dir, filepath.FromSlash(p))); err == nil {
			each(path.Clean(p), data)
		}
		return nil
	})
}

func sum(name string, data []byte) string {
	h := sha256.Sum256(append([]byte(name+"\x00"), data...))
	return hex.EncodeToString(h[:])
}

// Changed are those that were made, changed or removed since.
func (m Marks) Changed(now Marks) []string {
	var out []string
	for name, was := range m {
		if is, ok := now[name]; !ok {
			out = append(out, name+" (removed)")
		} else if is != was {
			out = append(out, name+" (changed)")
		}
	}
	for name := range maps.Keys(now) {
		if _, ok := m[name]; !ok {
			out = append(out, name+" (new)")
		}
	}
	slices.Sort(out)
	return out
}
