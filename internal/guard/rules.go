package guard

import (
	"slices"
	"strings"
)

// Rules are what a call is judged by. The zero value asks about nearly
// everything: it knows no directory.
type Rules struct {
	// Off says that nothing is judged, Warn that verdicts are noted and not
	// enforced. The caller sees to both.
	Off, Warn bool
	// Unattended says that there is nobody to ask: then asking is refusing.
	// Attended says that somebody is, whatever started the session; where neither
	// is said, the caller knows.
	Unattended, Attended bool
	// MCP says that tools of MCP servers which no rule names may be used where
	// nobody is there to be asked.
	MCP bool
	// Full says that what is asked about goes to the full program, which has a
	// judge or a queue for it.
	Full bool
	// WaitMS is how long that may take, in milliseconds.
	WaitMS int
	Roots  []string // directories of the work, absolute, first the one of the project
	Home   string   // "" where it is not known
	// Workspace is the workspace that the session works in, "" for none; see [Rules.In].
	Workspace string
	// Env tells the value of a variable of the agent's environment.
	Env      func(name string) string
	Hosts    []string // that may be read from: example.org, *.example.org
	Branches []string // that are not pushed over: names, or patterns with *
	// ProjectCode says that the project's own code may be run (tests, builds),
	// Writes that files in the roots may be written by commands.
	ProjectCode, Writes bool
	// Own are reprise's places: settings, data, state. Nothing an agent does by
	// itself changes them.
	Own []string
	// List are the rules of the settings and of the project.
	List []Rule
	// Loose are the built-in rules that the user switched off, by name.
	Loose []string
	// Explain keeps the parts that are allowed, too.
	Explain bool
}

// Rule is a rule of the settings: a decision about what has this shape.
type Rule struct {
	Decision Decision
	// Shape is a command's words: each stands for itself, * in it for any text,
	// and a last word ... for any further ones. For other tools it is the tool's
	// name as the client has it, with * for any text.
	Shape string
	// Words are those of a command that is meant word by word, stars and blanks too; Shape
	// is for reading then.
	Words []string
	Why   string
	From  string // where it stands, file:line
}

// loose reports whether the user switched a built-in rule off.
func (r *Rules) loose(rule string) bool {
	for _, l := range r.Loose {
		if l == rule && !fixed(rule) {
			return true
		}
	}
	return false
}

func (r *Rules) env(name string) string {
	if r.Env == nil {
		return ""
	}
	return r.Env(name)
}

// matches reports whether the shape fits these words.
func (r *Rule) matches(argv []word) bool {
	if len(r.Words) > 0 {
		return slices.EqualFunc(r.Words, argv, func(s string, w word) bool {
			return w.known() && !(w.glob && strings.ContainsAny(w.text, "*?[")) && s == w.text
		})
	}
	shape := strings.Fields(r.Shape)
	for i, s := range shape {
		if s == "..." && i == len(shape)-1 {
			return i > 0
		}
		if i >= len(argv) || !argv[i].known() || argv[i].glob && strings.ContainsAny(argv[i].text, "*?[") || !like(s, argv[i].text) {
			return false
		}
		if r.Decision == Allow && strays(s, argv[i].text) {
			return false
		}
	}
	return len(shape) > 0 && len(argv) == len(shape)
}

// strays reports whether the star of a shape would stand for more than whoever wrote it
// meant: for an option, or for a way out of the directory that it speaks of.
func strays(shape, text string) bool {
	if !strings.HasPrefix(shape, "*") {
		return strings.Contains(shape, "*") && slices.Contains(strings.Split(text, "/"), "..") && !strings.Contains(shape, "..")
	}
	return strings.HasPrefix(text, "-") || strings.HasPrefix(text, "/") || slices.Contains(strings.Split(text, "/"), "..")
}

// like compares a text with a pattern in which * is any text.
func like(pattern, text string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == text
	}
	if !strings.HasPrefix(text, first) {
		return false
	}
	text = text[len(first):]
	parts := strings.Split(rest, "*")
	for _, p := range parts[:len(parts)-1] {
		i := strings.Index(text, p)
		if i < 0 {
			return false
		}
		text = text[i+len(p):]
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}

// hostAllowed reports whether a host may be read from: one of the list, or the
// machine itself.
func (r *Rules) hostAllowed(host string) bool {
	host = strings.ToLower(strings.Trim(host, "[]"))
	if loopback(host) {
		return true
	}
	for _, h := range r.Hosts {
		if h = strings.ToLower(h); h == host || strings.HasPrefix(h, "*.") && strings.HasSuffix(host, h[1:]) {
			return true
		}
	}
	return false
}

// UsualBranches are the branches that are not pushed over where nothing is said.
func UsualBranches() []string {
	return []string{"main", "master", "trunk", "develop", "release/*", "release-*", "production", "stable"}
}

// protectedBranch reports whether a branch is not pushed over.
func (r *Rules) protectedBranch(name string) bool {
	list := r.Branches
	if len(list) == 0 {
		list = UsualBranches()
	}
	for _, b := range list {
		if like(b, name) {
			return true
		}
	}
	return false
}

// root is the root that a resolved path lies in, "" where it lies in none.
func (a *analysis) root(path string) string {
	for _, r := range a.roots {
		if inside(path, r) {
			return r
		}
	}
	return ""
}

// system reports whether a resolved path is one that every program reads: part
// of the installed system, with nothing of the user's in it.
func system(path string) bool {
	for _, d := range [...]string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix/store", "/snap"} {
		if inside(path, d) && !inside(path, "/usr/local/etc") {
			return true
		}
	}
	switch path {
	case "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/full",
		"/etc/os-release", "/etc/lsb-release", "/etc/debian_version", "/etc/timezone", "/etc/shells", "/etc/localtime",
		"/proc/cpuinfo", "/proc/meminfo", "/proc/version", "/proc/loadavg", "/proc/uptime", "/proc/stat", "/proc/filesystems", "/proc/mounts":
		return true
	}
	return descriptor(path) || path == "/proc/self/status"
}

// descriptor reports whether a path is one of the files that a command has open.
func descriptor(path string) bool {
	n, ok := strings.CutPrefix(path, "/dev/fd/")
	return ok && strings.Trim(n, "0123456789") == ""
}

// device reports whether writing to the path leaves nothing behind.
func device(path string) bool {
	switch path {
	case "/dev/null", "/dev/zero", "/dev/full", "/dev/stdout", "/dev/stderr", "/dev/tty":
		return true
	}
	return descriptor(path)
}
