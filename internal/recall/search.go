package recall

import (
	"context"
	"math"
	"sort"
	"strings"
	"time"
	"unicode/utf8"
)

const snippetLen = 280 // characters

// Search brings the index up to date and returns the best sections of the
// global memory's files. It uses the words of the query that say most: stop
// words are left out, rare words come first, and common ones are used as far as
// few documents match, or to narrow. One word of the query is enough for a
// match. A query without words, or with words that occur nowhere, has no hits;
// that is no error.
func (x *Index) Search(ctx context.Context, q Query) ([]Hit, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var hits []Hit
	err := x.mended(ctx, func() error {
		if err := x.refresh(ctx, "", false, true); err != nil {
			return err
		}
		return x.db.reading(ctx, func() (err error) {
			hits, err = x.db.search(ctx, q, x.o.Now())
			return err
		})
	})
	return hits, err
}

func (d *db) search(ctx context.Context, q Query, now time.Time) ([]Hit, error) {
	if q.Max <= 0 {
		q.Max = DefaultMax
	}
	q.Max = min(q.Max, MaxHits)
	if q.MaxTokens <= 0 {
		q.MaxTokens = DefaultMaxTokens
	}
	a := &asked{now: now}
	a.Question = Question{Text: q.Text, Classes: []Class{ClassCore, ClassBlock, ClassDecision}}
	var err error
	w := weightsOf(a.policy)
	w[weightRelated], w[weightMember] = 0, 0 // only what was asked for
	if a.terms, err = d.terms(q.Text, w); err != nil || len(a.terms) == 0 {
		return nil, err
	}
	a.corpus = d.corpus
	v := newSight(a.Question, now)
	v.global = true
	found, err := (&ledge{d: d, a: a, v: v}).candidates(ctx)
	if err != nil {
		return nil, err
	}
	return d.hits(ctx, q, a, found)
}

type scoredHit struct {
	Hit
	c *candidate
}

// hits fits the best candidates into the answer's budget.
func (d *db) hits(ctx context.Context, q Query, a *asked, cs []*candidate) ([]Hit, error) {
	weight := idfs(a.terms, d.corpus.docs)
	mean := d.corpus.meanLength()
	var all []scoredHit
	for _, c := range cs {
		name := strings.TrimPrefix(c.Group, "file::")
		if name != coreFile && !strings.HasPrefix(name, "blocks/") {
			continue
		}
		_, heading, _ := strings.Cut(c.Title, " > ")
		score := bm25(c.tf, weight, float64(c.length[0]+c.length[1]+c.length[2])/mean)
		all = append(all, scoredHit{Hit{File: name, Heading: heading, Line: c.line, Score: math.Round(score*1e4) / 1e4}, c})
	}
	sort.SliceStable(all, func(i, j int) bool {
		a, b := all[i], all[j]
		if a.Score != b.Score {
			return a.Score > b.Score
		}
		if a.File != b.File {
			return a.File < b.File
		}
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.c.Ord < b.c.Ord
	})
	want := map[string]float64{}
	for i, t := range a.terms {
		want[t.text] = weight[i]
	}
	g := &ledge{d: d, a: a}
	var out []Hit
	left := q.MaxTokens
	for _, h := range all {
		if len(out) == q.Max {
			break
		}
		cost := (utf8.RuneCountInString(h.File)+utf8.RuneCountInString(h.Heading))/4 + 15
		room := min(snippetLen, (left-cost)*4)
		if room < 40 {
			break
		}
		if err := g.fill(h.c); err != nil {
			return nil, err
		}
		h.Snippet = snippet(h.c.Text, want, room)
		out = append(out, h.Hit)
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
