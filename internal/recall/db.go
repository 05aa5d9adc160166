package recall

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/ext/fts5"

	"reprise/internal/recall/lexicon"
)

// version of the database's layout and of what the facts of documents are, joined with the tokenizer's.
const version = 9*100 + lexicon.Version

// Layout is the version of the index that this program reads and writes. One of
// another version is built anew.
const Layout = version

const applicationID = 0x72707273 // "rprs"

// The words that FTS5 gets are already cut and stemmed by this package, which
// so knows exactly what is in the index: `terms` counts the documents of each
// word, from which queries are planned and scored, and `days` those of each day
// of Doc.Time. The column f of `fts` holds words
// that no text has: who may see a document and what it is (see row.go). Rows of
// `fts` are those of `docs` turned round, for FTS5 goes forwards faster than
// backwards, and the newest documents come first. Times
// are ns since 1970, 0 = none. `docs` holds what a ranking needs of every
// candidate, and `texts` what it needs of the best ones: so a page has many
// candidates. Every index is paid for by each document that is put, so that
// docs_top leaves out the most frequent class. `kv` has rowids, for its values are large:
// in a tree without them each page between root and leaf would hold four.
const schema = `
CREATE TABLE meta(k TEXT PRIMARY KEY, v) WITHOUT ROWID;
CREATE TABLE sources(key TEXT PRIMARY KEY, looked INT, cost INT, dir1 INT, dir2 INT, files INT) WITHOUT ROWID;
CREATE TABLE files(id INTEGER PRIMARY KEY, source TEXT NOT NULL, name TEXT NOT NULL, hash TEXT, size INT, mtime INT, ctime INT, ino INT, at INT, UNIQUE(source, name));
CREATE TABLE docs(row INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, file INT NOT NULL, line INT NOT NULL,
 class TEXT NOT NULL, scope TEXT NOT NULL, project TEXT NOT NULL, session TEXT NOT NULL, client TEXT NOT NULL, author TEXT NOT NULL, acl TEXT NOT NULL,
 source TEXT NOT NULL, title TEXT NOT NULL, grp TEXT NOT NULL, ord INT NOT NULL, time INT NOT NULL, until INT NOT NULL, review INT NOT NULL, status TEXT NOT NULL,
 importance REAL NOT NULL, confidence REAL NOT NULL, tier TEXT NOT NULL, lt INT NOT NULL, la INT NOT NULL, lb INT NOT NULL, hash INT NOT NULL);
CREATE TABLE texts(row INTEGER PRIMARY KEY, keys TEXT NOT NULL, facts TEXT NOT NULL, text TEXT NOT NULL, data BLOB);
CREATE INDEX docs_file ON docs(file) WHERE file<>0;
CREATE INDEX docs_group ON docs(grp, ord) WHERE grp<>'';
CREATE INDEX docs_top ON docs(class, project, importance DESC, time DESC, id) WHERE class<>'episode';
CREATE INDEX docs_summary ON docs(project, time DESC, id) WHERE class='summary';
CREATE TABLE keys(key TEXT NOT NULL, row INT NOT NULL, PRIMARY KEY(key, row)) WITHOUT ROWID;
CREATE TABLE facts(key TEXT NOT NULL, row INT NOT NULL, PRIMARY KEY(key, row)) WITHOUT ROWID;
CREATE TABLE terms(term TEXT PRIMARY KEY, df INT NOT NULL) WITHOUT ROWID;
CREATE TABLE days(day INTEGER PRIMARY KEY, n INT NOT NULL);
CREATE TABLE projects(name TEXT PRIMARY KEY, n INT NOT NULL) WITHOUT ROWID;
CREATE TABLE kv(bucket TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY(bucket, key));
CREATE TABLE vectors(model TEXT NOT NULL, id TEXT NOT NULL, hash INT NOT NULL, v BLOB NOT NULL, PRIMARY KEY(model, id));
CREATE INDEX vectors_id ON vectors(id);
CREATE VIRTUAL TABLE fts USING fts5(t, a, b, f, content='', contentless_delete=1, tokenize="ascii tokenchars '#'");
INSERT INTO fts(fts, rank) VALUES('hashsize', 8388608);
`

var errUnusable = errors.New("it is from another version or another memory, or no index at all")

// db is one open database.
type db struct {
	c     *sqlite3.Conn
	path  string // "" = in memory
	info  os.FileInfo
	seen  int64 // data_version
	stmts map[string]*sqlite3.Stmt
	fts   bool // words has been called

	corpus corpus
	scorer *scorer
}

// maxPath is shorter than the longest path that SQLite's driver takes: over it,
// it panics.
const maxPath = 950

// through is the VFS that files are opened by; tests set it, to die at a step.
var through string

// busyLimit is how long another's commit is waited for where no deadline says
// less.
const busyLimit = 10 * time.Second

func openDB(path string, flags sqlite3.OpenFlag) (*db, error) {
	if len(path) > maxPath {
		return nil, fmt.Errorf("open index: %w: its path has %d bytes, at most %d are possible", errNoCache, len(path), maxPath)
	}
	name := path
	if through != "" && path != ":memory:" {
		name, flags = "file:"+(&url.URL{Path: path}).EscapedPath()+"?vfs="+through, flags|sqlite3.OPEN_URI
	}
	c, err := sqlite3.OpenFlags(name, flags)
	if err != nil {
		return nil, err
	}
	d := &db{c: c, stmts: map[string]*sqlite3.Stmt{}}
	err = c.BusyHandler(busy)
	if err == nil {
		err = c.Exec(`PRAGMA cache_size=-16000; PRAGMA trusted_schema=OFF;`)
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

// words makes the search for words known to the connection. That takes a third of
// opening it, and what is told at a session's start needs none.
func (d *db) words() error {
	if d.fts {
		return nil
	}
	err := fts5.RegisterCustom(d.c, func(a *fts5.API) error { return a.CreateFunction("reprise_score", d.score) })
	d.fts = err == nil
	return err
}

// busy waits a little for another's lock, and says whether to try again.
func busy(ctx context.Context, count int) bool {
	const first, longest = 200 * time.Microsecond, 5 * time.Millisecond
	wait := min(first<<min(count, 10), longest)
	if time.Duration(count)*longest > busyLimit {
		return false
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func (d *db) close() error {
	for _, s := range d.stmts {
		s.Close()
	}
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

// halfWritten says that a writer died: the database is as it was before, once
// someone who may write has opened it.
func halfWritten(err error) bool { return errors.Is(err, sqlite3.READONLY_ROLLBACK) }

func (d *db) create(memory string) error {
	if err := d.words(); err != nil {
		return err
	}
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

// foreign says whether another connection changed the database since last asked.
func (d *db) foreign() (bool, error) {
	v, err := d.number(`PRAGMA data_version`)
	changed := v != d.seen
	d.seen = v
	return changed, err
}

// reading runs fn on one state of the database: another process may change it
// between two reads. Nothing may be written in fn.
func (d *db) reading(ctx context.Context, fn func() error) error {
	if !d.c.GetAutocommit() {
		return fn()
	}
	old := d.c.SetInterrupt(ctx)
	defer d.c.SetInterrupt(old)
	if err := d.c.Exec(`BEGIN`); err != nil {
		return err
	}
	err := d.loadCounts()
	if err == nil {
		err = fn()
	}
	if rerr := d.rollback(); err == nil {
		err = rerr
	}
	return err
}

func (d *db) rollback() error {
	if d.c.GetAutocommit() { // an error may have ended it
		return nil
	}
	old := d.c.SetInterrupt(context.Background())
	defer d.c.SetInterrupt(old)
	for _, s := range d.stmts {
		_ = s.Reset()
	}
	return d.c.Exec(`ROLLBACK`)
}

func (d *db) loadCounts() error {
	d.corpus = corpus{}
	return d.rows(`SELECT k, v FROM meta WHERE k IN ('docs','tokens0','tokens1','tokens2')`, func(s *sqlite3.Stmt) {
		n := s.ColumnInt64(1)
		switch k := s.ColumnText(0); k {
		case "docs":
			d.corpus.docs = n
		default:
			d.corpus.tokens[k[len(k)-1]-'0'] = n
		}
	})
}

func (d *db) number(q string, args ...any) (int64, error) {
	var n int64
	err := d.rows(q, func(s *sqlite3.Stmt) { n = s.ColumnInt64(0) }, args...)
	return n, err
}

// prepared returns the statement of q, made once for the connection. It must
// not be used while it is being stepped.
func (d *db) prepared(q string) (*sqlite3.Stmt, error) {
	if s := d.stmts[q]; s != nil {
		return s, nil
	}
	if strings.Contains(q, "fts") {
		if err := d.words(); err != nil {
			return nil, err
		}
	}
	s, _, err := d.c.PrepareFlags(q, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, err
	}
	d.stmts[q] = s
	return s, nil
}

// rows runs a query and calls each for every row. each must not run the same
// query.
func (d *db) rows(q string, each func(*sqlite3.Stmt), args ...any) error {
	s, err := d.prepared(q)
	if err != nil {
		return err
	}
	if err := bind(s, args); err != nil {
		return err
	}
	for s.Step() {
		each(s)
	}
	err = s.Err()
	if rerr := s.Reset(); err == nil {
		err = rerr
	}
	return err
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
		case float64:
			err = s.BindFloat(i+1, a)
		case []byte:
			if a == nil {
				err = s.BindNull(i + 1)
			} else {
				err = s.BindBlob(i+1, a)
			}
		default:
			err = fmt.Errorf("argument %d is a %T", i+1, a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
