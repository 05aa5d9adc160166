package guard

import (
	"fmt"
	"strings"
	"testing"
)

// serverCalls are calls of tools of servers of which nothing is known, with what is
// thought of them: where Ask is wanted, Deny will do.
func serverCalls() (out []toolCall) {
	add := func(want Decision, list ...[]string) {
		for _, c := range list {
			out = append(out, toolCall{"mcp", "mcp__x__do", c, want})
		}
	}
	add(None,
		texts("paths[0]", "f", "paths[1]", "sub/g"), texts("relative_path", "src/new.go", "content", "see .env and /etc/shadow"), texts("target", "main"), texts("uri", "file:f"), texts("commands[0]", "ls", "commands[1]", "cat f"),
		texts("command[0]", "ls", "command[1]", "-la"), texts("command", "ls", "args[0]", "-la"), texts("command", "cat g", "cwd", "sub"), texts("from", "2026-01-01", "to", "2026-02-01"), texts("profile", "/x"), texts("xpath", "//div[@id]"), texts("query", "/api/v1/users"),
		texts("body", "Hello. How are you?"), texts("url", "https://example.org/.env"), texts("files.new.go", "package x"), texts("source", "Alice", "target", "Bob"), texts(),
		texts("name", strings.Repeat("x/", 600)+".env"), texts("name", "a /.env"), texts("name", "https://example.org/.mcp.json"), texts("key", "env"), texts("path", "x;y"), texts("body.x", ".env is not read"), texts("body./opt/x", "y"), texts("command", "echo", "args[0]", "x;touch y", "args[1]", "z"))
	add(Ask,
		texts("paths[0]", "/etc/shadow"), texts("paths[0]", "f", "paths[1]", ".env"), texts("relative_path", ".mcp.json", "content", "y"), texts("relativePath", ".mcp.json"), texts("target", ".mcp.json"), texts("paths[0]", ".mcp.json"), texts("uri", "file:.git/config", "content", "x"), texts("uri", "file:.env"),
		texts("commands[0]", "rm -rf /"), texts("commands[0]", "ls", "commands[1]", "touch x"), texts("command[0]", "rm", "command[1]", "-rf", "command[2]", "/"), texts("command", "git", "args[0]", "push", "args[1]", "--force"), texts("command", "git", "args", "push -f origin main"), texts("cmd", "cat g", "cwd", "/etc"), texts("shellCommand", "touch x"), texts("steps[0].command", "touch x"),
		texts("outputFile", "/opt/x"), texts("output_path", "../x"), texts("target_file", ".claude/settings.json"), texts("files[0]", ".env"), texts("files..mcp.json", "{}"), texts("file_list", ".git/hooks/pre-commit"), texts("name", ".env"), texts("what", "~/.ssh/id_rsa"), texts("anything", "file:///etc/passwd"), texts("paths", "f, .env"), texts("edits[0].filePath", "/opt/x"), texts("new-path", "/opt/x"), texts("to", "/opt/x"),
		texts("command", "cat x", "cwd", "/etc"), texts("command", "touch", "args", "x"), texts("command", "touch x", "args[0]", "y", "args[1]", "z"), texts("name", ".mcp.json"), texts("name", ".claude/settings.json"))
	for _, name := range strings.Fields("cwd workdir workingdir working_directory directory") {
		add(Ask, texts("command", "cat passwd", name, "/etc"))
		add(None, texts("command", "cat ../f", name, "sub"))
	}
	for _, name := range strings.Fields("args argv arguments parameters params") {
		add(Ask, texts("command", "touch", name+"[0]", "x"), texts("command", "git", name+"[0]", "push", name+"[1]", "origin"), texts("command", "git", name, "push origin"))
	}
	for _, name := range strings.Fields("command cmd script shell_command commands cmds scripts shell_commands command_line commandLines cmdline shellScript bash bash-command terminalCommand exec") {
		add(Ask, texts(name, "touch x"), texts(name+"[0]", "touch x"))
		add(None, texts(name, "ls -la"))
	}
	for _, name := range strings.Fields("source src destination dest dst target targets sources destinations from to output outputs root roots cwd workdir workingdir path file_paths file files filename fileNames dir dirs directory directories folder outputFolders") {
		add(Deny, texts(name, "/opt/x"))
		add(None, texts(name, "sub/x"))
	}
	for _, name := range strings.Fields("paths files fileNames dirs directories folders sources") {
		add(Deny, texts(name, "f, /opt/x"), texts(name, "f;/opt/x"), texts(name, "f\n/opt/x"))
	}
	for _, name := range strings.Fields("profile profiles xpath json_path jmespath urlPath apiPath uriPath routePath requestPath httpPath") {
		add(None, texts(name, "/opt/x"))
	}
	add(Deny, texts("commands[0]", "rm -rf /"), texts("command[0]", "rm", "command[1]", "-rf", "command[2]", "/"), texts("command", "git", "args[0]", "push", "args[1]", "-f", "args[2]", "origin", "args[3]", "main"), texts("paths[0]", ".mcp.json"), texts("relative_path", ".mcp.json"), texts("files./opt/x", "y"))
	return out
}

// What a server of tools is given is judged by what it names, however the server calls
// its arguments: also where the settings let such tools be used unattended.
func TestArgumentsOfServers(t *testing.T) {
	p := newProject(t)
	for _, unattended := range []bool{false, true} {
		r := p.rules()
		r.MCP, r.Unattended = true, unattended
		for _, c := range serverCalls() {
			if v := r.Judge(c.call(p.dir)); v.Decision != c.want && !(c.want == Ask && v.Decision == Deny) {
				t.Errorf("%q: %s, want %s: %s", c.texts, v.Decision, c.want, v.Reason)
			}
		}
	}
}

// fronts are how clients write the name of reprise's server before a tool's.
var fronts = []string{"mcp__reprise__", "mcp_reprise_", "mcp__plugin_reprise_reprise__", "reprise__", "reprise-", "reprise/"}

// Any server can call itself reprise: its tools pass by the names of reprise's own only.
func TestOwnToolsByName(t *testing.T) {
	p := newProject(t)
	r := p.rules()
	r.Unattended = true
	judge := func(name string, c ...string) Decision {
		return r.Judge(toolCall{"mcp", name, c, None}.call(p.dir)).Decision
	}
	for _, front := range fronts {
		for _, own := range OwnTools() {
			if d := judge(front+own, "command", "touch x", "path", "/etc/shadow"); d != None {
				t.Errorf("%s%s: %s", front, own, d)
			}
		}
		if d := judge(front + "foo"); d != Ask {
			t.Errorf("%sfoo: %s", front, d)
		}
		if d := judge(front+"bash", "command", "rm -rf /"); d != Deny {
			t.Errorf("%sbash: %s", front, d)
		}
	}
}

const ownServer = `{"mcpServers":{"reprise":{"type":"stdio","command":"/usr/local/bin/reprise","args":["mcp"],"env":{"REPRISE_HOME":"/x"}},"x":{"command":"y"}}}`

// brought is a file of servers in a project.
type brought struct {
	file, text string
	want       Decision
}

func (b brought) judge(t *testing.T, p project) Decision {
	t.Helper()
	p.put(t, map[string]string{b.file: strings.ReplaceAll(b.text, "PROJECT", p.dir)})
	r := p.rules()
	r.MCP, r.Unattended = true, true
	return r.Judge(toolCall{"mcp", "mcp__reprise__memory_read", nil, None}.call(p.dir)).Decision
}

// broughtServers are files by which a project brings servers along, and what is said
// of a tool of reprise's there.
var broughtServers = []brought{
	{".mcp.json", ownServer, None},
	{".mcp.json", `{"mcpServers":{"x":{"command":"./x"}}}`, None},
	{".mcp.json", `{"mcpServers":{"reprise":{"command":"reprise","args":["mcp","serve"]}}}`, None},
	{".mcp.json", `{"mcpServers":{"reprise":{"command":"./reprise","args":["mcp"]}}}`, Ask},
	{".mcp.json", `{"mcpServers":{"reprise":{"command":"PROJECT/reprise","args":["mcp"]}}}`, Ask},
	{".mcp.json", `{"mcpServers":{"reprise":{"command":"reprise","args":["x"]}}}`, Ask},
	{".mcp.json", `{"mcpServers":{"reprise":{"command":"reprise","args":["mcp"],"env":{"PATH":"."}}}}`, Ask},
	{".mcp.json", `{"mcpServers":{"reprise":{"url":"https://example.org"}}}`, Ask},
	{".mcp.json", `{"mcpServers":{"Reprise":{"command":"x"}}}`, Ask},
	{".mcp.json", `{ // as people write it` + "\n" + `"mcpServers":{"reprise":{}}}`, Ask},
	{".mcp.json", `{ // as people write it` + "\n" + `"mcpServers":{"x":{}}}`, None},
	{".gemini/settings.json", ownServer, None},
	{".gemini/settings.json", `{"mcpServers":{"reprise":{"command":"python3","args":["mcp"]}}}`, Ask},
	{".github/mcp.json", `{"servers":{"reprise":{"command":"./x"}}}`, Ask},
	{".copilot/mcp-config.json", `{"servers":{"reprise":{"command":"./x"}}}`, Ask},
	{".vscode/mcp.json", `{"servers":{"reprise":{"command":"./x"}}}`, Ask},
	{".codex/config.toml", "[mcp_servers.reprise]\ncommand = \"./x\"\n", Ask},
	{".codex/config.toml", "[mcp_servers.other]\ncommand = \"./x\"\n", None},
	{".codex/config.toml", "profile = \"reprise\"\n", None},
	{".mcp.json/in", "", Ask}, // what cannot be read
}

// Nor do they where the project brings another server of that name along.
func TestServersBroughtAlong(t *testing.T) {
	for _, b := range broughtServers {
		if d := b.judge(t, newProject(t)); d != b.want {
			t.Errorf("%s %s: %s, want %s", b.file, b.text, d, b.want)
		}
	}
}

// shellCalls are calls of tools that run something, in forms that are no usual ones.
func shellCalls() (out []toolCall) {
	add := func(want Decision, c ...string) {
		for _, tool := range []string{"unified_exec", "Bash"} {
			out = append(out, toolCall{"shell", tool, c, want})
		}
	}
	add(Ask, "input[0]", "rm", "input[1]", "-rf", "input[2]", "/")
	for _, name := range strings.Fields("input chars text cmd script") {
		add(Ask, name+"[0]", "rm", "command", "ls")
	}
	for _, name := range strings.Fields("args argv arguments commands") {
		add(Ask, "command", "ls", name, "x")
		add(Ask, "command[0]", "ls", name+"[0]", "x")
	}
	for _, name := range strings.Fields("input.argv program action.command[0] code") {
		add(Ask, name, "rm x")
	}
	for _, name := range strings.Fields("bash_id shell_id shellId session_id sessionId task_id process_id id pid workdir cwd dir_path directory description justification filter signal sandbox_permissions status timeout") {
		add(None, name, "sub")
	}
	for _, name := range strings.Fields("shell executable shell_path") {
		add(None, name, "bash")
	}
	for _, name := range strings.Fields("command cmd script input text chars") {
		want := None
		if strings.HasPrefix(name, "c") && name != "chars" || name == "script" {
			want = Allow // an empty command runs nothing
		}
		add(want, name, " ")
	}
	add(None, "session_id", "7", "chars", "")
	add(None, "input", "\x03")
	add(None, "text", "\x03")
	add(Allow, "command", "ls", "description", "list")
	add(None)
	return out
}

// A shell tool whose input is in no known form is asked about.
func TestShellToolsInAnotherForm(t *testing.T) {
	p := newProject(t)
	for _, c := range shellCalls() {
		if v := p.rules().Judge(c.call(p.dir)); v.Decision != c.want {
			t.Errorf("%s %q: %s, want %s: %s", c.name, c.texts, v.Decision, c.want, v.Reason)
		}
	}
}

// serverCases are the cases of these tests, for script/mutate.
func serverCases(t *testing.T) (out []mutationCase) {
	p := newProject(t)
	alone := p.rules()
	alone.MCP, alone.Unattended = true, true
	for _, c := range append(serverCalls(), shellCalls()...) {
		out = append(out, mutationCase{fmt.Sprintf("called %s %q", c.name, c.texts), func() string { return string(alone.Judge(c.call(p.dir)).Decision) }})
	}
	strict := p.rules()
	strict.Unattended = true
	for _, front := range fronts {
		for _, own := range append(OwnTools(), "foo") {
			c := toolCall{"mcp", front + own, nil, None}
			out = append(out, mutationCase{"own " + c.name, func() string { return string(strict.Judge(c.call(p.dir)).Decision) }})
		}
	}
	for _, b := range broughtServers {
		o := newProject(t)
		out = append(out, mutationCase{"brought " + b.file + " " + b.text, func() string { return string(b.judge(t, o)) }})
	}
	o := newMeant(t)
	for _, tt := range meantRules {
		out = append(out, mutationCase{"meant " + tt.shape + " " + tt.command, func() string {
			r := o.rules()
			r.List = []Rule{{Shape: tt.shape, Decision: Allow}}
			return string(r.Command(tt.command, o.dir).Decision)
		}})
	}
	return out
}
