package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"reprise/internal/config"
)

// withPlace adds to an error what to do about it where the system lets reprise not write
// at its own places: every command meets that one, and says it in the words of its step.
func (a *App) withPlace(err error) error {
	if err == nil {
		return nil
	}
	dir := a.refusedPlace(err)
	if dir == "" {
		return err
	}
	return fmt.Errorf("%w; reprise keeps its own files in %s: make that writable, or name another directory in REPRISE_HOME; `reprise doctor` looks at it", err, dir)
}

// refusedPlace is the directory of reprise's own that an error is about: the system does
// not let it be made or written. "" where it is about none.
func (a *App) refusedPlace(err error) string {
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) && !errors.Is(err, syscall.ENOTDIR) {
		return ""
	}
	path := ""
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
		return ""
	}
	for _, dir := range []string{paths.Data, paths.State, paths.Cache} {
		if within(dir, path) || within(path, dir) { // what is above it may have to be made first
			return dir
		}
	}
	return ""
}

// within tells whether path is dir or below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
