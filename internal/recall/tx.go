package recall

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// Tx is one transaction of View or Update, valid until the function it was
// given to returns. It is for one goroutine.
type Tx struct {
	d *db
	w *writer // nil in View
}

var errReadOnly = errors.New("this transaction only reads: use Update to write")

// Update runs fn and keeps all that it did, or, when it returns an error or the
// process dies, nothing. Updates of all processes come one after another; ctx
// bounds the wait for another's. fn may be called a second time where the index
// turned out to be damaged, and must then do the same again on an index that
// has lost all derived documents.
func (x *Index) Update(ctx context.Context, fn func(*Tx) error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	err := x.mended(ctx, func() error {
		if err := x.ready(ctx); err != nil {
			return err
		}
		return x.writing(ctx, func(w *writer) error { return fn(&Tx{d: w.d, w: w}) })
	})
	if err != nil {
		return fmt.Errorf("update index: %w", err)
	}
	return nil
}

// View runs fn on one state of the index, whatever others write meanwhile.
// The memory's files are not looked at: see Refresh.
func (x *Index) View(ctx context.Context, fn func(*Tx) error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	err := x.mended(ctx, func() error {
		if err := x.ready(ctx); err != nil {
			return err
		}
		return x.db.reading(ctx, func() error { return fn(&Tx{d: x.db}) })
	})
	if err != nil {
		return fmt.Errorf("read index: %w", err)
	}
	return nil
}

// Put adds a document, or replaces the one of its id. Documents that were made
// from files belong to the files: putting one of their ids is an error.
func (tx *Tx) Put(d Doc) error {
	if tx.w == nil {
		return errReadOnly
	}
	e, err := makeEntry(d, 0, 0)
	if err != nil {
		return err
	}
	return tx.w.put(e)
}

// Delete takes a document out; one that is not there is no error.
func (tx *Tx) Delete(id string) error {
	if tx.w == nil {
		return errReadOnly
	}
	return tx.w.delete(id)
}

// Get returns a document by its id.
func (tx *Tx) Get(id string) (Doc, bool, error) {
	st, ok, err := tx.d.one(`d.id=?`, id)
	return st.Doc, ok, err
}

// ByKey returns all documents that have exactly this key, in order of Time and
// ID, whoever may see them.
func (tx *Tx) ByKey(key string) ([]Doc, error) {
	return tx.many(`JOIN keys k ON k.row=d.row WHERE k.key=?`, key)
}

// ByFact returns all documents that state something about a fact's key
// (fact.Fact.Key), in order of Time and ID.
func (tx *Tx) ByFact(key string) ([]Doc, error) {
	return tx.many(`JOIN facts k ON k.row=d.row WHERE k.key=?`, key)
}

func (tx *Tx) many(from string, args ...any) ([]Doc, error) {
	var out []Doc
	err := tx.d.rows(`SELECT `+head+`, `+tail+both+from+` ORDER BY d.time, d.id`, func(s *sqlite3.Stmt) {
		var st stored
		scanHead(s, &st)
		scanTail(s, headColumns, &st.Doc)
		out = append(out, st.Doc)
	}, args...)
	return out, err
}

// Filter chooses documents: those that agree with every field that is set.
type Filter struct {
	Class                                Class
	Scope, Project, Session, Group, Tier string
	Status                               *Status
	Prefix                               string // of the id: letters, digits and "-"
}

func (f Filter) where() (string, []any) {
	var conds []string
	var args []any
	add := func(cond, v string) {
		if v != "" {
			conds = append(conds, cond)
			args = append(args, v)
		}
	}
	add(`d.session=? AND d.session<>''`, f.Session)
	add(`d.grp=? AND d.grp<>''`, f.Group)
	add(`d.class=?`, string(f.Class))
	add(`d.project=?`, f.Project)
	add(`d.scope=?`, f.Scope)
	add(`d.tier=?`, f.Tier)
	add(`d.id LIKE ? || '%'`, f.Prefix)
	if f.Status != nil {
		conds = append(conds, `d.status=?`)
		args = append(args, string(*f.Status))
	}
	if len(conds) == 0 {
		return "", nil
	}
	return `WHERE ` + strings.Join(conds, ` AND `), args
}

// Each calls fn for every document that f chooses, in order of Time and ID,
// until fn returns false. fn may use the transaction, and may write: what it
// puts is not visited, what it deletes before its turn neither.
func (tx *Tx) Each(f Filter, fn func(Doc) bool) error {
	where, args := f.where()
	var ids []string
	err := tx.d.rows(`SELECT d.id FROM docs d `+where+` ORDER BY d.time, d.id`, func(s *sqlite3.Stmt) { ids = append(ids, s.ColumnText(0)) }, args...)
	if err != nil {
		return err
	}
	return tx.each(ids, fn)
}

// each calls fn for the documents that are still there, until it returns false.
func (tx *Tx) each(ids []string, fn func(Doc) bool) error {
	for _, id := range ids {
		d, ok, err := tx.Get(id)
		if err != nil {
			return err
		}
		if ok && !fn(d) {
			return nil
		}
	}
	return nil
}

// Count is how many documents f chooses.
func (tx *Tx) Count(f Filter) (int, error) {
	where, args := f.where()
	n, err := tx.d.number(`SELECT count(*) FROM docs d `+where, args...)
	return int(n), err
}

// Load returns what was stored under a key of a bucket.
func (tx *Tx) Load(bucket, key string) (value []byte, ok bool, err error) {
	err = tx.d.rows(`SELECT value FROM kv WHERE bucket=? AND key=?`, func(s *sqlite3.Stmt) { value, ok = s.ColumnBlob(0, []byte{}), true }, bucket, key)
	return value, ok, err
}

// Store keeps a value under a key of a bucket. It is as derived as documents
// are: a rebuild loses it.
func (tx *Tx) Store(bucket, key string, value []byte) error {
	if tx.w == nil {
		return errReadOnly
	}
	if value == nil {
		value = []byte{}
	}
	return tx.d.run(`INSERT INTO kv VALUES(?1,?2,?3) ON CONFLICT(bucket, key) DO UPDATE SET value=?3`, bucket, key, value)
}

// Drop forgets a key of a bucket.
func (tx *Tx) Drop(bucket, key string) error {
	if tx.w == nil {
		return errReadOnly
	}
	return tx.d.run(`DELETE FROM kv WHERE bucket=? AND key=?`, bucket, key)
}

// EachKV calls fn for the keys of a bucket that begin with prefix, in the order
// of their bytes, until it returns false. fn may use the transaction.
func (tx *Tx) EachKV(bucket, prefix string, fn func(key string, value []byte) bool) error {
	type pair struct {
		k string
		v []byte
	}
	end := "\xff\xff\xff\xff" // above every key
	if prefix != "" {
		end = prefix[:len(prefix)-1] + string([]byte{prefix[len(prefix)-1] + 1})
	}
	q := `SELECT key, value FROM kv WHERE bucket=? AND key>=? AND key<? ORDER BY key LIMIT ?`
	// Small pages first: many want only the first few.
	for after, most := prefix, 8; ; most = min(4*most, 512) {
		page := make([]pair, 0, most)
		err := tx.d.rows(q, func(s *sqlite3.Stmt) { page = append(page, pair{s.ColumnText(0), s.ColumnBlob(1, []byte{})}) }, bucket, after, end, most)
		if err != nil {
			return err
		}
		for _, p := range page {
			if !fn(p.k, p.v) {
				return nil
			}
		}
		if len(page) < most {
			return nil
		}
		after = page[len(page)-1].k
		q = `SELECT key, value FROM kv WHERE bucket=? AND key>? AND key<? ORDER BY key LIMIT ?`
	}
}

// PutVector keeps an embedding of a document as it is now. When the document
// goes, or its title, author or text changes, the vector goes too.
func (tx *Tx) PutVector(id, model string, v []float32) error {
	if tx.w == nil {
		return errReadOnly
	}
	b := make([]byte, 4*len(v))
	for i, f := range v {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(f))
	}
	return tx.d.run(`INSERT INTO vectors SELECT ?1, id, hash, ?3 FROM docs WHERE id=?2 ON CONFLICT(model, id) DO UPDATE SET hash=excluded.hash, v=excluded.v`, model, id, b)
}

// WithoutVector calls fn for at most max documents that have no vector of the
// model, the newest first.
func (tx *Tx) WithoutVector(model string, max int, fn func(Doc) bool) error {
	var ids []string
	err := tx.d.rows(`SELECT d.id FROM docs d LEFT JOIN vectors v ON v.model=?1 AND v.id=d.id AND v.hash=d.hash WHERE v.id IS NULL ORDER BY d.row DESC LIMIT ?2`,
		func(s *sqlite3.Stmt) { ids = append(ids, s.ColumnText(0)) }, model, max)
	if err != nil {
		return err
	}
	return tx.each(ids, fn)
}

// Vectors calls fn for every vector of a model whose document is as it was
// when it was put, until fn returns false. v is fn's only until it returns, and
// fn must not use the transaction.
func (tx *Tx) Vectors(model string, fn func(id string, v []float32) bool) error {
	return tx.d.vectors(model, func(id string, _ int64, v []float32) bool { return fn(id, v) })
}

func (d *db) vectors(model string, fn func(id string, row int64, v []float32) bool) error {
	s, err := d.prepared(`SELECT d.id, d.row, v.v FROM vectors v JOIN docs d ON d.id=v.id AND d.hash=v.hash WHERE v.model=? ORDER BY v.rowid`)
	if err != nil {
		return err
	}
	if err := bind(s, []any{model}); err != nil {
		return err
	}
	var buf []float32
	for s.Step() {
		raw := s.ColumnRawBlob(2)
		buf = buf[:0]
		for i := 0; i+4 <= len(raw); i += 4 {
			buf = append(buf, math.Float32frombits(binary.LittleEndian.Uint32(raw[i:])))
		}
		if !fn(s.ColumnText(0), s.ColumnInt64(1), buf) {
			break
		}
	}
	err = s.Err()
	if rerr := s.Reset(); err == nil {
		err = rerr
	}
	return err
}
