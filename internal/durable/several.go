package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
)

// File is one of the files that [Disk.WriteSeveral] writes.
type File struct {
	Path string
	Data []byte
	Perm fs.FileMode // of a file that is new; one that is there keeps its bits
}

// WriteSeveral writes files, each as [WriteFile] does, and makes dirs and the directories of
// the files with dirPerm where they are missing. All of it lasts when the call returns. It
// waits for the disk with all files at once and with each directory once, which a journaling
// file system does in one or two turns, where one file after the other takes two each.
//
// Nothing holds the files together: after a crash, or with an error, some may be new and
// others not; [Change] is for those that must be.
func (k Disk) WriteSeveral(files []File, dirPerm fs.FileMode, dirs ...string) error {
	o := k.ops()
	var changed dirSet
	for _, dir := range dirs {
		if err := o.makeDirs(dir, dirPerm, changed.add); err != nil {
			return err
		}
	}
	if err := o.replaceSeveral(files, dirPerm, &changed); err != nil {
		return fmt.Errorf("write %d files: %w", len(files), err)
	}
	if err := o.together(len(changed), func(i int) error { return o.syncDir(changed[i]) }); err != nil {
		return fmt.Errorf("write %d files: written, but not sure to last a power cut: sync directory: %w", len(files), err)
	}
	return nil
}

// dirSet are directories whose names changed, in the order in which they did.
type dirSet []string

func (s *dirSet) add(dir string) error {
	if !slices.Contains(*s, dir) {
		*s = append(*s, dir)
	}
	return nil
}

// replaceSeveral puts files in their places; their directories are still to be synced.
func (o ops) replaceSeveral(files []File, dirPerm fs.FileMode, changed *dirSet) (err error) {
	temps := make([]*file, 0, len(files))
	defer func() {
		for _, f := range temps {
			if f != nil {
				_ = f.Close()
				_ = o.remove(f.name)
			}
		}
	}()
	for _, one := range files {
		if err := o.makeDirs(filepath.Dir(one.Path), dirPerm, changed.add); err != nil {
			return err
		}
		old, err := o.regular(one.Path)
		if err != nil {
			return fmt.Errorf("%s: %w", o.show(one.Path), err)
		}
		f, err := o.openTemp(tempName(one.Path), one.Data, one.Perm, old)
		if err != nil {
			return fmt.Errorf("%s: not changed: %w", o.show(one.Path), err)
		}
		temps = append(temps, f)
	}
	if err := o.together(len(temps), func(i int) error { return temps[i].sync() }); err != nil {
		return err
	}
	for i, f := range temps {
		if err := f.Close(); err != nil { // before the rename: Windows renames no open file
			return err
		}
		if err := o.renameFile(f.name, files[i].Path); err != nil {
			return fmt.Errorf("%s: not changed: %w", o.show(files[i].Path), err)
		}
		temps[i] = nil
		_ = changed.add(filepath.Dir(files[i].Path))
	}
	return nil
}

// together does n things at the same time and waits for all; with a hook one after the
// other, so that a crash test meets the same steps each time.
func (o ops) together(n int, do func(int) error) error {
	if o.hook != nil || n < 2 {
		for i := range n {
			if err := do(i); err != nil {
				return err
			}
		}
		return nil
	}
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}
