package guard

import (
	"strings"

	"reprise/internal/guard/filter"
)

// sed judges a program for sed: addresses and commands that only choose, print
// and replace are fine.
func (a *analysis) sed(w word, st *state) {
	if named := a.fromNames(w, st); named || !w.known() {
		if w.origin == numbers && !named {
			// A number in a program is a line.
			w.text = strings.ReplaceAll(w.text, unknown, "1")
		} else {
			a.give("dynamic-program", Ask, w.shown(), "the program for sed is only known when it runs", "write it out")
			return
		}
	}
	what, file := filter.Sed(w.text)
	switch {
	case what == "":
	case file != "":
		a.path(word{text: file, src: w.src}, use{}, st)
		if a.r.Writes {
			a.granted = true
			return
		}
		a.give("writes", Ask, w.shown(), what, "leave it out")
	default:
		a.give("program-runs", Ask, w.shown(), what, "use a program that only prints and replaces")
	}
}

// awk judges a program for awk: filters and calculations are fine; what runs
// commands, reads other files or writes is not.
func (a *analysis) awk(w word, st *state) {
	if named := a.fromNames(w, st); named || !w.known() {
		if (w.origin == numbers || w.origin == fewWords) && !named {
			w.text = strings.ReplaceAll(w.text, unknown, "1")
		} else {
			a.give("dynamic-program", Ask, w.shown(), "the program for awk is only known when it runs", "give values by -v")
			return
		}
	}
	if what, file := filter.Awk(w.text); what != "" {
		a.path(word{text: file, src: w.src}, use{}, st)
		a.give("program-runs", Ask, w.shown(), what, "use a program that only filters and prints")
	}
}
