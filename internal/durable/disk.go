package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
)

// ErrNotRegular is the error for a path at which something is that is neither
// a regular file nor missing.
var ErrNotRegular = errors.New("not a regular file")

// Op is a kind of step that changes the disk.
type Op string

// The steps. A function of this package is a sequence of them, and a crash test
// dies at each one in turn.
const (
	OpCreate   Op = "create"   // a file is opened for writing, made when missing
	OpWrite    Op = "write"    // bytes go into an open file
	OpSync     Op = "sync"     // fsync of a file
	OpChmod    Op = "chmod"    // permission bits or owner of an open file
	OpTruncate Op = "truncate" // an open file is cut
	OpRename   Op = "rename"
	OpRemove   Op = "remove"
	OpMkdir    Op = "mkdir"
	OpSyncDir  Op = "syncdir" // fsync of a directory
	OpRun      Op = "run"     // a program that changes files is started; see [Disk.Step]
)

// Step is one step that is about to be taken.
type Step struct {
	Op   Op
	Path string // as the caller would write it
	Size int    // bytes to write, for OpWrite
}

// Fault says how a step goes wrong.
type Fault struct {
	Err   error  // what the step returns
	Write int    // for OpWrite: how many bytes are written before that
	Then  func() // called before the step returns, such as to kill the process
	Skip  bool   // for OpSync and OpSyncDir: not done, to measure the rest
}

// errSkipped is the error of a step that is to be left out.
var errSkipped = errors.New("skipped")

// Hook is asked before each step; nil means that the step goes well.
type Hook func(Step) *Fault

// Disk is where files are kept. The zero value is the machine's own file
// system. A test makes another one with [NewDisk], usually by package
// durabletest, that fails or dies where the test wants it to; a package that
// writes files can take a Disk in its options so that its own tests can do so.
type Disk struct{ hook Hook }

// NewDisk is the machine's file system with a hook that can make steps fail.
func NewDisk(hook Hook) Disk { return Disk{hook: hook} }

// Step asks the hook about a step that the caller takes beside this package, so
// that tests can fail or die there, too.
func (k Disk) Step(op Op, name string) error {
	if err := k.ops().step(op, name); err != nil && !errors.Is(err, errSkipped) {
		return fmt.Errorf("%s %s: %w", op, name, err)
	}
	return nil
}

func (k Disk) ops() ops { return ops{base: osBase{}, hook: k.hook} }

// base is the file system by names: the machine's own by path, or what is
// beneath one directory by local name. Everything above it exists once.
type base interface {
	show(name string) string
	path(name string) string // for the lock library, which opens by path
	openFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	rename(old, new string) error
	link(old, new string) error
	remove(name string) error
	removeAll(name string) error
	mkdir(name string, perm fs.FileMode) error
	lstat(name string) (fs.FileInfo, error)
	stat(name string) (fs.FileInfo, error)
}

type osBase struct{}

func (osBase) show(name string) string { return name }
func (osBase) path(name string) string { return name }
func (osBase) openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return openPlain(name, flag, perm)
}
func (osBase) rename(old, new string) error              { return os.Rename(old, new) }
func (osBase) link(old, new string) error                { return os.Link(old, new) }
func (osBase) remove(name string) error                  { return os.Remove(name) }
func (osBase) removeAll(name string) error               { return os.RemoveAll(name) }
func (osBase) mkdir(name string, perm fs.FileMode) error { return os.Mkdir(name, perm) }
func (osBase) lstat(name string) (fs.FileInfo, error)    { return os.Lstat(name) }
func (osBase) stat(name string) (fs.FileInfo, error)     { return os.Stat(name) }

type rootBase struct{ root *os.Root }

func (b rootBase) show(name string) string { return filepath.Join(b.root.Name(), name) }
func (b rootBase) path(name string) string { return filepath.Join(b.root.Name(), name) }
func (b rootBase) openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return b.root.OpenFile(name, flag, perm)
}
func (b rootBase) rename(old, new string) error              { return b.root.Rename(old, new) }
func (b rootBase) link(old, new string) error                { return b.root.Link(old, new) }
func (b rootBase) remove(name string) error                  { return b.root.Remove(name) }
func (b rootBase) removeAll(name string) error               { return b.root.RemoveAll(name) }
func (b rootBase) mkdir(name string, perm fs.FileMode) error { return b.root.Mkdir(name, perm) }
func (b rootBase) lstat(name string) (fs.FileInfo, error)    { return b.root.Lstat(name) }
func (b rootBase) stat(name string) (fs.FileInfo, error)     { return b.root.Stat(name) }

// ops is a base whose changes go through the hook.
type ops struct {
	base
	hook   Hook
	noSync bool // an append does not wait for the disk
}

// step asks the hook about a step other than a write.
func (o ops) step(op Op, name string) error {
	if o.hook == nil {
		return nil
	}
	f := o.hook(Step{Op: op, Path: o.show(name)})
	if f == nil {
		return nil
	}
	if f.Then != nil {
		f.Then()
	}
	if f.Skip {
		return errSkipped
	}
	return f.Err
}

func (o ops) create(name string, flag int, perm fs.FileMode) (*file, error) {
	if err := o.step(OpCreate, name); err != nil {
		return nil, err
	}
	if flag&os.O_EXCL == 0 {
		flag |= openFlags
	}
	f, err := o.openFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &file{File: f, o: o, name: name}, nil
}

func (o ops) renameFile(old, new string) error {
	if err := o.step(OpRename, new); err != nil {
		return err
	}
	return retrySharing(func() error { return o.rename(old, new) })
}

func (o ops) removeFile(name string) error {
	if err := o.step(OpRemove, name); err != nil {
		return err
	}
	return retrySharing(func() error { return o.remove(name) })
}

func (o ops) makeDir(name string, perm fs.FileMode) error {
	if err := o.step(OpMkdir, name); err != nil {
		return err
	}
	return o.mkdir(name, perm)
}

// syncDir makes the names in a directory last.
func (o ops) syncDir(name string) error {
	if err := o.step(OpSyncDir, name); err == errSkipped {
		return nil
	} else if err != nil {
		return err
	}
	if !dirsNeedSync {
		return nil
	}
	d, err := o.openFile(name, os.O_RDONLY|dirFlag, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !unsupportedSync(err) {
		return err
	}
	return nil
}

func (o ops) readDir(name string) ([]fs.DirEntry, error) {
	d, err := o.openFile(name, os.O_RDONLY|dirFlag, 0)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	list, err := d.ReadDir(-1)
	sort.Slice(list, func(i, j int) bool { return list[i].Name() < list[j].Name() })
	return list, err
}

// regular reports what is at name: nil when nothing is, an error that is
// ErrNotRegular when it is something that must not be written to.
func (o ops) regular(name string) (fs.FileInfo, error) {
	fi, err := o.lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%w but %s", ErrNotRegular, kind(fi.Mode()))
	}
	return fi, nil
}

func kind(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "a symbolic link (write to the file it points at, or remove the link)"
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}

// file is an open file whose changes go through the hook.
type file struct {
	*os.File
	o    ops
	name string
}

// writeAll is one write of all the data; it returns how much was written, and
// an error whenever that is not everything.
func (f *file) writeAll(data []byte) (int, error) {
	if f.o.hook != nil {
		if ft := f.o.hook(Step{Op: OpWrite, Path: f.o.show(f.name), Size: len(data)}); ft != nil {
			n, err := f.File.Write(data[:min(max(ft.Write, 0), len(data))])
			if ft.Then != nil {
				ft.Then()
			}
			if err == nil {
				err = ft.Err
			}
			if err == nil && n < len(data) {
				err = io.ErrShortWrite
			}
			return n, err
		}
	}
	n, err := f.File.Write(data)
	if err == nil && n < len(data) {
		err = io.ErrShortWrite
	}
	return n, err
}

func (f *file) sync() error {
	if err := f.o.step(OpSync, f.name); err == errSkipped {
		return nil
	} else if err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *file) truncate(size int64) error {
	if err := f.o.step(OpTruncate, f.name); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

// like gives the file the permission bits of old, and its owner as far as this
// process may: root editing a user's file must not take it from the user.
func (f *file) like(old fs.FileInfo) error {
	if err := f.o.step(OpChmod, f.name); err != nil {
		return err
	}
	keepOwner(f.File, old)
	return f.File.Chmod(old.Mode().Perm())
}
