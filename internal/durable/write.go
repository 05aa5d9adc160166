package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	tempSuffix = ".tmp"
	tempRandom = 12 // characters of a temporary file's name that are random
	// maxBase keeps a temporary name within the 255 bytes of common file systems.
	maxBase = 200
)

// WriteFile is the package's [WriteFile] on this disk.
func (k Disk) WriteFile(path string, data []byte, perm fs.FileMode) error {
	return k.ops().writeFile(path, data, perm, true)
}

// WriteFileHot is the package's [WriteFileHot] on this disk.
func (k Disk) WriteFileHot(path string, data []byte, perm fs.FileMode) error {
	return k.ops().writeFile(path, data, perm, false)
}

func (o ops) writeFile(name string, data []byte, perm fs.FileMode, syncDir bool) error {
	old, err := o.regular(name)
	if err != nil {
		return fmt.Errorf("write file %s: %w", o.show(name), err)
	}
	if err := o.replace(name, data, perm, old, syncDir); err != nil {
		return fmt.Errorf("write file %s: %w", o.show(name), err)
	}
	return nil
}

func (o ops) replace(name string, data []byte, perm fs.FileMode, old fs.FileInfo, syncDir bool) error {
	temp, err := o.writeTemp(tempName(name), data, perm, old)
	if err == nil {
		if err = o.renameFile(temp, name); err != nil {
			_ = o.remove(temp) // without the hook: on a real disk this may well work
		}
	}
	if err != nil {
		return fmt.Errorf("not changed: %w", err)
	}
	if !syncDir {
		return nil
	}
	if err := o.syncDir(filepath.Dir(name)); err != nil {
		return fmt.Errorf("replaced, but not sure to last a power cut: sync directory: %w", err)
	}
	return nil
}

// writeTemp writes a new file that lasts, and nothing if it cannot.
func (o ops) writeTemp(temp string, data []byte, perm fs.FileMode, old fs.FileInfo) (string, error) {
	f, err := o.openTemp(temp, data, perm, old)
	if err != nil {
		return "", err
	}
	err = f.sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = o.remove(temp)
		return "", err
	}
	return temp, nil
}

// openTemp writes a new file, which is still to be synced and closed, and nothing if it
// cannot.
func (o ops) openTemp(temp string, data []byte, perm fs.FileMode, old fs.FileInfo) (*file, error) {
	if old != nil {
		perm = old.Mode().Perm()
	}
	f, err := o.create(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, err
	}
	if old != nil {
		err = f.like(old)
	}
	if err == nil {
		_, err = f.writeAll(data)
	}
	if err != nil {
		_ = f.Close()
		_ = o.remove(temp)
		return nil, err
	}
	return f, nil
}

// tempName is the name of a temporary file beside name.
func tempName(name string) string {
	return filepath.Join(filepath.Dir(name), tempPrefix(name)+randomName(tempRandom)+tempSuffix)
}

// tempPrefix is what the names of all temporary files beside name begin with.
func tempPrefix(name string) string {
	b := filepath.Base(name)
	for len(b) > maxBase || !utf8.ValidString(b) && len(b) > maxBase-utf8.UTFMax {
		b = b[:len(b)-1]
	}
	return "." + b + "."
}

// randomName is n random characters of base32 in lower case. They need not be
// secret: what they name is made with O_EXCL.
func randomName(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "abcdefghijklmnopqrstuvwxyz234567"[rand.IntN(32)]
	}
	return string(b)
}

// IsTemp reports whether a file name is one that this package gives to its
// temporary files. Listings should leave such names out.
func IsTemp(name string) bool {
	rest, ok := strings.CutSuffix(name, tempSuffix)
	if !ok || !strings.HasPrefix(rest, ".") {
		return false
	}
	i := strings.LastIndexByte(rest, '.')
	if i <= 1 || len(rest)-i-1 != tempRandom {
		return false
	}
	for _, c := range []byte(rest[i+1:]) { // base32 in lower case, as tempName makes it
		if (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return false
		}
	}
	return true
}

// RemoveStale is the package's [RemoveStale] on this disk.
func (k Disk) RemoveStale(dir string, before time.Time) ([]string, error) {
	return k.ops().removeStale(dir, before)
}

// RemoveTemps removes what killed writers have left of path. The caller holds the
// lock under which path is written.
func (k Disk) RemoveTemps(path string) error {
	prefix := tempPrefix(path)
	_, err := k.ops().removeTemps(filepath.Dir(path), func(name string, _ fs.FileInfo) bool {
		return strings.HasPrefix(name, prefix) && len(name) == len(prefix)+tempRandom+len(tempSuffix)
	})
	return err
}

func (o ops) removeStale(dir string, before time.Time) ([]string, error) {
	return o.removeTemps(dir, func(_ string, fi fs.FileInfo) bool { return before.IsZero() || fi.ModTime().Before(before) })
}

func (o ops) removeTemps(dir string, stale func(name string, fi fs.FileInfo) bool) ([]string, error) {
	list, err := o.readDir(dir)
	if err != nil {
		return nil, fmt.Errorf("remove stale temporary files: %w", err)
	}
	var removed []string
	for _, e := range list {
		if !IsTemp(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		fi, err := e.Info()
		if err != nil || !stale(e.Name(), fi) {
			continue // gone meanwhile, or perhaps still being written
		}
		if err := o.removeFile(filepath.Join(dir, e.Name())); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			return removed, fmt.Errorf("remove stale temporary file: %w", err)
		}
		removed = append(removed, e.Name())
	}
	return removed, nil
}

// MkdirAll is the package's [MkdirAll] on this disk.
func (k Disk) MkdirAll(path string, perm fs.FileMode) error {
	if path == "" {
		return errors.New("make directory: the path is empty")
	}
	return k.ops().mkdirAll(filepath.Clean(path), perm)
}

func (o ops) mkdirAll(name string, perm fs.FileMode) error {
	return o.makeDirs(name, perm, func(parent string) error {
		if err := o.syncDir(parent); err != nil {
			return fmt.Errorf("make directory in %s: sync it: %w", o.show(parent), err)
		}
		return nil
	})
}

// makeDirs makes a directory and those above it that are missing; in tells of each directory
// that one was made in and whose names are to be synced.
func (o ops) makeDirs(name string, perm fs.FileMode, in func(parent string) error) error {
	fi, err := o.stat(name)
	if err == nil {
		if !fi.IsDir() {
			return fmt.Errorf("make directory: %w", notDirectory("mkdir", o.show(name)))
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("make directory: %w", err)
	}
	parent := filepath.Dir(name)
	if parent != name && parent != "." {
		if err := o.makeDirs(parent, perm, in); err != nil {
			return err
		}
	}
	if err := o.makeDir(name, perm); err != nil {
		if fi, serr := o.stat(name); serr == nil && fi.IsDir() {
			err = nil // another process was faster
		}
		if err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	return in(parent)
}

// Remove is the package's [Remove] on this disk.
func (k Disk) Remove(path string) error { return k.ops().removeSync(path) }

func (o ops) removeSync(name string) error {
	if err := o.removeFile(name); err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	if err := o.syncDir(filepath.Dir(name)); err != nil {
		return fmt.Errorf("remove %s: removed, but not sure to last a power cut: %w", o.show(name), err)
	}
	return nil
}

// RemoveHot is [Disk.Remove] without the wait for the directory: after a power cut the
// file may be there again.
func (k Disk) RemoveHot(path string) error {
	if err := k.ops().removeFile(path); err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	return nil
}

// LinkHot gives a file a second name, without the wait for the directory. A name that
// is there is fs.ErrExist; not every file system has this.
func (k Disk) LinkHot(old, new string) error {
	if err := k.Step(OpCreate, new); err != nil {
		return err
	}
	return os.Link(old, new)
}

// RemoveAll is the package's [RemoveAll] on this disk.
func (k Disk) RemoveAll(path string) error {
	if c := filepath.Clean(path); path == "" || c == "." || c == ".." || c == filepath.Dir(c) {
		return fmt.Errorf("remove all of %q: that is no directory to remove whole", path)
	}
	return k.ops().removeAllSync(filepath.Clean(path))
}

func (o ops) removeAllSync(name string) error {
	if err := o.step(OpRemove, name); err != nil {
		return fmt.Errorf("remove all of %s: %w", o.show(name), err)
	}
	if err := retrySharing(func() error { return o.removeAll(name) }); err != nil {
		return fmt.Errorf("remove all: %w", err)
	}
	if err := o.syncDir(filepath.Dir(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove all of %s: removed, but not sure to last a power cut: %w", o.show(name), err)
	}
	return nil
}

// Rename is the package's [Rename] on this disk.
func (k Disk) Rename(old, new string) error { return k.ops().renameSync(old, new, true) }

// RenameInto is [Disk.Rename] that waits for the directory of the new name only. Where
// the file system has a journal that is all of the change. On one without, a power cut
// may leave both names: the caller has to tell which of them counts.
func (k Disk) RenameInto(old, new string) error { return k.ops().renameSync(old, new, false) }

func (o ops) renameSync(old, new string, both bool) error {
	if _, err := o.regular(new); err != nil {
		if fi, oerr := o.lstat(old); oerr != nil {
			return fmt.Errorf("rename: %w", oerr)
		} else if !fi.IsDir() {
			return fmt.Errorf("rename %s to %s: target is %w", o.show(old), o.show(new), err)
		}
	}
	if err := o.renameFile(old, new); err != nil {
		return fmt.Errorf("rename: %w", err)
	}
	// The new name first: between the two a power cut may leave both names, never none.
	dirs := []string{filepath.Dir(new)}
	if d := filepath.Dir(old); both && d != dirs[0] {
		dirs = append(dirs, d)
	}
	for _, d := range dirs {
		if err := o.syncDir(d); err != nil {
			return fmt.Errorf("rename %s: renamed, but not sure to last a power cut: %w", o.show(old), err)
		}
	}
	return nil
}

// Create is the package's [Create] on this disk. Writes through the file that
// it returns do not pass the disk's hook.
func (k Disk) Create(path string, perm fs.FileMode) (*os.File, error) {
	return k.ops().createStream(path, perm, true)
}

// CreateHot is [Disk.Create] without the wait for the directory: the file's
// name lasts with the next change of its directory that is synced. It is for
// files that are of no use before that change, such as the output of a run
// whose record is yet to be written.
func (k Disk) CreateHot(path string, perm fs.FileMode) (*os.File, error) {
	return k.ops().createStream(path, perm, false)
}

func (o ops) createStream(name string, perm fs.FileMode, syncDir bool) (*os.File, error) {
	f, err := o.create(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, perm)
	if err != nil {
		return nil, fmt.Errorf("create file: %w", err)
	}
	if !syncDir {
		return f.File, nil
	}
	if err := o.syncDir(filepath.Dir(name)); err != nil {
		f.Close()
		_ = o.remove(name)
		return nil, fmt.Errorf("create file %s: sync directory: %w", o.show(name), err)
	}
	return f.File, nil
}
