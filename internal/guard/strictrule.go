package guard

import (
	"path/filepath"
	"slices"
	"strings"
)

// strict reports whether a rule that refuses, or asks about, a command is of this one though
// its words are others: the program is named by its place, or options stand before the
// subcommand. One that allows is for the words as they are written.
func (a *analysis) strict(r *Rule, argv []word, st *state) bool {
	shape := strings.Fields(r.Shape)
	if len(shape) == 0 || len(argv) == 0 || !argv[0].known() {
		return false
	}
	named := slices.Clone(argv)
	switch base, ok := a.installed(argv[0].text, st); {
	case ok:
		named[0].text = base
	case a.sameProgram(shape[0], argv[0].text, st):
		named[0].text = shape[0]
	}
	if r.matches(named) {
		return true
	}
	if len(shape) < 2 || strings.HasPrefix(shape[1], "-") || shape[1] == "..." {
		return false
	}
	// How many words belong to an option nobody tells here, so each number counts.
	for n := 1; n < len(named)-1 && (isOption(named[n]) || isOption(named[n-1])); n++ {
		if r.matches(slices.Concat(named[:1], named[n+1:])) {
			return true
		}
	}
	return false
}

func isOption(w word) bool { return len(w.text) > 1 && w.text[0] == '-' }

// sameProgram reports whether a program's place that a rule names, from the project, is the
// one that a command names.
func (a *analysis) sameProgram(shape, name string, st *state) bool {
	if st == nil || !strings.Contains(shape, "/") || strings.ContainsAny(shape, "*~") || !strings.Contains(name, "/") {
		return false
	}
	for _, dir := range st.cwds {
		at := a.physical(dir, name)
		if filepath.IsAbs(shape) && a.physical("/", shape) == at || slices.ContainsFunc(a.roots, func(root string) bool { return a.physical(root, shape) == at }) {
			return true
		}
	}
	return false
}
