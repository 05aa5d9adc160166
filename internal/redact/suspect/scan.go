package suspect

import "math/bits"

// How a keyword and what is beside it make a text suspect.
const (
	after  = 'P' // the keyword is followed at once by n characters of a token
	edge   = 'E' // the same, and no word's character stands before the keyword
	hexas  = 'H' // the keyword is followed at once by n hexadecimal digits
	before = 'B' // the keyword follows n characters of a token
	named  = 'A' // the keyword is in a name, and an operator and n characters of a token follow
	near   = 'N' // n characters of a token stand within nearReach bytes
	always = '!'
	// The rest are one rule's own; see own.
	generic  = 'G'
	url      = 'u'
	header   = 'h'
	privKey  = 'k'
	curl     = 'c'
	kube     = 's'
	nuget    = 'g'
	freemius = 'f'
	jwt      = 'j'
	vault    = 'v'
	assigns  = 'w'
	cookie   = 'o'
	netrc    = 'm'
	gives    = 'p'
	vends    = 'n'
	places   = 'l'
	hash     = 'x'
)

// mark is one keyword, in lower case, and what makes it suspect.
type mark struct {
	word string
	how  byte
	n    int
}

// nearReach covers the reach of the rules that look for a match beside their
// keyword, not around it.
const nearReach = 256

// scan reports whether a keyword with what belongs to it is in s.
func scan(s string) bool {
	if len(s) < 4 {
		return false
	}
	prev := Class(s[0])
	for i := 1; i < len(s); i++ {
		c := Class(s[i])
		first, second := prev, c
		prev = c
		if first == 0 || second == 0 || pairs[first]>>second&1 == 0 {
			continue
		}
		for at, end := group(first, second); at < end; at++ {
			m := &marks[at]
			if hasPrefixFold(s[i-1:], m.word) && m.holds(s, i-1, i-1+len(m.word)) {
				return true
			}
		}
	}
	return false
}

// group is where the marks stand that begin with characters of these classes, of which pairs
// has the bit: the pairs before it are counted, as in a table of which the rest is left out.
func group(first, second byte) (from, to int) {
	n := int(rows[first]) + bits.OnesCount64(pairs[first]&(1<<second-1))
	return int(groups[n][0]), int(groups[n][1])
}

// hasKeyword reports whether any keyword is in s.
func hasKeyword(s string) bool {
	for i := 1; i < len(s); i++ {
		first, second := Class(s[i-1]), Class(s[i])
		if first == 0 || second == 0 || pairs[first]>>second&1 == 0 {
			continue
		}
		for at, end := group(first, second); at < end; at++ {
			if hasPrefixFold(s[i-1:], marks[at].word) {
				return true
			}
		}
	}
	return false
}

// Classes is how many values [Class] has.
const Classes = 54

// Class numbers the characters that keywords begin with, in so few values that
// a row of pairs is one word; 0 is every other.
func Class(c byte) byte {
	switch {
	case c >= 'a' && c <= 'z':
		return c - 'a' + 1
	case c >= 'A' && c <= 'Z':
		return c - 'A' + 1
	case c >= '0' && c <= '9':
		return c - '0' + 27
	}
	switch c {
	case '_':
		return 37
	case '-':
		return 38
	case '.':
		return 39
	case ':':
		return 40
	case '/':
		return 41
	case '<':
		return 42
	case '~':
		return 43
	case 0xd0: // of names in other alphabets
		return 44
	case 0xb0:
		return 45
	case 0xe5:
		return 46
	case 0xaf:
		return 47
	case 0xe3:
		return 48
	case 0x83:
		return 49
	case 0xeb:
		return 50
	case 0xb9:
		return 51
	case '$':
		return 52
	case '@':
		return 53
	}
	return 0
}

func fold(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

func hasPrefixFold(s, prefix string) bool {
	if len(s) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if fold(s[i]) != prefix[i] {
			return false
		}
	}
	return true
}

func containsFold(s, word string) bool {
	for i := 0; i+len(word) <= len(s); i++ {
		if hasPrefixFold(s[i:], word) {
			return true
		}
	}
	return false
}

// Token is what secrets consist of, and a little more.
func Token(c byte) bool {
	switch c {
	case '.', '-', '=', '+', '/', '~', '%', '|', ':', '\\':
		return true
	}
	return wordByte(c)
}

// holds reports whether the keyword at [start,end) makes s suspect.
func (m *mark) holds(s string, start, end int) bool {
	switch m.how {
	case always:
		return true
	case after, edge:
		if m.how == edge && start > 0 && wordByte(s[start-1]) && s[start-1] < 0x80 && !Glued(s, end) {
			return false
		}
		i := end
		for ; i < len(s) && i-end < m.n && Token(s[i]); i++ {
		}
		return i-end >= m.n
	case hexas:
		i := end
		for ; i < len(s) && i-end < m.n && hexByte(s[i]); i++ {
		}
		return i-end >= m.n
	case before:
		i := start
		for ; i > 0 && start-i < m.n && Token(s[i-1]); i-- {
		}
		return start-i >= m.n
	case named:
		_, run := valueOf(s, end)
		return run >= m.n
	case near:
		run := 0
		for i := max(0, start-nearReach); i < min(len(s), end+nearReach); i++ {
			if run++; !Token(s[i]) {
				run = 0
			}
			if run >= m.n {
				return true
			}
		}
		return false
	case generic:
		return MayBeGeneric(s, end)
	case assigns:
		_, _, ok := Assigned(s, start, end)
		return ok
	case gives, vends, places:
		find := Given
		switch m.how {
		case vends:
			find = Vendor
		case places:
			find = Placed
		}
		found := false
		find(s, start, end, func(int, int) { found = true })
		return found
	}
	return m.own(s, start, end)
}

// Glued reports whether what follows a keyword looks like the rest of a secret
// even where the keyword is the end of a longer word: names have a dot, a slash
// or small letters there.
func Glued(s string, end int) bool {
	const look = 11 // as long as the shortest secret is after its keyword
	if len(s)-end < look {
		return false
	}
	telling := false
	for _, c := range []byte(s[end : end+look]) {
		telling = telling || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z'
		if !alnum(c) && c != '_' && c != '-' && c != '+' {
			return false
		}
	}
	return telling
}

// valueOf finds the value of a name that ends soon after end: where it begins,
// and how many characters of a token it has.
func valueOf(s string, end int) (at, run int) {
	i := end
	for limit := min(len(s), end+Between); i < limit && NameByte(s[i]); i++ {
	}
	if i == len(s) || !Operator(s[i]) {
		return 0, 0
	}
	for limit := min(len(s), i+12); i < limit && (Operator(s[i]) || QuoteOrSpace(s[i])); i++ {
		if s[i] == '=' || s[i] == ':' || s[i] == '|' {
			run++
		}
	}
	at = i
	for limit := min(len(s), i+256); i < limit && Token(s[i]); i++ {
		run++
	}
	return at, run
}

// Runs is how many characters of a token follow a keyword, stand as the value
// of a name that holds it, and precede it. The table of marks is made from it.
func Runs(s string, start, end int) (after, named, before int) {
	for end+after < len(s) && Token(s[end+after]) {
		after++
	}
	for start-before > 0 && Token(s[start-before-1]) {
		before++
	}
	_, named = valueOf(s, end)
	return after, named, before
}

func (m *mark) own(s string, start, end int) bool {
	rest := s[end:]
	switch m.how {
	case url:
		return passwordInURL(rest)
	case header:
		return credentialsInHeader(rest)
	case privKey:
		return containsFold(rest[:min(len(rest), 160)], "private key")
	case curl:
		return credentialsForCurl(rest)
	case kube:
		return kindSecret(s[:start]) && containsFold(s, "data:")
	case cookie: // Cookie: name=…
		at := 0
		for at < len(rest) && at < 4 && (rest[at] == '"' || rest[at] == '\'' || rest[at] == ' ' || rest[at] == '\t') {
			at++
		}
		return at < len(rest) && rest[at] == ':' && containsFold(rest[at:min(len(rest), at+80)], "=")
	case netrc: // machine HOST login NAME password …
		return containsFold(rest[:min(len(rest), 2000)], "password")
	case hash:
		n := 0
		for n < len(rest) && (alnum(rest[n]) || rest[n] == '.' || rest[n] == '/' || rest[n] == '$' || rest[n] == '=' || rest[n] == ',' || rest[n] == '+' || rest[n] == '-') {
			n++
		}
		return n >= 20
	case nuget:
		return containsFold(rest[:min(len(rest), 32)], "password")
	case freemius:
		return containsFold(rest[:min(len(rest), 64)], "sk_")
	case jwt:
		i := 0
		for i < len(rest) && alnum(rest[i]) {
			i++
		}
		return i >= 17 && hasPrefixFold(rest[i:], ".ey")
	case vault: // s.AAAA…, which would otherwise be half of all programs
		i := 0
		for i < len(rest) && (alnum(rest[i]) || rest[i] >= 0x80) {
			i++
		}
		return i >= 24 && (start == 0 || !wordByte(s[start-1]) || s[start-1] >= 0x80)
	}
	return false
}

// kindSecret reports whether s ends in the beginning of a line of YAML that
// tells Kubernetes that a secret follows.
func kindSecret(s string) bool {
	i := len(s)
	if i > 0 && (s[i-1] == '"' || s[i-1] == '\'') {
		i--
	}
	for i > 0 && (s[i-1] == ' ' || s[i-1] == '\t') {
		i--
	}
	return i >= 5 && hasPrefixFold(s[i-5:], "kind:")
}

// credentialsInHeader is redact's own rule for what follows "authorization".
func credentialsInHeader(s string) bool {
	skip := func(set string, most int) {
		for most > 0 && s != "" {
			in := false
			for i := range len(set) {
				in = in || set[i] == s[0]
			}
			if !in {
				return
			}
			s, most = s[1:], most-1
		}
	}
	skip("\"'", 1)
	skip(" \t", 3)
	if s == "" || s[0] != ':' && s[0] != '=' {
		return false
	}
	s = s[1:]
	skip(" \t\"'", 4)
	for _, scheme := range [...]string{"bearer", "basic", "token"} {
		if !hasPrefixFold(s, scheme) {
			continue
		}
		s = s[len(scheme):]
		skip(" \t", 3)
		i := 0
		for i < len(s) && Token(s[i]) {
			i++
		}
		return i >= 12
	}
	return false
}

// passwordInURL is redact's own two rules for what follows "://", word for word.
func passwordInURL(s string) bool {
	colon := -1
	for i := 0; i < len(s) && i < 1200; i++ {
		switch c := s[i]; c {
		case '@':
			return colon >= 0 && i-colon > 3 || colon < 0 && i >= 20 // a name and a password, or a token in place of both
		case ':':
			if colon < 0 {
				colon = i
			}
		case '/', '"', '\'', '<', '>', '`', '{', '}', '$', '*', ' ', '\t', '\n', '\r', '\f':
			return false
		}
	}
	return false
}

// credentialsForCurl looks for an option that carries credentials anywhere
// after the program's name.
func credentialsForCurl(s string) bool {
	for i := 1; i < len(s); i++ {
		if s[i] != '-' || !spaceByte(s[i-1]) {
			continue
		}
		rest := s[i:]
		switch {
		case hasPrefixFold(rest, "-u"), hasPrefixFold(rest, "--user"):
			for j := 2; j < len(rest); j++ {
				if rest[j] == ':' {
					return true
				}
			}
		case hasPrefixFold(rest, "-h"), hasPrefixFold(rest, "--header"):
			head := rest[:min(len(rest), 160)]
			for _, word := range [...]string{"auth", "token", "key", "secret", "x-"} {
				if containsFold(head, word) {
					return true
				}
			}
		}
	}
	return false
}

// Limits of the generic rule's expression, in bytes: what may stand between the
// word and the operator, and how long the value is. A test that compares with
// the bare expression fails when the rule outgrows them.
const (
	Between = 23 * 3 // (?i)\w has members of three bytes
	value   = 150*3 + 16
	// An entropy of more than 3.5 bits needs this many different characters.
	distinct = 12
)

// MayBeGeneric reports whether a word of the generic rule that ends at end can
// belong to a match: after a few name characters comes an operator, and after
// that a value of ten or more characters, not letters alone, not monotonous. It
// lets through more than the rule does and never less.
func MayBeGeneric(s string, end int) bool {
	i := end
	for limit := min(len(s), end+Between); i < limit && NameByte(s[i]); i++ {
	}
	if i == len(s) || !Operator(s[i]) {
		return false
	}
	var low, high uint64 // which ASCII characters the value has
	run, telling := 0, false
	note := func(c byte) {
		run++
		if c < 64 {
			low |= 1 << c
		} else if c < 128 {
			high |= 1 << (c - 64)
		}
		telling = telling || c >= '0' && c <= '9' || c == '=' || c == '+' || c == '/' || c >= 0x80
	}
	op, equals := i, 0 // equals signs after the operator's first, which the value may begin with
	for limit := min(len(s), i+12); i < limit && (Operator(s[i]) || QuoteOrSpace(s[i])); i++ {
		if equals++; s[i] != '=' || i == op {
			equals = 0
		}
	}
	for range equals {
		note('=')
	}
	foreign := false
	for limit := min(len(s), i+value); i < limit && valueByte(s[i]); i++ {
		foreign = foreign || s[i] >= 0x80
		note(s[i])
	}
	if i < len(s) && !valueByte(s[i]) && !ends(s[i]) {
		return false
	}
	return run >= 10 && telling && (foreign || bits.OnesCount64(low)+bits.OnesCount64(high) >= distinct)
}

// ends is what follows the value of the generic rule.
func ends(c byte) bool {
	return spaceByte(c) || c == '\'' || c == '"' || c == '`' || c == ';' || c == '\\'
}

func alnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func hexByte(c byte) bool {
	return c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' || c >= '0' && c <= '9'
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80
}

func spaceByte(c byte) bool {
	return c == ' ' || c >= '\t' && c <= '\r'
}

// NameByte is what may stand between a keyword and the operator after it.
func NameByte(c byte) bool {
	return wordByte(c) || spaceByte(c) || c == '.' || c == '-' || c == '\'' || c == '"'
}

// Operator is what may stand between a name and its value.
func Operator(c byte) bool {
	return c == '=' || c == '>' || c == ':' || c == '|' || c == '?' || c == ','
}

// QuoteOrSpace is what may stand between an operator and a value.
func QuoteOrSpace(c byte) bool {
	return spaceByte(c) || c == '\'' || c == '"' || c == '`' || c == '='
}

func valueByte(c byte) bool {
	return wordByte(c) || c == '.' || c == '=' || c == '-' || c == '+' || c == '/'
}
