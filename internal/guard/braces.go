package guard

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// maxWords is what braces may expand to.
const maxWords = 4096

// expandBraces returns the words that {a,b} stands for, nil if they are more
// than can be looked at. A sequence such as {1..9} counts as not known.
func expandBraces(w *syntax.Word) []*syntax.Word {
	w = &syntax.Word{Parts: slices.Clone(w.Parts)} // SplitBraces works in place
	if !syntax.SplitBraces(w) {
		return []*syntax.Word{w}
	}
	if braced(w.Parts) > maxBraces {
		return nil
	}
	words := []*syntax.Word{{}}
	for _, p := range w.Parts {
		alts := [][]syntax.WordPart{{p}}
		if b, ok := p.(*syntax.BraceExp); ok {
			alts = alts[:0]
			for _, e := range b.Elems {
				for _, x := range expandBraces(e) {
					alts = append(alts, x.Parts)
				}
			}
			if b.Sequence {
				alts = [][]syntax.WordPart{{b}} // one word for all of them: see sequence
			}
		}
		var next []*syntax.Word
		for _, have := range words {
			for _, alt := range alts {
				if len(next) >= maxWords {
					return nil
				}
				next = append(next, &syntax.Word{Parts: append(slices.Clone(have.Parts), alt...)})
			}
		}
		words = next
	}
	return words
}
