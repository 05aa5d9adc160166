package lexicon

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
	n := len(s.b) - len(suffix)
	// The last letter tells most words from most suffixes.
	if n < 0 || s.b[len(s.b)-1] != suffix[len(suffix)-1] || string(s.b[n:]) != suffix {
		return false
	}
	s.n = n
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
