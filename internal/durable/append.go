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

// Append is the package's [Append] on this disk, giving up with ctx's error
// when ctx ends before the lock can be had.
func (k Disk) Append(ctx context.Context, path string, data []byte, perm fs.FileMode) error {
	return k.ops().appendData(ctx, path, data, perm, true)
}

// AppendText is the package's [AppendText] on this disk, giving up when ctx
// ends before the lock can be had.
func (k Disk) AppendText(ctx context.Context, path string, data []byte, perm fs.FileMode) error {
	return k.ops().appendData(ctx, path, data, perm, false)
}

// AppendNext is the package's [AppendNext] on this disk.
func (k Disk) AppendNext(ctx context.Context, path string, perm fs.FileMode, next NextFunc) error {
	return k.ops().appendLines(ctx, path, perm, true, next)
}

// AppendNextHot is [Disk.AppendNext] without the fsync: what it added survives
// the end of its process, however that ends, but a power cut may take it (whole
// lines, the last ones first). It is for records that are written at every tool
// call, where the wait for the disk would be felt.
func (k Disk) AppendNextHot(ctx context.Context, path string, perm fs.FileMode, next NextFunc) error {
	o := k.ops()
	o.noSync = true
	return o.appendLines(ctx, path, perm, true, next)
}

// NextFunc makes what [AppendNext] appends. It may ask for the log's last line,
// which comes without its newline and is nil when the log is empty.
type NextFunc func(last func() ([]byte, error)) ([]byte, error)

func endsInNewline(data []byte) error {
	if data[len(data)-1] != '\n' {
		return errors.New("the data does not end in a newline")
	}
	return nil
}

func (o ops) appendData(ctx context.Context, name string, data []byte, perm fs.FileMode, lines bool) error {
	if len(data) == 0 {
		return nil
	}
	if lines {
		if err := endsInNewline(data); err != nil {
			return fmt.Errorf("append to %s: %w", o.show(name), err)
		}
	}
	return o.appendLines(ctx, name, perm, lines, func(func() ([]byte, error)) ([]byte, error) { return data, nil })
}

func (o ops) appendLines(ctx context.Context, name string, perm fs.FileMode, lines bool, next NextFunc) (err error) {
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
	return o.appendLocked(name, perm, lines, next)
}

// appendLocked does an append whose lock is held.
func (o ops) appendLocked(name string, perm fs.FileMode, lines bool, next NextFunc) (err error) {
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
	data, err := next(func() ([]byte, error) { return lastLine(f.File, size) })
	if err == nil && lines && len(data) > 0 {
		err = endsInNewline(data)
	}
	if err != nil {
		return fmt.Errorf("append to %s: %w", o.show(name), err)
	}
	if len(data) == 0 {
		return nil
	}
	return o.addTo(f, size, data)
}

// addTo writes data at the end of a file of that size, all of it or nothing.
func (o ops) addTo(f *file, size int64, data []byte) error {
	_, err := f.Seek(size, io.SeekStart) // for systems on which it is not open for appending
	if err == nil {
		_, err = f.writeAll(data)
	}
	if err == nil && !o.noSync {
		err = f.sync()
	}
	if err != nil {
		if terr := takeBack(f, size); terr != nil {
			return fmt.Errorf("append to %s: %w (and a part could not be taken back: %w)", o.show(f.name), err, terr)
		}
		return fmt.Errorf("append to %s (nothing was added): %w", o.show(f.name), err)
	}
	if size == 0 && !o.noSync { // also when a crash came between making the file and this
		if err := o.syncDir(filepath.Dir(f.name)); err != nil {
			return fmt.Errorf("append to %s: added, but not sure to last a power cut: %w", o.show(f.name), err)
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
	f, err := o.create(name, os.O_RDWR|os.O_CREATE|appendFlag, perm)
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
	if _, err := t.Seek(size, io.SeekStart); err != nil {
		return err
	}
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
	var buf []byte
	block := int64(1) // almost always the file ends well, and one byte says so
	for end := size; end > 0; {
		n := min(end, block)
		if int64(len(buf)) < n {
			buf = make([]byte, n) // small at first: most lines are, and a hook pays for each page
		}
		b := buf[:n]
		block = min(max(block*8, 2<<10), tailBlock)
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

// lastLine is the last line of a log of whole lines, without its newline; nil
// when there is none.
func lastLine(r io.ReaderAt, size int64) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	start, err := lastLineEnd(r, size-1)
	if err != nil {
		return nil, err
	}
	line := make([]byte, size-1-start)
	if _, err := r.ReadAt(line, start); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return line, nil
}
