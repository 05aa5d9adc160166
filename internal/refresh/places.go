package refresh

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/config"
)

const (
	// Margin is how young a file may never be removed, whatever was asked for.
	Margin = time.Hour
	// DefaultOlder is how old files are that are removed when nothing is said.
	DefaultOlder = 8 * time.Hour
)

// Own is the name under which reprise's own directories are listed.
const Own = "reprise"

// Area is a kind of leavings in a client's directory.
type Area struct {
	// Glob says which files and directories are removed, each as a whole: a path
	// below the client's directory, where * is one name.
	Glob string
	// What they are, for people.
	What string
	// Session says that names hold the id of the session they are of.
	Session bool
	// Copies says that names within are those of copies, which are not protected.
	Copies bool
	// Temp says that only temporary files of reprise count, at any depth.
	Temp bool
}

// Place is one client's directory.
type Place struct {
	Client string
	Dir    string
	Areas  []Area
}

// areas are what clients leave behind, by client; as seen with Claude Code 2.1,
// Codex 0.171, Gemini CLI 0.61 and Copilot CLI 1.0.
func areas(client string) []Area {
	switch client {
	case "claude-code":
		return []Area{
			{Glob: "projects/*/*", What: "transcripts", Session: true},
			{Glob: "debug/*", What: "debug output", Session: true},
			{Glob: "file-history/*", What: "earlier versions of files", Session: true},
			{Glob: "todos/*", What: "to-do lists", Session: true},
			{Glob: "tasks/*", What: "task lists of sessions", Session: true},
			{Glob: "session-env/*", What: "environments", Session: true},
			{Glob: "telemetry/*", What: "telemetry"},
			{Glob: "shell-snapshots/*", What: "shell snapshots"},
			{Glob: "plugins/cache/*/*/*", What: "old versions of plugins", Copies: true},
			{Glob: "cache/*", What: "caches"},
		}
	case "codex":
		return []Area{
			{Glob: "sessions/*/*/*/*", What: "transcripts", Session: true},
			{Glob: "archived_sessions/*", What: "archived transcripts", Session: true},
			{Glob: "shell_snapshots/*", What: "shell snapshots", Session: true},
			{Glob: "log/*", What: "logs"},
		}
	case "gemini":
		return []Area{
			{Glob: "tmp/*/chats/*", What: "transcripts", Session: true},
			{Glob: "tmp/*/checkpoints/*", What: "checkpoints"},
			{Glob: "tmp/*/tool-outputs/*", What: "output of tools", Session: true},
			{Glob: "tmp/*/tool_output/*", What: "output of tools", Session: true},
			{Glob: "tmp/*/logs/*", What: "logs", Session: true},
		}
	case "copilot":
		return []Area{
			{Glob: "session-state/*", What: "transcripts", Session: true},
			{Glob: "logs/*", What: "logs"},
		}
	}
	return nil
}

// protected are names that are never removed, nor what holds one of them: settings,
// credentials, histories of input, and what people wrote for their agents.
func protected(name string) bool {
	switch strings.ToLower(name) {
	case "sessions-index.json", "settings.json", "settings.local.json", ".credentials.json", "history.jsonl",
		".claude.json", "claude.md", "memory", "config.toml", "auth.json", "agents.md", "hooks.json",
		"config.json", "mcp-config.json", "mcp.json", ".mcp.json", "oauth_creds.json", "google_accounts.json",
		"gemini.md", "trustedfolders.json", "projects.json", "installation_id", "permissions-config.json",
		"session_index.jsonl", ".project_root":
		return true
	}
	return strings.HasPrefix(filepath.Ext(name), ".sqlite")
}

// Clients are the clients whose directories are known.
func Clients() []string { return []string{"claude-code", "codex", "gemini", "copilot"} }

// Places are the clients' directories of a user, whether or not they are there.
func Places(env config.Env) ([]Place, error) {
	var out []Place
	for _, client := range Clients() {
		dir, err := env.ClientDir(client)
		if err != nil {
			return nil, err
		}
		out = append(out, Place{Client: client, Dir: dir, Areas: areas(client)})
	}
	return out, nil
}

// OwnPlaces are reprise's directories, of which only temporary files are removed.
func OwnPlaces(paths config.Paths) []Place {
	var out []Place
	for _, dir := range []string{paths.Data, paths.State, paths.Cache} {
		if !slices.ContainsFunc(out, func(p Place) bool { return p.Dir == dir }) {
			out = append(out, Place{Client: Own, Dir: dir, Areas: []Area{{What: "temporary files of killed processes", Temp: true}}})
		}
	}
	return out
}
