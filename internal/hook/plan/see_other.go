//go:build !unix

package plan

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"reprise/internal/durable"
)

// See takes the stamp of a path as it is now.
func See(path string) Stamp {
	s := Stamp{Path: path, Kind: Unknown}
	fi, err := os.Lstat(path)
	if err == nil && fi.Mode()&fs.ModeSymlink != 0 {
		s.Link = true
		fi, err = os.Stat(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.Kind = Absent
	case err != nil:
	case fi.IsDir():
		s.Kind = Dir
	case fi.Mode().IsRegular():
		s.Kind, s.Size, s.Modified = File, fi.Size(), fi.ModTime().UnixNano()
	default:
		s.Kind = Other
	}
	return s
}

// ReadFile reads a regular file of at most limit bytes.
func ReadFile(path string, limit int) ([]byte, error) {
	f, err := durable.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() || fi.Size() > int64(limit) {
		return nil, errors.New("not a regular file, or too long")
	}
	return io.ReadAll(io.LimitReader(f, int64(limit)+1))
}
