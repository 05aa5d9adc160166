// Package guard decides whether a tool call of an agent would touch a
// directory that is none of its business: the memory directory first of all.
//
// It is a pure function of a policy and a call, apart from resolving symbolic
// links; it owns no file, writes none and takes no lock. It is one of several
// layers: an agent's interpreter can always be told to open a file in a way
// that no reader of commands foresees, so an operating system sandbox stands
// behind it where there is one.
package guard

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Policy says what is protected. Directories are absolute; each protects
// itself and everything below it.
type Policy struct {
	WorkDir   string   `json:"work_dir"`             // where the agent's relative paths start
	DenyAll   []string `json:"deny_all,omitempty"`   // neither readable nor writable
	DenyWrite []string `json:"deny_write,omitempty"` // readable, not writable
	Home      string   `json:"home,omitempty"`       // what ~ and $HOME mean; "" unknown
}

// Covers reports whether a path lies in (or is) a directory that may not even
// be read, and which.
func (p Policy) Covers(path string) (string, bool) {
	return within(path, p.DenyAll)
}

// within finds the directory of a list that holds the path.
func within(path string, dirs []string) (string, bool) {
	for _, form := range forms(path) {
		for _, d := range dirs {
			for _, df := range forms(d) {
				if inside(form, df) {
					return d, true
				}
			}
		}
	}
	return "", false
}

// forms are the names under which a path is compared: as written and with
// every symbolic link resolved.
func forms(path string) []string {
	clean := filepath.Clean(path)
	if r := Resolve(clean); r != clean {
		return []string{clean, r}
	}
	return []string{clean}
}

// foldCase says that the system's usual file system takes two spellings of a
// name for one.
const foldCase = runtime.GOOS == "darwin" || runtime.GOOS == "windows"

// inside reports whether path is dir or lies below it.
func inside(path, dir string) bool {
	if foldCase {
		path, dir = strings.ToLower(path), strings.ToLower(dir)
	}
	if path == dir {
		return true
	}
	sep := string(filepath.Separator)
	return strings.HasPrefix(path, strings.TrimSuffix(dir, sep)+sep)
}

// Resolve returns the path with symbolic links resolved as far as the path
// exists; what does not exist yet is kept as written. It never fails: where
// resolving is impossible the cleaned path comes back.
func Resolve(path string) string {
	path = filepath.Clean(path)
	rest := ""
	for dir := path; ; {
		if r, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(r, rest)
		}
		// A link whose target does not exist yet still says where a write
		// would go.
		if target, err := os.Readlink(dir); err == nil && len(rest)+len(target) < 4096 {
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(dir), target)
			}
			if target != dir {
				return resolveTarget(target, rest, 40)
			}
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
		dir = parent
	}
}

// resolveTarget follows dangling links; depth bounds a cycle.
func resolveTarget(target, rest string, depth int) string {
	for ; depth > 0; depth-- {
		next, err := os.Readlink(target)
		if err != nil {
			break
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(filepath.Dir(target), next)
		}
		target = next
	}
	dir, base := filepath.Split(target)
	if r, err := filepath.EvalSymlinks(filepath.Clean(dir)); err == nil {
		target = filepath.Join(r, base)
	}
	return filepath.Join(target, rest)
}
