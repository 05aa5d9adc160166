package recall

import (
	"strings"
)

// What a question's words weigh before their rarity: a word of the question is
// one concept, and the words related to it belong to the same concept, of
// which only the best match counts.
const (
	maxConcepts = 40 // distinct words of a question that are used
	maxRelated  = 12 // related words of one concept
)

// wanted is a word that a question asks for, before it is known whether it
// occurs anywhere.
type wanted struct {
	text    string  // as it is indexed
	concept int     // words of one concept stand for one another
	weight  float64 // 1 for the question's own word, less for related ones
	stop    bool
	part    bool // of an identifier, or a character of a pair
}

// wantedOf cuts a question into what it asks for, in the order of the
// question, each concept's own word before those related to it.
func wantedOf(text string, w weights) []wanted {
	var out []wanted
	seen := map[string]int{}
	concepts, lastEnd := 0, -1
	words(text, func(x word) bool {
		surface := strings.ToLower(text[x.start:x.end])
		isStop := stop(surface) || stopDense(x.term) || len(x.term) == 1 && x.term[0] >= 'a'
		weight := 1.0
		if x.part && x.end <= lastEnd {
			weight = w[weightPart]
		}
		if generic(surface) || monthOf(surface) > 0 || len(surface) == 4 && (strings.HasPrefix(surface, "19") || strings.HasPrefix(surface, "20")) {
			weight *= w[weightGeneric]
		}
		lastEnd = max(lastEnd, x.end)
		if i, ok := seen[x.term]; ok {
			out[i].weight = max(out[i].weight, weight)
			return true
		}
		c := concepts
		concepts++
		seen[x.term] = len(out)
		out = append(out, wanted{text: x.term, concept: c, weight: weight, stop: isStop, part: x.part})
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
		for _, r := range related()[out[i].text] {
			if _, ok := seen[r.term]; ok {
				continue
			}
			if n++; n > maxRelated {
				break
			}
			weight := w[weightRelated]
			if r.member {
				weight = w[weightMember]
			}
			out = append(out, wanted{text: r.term, concept: out[i].concept, weight: weight * out[i].weight})
		}
	}
	return out
}
