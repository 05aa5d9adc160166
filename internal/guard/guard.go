// Package guard decides whether a tool call of an agent would touch a
// directory that is none of its business: the memory directory first of all.
//
// It is a function of a policy and a call that looks at the file system only
// to resolve symbolic links and globs; it owns no file, writes none and takes
// no lock. It is one of several layers: a program that the agent may run can
// always open a file in a way that no reader of commands foresees, so the
// client's own rules stand before it and, where there is one, an operating
// system sandbox behind it.
package guard

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Policy says what is protected. Directories are absolute; each protects
// itself and everything below it.
type Policy struct {
	WorkDir   string   `json:"work_dir"`             // where the agent's relative paths start
	DenyAll   []string `json:"deny_all,omitempty"`   // neither readable nor writable
	DenyWrite []string `json:"deny_write,omitempty"` // readable, not writable
	Home      string   `json:"home,omitempty"`       // what ~ and $HOME mean; "" unknown
	// Vars are variables of the agent's environment that lead to a protected
	// directory, so that a command which goes through them is understood.
	Vars map[string]string `json:"vars,omitempty"`
}

// ToolCall is a call that an agent wants to make.
type ToolCall struct {
	Name  string          // as the client names its tool
	Input json.RawMessage // the tool's own arguments, an object
	Cwd   string          // the client's current directory; "" means Policy.WorkDir
}

// Memory judges a call against the policy. What it cannot read it denies.
func Memory(p Policy, call ToolCall) Verdict {
	if call.Cwd == "" {
		call.Cwd = p.WorkDir
	}
	if ownTool(call.Name) || proseTool(call.Name) {
		// reprise's own tools keep their own rules; the others carry words
		// for a model, and what that model then does is judged by itself.
		return Verdict{Decision: None}
	}
	var in map[string]any
	if len(call.Input) > 0 && json.Unmarshal(call.Input, &in) != nil {
		return deny("the arguments of %s are not a JSON object", call.Name)
	}
	g := newJudge(p, call.Cwd)
	var why string
	t, known := fileToolOf(call.Name)
	command, isCommand := in["command"].(string)
	switch {
	case known:
		why = g.fileTool(t, in)
	case call.Name == "PowerShell":
		why = g.tokens(command)
	case isCommand:
		why = g.shell(command)
	case shellTool(call.Name):
		// Nothing to run: the client will say so itself.
	default:
		why = g.anyString(in, 0)
	}
	if why != "" {
		return Verdict{Decision: Deny, Reason: why}
	}
	return Verdict{Decision: None}
}

// fileTool is a tool of the client that works on named files.
type fileTool struct {
	key     string // the argument that is a path, or a pattern of paths
	read    bool   // only reads
	recurse bool   // goes down from the directory path; without one from the current one
}

// fileToolOf is a tool by its name; ok is false for what is none.
func fileToolOf(name string) (t fileTool, ok bool) {
	switch name {
	case "Read":
		return fileTool{key: "file_path", read: true}, true
	case "NotebookRead":
		return fileTool{key: "notebook_path", read: true}, true
	case "LS":
		return fileTool{key: "path", read: true}, true
	case "Glob":
		return fileTool{key: "pattern", read: true, recurse: true}, true
	case "Grep":
		return fileTool{key: "glob", read: true, recurse: true}, true
	case "Write", "Edit", "MultiEdit":
		return fileTool{key: "file_path"}, true
	case "NotebookEdit":
		return fileTool{key: "notebook_path"}, true
	}
	return fileTool{}, false
}

func shellTool(name string) bool { return name == "Bash" || name == "Monitor" || name == "PowerShell" }

// proseTool reports whether a tool takes text for a model or a person, or nothing.
func proseTool(name string) bool {
	switch name {
	case "Agent", "Task", "TaskStop", "TodoWrite", "SendMessage", "AskUserQuestion",
		"WebSearch", "Skill", "ToolSearch", "ReportFindings", "StructuredOutput",
		"ListAgents", "ScheduleWakeup", "CronCreate", "CronDelete", "CronList", "ExitPlanMode":
		return true
	}
	return false
}

func (g *judge) fileTool(t fileTool, in map[string]any) string {
	base := g.cwds[0]
	if t.recurse {
		dir, _ := in["path"].(string)
		base = g.abs(base, dir)
		if why := g.path(base, base, use{read: t.read}); why != "" {
			return why
		}
	}
	v, _ := in[t.key].(string)
	u := use{read: t.read, shallow: true}
	switch {
	case v == "":
		return ""
	case !t.recurse: // a file's name is taken as it is, * and all
		return g.path(g.abs(base, v), v, u)
	}
	return g.pattern(g.abs(base, v), v, u) // it narrows what base spans
}

// anyString looks at every text in the arguments of a tool that is not known.
func (g *judge) anyString(v any, depth int) string {
	if depth > 100 {
		return "the arguments are nested too deeply to be read"
	}
	switch v := v.(type) {
	case string:
		if path, ok := strings.CutPrefix(v, "file://"); ok {
			v = path
		}
		if why := g.mention(v, use{}); why != "" {
			return why
		}
		if v == "" || len(v) > 4096 || strings.ContainsAny(v, "\n\x00") {
			return ""
		}
		return g.path(g.abs(g.cwds[0], g.tilde(v)), v, use{})
	case []any:
		for _, x := range v {
			if why := g.anyString(x, depth+1); why != "" {
				return why
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) { // so that the same call is answered the same
			if why := g.anyString(v[name], depth+1); why != "" {
				return why
			}
		}
	}
	return ""
}

// tokens reads a command of a language that is not parsed: every word of it.
func (g *judge) tokens(command string) string {
	if why := g.mention(command, use{}); why != "" {
		return why
	}
	for _, w := range strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`;|&()<>,=", r) }) {
		if why := g.pattern(g.abs(g.cwds[0], g.tilde(w)), w, use{}); why != "" {
			return why
		}
	}
	return ""
}

// foldCase says that the system's usual file system takes two spellings of a
// name for one.
const foldCase = runtime.GOOS == "darwin" || runtime.GOOS == "windows"

func fold(s string) string {
	if foldCase {
		return strings.ToLower(s)
	}
	return s
}

// inside reports whether path is dir or lies below it.
func inside(path, dir string) bool {
	path, dir = fold(path), fold(dir)
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator)))
	return path == dir || ok && rest != "" && rest[0] == filepath.Separator
}
