package setup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/pathname"
)

// Name is the name of reprise's own entry.
const Name = "reprise"

// The small programs that are installed beside reprise.
const (
	HookProgram      = "reprise-hook"
	SuperviseProgram = "reprise-supervise"
	RecallProgram    = "reprise-recall"
)

// Beside is where a program of ours stands that is installed with program.
func Beside(program, name string) string {
	if filepath.Ext(program) == ".exe" {
		name += ".exe"
	}
	return filepath.Join(filepath.Dir(program), name)
}

// FilesystemName is the name of the filesystem server's entry.
const FilesystemName = "filesystem"

// FilesystemPackage is the npm package of that server.
const FilesystemPackage = "@modelcontextprotocol/server-filesystem"

// Setup installs into clients and out of them again.
type Setup struct {
	Where
	Paths config.Paths
	Now   func() time.Time
	Disk  durable.Disk

	left *[]string // see changer
}

// Request says what to install or uninstall.
type Request struct {
	Client       string // canonical name
	Scope        string // "" is the client's default
	Program      string // absolute path of reprise
	ConfigFile   string // --config for the server; "" for none
	Filesystem   []string
	MemoryDir    string // must be inside one of Filesystem
	Instructions bool
	DryRun       bool
	// Copy are names of servers in the project's own settings (.mcp.json) that are put
	// beside reprise's, as they stand there.
	Copy []string
}

// carried are the variables that decide where reprise's files are. A client
// started from a desktop does not have what a shell has, so those that are set
// at the time of the install are written into the entry: server and shell then
// use the same memory.
var carried = [...]string{"REPRISE_HOME", "REPRISE_CONFIG", "MCP_BRIDGE_CONFIG", "AI_MEMORY_PATH"}

// Server is reprise's own entry for a request.
func (s Setup) Server(r Request) Server {
	srv := Server{Name: Name, Command: r.Program, Args: []string{"mcp"}}
	if r.ConfigFile != "" {
		srv.Args = append(srv.Args, "--config", r.ConfigFile)
	}
	for _, name := range carried {
		if v := s.Env.Get(name); v != "" && !(strings.HasSuffix(name, "_CONFIG") && r.ConfigFile != "") {
			srv.Env = append(srv.Env, member{name, v})
		}
	}
	return srv
}

// Install puts the entries in. Nothing is changed where they are already.
func (s Setup) Install(ctx context.Context, r Request) ([]Change, error) {
	if !r.DryRun {
		dry := r
		dry.DryRun = true
		if _, err := s.install(ctx, dry, nil); err != nil {
			return nil, told(err, nil)
		}
	}
	changes, err := s.install(ctx, r, nil)
	return changes, told(err, changed(r.DryRun, changes))
}

// changed are the changes that were made: none of a dry run.
func changed(dry bool, changes []Change) []Change {
	if dry {
		return nil
	}
	return changes
}

// beside is what else is put into the file of the server.
type beside struct {
	what     string
	edit     func(text []byte) ([]byte, error)
	tell     func(*note)
	warnings []string
}

// install puts the entries in, and what goes into the same file beside them: nil for
// nothing.
func (s Setup) install(ctx context.Context, r Request, also *beside) ([]Change, error) {
	t, add, warnings, err := s.toInstall(r)
	if err != nil {
		return nil, err
	}
	var changes []Change
	made := map[string]made{}
	ch, err := s.changer(t, r.DryRun).apply(ctx, t.File, perm(t.Scope), func(in input) ([]byte, bool, error) {
		clear(made)
		text, err := t.install(in, add, made)
		if err == nil && also != nil {
			text, err = also.edit(text)
		}
		return text, false, err
	}, func(n *note) {
		for k, m := range made {
			if _, known := n.Entries[k]; !known {
				n.Entries[k] = m
			}
		}
		if also != nil {
			also.tell(n)
		}
	})
	if err != nil {
		return nil, err
	}
	ch.What, ch.Warnings = "MCP server", warnings
	if also != nil {
		ch.What, ch.Warnings = also.what, append(ch.Warnings, also.warnings...)
	}
	changes = append(changes, ch)
	if r.Instructions {
		ch, err := s.changer(t, r.DryRun).apply(ctx, t.Doc, perm(t.Scope), func(in input) ([]byte, bool, error) {
			text, err := setInstructions(in.text)
			return text, false, err
		}, func(n *note) { n.Entries["instructions"] = instructionsMade })
		if err != nil {
			return changes, err
		}
		ch.What = "instructions"
		changes = append(changes, ch)
	}
	return changes, nil
}

// toInstall is where the servers of a request go, and which they are.
func (s Setup) toInstall(r Request) (t Target, add []Server, warnings []string, err error) {
	if t, err = Locate(s.Where, r.Client, r.Scope); err != nil {
		return t, nil, nil, err
	}
	if !filepath.IsAbs(r.Program) {
		return t, nil, nil, fmt.Errorf("install into %s: %q is not an absolute path of a program", t.Client, r.Program)
	}
	if r.Instructions && t.Doc == "" {
		return t, nil, nil, fmt.Errorf("install into %s: there is no instructions file for scope %s; leave out --with-instructions", t.Client, t.Scope)
	}
	fsServer, warnings, err := s.filesystem(r)
	if err != nil {
		return t, nil, nil, err
	}
	warnings = append(s.warnings(t, r), warnings...)
	add = []Server{s.Server(r)}
	if fsServer != nil {
		add = append(add, *fsServer)
	}
	for _, name := range r.Copy {
		srv, err := s.copied(r.Client, name)
		if err != nil {
			return t, nil, nil, err
		}
		add = append(add, srv)
	}
	return t, add, warnings, nil
}

// copied is a server of the project's settings, to be put elsewhere as it is: agents
// that Claude Code starts within a session do not get the servers of .mcp.json.
func (s Setup) copied(client, name string) (Server, error) {
	from, err := Locate(s.Where, client, Project)
	if err != nil {
		return Server{}, fmt.Errorf("copy server %s: %w", name, err)
	}
	if name == Name {
		return Server{}, fmt.Errorf("copy server %s: that is reprise's own entry, which is put in anyway", name)
	}
	e, ok, err := Find(from, name)
	switch {
	case err != nil:
		return Server{}, fmt.Errorf("copy server %s from %s: %w", name, from.File, err)
	case !ok:
		return Server{}, fmt.Errorf("copy server %s: %s has none of that name", name, from.File)
	case e.Command == "":
		return Server{}, fmt.Errorf("copy server %s: in %s it has no command, and only servers that are started can be copied", name, from.File)
	}
	srv := Server{Name: name, Command: e.Command, Args: e.Args}
	for _, k := range slices.Sorted(maps.Keys(e.Env)) {
		srv.Env = append(srv.Env, member{k, e.Env[k]})
	}
	return srv, nil
}

// ownNames are the servers that a note says were put in, reprise's own first.
func (t Target) ownNames(n *note) []string {
	names := []string{Name}
	prefix := strings.Join(t.Keys, "\x1f") + "\x1f"
	for _, key := range slices.Sorted(maps.Keys(n.Entries)) {
		if name, ok := strings.CutPrefix(key, prefix); ok && name != Name && !strings.Contains(name, "\x1f") {
			names = append(names, name)
		}
	}
	return names
}

// instructionsMade marks an instructions section in a note: nothing is around
// it.
var instructionsMade = made{}

func perm(scope string) fs.FileMode {
	if scope == Project {
		return 0o644 // shared with others through the repository anyway
	}
	return 0o600
}

func (s Setup) changer(t Target, dry bool) changer {
	c := changer{notes: filepath.Join(s.Paths.Data, "clients"), now: s.Now, dry: dry, disk: s.Disk, left: s.left}
	if t.Scope == Project {
		c.root = s.Root
	}
	return c
}

// install puts servers into the text of a settings file.
func (t Target) install(in input, servers []Server, did map[string]made) ([]byte, error) {
	text := in.text
	fresh := len(bytes.TrimSpace(text)) == 0
	if !t.TOML && fresh {
		text = []byte("{}\n")
	}
	orig := text
	for _, srv := range servers {
		path, entry := t.path(srv.Name), t.entry(srv)
		if srv.Name == FilesystemName {
			entry = t.mergeFilesystem(text, path, entry)
		} else {
			entry = t.mergeOwn(text, path, entry)
		}
		var err error
		created := 0
		before := text
		if t.TOML {
			text, err = setTOML(text, path, entry)
		} else {
			text, created, err = setJSON(text, path, entry)
			for _, name := range carried {
				if err == nil && !hasMember(entry, "env", name) {
					text, _, err = removeJSON(text, append(path[:len(path):len(path)], "env", name), 0)
				}
			}
		}
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(before, text) {
			did[strings.Join(path, "\x1f")] = made{Empties: created}
		}
	}
	if bytes.Equal(orig, text) {
		return in.text, nil
	}
	if !t.TOML {
		paths := make([][]string, len(servers))
		for i, srv := range servers {
			paths[i] = t.path(srv.Name)
		}
		if err := sameButJSON(orig, text, paths); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// mergeOwn respects what the user set in an entry that is there: tools chosen
// and variables added stay. In TOML a table of variables is written whole, so
// the ones to keep are put into it here.
func (t Target) mergeOwn(text []byte, path []string, entry object) object {
	old, ok := t.readEntry(text, path)
	if !ok {
		return entry
	}
	entry = slices.DeleteFunc(slices.Clone(entry), func(m member) bool { return m.Key == "tools" && old.Tools != nil })
	if !t.TOML || len(old.Env) == 0 {
		return entry
	}
	var env object
	for _, name := range slices.Sorted(maps.Keys(old.Env)) {
		if !slices.Contains(carried[:], name) {
			env = append(env, member{name, old.Env[name]})
		}
	}
	i := slices.IndexFunc(entry, func(m member) bool { return m.Key == "env" })
	if i < 0 {
		return append(entry, member{"env", env})
	}
	entry[i].Val = append(env, entry[i].Val.(object)...)
	return entry
}

func hasMember(o object, path ...string) bool {
	for _, m := range o {
		if m.Key == path[0] {
			sub, ok := m.Val.(object)
			return len(path) == 1 || ok && hasMember(sub, path[1:]...)
		}
	}
	return false
}

// mergeFilesystem keeps the directories that an entry has already and adds
// the new ones, when it runs the same server.
func (t Target) mergeFilesystem(text []byte, path []string, entry object) object {
	old, ok := t.readEntry(text, path)
	if !ok || old.FilesystemDirs() == nil {
		return entry
	}
	args := slices.Clone(old.Args)
	for _, m := range entry {
		if m.Key != "args" {
			continue
		}
		for _, d := range (Entry{Args: m.Val.([]string)}).FilesystemDirs() {
			if !slices.Contains(args, d) {
				args = append(args, d)
			}
		}
	}
	return object{{"args", args}}
}

// sameButJSON checks that two texts differ at the paths only. It is the last
// check before a file is written.
func sameButJSON(before, after []byte, paths [][]string) error {
	a, err := parseJSONFile(before)
	if err != nil {
		return err
	}
	b, err := parseJSONFile(after)
	if err != nil {
		return fmt.Errorf("the edit would break the file: %w", err)
	}
	va, _, errA := a.get(nil)
	vb, _, errB := b.get(nil)
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	da, okA := va.(map[string]any)
	db, okB := vb.(map[string]any)
	if !okA || !okB {
		return errNotObject
	}
	for _, p := range paths {
		forget(da, p)
		forget(db, p)
	}
	if !reflect.DeepEqual(da, db) {
		return errors.New("the edit would change something else in the file")
	}
	return nil
}

// Uninstall takes the entries out. Where nothing else was changed since the
// install, the file is what it was before, byte for byte. The filesystem entry
// goes only if it was made by Install; the instructions go if they are there.
func (s Setup) Uninstall(ctx context.Context, r Request) ([]Change, error) {
	s.left = new([]string)
	changes, err := s.uninstall(ctx, r)
	err = errors.Join(err, s.changer(Target{}, r.DryRun).sweepLeft(ctx))
	return changes, told(err, changed(r.DryRun, changes))
}

func (s Setup) uninstall(ctx context.Context, r Request) ([]Change, error) {
	t, err := Locate(s.Where, r.Client, r.Scope)
	if err != nil {
		return nil, err
	}
	var undone []string
	ch, err := s.changer(t, r.DryRun).apply(ctx, t.File, perm(t.Scope), func(in input) ([]byte, bool, error) {
		undone = undone[:0]
		if !in.exists {
			return nil, true, nil
		}
		text, gone, err := t.uninstall(in, t.ownNames(in.note), &undone)
		return text, gone, err
	}, func(n *note) {
		for _, k := range undone {
			delete(n.Entries, k)
		}
	})
	if err != nil {
		return nil, err
	}
	ch.What = "MCP server"
	changes := []Change{ch}
	doc, err := s.uninstallDoc(ctx, t, r.DryRun)
	if doc != nil {
		changes = append(changes, *doc)
	}
	return changes, err
}

// uninstallDoc takes the section out of a client's instructions file; nil where it had none.
func (s Setup) uninstallDoc(ctx context.Context, t Target, dry bool) (*Change, error) {
	if t.Doc == "" {
		return nil, nil
	}
	doc, err := s.changer(t, dry).apply(ctx, t.Doc, perm(t.Scope), func(in input) ([]byte, bool, error) {
		if !in.exists {
			return nil, true, nil
		}
		if text, gone, ok := in.note.restore(in.raw, "instructions"); ok {
			return text, gone, nil
		}
		text, _, err := removeInstructions(in.text)
		return text, false, err
	}, func(n *note) { delete(n.Entries, "instructions") })
	if err != nil || doc.Action == "unchanged" {
		return nil, err
	}
	doc.What = "instructions"
	return &doc, nil
}

func (t Target) uninstall(in input, names []string, undone *[]string) ([]byte, bool, error) {
	text := in.text
	paths := make([][]string, len(names))
	found := false
	for i, name := range slices.Backward(names) {
		path := t.path(name)
		paths[i] = path
		key := strings.Join(path, "\x1f")
		var there bool
		var err error
		if t.TOML {
			text, there, err = removeTOML(text, path)
		} else if len(bytes.TrimSpace(text)) > 0 {
			empties := in.note.Entries[key].Empties
			if len(in.note.Entries) == 0 { // as with hooks
				empties = 1
			}
			text, there, err = removeJSON(text, path, empties)
		}
		if err != nil {
			return nil, false, err
		}
		if there {
			found = true
			*undone = append(*undone, key)
		}
	}
	if !found {
		return in.text, false, nil
	}
	if old, gone, ok := t.restore(in, paths); ok {
		return old, gone, nil
	}
	if !t.TOML {
		if err := sameButJSON(in.text, text, paths); err != nil {
			return nil, false, err
		}
	}
	return text, false, nil
}

// restore is the text before the install, if that is all that happened to the
// file since, and if it did not have the entries itself.
func (t Target) restore(in input, paths [][]string) ([]byte, bool, bool) {
	var keys []string
	for _, p := range paths {
		keys = append(keys, strings.Join(p, "\x1f"))
	}
	old, gone, ok := in.note.restore(in.raw, keys...)
	if !ok || gone {
		return old, gone, ok
	}
	if t.ours(old, paths[0]) {
		return nil, false, false
	}
	return old, false, true
}

// ours reports whether a text has reprise's entry. Another program's of the same name is
// its user's, and comes back when ours goes.
func (t Target) ours(text []byte, path []string) bool {
	e, had := t.readEntry(text, path)
	name := e.Command[strings.LastIndexAny(e.Command, `/\`)+1:]
	return had && strings.HasPrefix(name, Name) && slices.Contains(e.Args, "mcp") // reprise.exe, reprise-1.2
}

// filesystem is the entry of the filesystem server, checked.
func (s Setup) filesystem(r Request) (*Server, []string, error) {
	if len(r.Filesystem) == 0 {
		return nil, nil, nil
	}
	var dirs []string
	for _, d := range r.Filesystem {
		abs, err := s.Env.Expand(d)
		if err != nil && d != "" && !strings.HasPrefix(d, "~") {
			abs, err = filepath.Join(s.Dir, d), nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("allow directory %q: it %w", d, err)
		}
		info, err := os.Stat(abs)
		if err != nil {
			return nil, nil, fmt.Errorf("allow directory: %w; the server would not start", err)
		}
		if !info.IsDir() {
			return nil, nil, fmt.Errorf("allow directory: %s is not a directory", abs)
		}
		if !slices.Contains(dirs, abs) {
			dirs = append(dirs, abs)
		}
	}
	var warnings []string
	if r.MemoryDir != "" && !insideAny(dirs, r.MemoryDir) {
		warnings = append(warnings, fmt.Sprintf("the memory directory %s is in none of the filesystem server's directories, so that server cannot read it; add --with-filesystem %s", r.MemoryDir, r.MemoryDir))
	}
	srv := &Server{Name: FilesystemName, Command: "npx", Args: append([]string{"-y", FilesystemPackage}, dirs...)}
	if s.Env.GOOS == "windows" { // npx is a script there, and clients start programs
		srv.Command, srv.Args = "cmd", append([]string{"/c", "npx"}, srv.Args...)
	}
	return srv, warnings, nil
}

func insideAny(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return inside(d, path) })
}

// inside tells whether path is dir or below it, links resolved.
func inside(dir, path string) bool {
	d, err := resolveExisting(dir)
	if err != nil {
		return false
	}
	p, err := resolveExisting(path)
	if err != nil {
		return false
	}
	return pathname.Within(d, p)
}

func resolveExisting(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return resolveParent(path)
	}
	return real, err
}

func (s Setup) warnings(t Target, r Request) []string {
	var w []string
	slash := filepath.ToSlash(r.Program)
	if strings.Contains(slash, "/go-build") {
		w = append(w, fmt.Sprintf("%s was built by `go run` and will be gone soon; build reprise (`go install ./cmd/...`) and install again with that program", r.Program))
	}
	if t.Scope == Project {
		w = append(w, fmt.Sprintf("%s is shared through the repository, and the entry names this machine's %s; for yourself alone use --scope user", t.File, r.Program))
	}
	return w
}

// Entry is a server's entry as it stands in a client's settings.
type Entry struct {
	Target  Target            `json:"-"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env,omitempty"`
	Tools   any               `json:"tools,omitempty"`
}

// FilesystemDirs are the directories of an entry that runs the filesystem
// server; nil when it runs something else.
func (e Entry) FilesystemDirs() []string {
	for i, a := range e.Args {
		if a == FilesystemPackage || strings.HasPrefix(a, FilesystemPackage+"@") {
			return append([]string{}, e.Args[i+1:]...)
		}
	}
	return nil
}

func (t Target) readEntry(text []byte, path []string) (Entry, bool) {
	e := Entry{Target: t}
	var v any
	var ok bool
	if t.TOML {
		doc, err := parseTOML(text)
		if err != nil {
			return e, false
		}
		v, ok = lookup(doc, path)
	} else {
		f, err := parseJSONFile(text)
		if err != nil {
			return e, false
		}
		if v, ok, err = f.get(path); err != nil {
			return e, false
		}
	}
	if !ok {
		return e, false
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return e, false
	}
	// Of a wrong type is as good as none: what can be read is kept.
	_ = json.Unmarshal(raw, &e)
	return e, true
}

// Find looks for an entry in a client's settings. ok is false when there is
// none. An error means that the file cannot be read or does not parse.
func Find(t Target, name string) (e Entry, ok bool, err error) {
	raw, exists, err := readSettings(t.File)
	if err != nil || !exists {
		return Entry{Target: t}, false, err
	}
	text := bytes.TrimPrefix(raw, bom)
	if len(bytes.TrimSpace(text)) == 0 {
		return Entry{Target: t}, false, nil
	}
	if t.TOML {
		_, err = parseTOML(text)
	} else {
		_, err = parseJSONFile(text)
	}
	if err != nil {
		return Entry{Target: t}, false, err
	}
	e, ok = t.readEntry(text, t.path(name))
	return e, ok, nil
}
