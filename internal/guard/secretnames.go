package guard

import (
	"path/filepath"
	"strings"

	"reprise/internal/guard/names"
)

// Names that a command lists may be those of secrets: find . -name '.env' | xargs cat
// shows one, and so does cat *. Who searches the lines of many files, as grep -r does,
// is asked about only where the names that it gets were chosen by their names.

// secretAmong judges a name of a listing that is read now: a secret may be among them.
func (a *analysis) secretAmong(w word, l *listing, u use) bool {
	if u.looks {
		return false
	}
	search, program := false, a.fedBy
	if !a.feeding && len(a.cur.argv) > 0 {
		program = a.cur.argv[0].text
	}
	switch filepath.Base(program) {
	case "wc", "cksum", "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "sum", "shasum", "md5", "gofmt", "cloc", "tokei", "scc":
		return false // of what is in it little is told
	case "grep", "egrep", "fgrep", "ggrep", "rg", "ag", "ack":
		search = true
	}
	name := a.secretIn(l)
	if name == "" || search && !l.aimed {
		return false
	}
	a.reads(name)
	a.give("reads-secret", Ask, w.shown(), "among the names that "+l.what+" lists is "+shown(name)+", "+names.Secret("/"+name), "name what is to be read")
	return true
}

// secretIn is a secret among the names of a listing, "" where none is found. It has as
// much to spend as the look for links.
func (a *analysis) secretIn(l *listing) string {
	if l.secret != nil {
		return *l.secret
	}
	found, before := "", a.walked
	a.walked = 0
	w := walk{a: a, levels: l.w.levels, skip: l.w.skip, see: func(p, q string, link bool) bool {
		if !link && names.Secret(q) != "" && (l.fits == nil || l.fits(filepath.Base(q))) && (l.files == nil || l.files.lists(p)) && !(l.undotted && behindDot(p)) {
			found = p
		}
		return found != ""
	}}
	if l.files != nil {
		w.skip = l.files.skips
	}
	trees := l.trees
	if len(trees) == 0 && len(l.indexes) == 0 && len(l.links) == 0 {
		trees = l.instead
	}
	for _, t := range trees {
		if found == "" && a.root(t.at) != "" && isDir(t.at) && (w.skip == nil || !w.skip(t.path)) {
			w.down(t.path, t.at, w.levels)
		}
	}
	for _, q := range l.links {
		if found == "" && names.Secret(q) != "" {
			found = q
		}
	}
	for _, index := range l.indexes {
		if found == "" {
			found = strings.Join(indexedBy(index, 1, func(_ uint32, name []byte) bool { return names.Secret("/"+string(name)) != "" }), "")
		}
	}
	a.walked = before
	if l.files != nil && found != "" {
		l.aimed = !l.files.lists(filepath.Join(filepath.Dir(found), "other"))
	}
	l.secret = &found
	return found
}

// fdFits are the names that fd lists by its pattern, where that is plain letters.
func fdFits(g *args) func(string) bool {
	pattern := g.operands[0].text
	if strings.Trim(pattern, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" || g.has("-p") || g.has("--full-path") || g.has("-g") || g.has("--glob") {
		return nil
	}
	return func(base string) bool { return strings.Contains(strings.ToLower(base), strings.ToLower(pattern)) }
}

// secretsOf looks for secrets that a command shows as a part of what it does with whole
// directories.
func (a *analysis) secretsOf(g *args, st *state) {
	whole := g.has("-r") || g.has("--recursive") || g.has("--no-index")
	if !whole || g.has("-q") || g.has("--brief") || g.has("--name-only") || g.has("--name-status") || g.has("--stat") || g.has("--shortstat") || g.has("--numstat") || g.has("--quiet") {
		return
	}
	l := listing{what: g.name, w: walk{levels: walkForever}}
	for _, v := range g.operands {
		for _, base := range a.bases(v.text, st) {
			l.trees = append(l.trees, place{v.text, a.physical(base, v.text)})
		}
	}
	if name := a.secretIn(&l); name != "" {
		a.reads(name)
		a.give("reads-secret", Ask, name, "it shows what differs, also in "+names.Secret("/"+name), "add -q, or name what is to be compared")
	}
}

// secretPatterns judges patterns by which a search chooses files.
func (a *analysis) secretPatterns(g *args) {
	for _, o := range g.options {
		if o.opt == nil || !o.given {
			continue
		}
		switch o.opt.Name {
		case "--include", "-g", "--glob", "--iglob":
			a.aimedAt(o.arg)
		case "--type-add", "--type-set": // NAME:PATTERN
			a.aimedAt(word{text: o.arg.text[strings.LastIndexByte(o.arg.text, ':')+1:], src: o.arg.src})
		case "-G":
			a.aimedAt(word{text: strings.NewReplacer(`\`, "", "^", "", "$", "").Replace(o.arg.text), src: o.arg.src})
		}
	}
}

// aimedAt judges a pattern that may be one for secrets and for little else.
func (a *analysis) aimedAt(w word) {
	if aims(w.text) == "" {
		return
	}
	a.reads(w.shown())
	a.give("reads-secret", Ask, w.shown(), "it chooses files that hold secrets", "leave it out")
}

// behindDot reports whether a part of a path begins with a dot.
func behindDot(path string) bool {
	for _, part := range strings.Split(filepath.ToSlash(path), "/") {
		if len(part) > 1 && part[0] == '.' && part != ".." {
			return true
		}
	}
	return false
}

// found notes the names of the files in which a program found something.
func (a *analysis) found(g *args, st *state) origin {
	l := listing{what: g.name, w: walk{levels: walkForever}, only: "name the files", whole: true, linkless: true, instead: st.here()}
	if g.name == "rg" {
		l.undotted = !g.has("--hidden") && !g.has("-.") && !g.has("-uu") && !g.has("-uuu")
	}
	for i, v := range g.operands {
		if i == 0 && !g.has("-e") && !g.has("--regexp") && !g.has("-f") && !g.has("--file") && !g.has("--files") {
			continue
		}
		l.gone = l.gone || !v.known()
		for _, base := range a.bases(v.text, st) {
			if v.known() {
				l.trees = append(l.trees, place{v.text, a.physical(base, v.text)})
			}
		}
	}
	return a.list(l)
}
