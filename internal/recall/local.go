package recall

// frequencies counts, for each of the question's words, the documents that have
// it among those that the reader may see, where the search has found all of them.
// These are often a small part of the index, and a word that is rare in all of it
// may be what this project talks about all day.
func (g *ledge) frequencies(hits []found) error {
	if !g.complete || g.v.audiences == nil {
		return nil
	}
	for _, a := range g.v.audiences {
		n, err := g.d.df(audienceWord(a))
		if err != nil {
			return err
		}
		g.a.visible += n
	}
	g.a.local = make([]int64, len(g.a.terms))
	for _, h := range hits {
		for i := range h.tf {
			if h.tf[i] != [fieldCount]uint8{} {
				g.a.local[i]++
			}
		}
	}
	return nil
}

// gain is what a word's full match is worth: its rarity, in the whole index and
// among what the reader may see.
func (a *asked) gain(term int, df int64, local float64) float64 {
	g := idfOf(df, max(a.corpus.docs, 1))
	if term < 0 || a.local == nil || a.visible == 0 {
		return g
	}
	return g*(1-local) + local*idfOf(a.local[term], max(a.visible, a.local[term]))
}
