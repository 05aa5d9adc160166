package guard

import (
	"os"
	"path/filepath"
	"strings"

	"reprise/internal/guard/know"
	"reprise/internal/guard/names"
)

// What cp, ln and install make has a name that stands nowhere in the command where it
// is put into a directory: it is called as what it was made from. Where that is a whole
// tree, each file in it counts.

// copies judges where the files of a command come to lie, and which of them get a second
// name by it: a link to what agents do not change is a way to change it later.
func (a *analysis) copies(_ *know.Program, g args, st *state) {
	from, to := g.operands, word{text: "."}
	whole := g.has("-T") || g.has("--no-target-directory")
	into := false
	for _, o := range g.options {
		if o.opt != nil && o.given && (o.opt.Name == "-t" || o.opt.Name == "--target-directory") {
			to, into = o.arg, true
		}
	}
	if n := len(from); n > 1 && !into {
		from, to = from[:n-1], from[n-1]
	}
	links := g.name == "ln" || g.name == "link" || g.has("-l") || g.has("--link")
	soft := g.has("-s") || g.has("--symbolic") || g.has("--symbolic-link")
	deep := g.has("-r") || g.has("-R") || g.has("-a") || g.has("--recursive") || g.has("--archive")
	for _, w := range from {
		for _, base := range a.bases(w.text, st) {
			for _, s := range a.standsFor(w, base) {
				at := a.physical("", s)
				// Where a link leads that is no second name for the file itself, is
				// followed later, and out of the project is asked about.
				if links && !soft || soft && a.root(at) != "" {
					a.secondName(w, at, deep)
				}
				for _, dir := range a.bases(to.text, st) {
					dest := a.physical(dir, to.text)
					inside := !whole && (into || isDir(dest))
					if inside {
						dest = a.physical(dest, called(w, s, g.has("--parents")))
					}
					if to.known() && !to.glob && (inside || deep) {
						a.comesTo(w, at, dest, deep)
					}
				}
			}
		}
	}
}

// standsFor are the files that a word names, of a pattern those that are there.
func (a *analysis) standsFor(w word, base string) []string {
	path := below(base, w.text)
	if w.pattern() || w.listed != 0 {
		return a.matches(path)
	}
	return []string{path}
}

// called is what a file is called in the directory that it is put into.
func called(w word, path string, parents bool) string {
	if parents && !w.glob {
		return w.text
	}
	return filepath.Base(path) // a/. is what lies in a
}

// comesTo judges a file, or a tree of them, that comes to lie at a place.
func (a *analysis) comesTo(w word, at, dest string, deep bool) {
	refuse := func(p string) bool {
		bad, what := names.Protected(p)
		if bad {
			a.give("protected-file", Deny, w.shown(), "it comes to lie at "+shown(p)+" and changes "+what, "leave these files to the user")
		}
		return bad
	}
	if refuse(dest) || !deep {
		return
	}
	a.eachBelow(at, func(rel string) bool { return refuse(filepath.Join(dest, rel)) })
}

// secondName judges a file, or a tree of them, that a link gives a second name.
func (a *analysis) secondName(w word, at string, deep bool) {
	refuse := func(p string) bool {
		bad, what := a.protected(p, use{})
		if bad {
			a.give("protected-file", Deny, w.shown(), "it makes a second name for "+what, "leave these files to the user")
		}
		return bad
	}
	if refuse(at) || !deep {
		return
	}
	a.eachBelow(at, func(rel string) bool { return refuse(filepath.Join(at, rel)) })
}

// eachBelow calls see for what lies below a directory, by its path from there, until it says that this is
// enough. Links are not followed.
func (a *analysis) eachBelow(dir string, see func(rel string) bool) {
	var down func(rel string) bool
	down = func(rel string) bool {
		for _, name := range a.names(filepath.Join(dir, rel)) {
			next := filepath.Join(rel, name)
			if see(next) {
				return true
			}
			if info, err := os.Lstat(filepath.Join(dir, next)); err == nil && info.IsDir() && down(next) {
				return true
			}
		}
		return false
	}
	down("")
}

// unpacks judges the files that a packer makes: it takes the ending off the name, or
// puts one behind it, and removes what it was given. Of -l or -t and -d the last counts
// for most of them.
func (a *analysis) unpacks(_ *know.Program, g args, st *state) {
	does := g.has("-d") || g.has("--decompress")
	tells := g.has("-l") || g.has("--list") || g.has("-t") || g.has("--test")
	if g.has("-c") || g.has("--stdout") || tells && !does && !g.has("-z") && !g.has("--compress") {
		return
	}
	switch g.name {
	case "gunzip", "bunzip2", "unxz", "unzstd", "uncompress":
		does = true
	}
	for _, w := range g.operands {
		if tells {
			a.path(w, use{}, st)
		}
		if ext := filepath.Ext(w.text); does && ext != "" {
			w.text = strings.TrimSuffix(w.text, ext)
			a.path(w, use{}, st)
		}
	}
}

// piecesHere puts the names by which split calls what it writes, where none are given,
// into its arguments: it writes them where it is.
func (g *args) piecesHere() {
	if g.name != "split" {
		return
	}
	for i, usual := range [...]string{"-", "xaa"} {
		if len(g.operands) == i {
			g.operands = append(g.operands, word{text: usual, src: usual})
		}
	}
}

// pieces judges what split calls what it writes: a name that begins with a dot is one
// that something else may look for.
func (a *analysis) pieces(_ *know.Program, g args, _ *state) {
	for _, w := range g.operands[min(1, len(g.operands)):] {
		if strings.HasPrefix(filepath.Base(w.text), ".") {
			a.give("needs-a-person", Ask, w.shown(), "the names of the pieces begin with a dot, and may be those of settings", "let them begin otherwise")
		}
	}
}

// nodes judges mknod: a device by another name is the device.
func (a *analysis) nodes(_ *know.Program, g args, _ *state) {
	for _, w := range g.operands[min(1, len(g.operands)):] {
		if g.name == "mknod" && w.text != "p" {
			a.give("destructive", Deny, w.shown(), "it makes another name for a device", "let the user do it")
			return
		}
	}
}

// opensAll judges a change of modes or owners of whole directories: the settings of git
// and of agents that lie in them are changed as well.
func (a *analysis) opensAll(w word, st *state) {
	for _, base := range a.bases(w.text, st) {
		for _, s := range a.standsFor(w, base) {
			at := a.physical("", s)
			for _, name := range [...]string{".git", ".claude", ".codex", ".gemini", ".copilot", ".reprise"} {
				if _, err := os.Lstat(filepath.Join(at, name)); err == nil || filepath.Base(at) == name {
					a.give("changes-settings", Ask, w.shown(), "it changes who may write the files in "+shown(filepath.Join(at, name)), "name the files that are meant")
					return
				}
			}
		}
	}
}
