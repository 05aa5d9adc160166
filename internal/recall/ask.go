package recall

import (
	"strings"

	"reprise/internal/recall/lexicon"
)

// What a question's words weigh before their rarity: a word of the question is
// one concept, and the words related to it belong to the same concept, of
// which only the best match counts.
const (
	maxConcepts = 40 // distinct words of a question that are used
	maxRelated  = 20 // related words of one concept
)

// wanted is a word that a question asks for, before it is known whether it
// occurs anywhere.
type wanted struct {
	text    string  // as it is indexed
	concept int     // words of one concept stand for one another
	weight  float64 // 1 for the question's own word, less for related ones
	stop    bool
	part    bool // of an identifier, or a character of a pair
	own     bool // the question's word itself
}

// wantedOf cuts a question into what it asks for, in the order of the
// question, each concept's own word before those related to it.
func wantedOf(text string, w weights) []wanted {
	var out []wanted
	seen := map[string]int{}
	concepts, lastEnd := 0, -1
	lexicon.Words(text, func(x lexicon.Word) bool {
		surface := strings.ToLower(text[x.Start:x.End])
		isStop := lexicon.Stop(surface) || lexicon.StopDense(x.Term) || len(x.Term) == 1 && x.Term[0] >= 'a'
		weight := 1.0
		if x.Part && x.End <= lastEnd {
			weight = w[weightPart]
		}
		if lexicon.Generic(surface) || lexicon.MonthOf(surface) > 0 || len(surface) == 4 && (strings.HasPrefix(surface, "19") || strings.HasPrefix(surface, "20")) {
			weight *= w[weightGeneric]
		}
		lastEnd = max(lastEnd, x.End)
		if i, ok := seen[x.Term]; ok {
			out[i].weight = max(out[i].weight, weight)
			return true
		}
		c := concepts
		concepts++
		seen[x.Term] = len(out)
		out = append(out, wanted{text: x.Term, concept: c, weight: weight, stop: isStop, part: x.Part, own: true})
		return concepts < maxConcepts
	})
	own := len(out)
	if w[weightRelated] <= 0 {
		return out
	}
	for i := range own {
		if out[i].stop {
			continue
		}
		n := 0
		for _, r := range lexicon.Related(out[i].text) {
			if _, ok := seen[r.Term]; ok {
				continue
			}
			if n++; n > maxRelated {
				break
			}
			weight := w[weightRelated]
			if r.Member {
				weight = w[weightMember]
			}
			out = append(out, wanted{text: r.Term, concept: out[i].concept, weight: weight * out[i].weight})
		}
	}
	return out
}
