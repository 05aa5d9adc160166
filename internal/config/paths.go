package config

import (
	"fmt"
	"path/filepath"
	"strings"
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
	if h := e.Get("REPRISE_HOME"); h != "" {
		home, err := e.Expand(h)
		if err != nil {
			return Paths{}, &Error{File: "environment", Key: "REPRISE_HOME", Problem: fmt.Sprintf("%q %v", h, err),
				Remedy: "set it to an absolute path, or unset it", Err: err}
		}
		return Paths{ConfigFile: e.join(home, "config.yaml"), Data: home, State: e.join(home, "state"), Cache: e.join(home, "cache")}, nil
	}
	var p Paths
	for _, d := range []struct {
		into *string
		xdg  string
		name string // what is appended to the XDG directory
		base func() (string, error)
	}{
		{&p.Data, "XDG_DATA_HOME", "reprise", e.platformDir("LOCALAPPDATA", ".local/share", "Library/Application Support", "AppData/Local", "reprise")},
		{&p.ConfigFile, "XDG_CONFIG_HOME", "reprise/config.yaml", e.platformDir("APPDATA", ".config", "Library/Application Support", "AppData/Roaming", "reprise/config.yaml")},
		{&p.State, "XDG_STATE_HOME", "reprise", e.platformDir("LOCALAPPDATA", ".local/state", "Library/Application Support", "AppData/Local", stateName(e.GOOS))},
		{&p.Cache, "XDG_CACHE_HOME", "reprise", e.platformDir("LOCALAPPDATA", ".cache", "Library/Caches", "AppData/Local", cacheName(e.GOOS))},
	} {
		if x := e.Get(d.xdg); x != "" && e.isAbs(x) {
			*d.into = e.join(e.clean(x), slashes(d.name)...)
			continue
		}
		dir, err := d.base()
		if err != nil {
			return Paths{}, err
		}
		*d.into = dir
	}
	return p, nil
}

// stateName and cacheName keep the three kinds apart where the platform has one
// directory for them.
func stateName(goos string) string {
	if goos == "darwin" || goos == "windows" {
		return "reprise/state"
	}
	return "reprise"
}

func cacheName(goos string) string {
	if goos == "windows" {
		return "reprise/cache"
	}
	return "reprise"
}

// platformDir returns a function that finds one of the platform's directories:
// winVar or win below the home on Windows, mac or unix below the home elsewhere.
func (e Env) platformDir(winVar, unix, mac, win, name string) func() (string, error) {
	return func() (string, error) {
		if e.GOOS == "windows" {
			if v := e.Get(winVar); v != "" && e.isAbs(v) {
				return e.join(e.clean(v), slashes(name)...), nil
			}
		}
		home, err := e.Home()
		if err != nil {
			return "", err
		}
		below := unix
		switch e.GOOS {
		case "windows":
			below = win
		case "darwin", "ios":
			below = mac
		}
		return e.join(home, append(slashes(below), slashes(name)...)...), nil
	}
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

func (p Paths) scope(project string) string {
	if project == "" {
		return p.Data
	}
	return p.ProjectDir(project)
}

// LogFile is the default place of reprise's own log; logging.file replaces it.
func (p Paths) LogFile() string { return filepath.Join(p.State, "log", "reprise.log") }

// IndexFile is the derived search index.
func (p Paths) IndexFile() string { return filepath.Join(p.Cache, "index.db") }

// Tokens holds the hashes of the bearer tokens of the HTTP transport.
func (p Paths) Tokens() string { return filepath.Join(p.Data, "mcp-tokens.json") }

func slashes(path string) []string { return strings.Split(path, "/") }
