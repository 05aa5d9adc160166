package durable

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrTooLong is the error for a file that is longer than its reader takes.
var ErrTooLong = errors.New("too long")

// Open opens a regular file for reading, also through a symbolic link. It never
// waits: where a pipe lies in the file's place, os.Open would until somebody writes
// to it. The error is ErrNotRegular for whatever is no regular file, and that of
// os.Open else.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|dontWait, 0)
	if err != nil {
		return nil, err
	}
	// What was opened is looked at, and not what lay at the path before.
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("read file %s: %w but %s", path, ErrNotRegular, kind(info.Mode()))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ReadFile reads a regular file of at most that many bytes; see [Open]. The error is
// ErrTooLong for a longer one.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("read file %s: %w, more than %d bytes", path, ErrTooLong, most)
	}
	return data, nil
}
