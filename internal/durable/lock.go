package durable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// ErrLocked is the error of [TryLock] when someone else has the lock.
var ErrLocked = errors.New("locked by another process or goroutine")

const (
	lockSuffix = ".lock"
	// A waiter polls, because a wait in the kernel cannot be given up with a
	// context. The bounds keep the gap between two holders short without
	// making many waiters expensive.
	minLockWait = 200 * time.Microsecond
	maxLockWait = 10 * time.Millisecond
)

// Lock takes the exclusive advisory lock of the file at path, making the file
// when it is missing, and waits for it until ctx ends. The lock excludes other
// processes and other goroutines of this one, ends with the process however
// that ends, and must not be taken again by its holder. The file is never
// removed. The function returned gives the lock up; calling it again does
// nothing. The lock orders what is done to files; goroutines that share
// variables need a mutex besides.
func Lock(ctx context.Context, path string) (unlock func() error, err error) {
	return Disk{}.Lock(ctx, path)
}

// TryLock is [Lock] without waiting; the error is [ErrLocked] when someone else
// has the lock.
func TryLock(path string) (unlock func() error, err error) { return Disk{}.TryLock(path) }

// IsLocked reports whether anyone has the lock of the file at path at this
// moment. It makes no file; a missing one is not locked.
func IsLocked(path string) (bool, error) { return Disk{}.IsLocked(path) }

// Lock is the package's [Lock] on this disk.
func (k Disk) Lock(ctx context.Context, path string) (func() error, error) {
	return k.ops().lock(ctx, path)
}

// TryLock is the package's [TryLock] on this disk.
func (k Disk) TryLock(path string) (func() error, error) {
	unlock, err := k.ops().tryLock(path)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return unlock, nil
}

// IsLocked is the package's [IsLocked] on this disk.
func (k Disk) IsLocked(path string) (bool, error) { return k.ops().isLocked(path) }

func (o ops) isLocked(name string) (bool, error) {
	fi, err := o.regular(name)
	if err != nil {
		return false, fmt.Errorf("look at lock %s: %w", o.show(name), err)
	}
	if fi == nil {
		return false, nil
	}
	l, err := tryFlock(o.path(name), true)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at lock %s: %w", o.show(name), err)
	}
	if l == nil {
		return true, nil
	}
	_ = l.unlock()
	return false, nil
}

func (o ops) lock(ctx context.Context, name string) (func() error, error) {
	wait := minLockWait
	for {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("lock %s: %w", o.show(name), err)
		}
		unlock, err := o.tryLock(name)
		if err == nil {
			return unlock, nil
		}
		if !errors.Is(err, ErrLocked) {
			return nil, fmt.Errorf("lock %s: %w", o.show(name), err)
		}
		t := time.NewTimer(wait/2 + rand.N(wait))
		select {
		case <-ctx.Done():
			t.Stop()
			return nil, fmt.Errorf("lock %s (held by another): %w", o.show(name), ctx.Err())
		case <-t.C:
		}
		wait = min(2*wait, maxLockWait)
	}
}

func (o ops) tryLock(name string) (func() error, error) {
	for {
		if err := o.ensureLockFile(name); err != nil {
			return nil, err
		}
		l, err := tryFlock(o.path(name), false)
		if errors.Is(err, fs.ErrNotExist) {
			if _, derr := o.stat(filepath.Dir(name)); derr != nil {
				return nil, err
			}
			continue // removed with its directory between the two, and made again
		}
		if err != nil {
			return nil, err
		}
		if l == nil {
			return nil, ErrLocked
		}
		// Whoever removed the file's directory meanwhile left us the lock of a
		// file that no one else can find.
		held, herr := l.stat()
		there, terr := o.lstat(name)
		if herr == nil && terr == nil && !os.SameFile(held, there) || errors.Is(terr, fs.ErrNotExist) {
			_ = l.unlock()
			continue
		}
		return onceError(l.unlock), nil
	}
}

// ensureLockFile makes the lock file by the same safe way as any other, since
// the lock library opens by path.
func (o ops) ensureLockFile(name string) error {
	fi, err := o.regular(name)
	if fi != nil || err != nil {
		return err
	}
	f, err := o.create(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func onceError(f func() error) func() error {
	var once sync.Once
	var err error
	return func() error {
		once.Do(func() { err = f() })
		return err
	}
}
