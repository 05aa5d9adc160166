package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/guard/names"
)

// exists reports whether a directory is there.
func (a *analysis) exists(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// path judges a word that names a file or a directory.
func (a *analysis) path(w word, u use, st *state) {
	a.step(4)
	if w.text == "" {
		return
	}
	if !w.known() {
		a.darkPath(w, u, st)
		return
	}
	before := len(a.parts)
	// Of the names that a loop goes over each may be the one that is written.
	named := w.glob || w.listed != 0 && !u.read
	a.each(w, u, st, named && strings.ContainsAny(w.text, "*?["))
	if w.listed != 0 && u.read && len(a.parts) == before {
		a.matched(w, u)
	}
}

// darkPath judges a path of which a part is only known when it runs.
func (a *analysis) darkPath(w word, u use, st *state) {
	start, rest, _ := strings.Cut(w.text, unknown)
	rest = strings.TrimLeft(rest, unknown)
	if u.gone && start == "" && strings.HasPrefix(rest, "/") && !w.certain {
		a.give("unset-path", Deny, w.shown(), "where the variable is empty this is the root of the file system", "write ${NAME:?} so that the shell stops there, or the path itself")
		return
	}
	if dangerous, what := names.Protected(start); !u.read && dangerous {
		a.give("protected-file", Deny, w.shown(), "it may write "+what, "leave these files to the user")
		return
	}
	switch {
	case w.origin == numbers || w.origin == fewWords:
		// A number cannot lead elsewhere: the path is as good as any of its kind.
		v := w
		v.text = strings.ReplaceAll(w.text, unknown, "0")
		v.made = true
		a.each(v, u, st, false)
	case w.origin.names() && u.read && start == "":
		a.opens(w, u)
	case w.origin == installed && u.read && start == "" && a.belowInstalled(rest):
		// It is as good as any path of the system.
		v := w
		v.text, v.made = "/usr/lib"+rest, true
		a.each(v, u, st, false)
	case w.origin.names() && start == "" && !u.read:
		if u.gone {
			a.give("removes", Ask, w.shown(), "it removes or moves files that are only known when it runs", "name the files")
			return
		}
		a.give("dynamic-path", Ask, w.shown(), "which file this writes is only known when it runs", "write the path out")
	case u.read && w.origin.names() && strings.HasSuffix(start, "/") && a.bareNames(w.origin):
		// Each is in that directory, as what a pattern stands for is.
		v := w
		v.text, v.glob = start+"*"+strings.ReplaceAll(rest, unknown, "*"), true
		a.each(v, u, st, true)
	case u.read:
		a.give("dynamic-path", Ask, w.shown(), "which file this reads is only known when it runs", "write the path out")
	default:
		if start != "" && strings.Contains(start, "/") {
			// What is known of it may be enough: outside is outside.
			dir := start[:strings.LastIndexByte(start, '/')+1]
			for _, base := range a.bases(dir, st) {
				if p := a.physical(base, dir); a.root(p) == "" && (!inside(p, "/dev") || inside(p, "/dev/shm")) { // devices are told apart by their names
					a.outside(w, p, u)
					return
				}
			}
		}
		a.give("dynamic-path", Ask, w.shown(), "which file this writes is only known when it runs", "write the path out")
	}
}

// bases are the directories that a path may be relative to.
func (a *analysis) bases(p string, st *state) []string {
	if filepath.IsAbs(p) {
		return []string{""}
	}
	return st.cwds
}

// each judges a path in each directory that the command may be in.
func (a *analysis) each(w word, u use, st *state, glob bool) {
	bases := a.bases(w.text, st)
	if len(bases) == 0 {
		a.give("unknown-directory", Ask, w.shown(), "the path is relative, and the directory is not known", "write an absolute path")
		return
	}
	for _, base := range bases {
		if glob {
			a.pattern(w, base, u)
		} else {
			a.one(w, a.physical(base, w.text), u)
		}
	}
}

// pattern judges what a pattern may stand for: where its constant beginning
// leads, and each name that it matches now.
func (a *analysis) pattern(w word, base string, u use) {
	i := strings.IndexAny(w.text, "*?[")
	dir := w.text[:i]
	dir = dir[:strings.LastIndexByte(dir, '/')+1]
	top := a.physical(base, dir)
	if last := w.text[strings.LastIndexByte(w.text, '/')+1:]; !u.read && strings.LastIndexByte(w.text, '/') < i {
		for _, name := range names.Known() {
			if bad, what := names.Protected(top + "/" + name); bad && names.Match(last, name) && !dotted(last, name) {
				a.give("protected-file", Deny, w.shown(), "it may change "+what, "leave these files to the user")
				return
			}
		}
	}
	if strings.Contains(w.text, "**") && a.anyDepth(w, top, u) {
		return
	}
	if a.one(word{text: w.text, src: w.src, glob: true}, top, use{read: u.read, shallow: true, gone: u.gone, top: true, looks: u.looks}) {
		return
	}
	full := below(base, w.text)
	if argv := a.cur.argv; len(argv) > 1 && argv[0].text == "ls" && slices.ContainsFunc(argv, func(w word) bool { return w.text == "-d" }) && strings.HasSuffix(w.text, "/") {
		return // the names themselves are listed, and not where they lead
	}
	rest := ""
	if w.listed != 0 {
		// What stands behind a name of a loop is no part of the pattern.
		if i := strings.IndexByte(full[strings.LastIndexAny(full, "*?["):], '/'); i >= 0 {
			i += strings.LastIndexAny(full, "*?[")
			full, rest = full[:i], full[i:]
		}
	}
	found := a.matches(full)
	a.step(len(found))
	for _, f := range found {
		if a.one(w, a.physical("", f+rest), u) {
			return
		}
	}
}

// dotted reports whether a name was matched that a shell passes over: one that
// begins with a dot, by a pattern that does not.
func dotted(pattern, name string) bool {
	sep := string(filepath.Separator)
	for pattern != "" && name != "" {
		var p, n string
		p, pattern, _ = strings.Cut(pattern, sep)
		n, name, _ = strings.Cut(name, sep)
		if strings.HasPrefix(n, ".") && p != "" && strings.IndexByte("*?[", p[0]) >= 0 {
			return true
		}
	}
	return false
}

// keptHarmless is how many paths are known for harmless to read at a time.
const keptHarmless = 8

// one judges one resolved path; it reports whether something was found. What is
// harmless to read is remembered: most commands read where they are.
func (a *analysis) one(w word, p string, u use) bool {
	a.step(2)
	if u.read && slices.Contains(a.harmless, p) {
		return false
	}
	found := a.judgePath(w, p, u)
	if u == (use{read: true}) && !found && len(a.harmless) < keptHarmless {
		a.harmless = append(a.harmless, p)
	}
	return found
}

func (a *analysis) judgePath(w word, p string, u use) bool {
	if !u.read {
		if device(p) && !u.gone && !u.replaced {
			return false
		}
		if u.gone && p == filepath.Dir(p) {
			a.give("destructive", Deny, w.shown(), "it removes the whole file system", "name what is to go")
			return true
		}
		if bad, what := a.protected(p, u); bad {
			how := "it changes "
			if u.gone {
				how = "it removes or moves "
			}
			a.give("protected-file", Deny, w.shown(), how+what, "leave these files to the user")
			return true
		}
	}
	if strings.HasPrefix(p, "/dev/tcp/") || strings.HasPrefix(p, "/dev/udp/") {
		a.reaches(p)
		a.give("network", Deny, w.shown(), "the shell opens a connection to another machine by it", "use curl with a host that is allowed")
		return true
	}
	if kind := names.Secret(p); kind != "" && !u.top && !u.probe && !u.looks {
		a.reads(w.shown())
		if u.read {
			a.give("reads-secret", Ask, w.shown(), "it reads "+kind, "read something that holds no secrets")
			return true
		}
	}
	if u.read && !u.looks && !u.top && strings.HasSuffix(p, "/.git/config") && a.gitSettings(filepath.Dir(filepath.Dir(p))).secret != "" {
		a.reads(w.shown())
		a.give("reads-secret", Ask, w.shown(), "it reads a setting of git that holds a secret", "read the one that is wanted with git config --get")
		return true
	}
	root := a.root(p)
	switch {
	case root == "":
		if u.read && (system(p) || u.probe) {
			return false
		}
		return a.outside(w, p, u)
	case u.read:
		return false
	case u.gone && (p == root || repositoryItself(p)):
		if !u.top || p != root {
			a.give("removes-repository", Deny, w.shown(), "it removes the whole of the work", "name what is to go")
			return true
		}
		fallthrough
	case u.gone:
		a.give("removes", Ask, w.shown(), "it removes or moves files", "let the user do it, or allow it by a rule")
		return true
	}
	a.wrote = true
	if kind := names.Secret(p); kind != "" && !u.top && !a.cur.marks() {
		a.give("reads-secret", Ask, w.shown(), "it changes "+kind, "leave files that hold secrets to the user")
		return true
	}
	if what := names.Steers(p); what != "" && !u.top {
		a.give("changes-settings", Ask, w.shown(), "it changes "+what, "let the user do it, or allow it")
		return true
	}
	if a.r.Writes {
		a.granted = true
		return false
	}
	a.give("writes", Ask, w.shown(), "it writes a file", "use the client's own tool for writing files, or have the user run `reprise config set guard.writes allow`")
	return true
}

// repositoryItself reports whether a path is a repository's directory, or what in it
// holds the history.
func repositoryItself(p string) bool {
	base := filepath.Base(p)
	if base == ".git" {
		return true
	}
	switch base {
	case "objects", "refs", "HEAD", "packed-refs", "logs", "worktrees":
		return filepath.Base(filepath.Dir(p)) == ".git"
	}
	return false
}

// outside judges a path that lies in none of the roots.
func (a *analysis) outside(w word, p string, u use) bool {
	if top := a.checkout(p); top != "" {
		if !u.read {
			a.elsewhere(w.shown(), top)
		}
		return !u.read
	}
	if u.read && a.clientsOwn(p) || !u.read && !u.gone && a.scratch(p) == scratchpad {
		return false
	}
	if u.read {
		a.give("reads-outside", Ask, w.shown(), "it reads "+shown(p)+", outside the project", "read what is in the project, or have the user add its directory to guard.roots")
		return true
	}
	what, d := "it writes to ", Deny
	if u.gone {
		what = "it removes or moves "
	}
	if a.temporary(w.text, p, u) {
		d = Ask
	}
	a.give("writes-outside", d, w.shown(), what+shown(p)+", outside the project", "write into the project, or have the user add its directory to guard.roots")
	return true
}

// tempDirs are the system's directories for what is temporary.
var tempDirs = [...]string{"/tmp", "/private/tmp", "/var/tmp", "/private/var/tmp", "/dev/shm", "/var/folders"}

// temporary reports whether a path is in a directory for what is temporary, where agents put
// what they need for a moment, and was written so: a link, or a way up, that comes out there
// leads out of the project. Where the home lies there, what is beside it is no such thing.
// The directory itself is what cp and mv put something into, and no other's to change.
func (a *analysis) temporary(written, p string, u use) bool {
	for _, d := range tempDirs {
		if inside(p, d) && (p != d || !u.gone && a.cur.puts()) && strings.HasPrefix(written, strings.TrimPrefix(d, "/private")+"/") {
			return a.r.Home == "" || !inside(p, filepath.Dir(Resolve(a.r.Home)))
		}
	}
	return false
}

// reads notes that something secret is read, reaches that the network is used.
func (a *analysis) reads(what string) {
	if a.secret.Rule == "" {
		a.secret = Part{Command: a.cur.String(), Word: what, Rule: "reads-secret", Depth: a.depth}
	}
}

func (a *analysis) reaches(what string) {
	if a.net.Rule == "" {
		a.net = Part{Command: a.cur.String(), Word: shown(what), Rule: "network", Depth: a.depth}
	}
}

// maxPath is Linux's PATH_MAX, the longest path that a call of it takes, in bytes;
// other systems take less.
const maxPath = 4096

// physical is where a path leads as the kernel goes it: link by link, and ..
// from where a link led to. What is not there is kept as it is written. base is
// resolved already.
func (a *analysis) physical(base, p string) string {
	if len(p) > maxPath {
		// The kernel takes none as long as that: nothing is opened by it.
		if !filepath.IsAbs(p) {
			p = base + string(filepath.Separator) + p
		}
		return filepath.Clean(p)
	}
	if strings.HasPrefix(p, "/dev/fd/") && !strings.Contains(p, "..") || p == "/dev/stdin" || p == "/dev/stdout" || p == "/dev/stderr" {
		return p // the command's own, not this program's
	}
	if filepath.IsAbs(p) {
		vol := filepath.VolumeName(p)
		return a.follow(vol+string(filepath.Separator), p[len(vol):], maxLinks)
	}
	return a.follow(base, p, maxLinks)
}

// follow goes on from a directory that is resolved.
func (a *analysis) follow(at, rest string, links int) string {
	sep := string(filepath.Separator)
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, sep)
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := strings.TrimSuffix(at, sep) + sep + name
		a.step(1 + len(next)/128)
		target := a.link(next)
		if target == "" {
			at = next
			continue
		}
		if links--; links < 0 {
			return next
		}
		target += sep + rest
		if filepath.IsAbs(target) {
			vol := filepath.VolumeName(target)
			at, target = vol+sep, target[len(vol):]
		}
		return a.follow(at, target, links)
	}
	return at
}

// link is where a symbolic link leads, "" where the path is none. A call looks
// at each once: commands name the same places again and again.
func (a *analysis) link(path string) string {
	if t, ok := a.links[path]; ok {
		return t
	}
	a.step(6 + len(path)/512)
	t, err := os.Readlink(path)
	if err != nil {
		t = ""
	}
	if a.links == nil {
		a.links = map[string]string{}
	}
	a.links[path] = t
	return t
}

// protected reports whether a resolved path is one that agents do not change:
// what decides about agents, and what runs or opens doors by itself later.
func (a *analysis) protected(p string, u use) (bool, string) {
	if a.r.Home != "" && u.gone && !u.top && inside(Resolve(a.r.Home), p) {
		return true, "the home directory"
	}
	if !u.gone && a.loopFile(p) {
		return false, ""
	}
	for _, d := range a.own() {
		if inside(p, d) || u.gone && !u.top && inside(d, p) {
			return true, "reprise's own files"
		}
	}
	if bad, what := names.Protected(p); bad {
		return true, what
	}
	if !u.gone && names.Stored(p) {
		return true, "git's own files"
	}
	if names.Holds(p) && !(a.cur.argv != nil && a.cur.argv[0].text == "mkdir") && (!u.top || u.gone) {
		return true, "the settings of an agent"
	}
	return false, ""
}

// loopFile reports whether a path is one of the files by which a session that the loop
// started asks and tells. They lie among reprise's own, in a directory for that claim
// alone, and the loop names them in the session's environment.
func (a *analysis) loopFile(p string) bool {
	if filepath.Base(filepath.Dir(filepath.Dir(p))) != "asks" {
		return false
	}
	for _, name := range [...]string{"INTERRUPT_FILE", "ERROR_FILE", "PROGRESS_FILE"} {
		if v := a.r.env(name); v != "" && filepath.IsAbs(v) && Resolve(v) == p {
			return true
		}
	}
	return false
}

func (a *analysis) own() []string {
	if a.ownDirs == nil {
		a.ownDirs = []string{}
		for _, d := range a.r.Own {
			a.ownDirs = append(a.ownDirs, a.place(d))
		}
	}
	return a.ownDirs
}
