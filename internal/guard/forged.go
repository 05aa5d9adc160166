package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/guard/know"
	"reprise/internal/guard/names"
)

// forged reports whether an option makes a program write out other text than the
// numbers or the names of files that its lines are: text that stands in the option,
// names beside numbers, parts of names, what a link leads to.
func forged(p *know.Program, g *args) bool {
	any := func(names ...string) bool { return slices.ContainsFunc(names, g.has) }
	switch p.Name {
	case "seq":
		return any("-f", "--format", "-s", "--separator")
	case "wc":
		return len(g.operands) > 0 || any("--files0-from")
	case "pgrep", "pidof", "pidwait":
		return any("-a", "-l", "-d", "--list-full", "--list-name", "--delimiter")
	case "find":
		for _, o := range g.options {
			if o.opt != nil && (o.opt.Name == "-ls" || o.opt.Name == "-printf" && !plainFormat(o.arg.text)) {
				return true
			}
		}
	case "fd":
		return any("--format", "-l", "--list-details", "--path-separator", "--hyperlink")
	case "ls", "dir", "vdir":
		return p.Name == "vdir" || slices.ContainsFunc(g.options, func(o option) bool { return o.opt == nil || o.short || !listsNames(o.opt.Name) })
	case "ls-files", "ls-tree":
		return any("--format")
	case "diff", "diff-tree", "diff-index", "diff-files", "log", "show", "whatchanged", "reflog":
		return forgedDiff(p, g)
	case "grep", "egrep", "fgrep", "ggrep", "rg":
		return any("-o", "--only-matching", "--label", "--group-separator", "-r", "--replace", "--context-separator", "--field-context-separator", "--field-match-separator", "--hyperlink-format", "--path-separator", "--json", "--passthru") && (p.Name == "rg" || !any("-r") || any("-o", "--only-matching", "--label", "--group-separator"))
	case "head", "tail":
		return any("-c", "--bytes")
	case "tac":
		return any("-s", "--separator", "-b", "-r")
	}
	return false
}

// plainFormat reports whether what find prints of a file is its name and no more.
func plainFormat(s string) bool {
	switch strings.TrimSuffix(strings.TrimSuffix(s, `\n`), `\0`) {
	case "%p", "%P", "%f":
		return true
	}
	return false
}

// listsNames reports whether with an option of ls its lines are still names.
func listsNames(name string) bool {
	switch name {
	case "-NUMBER", "-1", "-a", "-A", "-t", "-r", "-S", "-U", "-d", "-R", "-h", "-X", "-c", "-u", "-I", "--all", "--almost-all", "--human-readable", "--recursive", "--reverse", "--directory", "--group-directories-first", "--ignore", "--hide", "--sort", "--time":
		return true
	}
	return false
}

// forgedDiff is forged for commands of git that list names of files by an option:
// where a message or a format stands beside them, the lines are these, too.
func forgedDiff(p *know.Program, g *args) bool {
	message := !strings.HasPrefix(p.Name, "diff")
	for _, o := range g.options {
		if o.opt == nil {
			return true
		}
		switch o.opt.Name {
		case "--format", "--pretty":
			if o.arg.text != "" && o.arg.text != "format:" && o.arg.text != "tformat:" || !o.given {
				return true
			}
			message = false
		case "-p", "-u", "--patch", "--stat", "--line-prefix", "--src-prefix", "--dst-prefix", "--patch-with-raw", "--patch-with-stat", "--graph", "--notes", "--show-notes", "--source", "--submodule", "--oneline", "-L":
			return true
		}
	}
	return message
}

// counts reports whether grep -c prints numbers only: with one file or none, no name
// stands before them.
func counts(g *args) bool {
	files := g.operands
	if !g.has("-e") && !g.has("--regexp") && !g.has("-f") && !g.has("--file") && len(files) > 0 {
		files = files[1:]
	}
	for _, name := range [...]string{"-r", "-R", "-H", "--recursive", "--dereference-recursive", "--with-filename"} {
		if g.has(name) && !(g.name == "rg" && name == "-r") {
			return false
		}
	}
	return len(files) == 0 || len(files) == 1 && !files[0].split && !files[0].pattern() && g.name != "rg"
}

// pattern reports whether a word is a pattern for names of files, or one of the
// names that one stands for.
func (w word) pattern() bool { return w.named || w.glob && strings.ContainsAny(w.text, "*?[") }

// fromNames reports whether a word is made of names of files: of one that a pattern
// stood for, or of what it matches now. One that matches nothing stands for itself.
func (a *analysis) fromNames(w word, st *state) bool {
	switch {
	case w.named:
		return true
	case !w.pattern():
		return false
	case a.wrote || strings.Contains(w.text, "**"):
		return true
	}
	for _, base := range a.bases(w.text, st) {
		if len(a.matches(below(base, w.text))) > 0 {
			return true
		}
	}
	return false
}

// several reports whether a word may be more than one.
func (w word) several() bool { return w.split || w.glob && strings.ContainsAny(w.text, "*?[") }

// maxNames is how many names of a directory are looked at. Tests make it smaller.
var maxNames = 20_000

// optional reports whether a pattern may stand for a name that its program takes for
// an option: one that begins with a dash is there, or may be by then. Whoever makes
// such a name has to write first, which is asked about or has been allowed; to ask
// at each pattern whatever is there would cry wolf all day.
func (a *analysis) optional(w word, st *state) bool {
	if !w.pattern() || w.text == "" || strings.IndexByte("*?[", w.text[0]) < 0 {
		return false
	}
	if a.wrote {
		return true
	}
	first, _, _ := strings.Cut(w.text, "/")
	for _, dir := range st.cwds {
		for _, name := range a.names(dir) {
			if name[0] != '-' {
				continue
			}
			if names.Match(first, name) {
				return true
			}
		}
	}
	return false
}

// names are the names in a directory, of which each counts as work.
func (a *analysis) names(dir string) []string {
	if list, ok := a.listed[dir]; ok {
		a.step(1 + len(list)/4)
		return list
	}
	if a.listed == nil {
		a.listed = map[string][]string{}
	}
	a.listed[dir] = nil
	a.step(60)
	f, err := openNow(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	list, _ := f.Readdirnames(maxNames + 1) // what cannot be read matches nothing
	if a.step(len(list)); len(list) > maxNames {
		panic(tooMuch{})
	}
	slices.Sort(list)
	a.listed[dir] = list
	return list
}

// matches are the names that a pattern stands for, as many of them as are looked at.
func (a *analysis) matches(pattern string) (out []string) {
	dir, rest := "/", strings.TrimPrefix(filepath.ToSlash(pattern), "/")
	if vol := filepath.VolumeName(pattern); vol != "" {
		dir, rest = vol+"/", strings.TrimPrefix(rest[len(vol):], "/")
	}
	a.match(dir, strings.Split(rest, "/"), &out)
	return out
}

// below is a name in a directory as it is written: .. counts from where a link leads.
func below(dir, name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }

func (a *analysis) match(dir string, parts []string, out *[]string) {
	for len(parts) > 0 && !strings.ContainsAny(parts[0], "*?[\\") {
		dir, parts = below(dir, parts[0]), parts[1:]
	}
	if a.step(2); len(parts) == 0 {
		if _, err := os.Lstat(dir); err == nil {
			*out = append(*out, dir)
		}
		return
	}
	for _, name := range a.names(dir) {
		if !names.Match(parts[0], name) || dotted(parts[0], name) {
			continue
		}
		if next := below(dir, name); len(parts) == 1 {
			*out = append(*out, next)
		} else {
			a.match(next, parts[1:], out)
		}
	}
}
