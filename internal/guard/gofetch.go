package guard

import (
	"path/filepath"
	"strings"
)

// maxModule is how large a go.mod is that is read, in bytes.
const maxModule = 1 << 18

// packaged judges a word that is a package or a module for go. One that the project does
// not require is looked for at the host that its path begins with, and what is in the
// path is told there.
func (a *analysis) packaged(w word, st *state) {
	text := w.text
	switch {
	case strings.HasPrefix(text, "."), strings.HasPrefix(text, "/"), w.origin.names() && !w.known() && strings.HasPrefix(text, unknown):
		if !strings.Contains(text, "@") {
			return // a directory
		}
	case w.known() && !strings.Contains(text, "@"):
		host, _, deeper := strings.Cut(text, "/")
		if !deeper || !strings.Contains(host, ".") || a.required(text, st) {
			return
		}
	}
	a.reaches(w.shown())
	a.give("network", Ask, w.shown(), "go looks for it on the network", "name packages of the project, or of what it requires")
}

// required reports whether a package's path lies in a module that the project names.
func (a *analysis) required(path string, st *state) bool {
	if len(st.cwds) == 0 {
		return false
	}
	for _, dir := range st.cwds {
		if !a.moduleHas(dir, path) {
			return false
		}
	}
	return true
}

// moduleHas reports whether the go.mod of a directory, or of the next one above it that
// has one, names a module in which a package's path lies.
func (a *analysis) moduleHas(dir, path string) bool {
	for ; a.root(dir) != ""; dir = filepath.Dir(dir) {
		text, ok := fileOf(filepath.Join(dir, "go.mod"), maxModule)
		if !ok {
			continue
		}
		for _, name := range strings.Fields(string(text)) {
			rest, found := strings.CutPrefix(path, strings.Trim(name, `"`))
			version := len(name) > 1 && name[0] == 'v' && name[1] >= '0' && name[1] <= '9'
			if found && !version && strings.Contains(name, ".") && (rest == "" || strings.IndexByte("./", rest[0]) >= 0) {
				return true
			}
		}
		return false
	}
	return false
}
