package recall

import (
	"slices"
	"strings"
	"unicode/utf8"

	"reprise/internal/recall/lexicon"
)

// What a question's words weigh before their rarity: a word of the question is
// one concept, and the words related to it belong to the same concept, of
// which only the best match counts.
const (
	maxConcepts = 40 // distinct words of a question that are used
	maxRelated  = 20 // related words of one concept
	// memberOfKind is what naming the thing is worth against naming its kind: "we use
	// pnpm" tells of the package manager, and so does a call of pnpm.
	memberOfKind = 0.85
	pairOfKind   = 0.4 // a pair of characters of a phrase that names a kind
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
	light   bool // a word that questions are framed in
	proper  bool // written as a name is
}

// wantedOf cuts a question into what it asks for, in the order of the
// question, each concept's own word before those related to it, and says which
// kinds of thing it names.
func wantedOf(text string, w weights, also []alias) ([]wanted, []lexicon.Kind) {
	var out []wanted
	var stems []string
	seen := map[string]int{}
	concepts, lastEnd := 0, -1
	lexicon.Words(text, func(x lexicon.Word) bool {
		surface := strings.ToLower(text[x.Start:x.End])
		if !x.Part {
			stems = append(stems, x.Term)
		}
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
		out = append(out, wanted{text: x.Term, concept: c, weight: weight, stop: isStop, part: x.Part, own: true,
			light: !isStop && (lexicon.Light(x.Term) || lexicon.Generic(surface)), proper: !isStop && proper(text, x)})
		return concepts < maxConcepts
	})
	own := len(out)
	if w[weightRelated] <= 0 {
		return out, nil
	}
	for i := range own {
		for _, a := range also {
			if a.of == out[i].text {
				out = append(out, wanted{text: a.term, concept: out[i].concept, weight: aliasWorth * out[i].weight})
			}
		}
	}
	kinds := lexicon.Kinds(stems)
	for _, k := range kinds {
		out = withKind(out, own, k)
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
	return out, kinds
}

// proper says that a word is written as a name is: with a capital, and not because it
// begins a sentence.
func proper(text string, w lexicon.Word) bool {
	isUpper := func(c byte) bool { return c >= 'A' && c <= 'Z' }
	for i := w.Start + 1; i < w.End; i++ {
		if isUpper(text[i]) {
			return true // iOS, OrderTable
		}
	}
	before := strings.TrimRight(text[:w.Start], " \t\"'(“‘")
	return isUpper(text[w.Start]) && before != "" && strings.IndexByte(".!?:\n", before[len(before)-1]) < 0
}

// withKind lets the members of a kind stand for the words that name it, which are
// among the first own of out. The pairs of characters of a phrase become one concept:
// each alone says nothing.
func withKind(out []wanted, own int, k lexicon.Kind) []wanted {
	first := -1
	for i := range own {
		if out[i].stop || !slices.Contains(k.Words, out[i].text) {
			continue
		}
		if out[i].text[0] >= utf8.RuneSelf {
			if first >= 0 {
				out[i].concept, out[i].own, out[i].weight = out[first].concept, false, pairOfKind
				continue
			}
			first = i
		}
		for _, m := range k.Members {
			out = append(out, wanted{text: m, concept: out[i].concept, weight: memberOfKind * out[i].weight})
		}
	}
	return out
}
