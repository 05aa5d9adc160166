package event

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"reprise/internal/durable"
	"reprise/internal/event/quick"
)

// Obstacle is something that lies where a log's or the outbox's own file should, so
// that nothing can be written there.
type Obstacle struct {
	Path string
	Why  string
}

// Obstacles are those in a directory of events, or of the outbox: a link, a
// directory or a pipe in the place of a log or a lock, and what may not be opened.
// A directory that does not exist has none.
func Obstacles(dir string) ([]Obstacle, error) {
	var out []Obstacle
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && info.Mode()&fs.ModeSymlink != 0 { // to a directory it may be
		info, err = os.Stat(dir)
	}
	if err != nil {
		return []Obstacle{{dir, fmt.Sprintf("cannot be looked at (%v)", err)}}, nil
	}
	if !info.IsDir() {
		return []Obstacle{{dir, "is " + kindOf(info.Mode()) + ", not a directory"}}, nil
	}
	list, err := durable.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", dir, err)
	}
	for _, e := range list {
		name := e.Name()
		if _, ok := logName(strings.TrimSuffix(name, ".lock")); !ok && name != quick.HoldName && strings.TrimSuffix(name, ".lock") != quick.ReserveName {
			continue
		}
		path := filepath.Join(dir, name)
		if !e.Type().IsRegular() {
			out = append(out, Obstacle{path, "is " + kindOf(e.Type()) + ", not a file"})
			continue
		}
		f, err := durable.Open(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			out = append(out, Obstacle{path, fmt.Sprintf("cannot be opened (%v)", err)})
		}
		if err == nil {
			_ = f.Close()
		}
	}
	return out, nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	}
	return "something else"
}
