package place

import "strings"

// Dirs are the base directories and files of one installation, all absolute.
type Dirs struct {
	ConfigFile string // default place of the settings
	Data       string // what must not be lost
	State      string // logs
	Cache      string // derived: may be deleted at any time
}

// Find decides where everything is. Its rules are those of config.FindPaths,
// which is this and the settings' way of telling what is wrong. Errors are a
// *VarError about REPRISE_HOME, or match ErrNoHome.
func Find(e Env) (Dirs, error) {
	if h := e.Get("REPRISE_HOME"); h != "" {
		home, err := e.Expand(h)
		if err != nil {
			return Dirs{}, &VarError{"REPRISE_HOME", h, err}
		}
		return Dirs{ConfigFile: e.Join(home, "config.yaml"), Data: home, State: e.Join(home, "state"), Cache: e.Join(home, "cache")}, nil
	}
	var p Dirs
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
		if x := e.Get(d.xdg); x != "" && e.IsAbs(x) {
			*d.into = e.Join(e.Clean(x), slashes(d.name)...)
			continue
		}
		dir, err := d.base()
		if err != nil {
			return Dirs{}, err
		}
		*d.into = dir
	}
	return p, nil
}

// Vars are the names of all variables that decide where things are and which
// settings are read, on any system: what is worked out under one value of them
// says nothing about another.
func Vars() []string {
	return []string{
		"REPRISE_HOME", "REPRISE_CONFIG", "MCP_BRIDGE_CONFIG", "AI_MEMORY_PATH",
		"XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
		"HOME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "APPDATA",
	}
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
			if v := e.Get(winVar); v != "" && e.IsAbs(v) {
				return e.Join(e.Clean(v), slashes(name)...), nil
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
		return e.Join(home, append(slashes(below), slashes(name)...)...), nil
	}
}

func slashes(path string) []string { return strings.Split(path, "/") }
