package dialect

import "strings"

// ToolKind is the kind of a client's tool in our own words, as event.ToolData
// has it: shell, read, write, edit, search, fetch, agent, ask, mcp or other.
// Names are compared exactly; no name means two things in two clients.
func ToolKind(name string) string {
	switch name {
	case "Bash", "PowerShell", "Monitor", // Claude Code; Codex says Bash, too, whatever its tool is called
		"exec_command", "write_stdin", "shell", "shell_command", "local_shell", "unified_exec", // Codex
		"run_shell_command",  // Gemini CLI
		"bash", "powershell": // Copilot CLI
		return "shell"
	case "Read", "NotebookRead", "read_file", "read_many_files", "view_image", "view":
		return "read"
	case "Write", "write_file", "create":
		return "write"
	case "Edit", "MultiEdit", "NotebookEdit", "apply_patch", "replace", "edit", "str_replace_editor":
		return "edit"
	case "Grep", "Glob", "LS", "WebSearch", "ToolSearch", "search_file_content", "grep_search", "grep_files",
		"list_dir", "list_directory", "glob", "google_web_search", "grep", "rg", "web_search":
		return "search"
	case "WebFetch", "web_fetch", "fetch":
		return "fetch"
	case "Task", "Agent", "spawn_agent", "codebase_investigator", "delegate_to_agent", "invoke_agent", "generalist", "task":
		return "agent"
	case "AskUserQuestion", "request_user_input", "ask_user":
		return "ask"
	}
	// Copilot CLI calls a server's tool SERVER-TOOL, and SERVER/TOOL where it asks for
	// permission; no client's own tool has either sign.
	if strings.HasPrefix(name, "mcp__") || strings.HasPrefix(name, "mcp_") || strings.ContainsAny(name, "-/") {
		return "mcp"
	}
	return "other"
}
