package recall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"

	"reprise/internal/durable"
)

const (
	quick     = 4 * time.Millisecond // a look at all files that each search can afford
	staleness = 2 * time.Second      // how long an edit in place may stay unseen when it cannot
)

// ErrNotBuilt says that there is no usable index and that Options.NoBuild kept
// it from being built. `reprise index rebuild` builds it.
var ErrNotBuilt = errors.New("the search index is not built yet")

// Index is the search index, opened at the first use. It is safe for use by
// several goroutines, and by several processes on one file.
type Index struct {
	o Options

	mu      sync.Mutex
	db      *db // reads; in memory also writes
	w       *db // writes, under the lock; nil until there is something to write
	opened  time.Time
	places  []*place
	work    sync.WaitGroup
	skipped map[string]string // by source and file
	derived sync.Mutex        // held while Options.Derive runs

	touch   sync.Mutex
	touched map[string]bool
}

// Open returns an Index. It touches nothing.
func Open(o Options) *Index {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Index{o: o, skipped: map[string]string{}, touched: map[string]bool{}, places: placesOf(o)}
}

// Touch tells of a file that was written, by its name relative to the global
// memory directory, so that the next search finds what is in it now. It does no
// work and can be called from anywhere.
func (x *Index) Touch(name string) { x.TouchIn("", name) }

// TouchIn is Touch for a file of a project's memory directory.
func (x *Index) TouchIn(project, name string) {
	x.touch.Lock()
	x.touched[fileKey(project, filepath.ToSlash(name))] = true
	x.touch.Unlock()
}

func (x *Index) takeTouched() map[string][]string {
	x.touch.Lock()
	defer x.touch.Unlock()
	out := map[string][]string{}
	for _, k := range sortedKeys(x.touched) {
		source, name := splitKey(k)
		out[source] = append(out[source], name)
	}
	clear(x.touched)
	return out
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
	var err error
	if x.w != nil {
		err = x.w.close()
		x.w = nil
	}
	if x.db != nil {
		if cerr := x.db.close(); err == nil {
			err = cerr
		}
		x.db = nil
	}
	for _, p := range x.places {
		p.forget()
	}
	return err
}

// Rebuild hashes every file, makes the index anew, and has the derived
// documents made.
func (x *Index) Rebuild(ctx context.Context) (Stats, error) {
	x.work.Wait()
	start := x.o.Now()
	if err := x.rebuildNow(ctx); err != nil {
		return Stats{}, err
	}
	if err := x.derive(ctx); err != nil {
		return Stats{}, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.ready(ctx); err != nil {
		return Stats{}, err
	}
	st, err := x.stats()
	st.Took = x.o.Now().Sub(start)
	return st, err
}

func (x *Index) rebuildNow(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	unlock, err := x.lock(ctx)
	if err == nil && unlock != nil {
		defer unlock()
	}
	if err != nil && !unwritable(err) {
		return err
	}
	return x.rebuild(ctx, unlock != nil)
}

// Finish brings what every file says into the index, and what is worked out where it was
// never all there. It goes on from what is there.
func (x *Index) Finish(ctx context.Context) error {
	if err := x.Refresh(ctx); err != nil {
		return fmt.Errorf("update index: %w", err)
	}
	return x.derive(ctx)
}

// derive has the derived documents made if the index lost them.
func (x *Index) derive(ctx context.Context) error {
	if x.o.Derive == nil || !x.derived.TryLock() {
		return nil
	}
	defer x.derived.Unlock()
	lost := false
	err := x.View(ctx, func(tx *Tx) error {
		n, err := tx.d.number(`SELECT v FROM meta WHERE k='derived'`)
		lost = n == 0
		return err
	})
	if err != nil || !lost {
		return err
	}
	if err := x.o.Derive(ctx, x); err != nil {
		return fmt.Errorf("make the derived part of the index: %w", err)
	}
	if err := x.optimize(ctx); err != nil {
		return err
	}
	return x.Update(ctx, func(tx *Tx) error { return tx.d.run(`INSERT OR REPLACE INTO meta VALUES('derived', 1)`) })
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
		if err := x.tryOpen(ctx); err != nil {
			return Stats{}, fmt.Errorf("look at index %s: %w; the next search builds it anew", x.o.IndexFile, err)
		}
		defer x.drop()
	}
	return x.stats()
}

func (x *Index) stats() (Stats, error) {
	st := Stats{Version: version, InMemory: x.db.path == ""}
	for q, n := range map[string]*int{`SELECT count(*) FROM files`: &st.Files, `SELECT count(*) FROM docs WHERE file<>0`: &st.Sections, `SELECT count(*) FROM docs WHERE file=0`: &st.Derived} {
		v, err := x.db.number(q)
		if err != nil {
			return st, fmt.Errorf("look at index: %w", err)
		}
		*n = int(v)
	}
	if x.db.path != "" {
		if fi, err := os.Stat(x.db.path); err == nil {
			st.Bytes = fi.Size()
		}
	}
	for _, n := range sortedKeys(x.skipped) {
		source, name := splitKey(n)
		if source != "" {
			name = source + ":" + name
		}
		st.Skipped = append(st.Skipped, name+": "+x.skipped[n])
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
	if halfWritten(err) {
		return false
	}
	for _, code := range []sqlite3.ErrorCode{sqlite3.READONLY, sqlite3.CANTOPEN, sqlite3.PERM, sqlite3.FULL} {
		if errors.Is(err, code) {
			return true
		}
	}
	return errors.Is(err, fs.ErrPermission) || isReadOnly(err) || isFull(err) || errors.Is(err, durable.ErrNotRegular) || isNotDir(err)
}

// mended runs fn and, when the database turns out to be half written or
// damaged, has it rolled back or builds it anew, and runs fn once more.
func (x *Index) mended(ctx context.Context, fn func() error) error {
	err := fn()
	if halfWritten(err) && ctx.Err() == nil {
		if err = x.recover(ctx); err == nil {
			err = fn()
		}
	}
	if err == nil || ctx.Err() != nil || !damaged(err) || errors.Is(err, ErrNotBuilt) {
		return err
	}
	if x.o.NoBuild {
		x.drop()
		return fmt.Errorf("%w: %w", ErrNotBuilt, err)
	}
	unlock, lerr := x.lock(ctx)
	if lerr != nil && !unwritable(lerr) {
		return lerr
	}
	rerr := x.rebuild(ctx, unlock != nil)
	if unlock != nil { // fn may want it
		unlock()
	}
	if rerr != nil {
		return rerr
	}
	return fn()
}

// recover lets SQLite roll back what a writer that died left half done.
func (x *Index) recover(ctx context.Context) error {
	unlock, err := x.lock(ctx)
	if err != nil {
		if unwritable(err) {
			return x.rebuild(ctx, false)
		}
		return err
	}
	if unlock == nil {
		return nil
	}
	defer unlock()
	d, err := openDB(x.o.IndexFile, sqlite3.OPEN_READWRITE)
	if err == nil {
		_, err = d.number(`SELECT count(*) FROM sqlite_schema`)
		if cerr := d.close(); err == nil {
			err = cerr
		}
	}
	if err != nil && (unwritable(err) || halfWritten(err)) {
		return x.rebuild(ctx, false)
	}
	return err
}

// ready opens the database, building it when it is absent or of another
// version.
func (x *Index) ready(ctx context.Context) error {
	if x.db != nil && x.db.path != "" {
		fi, err := os.Stat(x.db.path)
		if err != nil || !os.SameFile(fi, x.db.info) { // removed or replaced by someone
			x.drop()
		} else {
			x.used(fi)
		}
	}
	if x.db != nil {
		return nil
	}
	if x.o.IndexFile == "" {
		return x.rebuild(ctx, false)
	}
	err := x.tryOpen(ctx)
	if err == nil || ctx.Err() != nil || halfWritten(err) {
		return err
	}
	if x.o.NoBuild {
		return fmt.Errorf("%w: %w", ErrNotBuilt, err)
	}
	unlock, lerr := x.lock(ctx)
	if lerr != nil {
		if unwritable(lerr) {
			return x.rebuild(ctx, false)
		}
		return lerr
	}
	defer unlock()
	if err := x.tryOpen(ctx); err == nil || ctx.Err() != nil || halfWritten(err) { // someone built it meanwhile
		return err
	}
	return x.rebuild(ctx, true)
}

func (x *Index) tryOpen(ctx context.Context) error {
	fi, err := os.Stat(x.o.IndexFile)
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() { // SQLite would wait at a pipe for ever
		return fmt.Errorf("%w: %s is no file", errUnusable, x.o.IndexFile)
	}
	if x.walLeft() { // SQLite would read it as a part of ours, or wait for who writes it
		return fmt.Errorf("%w: another program has worked on %s", errUnusable, x.o.IndexFile)
	}
	d, err := openDB(x.o.IndexFile, sqlite3.OPEN_READONLY)
	if err != nil {
		return err
	}
	old := d.c.SetInterrupt(ctx)
	err = d.usable(x.o.MemoryDir)
	d.c.SetInterrupt(old)
	if err == nil {
		_, err = d.foreign()
	}
	if err != nil {
		d.close()
		return err
	}
	x.db, x.opened = d, x.o.Now()
	x.used(fi)
	return nil
}

// writing runs fn in one transaction of a connection that writes, under the
// lock, which it waits for.
func (x *Index) writing(ctx context.Context, fn func(*writer) error) error {
	if x.db.path == "" {
		return x.db.transact(ctx, fn)
	}
	unlock, err := x.lock(ctx)
	if err != nil {
		if unwritable(err) && !x.o.NoBuild {
			if err := x.rebuild(ctx, false); err != nil {
				return err
			}
			return x.db.transact(ctx, fn)
		}
		return err
	}
	defer unlock()
	if fi, err := os.Stat(x.db.path); err != nil || !os.SameFile(fi, x.db.info) {
		if x.drop(); err != nil && x.o.NoBuild {
			return fmt.Errorf("%w: %w", ErrNotBuilt, err)
		}
		if err := x.tryOpen(ctx); err != nil {
			return fmt.Errorf("%w: %w", errUnusable, err)
		}
	}
	if err := x.openWriter(); err != nil {
		return err
	}
	if err = x.w.transact(ctx, fn); err != nil && (damaged(err) || unwritable(err)) {
		x.w.close()
		x.w = nil
	}
	if unwritable(err) && !x.o.NoBuild {
		if err := x.rebuild(ctx, false); err != nil {
			return err
		}
		return x.db.transact(ctx, fn)
	}
	return err
}

// openWriter is called under the lock, with x.db being the file in its place.
func (x *Index) openWriter() error {
	err := x.ownJournal()
	if x.w != nil && os.SameFile(x.w.info, x.db.info) {
		return nil //nolint:nilerr // it is told by the write, which then is made elsewhere
	}
	if err != nil {
		return err
	}
	if x.w != nil {
		x.w.close()
		x.w = nil
	}
	d, err := openDB(x.db.path, sqlite3.OPEN_READWRITE)
	if err != nil {
		return err
	}
	// Pages that do not fit the cache would be written before the commit, and
	// shut readers out from then on.
	if err := d.c.Exec(`PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=NORMAL; PRAGMA cache_spill=OFF`); err != nil {
		d.close()
		return err
	}
	// What another has left since is rolled back here, which removes the journal, too.
	if _, err := d.number(`SELECT count(*) FROM sqlite_schema`); err != nil {
		d.close()
		return err
	}
	if err := x.ownJournal(); err != nil {
		d.close()
		return err
	}
	x.w = d
	return nil
}

// ownJournal makes the journal where it is not there: SQLite would let everybody read what it
// makes, which holds what was in the index. It is kept, emptied after each write. But whoever
// rolls back what a dead writer left removes it, and others that have the index open go on
// writing: so it is looked for before each write.
func (x *Index) ownJournal() error {
	switch fi, err := os.Lstat(x.journal()); {
	case err == nil && (fi.Size() > 0 || !fi.Mode().IsRegular() || runtime.GOOS == "windows" || fi.Mode().Perm()&0o077 == 0):
		return nil // one to be rolled back, or not a journal at all: told by SQLite
	case err == nil: // of an earlier program
		if err := durable.Remove(x.journal()); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil //nolint:nilerr // told by SQLite
	}
	f, err := durable.Create(x.journal(), 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// walLeft says that there is a write-ahead log, which only another program can
// have left: this one keeps none.
func (x *Index) walLeft() bool {
	_, err := os.Lstat(x.o.IndexFile + "-wal")
	return err == nil
}

// clearAway removes what is in the way of our own files, whatever it is.
func clearAway(names ...string) error {
	for _, name := range names {
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := durable.RemoveAll(name); err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) journal() string { return x.o.IndexFile + "-journal" }

// transact runs fn in one transaction of d.
func (d *db) transact(ctx context.Context, fn func(*writer) error) (err error) {
	old := d.c.SetInterrupt(ctx)
	defer d.c.SetInterrupt(old)
	if err := d.c.Exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	defer func() { // also where fn panics
		if rerr := d.rollback(); err == nil {
			err = rerr
		}
	}()
	if err := d.loadCounts(); err != nil {
		return err
	}
	w := newWriter(d)
	if err := fn(w); err != nil {
		return err
	}
	if err := w.finish(); err != nil {
		return err
	}
	return d.c.Exec(`COMMIT`)
}

// rebuild makes the index anew from the files: aside and put in place by a
// rename when the lock is held, else in memory.
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
	x.db, x.opened = d, x.o.Now()
	return nil
}

func (x *Index) rebuildFile(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("build index: %w", err)
		}
	}()
	aside := x.o.IndexFile + ".new"
	if err := clearAway(aside); err != nil {
		return err
	}
	// Made here, because SQLite would let everybody read what is in the memory.
	f, err := durable.Create(aside, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	d, err := openDB(aside, sqlite3.OPEN_READWRITE)
	if err != nil {
		return err
	}
	if err := x.fill(ctx, d); err != nil {
		d.close()
		return err
	}
	if err := d.close(); err != nil {
		return err
	}
	if err := f.Sync(); err != nil { // SQLite was told not to
		return err
	}
	if err := x.install(aside); err != nil {
		return err
	}
	return x.tryOpen(ctx)
}

// install puts a database in the index's place, under the lock. A journal that
// a dead writer left is of the old index, and goes after it.
func (x *Index) install(aside string) error {
	away := []string{x.o.IndexFile + "-wal", x.o.IndexFile + "-shm"}
	// A link is replaced and not followed. A directory is somebody's: only an empty
	// one goes, and beside a full one the index stays in memory.
	if fi, err := os.Lstat(x.o.IndexFile); err == nil && !fi.Mode().IsRegular() {
		if err := durable.Remove(x.o.IndexFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %w", errNoCache, err)
		}
	}
	if err := clearAway(away...); err != nil {
		return err
	}
	if fi, err := os.Lstat(x.journal()); err == nil && (fi.Size() > 0 || !fi.Mode().IsRegular()) {
		if err := clearAway(x.o.IndexFile, x.journal()); err != nil {
			return err
		}
	}
	return durable.Rename(aside, x.o.IndexFile)
}

// fill puts all files into an empty database, or as many as there is time for.
func (x *Index) fill(ctx context.Context, d *db) error {
	if err := d.c.Exec(`PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF; PRAGMA cache_size=-64000`); err != nil {
		return err
	}
	if err := d.create(x.o.MemoryDir); err != nil {
		return err
	}
	// Half of the time is for what comes after, first of all the answer.
	part, cancel := ctx, func() {}
	if end, hurry := ctx.Deadline(); hurry && end.After(x.o.Now()) {
		part, cancel = context.WithTimeout(ctx, end.Sub(x.o.Now())/2)
	}
	defer cancel()
	left := false
	err := d.transact(ctx, func(w *writer) (err error) {
		left, err = x.fillFiles(part, w)
		return err
	})
	if err != nil || left || x.o.Derive != nil {
		return err
	}
	return d.run(`INSERT INTO fts(fts) VALUES('optimize')`)
}

// optimize makes one segment of the many that a build leaves, each of which
// every query would look into. It does so by steps, for a transaction is in
// memory until its commit.
func (x *Index) optimize(ctx context.Context) error {
	const pages = 2000
	for step := -pages; ; step = pages { // the first one marks all segments for it
		changed := int64(0)
		err := x.Update(ctx, func(tx *Tx) error {
			before := tx.d.c.TotalChanges()
			err := tx.d.run(`INSERT INTO fts(fts, rank) VALUES('merge', ?)`, step)
			changed = tx.d.c.TotalChanges() - before
			return err
		})
		if err != nil || changed < 2 { // the command itself is one
			return err
		}
	}
}
