package recall

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"reprise/internal/recall/lexicon"
)

// concept is one thing that a question asks for: a word of it, and the words
// that stand for it.
type concept struct {
	terms []conceptTerm
	gain  float64 // what a full match adds to a score
	name  bool    // of a person who is an author
	known bool    // the question's own word occurs somewhere
	stop  bool
	part  bool
	light bool // a word that questions are framed in
	// proper: written as the name of something.
	proper bool
	text   string
}

type conceptTerm struct {
	at     int // index in asked.terms, and so in candidate.tf
	weight float64
}

// cue is the kind of thing that a question asks for.
type cue uint8

const (
	cueNone cue = iota
	cueWhen
	cueCount
	cueWhere
	cueWho
	cueWhy
)

// understood is what a ranking knows of its question.
type understood struct {
	concepts []concept
	names    []string        // words by which the question names authors
	authors  map[string]bool // those looked at, and whether it names them
	total    float64         // the gains that a full match would have
	cue      cue
	dates    []lexicon.Span
	words    []string // stems in order, without stop words, for phrases
	states   []stating
}

// stating is an attribute that a question asks for by name: a document that states
// it has what these concepts ask for, in whatever words.
type stating struct {
	attributes []string
	concepts   []int
}

func understand(a *asked, w weights, cands []*candidate) understood {
	u := understood{authors: map[string]bool{}}
	at := map[string]int{}
	for i, t := range a.terms {
		at[t.text] = i
	}
	isAuthor := a.talkers(cands)
	want, kinds := wantedOf(a.Text, w, a.also)
	telling := false
	for _, x := range want {
		telling = telling || !x.stop
	}
	index := map[int]int{}
	for _, x := range want {
		if x.stop && telling {
			continue
		}
		k, ok := index[x.concept]
		if !ok {
			k = len(u.concepts)
			index[x.concept] = k
			u.concepts = append(u.concepts, concept{text: x.text, stop: x.stop, part: x.part, light: x.light, proper: x.proper})
		}
		c := &u.concepts[k]
		i, known := at[x.text]
		own := x.text == c.text
		if own {
			df := int64(0)
			if known {
				df = a.terms[i].df
			}
			c.known = known
			at := -1
			if known {
				at = i
			}
			c.gain = a.gain(at, df, w[weightLocal]) * x.weight
			if known && (isAuthor[i] == spoken || isAuthor[i] == written && x.proper) {
				c.name = true
				c.gain *= w[weightNameInText]
				u.names = append(u.names, x.text)
			}
			u.words = append(u.words, x.text)
		}
		if known {
			c.terms = append(c.terms, conceptTerm{at: i, weight: x.weight})
			if own {
				c.terms[len(c.terms)-1].weight = 1
			}
		}
	}
	for i := range u.concepts {
		c := &u.concepts[i]
		if !c.known && len(c.terms) > 0 {
			// The word is unheard of, but words near it are not: it is as
			// rare as the commonest of them, no rarer.
			df := int64(0)
			for _, t := range c.terms {
				df = max(df, a.terms[t.at].df)
			}
			c.gain = idfOf(df, max(a.corpus.docs, 1))
		}
		if !c.name {
			u.total += c.gain
		}
	}
	for _, k := range kinds {
		if len(k.Attributes) == 0 {
			continue
		}
		s := stating{attributes: k.Attributes}
		for i, c := range u.concepts {
			if slices.Contains(k.Words, c.text) {
				s.concepts = append(s.concepts, i)
			}
		}
		u.states = append(u.states, s)
	}
	u.cue = cueOf(a.Text)
	u.dates = lexicon.DatesOf(a.Text, a.now)
	return u
}

// A word of a question, as the name of who said something.
const (
	nobody  = iota
	written // it is a name, and is said more often than it has said something: it is meant where it is written as a name is
	spoken  // it is a name before all else
)

// talkers says of each word of a question whether it names an author of what was found. Agents
// have names like loop-tests or docs, and who asks for tests or docs does not ask what these
// have said: of such a name no part counts, and a word that is mostly found elsewhere counts only
// where it is written as a name.
func (a *asked) talkers(cands []*candidate) []int {
	list := make([]int, len(a.terms))
	names := map[string]bool{}
	said := make([]int, len(a.terms)) // how often in what was said, less how often who said it
	for _, c := range cands {
		for i := range min(len(c.tf), len(list)) {
			if c.tf[i][fieldText] > 0 || c.tf[i][fieldTitle] > 0 {
				said[i]++
			}
			if c.tf[i][fieldAuthor] > 0 {
				names[c.Author] = true
				said[i]--
			}
		}
	}
	for name := range names {
		for term, joined := range namesOf(name) {
			i := slices.IndexFunc(a.terms, func(t queryTerm) bool { return t.text == term })
			switch {
			case i < 0:
			case joined || said[i] < 0 || term[0] >= utf8.RuneSelf: // in which no name is written otherwise
				list[i] = spoken
			default:
				list[i] = max(list[i], written)
			}
		}
	}
	return list
}

// namesOf are the words, as they are indexed, by each of which an author is called: Caroline
// or Smith, and loop-tests, but neither loop nor tests. joined is one of several parts.
func namesOf(author string) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		for name := range strings.FieldsFuncSeq(author, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(":/@,;()", r) }) {
			var whole lexicon.Word
			lexicon.Words(name, func(w lexicon.Word) bool {
				if w.End-w.Start > whole.End-whole.Start {
					whole = w
				}
				return true
			})
			if whole.Term != "" && !yield(whole.Term, whole.Part) {
				return
			}
		}
	}
}

// author reports whether a question names who said something.
func (u *understood) author(name string) bool {
	if len(u.names) == 0 || name == "" {
		return false
	}
	is, known := u.authors[name]
	if !known {
		for term := range namesOf(name) {
			is = is || slices.Contains(u.names, term)
		}
		u.authors[name] = is
	}
	return is
}

// cueOf reads the question's type off its question words.
func cueOf(text string) cue {
	t := " " + strings.ToLower(text)
	has := func(list ...string) bool {
		for _, s := range list {
			if strings.Contains(t, s) {
				return true
			}
		}
		return false
	}
	switch {
	case has(" when ", " what date", " what day", " which day", " what month", " which month", " what year", " which year", " what time", " since when", "いつ", "何時", "何日", "何月"):
		return cueWhen
	case has(" how many", " how much", " how long", " how old", " how often", " how far", " how heavy", " how big", " what percentage", " what share",
		"いくつ", "いくら", "何人", "何個", "何回", "何歳", "何キロ", "何秒", "何分", "どのくらい", "どれくらい"):
		return cueCount
	case has(" where ", " which city", " which country", " what city", " what country", " what place", "どこ"):
		return cueWhere
	case has(" who ", " whom ", " whose ", " who's ", "誰", "だれ"):
		return cueWho
	case has(" why ", " what caused", " reason ", "なぜ", "どうして", "理由", "原因"):
		return cueWhy
	}
	return cueNone
}
