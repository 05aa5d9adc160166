package recall

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/ext/fts5"

	"reprise/internal/durable"
)

// version of the database's layout, joined with the tokenizer's.
const version = 1*100 + tokenizerVersion

const applicationID = 0x72707273 // "rprs"

// The words that FTS5 gets are already cut and stemmed by this package, which
// so knows exactly what is in the index: `terms` counts the documents of each
// word, from which queries are planned and scored. The texts are in `sections`.
const schema = `
CREATE TABLE meta(k TEXT PRIMARY KEY, v) WITHOUT ROWID;
CREATE TABLE files(id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, hash TEXT, size INT, mtime INT, ctime INT, ino INT, at INT);
CREATE TABLE sections(id INTEGER PRIMARY KEY, file INT NOT NULL, line INT, heading TEXT, body TEXT);
CREATE INDEX sections_file ON sections(file);
CREATE TABLE terms(term TEXT PRIMARY KEY, df INT NOT NULL) WITHOUT ROWID;
CREATE VIRTUAL TABLE docs USING fts5(h, b, content='', contentless_delete=1, tokenize='ascii');
`

var errUnusable = errors.New("it is from another version or another memory, or no index at all")

// db is one open database with what is kept of it in memory.
type db struct {
	c     *sqlite3.Conn
	path  string // "" = in memory
	info  os.FileInfo
	files map[string]file
	seen  int64 // data_version

	docs, tokens int64 // documents, and words in all of them
	scorer       *scorer
}

// maxPath is shorter than the longest path that SQLite's driver takes: over it,
// it panics.
const maxPath = 960

func openDB(path string, flags sqlite3.OpenFlag) (*db, error) {
	if len(path) > maxPath {
		return nil, fmt.Errorf("open index: %w: its path has %d bytes, at most %d are possible", errNoCache, len(path), maxPath)
	}
	c, err := sqlite3.OpenFlags(path, flags)
	if err != nil {
		return nil, err
	}
	d := &db{c: c, files: map[string]file{}}
	err = fts5.RegisterCustom(c, func(a *fts5.API) error { return a.CreateFunction("reprise_score", d.score) })
	if err == nil {
		err = c.Exec(`PRAGMA busy_timeout=10000; PRAGMA journal_mode=MEMORY; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-16000; PRAGMA trusted_schema=OFF;`)
	}
	if err == nil && path != ":memory:" {
		d.path = path
		d.info, err = os.Stat(path)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return d, nil
}

func (d *db) close() error {
	if err := d.c.Close(); err != nil {
		return fmt.Errorf("close index: %w", err)
	}
	return nil
}

// damaged says that an error means that the file cannot be used as it is.
func damaged(err error) bool {
	return errors.Is(err, sqlite3.CORRUPT) || errors.Is(err, sqlite3.NOTADB) || errors.Is(err, errUnusable) ||
		errors.Is(err, sqlite3.CONSTRAINT) || // it does not hold what is remembered of it
		errors.Is(err, sqlite3.IOERR) || errors.Is(err, sqlite3.ERROR) || errors.Is(err, sqlite3.FORMAT) || errors.Is(err, sqlite3.MISMATCH)
}

func (d *db) create(memory string) error {
	pragmas := fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d;", applicationID, version)
	if err := d.c.Exec(pragmas + schema); err != nil {
		return err
	}
	return d.run(`INSERT INTO meta VALUES('memory', ?)`, absolute(memory))
}

func absolute(p string) string {
	if a, err := filepath.Abs(p); err == nil {
		return a
	}
	return p
}

// usable says whether the database is one of ours, for this memory.
func (d *db) usable(memory string) error {
	app, err := d.number(`PRAGMA application_id`)
	if err != nil {
		return err
	}
	v, err := d.number(`PRAGMA user_version`)
	if err != nil {
		return err
	}
	if app != applicationID || v != version {
		return errUnusable
	}
	of := ""
	if err := d.rows(`SELECT v FROM meta WHERE k='memory'`, func(s *sqlite3.Stmt) { of = s.ColumnText(0) }); err != nil {
		return err
	}
	if of != absolute(memory) {
		return errUnusable
	}
	return nil
}

// foreign says whether another process changed the database since last asked.
func (d *db) foreign() (bool, error) {
	v, err := d.number(`PRAGMA data_version`)
	changed := v != d.seen
	d.seen = v
	return changed, err
}

// reading runs fn on one state of the database: another process may change it
// between two reads. Nothing may be written in fn.
func (d *db) reading(fn func() error) error {
	if !d.c.GetAutocommit() {
		return fn()
	}
	if err := d.c.Exec(`BEGIN`); err != nil {
		return err
	}
	err := fn()
	if !d.c.GetAutocommit() { // an error may have ended it
		if rerr := d.c.Exec(`ROLLBACK`); err == nil {
			err = rerr
		}
	}
	return err
}

// load reads what is kept in memory. A change that came between its files and
// the number that tells of changes would never be noticed.
func (d *db) load() error { return d.reading(d.loadNow) }

func (d *db) loadNow() error {
	files := map[string]file{}
	err := d.rows(`SELECT id, name, hash, size, mtime, ctime, ino, at FROM files`, func(s *sqlite3.Stmt) {
		files[s.ColumnText(1)] = file{id: s.ColumnInt64(0), hash: s.ColumnText(2), at: s.ColumnInt64(7),
			hint: hint{size: s.ColumnInt64(3), mtime: s.ColumnInt64(4), ctime: s.ColumnInt64(5), ino: s.ColumnInt64(6)}}
	})
	if err != nil {
		return err
	}
	d.files = files
	d.docs, d.tokens = 0, 0
	err = d.rows(`SELECT k, v FROM meta WHERE k IN ('docs','tokens')`, func(s *sqlite3.Stmt) {
		if s.ColumnText(0) == "docs" {
			d.docs = s.ColumnInt64(1)
		} else {
			d.tokens = s.ColumnInt64(1)
		}
	})
	if err == nil {
		_, err = d.foreign()
	}
	return err
}

func (d *db) counts() (files, sections int, err error) {
	f, err := d.number(`SELECT count(*) FROM files`)
	if err != nil {
		return 0, 0, err
	}
	s, err := d.number(`SELECT count(*) FROM sections`)
	return int(f), int(s), err
}

func (d *db) number(q string) (int64, error) {
	var n int64
	err := d.rows(q, func(s *sqlite3.Stmt) { n = s.ColumnInt64(0) })
	return n, err
}

// rows runs a query and calls each for every row.
func (d *db) rows(q string, each func(*sqlite3.Stmt), args ...any) error {
	s, _, err := d.c.Prepare(q)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := bind(s, args); err != nil {
		return err
	}
	for s.Step() {
		each(s)
	}
	return s.Err()
}

func (d *db) run(q string, args ...any) error { return d.rows(q, func(*sqlite3.Stmt) {}, args...) }

func bind(s *sqlite3.Stmt, args []any) error {
	for i, a := range args {
		var err error
		switch a := a.(type) {
		case string:
			err = s.BindText(i+1, a)
		case int64:
			err = s.BindInt64(i+1, a)
		case int:
			err = s.BindInt(i+1, a)
		default:
			err = fmt.Errorf("argument %d is a %T", i+1, a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// doc is a section made ready for the index.
type doc struct {
	section
	id     int64
	file   int64
	h, b   string // stemmed words
	terms  map[string]struct{}
	length int
}

func makeDoc(name string, ordinal int, s section) doc {
	d := doc{section: s, terms: map[string]struct{}{}}
	stemmed := func(text string) string {
		var b strings.Builder
		words(text, func(w word) bool {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(w.term)
			d.terms[w.term] = struct{}{}
			d.length++
			return true
		})
		return b.String()
	}
	base := strings.TrimSuffix(strings.TrimPrefix(name, "blocks/"), ".md")
	d.h = stemmed(base + " " + s.heading)
	d.b = stemmed(s.body)
	h := fnv.New64a()
	h.Write([]byte(name + "\x00" + strconv.Itoa(ordinal)))
	// The id orders documents by chance but always alike, which is what a query
	// of common words takes its sample by, and carries the length, which saves
	// a look-up for every candidate.
	d.id = int64(h.Sum64()>>28)<<8 | packLength(d.length)
	return d
}

// packLength keeps a document's length in a byte: exact below 128, then in
// steps of about six per cent.
func packLength(n int) int64 {
	if n < 128 {
		return int64(n)
	}
	return int64(min(255, 128+int(math.Log2(float64(n)/128)*12)))
}

func unpackLength(id int64) float64 {
	n := id & 0xff
	if n < 128 {
		return float64(n)
	}
	return 128 * math.Exp2(float64(n-128)/12)
}

// apply updates the open index under its lock.
func (x *Index) apply(ctx context.Context, hints map[string]hint, dirty, gone []string) error {
	if len(dirty)+len(gone) == 0 {
		return nil
	}
	// Most of what looks changed only has new times. That needs no write.
	dirty, restat, err := x.settle(hints, dirty)
	if err != nil || len(dirty)+len(gone) == 0 && len(restat) <= manyRestats {
		return err
	}
	unlock, err := x.lock(ctx)
	if err != nil {
		if unwritable(err) {
			return x.rebuild(ctx, false)
		}
		return err
	}
	if unlock != nil {
		defer unlock()
		fi, err := os.Stat(x.db.path)
		if err != nil || !os.SameFile(fi, x.db.info) {
			return x.rebuild(ctx, true)
		}
		if changed, err := x.db.foreign(); err != nil {
			return err
		} else if changed { // someone was here first: see what is left to do
			if err := x.db.load(); err != nil {
				return err
			}
			if dirty, restat, err = x.settle(hints, append(dirty, restat...)); err != nil {
				return err
			}
			gone = slicesKeep(gone, func(n string) bool { _, ok := x.db.files[n]; return ok })
			if len(dirty)+len(gone) == 0 && len(restat) <= manyRestats {
				return nil
			}
		}
		if err := durable.WriteFile(x.dirtyMark(), []byte("being written\n"), 0o600); err != nil {
			if unwritable(err) {
				return x.rebuild(ctx, false)
			}
			return fmt.Errorf("update index: %w", err)
		}
	}
	if err := x.put(ctx, x.db, hints, change{dirty, gone, restat}, false); err != nil {
		// The transaction was rolled back, or the connection is of no use: the
		// mark stays, and whoever comes next builds the index anew.
		x.drop()
		if unwritable(err) {
			return x.rebuild(ctx, false)
		}
		return fmt.Errorf("update index: %w", err)
	}
	if unlock != nil {
		if err := durable.Remove(x.dirtyMark()); err != nil {
			return fmt.Errorf("update index: %w", err)
		}
	}
	return nil
}

func slicesKeep(in []string, keep func(string) bool) []string {
	var out []string
	for _, s := range in {
		if keep(s) {
			out = append(out, s)
		}
	}
	return out
}

// manyRestats is how many files with new times and old content are worth a
// write of the index; until then the times are noted in memory only.
const manyRestats = 256

// change is what a write does: names anew, names out, and new times.
type change struct{ dirty, gone, restat []string }

// settle hashes the files that look changed and gives those that are, and those
// that only have new times.
func (x *Index) settle(hints map[string]hint, names []string) (dirty, restat []string, err error) {
	root, err := os.OpenRoot(x.o.MemoryDir)
	if err != nil {
		return nil, nil, fmt.Errorf("look at memory: %w", err)
	}
	defer root.Close()
	for _, n := range names {
		f, ok := x.db.files[n]
		if !ok {
			if _, known := x.skipped[n]; known { // still unreadable?
				if _, err := read(root, n); err != nil {
					continue
				}
			}
			dirty = append(dirty, n)
			continue
		}
		at := x.o.Now().UnixNano()
		data, err := read(root, n)
		if err != nil || hashOf(data) != f.hash {
			dirty = append(dirty, n)
			continue
		}
		f.hint, f.at = hints[n], at
		x.db.files[n] = f
		restat = append(restat, n)
	}
	if x.db.path == "" {
		restat = nil
	}
	return dirty, restat, nil
}

// put writes a change into d in one transaction.
func (x *Index) put(ctx context.Context, d *db, hints map[string]hint, ch change, fresh bool) (err error) {
	root, err := os.OpenRoot(x.o.MemoryDir)
	if err != nil {
		return fmt.Errorf("read memory: %w", err)
	}
	defer root.Close()
	old := d.c.SetInterrupt(ctx)
	defer d.c.SetInterrupt(old)
	if fresh {
		if err := d.c.Exec(`PRAGMA synchronous=OFF; PRAGMA cache_size=-64000`); err != nil {
			return err
		}
	}
	tx, err := d.c.BeginImmediate()
	if err != nil {
		return err
	}
	defer tx.End(&err)
	w := &writer{d: d, df: map[string]int{}, used: map[int64]bool{}}
	if !fresh {
		for _, n := range append(append([]string{}, ch.dirty...), ch.gone...) {
			if f, ok := d.files[n]; ok {
				if err := w.remove(n, f); err != nil {
					return err
				}
			}
		}
		for _, n := range ch.restat {
			f := d.files[n]
			if err := d.run(`UPDATE files SET size=?, mtime=?, ctime=?, ino=?, at=? WHERE id=?`, f.size, f.mtime, f.ctime, f.ino, f.at, f.id); err != nil {
				return err
			}
		}
	}
	var docs []doc
	for _, n := range ch.dirty {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := x.o.Now().UnixNano()
		data, err := read(root, n)
		var secs []section
		if err == nil {
			secs, err = sections(data)
		}
		if err != nil {
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			x.skipped[n] = err.Error()
			continue
		}
		delete(x.skipped, n)
		id, err := w.addFile(n, file{hash: hashOf(data), hint: hints[n], at: at})
		if err != nil {
			return err
		}
		for i, s := range secs {
			dc := makeDoc(n, i, s)
			dc.file = id
			docs = append(docs, dc)
		}
	}
	if err := w.addDocs(docs); err != nil {
		return err
	}
	return w.finish(fresh)
}

// writer changes one database within a transaction.
type writer struct {
	d    *db
	df   map[string]int // change of each word's document count
	used map[int64]bool
}

func (w *writer) remove(name string, f file) error {
	type old struct {
		id  int64
		sec section
	}
	var olds []old
	err := w.d.rows(`SELECT id, heading, body FROM sections WHERE file=?`, func(s *sqlite3.Stmt) {
		olds = append(olds, old{id: s.ColumnInt64(0), sec: section{heading: s.ColumnText(1), body: s.ColumnText(2)}})
	}, f.id)
	if err != nil {
		return err
	}
	for _, o := range olds {
		dc := makeDoc(name, 0, o.sec)
		for t := range dc.terms {
			w.df[t]--
		}
		w.d.docs--
		w.d.tokens -= int64(dc.length)
		if err := w.d.run(`DELETE FROM docs WHERE rowid=?`, o.id); err != nil {
			return err
		}
	}
	if err := w.d.run(`DELETE FROM sections WHERE file=?`, f.id); err != nil {
		return err
	}
	delete(w.d.files, name)
	return w.d.run(`DELETE FROM files WHERE id=?`, f.id)
}

func (w *writer) addFile(name string, f file) (int64, error) {
	err := w.d.run(`INSERT INTO files(name, hash, size, mtime, ctime, ino, at) VALUES(?,?,?,?,?,?,?)`,
		name, f.hash, f.size, f.mtime, f.ctime, f.ino, f.at)
	if err != nil {
		return 0, err
	}
	f.id = w.d.c.LastInsertRowID()
	w.d.files[name] = f
	return f.id, nil
}

// addDocs inserts in order of id: FTS5 writes a segment whenever ids go back.
func (w *writer) addDocs(docs []doc) error {
	for i := range docs {
		for w.used[docs[i].id] || w.taken(docs[i].id) {
			docs[i].id += 1 << 8
		}
		w.used[docs[i].id] = true
	}
	sort.Slice(docs, func(i, j int) bool { return docs[i].id < docs[j].id })
	sec, _, err := w.d.c.Prepare(`INSERT INTO sections(id, file, line, heading, body) VALUES(?,?,?,?,?)`)
	if err != nil {
		return err
	}
	defer sec.Close()
	fts, _, err := w.d.c.Prepare(`INSERT INTO docs(rowid, h, b) VALUES(?,?,?)`)
	if err != nil {
		return err
	}
	defer fts.Close()
	for _, dc := range docs {
		if err := execStmt(sec, dc.id, dc.file, dc.line, dc.heading, dc.body); err != nil {
			return err
		}
		if err := execStmt(fts, dc.id, dc.h, dc.b); err != nil {
			return err
		}
		for t := range dc.terms {
			w.df[t]++
		}
		w.d.docs++
		w.d.tokens += int64(dc.length)
	}
	return nil
}

func execStmt(s *sqlite3.Stmt, args ...any) error {
	if err := bind(s, args); err != nil {
		return err
	}
	return s.Exec()
}

func (w *writer) taken(id int64) bool {
	if w.d.docs == 0 {
		return false
	}
	found := false
	err := w.d.rows(`SELECT 1 FROM sections WHERE id=?`, func(*sqlite3.Stmt) { found = true }, id)
	return found && err == nil
}

func (w *writer) finish(fresh bool) error {
	up, _, err := w.d.c.Prepare(`INSERT INTO terms VALUES(?1,?2) ON CONFLICT(term) DO UPDATE SET df=df+?2`)
	if err != nil {
		return err
	}
	defer up.Close()
	shrunk := false
	for _, t := range sortedKeys(w.df) {
		if n := w.df[t]; n != 0 {
			shrunk = shrunk || n < 0
			if err := execStmt(up, t, n); err != nil {
				return err
			}
		}
	}
	if shrunk {
		if err := w.d.run(`DELETE FROM terms WHERE df<=0`); err != nil {
			return err
		}
	}
	for k, v := range map[string]int64{"docs": w.d.docs, "tokens": w.d.tokens} {
		if err := w.d.run(`INSERT OR REPLACE INTO meta VALUES(?,?)`, k, v); err != nil {
			return err
		}
	}
	if fresh { // many small segments make each query slower
		return w.d.run(`INSERT INTO docs(docs) VALUES('optimize')`)
	}
	return nil
}
