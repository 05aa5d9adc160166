package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrNoExchange says that two names cannot change places in one step here.
var ErrNoExchange = errNoExchange

// Symlink makes a symbolic link, which may be in the place of another link, and makes that
// last. Anything else in its place is [fs.ErrExist].
func (k Disk) Symlink(to, name string) error {
	o := k.ops()
	at := name
	if fi, err := o.lstat(name); err == nil {
		if fi.Mode()&fs.ModeSymlink == 0 {
			return fmt.Errorf("make link %s: %w", name, fs.ErrExist)
		}
		at = name + tempLink // beside it, and moved over it whole
		if err := o.remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("make link: %w", err)
		}
	}
	if err := o.step(OpCreate, at); err != nil {
		return fmt.Errorf("make link: %w", err)
	}
	if err := os.Symlink(to, at); err != nil {
		return fmt.Errorf("make link: %w", err)
	}
	if at != name {
		if err := o.renameFile(at, name); err != nil {
			return fmt.Errorf("make link: %w", err)
		}
	}
	if err := o.syncDir(filepath.Dir(name)); err != nil {
		return fmt.Errorf("make link %s: made, but not sure to last a power cut: %w", name, err)
	}
	return nil
}

const tempLink = ".new-link.tmp"

// Exchange has two names in one directory change places, whatever they are of, in one step,
// and makes that last. Where the system or the file system has no such step the error is
// [ErrNoExchange], and nothing was changed.
func (k Disk) Exchange(a, b string) error {
	o := k.ops()
	if err := o.step(OpRename, b); err != nil {
		return fmt.Errorf("exchange: %w", err)
	}
	dir, err := o.openFile(filepath.Dir(a), os.O_RDONLY|dirFlag, 0)
	if err != nil {
		return fmt.Errorf("exchange: %w", err)
	}
	defer dir.Close()
	if filepath.Dir(a) != filepath.Dir(b) {
		return fmt.Errorf("exchange: %s and %s are in two directories", a, b)
	}
	if err := swapAt(dir, filepath.Base(a), dir, filepath.Base(b)); err != nil {
		return err
	}
	if err := o.syncDir(filepath.Dir(a)); err != nil {
		return fmt.Errorf("exchange %s and %s: done, but not sure to last a power cut: %w", a, b, err)
	}
	return nil
}
