package place

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"reprise/internal/durable"
)

// Where reprise's files are, which settings hold, and whether a hook speaks at all is for the
// user to say, and clients let a repository have a say in it: Claude Code puts `env` of a
// project's .claude/settings.json into its own environment, and with it into that of hooks and
// MCP servers, and Gemini CLI reads .env of the directory and of those above it. (Seen with
// Claude Code 2.1.332 and Gemini CLI 0.61.0: with REPRISE_HOOK_DEPTH, REPRISE_HOME or
// REPRISE_CONFIG there a repository had no guard.)

// imposable are the variables by which a repository could decide, beside all REPRISE_*.
var imposable = []string{"MCP_BRIDGE_CONFIG", "AI_MEMORY_PATH", "AGENT_ROLE", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "HOME", "USERPROFILE", "LOCALAPPDATA", "APPDATA"}

// maxImposing bounds a file that is looked at, in bytes; a client's settings have a few thousand.
const maxImposing = 1 << 20

// Imposed is a variable that a file of a repository sets.
type Imposed struct{ Name, File string }

// ImposedBy are the variables that a project's files have a client set: claude or gemini, both
// where client is another name. vars is the environment, dir the directory of the project, and
// home the user's: what stands in its own files is the user's. Files that cannot be read, or
// that are none, set nothing, for the clients either.
func ImposedBy(client string, vars map[string]string, dir, home string) []Imposed {
	var out []Imposed
	add := func(file string, of func(text string) (sets func(name string) bool)) {
		var sets func(name string) bool
		for name := range vars {
			if !strings.HasPrefix(name, "REPRISE_") && !slices.Contains(imposable, name) {
				continue
			}
			if sets == nil {
				data, err := durable.ReadFile(file, maxImposing)
				if err != nil || len(data) == 0 {
					return
				}
				sets = of(string(data))
			}
			if sets(name) {
				out = append(out, Imposed{name, file})
			}
		}
	}
	if client != "gemini" && dir != "" {
		for _, name := range []string{"settings.json", "settings.local.json"} {
			if filepath.Clean(dir) != filepath.Clean(home) { // else they are the user's
				add(filepath.Join(dir, ".claude", name), inSettings)
			}
		}
	}
	if client != "claude" {
		for at := dir; at != "" && filepath.Clean(at) != filepath.Clean(home); at = filepath.Dir(at) {
			add(filepath.Join(at, ".gemini", ".env"), inDotenv)
			add(filepath.Join(at, ".env"), inDotenv)
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	slices.SortFunc(out, func(a, b Imposed) int { return strings.Compare(a.Name+a.File, b.Name+b.File) })
	return out
}

// inSettings is whether a variable's name is a key in Claude Code's settings. They are not read
// as JSON: whoever starts at each call links no reader of it, and what stands there as a key
// anywhere is none of the user's.
func inSettings(text string) (sets func(name string) bool) {
	text = unescaped(text)
	return func(name string) bool {
		for rest := text; ; {
			i := strings.Index(rest, `"`+name+`"`)
			if i < 0 {
				return false
			}
			rest = rest[i+len(name)+2:]
			if strings.HasPrefix(strings.TrimLeft(rest, " \t\r\n"), ":") {
				return true
			}
		}
	}
}

// unescaped has the letters that JSON may write as \uXXXX written out, those that a name can
// have. A repository makes the text: it is gone through once, however many there are.
func unescaped(text string) string {
	var b strings.Builder
	for {
		at := strings.Index(text, `\u`)
		if at < 0 || at+6 > len(text) {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:at])
		n, err := strconv.ParseUint(text[at+2:at+6], 16, 16)
		if err != nil || n < 0x20 || n >= 0x7f || n == '"' || n == '\\' {
			b.WriteString(text[at : at+2])
			text = text[at+2:]
			continue
		}
		b.WriteByte(byte(n))
		text = text[at+6:]
	}
}

// inDotenv is whether a file of NAME=VALUE lines sets a variable.
func inDotenv(text string) (sets func(name string) bool) {
	return func(name string) bool {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(line, "\ufeff")), "export "))
			rest, ok := strings.CutPrefix(line, name)
			if rest = strings.TrimSpace(rest); ok && rest != "" && (rest[0] == '=' || rest[0] == ':') {
				return true
			}
		}
		return false
	}
}

// Disown takes out of an environment what a repository put there; see [ImposedBy]. What a client
// was started with is not known any more: without such a variable the places and settings are
// the usual ones. It returns what was taken out, which the process itself unsets for what it
// starts.
func Disown(client string, vars map[string]string, dir string) []Imposed {
	list := ImposedBy(client, vars, dir, "")
	if len(list) == 0 {
		return nil
	}
	if !slices.ContainsFunc(list, func(i Imposed) bool { return i.Name == "HOME" }) { // a home that the repository names is no reason to believe it
		list = ImposedBy(client, vars, dir, vars["HOME"])
	}
	for _, i := range list {
		delete(vars, i.Name)
	}
	return list
}
