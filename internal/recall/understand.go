package recall

import (
	"slices"
	"strings"

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
	names    map[string]bool // stems of authors' names that the question has
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
	u := understood{names: map[string]bool{}}
	at := map[string]int{}
	for i, t := range a.terms {
		at[t.text] = i
	}
	isAuthor := make([]bool, len(a.terms))
	for _, c := range cands {
		for i := range c.tf {
			if i < len(isAuthor) && c.tf[i][fieldAuthor] > 0 {
				isAuthor[i] = true
			}
		}
	}
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
			if known && isAuthor[i] {
				c.name = true
				u.names[x.text] = true
				c.gain *= w[weightNameInText]
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

func (u *understood) author(name string) bool {
	if len(u.names) == 0 || name == "" {
		return false
	}
	found := false
	lexicon.Words(name, func(w lexicon.Word) bool {
		found = u.names[w.Term]
		return !found
	})
	return found
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
