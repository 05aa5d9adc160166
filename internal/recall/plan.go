package recall

import (
	"context"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/ext/fts5"

	"reprise/internal/recall/lexicon"
)

const (
	maxQuery = 8 << 10 // bytes of a question that are looked at
	maxTerms = 40      // words of a question that are used, the rarest
	// visits is how many documents a question may look at in FTS5, each about
	// 2 µs, and pool how many of them, the best by a plain BM25, the ranking
	// gets, each about 5 µs: the ranking keeps maxFilled of them.
	visits = 1000
	pool   = 160
	k1, b1 = 1.2, 0.75
)

// fieldWeight is how often a word in a field counts, for the plain BM25.
var fieldWeight = [fieldCount]float64{2.5, 1.5, 1}

// terms finds a question's words in the index, the rarest first.
func (d *db) terms(text string, w weights, also []alias) ([]queryTerm, error) {
	if len(text) > maxQuery {
		text = text[:maxQuery]
	}
	text = strings.ToValidUTF8(text, " ")
	var all []queryTerm
	at := map[string]int{}
	telling := false
	want, _ := wantedOf(text, w, also)
	for _, x := range want {
		if i, ok := at[x.text]; ok { // related to two words of the question
			all[i].weight = max(all[i].weight, x.weight)
			continue
		}
		at[x.text] = len(all)
		all = append(all, queryTerm{text: x.text, stop: x.stop, weight: x.weight, own: x.own})
		telling = telling || !x.stop
	}
	var out []queryTerm
	for _, t := range all {
		if t.stop && telling {
			continue // "to be or not to be" has nothing else
		}
		df, err := d.df(t.text)
		if err != nil {
			return nil, err
		}
		if t.df = df; df > 0 {
			out = append(out, t)
		}
	}
	sortTerms(out)
	if len(out) > maxTerms { // the question's own words go first
		slices.SortStableFunc(out, func(a, b queryTerm) int { return btoi(b.own) - btoi(a.own) })
		out = out[:maxTerms]
		sortTerms(out)
	}
	return out, nil
}

// sortTerms sorts the rarest first. A related word is as if it were so much
// commoner: the question's own words choose the documents first.
func sortTerms(ts []queryTerm) {
	sort.Slice(ts, func(i, j int) bool {
		x, y := float64(ts[i].df)/(ts[i].weight*ts[i].weight), float64(ts[j].df)/(ts[j].weight*ts[j].weight)
		if x != y {
			return x < y
		}
		return ts[i].text < ts[j].text
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (d *db) df(term string) (int64, error) {
	return d.number(`SELECT df FROM terms WHERE term=?`, term)
}

// sight is what a reader may see, in the forms in which it is checked.
type sight struct {
	Reader
	classes []Class
	asOf    time.Time // zero = now
	now     time.Time

	classBits uint32          // by classCode
	audiences []string        // nil = all
	codes     map[int64]bool  // audienceCode of audiences
	acl       map[string]bool // entries that name the reader
	open      bool            // with All: only what everyone in its scope may see
	notOwn    bool
}

func newSight(q Question, now time.Time) *sight {
	v := &sight{Reader: q.Reader, classes: q.Classes, asOf: q.AsOf, now: now, notOwn: q.NotOwn}
	if !q.AsOf.IsZero() {
		v.now = q.AsOf
	}
	v.classBits = ^uint32(1 << 2) // what stands in the index is in the blocks, too
	if len(q.Classes) > 0 {
		v.classBits = 0
		for _, c := range q.Classes {
			v.classBits |= 1 << classCode(c)
		}
	}
	if q.All {
		return v
	}
	v.acl = map[string]bool{"*": true}
	for _, a := range [...][2]string{{"agent:", q.Agent}, {"agent:", q.Keeps}, {"role:", q.Role}, {"client:", q.Reader.Client}} {
		if a[1] != "" {
			v.acl[a[0]+a[1]] = true
		}
	}
	if q.Wide {
		return v
	}
	v.audiences = append(v.audiences, audience(scopeGlobal, "", ""))
	if q.Project != "" {
		v.audiences = append(v.audiences, audience(scopeProject, q.Project, ""))
	}
	for _, p := range q.Places {
		v.audiences = append(v.audiences, audience(scopeProject, p, ""))
	}
	if q.Reader.Session != "" {
		v.audiences = append(v.audiences, audience(scopeSession, "", q.Reader.Session))
	}
	v.codes = map[int64]bool{}
	for _, a := range v.audiences {
		v.codes[audienceCode(a)] = true
	}
	return v
}

// maybe says by a row's number whether the document could be one to serve.
func (v *sight) maybe(row int64) bool {
	if v.classBits>>(row>>classShift&(1<<classBits-1))&1 == 0 {
		return false
	}
	if v.asOf.IsZero() && row>>statusShift&(1<<statusBits-1) == 1 {
		return false // superseded
	}
	return v.codes == nil || v.codes[row>>visShift&(1<<visBits-1)]
}

// permits says whether the reader may see a document at all.
func (v *sight) permits(d *Doc) bool {
	if v.open {
		return d.Scope != scopeSession && (len(d.ACL) == 0 || slices.Contains(d.ACL, "*"))
	}
	if v.All {
		return true
	}
	if v.Wide {
		if d.Scope == scopeSession && (d.Session == "" || d.Session != v.Reader.Session) {
			return false
		}
	} else if !slices.Contains(v.audiences, audience(d.Scope, d.Project, d.Session)) {
		return false
	}
	if d.Scope == scopeSession && d.Project != "" && v.Reader.Project != "" && d.Project != v.Reader.Project {
		return false
	}
	return len(d.ACL) == 0 || slices.ContainsFunc(d.ACL, func(a string) bool { return v.acl[a] })
}

// serves says whether a document is one to answer with: one that the reader may
// see, of a class that was asked for, known and true at the time.
func (v *sight) serves(d *Doc) bool {
	if len(v.classes) > 0 {
		if !slices.Contains(v.classes, d.Class) {
			return false
		}
	} else if d.Class == ClassIndex {
		return false
	}
	if v.notOwn && v.own(d) {
		return false
	}
	if !v.asOf.IsZero() && d.Time.After(v.asOf) || !d.Until.IsZero() && !d.Until.After(v.now) {
		return false
	}
	switch d.Status {
	case Active:
	case Superseded: // it was true once, which a question about then finds
		if v.asOf.IsZero() || d.Until.IsZero() {
			return false
		}
	case Candidate:
		if v.open || !v.All && (d.Session == "" || d.Session != v.Reader.Session) {
			return false
		}
	default:
		return false
	}
	return v.permits(d)
}

// bound is the row number below which everything known at the time is, and some
// of the day that follows.
func (v *sight) bound() int64 {
	if v.asOf.IsZero() {
		return math.MaxInt64
	}
	return (minuteOf(v.asOf) + spread + 1) << timeShift
}

// narrowing is an FTS5 expression that leaves only what the reader may see and
// asked for, as far as that is worth while: where it leaves less than a quarter.
// It returns the share of all documents that is left, too.
func (d *db) narrowing(v *sight) (exprs []string, share float64, err error) {
	if share, err = d.shareUntil(v.asOf); err != nil {
		return nil, 0, err
	}
	group := func(words []string) error {
		n := int64(0)
		for _, w := range words {
			df, err := d.df(w)
			if err != nil {
				return err
			}
			n += df
		}
		if s := float64(n) / float64(d.corpus.docs); s < 0.25 {
			exprs = append(exprs, quoted(words, " OR "))
			share *= s
		}
		return nil
	}
	if v.audiences != nil {
		var ws []string
		for _, a := range v.audiences {
			ws = append(ws, audienceWord(a))
		}
		if err := group(ws); err != nil {
			return nil, 0, err
		}
	}
	if v.acl != nil {
		ws := []string{aclWord("*")}
		for _, a := range sortedKeys(v.acl) {
			if a != "*" {
				ws = append(ws, aclWord(a))
			}
		}
		if err := group(ws); err != nil {
			return nil, 0, err
		}
	}
	if len(v.classes) > 0 {
		var ws []string
		for _, c := range v.classes {
			ws = append(ws, classWord(c))
		}
		if err := group(ws); err != nil {
			return nil, 0, err
		}
	}
	return exprs, share, nil
}

// shareUntil is the share of documents that are of the day of a time or before.
func (d *db) shareUntil(t time.Time) (float64, error) {
	if t.IsZero() {
		return 1, nil
	}
	n, err := d.number(`SELECT sum(n) FROM days WHERE day<=?`, minuteOf(t)/(24*60))
	return float64(n) / float64(d.corpus.docs), err
}

func quoted(words []string, with string) string { return `"` + strings.Join(words, `"`+with+`"`) + `"` }

// found is a document that FTS5 found.
type found struct {
	row   int64
	score float64
	tf    [][fieldCount]uint8
}

// match plans a question: the words that say most choose the documents, and
// commoner ones are counted in these, as far as that is quick. Where there are
// only common words, see matchCommon. complete says that all documents with any
// of the words were found.
func (d *db) match(terms []queryTerm, v *sight) (hits []found, complete bool, err error) {
	if len(terms) == 0 || d.corpus.docs == 0 {
		return nil, true, nil
	}
	narrow, share, err := d.narrowing(v)
	if err != nil {
		return nil, false, err
	}
	n, sum := 0, 0.0
	for n < len(terms) && sum+float64(terms[n].df)*share <= visits {
		sum += float64(terms[n].df) * share
		n++
	}
	p := &scanPlan{terms: terms, narrow: narrow, v: v, most: math.MaxInt}
	if n == 0 {
		hits, err = d.matchCommon(p, share)
		return hits, false, err
	}
	m, more := n, int64(0)
	for m < len(terms) && more+terms[m].df <= d.steps()/3 {
		more += terms[m].df
		m++
	}
	if m == n {
		p.or(true, upTo(n))
	} else { // both groups hold for the same documents; the second one counts
		p.or(false, upTo(n))
		p.or(true, upTo(m))
	}
	hits, err = d.scan(p)
	return hits, n == len(terms), err
}

// steps is how many postings a question may go through, about 0.1 µs each.
func (d *db) steps() int64 { return max(30_000, d.corpus.docs/5) }

// matchCommon finds documents by words that each of too many have: those that
// have one of the two rarest words and another one, the newest first. Where
// these are too many still, those that have three words come before them. The
// work is bound by leaving out the oldest documents.
func (d *db) matchCommon(p *scanPlan, share float64) ([]found, error) {
	terms := p.terms[:min(len(p.terms), 6)]
	m := len(terms)
	// If words were independent, so many documents had the first and another.
	pairs := 0.0
	for _, t := range terms[1:] {
		pairs += float64(terms[0].df) * float64(t.df) / float64(d.corpus.docs) * share
	}
	var chains [][]int // each: all of them but the last number, and one from there on
	if pairs > visits && m > 2 {
		chains = append(chains, []int{0, 1, 2})
		if m > 3 {
			chains = append(chains, []int{0, 2, 3}, []int{1, 2, 3})
		}
	}
	if m > 1 {
		chains = append(chains, []int{0, 1})
	}
	if m > 2 {
		chains = append(chains, []int{1, 2})
	}
	chains = append(chains, []int{0}) // any of them
	var all []found
	seen := map[int64]bool{}
	left := float64(d.steps())
	for i, c := range chains {
		if len(all) >= visits || i == len(chains)-1 && len(all) >= pool/4 {
			break
		}
		q := &scanPlan{terms: p.terms, narrow: p.narrow, v: p.v, most: visits - len(all), seen: seen}
		cost := 0.0
		last := c[len(c)-1]
		for _, t := range c[:len(c)-1] {
			q.or(true, []int{t})
			cost += float64(terms[t].df)
		}
		if len(c) == 1 {
			q.or(true, upTo(m))
			q.most = pool - len(all)
			cost = pool // it stops soon
		} else {
			q.or(true, upTo(m)[last:])
			for _, t := range terms[last:] {
				cost += float64(t.df)
			}
		}
		part := left / float64(len(chains)-i) * 2
		if part < cost {
			var err error
			if q.above, err = d.newest(part/cost*float64(d.corpus.docs), p.v.bound()); err != nil {
				return nil, err
			}
			cost = part
		}
		left = max(0, left-cost)
		got, err := d.scan(q)
		if err != nil {
			return nil, err
		}
		for _, f := range got {
			seen[f.row] = true
		}
		all = append(all, got...)
	}
	return all, nil
}

// newest is the row above which about n documents below a bound are, whole days
// of them.
func (d *db) newest(n float64, below int64) (int64, error) {
	s, err := d.prepared(`SELECT day, n FROM days WHERE day<=? ORDER BY day DESC`)
	if err != nil {
		return 0, err
	}
	if err := bind(s, []any{below >> timeShift / (24 * 60)}); err != nil {
		return 0, err
	}
	above, sum := int64(0), 0.0
	for s.Step() {
		above = s.ColumnInt64(0)*(24*60)<<timeShift - 1
		if sum += s.ColumnFloat(1); sum >= n {
			break
		}
	}
	err = s.Err()
	if rerr := s.Reset(); err == nil {
		err = rerr
	}
	return above, err
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// scanPlan is one FTS5 query: an AND of groups of words joined by OR.
type scanPlan struct {
	terms   []queryTerm
	narrow  []string
	v       *sight
	exprs   []string
	phrases []int          // the term that each phrase of exprs counts, -1 for none
	above   int64          // rows from there on
	most    int            // documents to find
	seen    map[int64]bool // rows that were found before
}

// or adds a group. A document's words are counted by the groups with count,
// each word by its first phrase that occurs.
func (p *scanPlan) or(count bool, which []int) {
	var ws []string
	for _, i := range which {
		ws = append(ws, p.terms[i].text)
		if !count {
			i = -1
		}
		p.phrases = append(p.phrases, i)
	}
	p.exprs = append(p.exprs, quoted(ws, " OR "))
}

// scorer is the state of the SQL function reprise_score for one scan.
type scorer struct {
	terms   []queryTerm
	phrases []int
	skip    int            // phrases before these
	seen    map[int64]bool // rows to leave out
	idf     []float64
	avg     float64
	tf      [][fieldCount]uint8
	v       *sight
	found   []found
	err     error
}

// score is called by SQLite for each matching document. It is BM25 with counts
// that are exact for what is in the index, so that an index that was updated
// and one that was built anew score alike.
func (d *db) score(fts fts5.Context, ctx sqlite3.Context, _ ...sqlite3.Value) {
	sc := d.scorer
	if sc == nil || sc.err != nil {
		return
	}
	row := ftsRow(fts.RowID())
	if !sc.v.maybe(row) || sc.seen[row] {
		return
	}
	n, err := fts.InstCount()
	if err != nil {
		sc.err = err
		return
	}
	at := len(sc.tf)
	for range sc.terms {
		sc.tf = append(sc.tf, [fieldCount]uint8{})
	}
	tf := sc.tf[at:len(sc.tf):len(sc.tf)]
	// One word can be several phrases; the first that occurs counts.
	first := [maxTerms]int{}
	for i := range min(n, 500) {
		phrase, col, _, err := fts.Inst(i)
		if err != nil {
			sc.err = err
			return
		}
		phrase -= sc.skip
		if phrase < 0 || phrase >= len(sc.phrases) || col >= fieldCount {
			continue
		}
		t := sc.phrases[phrase]
		if t < 0 {
			continue
		}
		if first[t] == 0 {
			first[t] = phrase + 1
		}
		if first[t] == phrase+1 && tf[t][col] < 255 {
			tf[t][col]++
		}
	}
	sc.found = append(sc.found, found{row: row, score: bm25(tf, sc.idf, unpackLength(row)/sc.avg), tf: tf})
}

// bm25 scores counts of words, in a document that is length times as long as
// the mean.
func bm25(tf [][fieldCount]uint8, idf []float64, length float64) float64 {
	norm := k1 * (1 - b1 + b1*length)
	total := 0.0
	for i, by := range tf {
		sum := 0.0
		for f, n := range by {
			sum += float64(n) * fieldWeight[f]
		}
		if sum > 0 {
			total += idf[i] * sum * (k1 + 1) / (sum + norm)
		}
	}
	return total
}

func idf(df, docs int64) float64 {
	return math.Log(1 + (float64(docs)-float64(df)+0.5)/(float64(df)+0.5))
}

func idfs(terms []queryTerm, docs int64) []float64 {
	out := make([]float64, len(terms))
	for i, t := range terms {
		out[i] = idf(t.df, docs) * t.weight
	}
	return out
}

func (c corpus) meanLength() float64 {
	if c.docs == 0 {
		return 1
	}
	return max(1, float64(c.tokens[0]+c.tokens[1]+c.tokens[2])/float64(c.docs))
}

// scan runs one FTS5 query, the newest documents first, until it has found
// enough or looked at four times as many.
func (d *db) scan(p *scanPlan) ([]found, error) {
	exprs := append(slices.Clone(p.narrow), p.exprs...)
	skip := 0
	for _, e := range p.narrow {
		skip += strings.Count(e, `"`) / 2
	}
	sc := &scorer{terms: p.terms, phrases: p.phrases, skip: skip, idf: idfs(p.terms, d.corpus.docs), avg: d.corpus.meanLength(), v: p.v, seen: p.seen}
	d.scorer = sc
	defer func() { d.scorer = nil }()
	s, err := d.prepared(`SELECT reprise_score(fts) FROM fts WHERE fts MATCH ? AND rowid > ? AND rowid < ? ORDER BY rowid`)
	if err != nil {
		return nil, err
	}
	if err := bind(s, []any{`(` + strings.Join(exprs, `) AND (`) + `)`, ftsRow(p.v.bound()), ftsRow(p.above)}); err != nil {
		return nil, err
	}
	for looked := 0; (p.most == math.MaxInt || len(sc.found) < p.most && looked < 4*p.most) && s.Step(); looked++ {
		if sc.err != nil {
			break
		}
	}
	err = s.Err()
	if rerr := s.Reset(); err == nil {
		err = rerr
	}
	if err == nil {
		err = sc.err
	}
	return sc.found, err
}

// candidates are the documents that a ranking chooses from: those that have a
// key of the question, and the best of those that have its words.
func (g *ledge) candidates(ctx context.Context) ([]*candidate, error) {
	d, a, v := g.d, g.a, g.v
	var out []*candidate
	have := map[int64]*candidate{}
	for _, k := range a.Keys {
		rows, err := d.rowsOf(`SELECT row FROM keys WHERE key=?`, k)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if have[row] != nil {
				continue
			}
			c, err := g.load(row)
			if err != nil {
				return nil, err
			}
			if c != nil {
				c.exact = true
				have[row] = c
				out = append(out, c)
			}
		}
	}
	hits, complete, err := d.match(a.terms, v)
	if err != nil {
		return nil, err
	}
	g.complete, g.counted = complete, make(map[int64][][fieldCount]uint8, len(hits))
	for _, h := range hits {
		g.counted[h.row] = h.tf
	}
	if err := g.frequencies(hits); err != nil {
		return nil, err
	}
	sort.Slice(hits, func(i, j int) bool {
		if hits[i].score != hits[j].score {
			return hits[i].score > hits[j].score
		}
		return hits[i].row > hits[j].row
	})
	left := pool
	for _, h := range hits {
		if left == 0 || ctx.Err() != nil {
			break
		}
		if have[h.row] != nil {
			continue
		}
		c := &candidate{tf: h.tf}
		ok, err := d.loadHead(h.row, c)
		if err != nil {
			return nil, err
		}
		if ok && v.serves(&c.Doc) {
			out = append(out, c)
			left--
		}
	}
	return out, ctx.Err()
}

func (d *db) rowsOf(q string, args ...any) (rows []int64, err error) {
	err = d.rows(q, func(s *sqlite3.Stmt) { rows = append(rows, s.ColumnInt64(0)) }, args...)
	return rows, err
}

func (d *db) loadHead(row int64, c *candidate) (ok bool, err error) {
	err = d.rows(`SELECT `+head+` FROM docs d WHERE d.row=?`, func(s *sqlite3.Stmt) {
		var st stored
		scanHead(s, &st)
		c.take(&st)
		ok = true
	}, row)
	return ok, err
}

func (c *candidate) take(st *stored) {
	c.Doc, c.row, c.length, c.file, c.line = st.Doc, st.row, st.length, st.file, st.line
}

// ledge is the ground beneath a ranking, made of one read transaction.
type ledge struct {
	d *db
	a *asked
	v *sight
	// counted are the words of all documents that the search found; complete
	// says that no others that the reader may see have any of the words.
	counted  map[int64][][fieldCount]uint8
	complete bool
}

// load reads a whole document; nil when it is not to be served.
func (g *ledge) load(row int64) (*candidate, error) {
	st, ok, err := g.d.one(`d.row=?`, row)
	if err != nil || !ok {
		return nil, err
	}
	return g.whole(&st), nil
}

func (g *ledge) whole(st *stored) *candidate {
	if !g.v.serves(&st.Doc) {
		return nil
	}
	c := &candidate{filled: true}
	c.take(st)
	if c.tf = g.known(st.row); c.tf == nil {
		g.count(c)
	}
	return c
}

// count counts a question's words in a document that the search did not find.
func (g *ledge) count(c *candidate) {
	c.tf = make([][fieldCount]uint8, len(g.a.terms))
	for i, text := range [fieldCount]string{c.Title, c.Author, c.Text} {
		lexicon.Words(text, func(w lexicon.Word) bool {
			for t := range g.a.terms {
				if g.a.terms[t].text == w.Term && c.tf[t][i] < 255 {
					c.tf[t][i]++
				}
			}
			return true
		})
	}
}

// known are the counts of a document's words, nil where they must be counted.
func (g *ledge) known(row int64) [][fieldCount]uint8 {
	if tf := g.counted[row]; tf != nil {
		return tf
	}
	if g.complete {
		return make([][fieldCount]uint8, len(g.a.terms))
	}
	return nil
}

func (g *ledge) around(group string, from, to int) ([]*candidate, error) {
	var out []*candidate
	err := g.d.rows(`SELECT `+head+` FROM docs d WHERE d.grp=? AND d.grp<>'' AND d.ord BETWEEN ? AND ? ORDER BY d.ord, d.id`, func(s *sqlite3.Stmt) {
		var st stored
		if scanHead(s, &st); g.v.serves(&st.Doc) {
			c := &candidate{tf: g.known(st.row)}
			c.take(&st)
			out = append(out, c)
		}
	}, group, from, to)
	for _, c := range out {
		if c.tf == nil && err == nil {
			if err = g.fill(c); err == nil {
				g.count(c)
			}
		}
	}
	return out, err
}

func (g *ledge) fill(cs ...*candidate) error {
	for _, c := range cs {
		if c.filled {
			continue
		}
		err := g.d.rows(`SELECT `+tail+` FROM texts t WHERE t.row=?`, func(s *sqlite3.Stmt) { scanTail(s, 0, &c.Doc) }, c.row)
		if err != nil {
			return err
		}
		c.filled = true
	}
	return nil
}

func (g *ledge) byID(ids ...string) ([]*candidate, error) {
	var out []*candidate
	for _, id := range ids {
		st, ok, err := g.d.one(`d.id=?`, id)
		if err != nil {
			return nil, err
		}
		if ok {
			if c := g.whole(&st); c != nil {
				out = append(out, c)
			}
		}
	}
	return out, nil
}

func (g *ledge) byFact(key string) ([]string, error) {
	var ids []string
	err := g.d.rows(`SELECT d.id FROM docs d JOIN facts k ON k.row=d.row WHERE k.key=? ORDER BY d.time, d.id`, func(s *sqlite3.Stmt) { ids = append(ids, s.ColumnText(0)) }, key)
	return ids, err
}

func (g *ledge) vectors(model string, each func(id string, v []float32)) error {
	return g.d.vectors(model, func(id string, row int64, v []float32) bool {
		if g.v.maybe(row) && row < g.v.bound() {
			each(id, v)
		}
		return true
	})
}
