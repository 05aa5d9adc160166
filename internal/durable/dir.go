package durable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Dir is one directory, with everything beneath it and nothing else: names are
// relative and portable (see [CheckName]), and no symbolic link leads out of
// it. It is safe for use by several goroutines.
type Dir struct {
	path string
	root *os.Root
	o    ops
}

// OpenDir opens a directory, which must exist, and finishes or undoes a change
// of several files that a crash left half done in it.
func OpenDir(path string) (*Dir, error) { return Disk{}.OpenDir(path) }

// OpenDir is the package's [OpenDir] on this disk.
func (k Disk) OpenDir(path string) (*Dir, error) {
	root, err := OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open directory: %w", err)
	}
	d := &Dir{path: path, root: root, o: ops{base: rootBase{root}, hook: k.hook}}
	if err := d.Recover(); err != nil {
		root.Close()
		return nil, err
	}
	return d, nil
}

// Close gives the directory's handle back. The Dir must not be used afterwards.
func (d *Dir) Close() error { return d.root.Close() }

// Path is the path that the directory was opened by.
func (d *Dir) Path() string { return d.path }

// local is the name as this system spells it.
func (d *Dir) local(name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", fmt.Errorf("in %s: %w", d.path, err)
	}
	return filepath.FromSlash(name), nil
}

// target is local for a name that is to be changed.
func (d *Dir) target(name string) (string, error) {
	n, err := d.local(name)
	if err == nil && inJournal(name) {
		return "", fmt.Errorf("in %s: %w: %q is the journal of changes", d.path, ErrName, name)
	}
	return n, err
}

// ReadFile returns the content of a regular file of at most [MostRead] bytes, reached through
// symbolic links only as long as they stay within the directory. The error is ErrTooLong for
// a longer one.
func (d *Dir) ReadFile(name string) ([]byte, error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var size int64
	if fi, err := f.Stat(); err == nil {
		size = fi.Size()
	}
	return readMost(f, d.o.show(name), size, MostRead)
}

// Open opens a regular file for reading; see [Dir.ReadFile].
func (d *Dir) Open(name string) (*os.File, error) {
	n, err := d.local(name)
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	fi, err := d.o.stat(n)
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	if !fi.Mode().IsRegular() { // a pipe would be waited for, for ever
		return nil, fmt.Errorf("read file %s: %w but %s", d.o.show(n), ErrNotRegular, kind(fi.Mode()))
	}
	f, err := d.o.openFile(n, os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	return f, nil
}

// Stat describes what name leads to.
func (d *Dir) Stat(name string) (fs.FileInfo, error) {
	n, err := d.local(name)
	if err != nil {
		return nil, err
	}
	return d.o.stat(n)
}

// Lstat describes what is at name, a symbolic link included.
func (d *Dir) Lstat(name string) (fs.FileInfo, error) {
	n, err := d.local(name)
	if err != nil {
		return nil, err
	}
	return d.o.lstat(n)
}

// ReadDir lists a directory by name, without this package's own temporary
// files, locks and journal. The name of the directory itself is ".".
func (d *Dir) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := d.local(name)
	if err != nil {
		return nil, err
	}
	list, err := d.o.readDir(n)
	if err != nil {
		return nil, fmt.Errorf("read directory: %w", err)
	}
	kept := list[:0]
	for _, e := range list {
		if !IsTemp(e.Name()) && !inJournal(e.Name()) && filepath.Ext(e.Name()) != lockSuffix {
			kept = append(kept, e)
		}
	}
	return kept, nil
}

// WriteFile is [WriteFile] within the directory.
func (d *Dir) WriteFile(name string, data []byte, perm fs.FileMode) error {
	n, err := d.target(name)
	if err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	return d.o.writeFile(n, data, perm, true)
}

// AppendText is [AppendText] within the directory.
func (d *Dir) AppendText(name string, data []byte, perm fs.FileMode) error {
	n, err := d.target(name)
	if err != nil {
		return fmt.Errorf("append: %w", err)
	}
	return d.o.appendData(context.Background(), n, data, perm, false)
}

// MkdirAll is [MkdirAll] within the directory.
func (d *Dir) MkdirAll(name string, perm fs.FileMode) error {
	n, err := d.target(name)
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	return d.o.mkdirAll(n, perm)
}

// Remove is [Remove] within the directory.
func (d *Dir) Remove(name string) error {
	n, err := d.target(name)
	if err == nil && name == "." {
		err = errors.New("that is the directory itself")
	}
	if err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	return d.o.removeSync(n)
}

// RemoveAll is [RemoveAll] within the directory.
func (d *Dir) RemoveAll(name string) error {
	n, err := d.target(name)
	if err == nil && name == "." {
		err = errors.New("that is the directory itself")
	}
	if err != nil {
		return fmt.Errorf("remove all: %w", err)
	}
	return d.o.removeAllSync(n)
}

// RemoveStale is [RemoveStale] for a directory within this one.
func (d *Dir) RemoveStale(name string, before time.Time) ([]string, error) {
	n, err := d.target(name)
	if err != nil {
		return nil, fmt.Errorf("remove stale temporary files: %w", err)
	}
	return d.o.removeStale(n, before)
}
