package config

import (
	"errors"
	"fmt"
	"path/filepath"

	"reprise/internal/config/place"
)

// Paths are the base directories and files of one installation. All are
// absolute; none is made by asking for it.
type Paths struct {
	ConfigFile string `json:"config_file"` // default place of the settings
	Data       string `json:"data"`        // what must not be lost
	State      string `json:"state"`       // logs
	Cache      string `json:"cache"`       // derived: may be deleted at any time
}

// FindPaths decides where everything is.
//
// REPRISE_HOME, an absolute path, moves everything under itself: two homes
// never share an index, a log or settings. Without it the XDG base directories
// are used where their variables are set and absolute (a relative one is
// ignored, as the XDG specification asks), else the platform's own places:
// ~/.local/share, ~/.config, ~/.local/state and ~/.cache; on macOS
// ~/Library/Application Support and ~/Library/Caches; on Windows
// %LOCALAPPDATA% and, for the settings, %APPDATA%. With neither a home nor the
// variables it fails (ErrNoHome) rather than use the working directory.
func FindPaths(e Env) (Paths, error) {
	dirs, err := place.Find(e)
	var bad *place.VarError
	if errors.As(err, &bad) {
		return Paths{}, &Error{File: "environment", Key: bad.Name, Problem: fmt.Sprintf("%q %v", bad.Value, bad.Err),
			Remedy: "set it to an absolute path, or unset it", Err: bad.Err}
	}
	return Paths(dirs), err
}

// Memory is the default memory directory; memory.directory replaces it.
func (p Paths) Memory() string { return filepath.Join(p.Data, "memory") }

// ProjectDir is where a project's data are, outside its working tree.
func (p Paths) ProjectDir(name string) string { return filepath.Join(p.Data, "projects", name) }

// Runs is the directory of run records: of a project, or with "" of the global
// scope.
func (p Paths) Runs(project string) string { return filepath.Join(p.scope(project), "runs") }

// Events is the directory of the event log: of a project, or with "" of the
// global scope.
func (p Paths) Events(project string) string { return filepath.Join(p.scope(project), "events") }

// Queue is the directory of work items: of a project, or with "" of the global
// scope.
func (p Paths) Queue(project string) string { return filepath.Join(p.scope(project), "queue") }

// Outbox is the directory of events that could not be logged yet.
func (p Paths) Outbox() string { return filepath.Join(p.Data, "outbox") }

// ProjectGlobal is what all agents of a project share: its learnings, decisions
// and memory.
func (p Paths) ProjectGlobal(project string) string {
	return filepath.Join(p.ProjectDir(project), "global")
}

// ProjectMemory is a project's own memory directory.
func (p Paths) ProjectMemory(project string) string {
	return filepath.Join(p.ProjectGlobal(project), "memory")
}

func (p Paths) scope(project string) string {
	if project == "" {
		return p.Data
	}
	return p.ProjectDir(project)
}

// LogFile is the default place of reprise's own log; logging.file replaces it.
func (p Paths) LogFile() string { return filepath.Join(p.State, "log", "reprise.log") }

// IndexBase is the derived search index of the default memory, but for its version.
func (p Paths) IndexBase() string { return filepath.Join(p.Cache, "index.db") }

// Tokens holds the hashes of the bearer tokens of the HTTP transport.
func (p Paths) Tokens() string { return filepath.Join(p.Data, "mcp-tokens.json") }
