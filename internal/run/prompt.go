package run

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// taskStart is how many bytes of a task TaskStart reads.
const taskStart = 1 << 10

// TaskStart is the beginning of what the run was asked to do, for lists in
// which people look for it. The whole is in the run's directory.
func (r Record) TaskStart() (string, error) {
	f, err := os.Open(filepath.Join(r.dir, promptFile))
	if err != nil {
		return "", fmt.Errorf("read task of %s: %w", r.ID, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, taskStart))
	if err != nil {
		return "", fmt.Errorf("read task of %s: %w", r.ID, err)
	}
	return string(data), nil
}
