package recall

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"reprise/internal/fact"
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
	authors := map[string]bool{}
	for _, d := range r.docs {
		authors[strings.ToLower(d.Author)] = true
	}
	talker := func(w string) bool { return authors[w] }
	for i, d := range r.docs {
		f := lexicon.FeaturesOf(d.Text, talker)
		var s weights
		s[weightStates] = r.states(d)
		d.covered = r.covered(d)
		s[weightCoverage] = r.coverage(d)
		s[weightDate] = r.dateMatch(d)
		s[weightImportance] = d.Importance
		s[weightConfidence] = d.Confidence
		s[weightScope] = scopeRank(d.Scope)
		s[weightRecency] = r.recency(d, oldest, newest)
		s[weightSubstance] = float64(f.Content) / float64(f.Content+6)
		s[weightSpecific] = float64(f.Specific) / float64(f.Specific+1)
		if d.named && f.Self > 0 {
			s[weightSelf] = 1
		}
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
		if f.You > 0 && f.Self == 0 {
			factor *= 1 - r.w[weightYou]
		}
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

// states is how much of what a question asks for by an attribute's name a document
// says in other words ("we use pnpm" has the package manager). The document then has
// it, for all that comes after.
func (r *ranking) states(d *scoredDoc) float64 {
	got := 0.0
	for _, s := range r.q.states {
		if !slices.ContainsFunc(d.Facts, func(f fact.Fact) bool { return ofAttribute(f.Attribute, s.attributes) }) {
			continue
		}
		got = 1
		for _, i := range s.concepts {
			if d.sat[i] < 1 {
				more := (1 - d.sat[i]) * r.q.concepts[i].gain
				d.own += more
				d.base += more
				d.sat[i] = 1
			}
		}
	}
	return got
}

// ofAttribute: "default branch" says which branch it is, too.
func ofAttribute(have string, asked []string) bool {
	for _, a := range asked {
		if rest, ok := strings.CutSuffix(have, a); ok && (rest == "" || rest[len(rest)-1] == ' ') {
			return true
		}
	}
	return false
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
		sum += c.worth() * best[i]
		total += c.worth()
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

// The numbers of a logistic regression on the dev part of the own set, with
// questions of other conversations as ones that nothing answers: does the memory
// speak of what is asked at all? Scores count in units of the rarest word's worth,
// so that the size of the memory does not matter. At the standard threshold,
// fitBase leaves one in twenty of the questions of that part that nothing answers.
const (
	fitCovered = 0.7
	fitUnknown = -1.5
	fitAbsent  = -2.8
	fitScore   = 0.4
	fitMost    = 12.0 // units of score beyond which more says nothing
	fitOther   = -8.6
	fitBase    = -0.03
	fitLight   = 0.35 // a word that questions are framed in, against others
	fitHave    = 0.8  // a name that the best documents have, up to fitNames of them
	fitGone    = -1.5 // and one that they have not
	fitNames   = 2
	fitPair    = 0.5  // a pair of characters that is missing may be no word
	fitAsked   = 8    // words of a question that it is judged by
	fitAmong   = 10   // best documents that are looked at
	fitFall    = 0.35 // how fast quality falls with the score below the best one's
)

// judge sets each document's quality: how likely the question is answered at
// all, less what the document's score falls short of the best one's.
func (r *ranking) judge() {
	if len(r.docs) == 0 {
		return
	}
	best := r.docs[:min(fitAmong, len(r.docs))]
	top := r.docs[0].score
	covered, others := 0.0, 0.0
	for i, d := range best {
		covered = max(covered, d.covered)
		if !d.named {
			others = max(others, d.covered)
		}
		if i == 0 || !d.exact && r.docs[0].exact {
			top = max(top, d.score)
		}
	}
	x := fitBase + fitCovered*covered + fitUnknown*r.missing(maps.Values(r.byID)) + fitAbsent*r.missing(slices.Values(best)) +
		fitScore*min(fitMost, max(0, top)/idfOf(1, max(r.corpus.docs, 2)))
	have, gone := r.proper(best)
	x += fitHave*have + fitGone*gone
	if len(r.q.names) > 0 {
		// What is asked of one person, and was said by another, is seldom meant.
		theirs := 0.0
		for _, d := range best {
			if d.named {
				theirs = max(theirs, d.covered)
			}
		}
		x += fitOther * max(0, others-theirs)
	}
	fit := 1 / (1 + math.Exp(-x))
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

// worth is what a concept counts in the judgement whether the memory speaks of what
// is asked.
func (c *concept) worth() float64 {
	if c.light {
		return c.gain * fitLight
	}
	return c.gain
}

// proper counts the names in a question, other than of people who talk, that the best
// documents have, and those that none of them has.
func (r *ranking) proper(best []*scoredDoc) (have, gone float64) {
	for i, c := range r.q.concepts {
		if !c.proper || c.name {
			continue
		}
		most := 0.0
		for _, d := range best {
			most = max(most, min(1, d.sat[i]))
		}
		have += most
		gone += 1 - most
	}
	return min(have, fitNames), min(gone, fitNames)
}

// missing is the share of what a question asks for, people aside, that none of
// some documents has; what only a related word stands for is missing in part.
func (r *ranking) missing(docs iter.Seq[*scoredDoc]) float64 {
	have := make([]float64, len(r.q.concepts))
	for d := range docs {
		for i, s := range d.sat {
			have[i] = max(have[i], min(1, s))
		}
	}
	var asked []int
	for i, c := range r.q.concepts {
		if !c.name {
			asked = append(asked, i)
		}
	}
	// A long prompt tells of much that no memory has: what it is judged by is
	// what fits best.
	slices.SortStableFunc(asked, func(i, j int) int {
		return cmp.Compare(have[j]*r.q.concepts[j].worth(), have[i]*r.q.concepts[i].worth())
	})
	sum, total := 0.0, 0.0
	for _, i := range asked[:min(fitAsked, len(asked))] {
		gone := r.q.concepts[i].worth() * (1 - have[i])
		if r.q.concepts[i].text[0] >= utf8.RuneSelf {
			gone *= fitPair
		}
		sum += gone
		total += r.q.concepts[i].worth()
	}
	if total <= 0 {
		return 0
	}
	return sum / total
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
