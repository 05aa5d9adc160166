package recall

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"reprise/internal/fact"
	"reprise/internal/recall/lexicon"
)

// maxText is how many bytes of a document's text are kept and searched.
const maxText = 64 << 10

// entry is a document as it goes into the index.
type entry struct {
	Doc
	file   int64 // 0 = no file's section
	line   int
	cols   [fieldCount]string // stemmed words
	extra  string             // words of the column f
	terms  []string           // all words, in any order and as often as they occur
	length [fieldCount]int
	hash   int64 // of what is searched
}

func makeEntry(d Doc, file int64, line int) (*entry, error) {
	if d.ID == "" {
		return nil, errors.New("put a document: it has no id")
	}
	normalise(&d)
	e := &entry{Doc: d, file: file, line: line, terms: make([]string, 0, 8+len(d.Text)/6)}
	for i, text := range [fieldCount]string{d.Title, d.Author, d.Text} {
		e.cols[i] = e.stemmed(i, text)
	}
	extra := append([]string{audienceWord(audience(d.Scope, d.Project, d.Session)), classWord(d.Class)}, aclWords(d.ACL)...)
	e.terms = append(e.terms, extra...)
	e.extra = strings.Join(extra, " ")
	e.hash = textHash(d.Title, d.Author, d.Text)
	return e, nil
}

func textHash(title, author, text string) int64 {
	return int64(hash64(title+"\x00"+author+"\x00"+text) >> 1)
}

func aclWords(acl []string) []string {
	if len(acl) == 0 {
		return []string{aclWord("*")}
	}
	var out []string
	for _, a := range acl {
		if w := aclWord(a); !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// normalise makes two documents that mean the same equal.
func normalise(d *Doc) {
	if d.Scope == "" {
		if d.Scope = scopeGlobal; d.Project != "" {
			d.Scope = scopeProject
		}
	}
	if len(d.Text) > maxText {
		d.Text = strings.ToValidUTF8(d.Text[:maxText], "")
	}
	d.Time, d.Until, d.Review = fromNano(toNano(d.Time)), fromNano(toNano(d.Until)), fromNano(toNano(d.Review))
	d.Importance, d.Confidence = unit(d.Importance), unit(d.Confidence)
	if len(d.ACL) == 0 {
		d.ACL = nil
	}
	d.Keys = slices.Compact(slices.Sorted(slices.Values(d.Keys)))
	d.Keys = slices.DeleteFunc(d.Keys, func(k string) bool { return k == "" })
	if len(d.Keys) == 0 {
		d.Keys = nil
	}
	if len(d.Facts) == 0 {
		d.Facts = nil
	}
	if len(d.Data) == 0 {
		d.Data = nil
	}
}

func unit(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return min(max(x, 0), 1)
}

func toNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	if y := t.Year(); y < 1970 || y > 2261 {
		return 1 // out of what is kept: long ago, and not "none"
	}
	return t.UnixNano()
}

func fromNano(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

func (e *entry) stemmed(field int, text string) string {
	var b strings.Builder
	b.Grow(len(text) + 8)
	lexicon.Words(text, func(w lexicon.Word) bool {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.Term)
		e.terms = append(e.terms, w.Term)
		e.length[field]++
		return true
	})
	return b.String()
}

func (e *entry) words() int { return e.length[0] + e.length[1] + e.length[2] }

func list(v []string) string {
	if len(v) == 0 {
		return ""
	}
	b, _ := json.Marshal(v)
	return string(b)
}

func unlist(s string) (v []string) {
	if s != "" {
		_ = json.Unmarshal([]byte(s), &v)
	}
	return v
}

func facts(v []fact.Fact) string {
	if len(v) == 0 {
		return ""
	}
	b, _ := json.Marshal(v)
	return string(b)
}

func unfacts(s string) (v []fact.Fact) {
	if s != "" {
		_ = json.Unmarshal([]byte(s), &v)
	}
	return v
}

// head are the columns of a document that a ranking needs, in the order in
// which scanHead reads them; tail are the others.
const (
	head = `d.row, d.id, d.class, d.scope, d.project, d.session, d.client, d.author, d.acl, d.source, d.title, d.grp, d.ord, d.time, d.until, d.review, d.status, d.importance, d.confidence, d.tier, d.lt, d.la, d.lb, d.file, d.line, d.hash`
	tail = `t.keys, t.facts, t.text, t.data`

	headColumns = 26

	// both is where they stand.
	both = ` FROM docs d JOIN texts t ON t.row=d.row `
)

// stored is a document as it is in the index.
type stored struct {
	Doc
	row    int64
	length [fieldCount]int
	file   int64
	line   int
	hash   int64
}

func scanHead(s *sqlite3.Stmt, d *stored) {
	d.row = s.ColumnInt64(0)
	d.ID = s.ColumnText(1)
	d.Class = Class(s.ColumnText(2))
	d.Scope, d.Project, d.Session, d.Client, d.Author = s.ColumnText(3), s.ColumnText(4), s.ColumnText(5), s.ColumnText(6), s.ColumnText(7)
	d.ACL = unlist(s.ColumnText(8))
	d.Source, d.Title, d.Group, d.Ord = s.ColumnText(9), s.ColumnText(10), s.ColumnText(11), s.ColumnInt(12)
	d.Time, d.Until, d.Review = fromNano(s.ColumnInt64(13)), fromNano(s.ColumnInt64(14)), fromNano(s.ColumnInt64(15))
	d.Status = Status(s.ColumnText(16))
	d.Importance, d.Confidence, d.Tier = s.ColumnFloat(17), s.ColumnFloat(18), s.ColumnText(19)
	d.length = [fieldCount]int{s.ColumnInt(20), s.ColumnInt(21), s.ColumnInt(22)}
	d.file, d.line, d.hash = s.ColumnInt64(23), s.ColumnInt(24), s.ColumnInt64(25)
}

func scanTail(s *sqlite3.Stmt, from int, d *Doc) {
	d.Keys, d.Facts, d.Text = unlist(s.ColumnText(from)), unfacts(s.ColumnText(from+1)), s.ColumnText(from+2)
	d.Data = nil
	if b := s.ColumnBlob(from+3, nil); len(b) > 0 {
		d.Data = b
	}
}

// one reads a whole document by a condition on d.
func (d *db) one(where string, args ...any) (st stored, ok bool, err error) {
	err = d.rows(`SELECT `+head+`, `+tail+both+`WHERE `+where, func(s *sqlite3.Stmt) {
		scanHead(s, &st)
		scanTail(s, headColumns, &st.Doc)
		ok = true
	}, args...)
	return st, ok, err
}

// writer changes one database within a transaction.
type writer struct {
	d     *db
	df    map[string]*tally // of each word
	delta corpus            // change of the corpus
	days  map[int64]int     // change of each day's document count
	of    map[string]int    // and of each project's
	gone  []string          // ids that were removed, maybe to be put again
	dirty bool

	pending      map[int64]*entry // whose words are not in fts yet, by row
	pendingBytes int
}

// maxPending is how many bytes of text wait to be written in order.
const maxPending = 16 << 20

func newWriter(d *db) *writer {
	return &writer{d: d, df: map[string]*tally{}, days: map[int64]int{}, of: map[string]int{}, pending: map[int64]*entry{}}
}

// tally is the change of a word's document count.
type tally struct {
	n    int
	last *entry // that was counted
}

// put adds a document or replaces the one of its id. Most are new, so that is
// what is tried first.
func (w *writer) put(e *entry) error {
	row := rowOf(&e.Doc, e.words())
	if done, err := w.tryInsert(e, row); done || err != nil {
		return err
	}
	old, ok, err := w.d.one(`d.id=?`, e.ID)
	if err != nil {
		return err
	}
	if !ok {
		return w.insert(e)
	}
	if old.file != 0 && e.file == 0 {
		return fmt.Errorf("put document %s: it comes from a file; change the file", e.ID)
	}
	if old.file == e.file && old.line == e.line && sameDoc(&old.Doc, &e.Doc) {
		return nil
	}
	const low = 1<<discShift - 1
	if old.hash == e.hash && old.row&low == row&low && minuteOf(old.Time) == minuteOf(e.Time) && old.Session == e.Session && old.Project == e.Project && slices.Equal(old.ACL, e.ACL) && old.Class == e.Class {
		return w.update(&old, e)
	}
	if err := w.remove(&old); err != nil {
		return err
	}
	return w.insert(e)
}

func sameDoc(a, b *Doc) bool {
	return a.ID == b.ID && a.Class == b.Class && a.Scope == b.Scope && a.Project == b.Project && a.Session == b.Session && a.Client == b.Client &&
		a.Author == b.Author && slices.Equal(a.ACL, b.ACL) && a.Source == b.Source && a.Title == b.Title && a.Text == b.Text &&
		a.Group == b.Group && a.Ord == b.Ord && slices.Equal(a.Keys, b.Keys) && slices.Equal(a.Facts, b.Facts) && a.Time.Equal(b.Time) &&
		a.Until.Equal(b.Until) && a.Review.Equal(b.Review) && a.Status == b.Status && a.Importance == b.Importance && a.Confidence == b.Confidence &&
		a.Tier == b.Tier && string(a.Data) == string(b.Data)
}

const insertDoc = `INSERT OR IGNORE INTO docs(row, id, file, line, class, scope, project, session, client, author, acl, source, title, grp, ord,
 time, until, review, status, importance, confidence, tier, lt, la, lb, hash)
 VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`

// insert puts a document whose id is not there, in the first row that is free.
func (w *writer) insert(e *entry) error {
	row := rowOf(&e.Doc, e.words())
	for try := 1; ; try++ {
		if done, err := w.tryInsert(e, row); done || err != nil {
			return err
		}
		if try == 100 { // only if the id, not the number, is taken
			return fmt.Errorf("put document %s: %w: its row cannot be made", e.ID, errUnusable)
		}
		row = otherRow(row, minuteOf(e.Time), e.ID, try)
	}
}

// tryInsert puts a document in a row, unless the row or the id is taken.
func (w *writer) tryInsert(e *entry, row int64) (done bool, err error) {
	err = w.d.run(insertDoc, row, e.ID, e.file, e.line, string(e.Class), e.Scope, e.Project, e.Session, e.Client, e.Author, list(e.ACL), e.Source, e.Title,
		e.Group, e.Ord, toNano(e.Time), toNano(e.Until), toNano(e.Review), string(e.Status), e.Importance, e.Confidence, e.Tier,
		e.length[0], e.length[1], e.length[2], e.hash)
	if err != nil || w.d.c.Changes() == 0 {
		return false, err
	}
	w.dirty = true
	if err := w.d.run(`INSERT INTO texts VALUES(?,?,?,?,?)`, row, list(e.Keys), facts(e.Facts), e.Text, e.Data); err != nil {
		return false, err
	}
	for _, k := range e.Keys {
		if err := w.d.run(`INSERT INTO keys VALUES(?,?)`, k, row); err != nil {
			return false, err
		}
	}
	for _, f := range e.Facts {
		if err := w.d.run(`INSERT OR IGNORE INTO facts VALUES(?,?)`, f.Key(), row); err != nil {
			return false, err
		}
	}
	w.pending[row] = e
	w.pendingBytes += len(e.Text)
	w.count(e, 1)
	if w.pendingBytes > maxPending || len(w.pending) > maxPending/200 {
		err = w.flush()
	}
	return true, err
}

// flush writes words in order of the rows of fts: FTS5 ends a segment whenever
// numbers go back.
func (w *writer) flush() error {
	for _, row := range slices.Backward(slices.Sorted(maps.Keys(w.pending))) {
		e := w.pending[row]
		if err := w.d.run(`INSERT INTO fts(rowid, t, a, b, f) VALUES(?,?,?,?,?)`, ftsRow(row), e.cols[0], e.cols[1], e.cols[2], e.extra); err != nil {
			return err
		}
	}
	clear(w.pending)
	w.pendingBytes = 0
	return nil
}

func (w *writer) count(e *entry, n int) {
	for _, t := range e.terms {
		x := w.df[t]
		if x == nil {
			x = &tally{}
			w.df[t] = x
		}
		if x.last != e {
			x.n, x.last = x.n+n, e
		}
	}
	e.terms = nil
	w.delta.docs += int64(n)
	w.days[minuteOf(e.Time)/(24*60)] += n
	if e.Project != "" {
		w.of[e.Project] += n
	}
	for i := range e.length {
		w.delta.tokens[i] += int64(n * e.length[i])
	}
}

// update changes what is not searched.
func (w *writer) update(old *stored, e *entry) error {
	w.dirty = true
	err := w.d.run(`UPDATE docs SET file=?, line=?, scope=?, client=?, source=?, grp=?, ord=?, time=?, until=?, review=?, status=?, importance=?, confidence=?, tier=? WHERE row=?`,
		e.file, e.line, e.Scope, e.Client, e.Source, e.Group, e.Ord, toNano(e.Time), toNano(e.Until), toNano(e.Review), string(e.Status), e.Importance, e.Confidence,
		e.Tier, old.row)
	if err == nil {
		err = w.d.run(`UPDATE texts SET keys=?, facts=?, data=? WHERE row=?`, list(e.Keys), facts(e.Facts), e.Data, old.row)
	}
	if err != nil {
		return err
	}
	if !slices.Equal(old.Keys, e.Keys) {
		if err := w.unlink("keys", old.Keys, old.row); err != nil {
			return err
		}
		for _, k := range e.Keys {
			if err := w.d.run(`INSERT INTO keys VALUES(?,?)`, k, old.row); err != nil {
				return err
			}
		}
	}
	if !slices.Equal(old.Facts, e.Facts) {
		if err := w.unlink("facts", factKeys(old.Facts), old.row); err != nil {
			return err
		}
		for _, k := range factKeys(e.Facts) {
			if err := w.d.run(`INSERT OR IGNORE INTO facts VALUES(?,?)`, k, old.row); err != nil {
				return err
			}
		}
	}
	return nil
}

func factKeys(fs []fact.Fact) (keys []string) {
	for _, f := range fs {
		keys = append(keys, f.Key())
	}
	return keys
}

func (w *writer) unlink(table string, keys []string, row int64) error {
	for _, k := range keys {
		if err := w.d.run(`DELETE FROM `+table+` WHERE key=? AND row=?`, k, row); err != nil {
			return err
		}
	}
	return nil
}

// remove takes a document out; vectors stay until finish, should it come back
// with the same text.
func (w *writer) remove(old *stored) error {
	w.dirty = true
	e, err := makeEntry(old.Doc, old.file, old.line)
	if err != nil {
		return err
	}
	if err := w.unlink("keys", old.Keys, old.row); err != nil {
		return err
	}
	if err := w.unlink("facts", factKeys(old.Facts), old.row); err != nil {
		return err
	}
	if _, waits := w.pending[old.row]; waits {
		delete(w.pending, old.row)
	} else if err := w.d.run(`DELETE FROM fts WHERE rowid=?`, ftsRow(old.row)); err != nil {
		return err
	}
	for _, q := range []string{`DELETE FROM docs WHERE row=?`, `DELETE FROM texts WHERE row=?`} {
		if err := w.d.run(q, old.row); err != nil {
			return err
		}
	}
	w.gone = append(w.gone, old.ID)
	w.count(e, -1)
	return nil
}

func (w *writer) delete(id string) error {
	old, ok, err := w.d.one(`d.id=?`, id)
	if err != nil || !ok {
		return err
	}
	return w.remove(&old)
}

// finish writes the counts. It is called once, before the commit.
func (w *writer) finish() error {
	if !w.dirty {
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	up := `INSERT INTO terms VALUES(?1,?2) ON CONFLICT(term) DO UPDATE SET df=df+?2`
	shrunk := false
	for _, t := range sortedKeys(w.df) {
		if n := w.df[t].n; n != 0 {
			shrunk = shrunk || n < 0
			if err := w.d.run(up, t, n); err != nil {
				return err
			}
		}
	}
	if shrunk {
		for t, x := range w.df {
			if x.n < 0 {
				if err := w.d.run(`DELETE FROM terms WHERE term=? AND df<=0`, t); err != nil {
					return err
				}
			}
		}
	}
	for day, n := range w.days {
		if err := w.d.run(`INSERT INTO days VALUES(?1,?2) ON CONFLICT(day) DO UPDATE SET n=n+?2`, day, n); err != nil {
			return err
		}
	}
	for name, n := range w.of {
		if err := w.d.run(`INSERT INTO projects VALUES(?1,?2) ON CONFLICT(name) DO UPDATE SET n=n+?2`, name, n); err != nil {
			return err
		}
	}
	for _, q := range []string{`DELETE FROM days WHERE n<=0`, `DELETE FROM projects WHERE n<=0`} {
		if err := w.d.run(q); err != nil {
			return err
		}
	}
	for k, v := range map[string]int64{"docs": w.delta.docs, "tokens0": w.delta.tokens[0], "tokens1": w.delta.tokens[1], "tokens2": w.delta.tokens[2]} {
		if err := w.d.run(`INSERT INTO meta VALUES(?1,?2) ON CONFLICT(k) DO UPDATE SET v=v+?2`, k, v); err != nil {
			return err
		}
	}
	if err := w.dropVectors(); err != nil {
		return err
	}
	w.df, w.days, w.of, w.delta, w.gone, w.dirty = map[string]*tally{}, map[int64]int{}, map[string]int{}, corpus{}, nil, false
	return nil
}

// dropVectors forgets the vectors of texts that are no more.
func (w *writer) dropVectors() error {
	if len(w.gone) == 0 {
		return nil
	}
	if n, err := w.d.number(`SELECT EXISTS(SELECT 1 FROM vectors)`); n == 0 || err != nil {
		return err
	}
	for _, id := range w.gone {
		if err := w.d.run(`DELETE FROM vectors WHERE id=?1 AND hash IS NOT (SELECT hash FROM docs WHERE id=?1)`, id); err != nil {
			return err
		}
	}
	return nil
}
