package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
)

// ErrTooLong is the error for a file that is longer than its reader takes.
var ErrTooLong = errors.New("too long")

// Open opens a regular file for reading, also through a symbolic link. It never
// waits: where a pipe lies in the file's place, os.Open would until somebody writes
// to it. The error is ErrNotRegular for whatever is no regular file, and that of
// os.Open else.
func Open(path string) (*os.File, error) {
	f, _, err := open(path)
	return f, err
}

// open is [Open], with the length that the file had then.
func open(path string) (f *os.File, size int64, err error) {
	f, err = os.OpenFile(path, os.O_RDONLY|dontWait, 0)
	if err != nil {
		return nil, 0, err
	}
	// What was opened is looked at, and not what lay at the path before.
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("read file %s: %w but %s", path, ErrNotRegular, kind(info.Mode()))
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// MostRead is how many bytes [Read] reads of one file at most, 1 GiB: what should be a
// small file may be one without an end, and memory has one.
const MostRead = 1 << 30

// Read is [ReadFile] of at most [MostRead] bytes, for files whose length nothing says.
func Read(path string) ([]byte, error) { return ReadFile(path, MostRead) }

// ReadFile reads a regular file of at most that many bytes; see [Open]. The error is
// ErrTooLong for a longer one.
func ReadFile(path string, most int64) ([]byte, error) {
	f, size, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readMost(f, path, size, most)
}

// readMost reads what is of about that size, and no more than most: what says that it is
// longer is not read at all.
func readMost(r io.Reader, path string, size, most int64) ([]byte, error) {
	var data []byte
	if size <= most {
		var err error
		if data, err = readAll(io.LimitReader(r, most+1), size); err != nil {
			return nil, err
		}
	}
	if size > most || int64(len(data)) > most {
		return nil, fmt.Errorf("read file %s: %w, more than %d bytes", path, ErrTooLong, most)
	}
	return data, nil
}

// readAll reads what is of about that size, with room for all of it at once: a long file
// would be copied again and again. What a size says may be wrong (those of /proc say 0), so
// it is no more than a hint.
func readAll(r io.Reader, size int64) ([]byte, error) {
	var room bytes.Buffer
	if size < 1<<30 {
		room.Grow(int(size) + bytes.MinRead)
	}
	if _, err := room.ReadFrom(r); err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	return room.Bytes(), nil
}

// OpenDirectory opens a directory for reading, also through a symbolic link. It never
// waits; see [Open]. The error is syscall.ENOTDIR, on every system, for whatever is no
// directory, and that of os.Open else.
func OpenDirectory(path string) (*os.File, error) {
	d, err := os.OpenFile(path, os.O_RDONLY|dirFlag, 0)
	if err != nil || dirFlag != 0 {
		return d, err
	}
	info, err := d.Stat()
	if err == nil && !info.IsDir() {
		err = notDirectory("open", path)
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// ReadDir is os.ReadDir that never waits; see [OpenDirectory].
func ReadDir(path string) ([]fs.DirEntry, error) {
	d, err := OpenDirectory(path)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	list, err := d.ReadDir(-1)
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, err
}

// OpenRoot is os.OpenRoot that never waits. A separator at the end of a path has the system
// look for a directory before it opens anything.
func OpenRoot(path string) (*os.Root, error) {
	if path != "" && !os.IsPathSeparator(path[len(path)-1]) {
		path += string(os.PathSeparator)
	}
	root, err := os.OpenRoot(path)
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		pe.Path = strings.TrimSuffix(pe.Path, string(os.PathSeparator))
	}
	return root, err
}

// notDirectory is the error for what lies in a directory's place.
func notDirectory(op, path string) error {
	return &fs.PathError{Op: op, Path: path, Err: syscall.ENOTDIR}
}
