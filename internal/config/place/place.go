// Package place knows where reprise keeps things, and nothing more: it is the
// part of package config that the hook program can afford to link. It owns no
// file, writes none and takes no lock; asking for a place makes nothing there.
package place

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Env is everything that reprise takes from its surroundings. It is passed in
// so that no test needs to change the process.
type Env struct {
	Vars map[string]string // environment variables
	Dir  string            // working directory, absolute
	GOOS string            // "linux", "darwin", "windows", …: decides the platform's places
	Now  func() time.Time
}

// ErrNoHome is returned when a directory would have to be guessed because
// neither a home directory nor the variable that replaces it is there.
var ErrNoHome = errors.New("set REPRISE_HOME to an absolute path to say where reprise may keep its files")

// VarError says that a variable of the environment does not name a place.
type VarError struct {
	Name, Value string
	Err         error
}

func (e *VarError) Error() string {
	return "environment: " + e.Name + ": " + strconv.Quote(e.Value) + " " + e.Err.Error()
}

func (e *VarError) Unwrap() error { return e.Err }

// homeError is an ErrNoHome with what is wrong with the home directory.
type homeError struct{ problem string }

func (e *homeError) Error() string {
	return "find home directory: " + e.problem + ": " + ErrNoHome.Error()
}

func (e *homeError) Unwrap() error { return ErrNoHome }

// ParseVars turns "NAME=value" lines into a map. On Windows names are stored in
// upper case, because they are not told apart by case there; the odd
// "=C:=C:\dir" entries of cmd.exe are left out. The last of two equal names
// wins, as in os/exec.
func ParseVars(environ []string, goos string) map[string]string {
	vars := make(map[string]string, len(environ))
	for _, line := range environ {
		name, value, ok := strings.Cut(line, "=")
		if !ok || name == "" {
			continue
		}
		if goos == "windows" {
			name = strings.ToUpper(name)
		}
		vars[name] = value
	}
	return vars
}

// Get returns a variable's value, "" when it is not set.
func (e Env) Get(name string) string {
	if v, ok := e.Vars[name]; ok {
		return v
	}
	if e.GOOS == "windows" {
		if v, ok := e.Vars[strings.ToUpper(name)]; ok {
			return v
		}
		for k, v := range e.Vars {
			if strings.EqualFold(k, name) {
				return v
			}
		}
	}
	return ""
}

// Home returns the user's home directory from HOME (USERPROFILE, or HOMEDRIVE
// and HOMEPATH, on Windows). It fails when there is none or it is relative.
func (e Env) Home() (string, error) {
	name, home := "HOME", e.Get("HOME")
	if e.GOOS == "windows" {
		name, home = "USERPROFILE", e.Get("USERPROFILE")
		if home == "" && e.Get("HOMEDRIVE") != "" && e.Get("HOMEPATH") != "" {
			name, home = "HOMEDRIVE and HOMEPATH", e.Get("HOMEDRIVE")+e.Get("HOMEPATH")
		}
	}
	if home == "" {
		return "", &homeError{name + " is not set"}
	}
	if !e.IsAbs(home) {
		return "", &homeError{name + " is " + strconv.Quote(home) + ", which is not an absolute path"}
	}
	return e.Clean(home), nil
}

// IsAbs is filepath.IsAbs for the system that e describes.
func (e Env) IsAbs(path string) bool {
	if e.GOOS != "windows" {
		return strings.HasPrefix(path, "/")
	}
	if len(path) >= 3 && path[1] == ':' && isLetter(path[0]) && (path[2] == '\\' || path[2] == '/') {
		return true
	}
	// \\server\share, but not the device forms \\.\ and \\?\.
	p := strings.ReplaceAll(path, "/", `\`)
	return strings.HasPrefix(p, `\\`) && len(p) > 2 && p[2] != '.' && p[2] != '?' && p[2] != '\\'
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// Clean is filepath.Clean where e describes the system we run on. For another
// system (only in tests) the path is left as it is.
func (e Env) Clean(path string) string {
	if e.native() {
		return filepath.Clean(path)
	}
	return path
}

func (e Env) native() bool { return (e.GOOS == "windows") == (filepath.Separator == '\\') }

// Join is filepath.Join for the system that e describes.
func (e Env) Join(base string, elem ...string) string {
	if e.native() {
		return filepath.Join(append([]string{base}, elem...)...)
	}
	sep := "/"
	if e.GOOS == "windows" {
		sep = `\`
	}
	return strings.TrimRight(base, sep) + sep + strings.Join(elem, sep)
}

// Expand makes an absolute path of one that a person wrote in a setting or a
// variable: "~" and a leading "~/" (also "~\" on Windows) stand for the home
// directory, everything else must be absolute already. "$NAME" and "~user" are
// not expanded: a literal reading is the only one that is the same for every
// program that starts us.
func (e Env) Expand(path string) (string, error) {
	switch {
	case path == "":
		return "", errors.New("is empty")
	case strings.ContainsFunc(path, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return "", errors.New("holds a control character")
	case path == "~" || strings.HasPrefix(path, "~/") || e.GOOS == "windows" && strings.HasPrefix(path, `~\`):
		home, err := e.Home()
		if err != nil {
			return "", err
		}
		if rest := strings.TrimLeft(path[1:], `/\`); rest != "" {
			return e.Join(home, rest), nil
		}
		return home, nil
	case strings.HasPrefix(path, "~"):
		return "", errors.New("starts with ~user, which is not expanded")
	case strings.HasPrefix(path, "$") || strings.HasPrefix(path, "%"):
		return "", errors.New("holds a variable, and variables are not expanded")
	case !e.IsAbs(path):
		return "", errors.New("is not an absolute path")
	}
	return e.Clean(path), nil
}
