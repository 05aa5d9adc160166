package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/clip"
	"reprise/internal/guard/names"
)

// use is how a path is used.
type use struct {
	read    bool // by something that only reads
	shallow bool // by something that does not go down into a directory
	gone    bool // it is removed or moved away
	probe   bool // only looked at whether it is there
	looks   bool // what it holds is not shown
	top     bool // it is what stands before a pattern
	perhaps bool // it is not known whether it is changed
	asks    bool // by a tool of which the client keeps no permissions for places
	// replaced says that another file takes its place, or that the file itself is
	// changed and not what it holds.
	replaced bool
}

// area is a protected directory in all the spellings it is compared under.
type area struct {
	name  string
	forms []string
	texts []string // spellings by which code may name it
	write bool     // only writing is forbidden
}

// judge applies a policy to one call.
type judge struct {
	home  string
	vars  map[string]string
	areas []area
	cwds  []string // directories the command may be in by now
}

func newJudge(p Policy, cwd string) *judge {
	g := &judge{home: p.Home, vars: p.Vars, cwds: []string{filepath.Clean(cwd)}}
	add := func(dirs []string, write bool) {
		for _, d := range dirs {
			a := area{name: d, forms: forms(d), write: write}
			a.texts = append(a.texts, a.forms...)
			for _, h := range forms(p.Home) {
				for _, f := range a.forms {
					rel, err := filepath.Rel(h, f)
					if p.Home == "" || err != nil || rel == "." || strings.HasPrefix(rel, "..") {
						continue
					}
					a.texts = append(a.texts, "~/"+rel, "$HOME/"+rel, "${HOME}/"+rel)
					if len(rel) >= 12 && (rel[0] == '.' || strings.ContainsRune(rel, filepath.Separator)) {
						a.texts = append(a.texts, rel)
					}
				}
			}
			g.areas = append(g.areas, a)
		}
	}
	add(p.DenyAll, false)
	add(p.DenyWrite, true)
	return g
}

func deny(format string, args ...any) Verdict {
	return Verdict{Decision: Deny, Reason: fmt.Sprintf(format, args...)}
}

// refuse words the refusal: which word, which rule, what would pass.
func (a area) refuse(word, how string) string {
	word = clip.Bytes(word, 200)
	if a.write {
		return fmt.Sprintf("%q %s %s, which this run may read but not change; name it only in plain reading commands such as cat, ls or grep", word, how, a.name)
	}
	return fmt.Sprintf("%q %s %s, which is closed to this run; work without it, or name a directory that does not contain it", word, how, a.name)
}

// path judges one absolute path; word is how it was written.
func (g *judge) path(path, word string, u use) string {
	for _, f := range physical(path) {
		for _, a := range g.areas {
			for _, d := range a.forms {
				switch {
				case inside(f, d):
					if !a.write || !u.read {
						return a.refuse(word, "lies in")
					}
				case inside(d, f) && !u.shallow && (!a.write || !u.read):
					return a.refuse(word, "contains")
				}
			}
		}
	}
	return ""
}

// mention finds a protected directory named anywhere in a text, such as a
// program given on the command line.
func (g *judge) mention(text string, u use) string {
	t := fold(filepath.ToSlash(text))
	for _, a := range g.areas {
		if a.write && u.read {
			continue
		}
		for _, name := range a.texts {
			name = fold(filepath.ToSlash(name))
			for from := 0; ; {
				i := strings.Index(t[from:], name)
				if i < 0 {
					break
				}
				i += from
				from = i + len(name)
				if wordEnd(t, from) && (i == 0 || !wordByte(t[i-1]) || name[0] == '/') {
					return a.refuse(text, "names")
				}
			}
		}
	}
	return ""
}

func wordByte(c byte) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// wordEnd reports whether a name ends at i: /m/memory is not named by
// /m/memory-tools or /m/memory.txt.
func wordEnd(t string, i int) bool {
	return i >= len(t) || !wordByte(t[i]) && (t[i] != '.' || i+1 >= len(t) || !wordByte(t[i+1]))
}

// maxGlob is how many places of a pattern are looked up in the file system; what
// comes after the name with the last of them is compared by its text alone.
const maxGlob = 3

// pattern judges an absolute path with *, ? and [ in it.
func (g *judge) pattern(path, word string, u use) string {
	if !strings.ContainsAny(path, "*?[") {
		return g.path(path, word, u)
	}
	path = filepath.Clean(path)
	for _, a := range g.areas {
		if a.write && u.read {
			continue
		}
		for _, d := range a.forms {
			switch spans(strings.Split(fold(path), string(filepath.Separator)), strings.Split(fold(d), string(filepath.Separator))) {
			case 1:
				return a.refuse(word, "may lie in")
			case -1:
				if !u.shallow {
					return a.refuse(word, "may contain")
				}
			}
		}
	}
	start := lookedUp(path)
	u.shallow = u.shallow || start != path // what is meant lies below
	found, _ := filepath.Glob(names.Widen(start))
	for _, f := range found {
		if why := g.path(f, word, u); why != "" {
			return why
		}
	}
	return ""
}

// lookedUp are the names of a pattern that are looked up in the file system.
func lookedUp(path string) string {
	n := 0
	for i, c := range path {
		if strings.ContainsRune("*?[", c) {
			n++
		}
		if n > maxGlob {
			return filepath.Dir(path[:i+1])
		}
	}
	return path
}

// spans compares a pattern with a directory, name by name: 1 if it may name
// the directory or something in it, -1 if it may name something above it.
func spans(pat, dir []string) int {
	for i, name := range dir {
		if i >= len(pat) {
			return -1
		}
		if start, _, ok := strings.Cut(pat[i], "**"); ok {
			if strings.ContainsAny(start, "*?[") || strings.HasPrefix(name, start) {
				return 1
			}
			return 0
		}
		if name != "" && name[0] == '.' && pat[i] != "" && strings.ContainsRune("*?[", rune(pat[i][0])) {
			return 0 // a shell's wildcards pass over hidden names
		}
		if !names.Match(pat[i], name) {
			return 0
		}
	}
	return 1
}

// abs makes a word absolute.
func (g *judge) abs(base, word string) string {
	if filepath.IsAbs(word) {
		return word
	}
	return base + string(filepath.Separator) + word // not joined: .. must stay
}

// tilde expands a leading ~ or ~/.
func (g *judge) tilde(s string) string {
	if g.home != "" && (s == "~" || strings.HasPrefix(s, "~/")) {
		return g.home + s[1:]
	}
	return s
}

// Covers reports whether a path lies in (or is) a directory that may not even
// be read, and which.
func (p Policy) Covers(path string) (string, bool) {
	asked := forms(path)
	for _, d := range p.DenyAll {
		for _, df := range forms(d) {
			for _, f := range asked {
				if inside(f, df) {
					return d, true
				}
			}
		}
	}
	return "", false
}

// Touching returns a test of whether a path lies in or contains any protected
// directory. The directories' own links are followed once, for all the paths
// that are asked about.
func (p Policy) Touching() func(path string) bool {
	var protected []string
	for _, d := range slices.Concat(p.DenyAll, p.DenyWrite) {
		protected = append(protected, forms(d)...)
	}
	return func(path string) bool {
		for _, f := range forms(path) {
			for _, df := range protected {
				if inside(f, df) || inside(df, f) {
					return true
				}
			}
		}
		return false
	}
}

// forms are the names under which a path is compared: as written and with
// every symbolic link resolved.
func forms(path string) []string {
	if path == "" {
		return nil
	}
	clean := filepath.Clean(path)
	if r := Resolve(clean); r != clean {
		return []string{clean, r}
	}
	return []string{clean}
}

// physical adds to forms what the system makes of "..": it goes up from where
// a link leads to, not from where the link stands.
func physical(path string) []string {
	out := forms(path)
	sep := string(filepath.Separator)
	if !strings.Contains(path, "..") {
		return out
	}
	vol := filepath.VolumeName(path)
	at := vol + sep
	for _, part := range strings.Split(path[len(vol):], sep) {
		if part == ".." {
			at = filepath.Dir(Resolve(at))
		} else {
			at = filepath.Join(at, part)
		}
	}
	return append(out, forms(at)...)
}

// maxLinks bounds the following of links, as the kernel does.
const maxLinks = 40

// Resolve returns the path with symbolic links resolved as far as the path
// exists; what does not exist yet is kept as written. It never fails: where
// resolving is impossible the cleaned path comes back.
func Resolve(path string) string { return resolve(filepath.Clean(path), maxLinks) }

func resolve(path string, links int) string {
	rest := ""
	for dir := path; ; {
		if r, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(r, rest)
		}
		// A link whose target does not exist yet still says where a write
		// would go.
		if target, err := os.Readlink(dir); err == nil && links > 0 {
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(dir), target)
			}
			return resolve(filepath.Join(target, rest), links-1)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
		dir = parent
	}
}
