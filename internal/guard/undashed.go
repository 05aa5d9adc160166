package guard

import (
	"bytes"
	"slices"
	"strings"
)

// undashed reports whether a word that begins with a name which another command lists
// is no option: none of these names begins with a dash now, and none comes to several
// words of which one does. Where the command itself may have written files it is not
// known.
func (a *analysis) undashed(w word) bool {
	if a.wrote || !w.origin.names() {
		return false
	}
	some := false
	for i, l := range a.listings {
		if w.origin>>min(i+2, 63)&1 == 0 {
			continue
		}
		if some = true; !a.dashless(l) {
			return false
		}
	}
	return some
}

// dashless looks through all that a listing may list, once.
func (a *analysis) dashless(l *listing) bool {
	if l.gone || l.pattern != "" || len(l.links) > 0 && len(l.indexes) == 0 {
		return false
	}
	if l.settled {
		return l.undash
	}
	l.settled = true
	trees := slices.DeleteFunc(slices.Clone(l.trees), func(t place) bool { return !isDir(t.at) })
	if len(trees) == 0 && len(l.indexes) == 0 {
		trees = l.instead
	}
	for _, t := range trees {
		if a.root(t.at) == "" || strings.HasPrefix(t.path, "-") || a.dashBelow(t, l) {
			return false
		}
	}
	for _, index := range l.indexes {
		if a.dashedIn(index) || !l.whole && a.brokenIn(index) != "" {
			return false
		}
	}
	l.undash = len(trees)+len(l.indexes) > 0
	return l.undash
}

// dashBelow reports whether a name begins with a dash, or may come to several words,
// somewhere below a place, or whether that is more than is looked through.
func (a *analysis) dashBelow(t place, l *listing) bool {
	found, before := false, a.walked
	a.walked = a.named
	w := walk{a: a, levels: l.w.levels, see: func(p, _ string, _ bool) bool {
		found = dashed(p) || !l.whole && breaks(p)
		return found
	}}
	w.down(t.path, t.at, w.levels)
	found = found || a.walked > maxWalk
	a.named, a.walked = a.walked, before
	return found
}

// dashed reports whether a path or a part of it begins with a dash: who lists it may
// leave out what stands before.
func dashed(path string) bool { return path[:1] == "-" || strings.Contains(path, "/-") }

// dashedIn reports whether a name in an index is [dashed], looked for once an index.
func (a *analysis) dashedIn(index string) bool {
	if is, ok := a.dashedNames[index]; ok {
		return is
	}
	if a.dashedNames == nil {
		a.dashedNames = map[string]bool{}
	}
	data, ok := indexData(index)
	// A split index ("link") has its names in another file, too.
	is := !ok || bytes.Contains(data, []byte("link")) || len(indexedBy(index, 1, func(_ uint32, name []byte) bool { return len(name) > 0 && dashed(string(name)) })) > 0
	a.dashedNames[index] = is
	return is
}

// listsIndex reports whether the names that a command of git lists are in its index, or
// beside it in its directory, and not in its history only.
func listsIndex(g *args) bool {
	switch g.name {
	case "ls-files":
		return !g.has("--with-tree")
	case "diff":
		return len(g.operands) == 0 && !slices.ContainsFunc(g.options, func(o option) bool {
			return o.opt == nil || o.short || !slices.Contains([]string{"--name-only", "--diff-filter", "-z", "--relative"}, o.opt.Name)
		})
	}
	return false
}
