package durable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	tornSuffix = ".torn"
	tailBlock  = 64 << 10
)

// Append is the package's [AppendContext] on this disk.
func (k Disk) Append(ctx context.Context, path string, data []byte, perm fs.FileMode) error {
	return k.ops().appendLines(ctx, path, data, perm, true)
}

// AppendText is the package's [AppendText] on this disk, giving up when ctx
// ends before the lock can be had.
func (k Disk) AppendText(ctx context.Context, path string, data []byte, perm fs.FileMode) error {
	return k.ops().appendLines(ctx, path, data, perm, false)
}

func (o ops) appendLines(ctx context.Context, name string, data []byte, perm fs.FileMode, lines bool) (err error) {
	if lines && len(data) > 0 && data[len(data)-1] != '\n' {
		return fmt.Errorf("append to %s: the data does not end in a newline", o.show(name))
	}
	if len(data) == 0 {
		return nil
	}
	if _, err := o.regular(name); err != nil { // before a lock file is made beside it
		return fmt.Errorf("append to %s: %w", o.show(name), err)
	}
	unlock, err := o.lock(ctx, name+lockSuffix)
	if err != nil {
		return fmt.Errorf("append to %s: %w", o.show(name), err)
	}
	defer func() {
		if uerr := unlock(); err == nil && uerr != nil {
			err = fmt.Errorf("append to %s: written, but: unlock: %w", o.show(name), uerr)
		}
	}()
	return o.appendLocked(name, data, perm, lines)
}

// appendLocked does an append whose lock is held.
func (o ops) appendLocked(name string, data []byte, perm fs.FileMode, lines bool) (err error) {
	f, size, err := o.openAppend(name, perm)
	if err != nil {
		return fmt.Errorf("append to %s: %w", o.show(name), err)
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("append to %s: %w", o.show(name), cerr)
		}
	}()
	if lines {
		if size, err = o.repairTail(f, size, perm); err != nil {
			return fmt.Errorf("append to %s: repair what a crash left at its end: %w", o.show(name), err)
		}
	}
	if _, err = f.writeAll(data); err == nil {
		err = f.sync()
	}
	if err != nil {
		if terr := takeBack(f, size); terr != nil {
			return fmt.Errorf("append to %s: %w (and a part could not be taken back: %w)", o.show(name), err, terr)
		}
		return fmt.Errorf("append to %s (nothing was added): %w", o.show(name), err)
	}
	if size == 0 { // also when a crash came between making the file and this
		if err := o.syncDir(filepath.Dir(name)); err != nil {
			return fmt.Errorf("append to %s: added, but not sure to last a power cut: %w", o.show(name), err)
		}
	}
	return nil
}

// openAppend opens a regular file for reading and appending, making it when it
// is missing, and returns its size.
func (o ops) openAppend(name string, perm fs.FileMode) (*file, int64, error) {
	if _, err := o.regular(name); err != nil {
		return nil, 0, err
	}
	f, err := o.create(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, perm)
	if err != nil {
		return nil, 0, err
	}
	fi, err := f.Stat()
	if err == nil {
		var there fs.FileInfo
		there, err = o.lstat(name)
		if err == nil && (!fi.Mode().IsRegular() || !os.SameFile(fi, there)) {
			err = fmt.Errorf("%w any more: it was replaced meanwhile", ErrNotRegular)
		}
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, fi.Size(), nil
}

// takeBack cuts off what a failed append wrote, so that the caller can try
// again without writing anything twice.
func takeBack(f *file, size int64) error {
	if err := f.File.Truncate(size); err != nil {
		return err
	}
	_ = f.File.Sync() // the disk has just failed; the cut is in force at least until a power cut
	return nil
}

// repairTail moves a last line without newline to the file beside it and
// returns the size that is left.
func (o ops) repairTail(f *file, size int64, perm fs.FileMode) (int64, error) {
	end, err := lastLineEnd(f.File, size)
	if err != nil || end == size {
		return size, err
	}
	// The torn bytes last before they leave the log: a crash between the two
	// keeps them twice rather than nowhere.
	if err := o.keepTorn(f, end, size, perm); err != nil {
		return size, err
	}
	if err := f.truncate(end); err != nil {
		return size, err
	}
	return end, f.sync()
}

func (o ops) keepTorn(f *file, from, to int64, perm fs.FileMode) error {
	t, size, err := o.openAppend(f.name+tornSuffix, perm)
	if err != nil {
		return err
	}
	defer t.Close()
	if end, err := lastLineEnd(t.File, size); err != nil {
		return err
	} else if end != size {
		if _, err := t.writeAll([]byte{'\n'}); err != nil {
			return err
		}
	}
	buf := make([]byte, min(to-from, 1<<20))
	for at := from; at < to; {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), to-at)], at)
		if n == 0 {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if _, err := t.writeAll(buf[:n]); err != nil {
			return err
		}
		at += int64(n)
	}
	if _, err := t.writeAll([]byte{'\n'}); err != nil {
		return err
	}
	if err := t.sync(); err != nil {
		return err
	}
	return o.syncDir(filepath.Dir(f.name))
}

// lastLineEnd is the offset after the last newline before size, found from the
// end so that a long log costs no more than its last line.
func lastLineEnd(r io.ReaderAt, size int64) (int64, error) {
	var buf [tailBlock]byte
	for end := size; end > 0; {
		n := min(end, tailBlock)
		if end == size {
			n = min(end, 1) // almost always the file ends well, and one byte says so
		}
		b := buf[:n]
		if _, err := r.ReadAt(b, end-n); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			return end - n + int64(i) + 1, nil
		}
		end -= n
	}
	return 0, nil
}
