package proc

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// ErrNotFound says that a program is in none of the places looked at.
var ErrNotFound = errors.New("program not found")

// NotFoundError names the places that were looked at. It matches ErrNotFound.
type NotFoundError struct {
	Name   string
	Looked []string // directories, in the order tried
	Why    string   // what else there is to say, or empty
}

func (e *NotFoundError) Error() string {
	s := fmt.Sprintf("find program %q: %v", e.Name, ErrNotFound)
	if e.Why != "" {
		s += ": " + e.Why
	}
	if len(e.Looked) > 0 {
		s += fmt.Sprintf(" on PATH or in %d known places", len(e.Looked))
	}
	return s
}

// Is makes errors.Is(err, ErrNotFound) hold.
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// LookPath finds a program and returns its absolute path. A name with a
// directory in it must be absolute or begin with "~/". Other names are looked
// for on PATH, then in the places where installers of agent programs put them:
// a server started by a desktop program often has a PATH without those.
// Relative entries of PATH are passed over, since what they mean changes with
// the directory. On Windows the endings of PATHEXT are tried (.COM, .EXE, .BAT
// and .CMD without it) and variables are found in any case of letters.
//
// vars is the environment and goos a value of runtime.GOOS.
func LookPath(name string, vars map[string]string, goos string) (string, error) {
	f := finder{vars: vars, windows: goos == "windows", goos: goos, stat: os.Stat, readDir: os.ReadDir, readFile: os.ReadFile}
	return f.find(name)
}

// finder is one search; its functions stand for the file system.
type finder struct {
	vars     map[string]string
	goos     string
	windows  bool
	stat     func(string) (fs.FileInfo, error)
	readDir  func(string) ([]fs.DirEntry, error)
	readFile func(string) ([]byte, error)
}

func (f *finder) find(name string) (string, error) {
	if name == "" || strings.ContainsRune(name, 0) {
		return "", &NotFoundError{Name: name, Why: "not a file name"}
	}
	if rest, ok := f.cutHome(name); ok {
		home := f.home()
		if home == "" {
			return "", &NotFoundError{Name: name, Why: "there is no home directory"}
		}
		name = f.join(home, rest)
	}
	if f.hasDir(name) {
		if !f.abs(name) {
			return "", &NotFoundError{Name: name, Why: "give an absolute path: a relative one would depend on the working directory"}
		}
		if p, ok := f.program(name); ok {
			return p, nil
		}
		return "", &NotFoundError{Name: name, Why: f.why(name)}
	}
	var looked []string
	for _, dir := range slices.Concat(f.pathDirs(), f.knownDirs(name)) {
		if !f.abs(dir) || slices.Contains(looked, dir) {
			continue
		}
		looked = append(looked, dir)
		if p, ok := f.program(f.join(dir, name)); ok {
			return p, nil
		}
	}
	return "", &NotFoundError{Name: name, Looked: looked}
}

// why tells what is wrong with a path that was named.
func (f *finder) why(path string) string {
	st, err := f.stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "no such file"
	case err != nil:
		return err.Error()
	case st.IsDir():
		return "it is a directory"
	}
	return "it is not executable"
}

// program returns the file to start for a path that may lack its ending.
func (f *finder) program(path string) (string, bool) {
	if !f.windows {
		st, err := f.stat(path)
		return path, err == nil && st.Mode().IsRegular() && st.Mode().Perm()&0o111 != 0
	}
	exts := f.pathExt()
	low := strings.ToLower(path)
	if slices.ContainsFunc(exts, func(e string) bool { return strings.HasSuffix(low, e) }) {
		if st, err := f.stat(path); err == nil && !st.IsDir() {
			return path, true
		}
	}
	// npm puts a shell script without ending beside its .cmd: it is no program.
	for _, e := range exts {
		if st, err := f.stat(path + e); err == nil && !st.IsDir() {
			return path + e, true
		}
	}
	return "", false
}

func (f *finder) pathExt() []string {
	var exts []string
	for _, e := range strings.Split(strings.ToLower(f.get("PATHEXT")), ";") {
		if e = strings.TrimSpace(e); e == "" {
			continue
		}
		if e[0] != '.' {
			e = "." + e
		}
		exts = append(exts, e)
	}
	if len(exts) == 0 {
		return []string{".com", ".exe", ".bat", ".cmd"}
	}
	return exts
}

func (f *finder) pathDirs() []string {
	if !f.windows {
		return strings.Split(f.get("PATH"), ":")
	}
	// A semicolon within quotes belongs to the directory's name.
	var dirs []string
	var dir strings.Builder
	quoted := false
	for _, r := range f.get("PATH") {
		switch {
		case r == '"':
			quoted = !quoted
		case r == ';' && !quoted:
			dirs = append(dirs, dir.String())
			dir.Reset()
		default:
			dir.WriteRune(r)
		}
	}
	return append(dirs, dir.String())
}

// knownDirs lists where installers put programs; entries whose variable is not
// set are relative and so passed over.
func (f *finder) knownDirs(name string) []string {
	home := f.home()
	in := func(parts ...string) string { // under the home directory
		if home == "" {
			return ""
		}
		return f.join(append([]string{home}, parts...)...)
	}
	if f.windows {
		return f.knownWindows(name, in)
	}
	dirs := []string{in(".local", "bin"), in(".claude", "local"), in(".npm-global", "bin")}
	if p := f.npmPrefix(in(".npmrc")); p != "" {
		dirs = append(dirs, f.join(p, "bin"))
	}
	dirs = append(dirs, f.get("NVM_BIN"))
	dirs = append(dirs, f.nodeVersions(cmp.Or(f.get("NVM_DIR"), in(".nvm")), "versions", "node")...)
	dirs = append(dirs,
		f.under("VOLTA_HOME", in(".volta"), "bin"),
		f.under("FNM_MULTISHELL_PATH", "", "bin"),
		f.under("PNPM_HOME", "", ""),
		in(".local", "share", "pnpm"),
		f.under("BUN_INSTALL", in(".bun"), "bin"),
		in(".local", "share", "mise", "shims"),
		f.under("ASDF_DATA_DIR", in(".asdf"), "shims"),
		in(".yarn", "bin"), in("bin"))
	if f.goos == "darwin" {
		dirs = append(dirs, in("Library", "pnpm"), "/opt/homebrew/bin", "/opt/local/bin")
	} else {
		dirs = append(dirs, "/home/linuxbrew/.linuxbrew/bin", "/snap/bin")
	}
	return append(dirs, "/usr/local/bin", "/usr/bin", "/bin")
}

func (f *finder) knownWindows(name string, in func(...string) string) []string {
	dirs := []string{in(".local", "bin"), in(".claude", "local")}
	if p := f.npmPrefix(in(".npmrc")); p != "" {
		dirs = append(dirs, p) // npm's prefix has the programs themselves there
	}
	return append(dirs,
		f.under("APPDATA", "", "npm"),
		f.under("NVM_SYMLINK", "", ""),
		f.under("LOCALAPPDATA", "", `Volta\bin`),
		f.under("VOLTA_HOME", "", "bin"),
		f.under("PNPM_HOME", "", ""),
		f.under("LOCALAPPDATA", "", "pnpm"),
		in(".bun", "bin"),
		in("scoop", "shims"),
		f.under("LOCALAPPDATA", "", `Microsoft\WinGet\Links`),
		f.under("LOCALAPPDATA", "", `Programs\`+name),
		f.under("ProgramFiles", "", "nodejs"))
}

// under joins sub to a variable's value, or to another directory without it.
func (f *finder) under(variable, other, sub string) string {
	dir := cmp.Or(f.get(variable), other)
	if dir == "" || sub == "" {
		return dir
	}
	return f.join(dir, sub)
}

// npmPrefix is where npm installs global programs: by variable, or by the
// "prefix" line of the user's .npmrc.
func (f *finder) npmPrefix(rc string) string {
	if p := cmp.Or(f.get("NPM_CONFIG_PREFIX"), f.get("npm_config_prefix")); p != "" {
		return p
	}
	if rc == "" {
		return ""
	}
	b, err := f.readFile(rc)
	if err != nil || len(b) > 1<<20 {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		key, value, ok := strings.Cut(line, "=")
		if !ok || strings.TrimSpace(key) != "prefix" {
			continue
		}
		p := strings.Trim(strings.TrimSpace(value), `"'`)
		p = strings.Replace(p, "${HOME}", f.home(), 1)
		if rest, ok := f.cutHome(p); ok {
			p = f.join(f.home(), rest)
		}
		return p
	}
	return ""
}

// nodeVersions lists the bin directories below nvm's, newest version first.
func (f *finder) nodeVersions(dir string, sub ...string) []string {
	if dir == "" {
		return nil
	}
	base := f.join(append([]string{dir}, sub...)...)
	entries, err := f.readDir(base)
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.SortFunc(names, func(a, b string) int { return slices.Compare(version(b), version(a)) })
	for i, n := range names {
		names[i] = f.join(base, n, "bin")
	}
	return names
}

// version reads "v22.3.1"; parts that are no numbers are 0.
func version(s string) []int {
	var v []int
	for part := range strings.SplitSeq(strings.TrimPrefix(s, "v"), ".") {
		n, _ := strconv.Atoi(part) // 0 sorts it last, which is what is wanted
		v = append(v, n)
	}
	return v
}

func (f *finder) get(name string) string {
	if v, ok := f.vars[name]; ok || !f.windows {
		return v
	}
	for k, v := range f.vars {
		if strings.EqualFold(k, name) {
			return v
		}
	}
	return ""
}

func (f *finder) home() string {
	if f.windows {
		return cmp.Or(f.get("USERPROFILE"), f.get("HOME"))
	}
	return f.get("HOME")
}

func (f *finder) cutHome(p string) (string, bool) {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		return rest, true
	}
	if f.windows {
		return strings.CutPrefix(p, `~\`)
	}
	return "", false
}

func (f *finder) hasDir(p string) bool {
	if f.windows {
		return strings.ContainsAny(p, `/\:`)
	}
	return strings.ContainsRune(p, '/')
}

func (f *finder) abs(p string) bool {
	if !f.windows {
		return strings.HasPrefix(p, "/")
	}
	if strings.HasPrefix(p, `\\`) || strings.HasPrefix(p, "//") {
		return true
	}
	return len(p) >= 3 && p[1] == ':' && (p[2] == '\\' || p[2] == '/') && (p[0]|0x20) >= 'a' && (p[0]|0x20) <= 'z'
}

func (f *finder) join(parts ...string) string {
	sep, trim := "/", "/"
	if f.windows {
		sep, trim = `\`, `/\`
	}
	out := strings.TrimRight(parts[0], trim)
	for _, p := range parts[1:] {
		out += sep + strings.Trim(p, trim)
	}
	return out
}
