package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"

	"reprise/internal/redact/suspect"
)

// Project is a directory tree with a .reprise/project.yaml.
type Project struct {
	Name    string   // unique on this machine; see CheckName
	Says    string   // the name that its file has, which may be an older or a newer one; see [Paths.Move]
	Root    string   // directory that holds .reprise/project.yaml, without symbolic links in it
	Main    string   // the repository's main checkout; equal to Root outside a linked worktree
	Aliases []string // names it had before, or is known by elsewhere
	// Asks are the settings of the file that count only once the user has
	// approved it; see [Paths.Trust].
	Asks []string
	// HooksOff are the kinds of events that the file switches off, among them.
	HooksOff []string
	// StateHooks are what the file says of hooks about an agent's state, by name;
	// among them, too.
	StateHooks map[string]string
	// ToolRecords say by kind of tool which calls are recorded, and RoleHooksOff
	// by role which kinds of events are not looked at, in place of what the
	// user's settings say; among them, too.
	ToolRecords  map[string]string
	RoleHooksOff map[string][]string
	// Guard is what the file says of judging tool calls, nil where it says
	// nothing. It only tightens, and so needs no approval.
	Guard *ProjectGuard
	// Verify are the file's checks, nil where it has none; among them, too.
	Verify *Verify
	// Routes are how the loop's runs go, by label; among them, too. See [RouteOf].
	Routes []Route
}

// File is the project's settings file.
func (p *Project) File() string { return ProjectFile(p.Root) }

// ProjectFile is where a project's settings are below its root.
func ProjectFile(root string) string { return filepath.Join(root, ".reprise", "project.yaml") }

// ProjectFormat is the version of project.yaml that this program reads.
const ProjectFormat = 1

// FindProject finds the project that dir belongs to; nil, nil when there is
// none. It looks in dir and upwards and stops at the top of a git working tree,
// or at the home directory, whichever comes first: what lies outside a
// repository says nothing about it. A linked worktree without a project file of
// its own belongs to the project of its main checkout. A submodule belongs to
// what it is part of. Git itself is not run.
func FindProject(env Env, dir string) (*Project, error) {
	if dir == "" {
		dir = env.Dir
	}
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("find project: %q is not an absolute path", dir)
	}
	var found *Project
	err := projectPlaces(env, dir, func(root string) (done bool, err error) {
		if _, foreign := foreignFile(root, dir); foreign {
			return false, nil
		}
		found, err = projectAt(root)
		return found != nil, err
	})
	if found != nil && err == nil {
		found.Says = found.Name
		if paths, err := FindPaths(env); err == nil {
			paths.find(found)
		}
	}
	return found, err
}

// ForeignProject is the project file that [FindProject] passes over because another user of
// the machine put it there, and that user's id; "" where there is none.
func ForeignProject(env Env, dir string) (file string, uid int) {
	_ = projectPlaces(env, dir, func(root string) (done bool, err error) {
		by, foreign := foreignFile(root, dir)
		if foreign {
			file, uid = ProjectFile(root), by
		}
		return foreign, nil
	})
	return file, uid
}

// projectPlaces visits the directories in which the file of the project of dir may lie, as
// [FindProject] says, the nearest first, until a visit is done or fails.
func projectPlaces(env Env, dir string, visit func(root string) (done bool, err error)) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("find project: %w", err)
	}
	home := ""
	if h, err := env.Home(); err == nil {
		if home, err = filepath.EvalSymlinks(h); err != nil {
			home = h
		}
	}
	for d := real; ; d = filepath.Dir(d) {
		if done, err := visit(d); done || err != nil {
			return err
		}
		if isAgentDir(d) { // the state's repository, and not the project's
			continue
		}
		kind, main, err := gitAt(d)
		if err != nil {
			return err
		}
		switch kind {
		case gitMain:
			return nil
		case gitLinked:
			return placesOfMain(main, d, real, visit)
		}
		if d == home || d == filepath.Dir(d) {
			return nil
		}
	}
}

// placesOfMain visits the main checkout where it has the directory that corresponds to dir
// in the worktree, and from there up to its top.
func placesOfMain(main, worktree, dir string, visit func(root string) (done bool, err error)) error {
	rel, err := filepath.Rel(worktree, dir)
	if err != nil {
		return fmt.Errorf("find project: %w", err)
	}
	for {
		if done, err := visit(filepath.Join(main, rel)); done || err != nil || rel == "." {
			return err
		}
		rel = filepath.Dir(rel)
	}
}

// projectAt reads the project file of root; nil, nil when there is none.
func projectAt(root string) (*Project, error) {
	file := ProjectFile(root)
	if _, err := os.Lstat(file); err != nil {
		if errors.Is(err, fs.ErrNotExist) || notDir(err) {
			return nil, nil
		}
		return nil, &Error{File: file, Problem: "cannot be read: " + cause(err), Remedy: "check its permissions", Err: err}
	}
	data, err := readFile(file)
	if err != nil {
		return nil, err
	}
	p, err := ParseProject(file, data)
	if err != nil {
		return nil, ofLink(root, file, err)
	}
	p.Root, p.Main = root, root
	if _, main, err := gitTop(root); err == nil && main != "" {
		p.Main = main
	}
	return p, nil
}

// ofLink is what is wrong with a project file. One that is a link to somewhere else, or
// lies in a directory that is, may show any file of the user's: a repository brings it
// along. So nothing of its text is repeated, which would be in every log.
func ofLink(root, file string, err error) error {
	real, lerr := filepath.EvalSymlinks(file)
	top, rerr := filepath.EvalSymlinks(root)
	if lerr == nil && rerr == nil {
		rel, relErr := filepath.Rel(top, real)
		if first, _, _ := strings.Cut(filepath.ToSlash(rel), "/"); relErr == nil && filepath.IsLocal(rel) && first != ".git" {
			return err
		}
	}
	return &Error{
		File: file, Problem: fmt.Sprintf("is a link to %s, which is no file of the project and holds no settings of one", real),
		Remedy: "put the file itself there, or remove the link",
	}
}

// askingKeys are settings by which a repository could have something run, or
// switched off. It brings them along unasked, so they wait for the user's
// approval.
var askingKeys = [...]string{"hooks", "tools", "profiles", "verify", "routes"}

// ParseProject reads a project file. Unknown keys are errors.
func ParseProject(file string, data []byte) (*Project, error) {
	d, err := parseYAML(file, data)
	if err != nil {
		return nil, err
	}
	p := &Project{}
	seen := map[string]bool{}
	for _, e := range d.entries("", d.root) {
		seen[e.key] = true
		switch e.key {
		case "v":
			d.projectVersion(e.value)
		case "name":
			if name, ok := d.str("name", e.value); ok {
				if err := CheckProjectName(name); err != nil {
					d.add(e.value, "name", err.Error(), nameRemedy)
				}
				p.Name = name
			}
		case "aliases":
			p.Aliases = d.aliases(e.value)
		case "guard":
			p.Guard = d.projectGuard(e.value)
		default:
			if !asks(e.key) {
				d.add(e.node, e.key, "is not a setting of a project", thereAre(e.key, "v", "name", "aliases", "hooks", "tools", "profiles", "verify", "routes", "guard"))
				break
			}
			p.Asks = append(p.Asks, e.key)
			switch e.key {
			case "hooks":
				p.HooksOff, p.StateHooks = d.projectHooks(e.value)
			case "tools":
				p.ToolRecords = d.projectTools(e.value)
			case "profiles":
				p.RoleHooksOff = d.projectProfiles(e.value)
			case "verify":
				p.Verify = d.projectVerify(e.value)
			case "routes":
				p.Routes = d.routes(e.value)
			}
		}
	}
	for _, k := range [...]string{"v", "name"} {
		if !seen[k] && len(d.errs) == 0 {
			d.errs = append(d.errs, &Error{File: file, Line: 1, Column: 1, Key: k, Problem: "is missing", Remedy: "add it, or remove the file and let `reprise init` write it anew"})
		}
	}
	if err := d.errs.err(); err != nil {
		return nil, err
	}
	return p, nil
}

func (d *document) projectVersion(n ast.Node) {
	v, ok := d.integer("v", n, 1, 1<<31-1)
	if ok && v > ProjectFormat {
		d.add(n, "v", fmt.Sprintf("%d is a format that this reprise does not know", v), "install a newer reprise")
	}
}

// projectHooks reads what a project says of hooks: "off", a list of kinds, and the
// switches of those about an agent's state.
func (d *document) projectHooks(n ast.Node) (off []string, state map[string]string) {
	entries, ok := d.mapping("hooks", n)
	if !ok {
		return nil, nil
	}
	state = map[string]string{}
	for _, e := range entries {
		switch {
		case e.key == "hooks.off":
			off = append(off, d.hookKinds(e)...)
		case !d.projectStateHook(e, state):
			d.add(e.node, e.key, "is not a setting of a project", RemoveIt+"there are off, a list of kinds of events, session_start, pre_compact, post_commit, on_error, session_end, branch_switch and edits")
		}
	}
	return off, state
}

// hookKinds is a list of kinds of events.
func (d *document) hookKinds(e entry) []string {
	var out []string
	names, nodes, ok := d.list(e.key, e.value)
	for i, name := range names {
		if _, problem, remedy := checkHookKind(Env{}, name); problem != "" && ok {
			d.add(nodes[i], fmt.Sprintf("%s[%d]", e.key, i), problem, remedy)
			continue
		}
		out = append(out, name)
	}
	return out
}

// projectTools reads what a project says of kinds of tools: "record".
func (d *document) projectTools(n ast.Node) map[string]string {
	out := map[string]string{}
	d.sections("tools", n, toolKinds[:], "record", func(tool string, e entry) {
		how, ok := d.str(e.key, e.value)
		switch {
		case !ok:
		case !slices.Contains(toolRecords[:], how):
			d.add(e.value, e.key, fmt.Sprintf("%q is not one of its values", shown(how)), "write one of "+strings.Join(toolRecords[:], ", "))
		default:
			out[tool] = how
		}
	})
	return out
}

// projectProfiles reads what a project says of roles: "hooks_off".
func (d *document) projectProfiles(n ast.Node) map[string][]string {
	out := map[string][]string{}
	d.sections("profiles", n, roles[:], "hooks_off", func(role string, e entry) { out[role] = d.hookKinds(e) })
	return out
}

// sections reads a section of sections, each of a known name and with the one
// setting.
func (d *document) sections(key string, n ast.Node, names []string, setting string, read func(name string, e entry)) {
	entries, ok := d.mapping(key, n)
	if !ok {
		return
	}
	for _, e := range entries {
		name := strings.TrimPrefix(e.key, key+".")
		if !slices.Contains(names, name) {
			d.add(e.node, e.key, "is not a setting of a project", "write one of "+strings.Join(names, ", "))
			continue
		}
		inner, ok := d.mapping(e.key, e.value)
		if !ok {
			continue
		}
		for _, i := range inner {
			if i.key != e.key+"."+setting {
				d.add(i.node, i.key, "is not a setting of a project", RemoveIt+"there is "+setting)
				continue
			}
			read(name, i)
		}
	}
}

func (d *document) aliases(n ast.Node) []string {
	if _, null := n.(*ast.NullNode); null {
		return nil
	}
	names, nodes, ok := d.list("aliases", n)
	if !ok {
		return nil
	}
	for i, name := range names {
		if err := CheckProjectName(name); err != nil {
			d.add(nodes[i], fmt.Sprintf("aliases[%d]", i), err.Error(), nameRemedy)
		}
	}
	return names
}

func asks(key string) bool { return slices.Contains(askingKeys[:], key) }

const nameRemedy = "use 1 to 63 lower-case letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"

// isName says what nameRemedy says. By hand, and not by a pattern: to compile one
// would be a twentieth of a hook's answer.
func isName(name string) bool {
	if len(name) > 63 {
		return false
	}
	for i, c := range []byte(name) {
		inner := c == '.' || c == '_' || c == '-'
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || inner && i > 0 && i < len(name)-1) {
			return false
		}
	}
	return name != ""
}

// isDevice says that Windows takes a name for a device, whatever follows its
// first dot.
func isDevice(name string) bool {
	name, _, _ = strings.Cut(name, ".")
	switch name {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(name) == 4 && (name[:3] == "com" || name[:3] == "lpt") && name[3] >= '0' && name[3] <= '9'
}

// CheckProjectName tells what is wrong with a project's name. It becomes a
// directory on every system: hence one case, no spaces, no device names.
func CheckProjectName(name string) error {
	switch {
	case name == "":
		return errors.New("is empty")
	case !isName(name) || strings.Contains(name, ".."):
		return fmt.Errorf("%q is not a project name", shown(name))
	case isDevice(name):
		return fmt.Errorf("%q is a device name on Windows", name)
	case strings.HasSuffix(name, ".lock") || strings.HasSuffix(name, ".git"):
		return fmt.Errorf("%q ends like one of git's own files", name)
	case suspect.String(name):
		return errors.New("looks as if it held a key or a password") // and is not repeated: it would be in every log
	}
	return nil
}

// NameFrom makes a project name of a directory's name; "" when nothing of it
// can be used, or a secret may be in it.
func NameFrom(dir string) string {
	if suspect.String(filepath.Base(dir)) {
		return ""
	}
	var b strings.Builder
	for _, r := range strings.ToLower(filepath.Base(dir)) {
		switch {
		case r < unicode.MaxASCII && (unicode.IsLower(r) || unicode.IsDigit(r)) || r == '_' || r == '.':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= 60 {
			break
		}
	}
	name := b.String()
	for strings.Contains(name, "..") {
		name = strings.ReplaceAll(name, "..", ".")
	}
	for _, suffix := range []string{".lock", ".git"} {
		name = strings.TrimSuffix(name, suffix)
	}
	name = strings.Trim(name, "-._")
	if CheckProjectName(name) != nil {
		if alt := name + "-project"; name != "" && CheckProjectName(alt) == nil {
			return alt
		}
		return ""
	}
	return name
}
