// Package pathname says how two paths stand to each other. It opens nothing, and it owns
// no file and takes no lock.
package pathname

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Below is path as seen from dir, and whether it is dir itself (".") or lies below it,
// by the names alone: whoever minds links resolves them before.
func Below(dir, path string) (rel string, ok bool) {
	rel, err := filepath.Rel(dir, path)
	return rel, err == nil && filepath.IsLocal(rel)
}

// Within reports whether path is dir or lies below it, as [Below] does.
func Within(dir, path string) bool {
	_, ok := Below(dir, path)
	return ok
}

// Same reports whether two paths lead to one file or directory. Those that lead nowhere
// are the same by their names, on systems that ignore case without it.
func Same(a, b string) bool {
	a, b = filepath.Clean(a), filepath.Clean(b)
	if a == b {
		return true
	}
	ia, err := os.Stat(a)
	if err != nil {
		return (runtime.GOOS == "windows" || runtime.GOOS == "darwin") && strings.EqualFold(a, b)
	}
	ib, err := os.Stat(b)
	return err == nil && os.SameFile(ia, ib)
}
