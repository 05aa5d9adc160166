package recall

import "reprise/internal/recall/lexicon"

// Frequency is how many documents have a word, and how many there are. An
// identifier counts as a whole, whatever its parts are.
func (tx *Tx) Frequency(text string) (docs, all int, err error) {
	n := tx.d.corpus.docs
	term := ""
	lexicon.Words(text, func(w lexicon.Word) bool {
		if !w.Part {
			term = w.Term
		}
		return term == ""
	})
	if term == "" {
		return 0, int(n), nil
	}
	df, err := tx.d.df(term)
	return int(df), int(n), err
}
