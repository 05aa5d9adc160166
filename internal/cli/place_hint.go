package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"reprise/internal/config"
	"reprise/internal/pathname"
)

// withPlace adds to an error what to do about it where the system lets reprise not write
// at its own places, or something else lies in the place of one of its directories: every
// command meets those, and says it in the words of its step.
func (a *App) withPlace(err error) error {
	if err == nil {
		return nil
	}
	dir, at := a.refusedPlace(err)
	if dir == "" {
		return err
	}
	if errors.Is(err, syscall.ENOTDIR) {
		if what, is := inTheWay(at); what != "" {
			return fmt.Errorf("%w; %s is %s, and reprise keeps a directory there: move it away, or name another directory than %s in REPRISE_HOME", err, what, is, dir)
		}
	}
	return fmt.Errorf("%w; reprise keeps its own files in %s: make that writable, or name another directory in REPRISE_HOME; `reprise doctor` looks at it", err, dir)
}

// inTheWay is what lies where a directory should be, on the way to a path or at its end, and
// what that is; "" where nothing does any more.
func inTheWay(path string) (what, is string) {
	for at := path; ; at = filepath.Dir(at) {
		fi, err := os.Stat(at)
		switch {
		case err == nil && fi.IsDir(), err != nil && at == filepath.Dir(at):
			return "", ""
		case err == nil && fi.Mode().IsRegular():
			return at, "a file"
		case err == nil && fi.Mode()&fs.ModeNamedPipe != 0:
			return at, "a pipe"
		case err == nil:
			return at, "no directory"
		}
	}
}

// refusedPlace is the directory of reprise's own that an error is about, and the path within
// or above it: the system does not let that be made, read or written. "" where it is about none.
func (a *App) refusedPlace(err error) (dir, path string) {
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) && !errors.Is(err, syscall.ENOTDIR) {
		return "", ""
	}
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		path = pe.Path
	case errors.As(err, &le):
		path = le.New
	}
	paths, perr := config.FindPaths(a.Env)
	if path == "" || perr != nil {
		return "", ""
	}
	for _, dir := range []string{paths.Data, paths.State, paths.Cache} {
		if pathname.Within(dir, path) || pathname.Within(path, dir) { // what is above it may have to be made first
			return dir, path
		}
	}
	return "", ""
}
