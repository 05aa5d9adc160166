package git

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's index ends in a SHA-1
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"reprise/internal/durable"
)

// WriteIndex makes the index of a checkout, whose directory among the worktrees is
// admin, that of a set of files, without a process. It has the form that git has
// read since 2005 (version 2) and says nothing of times and sizes, which git then
// looks up itself. Another git that works on the index is ErrLocked.
func (g *Git) WriteIndex(admin string, files map[string]Entry) (err error) {
	var b bytes.Buffer
	b.WriteString("DIRC")
	number := func(n uint32) { _ = binary.Write(&b, binary.BigEndian, n) } // a buffer takes all
	number(2)
	number(uint32(len(files)))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		e := files[name]
		mode, merr := strconv.ParseUint(e.Mode, 8, 32)
		id, ierr := hex.DecodeString(e.ID)
		if merr != nil || ierr != nil || len(id) != sha1.Size || e.Mode == ModeTree {
			return fmt.Errorf("write index: %s is no file", name)
		}
		start := b.Len()
		for i := range 10 {
			if i == 6 {
				number(uint32(mode))
			} else {
				number(0)
			}
		}
		b.Write(id)
		_ = binary.Write(&b, binary.BigEndian, uint16(min(len(name), 0xfff)))
		b.WriteString(name)
		b.Write(make([]byte, 8-(b.Len()-start)%8)) // at least one zero
	}
	sum := sha1.Sum(b.Bytes())
	b.Write(sum[:])
	if err := g.putIndex(admin, b.Bytes()); err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	return nil
}

// putIndex puts an index in its place under git's own lock. The lock is a second name
// of a file of ours, so that one that was left by a process that died is known to be
// ours: the caller keeps two of us apart, and git has no part in that file.
func (g *Git) putIndex(admin string, data []byte) error {
	index, own := filepath.Join(admin, "index"), filepath.Join(admin, "reprise-index.new")
	disk, lock := g.o.Disk, index+".lock"
	if sameFile(own, lock) {
		if err := disk.RemoveHot(lock); err != nil {
			return err
		}
	}
	if err := disk.RemoveHot(own); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := createHot(disk, own, data); err != nil {
		return err
	}
	err := disk.LinkHot(own, lock)
	if err != nil && !errors.Is(err, fs.ErrExist) { // the file system has no second names
		err = createHot(disk, lock, data)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		err = ErrLocked
	case err == nil:
		if err = disk.Rename(lock, index); err != nil {
			_ = disk.RemoveHot(lock)
		}
	}
	_ = disk.RemoveHot(own) // if it stays, the next one removes it
	return err
}

// createHot makes a file that must not be there.
func createHot(disk durable.Disk, path string, data []byte) error {
	f, err := disk.CreateHot(path, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = disk.RemoveHot(path)
	}
	return err
}

func sameFile(a, b string) bool {
	x, err := os.Lstat(a)
	if err != nil {
		return false
	}
	y, err := os.Lstat(b)
	return err == nil && os.SameFile(x, y)
}

// CopyIndex copies an index to another name, with its time: a file that was changed in
// the second in which the index was written may look as it did, and git knows by that
// time that it has to read such a file. It says whether there was one; a repository in
// which nothing was ever added has none.
func CopyIndex(disk durable.Disk, from, to string) (bool, error) {
	fi, err := os.Stat(from)
	var data []byte
	if err == nil {
		data, err = durable.Read(from)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("copy index: %w", err)
	}
	if err := disk.WriteFileHot(to, data, 0o600); err != nil {
		return false, fmt.Errorf("copy index: %w", err)
	}
	if err := disk.Touch(to, fi.ModTime()); err != nil {
		return false, fmt.Errorf("copy index: %w", err)
	}
	return true, nil
}
