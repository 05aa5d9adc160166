package guard

import (
	"os"
	"slices"
	"strings"

	"reprise/internal/guard/know"
)

// whereInstalled reports whether what a program writes out is where something is that
// is installed on this machine, as the table says of it.
func whereInstalled(p *know.Program, g *args) bool {
	switch {
	case p.Produces != know.Installed:
		return false
	case g.name == "which": // a shell's own one tells other things of its own commands
		return len(g.operands) > 0 && !slices.ContainsFunc(g.operands, func(w word) bool {
			return !w.known() || builtin(w.text) != nil || know.Find(w.text) == nil
		})
	case g.outer != nil && g.outer.name == "go":
		return len(g.options) == 0 && len(g.operands) > 0 && !slices.ContainsFunc(g.operands, func(w word) bool {
			return !slices.Contains([]string{"GOROOT", "GOMODCACHE", "GOTOOLDIR"}, w.text)
		})
	}
	return slices.ContainsFunc(g.options, func(o option) bool { return o.w.text == "-g" || o.w.text == "--global" })
}

// belowInstalled reports whether what stands behind such a path leads nowhere else:
// where the program is not there the path is empty, and what is behind it is the whole.
func (a *analysis) belowInstalled(rest string) bool {
	if rest == "" {
		return true
	}
	if rest[0] != '/' || strings.Contains(rest, unknown) || strings.Contains(rest, "..") {
		return false
	}
	if i := strings.IndexAny(rest, "*?["); i >= 0 {
		rest = rest[:strings.LastIndexByte(rest[:i], '/')+1]
	}
	p := a.physical("", rest)
	_, err := os.Lstat(p)
	return os.IsNotExist(err)
}

// namesCommits reports whether all that a command of git writes out are names of
// commits as git makes them, which are digits and letters.
func namesCommits(g *args) bool {
	if g.outer == nil || g.outer.name != "git" {
		return false
	}
	plain := []string{"-n", "--max-count", "-NUMBER", "--reverse", "--all", "--since", "--until", "--after", "--before", "--author", "--no-merges", "--merges", "--first-parent", "--grep", "--skip", "--abbrev-commit"}
	formatted := false
	switch g.name {
	case "merge-base":
		return true
	case "rev-list":
		formatted = true
	case "rev-parse":
		return plainRevision(g)
	case "log":
		formatted = slices.ContainsFunc(g.options, func(o option) bool { return o.opt != nil && commitFormat(o) })
	}
	return formatted && !slices.ContainsFunc(g.options, func(o option) bool {
		return o.opt == nil || o.short || !commitFormat(o) && !slices.Contains(plain, o.opt.Name)
	})
}

// commitFormat reports whether an option says that names of commits are shown, and no more.
func commitFormat(o option) bool {
	if o.opt.Name != "--format" && o.opt.Name != "--pretty" {
		return false
	}
	_, format, ok := strings.Cut(o.arg.text, "format:")
	if !ok {
		format = o.arg.text
	}
	return format == "%h" || format == "%H"
}

// plainRevision reports whether git rev-parse tells a commit or a branch: of what it does
// not know it repeats the words, so that only HEAD and what it came from are looked at
// without --verify.
func plainRevision(g *args) bool {
	verified := false
	for _, o := range g.options {
		switch name, _, _ := strings.Cut(o.w.text, "="); name {
		case "--verify":
			verified = true
		case "--short", "--abbrev-ref", "-q", "--quiet":
		default:
			return false
		}
	}
	return len(g.operands) == 1 && g.operands[0].known() && (verified || strings.Trim(strings.TrimPrefix(strings.TrimPrefix(g.operands[0].text, "HEAD"), "@"), "~^0123456789") == "")
}

// tellsOneWord reports whether what a program writes out has no blank in it: a name that
// git allows for a tag or a branch, or a date in a format without one.
func tellsOneWord(g *args) bool {
	switch {
	case g.name == "describe" && g.root() == "git":
		return true
	case g.name == "date" && g.outer == nil:
		one := len(g.operands) == 1 && g.operands[0].known()
		if !one {
			return false
		}
		format, ok := strings.CutPrefix(g.operands[0].text, "+")
		for _, part := range strings.Split(format, "%")[1:] {
			ok = ok && part != "" && strings.IndexByte("YmdHMSFTsjyzuVGNI", part[0]) >= 0
		}
		return ok && !strings.ContainsAny(format, " \t\n'\"")
	}
	return false
}

// sums reports whether paste puts the numbers that it reads together with signs between
// them, as something that is to be calculated.
func sums(g *args, in source) bool {
	if g.name != "paste" || in.origin != numbers || !g.has("-s") {
		return false
	}
	sign := false
	for _, o := range g.options {
		if o.opt != nil && o.given {
			sign = o.arg.text == "+" || o.arg.text == "*" || o.arg.text == "-"
		}
	}
	return sign && !slices.ContainsFunc(g.operands, func(w word) bool { return w.text != "-" })
}
