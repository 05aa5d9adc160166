package recall

import (
	"math"
	"strings"
	"time"

	"reprise/internal/recall/lexicon"
)

// phrased is how many documents, the best so far, are looked at for pairs of
// words: their texts have to be cut into words anew.
const phrased = 40

// second scores what the texts say beyond their words' counts. Each signal is
// in [0,1] and raises the score by its weight's share, so that none of them
// can make a match of what does not match.
func (r *ranking) second() {
	if len(r.docs) == 0 {
		return
	}
	newest, oldest := r.docs[0].Time, r.docs[0].Time
	for _, d := range r.docs {
		if d.Time.After(newest) {
			newest = d.Time
		}
		if d.Time.Before(oldest) {
			oldest = d.Time
		}
	}
	for i, d := range r.docs {
		f := lexicon.FeaturesOf(d.Text)
		d.covered = r.covered(d)
		var s weights
		s[weightCoverage] = r.coverage(d)
		s[weightDate] = r.dateMatch(d)
		s[weightImportance] = d.Importance
		s[weightConfidence] = d.Confidence
		s[weightScope] = scopeRank(d.Scope)
		s[weightRecency] = r.recency(d, oldest, newest)
		if i < phrased {
			s[weightPhrase] = r.phrase(d)
		}
		switch r.q.cue {
		case cueWhen:
			s[weightWhen] = f.Time
		case cueCount:
			s[weightCount] = f.Number
		case cueWhere:
			s[weightWhere] = f.Place
		case cueWho:
			s[weightWho] = f.Place
		case cueWhy:
			s[weightWhy] = f.Reason
		}
		factor := 1.0
		for i := range numWeights {
			factor += r.w[i] * s[i]
		}
		factor *= 1 - r.w[weightAsks]*f.Asks
		if f.Words < 6 && !curated(d.Class) {
			factor *= 1 - r.w[weightShort]
		}
		d.score = d.base * max(factor, 0.01)
		if r.Explain {
			d.signals = map[string]float64{"words": round(d.own), "neighbours": round(d.base - d.own), "covered": round(d.covered)}
			for i, v := range s {
				if v != 0 {
					d.signals[weightTable[i].name] = round(v * r.w[i])
				}
			}
		}
	}
	r.answers()
}

func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// answers gives a share of a question's match to what was said next by
// somebody else.
func (r *ranking) answers() {
	w := r.w[weightAnswer]
	if w == 0 {
		return
	}
	type add struct {
		d *scoredDoc
		v float64
	}
	var adds []add
	for _, docs := range r.groups {
		for i := 1; i < len(docs); i++ {
			p, d := docs[i-1], docs[i]
			if d.Ord-p.Ord == 1 && p.Author != d.Author && p.filled && strings.HasSuffix(strings.TrimSpace(p.Text), "?") {
				adds = append(adds, add{d, w * p.own})
			}
		}
	}
	for _, a := range adds {
		a.d.score += a.v
	}
}

// coverage is the share of what the question asks for that the document has.
func (r *ranking) coverage(d *scoredDoc) float64 {
	if r.q.total <= 0 {
		return 0
	}
	sum := 0.0
	for i, c := range r.q.concepts {
		if !c.name {
			sum += c.gain * min(1, d.sat[i])
		}
	}
	return min(1, sum/r.q.total)
}

// covered is coverage with what the neighbours add.
func (r *ranking) covered(d *scoredDoc) float64 {
	best := make([]float64, len(d.sat))
	for i, s := range d.sat {
		best[i] = min(1, s)
	}
	for _, n := range r.groups[d.Group] {
		if d.Group == "" {
			break
		}
		if gap := n.Ord - d.Ord; n != d && gap >= -reach && gap <= reach {
			for i, s := range n.sat {
				best[i] = max(best[i], r.w[weightNeighbourQuality]*min(1, s))
			}
		}
	}
	sum, total := 0.0, 0.0
	for i, c := range r.q.concepts {
		if c.name {
			continue
		}
		sum += c.gain * best[i]
		total += c.gain
	}
	if total == 0 { // nothing but names
		for i, c := range r.q.concepts {
			sum += c.gain * best[i]
			total += c.gain
		}
	}
	if total == 0 {
		return 0
	}
	return min(1, sum/total)
}

// The numbers of a logistic regression on the dev part of the own set, with the
// questions of other sets as ones that nothing answers: does the memory speak of
// what is asked at all? Scores count in units of the rarest word's worth, so
// that the size of the memory does not matter.
const (
	fitCovered = 2.4
	fitUnknown = -2.0
	fitScore   = 1.7
	fitMost    = 3.6 // units of score beyond which more says nothing
	fitBase    = -3.8
	fitAmong   = 10   // best documents that are looked at
	fitFall    = 0.35 // how fast quality falls with the score below the best one's
)

// judge sets each document's quality: how likely the question is answered at
// all, less what the document's score falls short of the best one's.
func (r *ranking) judge() {
	if len(r.docs) == 0 {
		return
	}
	top := r.docs[0].score
	known := make([]bool, len(r.q.concepts))
	for _, d := range r.byID {
		for i, s := range d.sat {
			known[i] = known[i] || s > 0
		}
	}
	unknown, total := 0.0, 0.0
	for i, c := range r.q.concepts {
		if c.name {
			continue
		}
		total += c.gain
		if !known[i] {
			unknown += c.gain
		}
	}
	covered := 0.0
	for i, d := range r.docs[:min(fitAmong, len(r.docs))] {
		covered = max(covered, d.covered)
		if i == 0 || !d.exact && r.docs[0].exact {
			top = max(top, d.score)
		}
	}
	if total > 0 {
		unknown /= total
	}
	units := min(fitMost, max(0, top)/idfOf(1, max(r.corpus.docs, 2)))
	fit := 1 / (1 + math.Exp(-(fitCovered*covered + fitUnknown*unknown + fitScore*units + fitBase)))
	for _, d := range r.docs {
		switch {
		case d.exact:
			d.quality = 1
		case d.score > 0 && top > 0:
			d.quality = fit * math.Pow(min(1, d.score/top), fitFall)
		}
		if d.signals != nil {
			d.signals["quality"] = round(d.quality)
		}
	}
}

// phrase is the share of the question's pairs of neighbouring words that stand
// together in the document, too.
func (r *ranking) phrase(d *scoredDoc) float64 {
	if len(r.q.words) < 2 || r.w[weightPhrase] == 0 {
		return 0
	}
	pairs := map[[2]string]bool{}
	for i := 1; i < len(r.q.words); i++ {
		pairs[[2]string{r.q.words[i-1], r.q.words[i]}] = false
	}
	prev, prev2 := "", ""
	got := 0
	lexicon.Words(d.Title+"\n"+d.Text, func(w lexicon.Word) bool {
		if w.Part {
			return true
		}
		for _, p := range []string{prev, prev2} {
			if done, ok := pairs[[2]string{p, w.Term}]; ok && !done {
				pairs[[2]string{p, w.Term}] = true
				got++
			}
		}
		prev2, prev = prev, w.Term
		return got < len(pairs)
	})
	return min(1, float64(got)/float64(min(3, len(pairs))))
}

// dateMatch is how near a document lies to a date that the question names, by
// when it was made or by what its text says.
func (r *ranking) dateMatch(d *scoredDoc) float64 {
	if len(r.q.dates) == 0 || r.w[weightDate] == 0 {
		return 0
	}
	best := 0.0
	said := lexicon.DatesOf(d.Text, d.Time)
	for _, q := range r.q.dates {
		best = max(best, q.Nearness(d.Time))
		for _, s := range said {
			if q.Overlaps(s) && s.To.Sub(s.From) < 60*24*time.Hour {
				best = max(best, 1)
			}
		}
	}
	return best
}

func (r *ranking) recency(d *scoredDoc, oldest, newest time.Time) float64 {
	if d.Time.IsZero() || !newest.After(oldest) {
		return 0
	}
	return float64(d.Time.Sub(oldest)) / float64(newest.Sub(oldest))
}

func scopeRank(scope string) float64 {
	switch scope {
	case "session":
		return 1
	case "project":
		return 0.6
	}
	return 0
}
