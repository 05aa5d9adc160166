//go:build !unix

package queue

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"reprise/internal/durable"
)

// readRegular reads a file of at most that many bytes.
func readRegular(path string, most int64) ([]byte, error) {
	fi, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !fi.Mode().IsRegular():
		return nil, errIrregular
	case fi.Size() > most:
		return nil, tooLong(fi.Size(), most)
	}
	f, err := durable.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, fi.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, errors.Join(errNoItem, err)
	}
	return data, nil
}

// something reports whether anything is at a path, a link that leads nowhere too.
func something(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
