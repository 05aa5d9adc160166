package guard

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/durable"
	"reprise/internal/guard/names"
)

// OwnTools are the tools of reprise's own server, by name: they have rules of their own.
// Any server can call itself reprise, so the server's name alone says nothing.
func OwnTools() []string {
	return []string{
		"append_episodic_log", "append_file", "cancel_agent", "check_agent", "create_memory_block", "list_agents",
		"loop_ask", "loop_progress", "memory_read", "memory_search", "spawn_agent",
		"state_artifact", "state_checkpoint", "state_context", "state_decide", "state_focus", "state_handoff", "state_learn", "state_log", "state_note", "state_scratch", "state_search",
		"task_begin", "task_cancel", "task_errors", "task_finish", "task_list", "task_new", "task_set", "task_show", "task_todo",
		"update_memory_block",
	}
}

// ownTool reports whether a tool has the name of one of reprise's, in any client's form.
func ownTool(name string) bool {
	for _, p := range [...]string{"mcp__reprise__", "mcp_reprise_", "mcp__plugin_reprise_reprise__", "reprise__", "reprise-", "reprise/"} {
		if tool, ok := strings.CutPrefix(name, p); ok && slices.Contains(OwnTools(), tool) {
			return true
		}
	}
	return false
}

// serverFiles are the files in a project by which it brings along servers of tools.
var serverFiles = [...]string{".mcp.json", ".gemini/settings.json", ".vscode/mcp.json", ".github/mcp.json", ".copilot/mcp-config.json"}

// maxServerFile is the most that is read of such a file, in bytes.
const maxServerFile = 1 << 20

// broughtAlong is the file of the work by which another program than reprise goes by the
// name of its server, "" where there is none.
func (a *analysis) broughtAlong() string {
	for _, root := range a.r.Roots {
		for _, name := range serverFiles {
			path := filepath.Join(root, filepath.FromSlash(name))
			if _, err := os.Stat(path); err != nil {
				continue
			}
			if data, err := durable.ReadFile(path, maxServerFile); err != nil || a.renames(data) {
				return name // also where nobody can tell what is in it
			}
		}
		data, err := durable.ReadFile(filepath.Join(root, ".codex", "config.toml"), maxServerFile)
		if err == nil && strings.Contains(string(data), "mcp_servers") && strings.Contains(string(data), "reprise") {
			return ".codex/config.toml"
		}
	}
	return ""
}

// renames reports whether a file of servers has one called reprise that is not reprise
// as its setup writes it: `reprise mcp`, the program by its bare name or outside the work.
func (a *analysis) renames(data []byte) bool {
	type server struct {
		Command string            `json:"command"`
		Args    []string          `json:"args"`
		Env     map[string]string `json:"env"`
		URL     string            `json:"url"`
		HTTPURL string            `json:"httpUrl"`
	}
	var file struct {
		McpServers map[string]server `json:"mcpServers"`
		Servers    map[string]server `json:"servers"`
	}
	if json.Unmarshal(data, &file) != nil {
		return strings.Contains(string(data), `"reprise"`) // with comments, or in another form
	}
	for _, servers := range [...]map[string]server{file.McpServers, file.Servers} {
		for name, s := range servers {
			if !strings.EqualFold(name, "reprise") {
				continue
			}
			program := strings.TrimSuffix(s.Command, ".exe")
			ours := program == "reprise" || filepath.IsAbs(program) && filepath.Base(program) == "reprise" && a.root(a.physical("/", program)) == ""
			ours = ours && len(s.Args) > 0 && s.Args[0] == "mcp" && s.URL == "" && s.HTTPURL == ""
			for v := range s.Env {
				ours = ours && strings.HasPrefix(v, "REPRISE_")
			}
			if !ours {
				return true
			}
		}
	}
	return false
}

// mcp judges a tool of an MCP server: by rules, and by what its texts name.
func (a *analysis) mcp(c *Call, st *state) {
	if ownTool(c.Name) {
		file := a.broughtAlong()
		if file == "" {
			return
		}
		a.give("unknown-tool", Ask, c.Name, file+" has another program go by the name of reprise's server", "have the user take that server out of "+file)
	}
	a.arguments(c, st)
	if a.r.Unattended && !a.r.MCP {
		a.give("unknown-tool", Ask, c.Name, "it is not known what the tool does", "have the user allow it by a rule with its name")
	}
}

// arguments judges what the texts of a tool that nothing is known of name: commands,
// files and addresses, by the names that servers give them.
func (a *analysis) arguments(c *Call, st *state) {
	a.commands(c, st)
	how := use{perhaps: true}
	if onlyReads(c.Name) {
		how = use{read: true, asks: true}
	}
	for _, t := range c.Texts {
		name := argument(t.Name)
		switch {
		case strings.HasPrefix(strings.ToLower(t.Value), "file:"):
			before := len(a.parts)
			if a.resource(t.Value, st); len(a.parts) == before {
				a.touched(filePath(t.Value), st)
			}
		case commandName(name):
		case pathName(name):
			a.file(t.Value, st, how)
			if strings.HasSuffix(name, "s") && strings.ContainsAny(t.Value, ",;\n") { // a list in one text
				for _, one := range strings.FieldsFunc(t.Value, func(r rune) bool { return strings.ContainsRune(",;\n", r) }) {
					a.file(strings.Trim(one, " \t\"'[]"), st, how)
				}
			}
		default:
			if first, key, ok := strings.Cut(t.Name, "."); ok && pathName(argument(first)) {
				a.file(key, st, how) // a file's text, under the file's name
			}
			a.touched(t.Value, st)
		}
	}
}

// touched judges a text that may be a file's name and may be something else: only what
// is protected, or a secret, is found in it.
func (a *analysis) touched(text string, st *state) {
	if len(text) > 1024 || strings.ContainsAny(text, " \t\n\r\x00") || !strings.ContainsAny(text, "./~") || strings.Contains(text, "://") {
		return
	}
	path := a.fromHome(text)
	for _, base := range a.bases(path, st) {
		p := a.physical(base, path)
		if secret := names.Secret(p); secret != "" {
			a.give("reads-secret", Ask, text, "it may read or change "+secret, "leave files that hold secrets to the user")
			return
		}
		if bad, what := a.protected(p, use{perhaps: true}); bad && !a.agentsOwn(p) {
			a.give("protected-file", Ask, text, "it may change "+what, "leave these files to the user")
			return
		}
	}
}

// commands judges the commands that a tool is given: a text for a shell, several of them,
// a program's words, and words beside a program.
func (a *analysis) commands(c *Call, st *state) {
	dir := ""
	var more []string // words that stand beside the program
	words := map[string][]string{}
	var order []string
	for _, t := range c.Texts {
		switch name := argument(t.Name); name {
		case "cwd", "workdir", "workingdir", "workingdirectory", "directory":
			dir = t.Value
		case "args", "argv", "arguments", "parameters", "params":
			more = append(more, t.Value)
		default:
			if commandName(name) {
				way, _, _ := strings.Cut(t.Name, "[")
				if words[way] == nil {
					order = append(order, way)
				}
				words[way] = append(words[way], t.Value)
			}
		}
	}
	if len(order) == 0 {
		return
	}
	st = st.fork()
	if dir != "" {
		a.chdir(word{text: dir, src: dir}, st)
	}
	run := func(list []string) {
		var argv []word
		for _, w := range list {
			argv = append(argv, word{text: w, src: w})
		}
		a.execProgram(argv, st.fork())
	}
	for _, way := range order {
		list := words[way]
		one := len(list) == 1
		if !one && !strings.HasSuffix(argument(way), "s") {
			run(list)
		}
		if len(more) > 0 && one {
			run(append(strings.Fields(list[0]), more...))
			if len(more) == 1 {
				a.shellText(list[0]+" "+more[0], st.fork())
			}
		}
		if one || strings.HasSuffix(argument(way), "s") {
			for _, text := range list {
				a.shellText(text, st.fork())
			}
		}
	}
}

// argument is the last name of the way to a text as it is compared: servers write
// file_path, filePath and file-path.
func argument(way string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(last(way)))
}

// onlyReads reports whether a tool of a server says by its name that it reads. Whether it
// does is the server's word, which the user chose.
func onlyReads(tool string) bool {
	name := tool[max(strings.LastIndex(tool, "__"), strings.LastIndexAny(tool, "/-"))+1:]
	name = strings.ToLower(strings.TrimLeft(name, "_"))
	if rest, ok := strings.CutPrefix(name, "mcp_"); ok {
		_, name, _ = strings.Cut(rest, "_")
	}
	for _, w := range [...]string{"write", "edit", "delete", "remove", "move", "create", "update", "set", "replace", "append", "rename", "exec", "run", "save", "put", "patch", "copy", "upload", "apply", "insert", "modify", "and"} {
		if strings.Contains(name, w) && w != "set" && w != "and" && w != "put" || slices.Contains(strings.Split(name, "_"), w) {
			return false
		}
	}
	for _, w := range [...]string{"read", "get", "list", "search", "find", "view", "show", "cat", "stat", "glob", "grep", "tree", "directory_tree", "describe", "open", "load", "fetch", "query", "info"} {
		if rest, ok := strings.CutPrefix(name, w); ok && (rest == "" || rest[0] == '_' || len(w) > 3) {
			return true
		}
	}
	return false
}

// commandName reports whether an argument of that name is a command.
func commandName(name string) bool {
	switch name {
	case "command", "cmd", "script", "shellcommand", "commands", "cmds", "scripts", "shellcommands", "commandline", "commandlines", "cmdline", "shellscript", "bash", "bashcommand", "terminalcommand", "exec", "program", "executable", "binary", "commandtext", "commandstring", "cmdstring", "cmdtext", "shellcmd", "runcommand", "bashscript":
		return true
	}
	return false
}

// pathName reports whether an argument of that name is a file's or a directory's name.
func pathName(name string) bool {
	switch name {
	case "source", "src", "destination", "dest", "dst", "target", "targets", "sources", "destinations", "from", "to", "output", "outputs", "root", "roots", "cwd":
		return true
	}
	switch name {
	case "profile", "profiles", "xpath", "jsonpath", "jmespath", "urlpath", "apipath", "uripath", "routepath", "requestpath", "httppath":
		return false
	}
	for _, end := range [...]string{"path", "paths", "file", "files", "filename", "filenames", "dir", "dirs", "directory", "directories", "folder", "folders"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}
