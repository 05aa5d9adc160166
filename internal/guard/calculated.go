package guard

import "strings"

// plainNumbers looks for words that some zsh takes for calculations where bash wants a
// number: a subscript in them runs commands.
func (a *analysis) plainNumbers(list []word) {
	for _, w := range list {
		if i := strings.IndexByte(w.text, '['); i >= 0 && strings.ContainsAny(w.text[i:], "$`") {
			a.give("data-evaluated", Ask, w.shown(), "zsh evaluates this as a calculation, and a subscript in it runs commands", "use a plain number")
		}
	}
}

// calculations judges words that zsh takes for calculations where bash wants a number:
// what they are must be known, or be a number.
func (a *analysis) calculations(list []word, st *state) {
	a.plainNumbers(list)
	for _, w := range list {
		switch {
		case w.text == "", strings.ContainsAny(w.text[:1], `'"`): // the number of a character
		case a.fromNames(w, st):
			a.give("data-evaluated", Ask, w.shown(), "zsh evaluates the name of a file as a calculation, and a subscript in it runs commands", "print it as text, with %s")
		case w.known():
			a.evaluatedNames(w.text, st)
		case w.origin == numbers && !w.named:
		default:
			a.give("data-evaluated", Ask, w.shown(), "zsh evaluates this as a calculation, and what it holds is only known when it runs", "print it as text, with %s")
		}
	}
}

// formatted judges the words that printf takes for numbers by its format. With more
// words than the format has places it begins anew.
func (a *analysis) formatted(args []word, st *state) {
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) < 2 {
		return
	}
	places, sure := conversions(args[0].text)
	if !args[0].known() || strings.HasPrefix(args[0].text, "-") {
		places, sure = "d", false
	}
	if !strings.Contains(places, "d") {
		return
	}
	for i, w := range args[1:] {
		// Several words take the places behind it, too.
		sure = sure && !w.several()
		if !sure || places[i%len(places)] == 'd' {
			a.calculations(args[i+1:i+2], st)
		}
	}
}

// widths judges the width that a format of printf has, or takes from a word.
func (a *analysis) widths(args []word) {
	takes := false
	for _, w := range args {
		if wide(w.text) || takes && len(w.text) > 7 && strings.Trim(w.text, "0123456789") == "" {
			a.give("never-ends", Ask, w.shown(), "it makes a text of so many letters: the memory of the machine fills", "write a smaller width")
		}
		takes = takes || strings.Contains(w.text, "%") && strings.Contains(w.text, "*")
	}
}

// wide reports whether a format has a width or a precision that no text needs.
func wide(format string) bool {
	run := 0
	for _, c := range format {
		if run++; c < '0' || c > '9' {
			run = 0
		}
		if run > 7 && strings.Contains(format, "%") {
			return true
		}
	}
	return false
}

// conversions are the places of a format in their order: d for a number, s for text.
// They are not sure where the format itself says which word goes where.
func conversions(format string) (places string, sure bool) {
	sure = true
	for {
		_, rest, ok := strings.Cut(format, "%")
		if !ok {
			return places, sure
		}
		end := len(rest) - len(strings.TrimLeft(rest, "0123456789-+ #'.*$hlLjzt"))
		flags := rest[:end]
		sure = sure && !strings.Contains(flags, "$")
		places += strings.Repeat("d", strings.Count(flags, "*"))
		if end == len(rest) {
			return places, sure
		}
		switch c := rest[end]; {
		case c == '%':
		case strings.IndexByte("diouxXeEfFgGaA(", c) >= 0:
			places += "d"
		default:
			places += "s"
		}
		format = rest[end+1:]
	}
}
