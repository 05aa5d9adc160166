package durable

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// WriteWithin overwrites a part of a regular file that is there, which keeps its
// size: on most file systems that needs no space, so that it works where the
// disk is full. edit is told what the file holds and its size, and says what to
// write where; no data is nothing. The file's lock (<path>.lock) is held
// meanwhile. A crash can leave a part of the data written.
func (k Disk) WriteWithin(ctx context.Context, path string, edit func(f io.ReaderAt, size int64) (at int64, data []byte, err error)) error {
	o := k.ops()
	fail := func(err error) error { return fmt.Errorf("write within %s: %w", path, err) }
	if fi, err := o.regular(path); err != nil {
		return fail(err)
	} else if fi == nil {
		return fail(fs.ErrNotExist)
	}
	unlock, err := o.lock(ctx, path+lockSuffix)
	if err != nil {
		return fail(err)
	}
	err = o.writeWithin(path, edit)
	if uerr := unlock(); err == nil && uerr != nil {
		err = fmt.Errorf("written, but: unlock: %w", uerr)
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

func (o ops) writeWithin(path string, edit func(io.ReaderAt, int64) (int64, []byte, error)) (err error) {
	f, err := o.create(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	at, data, err := edit(f.File, fi.Size())
	if err != nil || len(data) == 0 {
		return err
	}
	if at < 0 || at+int64(len(data)) > fi.Size() {
		return fmt.Errorf("%d bytes at %d do not fit into %d", len(data), at, fi.Size())
	}
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return err
	}
	if _, err := f.writeAll(data); err != nil {
		return err
	}
	return f.sync()
}

// RemoveSeveral removes files of one directory and waits for the disk once.
// It stops at the first that cannot be removed.
func (k Disk) RemoveSeveral(dir string, names []string) error {
	o := k.ops()
	for _, name := range names {
		if err := o.removeFile(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("remove: %w", err)
		}
	}
	if len(names) == 0 {
		return nil
	}
	if err := o.syncDir(dir); err != nil {
		return fmt.Errorf("remove files of %s: removed, but not sure to last a power cut: %w", dir, err)
	}
	return nil
}

// Touch sets the time of a file's last change. It needs no space.
func (k Disk) Touch(path string, at time.Time) error {
	if err := k.ops().step(OpChmod, path); err != nil {
		return err
	}
	return os.Chtimes(path, time.Time{}, at)
}
