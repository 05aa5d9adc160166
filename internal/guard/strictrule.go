package guard

import (
	"path/filepath"
	"slices"
	"strings"
)

// strict reports whether a rule that refuses, or asks about, a command is of this one though
// its words are others: the program is named by its place, or options stand before the
// subcommand. One that allows is for the words as they are written, but for the place.
func (a *analysis) strict(r *Rule, argv []word, st *state) bool {
	shape := strings.Fields(r.Shape)
	named := a.placed(r, argv, st)
	if r.matches(argv) || r.matches(named) {
		return true
	}
	if base, ok := a.installed(argv[0].text, st); ok {
		if named = slices.Concat([]word{{text: base}}, argv[1:]); r.matches(named) {
			return true
		}
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

// placed are the words of a command with the program by the name that a rule has for it,
// where both name one place: a rule's name of a place counts from the project, a command's
// from where it is. A rule that allows has to be of it wherever the command may be; nil
// are the words that it cannot be of.
func (a *analysis) placed(r *Rule, argv []word, st *state) []word {
	shape, _, _ := strings.Cut(strings.TrimSpace(r.Shape), " ")
	if len(r.Words) > 0 {
		shape = r.Words[0]
	}
	if st == nil || len(argv) == 0 || !argv[0].known() || !strings.Contains(shape, "/") || strings.ContainsAny(shape, "*~") {
		return argv
	}
	same := func(dir string) bool {
		at := a.physical(dir, argv[0].text)
		if filepath.IsAbs(shape) {
			return a.physical("/", shape) == at // also where there is no project
		}
		return slices.ContainsFunc(a.roots, func(root string) bool { return a.physical(root, shape) == at })
	}
	other := func(dir string) bool { return !same(dir) }
	named := strings.Contains(argv[0].text, "/")
	switch {
	case r.Decision != Allow && !(named && slices.ContainsFunc(st.cwds, same)):
		return argv
	case r.Decision == Allow && (!named || len(st.cwds) == 0 || slices.ContainsFunc(st.cwds, other)):
		return nil
	}
	return slices.Concat([]word{{text: shape, src: argv[0].src}}, argv[1:])
}
