package durable

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// Size adds up the regular files below a directory: how many there are, and their bytes.
// What goes away meanwhile does not count; what cannot be looked at is left out, and is the
// error.
func Size(dir string) (files int, bytes int64, err error) {
	var first error
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			if first == nil {
				first = err
			}
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		if info, err := d.Info(); err == nil {
			files, bytes = files+1, bytes+info.Size()
		}
		return nil
	})
	return files, bytes, errors.Join(err, first)
}
