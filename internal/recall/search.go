package recall

import (
	"context"
	"math"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/ext/fts5"
)

const (
	maxQuery   = 8 << 10 // bytes of a query that are looked at
	maxTerms   = 24      // words of a query that are used, the rarest
	candidates = 1500    // documents that a query scores at most, about
	headWeight = 2.5     // a word in the heading or file name counts as so many in the text
	k1, b1     = 1.2, 0.75
	snippetLen = 280 // characters
)

// Search brings the index up to date and returns the best sections. It uses the
// words of the query that say most: stop words are left out, rare words come
// first, and common ones are used as far as few documents match, or to narrow.
// One word of the query is enough for a match. A query without words, or with
// words that occur nowhere, has no hits; that is no error.
func (x *Index) Search(ctx context.Context, q Query) ([]Hit, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var hits []Hit
	err := x.mended(ctx, func() (err error) {
		if err = x.refresh(ctx, false); err == nil {
			hits, err = x.db.search(ctx, q)
		}
		return err
	})
	return hits, err
}

type term struct {
	text string
	df   int64
}

// plan finds the query's words in the index, the rarest first.
func (d *db) plan(text string) ([]term, error) {
	if len(text) > maxQuery {
		text = text[:maxQuery]
	}
	text = strings.ToValidUTF8(text, " ")
	var all, telling []string
	seen := map[string]bool{}
	words(text, func(w word) bool {
		if !seen[w.term] {
			seen[w.term] = true
			all = append(all, w.term)
			if !stop(strings.ToLower(text[w.start:w.end])) {
				telling = append(telling, w.term)
			}
		}
		return len(all) < 2000
	})
	if len(telling) == 0 {
		telling = all // "to be or not to be"
	}
	s, _, err := d.c.Prepare(`SELECT df FROM terms WHERE term=?`)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var out []term
	for _, t := range telling {
		if err := s.BindText(1, t); err != nil {
			return nil, err
		}
		if s.Step() {
			out = append(out, term{t, s.ColumnInt64(0)})
		}
		if err := s.Reset(); err != nil {
			return nil, err
		}
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].df != out[j].df {
			return out[i].df < out[j].df
		}
		return out[i].text < out[j].text
	})
	return out[:min(len(out), maxTerms)], nil
}

// search answers from one state of the index, so that counts, documents and
// texts belong together.
func (d *db) search(ctx context.Context, q Query) (hits []Hit, err error) {
	err = d.reading(func() error {
		if changed, err := d.foreign(); err != nil {
			return err
		} else if changed {
			if err := d.load(); err != nil {
				return err
			}
		}
		hits, err = d.answer(ctx, q)
		return err
	})
	return hits, err
}

func (d *db) answer(ctx context.Context, q Query) ([]Hit, error) {
	if q.Max <= 0 {
		q.Max = DefaultMax
	}
	q.Max = min(q.Max, MaxHits)
	if q.MaxTokens <= 0 {
		q.MaxTokens = DefaultMaxTokens
	}
	terms, err := d.plan(q.Text)
	if err != nil || len(terms) == 0 || d.docs == 0 {
		return nil, err
	}
	old := d.c.SetInterrupt(ctx)
	defer d.c.SetInterrupt(old)
	n, sum := 0, int64(0)
	for n < len(terms) && (n == 0 || sum+terms[n].df <= candidates) {
		sum += terms[n].df
		n++
	}
	var found []scored
	if terms[0].df <= candidates {
		if found, err = d.match(or(terms[:n]), terms[:n], 0); err != nil {
			return nil, err
		}
	} else {
		// Only common words: documents that have two or three of them, and if
		// those are few, a sample of those that have one.
		for m := min(3, len(terms)); m >= 1 && len(found) < q.Max; m-- {
			if found, err = d.match(and(terms[:m]), terms[:m], candidates); err != nil {
				return nil, err
			}
		}
	}
	return d.hits(ctx, q, terms, found)
}

func or(terms []term) string  { return join(terms, " OR ") }
func and(terms []term) string { return join(terms, " AND ") }

// join makes an FTS5 query. A term is letters and digits only, and quoted.
func join(terms []term, with string) string {
	parts := make([]string, len(terms))
	for i, t := range terms {
		parts[i] = `"` + t.text + `"`
	}
	return strings.Join(parts, with)
}

type scored struct {
	id    int64
	score float64
}

// scorer is the state of the SQL function reprise_score for one query.
type scorer struct {
	idf   []float64
	avg   float64
	tf    []float64
	found []scored
	err   error
}

// score is called by SQLite for each matching document. It is BM25 with counts
// that are exact for what is in the index, so that an index that was updated
// and one that was built anew score alike.
func (d *db) score(fts fts5.Context, ctx sqlite3.Context, _ ...sqlite3.Value) {
	sc := d.scorer
	if sc == nil {
		ctx.ResultFloat(0)
		return
	}
	n, err := fts.InstCount()
	if err != nil {
		sc.err = err
		ctx.ResultError(err)
		return
	}
	clear(sc.tf)
	for i := range min(n, 500) {
		phrase, col, _, err := fts.Inst(i)
		if err != nil {
			sc.err = err
			ctx.ResultError(err)
			return
		}
		if phrase >= 0 && phrase < len(sc.tf) {
			if col == 0 {
				sc.tf[phrase] += headWeight
			} else {
				sc.tf[phrase]++
			}
		}
	}
	id := fts.RowID()
	norm := k1 * (1 - b1 + b1*unpackLength(id)/sc.avg)
	total := 0.0
	for i, tf := range sc.tf {
		if tf > 0 {
			total += sc.idf[i] * tf * (k1 + 1) / (tf + norm)
		}
	}
	sc.found = append(sc.found, scored{id, total})
	ctx.ResultFloat(total)
}

func (d *db) match(query string, terms []term, limit int) ([]scored, error) {
	sc := &scorer{avg: math.Max(1, float64(d.tokens)/float64(d.docs)), tf: make([]float64, len(terms))}
	for _, t := range terms {
		sc.idf = append(sc.idf, idf(t.df, d.docs))
	}
	d.scorer = sc
	defer func() { d.scorer = nil }()
	sql := `SELECT reprise_score(docs) FROM docs WHERE docs MATCH ?`
	args := []any{query}
	if limit > 0 {
		sql += ` LIMIT ?`
		args = append(args, limit)
	}
	if err := d.run(sql, args...); err != nil {
		return nil, err
	}
	return sc.found, sc.err
}

func idf(df, docs int64) float64 {
	return math.Log(1 + (float64(docs)-float64(df)+0.5)/(float64(df)+0.5))
}

// hits fetches the best documents and fits them into the answer's budget.
func (d *db) hits(ctx context.Context, q Query, terms []term, found []scored) ([]Hit, error) {
	// Ids break ties of score until the names are known; all that tie with the
	// last one are fetched, so that the cut is made in order of name.
	sort.Slice(found, func(i, j int) bool {
		if found[i].score != found[j].score {
			return found[i].score > found[j].score
		}
		return found[i].id < found[j].id
	})
	n := min(len(found), q.Max)
	for n > 0 && n < len(found) && n < q.Max+200 && found[n].score == found[q.Max-1].score {
		n++
	}
	s, _, err := d.c.Prepare(`SELECT f.name, s.heading, s.line, s.body FROM sections s JOIN files f ON f.id=s.file WHERE s.id=?`)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var hits []Hit
	var bodies []string
	order := make([]int, 0, n)
	for _, f := range found[:n] {
		if err := s.BindInt64(1, f.id); err != nil {
			return nil, err
		}
		if s.Step() {
			order = append(order, len(hits))
			hits = append(hits, Hit{File: s.ColumnText(0), Heading: s.ColumnText(1), Line: s.ColumnInt(2), Score: math.Round(f.score*1e4) / 1e4})
			bodies = append(bodies, s.ColumnText(3))
		}
		if err := s.Reset(); err != nil {
			return nil, err
		}
	}
	sort.SliceStable(order, func(i, j int) bool {
		a, b := hits[order[i]], hits[order[j]]
		if a.Score != b.Score {
			return a.Score > b.Score
		}
		if a.File != b.File {
			return a.File < b.File
		}
		return a.Line < b.Line
	})
	want := map[string]float64{}
	for _, t := range terms {
		want[t.text] = idf(t.df, d.docs)
	}
	var out []Hit
	left := q.MaxTokens
	for _, i := range order {
		if len(out) == q.Max {
			break
		}
		h := hits[i]
		cost := (utf8.RuneCountInString(h.File)+utf8.RuneCountInString(h.Heading))/4 + 15
		room := min(snippetLen, (left-cost)*4)
		if room < 40 {
			break
		}
		h.Snippet = snippet(bodies[i], want, room)
		out = append(out, h)
		left -= cost + (utf8.RuneCountInString(h.Snippet)+3)/4
	}
	return out, ctx.Err()
}

// snippet gives the part of a text, of at most max characters, in which the
// words that are wanted weigh most, cut at words and marked where it was cut.
func snippet(text string, want map[string]float64, max int) string {
	text = strings.TrimSpace(text)
	if utf8.RuneCountInString(text) <= max {
		return text
	}
	var at []word
	words(text, func(w word) bool {
		if want[w.term] > 0 {
			at = append(at, w)
		}
		return len(at) < 500
	})
	best, from := -1.0, 0
	for i, w := range at {
		got := map[string]bool{}
		sum := 0.0
		for _, v := range at[i:] {
			if v.end-w.start > max*3/4 {
				break
			}
			if !got[v.term] {
				got[v.term] = true
				sum += want[v.term]
			} else {
				sum += want[v.term] / 8
			}
		}
		if sum > best {
			best, from = sum, w.start
		}
	}
	// Some words before the first one, from the start of its line if that is near.
	lead := from - max/5
	if nl := strings.LastIndexByte(text[:from], '\n'); nl >= lead {
		from = nl + 1
	} else if lead > 0 {
		from = lead
		for from < len(text) && !utf8.RuneStart(text[from]) {
			from++
		}
		if sp := strings.IndexAny(text[from:], " \n\t"); sp >= 0 && sp < max/5 {
			from += sp + 1
		}
	} else {
		from = 0
	}
	out, end := text[from:], false
	n := 0
	for i := range out {
		if n == max-2 {
			out = out[:i]
			if sp := strings.LastIndexAny(out, " \n\t"); sp > len(out)*2/3 {
				out = out[:sp]
			}
			end = true
			break
		}
		n++
	}
	out = strings.TrimSpace(out)
	if from > 0 {
		out = "…" + out
	}
	if end {
		out += "…"
	}
	return out
}
