package recall

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"reprise/internal/mdfile"
	"reprise/internal/recall/lexicon"
)

// snippetLen is the most of a hit's text that is shown, in characters.
const snippetLen = 280

// Search brings the index up to date and returns what matches best, however
// weakly: whoever searches judges for themselves, while Recall, which nobody
// asked, leaves a near miss out. A query without words, or with words that occur
// nowhere, has no hits; that is no error.
func (x *Index) Search(ctx context.Context, q Query) ([]Hit, error) {
	if q.Max <= 0 {
		q.Max = DefaultMax
	}
	if q.MaxTokens <= 0 {
		q.MaxTokens = DefaultMaxTokens
	}
	a, err := x.upToDate(ctx, q.Reader, true, func(d *db) (Answer, error) { return d.recall(ctx, q.question(), x) })
	if err != nil {
		return nil, err
	}
	return q.hits(a), nil
}

// question is a query as the ranking takes it: no threshold, and no shares of
// scopes and classes.
func (q Query) question() Question {
	p := DefaultPolicy()
	p.Threshold, p.TopK, p.Budget = 0, nil, nil
	most, tokens := q.Max, q.MaxTokens
	if q.Keep != nil { // some of what is found is left out only then
		most, tokens = MaxHits, max(tokens, MaxHits*snippetLen)
	}
	return Question{Text: q.Text, Reader: q.Reader, Classes: q.Classes, Max: min(most, MaxHits), MaxTokens: tokens, Policy: &p, Explain: true}
}

// hits fits an answer into the query's budget.
func (q Query) hits(a Answer) []Hit {
	var out []Hit
	left := q.MaxTokens
	for _, r := range a.Results {
		if r.Signals["words"] == 0 && r.Signals["vectors"] == 0 {
			continue // it only stands beside what was found
		}
		if q.Keep != nil && !q.Keep(&r.Doc) {
			continue
		}
		if len(out) == q.Max {
			break
		}
		h := r.hit()
		cost := (utf8.RuneCountInString(h.File)+utf8.RuneCountInString(h.Heading))/4 + 15
		room := min(snippetLen, (left-cost)*4)
		if room < 40 {
			break
		}
		h.Snippet = snippet(r.Text, a.want, room) // not of r.Snippet: cut once more, it may lose what was found
		out = append(out, h)
		left -= cost + mdfile.Tokens(h.Snippet)
	}
	return out
}

// hit is a result as a search shows it: a section of a file by file, heading
// and line, everything else by its title.
func (r Result) hit() Hit {
	h := Hit{ID: r.ID, Class: r.Class, Project: r.Project, Heading: r.Title, Score: math.Round(r.Score*1e4) / 1e4}
	if !r.Time.IsZero() {
		h.Date = r.Time.UTC().Format(time.DateOnly)
	}
	source := strings.TrimPrefix(r.Source, r.Project+":")
	if i := strings.LastIndexByte(source, ':'); i > 0 && strings.HasSuffix(source[:i], ".md") {
		if line, err := strconv.Atoi(source[i+1:]); err == nil {
			h.File, h.Line = source[:i], line
			if _, heading, ok := strings.Cut(r.Title, " > "); ok && strings.HasPrefix(r.Group, "file:") {
				h.Heading = heading
			}
		}
	}
	return h
}

// snippet gives the part of a text, of at most max characters, in which the
// words that are wanted weigh most, cut at words and marked where it was cut.
func snippet(text string, want map[string]float64, max int) string {
	text = strings.TrimSpace(text)
	if utf8.RuneCountInString(text) <= max {
		return text
	}
	var at []lexicon.Word
	lexicon.Words(text, func(w lexicon.Word) bool {
		if want[w.Term] > 0 {
			at = append(at, w)
		}
		return len(at) < 500
	})
	best, from := -1.0, 0
	for i, w := range at {
		got := map[string]bool{}
		sum := 0.0
		for _, v := range at[i:] {
			if v.End-w.Start > max*3/4 {
				break
			}
			if !got[v.Term] {
				got[v.Term] = true
				sum += want[v.Term]
			} else {
				sum += want[v.Term] / 8
			}
		}
		if sum > best {
			best, from = sum, w.Start
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
