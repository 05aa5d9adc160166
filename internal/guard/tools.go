package guard

import (
	"slices"
	"strconv"
	"strings"

	"reprise/internal/guard/names"
)

// Call is a tool call of a client.
type Call struct {
	Kind  string // kind of tool, as package dialect has it: shell, read, write, edit, …
	Name  string // as the client has it
	Texts []Text // every text in the tool's input
	Cwd   string // the client's current directory
}

// Text is one text of a tool's input; Name is the way to it, such as "command"
// or "edits[0].path".
type Text struct{ Name, Value string }

func (c *Call) text(names ...string) (string, bool) {
	for _, n := range names {
		for _, t := range c.Texts {
			if t.Name == n {
				return t.Value, true
			}
		}
	}
	return "", false
}

// list are the texts of an array, in order.
func (c *Call) list(name string) []string {
	var out []string
	for {
		v, ok := c.text(name + "[" + strconv.Itoa(len(out)) + "]")
		if !ok {
			return out
		}
		out = append(out, v)
	}
}

// Judge judges a tool call. None means that nothing speaks against it, and
// nothing vouches for it either: it is left to the client's own permissions.
func (r *Rules) Judge(c Call) Verdict {
	a := newAnalysis(r)
	a.cur = current{text: c.Name}
	vouched := false
	a.run(func() {
		vouched = a.tool(&c)
		a.uncalled()
	})
	v := a.verdict()
	if v.Decision == Allow && !vouched {
		v.Decision = None
	}
	return v
}

// tool judges by the kind of tool; it reports whether the tool is vouched for
// where nothing is found.
func (a *analysis) tool(c *Call) bool {
	st := a.start(c.Cwd)
	if d, rule, ok := a.byRule([]word{{text: c.Name}}, nil); ok {
		a.ruled(rule, c.Name)
		if d == Allow {
			// It lifts asking, not refusing.
			before := len(a.parts)
			a.byKind(c, st)
			a.parts = append(a.parts[:before], slices.DeleteFunc(slices.Clone(a.parts[before:]), func(p Part) bool { return p.Decision == Ask })...)
			return true
		}
	}
	return a.byKind(c, st)
}

// byKind judges a tool by its kind.
func (a *analysis) byKind(c *Call, st *state) bool {
	switch c.Kind {
	case "shell":
		return a.shellTool(c, st)
	case "read":
		a.files(c, st, use{read: true})
		a.many(c, st)
	case "write", "edit":
		a.files(c, st, use{})
	case "search":
		a.search(c, st)
	case "fetch":
		return a.fetch(c)
	case "mcp":
		a.mcp(c, st)
	case "other":
		a.otherTool(c, st)
	}
	return false
}

// shellTool judges a tool that gives text to a shell.
func (a *analysis) shellTool(c *Call, st *state) bool {
	dir, _ := c.text("workdir", "cwd", "dir_path", "directory")
	a.chdir(word{text: dir, src: dir}, st)
	a.byShell(c)
	if words := c.list("command"); len(words) > 0 && !listed(c) {
		argv := make([]word, len(words))
		for i, w := range words {
			argv[i] = word{text: w, src: w}
		}
		a.execProgram(argv, st)
		return true
	}
	command, ok := c.text("command", "cmd", "script")
	typed, types := c.text("chars", "input", "text")
	switch {
	case listed(c):
		a.give("unknown-tool", Ask, c.Name, "what the tool is to run is in a form that is not known", "give it a command")
	case ok && (c.Name == "PowerShell" || c.Name == "powershell"):
		a.otherShell(command, st)
	case ok:
		a.shellText(command, st)
	case types && strings.Trim(typed, "\x03\x04\r\n ") != "":
		// It is typed into a program that runs already; what that makes of it
		// cannot be told.
		a.give("types-into-program", Ask, typed, "it types into a program that runs already", "start a command of its own")
	case unread(c):
		a.give("unknown-tool", Ask, c.Name, "what the tool is to run is in a form that is not known", "give it a command")
	default:
		return false // it looks at a command that runs already, or ends it
	}
	return true
}

// unread reports whether a shell tool that is given no command is given a text that may
// be one: all but what says which program it is about, and how.
func unread(c *Call) bool {
	return slices.ContainsFunc(c.Texts, func(t Text) bool {
		switch t.Name {
		case "chars", "input", "text", // what ends a program is no text
			"bash_id", "shell_id", "shellId", "session_id", "sessionId", "task_id", "process_id", "id", "pid", "shell", "executable", "shell_path",
			"workdir", "cwd", "dir_path", "directory", "description", "justification", "filter", "signal", "sandbox_permissions", "status", "timeout":
			return false
		}
		return strings.TrimSpace(t.Value) != ""
	})
}

// listed reports whether a shell tool is given words under a name by which it is usually
// given a text.
func listed(c *Call) bool {
	return slices.ContainsFunc(c.Texts, func(t Text) bool {
		switch name, _, list := strings.Cut(t.Name, "["); name {
		case "input", "chars", "text", "cmd", "script":
			return list
		case "args", "argv", "arguments", "commands":
			return true
		}
		return false
	})
}

// byShell judges which program a tool is to give its text to.
func (a *analysis) byShell(c *Call) {
	v, ok := c.text("shell", "executable", "shell_path")
	if !ok || v == "" {
		return
	}
	name, system := v, !strings.ContainsAny(v, `/\`)
	if strings.HasPrefix(v, "/") {
		name, system = a.installed(v, nil)
	}
	switch name {
	case "bash", "sh", "dash", "zsh", "ksh":
		if system {
			return
		}
	}
	a.give("unknown-program", Ask, v, "it is not one of the system's shells that the command is given to", "leave it out")
}

// otherShell judges a command for a shell whose grammar is not read: plain words
// mean the same in all of them.
func (a *analysis) otherShell(command string, st *state) {
	if len(command) > maxText || strings.Trim(command, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=, ") != "" || strings.TrimSpace(command) == "" {
		a.give("other-shell", Ask, "", "the guard does not read this shell's grammar", "use plain words, or bash")
		return
	}
	var argv []word
	for _, f := range strings.Fields(command) {
		argv = append(argv, word{text: f, src: f})
	}
	if a.cmdletLooks(argv, st) {
		return
	}
	switch argv[0].text {
	case "cd", "echo", "cat", "ls", "diff", "sort", "where", "type", "dir", "pwd", "rm", "cp", "mv", "curl", "wget", "tee", "set", "kill", "ps", "sleep", "man", "history":
		// These are other commands there, with other options.
		switch argv[0].text {
		case "pwd", "ls", "dir", "cat", "type", "echo", "ps":
			if !strings.Contains(command, " -") && !strings.Contains(command, " /") {
				if strings.ContainsAny(command, ":,") {
					// A drive of that shell, env: among them, or a list of names.
					break
				}
				for _, w := range argv[1:] {
					a.path(w, use{read: true}, st)
				}
				return
			}
		}
		a.give("other-shell", Ask, argv[0].text, "in this shell the name is another command's", "use the program's full name, or bash")
		return
	}
	for _, w := range argv {
		if strings.ContainsAny(w.text, ",") || strings.Contains(w.text, "::") || drive(w.text) {
			a.give("other-shell", Ask, w.text, "in this shell it may be a list, or a place on a drive", "leave it out, or use bash")
			return
		}
	}
	a.execProgram(argv, st)
}

// drive reports whether a word begins with what may be a drive: a name and a colon, and
// no address.
func drive(w string) bool {
	name, rest, ok := strings.Cut(w, ":")
	return ok && !strings.Contains(name, "/") && !strings.HasPrefix(rest, "//")
}

// files judges the tools that work on named files.
func (a *analysis) files(c *Call, st *state, u use) {
	found := false
	for _, t := range c.Texts {
		switch last(t.Name) {
		case "file_path", "notebook_path", "path", "absolute_path", "filePath", "filename", "file", "file_paths", "paths", "target_file", "absolutePath", "notebookPath", "uri":
			found = true
			a.file(t.Value, st, u)
		}
	}
	for _, t := range c.Texts {
		switch t.Name {
		case "patch", "input", "command", "diff":
			if strings.Contains(t.Value, "*** ") {
				found = true
				a.patch(t.Value, st)
			}
		}
	}
	if !found && !u.read {
		a.give("unknown-tool", Ask, c.Name, "which file the tool writes is not seen", "name the file")
	}
}

// last is the last name of the way to a text, without its place in a list.
func last(name string) string {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		name = name[i+1:]
	}
	name, _, _ = strings.Cut(name, "[")
	return name
}

// file judges a file's name as it is, * and all, for a tool with permissions of
// its own: inside the roots nothing is said.
func (a *analysis) file(name string, st *state, u use) {
	if name == "" {
		return
	}
	w := word{text: strings.TrimPrefix(name, "file://"), src: name}
	if a.r.Home != "" && (w.text == "~" || strings.HasPrefix(w.text, "~/")) {
		w.text = a.r.Home + w.text[1:]
	}
	if strings.IndexByte(name, 0) >= 0 {
		a.give("odd-bytes", Deny, name, "the name holds a NUL", "leave it out")
		return
	}
	changes, writes := "it changes ", "it writes to "
	if u.perhaps {
		changes, writes = "it may change ", "it may write to "
	}
	bases := a.bases(w.text, st)
	if len(bases) == 0 {
		a.give("unknown-directory", Ask, name, "the path is relative, and the directory is not known", "write an absolute path")
	}
	for _, base := range bases {
		p := a.physical(base, w.text)
		secret := names.Secret(p)
		bad, what := a.protected(p, u)
		switch {
		case !u.read && bad && !a.agentsOwn(p):
			a.give("protected-file", Deny, name, changes+what, "leave these files to the user")
		case secret != "":
			how := "it reads "
			if !u.read {
				how = changes
			}
			a.give("reads-secret", Ask, name, how+secret, "leave files that hold secrets to the user")
		case !u.read && names.Steers(p) != "":
			a.give("changes-settings", Ask, name, changes+names.Steers(p), "let the user do it, or allow it")
		case a.root(p) != "" || a.agentsOwn(p):
		case u.read && (u.asks || a.r.Unattended) && !system(p) && !a.clientsOwn(p) && a.checkout(p) == "":
			a.give("reads-outside", Ask, name, "it reads "+shown(p)+", outside the project", "read what is in the project, or have the user add its directory to guard.roots")
		case u.read:
		case a.checkout(p) != "":
			a.elsewhere(name, a.checkout(p))
		case a.r.Home != "" && inside(p, Resolve(a.r.Home)), slices.ContainsFunc(tempDirs[:], func(d string) bool { return inside(p, d) }):
			a.give("writes-outside", Ask, name, writes+shown(p)+", outside the project", "write into the project, or have the user add its directory to guard.roots")
		default:
			a.give("writes-outside", Deny, name, writes+shown(p)+", outside the project", "write into the project, or have the user add its directory to guard.roots")
		}
	}
}

// agentsOwn reports whether a path is one where a client's agent keeps notes of
// its own: plans, and its own memory. They decide nothing.
func (a *analysis) agentsOwn(p string) bool {
	if a.r.Home == "" {
		return false
	}
	home := Resolve(a.r.Home)
	if inside(p, home+"/.claude/plans") || inside(p, home+"/.claude/todos") || a.scratch(p) == scratchpad {
		return true
	}
	projects := home + "/.claude/projects"
	return inside(p, projects) && strings.Contains(p[len(projects):], "/memory/") && strings.HasSuffix(p, ".md")
}

// clientsOwn reports whether a path is one that a client has its agent read: skills and
// instructions of the user's, and what it put aside of long answers of tools.
func (a *analysis) clientsOwn(p string) bool {
	if a.scratch(p) != "" {
		return true
	}
	if a.r.Home == "" {
		return false
	}
	rest, ok := strings.CutPrefix(p, Resolve(a.r.Home)+"/")
	if !ok {
		return false
	}
	for _, d := range [...]string{".claude/skills", ".claude/plugins", ".claude/commands", ".claude/agents", ".claude/rules", ".claude/output-styles", ".claude/CLAUDE.md", ".agents/skills", ".codex/skills", ".codex/prompts", ".codex/AGENTS.md", ".gemini/skills", ".gemini/commands", ".gemini/extensions", ".gemini/GEMINI.md", ".copilot/skills", ".copilot/agents"} {
		if inside(rest, d) {
			return true
		}
	}
	return strings.HasPrefix(rest, ".claude/projects/") && strings.Contains(rest, "/tool-results/")
}

// scratchpad is the part of Claude Code's temporary directory that its agents write in.
const scratchpad = "scratchpad"

// scratch is the part of Claude Code's own temporary directory that a path lies in, of a
// session in this project: /tmp/claude-UID/PROJECT/SESSION/PART. "" where it is none.
func (a *analysis) scratch(p string) string {
	parts := strings.Split(strings.TrimPrefix(strings.TrimPrefix(p, "/private"), "/tmp/"), "/")
	if len(parts) < 4 || parts[0] != "claude" && !strings.HasPrefix(parts[0], "claude-") || !strings.HasPrefix(p, "/tmp/") && !strings.HasPrefix(p, "/private/tmp/") {
		return ""
	}
	for _, root := range a.roots {
		slug := strings.Map(func(r rune) rune {
			if r < 0x80 && isWordByte(byte(r)) {
				return r
			}
			return '-'
		}, root)
		if parts[1] == slug {
			return parts[3]
		}
	}
	return ""
}

// patch judges the files that a patch of Codex's form names.
func (a *analysis) patch(text string, st *state) {
	list := patched(text)
	for _, name := range list {
		a.file(name, st, use{})
	}
	if len(list) == 0 {
		a.give("unknown-tool", Ask, "", "the patch names no file in a form that is known", "use the client's own tool for editing files")
	}
}

// patched are the files that a patch of Codex's form names.
func patched(text string) []string {
	var list []string
	for l := range strings.Lines(text) {
		for _, head := range [...]string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if name, ok := strings.CutPrefix(strings.TrimSpace(l), head); ok {
				list = append(list, strings.TrimSpace(name))
			}
		}
	}
	return list
}

// fetch judges a tool that gets a page.
func (a *analysis) fetch(c *Call) bool {
	url, ok := c.text("url", "uri", "urls[0]")
	if list := c.list("urls"); len(list) > 1 {
		for _, more := range list[1:] {
			a.address(more)
		}
	}
	if !ok {
		// Some are given a text with addresses in it.
		prompt, _ := c.text("prompt", "query")
		for _, f := range strings.Fields(prompt) {
			if f = strings.Trim(f, "<>()[]{}\"'`,;.!?*"); addressLike(f) {
				a.address(f)
			}
		}
		return false
	}
	return a.address(url)
}

// addressLike reports whether a word of a text may be taken for an address: with a
// scheme, or a host's name, with a path behind it or www before.
func addressLike(w string) bool {
	host, _, deeper := strings.Cut(w, "/")
	host = strings.Trim(host, ".")
	name := host[strings.LastIndexByte(host, '.')+1:]
	named := strings.Contains(host, ".") && (strings.Trim(name, "0123456789") != "" || strings.Count(host, ".") == 3)
	return strings.Contains(w, "://") || strings.HasPrefix(strings.ToLower(w), "www.") || deeper && named
}

func (a *analysis) address(url string) bool {
	host := hostOf(url)
	switch {
	case strings.HasPrefix(strings.ToLower(url), "file:"):
		a.give("reads-outside", Ask, url, "it reads a file by an address", "name the file")
	case a.r.hostAllowed(host):
		return true
	default:
		a.give("network", Ask, host, "it reaches another machine", "have the user add the host to guard.hosts")
	}
	return false
}

// otherTool judges a tool of a client that nothing is known of.
func (a *analysis) otherTool(c *Call, st *state) {
	switch c.Name {
	case "TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "TaskOutput", "BashOutput", "KillShell", "KillBash", "TaskStop", "ExitPlanMode", "EnterPlanMode", "Skill", "SlashCommand",
		"SendMessage", "ReportFindings", "StructuredOutput", "ListAgents", "ScheduleWakeup", "CronList", "CronDelete", "ListMcpResourcesTool", "EnterWorktree",
		"update_plan", "list_mcp_resources", "write_todos", "save_memory", "activate_skill", "enter_plan_mode", "exit_plan_mode", "get_internal_docs",
		"read_bash", "stop_bash", "list_bash", "report_intent", "store_memory", "update_todo", "fetch_copilot_cli_documentation", "skill", "sql", "wait_agent", "close_agent", "view_plan":
		return
	case "ReadMcpResourceTool", "read_mcp_resource":
		for _, t := range c.Texts {
			a.resource(t.Value, st)
		}
		return
	case "LSP", "lsp":
		for _, t := range c.Texts {
			if pathName(argument(t.Name)) {
				a.file(t.Value, st, use{read: true})
			}
		}
		return
	case "ExitWorktree":
		if gone, _ := c.text("discard_changes"); gone == "true" {
			a.give("removes", Ask, c.Name, "it removes a working tree with the changes in it", "keep it, or commit first")
		}
		return
	case "write_bash":
		if typed, ok := c.text("input", "chars", "text"); ok && strings.Trim(typed, "\x03\x04\r\n {}") != "" {
			a.give("types-into-program", Ask, typed, "it types into a program that runs already", "start a command of its own")
		}
		return
	}
	a.byShell(c)
	for _, t := range c.Texts {
		switch last(t.Name) {
		case "command", "cmd", "script", "shell_command", "bash":
			a.shellText(t.Value, st.fork())
		case "url":
			a.address(t.Value)
		default:
			if pathName(argument(t.Name)) {
				a.file(t.Value, st, use{perhaps: true})
			}
		}
	}
	if a.r.Unattended {
		a.give("unknown-tool", Ask, c.Name, "it is not known what the tool does", "have the user allow it by a rule with its name")
	}
}
