package suspect

// The forms in which a value stands beside a name without an operator right after it.

// beside is where the value begins in: name: DB_PASSWORD, value: …, as Kubernetes, XML and
// forms have it, for a name whose end, with its quote, is at i.
func beside(s string, start, i int, closed bool) (at int, ok bool) {
	j := i
	for j < len(s) && j-i < 80 && (spaceByte(s[j]) || s[j] == ',') {
		j++
	}
	tag := false
	if !hasPrefixFold(unquoted(s, j), "value") {
		if !closed || i >= len(s) || s[i] != ' ' {
			return 0, false
		}
		for j = i; j < len(s)-6 && j-i < 200; j++ { // <input type="password" id="p" value="…">
			if s[j] == '<' || s[j] == '>' || s[j] == '\n' {
				return 0, false
			}
			if s[j] == ' ' && hasPrefixFold(s[j+1:], "value=") {
				j, tag = j+1, true
				break
			}
		}
		if !tag {
			return 0, false
		}
	}
	before := 0
	for p := start; p > 0; p-- { // the name's own operator
		c := s[p-1]
		if c == ':' || c == '=' {
			before = int(c)
			break
		}
		if !wordByte(c) && c != '-' && c != '.' && c != '/' && c != ' ' && c != '"' && c != '\'' || start-p > 100 {
			return 0, false
		}
	}
	if before == 0 || tag && before != '=' {
		return 0, false
	}
	if s[j] == '"' || s[j] == '\'' {
		j++
	}
	if j += len("value"); j < len(s) && (s[j] == '"' || s[j] == '\'') {
		j++
	}
	for j < len(s) && s[j] == ' ' {
		j++
	}
	if j == len(s) || s[j] != ':' && s[j] != '=' {
		return 0, false
	}
	return j + 1, true
}

func unquoted(s string, i int) string {
	if i < len(s) && (s[i] == '"' || s[i] == '\'') {
		i++
	}
	return s[i:]
}

// within is where the value begins in { "value": …, i itself where there is no such thing.
func within(s string, i int) int {
	j := i
	if j == len(s) || s[j] != '{' {
		return i
	}
	for j++; j < len(s) && j-i < 80 && spaceByte(s[j]); j++ {
	}
	rest := unquoted(s, j)
	if !hasPrefixFold(rest, "value") {
		return i
	}
	for j = len(s) - len(rest) + len("value"); j < len(s) && (s[j] == '"' || s[j] == '\'' || s[j] == ' '); j++ {
	}
	if j == len(s) || s[j] != ':' && s[j] != '=' {
		return i
	}
	for j++; j < len(s) && s[j] == ' '; j++ {
	}
	return j
}

// nextLine is where the value begins that stands alone on the next line: after | and > of
// YAML, and << of a shell and its like. i itself where there is no such thing.
func nextLine(s string, i int) int {
	j := i
	switch {
	case j < len(s) && (s[j] == '|' || s[j] == '>'):
		for j++; j < len(s) && (s[j] == '-' || s[j] == '+'); j++ {
		}
	case j+1 < len(s) && s[j] == '\\' && (s[j+1] == '\n' || s[j+1] == '\r'):
		j++
	case j+2 < len(s) && s[j] == '<' && s[j+1] == '<':
		for j += 2; j < len(s) && (alnum(s[j]) || s[j] == '-' || s[j] == '_' || s[j] == '"' || s[j] == '\'') && j-i < 40; j++ {
		}
	default:
		return i
	}
	if j < len(s) && s[j] == '\r' {
		j++
	}
	if j == len(s) || s[j] != '\n' {
		return i
	}
	for j++; j < len(s) && (s[j] == ' ' || s[j] == '\t'); j++ {
	}
	end := j
	for end < len(s) && !spaceByte(s[end]) {
		end++
	}
	if end == j || end < len(s) && s[end] != '\n' && s[end] != '\r' { // words
		return i
	}
	return j
}

// commanded reports whether the name that has the keyword at start is one that a value
// follows after a space: ENV DB_PASSWORD …, set -gx DB_PASSWORD …, #define API_KEY "…".
func commanded(s string, start int) bool {
	i := start
	for i > 0 && (alnum(s[i-1]) || s[i-1] == '_' || s[i-1] == '-' || s[i-1] == '.') {
		i--
	}
	for _, w := range [...]string{"requirepass", "masterauth", "bindpw", "rootpw"} {
		if i == start && hasPrefixFold(s[start:], w) {
			return lineStart(s, i)
		}
	}
	to := i
	for to > 0 && (s[to-1] == ' ' || s[to-1] == '\t') {
		to--
	}
	from := to
	for from > 0 && to-from < 10 && !spaceByte(s[from-1]) && s[from-1] != '"' {
		from--
	}
	if to == i || from == to {
		return false
	}
	switch s[from:to] {
	case "ENV", "setx", "setenv", "-gx", "-Ux", "-xg", "-xU", "#define", "set", "SET":
		return true
	}
	return false
}

// column reports whether the name that ends at i is the first of a line, and a tab or more
// than one space follow, as in the tables that programs print.
func column(s string, start, i int) bool {
	if i+1 >= len(s) || s[i] != '\t' && (s[i] != ' ' || s[i+1] != ' ') {
		return false
	}
	return lineStart(s, nameStart(s, start))
}

func lineStart(s string, i int) bool {
	for i > 0 && (s[i-1] == ' ' || s[i-1] == '\t') {
		i--
	}
	return i == 0 || s[i-1] == '\n'
}

// statement reports whether an SQL statement about a user precedes start on its line.
func statement(s string, start int) bool {
	from := start
	for from > 0 && start-from < 200 && s[from-1] != '\n' {
		from--
	}
	part := s[from:start]
	return (containsFold(part, "user ") || containsFold(part, "role ") || containsFold(part, "login ")) &&
		(containsFold(part, "alter ") || containsFold(part, "create ") || containsFold(part, "set "))
}

// defaulted reports whether the name stands in ${NAME:-value}.
func defaulted(s string, start int) bool {
	i := nameStart(s, start)
	return i > 1 && s[i-1] == '{' && s[i-2] == '$'
}

// reads reports whether the name is of a function that is told which secret to get.
func reads(s string, start, end int) bool {
	name := s[nameStart(s, start):end]
	for _, w := range [...]string{"get", "read", "find", "load", "fetch", "look", "test", "has", "is", "prompt", "resolve", "delete", "remove"} {
		if hasPrefixFold(name, w) {
			return true
		}
	}
	return false
}

// joints are words between a name and its value in a sentence.
var joints = [...]string{"is ", "to ", "changed ", "set ", "now ", "was ", "lautet ", "ist ", "es ", "est ", "= ", "→ ", "是", "は", "："}

// said finds the value of a name in a sentence, where the name ends at i: the password is
// …, use the token …. A value has to look like nothing but a secret there.
func said(s string, i int) (from, to int, ok bool) {
	if i < len(s) && s[i] == ' ' {
		i++
	}
	for range 4 {
		found := false
		for _, w := range joints {
			if hasPrefixFold(s[i:], w) {
				i += len(w)
				found = true
				break
			}
		}
		if !found {
			break
		}
	}
	for i < len(s) && (s[i] == '"' || s[i] == '\'' || s[i] == '`' || s[i] == '(') {
		i++
	}
	return lone(s, i)
}

// lone is the word at i that looks like nothing but a secret: of capitals, small letters and digits.
func lone(s string, i int) (from, to int, ok bool) {
	to = i
	for to < len(s) && to-i <= maxAssigned && s[to] < 0x80 && !(assigned{}).stops(s[to]) {
		to++
	}
	for to > i && (s[to-1] == '.' || s[to-1] == ',' || s[to-1] == ':' || s[to-1] == '?' || s[to-1] == '!') {
		to--
	}
	if to-i < 10 {
		return 0, 0, false
	}
	text := s[i:to]
	t := traitsOf(text)
	ok = t.digits > 1 && t.lower > 1 && t.upper > 1 && t.under == 0 && !containsFold(text, "/") && !placeholder(text) && !reference(text) && looksRandom(text)
	return i, to, ok && 5*oddness(text) >= 2*len(text)
}

// oddness is how often a text changes between letters and digits, has a piece of less than
// three letters, or two letters together that words seldom have. Of names like
// TestParse2Tokens3 it is small.
func oddness(text string) int {
	n, piece := 0, 0
	for i := range len(text) {
		c := text[i]
		begins := i == 0 || !letter(text[i-1]) || c < 'a' && text[i-1] >= 'a'
		if i > 0 && letter(c) != letter(text[i-1]) {
			n++
		}
		if (begins || !letter(c)) && piece > 0 {
			if piece < 3 {
				n++
			}
			piece = 0
		}
		if !letter(c) {
			continue
		}
		if piece > 0 && pairsOfLetters[text[i-1]|0x20-'a']>>(c|0x20-'a')&1 == 0 {
			n++
		}
		piece++
	}
	if piece > 0 && piece < 3 {
		n++
	}
	return n
}

// generated finds the value in: A temporary password is generated for root@localhost: …
func generated(s string, start, end int) (from, to int, ok bool) {
	before := s[max(0, start-16):start]
	if !containsFold(before, "temporary ") && !containsFold(before, "initial ") && !containsFold(before, "generated ") && !containsFold(before, "default ") {
		return 0, 0, false
	}
	for i := end; i+1 < len(s) && i-end < 80 && s[i] != '\n'; i++ {
		if s[i] == ':' && s[i+1] == ' ' {
			return lone(s, i+2)
		}
	}
	return 0, 0, false
}

// phrase finds the dozen words and more of which a wallet is made anew.
func phrase(s string, i int) (from, to int, ok bool) {
	for i < len(s) && (s[i] == ' ' || s[i] == ':' || s[i] == '=' || s[i] == '"' || s[i] == '\'') {
		i++
	}
	n, from := 0, i
	for to = i; i < len(s); i++ {
		word := i
		for i < len(s) && s[i] >= 'a' && s[i] <= 'z' {
			i++
		}
		if i-word < 3 || i-word > 8 {
			break
		}
		n, to = n+1, i
		if i == len(s) || s[i] != ' ' {
			break
		}
	}
	return from, to, n >= 12
}

func isUUID(text string) bool {
	return len(text) == 36 && text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-'
}
