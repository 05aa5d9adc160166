package recall

import (
	"strings"

	"reprise/internal/recall/lexicon"
)

const (
	aliasAmong = 40 // documents with a word that are looked at for what it is called
	maxAliases = 6
	aliasWorth = 0.85
)

// alias is another word for one of a question's: Farid for Amira's grandfather, and the
// other way round.
type alias struct {
	of   string // the question's word, stemmed
	term string
}

// aliases are what the memory calls the people and things that a question names by what
// they are ("my sister Ines", "a cluster called phoenix"), and what those are that it
// names by name. Who talks is known by the author.
func (r *ranking) aliases() []alias {
	var out []alias
	for i := range r.q.concepts {
		c := &r.q.concepts[i]
		if c.name || c.part || c.stop || !c.proper && !lexicon.Role(c.text) {
			continue
		}
		looked := 0
		for _, d := range r.docs {
			if !d.filled || d.sat[i] < 0.9 {
				continue
			}
			if looked++; looked > aliasAmong || len(out) == maxAliases {
				break
			}
			for _, a := range r.called(d.Text, c) {
				if !has(out, a) {
					out = append(out, a)
				}
			}
		}
	}
	return out
}

func has(as []alias, a alias) bool {
	for _, b := range as {
		if a == b {
			return true
		}
	}
	return false
}

// called finds a name beside a role: "my sister Ines", "Grandpa Farid", "the cat, Pixel",
// "a colleague called Mireille".
func (r *ranking) called(text string, c *concept) []alias {
	var out []alias
	var role, joined string // the role that stands right before, and what comes between
	end := 0
	lexicon.Words(text, func(w lexicon.Word) bool {
		if w.Part {
			return true
		}
		if w.Start < end { // the next pair of a script without spaces
			role, joined, end = "", "", w.End
			return true
		}
		between := text[end:w.Start]
		word := text[w.Start:w.End]
		end = w.End
		switch {
		case strings.ContainsAny(between, ".!?:;\n("):
			role, joined = "", ""
		case role != "" && joined == "" && (word == "called" || word == "named" || word == "is"):
			joined = word
			return true
		case role != "" && word[0] >= 'A' && word[0] <= 'Z' && len(word) > 2 && !r.talks(w.Term) && !lexicon.Role(w.Term) && lexicon.MonthOf(strings.ToLower(word)) == 0:
			switch c.text {
			case role:
				out = append(out, alias{c.text, w.Term})
			case w.Term:
				out = append(out, alias{c.text, role})
			}
		}
		role, joined = "", ""
		if lexicon.Role(w.Term) {
			role = w.Term
		}
		return true
	})
	return out
}

// talks says that a word is in the name of an author of what was found.
func (r *ranking) talks(term string) bool {
	if r.authors == nil {
		r.authors = map[string]bool{}
		for _, d := range r.docs {
			if d.Author != "" {
				lexicon.Words(d.Author, func(w lexicon.Word) bool { r.authors[w.Term] = true; return true })
			}
		}
	}
	return r.authors[term]
}
