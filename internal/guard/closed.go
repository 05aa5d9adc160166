package guard

// closed judges a word against the directories that are closed whoever asks; it
// reports whether something was found.
func (a *analysis) closed(w word, u use, st *state) bool {
	return false
}
