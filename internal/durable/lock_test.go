package durable_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reprise/internal/durable"
)

func TestLockExcludesWithinAProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var inside, total atomic.Int32 // the lock orders files, not memory
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				unlock, err := durable.Lock(context.Background(), path)
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d have the lock", n)
				}
				total.Add(1)
				runtime.Gosched()
				inside.Add(-1)
				if err := unlock(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if total.Load() != 80 {
		t.Errorf("%d locks", total.Load())
	}
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "lock")
	if l, err := durable.IsLocked(path); l || err != nil || get(t, path) != "-" {
		t.Errorf("without a file: %t, %v", l, err)
	}
	unlock, err := durable.TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := durable.TryLock(path); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := durable.Lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if l, err := durable.IsLocked(path); !l || err != nil {
		t.Errorf("held: %t, %v", l, err)
	}
	if err := errors.Join(unlock(), unlock()); err != nil {
		t.Error(err)
	}
	second, err := durable.TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := unlock(); err != nil { // the first one's must not open the second's
		t.Error(err)
	}
	if l, err := durable.IsLocked(path); !l || err != nil {
		t.Errorf("given up by another's unlock: %t, %v", l, err)
	}
	if err := second(); err != nil {
		t.Error(err)
	}
	if get(t, path) != "" {
		t.Error("the lock file is gone")
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := durable.Lock(ended, path); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := durable.Lock(context.Background(), filepath.Join(dir, "none", "lock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestLockFileMustBeRegular(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "other"), "x")
	link := filepath.Join(dir, "link")
	if err := os.Symlink("other", link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, dir} {
		if _, err := durable.TryLock(path); !errors.Is(err, durable.ErrNotRegular) {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := durable.IsLocked(path); !errors.Is(err, durable.ErrNotRegular) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestLockInARemovedDirectory: a lock taken while its directory is removed and
// made again must be the lock of the file that others see.
func TestLockInARemovedDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	path := filepath.Join(dir, "lock")
	put(t, path, "")
	old, err := durable.TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := durable.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	put(t, path, "")
	second, err := durable.TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(old(), second()); err != nil {
		t.Error(err)
	}
}
