package recall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"

	"reprise/internal/durable"
)

const (
	quick     = 4 * time.Millisecond // a look at all files that each search can afford
	staleness = 2 * time.Second      // how long an edit in place may stay unseen when it cannot
)

// Index is the search index, opened at the first use. It is safe for use by
// several goroutines, and by several processes on one file.
type Index struct {
	o Options

	mu      sync.Mutex
	db      *db
	looked  time.Time     // when all files were last looked at
	cost    time.Duration // of that look
	dirs    [2]int64      // dirTimes at that look
	behind  bool          // a look at all files is due
	looking bool          // a look in the background is under way
	work    sync.WaitGroup
	skipped map[string]string

	touch   sync.Mutex
	touched map[string]bool
}

// Open returns an Index. It touches nothing.
func Open(o Options) *Index {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Index{o: o, skipped: map[string]string{}, touched: map[string]bool{}}
}

// Touch tells of a file that was written, by its name relative to the memory
// directory, so that the next search finds what is in it now. It does no work
// and can be called from anywhere.
func (x *Index) Touch(name string) {
	x.touch.Lock()
	x.touched[filepath.ToSlash(name)] = true
	x.touch.Unlock()
}

func (x *Index) takeTouched() []string {
	x.touch.Lock()
	defer x.touch.Unlock()
	names := sortedKeys(x.touched)
	clear(x.touched)
	return names
}

// Close waits for work in the background and frees the database. The Index can
// be used again.
func (x *Index) Close() error {
	x.work.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.drop()
}

func (x *Index) drop() error {
	if x.db == nil {
		return nil
	}
	err := x.db.close()
	x.db = nil
	return err
}

// Rebuild hashes every file and makes the index anew.
func (x *Index) Rebuild(ctx context.Context) (Stats, error) {
	x.work.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	start := x.o.Now()
	unlock, err := x.lock(ctx)
	if err == nil && unlock != nil {
		defer unlock()
	}
	if err != nil && !unwritable(err) {
		return Stats{}, err
	}
	if err := x.rebuild(ctx, unlock != nil); err != nil {
		return Stats{}, err
	}
	st, err := x.stats()
	st.Took = x.o.Now().Sub(start)
	return st, err
}

// Status describes the index file as it is, without bringing it up to date. An
// absent or unusable index is an error that says so.
func (x *Index) Status(ctx context.Context) (Stats, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.db == nil {
		if x.o.IndexFile == "" {
			return Stats{}, fmt.Errorf("look at index: %w: it is kept in memory only", fs.ErrNotExist)
		}
		if _, err := os.Stat(x.o.IndexFile); err != nil {
			return Stats{}, fmt.Errorf("look at index: %w; the next search builds it", err)
		}
		d, err := openDB(x.o.IndexFile, sqlite3.OPEN_READONLY)
		if err == nil {
			err = d.usable(x.o.MemoryDir)
		}
		if err != nil {
			if d != nil {
				d.close()
			}
			return Stats{}, fmt.Errorf("look at index %s: %w; the next search builds it anew", x.o.IndexFile, err)
		}
		x.db = d
		defer x.drop()
	}
	return x.stats()
}

func (x *Index) stats() (Stats, error) {
	st := Stats{Version: version, InMemory: x.db.path == ""}
	var err error
	if st.Files, st.Sections, err = x.db.counts(); err != nil {
		return st, fmt.Errorf("look at index: %w", err)
	}
	if x.db.path != "" {
		if fi, err := os.Stat(x.db.path); err == nil {
			st.Bytes = fi.Size()
		}
	}
	for _, n := range sortedKeys(x.skipped) {
		st.Skipped = append(st.Skipped, n+": "+x.skipped[n])
	}
	return st, nil
}

// lock takes the index's lock; nil without an error when it is in memory.
func (x *Index) lock(ctx context.Context) (func() error, error) {
	if x.o.IndexFile == "" || x.db != nil && x.db.path == "" {
		return nil, nil
	}
	if err := durable.MkdirAll(filepath.Dir(x.o.IndexFile), 0o700); err != nil {
		return nil, fmt.Errorf("make index: %w: %w", errNoCache, err)
	}
	unlock, err := durable.Lock(ctx, x.o.IndexFile+".lock")
	if err != nil {
		return nil, fmt.Errorf("lock index: %w", err)
	}
	return unlock, nil
}

var errNoCache = errors.New("there is no place for the index")

// unwritable says that the cache directory cannot be used, which is no reason
// not to search.
func unwritable(err error) bool {
	if errors.Is(err, errNoCache) {
		return true
	}
	for _, code := range []sqlite3.ErrorCode{sqlite3.READONLY, sqlite3.CANTOPEN, sqlite3.PERM, sqlite3.FULL} {
		if errors.Is(err, code) {
			return true
		}
	}
	return errors.Is(err, fs.ErrPermission) || isReadOnly(err) || isFull(err) || errors.Is(err, durable.ErrNotRegular) || isNotDir(err)
}

// mended runs fn and, when the database turns out to be damaged, builds it anew
// and runs fn once more.
func (x *Index) mended(ctx context.Context, fn func() error) error {
	err := fn()
	if err == nil || !damaged(err) || ctx.Err() != nil {
		return err
	}
	unlock, lerr := x.lock(ctx)
	if lerr != nil && !unwritable(lerr) {
		return lerr
	}
	if unlock != nil {
		defer unlock()
	}
	if err := x.rebuild(ctx, unlock != nil); err != nil {
		return err
	}
	return fn()
}

func (x *Index) dirtyMark() string { return x.o.IndexFile + ".dirty" }

// ready opens the database, building it when it is absent, of another version,
// or left half written by a process that died.
func (x *Index) ready(ctx context.Context) error {
	if x.db != nil && x.db.path != "" {
		fi, err := os.Stat(x.db.path)
		if err != nil || !os.SameFile(fi, x.db.info) { // removed or replaced by someone
			x.drop()
		}
	}
	if x.db != nil && x.db.path == "" {
		return nil
	}
	if x.o.IndexFile == "" {
		return x.rebuild(ctx, false)
	}
	_, merr := os.Lstat(x.dirtyMark())
	if x.db != nil && merr != nil {
		return nil
	}
	if merr != nil { // the common case needs no lock
		if ok := x.tryOpen(); ok {
			return nil
		}
	}
	// Someone is writing, or died writing, or there is no index: the lock tells.
	unlock, err := x.lock(ctx)
	if err != nil {
		if unwritable(err) {
			return x.rebuild(ctx, false)
		}
		return err
	}
	defer unlock()
	if _, err := os.Lstat(x.dirtyMark()); err != nil {
		if x.db != nil || x.tryOpen() {
			return nil
		}
	}
	return x.rebuild(ctx, true)
}

func (x *Index) tryOpen() bool {
	if _, err := os.Stat(x.o.IndexFile); err != nil {
		return false
	}
	d, err := openDB(x.o.IndexFile, sqlite3.OPEN_READWRITE)
	if err != nil {
		return false
	}
	if err := d.usable(x.o.MemoryDir); err != nil {
		d.close()
		return false
	}
	if err := d.load(); err != nil {
		d.close()
		return false
	}
	x.db = d
	x.behind = true
	return true
}

// rebuild makes the index anew: aside and put in place by a rename when the
// lock is held, else in memory.
func (x *Index) rebuild(ctx context.Context, locked bool) error {
	clear(x.skipped)
	x.drop()
	if locked {
		err := x.rebuildFile(ctx)
		if err == nil {
			return nil
		}
		// What was built half would only take up room, of which there may be none.
		_ = durable.Remove(x.o.IndexFile + ".new")
		if !unwritable(err) && !errors.Is(err, sqlite3.IOERR) {
			return err
		}
	}
	d, err := openDB(":memory:", sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE|sqlite3.OPEN_MEMORY)
	if err != nil {
		return fmt.Errorf("build index: %w", err)
	}
	if err := x.fill(ctx, d); err != nil {
		d.close()
		return fmt.Errorf("build index: %w", err)
	}
	x.db = d
	return nil
}

func (x *Index) rebuildFile(ctx context.Context) error {
	aside := x.o.IndexFile + ".new"
	if err := durable.Remove(aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("build index: %w", err)
	}
	// Made here, because SQLite would let everybody read what is in the memory.
	f, err := durable.Create(aside, 0o600)
	if err != nil {
		return fmt.Errorf("build index: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("build index: %w", err)
	}
	d, err := openDB(aside, sqlite3.OPEN_READWRITE)
	if err != nil {
		return fmt.Errorf("build index: %w", err)
	}
	if err := x.fill(ctx, d); err != nil {
		d.close()
		return fmt.Errorf("build index: %w", err)
	}
	if err := d.close(); err != nil {
		return fmt.Errorf("build index: %w", err)
	}
	if err := durable.Rename(aside, x.o.IndexFile); err != nil {
		return fmt.Errorf("build index: %w", err)
	}
	if err := durable.Remove(x.dirtyMark()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("build index: %w", err)
	}
	if x.db, err = openDB(x.o.IndexFile, sqlite3.OPEN_READWRITE); err != nil {
		x.db = nil
		return fmt.Errorf("build index: %w", err)
	}
	return x.db.load()
}

// fill puts all files into an empty database.
func (x *Index) fill(ctx context.Context, d *db) error {
	dirs := dirTimes(x.o.MemoryDir)
	start := x.o.Now()
	hints, err := look(x.o.MemoryDir)
	if err != nil {
		return err
	}
	x.cost = x.o.Now().Sub(start)
	if err := d.create(x.o.MemoryDir); err != nil {
		return err
	}
	if err := x.put(ctx, d, hints, change{dirty: sortedKeys(hints)}, true); err != nil {
		return err
	}
	x.looked, x.dirs, x.behind = start, dirs, false
	return nil
}

// refresh brings the index up to date. all asks for a look at every file; else
// it is done as the package comment says.
func (x *Index) refresh(ctx context.Context, all bool) error {
	if err := x.ready(ctx); err != nil {
		return err
	}
	if changed, err := x.db.foreign(); err != nil {
		return err
	} else if changed {
		if err := x.db.load(); err != nil {
			return err
		}
	}
	touched := x.takeTouched()
	dirs := dirTimes(x.o.MemoryDir)
	now := x.o.Now()
	switch {
	case all, x.behind, x.cost <= quick, len(touched) == 0 && dirs != x.dirs:
		return x.lookAll(ctx)
	}
	if len(touched) > 0 {
		hints := map[string]hint{}
		var dirty, gone []string
		for _, n := range touched {
			h, missing, err := lookAt(x.o.MemoryDir, n)
			if err != nil {
				return fmt.Errorf("look at memory: %w", err)
			}
			if _, known := x.db.files[n]; missing && known {
				gone = append(gone, n)
			} else if !missing {
				hints[n] = h
				dirty = append(dirty, n)
			}
		}
		if err := x.apply(ctx, hints, dirty, gone); err != nil {
			return err
		}
	}
	if dirs != x.dirs || now.Sub(x.looked) > max(staleness, 20*x.cost) { // at most a twentieth of a core
		x.lookBehind(ctx, dirs)
	}
	return nil
}

// lookAll looks at every file and applies what changed.
func (x *Index) lookAll(ctx context.Context) error {
	dirs := dirTimes(x.o.MemoryDir)
	start := x.o.Now()
	hints, err := look(x.o.MemoryDir)
	if err != nil {
		return err
	}
	dirty, gone := x.compare(hints)
	x.cost = x.o.Now().Sub(start)
	if err := x.apply(ctx, hints, dirty, gone); err != nil {
		return err
	}
	x.looked, x.dirs, x.behind = start, dirs, false
	return nil
}

func (x *Index) compare(hints map[string]hint) (dirty, gone []string) {
	for n, h := range hints {
		if f, ok := x.db.files[n]; (!ok || !f.trusted(h)) && x.skipped[n] == "" || ok && x.skipped[n] != "" {
			dirty = append(dirty, n)
		} else if !ok {
			dirty = append(dirty, n)
		}
	}
	for n := range x.db.files {
		if _, ok := hints[n]; !ok {
			gone = append(gone, n)
		}
	}
	return dirty, gone
}

// lookBehind looks at every file without holding up searches; the next refresh
// applies what it found.
func (x *Index) lookBehind(ctx context.Context, dirs [2]int64) {
	if x.looking {
		return
	}
	x.looking = true
	start := x.o.Now()
	x.work.Go(func() {
		hints, err := look(x.o.MemoryDir)
		x.mu.Lock()
		defer x.mu.Unlock()
		x.looking = false
		if err != nil || x.db == nil {
			x.behind = true
			return
		}
		x.looked, x.dirs = start, dirs
		dirty, gone := x.compare(hints)
		if len(dirty)+len(gone) == 0 {
			return
		}
		if err := x.apply(context.WithoutCancel(ctx), hints, dirty, gone); err != nil {
			x.behind = true // the next search meets the error itself
		}
	})
}
