package guard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/guard/know"
	"reprise/internal/guard/names"
)

// A tree that agents work in may hold symbolic links that lead out of it: whoever
// follows them on its way down (grep -R, find -L), or opens a name that another
// command listed (find . | xargs cat), reads what the link leads to. So the tree is
// looked through for such links, as far as can be done while a tool waits; where it
// is larger, it is asked about.

// Costs of looking for links, in parts of maxWalk. A directory is opened and closed,
// a link is read and followed.
const (
	walkName    = 1
	walkDir     = 10
	walkLink    = 6
	walkForever = 1 << 20 // levels: as far down as there is something
)

// maxWalk is what one call may spend on looking for links: with 20,000 names in 2,000
// directories it takes some 30 ms. Tests make it smaller.
var maxWalk = 40_000

// walk is one look through directories.
type walk struct {
	a      *analysis
	levels int  // how far down; 1 are the names in the directory itself
	follow bool // into directories that links lead to, as far as they are in the work
	// skip says of a directory that nothing in it counts, see of a link that it
	// settles the matter; path is as it would be written, at where it really is.
	skip func(path string) bool
	see  func(path, at string, link bool) bool
	been []string
}

// down looks through a directory; path is how it is written. It returns whether
// something settled the matter.
func (w *walk) down(path, at string, levels int) (settled bool) {
	if w.a.walked += walkDir; w.a.walked > maxWalk || slices.Contains(w.been, at) {
		return false
	}
	if w.follow {
		w.been = append(w.been, at)
	}
	f, err := openNow(at)
	if err != nil {
		return false // what cannot be read is not read by others either
	}
	var list []fs.DirEntry
	for err == nil && w.a.walked <= maxWalk {
		var some []fs.DirEntry
		some, err = f.ReadDir(1000)
		list = append(list, some...)
		w.a.walked += walkName * len(some)
	}
	f.Close()
	// A file system gives its names in any order; what is said of them is always the same.
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range list {
		p, q := below(path, e.Name()), below(at, e.Name())
		switch {
		case w.a.walked > maxWalk:
			return false
		case e.Type()&fs.ModeSymlink != 0:
			w.a.walked += walkLink
			if w.see(p, q, true) {
				return true
			}
			if !w.follow || levels <= 1 {
				continue
			}
			if to := w.a.leads(q); w.a.root(to) != "" && isDir(to) && w.down(p, to, levels-1) {
				return true
			}
		case !e.IsDir():
			if w.see(p, q, false) {
				return true
			}
		case levels > 1 && (w.skip == nil || !w.skip(p)) && w.down(p, q, levels-1):
			return true
		}
	}
	return false
}

// leads is where a link leads. Its steps are counted by the walk.
func (a *analysis) leads(link string) string {
	before := a.steps
	to := a.physical("", link)
	a.steps = before
	return to
}

// out reports whether a link leads to what reading would be asked about for, and that
// is there: nothing is read by others.
func (a *analysis) out(to string) bool {
	if a.root(to) != "" || system(to) || a.checkout(to) != "" {
		return false
	}
	_, err := os.Lstat(to)
	return !errors.Is(err, fs.ErrNotExist)
}

// tree looks through a directory for a link that leads out; keep says which links
// count, dirs whether those do that lead to directories. It returns what is wrong, ""
// where nothing is.
func (a *analysis) tree(path, at string, w walk, dirs bool, keep func(path string) bool) string {
	if a.root(at) == "" || !isDir(at) || w.skip != nil && w.skip(path) {
		return "" // judged by its own path, or nothing in it counts
	}
	why := ""
	w.a = a
	w.see = func(p, q string, link bool) bool {
		if !link || !keep(p) {
			return false
		}
		if to := a.leads(q); a.out(to) && (dirs || !isDir(to)) {
			why = "the link " + shown(p) + " leads to " + shown(to) + ", outside the project"
		}
		return why != ""
	}
	w.down(path, at, w.levels)
	if why == "" && a.walked > maxWalk {
		why = shown(path) + " holds more than is looked through for links that lead out of the project"
	}
	return why
}

// follows judges a program that goes down into directories and follows the links
// that it meets there.
func (a *analysis) follows(p *know.Program, g *args, st *state) {
	by, instead := "", ""
	for _, o := range g.options {
		if o.opt != nil && o.opt.Effect == know.Follow {
			if o.opt.Name == "-S" && !g.has("-r") && !g.has("--recursive") {
				continue // of a grep that only follows with -r
			}
			by, instead = o.opt.Name, "leave "+o.opt.Name+" out"
		}
	}
	if by == "" {
		if len(p.Follows) == 0 || slices.ContainsFunc(p.Follows, g.has) {
			return
		}
		by, instead = g.name, "add "+p.Follows[0]
	}
	w := walk{levels: walkForever, follow: true}
	switch g.name {
	case "ls", "dir", "vdir", "diff", "colordiff":
		if !g.has("-R") && !g.has("-r") && !g.has("--recursive") || g.name != "diff" && g.name != "colordiff" && !g.has("-R") && !g.has("--recursive") {
			w.levels = 1
		}
	}
	look := func(path, at string) bool {
		why := a.tree(path, at, w, true, func(string) bool { return true })
		switch {
		case why == "":
		case g.has("-delete"), g.name == "chmod", g.name == "chown", g.name == "chgrp", g.name == "setfacl":
			a.give("writes-outside", Deny, by, by+" follows links, and "+why, instead)
		default:
			a.give("reads-outside", Ask, by, by+" follows links, and "+why, instead+", or name what is to be read")
		}
		return why != ""
	}
	given := a.placesOf(p, g)
	for _, v := range given {
		for _, base := range a.bases(v.text, st) {
			var found []string
			switch {
			case !v.known():
				found = st.cwds // it may be any of what is there
			case v.glob && strings.ContainsAny(v.text, "*?["):
				found = a.matches(joined(base, v.text))
			default:
				found = []string{a.physical(base, v.text)}
			}
			for _, at := range found {
				if look(v.shown(), a.physical("", at)) {
					return
				}
			}
		}
	}
	if len(given) > 0 || !p.Cwd && !strings.HasSuffix(p.Name, "grep") {
		return
	}
	for _, dir := range st.cwds {
		if look(".", dir) {
			return
		}
	}
}

// placesOf are the files and directories that a program is given.
func (a *analysis) placesOf(p *know.Program, g *args) (out []word) {
	place := func(k know.Kind) bool {
		return k == know.Read || k == know.Look || k == know.Dir || k == know.Write || k == know.Delete
	}
	for i, v := range g.operands {
		if op := p.OperandAt(i, len(g.operands), g.has); op != nil && place(op.Kind) {
			out = append(out, v)
		}
	}
	for _, o := range g.options {
		if o.opt != nil && o.given && place(o.opt.Kind) && o.opt.Name != "-f" && o.opt.Name != "--file" {
			out = append(out, o.arg)
		}
	}
	return out
}

// listing is a list of names that a command writes out, for others to open.
type listing struct {
	what  string  // the command
	trees []place // directories
	// instead are directories that count where none of these is there.
	instead []place
	w       walk
	keep    func(path string) bool // nil: all
	links   []string               // names one by one
	only    string                 // how to leave links out
	whole   bool                   // each name stays one word, whatever is in it
	nul     bool                   // so it is for who reads up to a NUL
	files   *expression            // of find, asked about files; nil: all
	// linkless says that no links are among the names.
	linkless bool
	indexes  []string   // of git, whose names are listed
	known    [4]*string // what is wrong, by what is done with the names
	undotted bool       // names that begin with a dot are not among them
	aimed    bool       // it is secrets that are listed, as its words say
	secret   *string    // a secret among the names
	pattern  string     // for which they stand, of a loop
	// gone says that names may be among them that are not there any more, or that it
	// is not known where they are.
	gone    bool
	fits    func(base string) bool // which names may be among them, nil: any
	undash  bool                   // none begins with a dash,
	settled bool                   // if that was looked for
}

// place is a directory as it is written, and where it really is.
type place struct{ path, at string }

// list notes a listing; what comes out of it is of its origin.
func (a *analysis) list(l listing) origin {
	a.listings = append(a.listings, &l)
	return paths | 1<<min(len(a.listings)+1, 63)
}

// here are the directories that a command may be in.
func (st *state) here() (out []place) {
	for _, dir := range st.cwds {
		out = append(out, place{".", dir})
	}
	return out
}

// anywhere is the origin of names that may be any below the current directory.
func (a *analysis) anywhere(st *state) origin {
	return a.list(listing{what: "the command", trees: st.here(), w: walk{levels: walkForever}, only: "name the files", whole: true})
}

// lists notes what the names that a program writes out may be.
func (a *analysis) lists(g *args, st *state) origin {
	l := listing{what: g.name, w: walk{levels: walkForever}, only: "list with find -type f"}
	switch g.name {
	case "fd":
		for _, o := range g.options {
			if o.opt != nil && (o.opt.Name == "-t" || o.opt.Name == "--type") && (o.arg.text == "f" || o.arg.text == "file" || o.arg.text == "d" || o.arg.text == "directory") {
				l.linkless = true
			}
		}
		l.only = "give fd -t f"
		l.undotted = !g.has("-H") && !g.has("--hidden") && !g.has("-u") && !g.has("--unrestricted")
	case "ls", "dir":
		if !g.has("-R") && !g.has("--recursive") {
			l.w.levels = 1
		}
		l.undotted = !g.has("-a") && !g.has("-A") && !g.has("-f") && !g.has("--all") && !g.has("--almost-all")
	}
	if g.outer != nil && g.root() == "git" {
		l.only, l.nul = "name the files", g.has("-z")
		l.whole, l.gone, l.instead = l.nul, !listsIndex(g), st.here()
		l.aimed = slices.ContainsFunc(g.operands, func(w word) bool { return names.Secret("/"+w.text) != "" })
		for _, dir := range a.gitIn {
			if g.has("-o") || g.has("--others") {
				l.trees = append(l.trees, a.besideIndex(g, dir)...)
			}
			l.links = append(l.links, a.indexLinks(dir)...)
			for _, git := range a.gitDirs(dir) {
				if git.top != "" {
					l.indexes = append(l.indexes, filepath.Join(git.own, "index"))
				}
			}
		}
		return a.list(l)
	}
	l.nul = g.has("-0") || g.has("--print0")
	l.whole = l.nul
	for i, v := range g.operands {
		if i == 0 && (g.name == "fd" || g.name == "fdfind") {
			l.fits = fdFits(g)
			continue // it is what the names are to be
		}
		l.gone = l.gone || !v.known()
		for _, base := range a.bases(v.text, st) {
			l.trees = append(l.trees, place{v.text, a.physical(base, v.text)})
		}
	}
	l.instead = st.here()
	return a.list(l)
}

// besideIndex are the directories of which git lists what is not in its index.
func (a *analysis) besideIndex(g *args, dir string) (out []place) {
	for _, w := range g.operands {
		at := a.physical(dir, w.text)
		if !w.known() || w.glob || !isDir(at) {
			return []place{{".", dir}}
		}
		out = append(out, place{w.text, at})
	}
	if len(out) == 0 {
		out = append(out, place{".", dir})
	}
	return out
}

// apart notes that names are read by somebody who does not take them up to a NUL.
func (a *analysis) apart(o origin) {
	for i, l := range a.listings {
		if o.names() && o>>min(i+2, 63)&1 != 0 && l.nul {
			l.whole, l.known = false, [4]*string{}
		}
	}
}

// breaks reports whether a name that is taken apart at blanks, or out of which quotes
// and backslashes are taken, comes to words that lead elsewhere or are options: a file
// "passwd" in a directory "a /etc" is one, and so is "x -oy".
func breaks(name string) bool {
	if !strings.ContainsAny(name, " \t\n\r'\"\\") {
		return false
	}
	plain := strings.NewReplacer("'", "", `"`, "", `\`, "").Replace(name)
	for i, w := range strings.Fields(plain) {
		if i > 0 && strings.ContainsAny(w[:1], "/-~") || slices.Contains(strings.Split(w, "/"), "..") {
			return true
		}
	}
	return false
}

const brokenReason = " comes to other words where it is taken apart at blanks and quotes"

func brokenName(name string) string { return shown(name) + brokenReason }

// broken looks through a directory for a name that [breaks] and is listed. It has as
// much to spend as the look for links.
func (a *analysis) broken(t place, l *listing) string {
	if a.root(t.at) == "" {
		return ""
	}
	why, before := "", a.walked
	a.walked = a.named
	w := walk{a: a, levels: l.w.levels, see: func(p, _ string, _ bool) bool {
		if breaks(p) && (l.files == nil || l.files.lists(p)) {
			why = brokenName(p)
		}
		return why != ""
	}}
	if l.files != nil {
		w.skip = l.files.skips
	}
	if w.skip == nil || !w.skip(t.path) {
		w.down(t.path, t.at, w.levels)
	}
	if why == "" && a.walked > maxWalk {
		why = shown(t.path) + " holds more than is looked through for a name that" + brokenReason
	}
	a.named, a.walked = a.walked, before
	return why
}

// brokenIn is a name in an index that [breaks], "" where there is none. It is looked
// for once an index.
func (a *analysis) brokenIn(index string) string {
	if name, ok := a.brokenNames[index]; ok {
		return name
	}
	found := indexedBy(index, 1, func(_ uint32, name []byte) bool { return breaks(string(name)) })
	if a.brokenNames == nil {
		a.brokenNames = map[string]string{}
	}
	a.brokenNames[index] = strings.Join(found, "")
	return a.brokenNames[index]
}

// finds notes what find lists: links are among it where its conditions let them. What
// it lists is taken apart by others, unless it ends each name with a NUL.
func (a *analysis) finds(argv []word, st *state, whole bool) origin {
	e, dirs := findExpression(argv)
	files, _ := findExpression(argv)
	files.file = true
	l := listing{whole: whole, nul: whole, files: files, what: "find", w: walk{levels: e.levels, skip: e.skips}, keep: e.lists, only: "add -type f to find"}
	for _, v := range dirs {
		if !v.known() {
			l.trees = append(l.trees, st.here()...)
			continue
		}
		for _, base := range a.bases(v.text, st) {
			l.trees = append(l.trees, place{v.text, a.physical(base, v.text)})
		}
	}
	return a.list(l)
}

// globbed notes the names that a pattern stands for and that are written out.
func (a *analysis) globbed(what string, w word, nul bool, st *state) origin {
	l := listing{what: what, w: walk{levels: walkForever}, only: "list with find -type f", whole: nul, nul: nul}
	for _, base := range a.bases(w.text, st) {
		l.links = append(l.links, a.matches(joined(base, w.text))...)
		if strings.Contains(w.text, "**") {
			l.trees = append(l.trees, place{".", base})
		}
	}
	return a.list(l)
}

// patterned notes the names that a pattern stands for, one of which a word then is.
func (a *analysis) patterned(w word, st *state) origin {
	o := a.globbed(shown(w.text), w, true, st)
	l := a.listings[len(a.listings)-1]
	l.pattern, l.only = w.text, "read files only where they are no links"
	return o
}

// matched judges a word that is read now, and in which the name stands that one of a
// loop's patterns matched.
func (a *analysis) matched(w word, u use) {
	v := w
	v.text, v.origin = unknown, w.listed
	for i, l := range a.listings {
		if w.listed>>min(i+2, 63)&1 != 0 && l.pattern != strings.TrimPrefix(w.text, "./") {
			v.text = unknown + "/" // more stands beside it
		}
	}
	a.opens(v, u)
}

// opens judges a name that another command wrote out, and that is read now: it may
// be a link that leads out. Where more stands beside it, it is another name than the
// one that was listed, and may lie in a directory that a link leads to.
func (a *analysis) opens(w word, u use) {
	exact, dirs := strings.Trim(w.text, unknown) == "", a.entersDirs()
	for i, l := range a.listings {
		if w.origin>>min(i+2, 63)&1 == 0 {
			continue
		}
		if why := a.leadingOut(l, exact, dirs || !exact); why != "" {
			if strings.HasSuffix(why, brokenReason) {
				a.give("reads-outside", Ask, w.shown(), "among the names that "+l.what+" lists "+why, "list and read them with an end that no name has (-print0, -z, xargs -0)")
				return
			}
			a.give("reads-outside", Ask, w.shown(), "of the names that "+l.what+" lists one may be a link, and "+why, l.only)
			return
		}
		if a.secretAmong(w, l, u) {
			return
		}
	}
}

// bareNames reports whether all names of the listings are names in one directory each, as ls
// tells them: without a directory before them, and none that begins with a dot.
func (a *analysis) bareNames(o origin) bool {
	for i, l := range a.listings {
		if o>>min(i+2, 63)&1 == 0 {
			continue
		}
		if l.w.levels != 1 || !l.undotted || slices.ContainsFunc(l.trees, func(t place) bool { return !isDir(t.at) }) {
			return false
		}
	}
	return true
}

// leadingOut says what is wrong with the names of a listing, looked for once.
func (a *analysis) leadingOut(l *listing, exact, dirs bool) string {
	n := 0
	if exact {
		n = 1
	}
	if dirs {
		n += 2
	}
	if l.known[n] != nil {
		return *l.known[n]
	}
	why := ""
	keep := func(p string) bool { return true }
	w := l.w
	if exact && l.keep != nil {
		keep = l.keep
	} else {
		w.skip = nil
	}
	trees := slices.DeleteFunc(slices.Clone(l.trees), func(t place) bool { return !isDir(t.at) })
	if len(trees) == 0 && (len(l.indexes) == 0 || !exact) {
		trees = l.instead
	}
	for _, t := range trees {
		// Where it is not the very name that is used, links beside it count.
		if why == "" && (!l.linkless || !exact || dirs) {
			why = a.tree(t.path, t.at, w, dirs, keep)
		}
		if why == "" && !l.whole {
			why = a.broken(t, l)
		}
	}
	for _, q := range l.links {
		if name := filepath.Base(q); why == "" && !l.whole && breaks(name) {
			why = brokenName(name)
		}
	}
	for _, index := range l.indexes {
		if l.whole {
			break
		}
		if name := a.brokenIn(index); why == "" && name != "" {
			why = brokenName(name)
		}
	}
	for _, q := range l.links {
		a.walked += walkLink
		if to := a.leads(q); why == "" && a.out(to) && (dirs || !isDir(to)) {
			why = "the link " + shown(q) + " leads to " + shown(to) + ", outside the project"
		}
	}
	l.known[n] = &why
	return why
}

// entersDirs reports whether the command that is looked at may go into a directory
// that it is given: others, as cat, read files only.
func (a *analysis) entersDirs() bool {
	argv := a.cur.argv
	if len(argv) == 0 {
		return true
	}
	p := know.Find(argv[0].text)
	if p == nil || p.Cwd || len(p.Follows) > 0 || p.Base != know.Flag || len(p.Subs) > 0 {
		return true
	}
	return slices.ContainsFunc(argv[1:], func(w word) bool {
		return strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "recur") || strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "--") && strings.ContainsAny(w.text, "rRd")
	})
}

// anyDepth judges a pattern with **, which stands for any number of directories for
// zsh and, with globstar, for bash: links and secrets in them count by their names.
func (a *analysis) anyDepth(w word, top string, u use) bool {
	rest := w.text[strings.Index(w.text, "**"):]
	last := rest[strings.LastIndexByte(rest, '/')+1:]
	through := strings.Count(rest, "/") > 1 || strings.HasPrefix(rest, "***")
	fits := func(p string) bool {
		name := p[strings.LastIndexByte(p, '/')+1:]
		return last == "" || names.Match(last, name) && !dotted(last, name)
	}
	done := false
	l := walk{a: a, levels: walkForever, follow: strings.HasPrefix(rest, "***")}
	l.see = func(p, q string, link bool) bool {
		switch {
		case link && (through || fits(p)):
			done = a.one(w, a.leads(q), u)
		case !link && u.read && !u.looks && fits(p) && names.Secret(q) != "":
			done = a.one(w, q, u)
		}
		return done
	}
	if a.root(top) == "" {
		return false
	}
	l.down(top, top, l.levels)
	if !done && a.walked > maxWalk {
		a.give("reads-outside", Ask, w.shown(), shown(top)+" holds more than is looked through for links that lead out of the project", "name the files, or use find -type f")
		return true
	}
	return done
}
