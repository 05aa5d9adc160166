//go:build !unix

package queue

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"reprise/internal/durable"
)

// readRegular reads a file of at most that many bytes.
func readRegular(path string, most int64) ([]byte, error) {
	data, err := durable.ReadFile(path, most)
	if errors.Is(err, durable.ErrNotRegular) || errors.Is(err, durable.ErrTooLong) {
		return nil, fmt.Errorf("%w: %w", errNoItem, err)
	}
	return data, err
}

// something reports whether anything is at a path, a link that leads nowhere too.
func something(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
