package config

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
)

// Home is everything that is decided before a command does its work.
type Home struct {
	Env
	Paths    Paths
	Settings Settings
	Source   string   // the settings file that was read, "" for the defaults
	Project  *Project // nil outside any project
}

// Open finds the paths, loads the settings and finds the project of the working
// directory. It writes nothing.
func Open(env Env, flag string) (*Home, error) {
	paths, err := FindPaths(env)
	if err != nil {
		return nil, err
	}
	settings, source, err := Load(env, paths, flag)
	if err != nil {
		return nil, err
	}
	h := &Home{Env: env, Paths: paths, Settings: settings, Source: source}
	if h.Project, err = FindProject(env, env.Dir); err != nil {
		return nil, err
	}
	if h.Project != nil {
		if err := CheckName(paths, h.Project); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// MemoryDir is the memory directory that is in force.
func (h *Home) MemoryDir() string {
	if d := h.Settings.Memory.Directory; d != "" {
		return d
	}
	return h.Paths.Memory()
}

// RunsDir is where this project's runs are, or those of the global scope.
func (h *Home) RunsDir() string { return h.Paths.Runs(h.projectName()) }

// EventsDir is where this project's events are, or those of the global scope.
func (h *Home) EventsDir() string { return h.Paths.Events(h.projectName()) }

func (h *Home) projectName() string {
	if h.Project == nil {
		return ""
	}
	return h.Project.Name
}

// LogFile is reprise's own log.
func (h *Home) LogFile() string {
	if f := h.Settings.Logging.File; f != "" {
		return f
	}
	return h.Paths.LogFile()
}

// IndexBase is where the derived search index over the memory directory lies, but for its
// version, which its name has (session.IndexFile). A directory
// other than the default one has an index of its own, so that two settings
// files never fight over one.
func (h *Home) IndexBase() string {
	dir := h.MemoryDir()
	if dir == h.Paths.Memory() {
		return h.Paths.IndexBase()
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(h.Paths.Cache, fmt.Sprintf("index-%x.db", sum[:6]))
}
