package setup

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/config"
)

// Scopes say for whom an entry counts.
const (
	Local   = "local"   // this user in this directory (Claude Code only)
	Project = "project" // everybody in this project; the file is committed
	User    = "user"    // this user everywhere
)

// Clients lists the client names, in the order in which they are shown.
func Clients() []string {
	return []string{"claude-code", "claude-desktop", "codex", "gemini", "copilot", "cursor", "vscode"}
}

// Canonical returns the client that a name stands for.
func Canonical(name string) (string, error) {
	if name == "claude" {
		return "claude-code", nil
	}
	if slices.Contains(Clients(), name) {
		return name, nil
	}
	return "", fmt.Errorf("%q is not a client; there are %s", name, strings.Join(Clients(), ", "))
}

// Target is one place where a client looks for its MCP servers.
type Target struct {
	Client string
	Scope  string
	File   string   // settings file
	Keys   []string // where the servers are in it
	TOML   bool     // else JSON, comments allowed
	Doc    string   // instructions file of this scope, "" when there is none
	Tried  bool     // against the real program; else against samples of its format
}

// Where is what decides a client's places.
type Where struct {
	Env  config.Env
	Dir  string // working directory: key of Claude's local scope
	Root string // root of the project, or the working directory
	// Machine stands in for the directories in which an administrator decides for all
	// users; "" means the machine's own.
	Machine string
}

// Scopes lists the scopes that a client has, the default first. The default is
// the user's own everywhere: one memory for all projects.
func Scopes(client string) []string {
	switch client {
	case "claude-code":
		return []string{User, Local, Project}
	case "codex", "gemini", "cursor", "vscode":
		return []string{User, Project}
	}
	return []string{User}
}

// Locate finds the place for a client and scope. scope "" is the default one.
//
// Places and formats: Claude Code, Codex, Gemini CLI and Copilot CLI as seen
// with the real programs; Claude Desktop, Cursor and VS Code from their makers'
// documentation.
func Locate(w Where, client, scope string) (Target, error) {
	scopes := Scopes(client)
	if scope == "" {
		scope = scopes[0]
	}
	if !slices.Contains(scopes, scope) {
		return Target{}, fmt.Errorf("%s has no scope %q; it has %s", client, scope, strings.Join(scopes, ", "))
	}
	t := Target{Client: client, Scope: scope, Keys: []string{"mcpServers"}}
	if scope == Project {
		return w.projectTarget(t), nil
	}
	home, err := w.Env.Home()
	if err != nil {
		return Target{}, err
	}
	dir, err := w.Env.ClientDir(client)
	if err != nil {
		return Target{}, err
	}
	switch client {
	case "claude-code":
		t.Tried = true
		t.Doc = filepath.Join(dir, "CLAUDE.md")
		t.File = filepath.Join(home, ".claude.json")
		if d := w.dirVar("CLAUDE_CONFIG_DIR"); d != "" {
			t.File = filepath.Join(d, ".claude.json")
		}
		if scope == Local {
			t.Keys = []string{"projects", w.claudeKey(), "mcpServers"}
			t.Doc = filepath.Join(w.Root, "CLAUDE.local.md")
		}
	case "claude-desktop":
		t.File = filepath.Join(w.appDir(home), "Claude", "claude_desktop_config.json")
	case "codex":
		t.Tried, t.TOML = true, true
		t.File, t.Doc = filepath.Join(dir, "config.toml"), filepath.Join(dir, "AGENTS.md")
		t.Keys = []string{"mcp_servers"}
	case "gemini":
		t.Tried = true
		t.File, t.Doc = filepath.Join(dir, "settings.json"), filepath.Join(dir, "GEMINI.md")
	case "copilot":
		t.Tried = true
		t.File = filepath.Join(dir, "mcp-config.json")
	case "cursor":
		t.File = filepath.Join(home, ".cursor", "mcp.json")
	case "vscode":
		t.File, t.Keys = filepath.Join(w.appDir(home), "Code", "User", "mcp.json"), []string{"servers"}
	}
	return t, nil
}

func (w Where) projectTarget(t Target) Target {
	t.Doc = filepath.Join(w.Root, "AGENTS.md")
	switch t.Client {
	case "claude-code":
		t.Tried = true
		t.File, t.Doc = filepath.Join(w.Root, ".mcp.json"), filepath.Join(w.Root, "CLAUDE.md")
	case "codex":
		t.Tried, t.TOML = true, true
		t.File, t.Keys = filepath.Join(w.Root, ".codex", "config.toml"), []string{"mcp_servers"}
	case "gemini":
		t.Tried = true
		t.File, t.Doc = filepath.Join(w.Root, ".gemini", "settings.json"), filepath.Join(w.Root, "GEMINI.md")
	case "cursor":
		t.File = filepath.Join(w.Root, ".cursor", "mcp.json")
	case "vscode":
		t.File, t.Keys = filepath.Join(w.Root, ".vscode", "mcp.json"), []string{"servers"}
	}
	return t
}

// dirVar is a variable that names a directory; a relative one is passed over,
// because it would mean another place in every directory.
func (w Where) dirVar(name string) string {
	if d, err := w.Env.Expand(w.Env.Get(name)); err == nil {
		return d
	}
	return ""
}

// appDir is where desktop programs keep their settings.
func (w Where) appDir(home string) string {
	switch w.Env.GOOS {
	case "windows":
		if d := w.dirVar("APPDATA"); d != "" {
			return d
		}
		return filepath.Join(home, "AppData", "Roaming")
	case "darwin":
		return filepath.Join(home, "Library", "Application Support")
	}
	if d := w.dirVar("XDG_CONFIG_HOME"); d != "" {
		return d
	}
	return filepath.Join(home, ".config")
}

// claudeKey is how Claude Code names a directory in ~/.claude.json: the top of
// the main checkout when it is in a git repository, from linked worktrees too,
// else the directory's real path. (Seen with 2.1.332 on Linux; on Windows it is
// believed to use forward slashes.)
func (w Where) claudeKey() string {
	dir := w.Dir
	if main := config.GitMain(dir); main != "" {
		dir = main
	} else if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if w.Env.GOOS == "windows" {
		dir = strings.ReplaceAll(dir, `\`, "/")
	}
	return dir
}

// Server is a program that a client starts and talks to over its standard
// input and output.
type Server struct {
	Name    string
	Command string
	Args    []string
	Env     []member // in order; empty for none
}

// entry is the server in the form that the target's client wants.
func (t Target) entry(s Server) object {
	args := s.Args
	if args == nil {
		args = []string{}
	}
	var e object
	switch t.Client {
	case "claude-code", "vscode":
		e = append(e, member{"type", "stdio"})
	case "copilot":
		e = append(e, member{"type", "local"})
	}
	e = append(e, member{"command", s.Command}, member{"args", args})
	if t.Client == "copilot" {
		e = append(e, member{"tools", []string{"*"}})
	}
	if len(s.Env) > 0 {
		e = append(e, member{"env", object(s.Env)})
	}
	return e
}

func (t Target) path(name string) []string {
	return append(t.Keys[:len(t.Keys):len(t.Keys)], name)
}
