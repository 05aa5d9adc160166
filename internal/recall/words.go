package recall

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenizerVersion goes into the index: when words are cut differently, an old
// index is of no use.
const tokenizerVersion = 1

const maxWord = 40 // bytes of a word that are kept: longer ones are hashes and data

// word is one word of a text and where it stands.
type word struct {
	term       string // stemmed
	start, end int
}

// words cuts text into stemmed words: runs of letters and digits, lower case,
// accents of Latin letters dropped. Scripts written without spaces give pairs
// of neighbouring characters.
func words(text string, yield func(word) bool) {
	var buf []byte
	start := -1
	ascii := true
	flush := func(end int) bool {
		if start < 0 {
			return true
		}
		w := string(buf)
		s := start
		start, buf = -1, buf[:0]
		if len(w) > maxWord {
			w = w[:maxWord]
			for !utf8.ValidString(w) {
				w = w[:len(w)-1]
			}
		}
		if ascii {
			w = stem(w)
		}
		ascii = true
		return yield(word{w, s, end})
	}
	prev, prevAt := rune(0), 0
	for i, r := range text {
		switch {
		case dense(r):
			if !flush(i) {
				return
			}
			next, n := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):])
			switch {
			case dense(next):
				if !yield(word{string([]rune{r, next}), i, i + utf8.RuneLen(r) + n}) {
					return
				}
			case !dense(prev) || prevAt+utf8.RuneLen(prev) != i: // a character alone
				if !yield(word{string(r), i, i + utf8.RuneLen(r)}) {
					return
				}
			}
			prev, prevAt = r, i
		case r < utf8.RuneSelf && (r >= 'a' && r <= 'z' || r >= '0' && r <= '9'):
			if start < 0 {
				start = i
			}
			buf = append(buf, byte(r))
		case r >= 'A' && r <= 'Z':
			if start < 0 {
				start = i
			}
			buf = append(buf, byte(r)+'a'-'A')
		case r >= utf8.RuneSelf && r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r)):
			if start < 0 {
				start = i
			}
			r = unicode.ToLower(r)
			if p, ok := plain(r); ok {
				buf = append(buf, p...)
			} else {
				ascii = false
				buf = utf8.AppendRune(buf, r)
			}
		case unicode.Is(unicode.Mn, r) && start >= 0: // an accent written apart
		default:
			if !flush(i) {
				return
			}
		}
	}
	flush(len(text))
}

// dense says that a script is written without spaces between words.
func dense(r rune) bool {
	return r >= 0x2e80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r >= 0x0e00 && r <= 0x0e7f && unicode.IsLetter(r)
}

const (
	accented = "àáâãäåāăąçćčďđèéêëēęěğìíîïīįıķļľłñńňòóôõöøōőŕřśşšţťùúûüūůűųýÿźžż"
	bare     = "aaaaaaaaacccddeeeeeeegiiiiiiiklllnnnooooooooorrsssttuuuuuuuuyyzzz"
)

func plain(r rune) (string, bool) {
	switch r {
	case 'ß':
		return "ss", true
	case 'æ':
		return "ae", true
	case 'œ':
		return "oe", true
	}
	if r > 0x17e {
		return "", false
	}
	n := 0
	for _, a := range accented {
		if a == r {
			return bare[n : n+1], true
		}
		n++
	}
	return "", false
}

// stopWords say nothing about what a question is about.
const stopWords = ` a about above after again all also am an and any are as at be because been before being below
between both but by can could did do does doing don down during each few for from further get got had has have
having he her here hers him his how i if in into is it its itself just let like me more most my myself no nor not
now of off on once only or other our ours out over own please same she should so some such tell than that the
their theirs them then there these they this those through to too under until up us very was we were what when
where which while who whom why will with would you your yours `

func stop(w string) bool { return strings.Contains(stopWordsFlat, " "+w+" ") }

var stopWordsFlat = strings.ReplaceAll(stopWords, "\n", " ")

// stem is Porter's algorithm ("An algorithm for suffix stripping", 1980) with
// his later departures for -bli and -logi.
func stem(w string) string {
	if len(w) <= 2 || w[0] >= '0' && w[0] <= '9' {
		return w
	}
	s := &stemmer{b: []byte(w)}
	s.plural()
	s.ending("y", "i", (*stemmer).hasVowel)
	s.list(step2, 0)
	s.list(step3, 0)
	s.step4()
	s.final()
	return string(s.b)
}

type stemmer struct {
	b []byte
	n int // length of the stem that the last suffix leaves
}

func (s *stemmer) consonant(i int) bool {
	switch s.b[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return false
	case 'y':
		return i == 0 || !s.consonant(i-1)
	}
	return true
}

// measure counts vowel-consonant sequences in the first n letters.
func (s *stemmer) measure(n int) int {
	m, i := 0, 0
	for i < n && s.consonant(i) {
		i++
	}
	for {
		for i < n && !s.consonant(i) {
			i++
		}
		if i >= n {
			return m
		}
		for i < n && s.consonant(i) {
			i++
		}
		m++
	}
}

func (s *stemmer) hasVowel(n int) bool {
	for i := range n {
		if !s.consonant(i) {
			return true
		}
	}
	return false
}

func (s *stemmer) double(n int) bool {
	return n >= 2 && s.b[n-1] == s.b[n-2] && s.consonant(n-1)
}

// cvc: consonant, vowel, consonant other than w, x, y at the end.
func (s *stemmer) cvc(n int) bool {
	if n < 3 || !s.consonant(n-3) || s.consonant(n-2) || !s.consonant(n-1) {
		return false
	}
	c := s.b[n-1]
	return c != 'w' && c != 'x' && c != 'y'
}

func (s *stemmer) has(suffix string) bool {
	if !strings.HasSuffix(string(s.b), suffix) {
		return false
	}
	s.n = len(s.b) - len(suffix)
	return true
}

func (s *stemmer) put(text string) { s.b = append(s.b[:s.n], text...) }

func (s *stemmer) ending(suffix, with string, if_ func(*stemmer, int) bool) {
	if s.has(suffix) && if_(s, s.n) {
		s.put(with)
	}
}

func (s *stemmer) plural() {
	switch {
	case s.has("sses"):
		s.put("ss")
	case s.has("ies"):
		s.put("i")
	case s.has("ss"):
	case s.has("s"):
		s.put("")
	}
	if s.has("eed") {
		if s.measure(s.n) > 0 {
			s.put("ee")
		}
		return
	}
	if !(s.has("ed") && s.hasVowel(s.n)) && !(s.has("ing") && s.hasVowel(s.n)) {
		return
	}
	s.put("")
	n := len(s.b)
	switch {
	case s.has("at"):
		s.put("ate")
	case s.has("bl"):
		s.put("ble")
	case s.has("iz"):
		s.put("ize")
	case s.double(n):
		if c := s.b[n-1]; c != 'l' && c != 's' && c != 'z' {
			s.b = s.b[:n-1]
		}
	case s.measure(n) == 1 && s.cvc(n):
		s.b = append(s.b, 'e')
	}
}

var step2 = []string{"ational", "ate", "tional", "tion", "enci", "ence", "anci", "ance", "izer", "ize", "bli", "ble", "alli", "al",
	"entli", "ent", "eli", "e", "ousli", "ous", "ization", "ize", "ation", "ate", "ator", "ate", "alism", "al", "iveness", "ive",
	"fulness", "ful", "ousness", "ous", "aliti", "al", "iviti", "ive", "biliti", "ble", "logi", "log"}

var step3 = []string{"icate", "ic", "ative", "", "alize", "al", "iciti", "ic", "ical", "ic", "ful", "", "ness", ""}

func (s *stemmer) list(pairs []string, more int) {
	for i := 0; i < len(pairs); i += 2 {
		if s.has(pairs[i]) {
			if s.measure(s.n) > more {
				s.put(pairs[i+1])
			}
			return
		}
	}
}

var step4 = []string{"ement", "ment", "ance", "ence", "able", "ible", "ant", "ent", "ion", "ism", "ate", "iti", "ous", "ive", "ize", "al", "er", "ic", "ou"}

func (s *stemmer) step4() {
	for _, suffix := range step4 {
		if !s.has(suffix) {
			continue
		}
		if suffix == "ion" && (s.n == 0 || s.b[s.n-1] != 's' && s.b[s.n-1] != 't') {
			return
		}
		if s.measure(s.n) > 1 {
			s.put("")
		}
		return
	}
}

func (s *stemmer) final() {
	if s.has("e") {
		if m := s.measure(s.n); m > 1 || m == 1 && !s.cvc(s.n) {
			s.put("")
		}
	}
	if n := len(s.b); n > 1 && s.b[n-1] == 'l' && s.double(n) && s.measure(n-1) > 1 {
		s.b = s.b[:n-1]
	}
}
