package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Load reads the settings. The file is, in this order: flag (the value of
// --config; a relative one is taken from the working directory), REPRISE_CONFIG,
// MCP_BRIDGE_CONFIG, and paths.ConfigFile. One that was named must exist; the
// default place may be empty. An older settings file, such as
// ~/.claude-agent-memory/bridge-config.yaml, is read only when it is named:
// its presence alone changes nothing.
//
// source is the file that was read, "" when there was none. AI_MEMORY_PATH sets
// the memory directory where the file does not. Errors are *Error or Errors.
func Load(env Env, paths Paths, flag string) (s Settings, source string, err error) {
	l, source, err := load(env, paths, flag)
	if err != nil {
		return Settings{}, source, err
	}
	return l.out, source, nil
}

func load(env Env, paths Paths, flag string) (*loader, string, error) {
	file, named, err := settingsFile(env, paths, flag)
	if err != nil {
		return nil, "", err
	}
	l := &loader{env: env, out: Default(paths), set: map[string]int{}, document: &document{file: file}}
	data, err := readFile(file)
	if err != nil && (named || !errors.Is(err, fs.ErrNotExist)) {
		return nil, file, err
	}
	if link := dangling(file); err != nil && link != "" {
		// Whoever put the link there has settings, with rules that forbid: they are not none.
		return nil, file, &Error{File: link, Problem: "is a link to a place that is not there, so that the settings cannot be read", Remedy: "bring back what it leads to, or remove the link", Err: err}
	}
	source := ""
	if err == nil {
		source = file
		if err := l.parse(data); err != nil {
			return nil, file, err
		}
	}
	if err := l.memoryVariable(); err != nil {
		return nil, source, err
	}
	return l, source, nil
}

// dangling is the link by which a file is not there although its name is, "" where
// nothing of that name is there.
func dangling(file string) string {
	for p := file; ; p = filepath.Dir(p) {
		if info, err := os.Lstat(p); err == nil {
			if info.Mode()&fs.ModeSymlink == 0 {
				return ""
			}
			if _, err := os.Stat(p); errors.Is(err, fs.ErrNotExist) {
				return p
			}
			return ""
		}
		if p == filepath.Dir(p) {
			return ""
		}
	}
}

// settingsFile decides which file holds the settings, and whether it was named.
func settingsFile(env Env, paths Paths, flag string) (file string, named bool, err error) {
	if flag != "" {
		file, err := env.Expand(flag)
		if err == nil {
			return file, true, nil
		}
		if !strings.HasPrefix(flag, "~") && !strings.ContainsFunc(flag, func(r rune) bool { return r < 0x20 }) && env.Dir != "" {
			return env.Join(env.Dir, flag), true, nil
		}
		return "", true, &Error{File: CommandLine, Key: "--config", Problem: fmt.Sprintf("%q %v", shown(flag), err), Remedy: pathRemedy, Err: err}
	}
	for _, name := range []string{"REPRISE_CONFIG", "MCP_BRIDGE_CONFIG"} {
		v := env.Get(name)
		if v == "" {
			continue
		}
		file, err := env.Expand(v)
		if err != nil {
			return "", true, &Error{File: "environment", Key: name, Problem: fmt.Sprintf("%q %v", shown(v), err), Remedy: pathRemedy + ", or unset it", Err: err}
		}
		return file, true, nil
	}
	return paths.ConfigFile, false, nil
}

// parse fills in what the file says.
func (l *loader) parse(data []byte) error {
	d, err := parseYAML(l.file, data)
	if err != nil {
		return err
	}
	l.document = d
	table, sections := known()
	at := map[string]ast.Node{}
	l.walk(l.entries("", l.root), table, sections, at)
	l.together(at)
	return l.errs.err()
}

func (l *loader) walk(entries []entry, table map[string]key, sections map[string]bool, at map[string]ast.Node) {
	for _, e := range entries {
		if k, ok := table[e.key]; ok {
			at[e.key] = e.node
			l.set[e.key] = e.node.GetToken().Position.Line
			k.read(l, e.value)
			continue
		}
		if sections[e.key] {
			at[e.key] = e.node
			if sub, ok := l.mapping(e.key, e.value); ok {
				l.walk(sub, table, sections, at)
			}
			continue
		}
		l.add(e.node, e.key, "is not a setting", suggest(e.key, table, sections))
	}
}

// together checks what no single key can say.
func (l *loader) together(at map[string]ast.Node) {
	l.delegation(at)
	l.fleet()
	o := l.out.HTTP.OAuth
	if reflect.DeepEqual(o, OAuth{}) || len(l.errs) > 0 {
		return
	}
	if o.Issuer == "" {
		l.add(at["http.oauth"], "http.oauth.issuer", "is missing", "set the issuer, or remove the section")
	}
	if o.Audience == "" && o.Resource == "" && l.out.HTTP.PublicURL == "" {
		l.add(at["http.oauth"], "http.oauth.audience", "is missing", "set http.public_url to this server's address as clients see it, or the audience that tokens for it name")
	}
}

// delegation refuses limits by which a session is refused before it is told.
func (l *loader) delegation(at map[string]ast.Node) {
	d := l.out.Delegation
	for _, k := range []struct {
		name        string
		warn, block int
	}{{"delegation.conductor", d.ConductorWarn, d.ConductorBlock}, {"delegation.section_leader", d.SectionLeaderWarn, d.SectionLeaderBlock}} {
		node, key := at[k.name+".block"], k.name+".block"
		if node == nil {
			node, key = at[k.name+".warn"], k.name+".warn"
		}
		if node != nil && k.block > 0 && k.warn > k.block {
			l.add(node, key, fmt.Sprintf("refuses after %d calls a session that is told from call %d on", k.block, k.warn),
				fmt.Sprintf("set %s.warn to %d or less, or %s.block to %d or more", k.name, k.block, k.name, k.warn))
		}
	}
}

// RemoveIt begins what to do about a name that no setting has: a file that people share may be
// of a newer program.
const RemoveIt = "remove it, or update reprise where a newer one wrote it; "

// suggest names the setting that was probably meant.
func suggest(name string, table map[string]key, sections map[string]bool) string {
	best, dist := "", min(4, max(2, len(name)/2)) // most of a short name is another word
	for _, cand := range slices.Sorted(mapKeys(table, sections)) {
		if d := distance(name, cand); d < dist {
			best, dist = cand, d
		}
		// The right name in the wrong section, or without one.
		last := cand[strings.LastIndexByte(cand, '.')+1:]
		if last == name[strings.LastIndexByte(name, '.')+1:] && dist > 1 {
			best, dist = cand, 1
		}
	}
	if best != "" {
		return "did you mean " + best + "? `reprise config show` lists all settings"
	}
	return RemoveIt + "`reprise config show` lists all settings"
}

// thereAre is what to do about a name that is none of those that there are.
func thereAre(name string, names ...string) string {
	list := "there are " + strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
	for _, n := range names {
		if len(name) > 2 && distance(name, n) <= max(1, len(name)/4) {
			return "did you mean " + n + "? " + list
		}
	}
	return RemoveIt + list
}

func mapKeys(table map[string]key, sections map[string]bool) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range table {
			if !yield(k) {
				return
			}
		}
		for k := range sections {
			if !yield(k) {
				return
			}
		}
	}
}

// distance is the number of edits between a and b, two letters that have changed places
// being one, or a large number when the words are too long to be worth comparing.
func distance(a, b string) int {
	if len(a) > 80 {
		return 1 << 20
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

// memoryVariable applies AI_MEMORY_PATH.
func (l *loader) memoryVariable() error {
	v := l.env.Get("AI_MEMORY_PATH")
	if v == "" || l.set["memory.directory"] != 0 {
		return nil
	}
	dir, problem, remedy := checkDir(l.env, v)
	if problem != "" {
		return &Error{File: "environment", Key: "AI_MEMORY_PATH", Problem: problem, Remedy: remedy + ", or unset it"}
	}
	l.out.Memory.Directory = dir
	return nil
}

// Item is one setting as it is in force.
type Item struct {
	Key    string `json:"key"`
	Value  any    `json:"value"` // int, float64, string or []string
	Doc    string `json:"doc"`
	Origin string `json:"origin"` // "default", "AI_MEMORY_PATH" or "file:line"
	// Words are the only values that it can have; nil is any of its kind.
	Words []string `json:"-"`
}

// Explain loads like Load and lists every setting with where its value is from.
func Explain(env Env, paths Paths, flag string) (items []Item, source string, err error) {
	l, source, err := load(env, paths, flag)
	if err != nil {
		return nil, source, err
	}
	for _, k := range keys() {
		it := Item{Key: k.name, Value: k.value(l.out), Doc: k.doc, Origin: "default", Words: k.words}
		if line := l.set[k.name]; line != 0 {
			it.Origin = fmt.Sprintf("%s:%d", source, line)
		} else if k.name == "memory.directory" && l.env.Get("AI_MEMORY_PATH") != "" {
			it.Origin = "AI_MEMORY_PATH"
		}
		items = append(items, it)
	}
	return items, source, nil
}

// CheckSettings says what is wrong with a text that is to become the settings
// file: Errors, or nil.
func CheckSettings(env Env, paths Paths, file string, data []byte) error {
	_, err := parsed(env, paths, file, data)
	return err
}
