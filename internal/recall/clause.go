package recall

import (
	"slices"
	"strings"

	"reprise/internal/recall/lexicon"
)

const (
	maxClauses   = 3
	clauseWords  = 2 // words that say something, which a clause needs to be asked by itself
	clauseWeight = 0.9
)

// clauses are the questions that a text asks one after another, "how do we back up
// and how often are restores rehearsed?"; none where it asks one, or where one of
// them says nothing without the others.
func clauses(text string) []string {
	if len(text) > maxQuery {
		return nil
	}
	var out []string
	rest := text
	for len(out) <= maxClauses {
		i, next := clauseEnd(rest)
		if i < 0 {
			out = append(out, rest)
			break
		}
		out = append(out, rest[:i])
		rest = rest[next:]
	}
	out = slices.DeleteFunc(out, func(s string) bool { return strings.Trim(s, " ?!.,;？。、") == "" })
	if len(out) < 2 || len(out) > maxClauses {
		return nil
	}
	for i, s := range out {
		telling := 0
		lexicon.Words(s, func(w lexicon.Word) bool {
			if low := strings.ToLower(s[w.Start:w.End]); !w.Part && !lexicon.Stop(low) && !lexicon.StopDense(w.Term) && !lexicon.Generic(low) && !lexicon.Light(w.Term) {
				telling++
			}
			return true
		})
		if telling < clauseWords {
			return nil
		}
		if i > 0 {
			out[i] = s + names(out[0], s)
		}
	}
	return out
}

// clauseEnd finds where a question ends and the next one begins.
func clauseEnd(t string) (end, next int) {
	for i := 0; i < len(t); i++ {
		switch {
		case t[i] == '?':
			return i, i + 1
		case strings.HasPrefix(t[i:], "？"):
			return i, i + len("？")
		case strings.HasPrefix(t[i:], "か、"):
			return i + len("か"), i + len("か、")
		case strings.HasPrefix(t[i:], " and ") && asks(t[i+len(" and "):]):
			return i, i + len(" and ")
		case strings.HasPrefix(t[i:], "; ") && asks(t[i+len("; "):]):
			return i, i + len("; ")
		}
	}
	return -1, 0
}

// asks says that a clause begins as a question does.
func asks(t string) bool {
	word, _, _ := strings.Cut(t, " ")
	switch strings.ToLower(word) {
	case "how", "what", "which", "who", "whom", "whose", "when", "where", "why":
		return true
	}
	return false
}

// names are the names of the first clause, for one that has none: "Where did Ana go
// and who drove her?"
func names(first, clause string) string {
	of := func(s string) (out []string) {
		lexicon.Words(s, func(w lexicon.Word) bool {
			if !w.Part && proper(s, w) {
				out = append(out, s[w.Start:w.End])
			}
			return true
		})
		return out
	}
	if len(of(clause)) > 0 {
		return ""
	}
	if n := of(first); len(n) > 0 {
		return " " + strings.Join(n, " ")
	}
	return ""
}

// join takes in the order of one clause of the question: a document is as good as it
// is for the whole or for a clause, each measured by its best document.
func (r *ranking) join(p *ranking) {
	whole, part := topScore(r.docs), topScore(p.docs)
	if part <= 0 {
		return
	}
	scale := clauseWeight * max(whole, 1e-9) / part
	for _, d := range p.docs {
		score := d.score * scale
		have := r.byID[d.ID]
		if have == nil || !slices.Contains(r.docs, have) {
			have = d
			have.score, have.sat = score, make([]float64, len(r.q.concepts)) // of the whole it has nothing worth while
			r.byID[d.ID] = have
			r.docs = append(r.docs, have)
		}
		have.score = max(have.score, score)
		have.quality = max(have.quality, d.quality)
	}
	r.sort(func(d *scoredDoc) float64 { return d.score })
}

// topScore is the best score by words.
func topScore(docs []*scoredDoc) float64 {
	for _, d := range docs {
		if !d.exact {
			return d.score
		}
	}
	return 0
}
