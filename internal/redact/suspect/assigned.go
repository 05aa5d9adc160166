package suspect

// Assigned finds what a text assigns to a name that means a secret, where the
// name ends in the keyword at [start,end): password=…, "client_secret": "…",
// --token …, <passwd>…</passwd>. The place of the value is returned.
//
// It is a whole rule and no filter: package redact takes out just what it finds.
// Expressions are of no use for it, since what matters is what a value is not: a
// variable, a call, a path, a placeholder, a word of prose. Values have no need
// to look random, for people choose their passwords.
func Assigned(s string, start, end int) (from, to int, ok bool) {
	k := keywordKind(s[start:end])
	v, ok := assignedValue(s, start, end)
	if !ok {
		return 0, 0, false
	}
	if i := nameStart(s, start); v.op == ':' && i > 0 && s[i-1] == '/' {
		return 0, 0, false // /etc/passwd:17: is a place
	}
	text := s[v.from:v.to]
	if len(text) < minAssigned || len(text) > maxAssigned || !v.secret(text, k) {
		return 0, 0, false
	}
	return v.from, v.to, true
}

// AssignedWords are the keywords of [Assigned], in lower case.
func AssignedWords() []string {
	return []string{
		"password", "passwd", "passphrase", "pwd", "_pass", "secret", "token", "api_key", "api-key", "apikey",
		"access_key", "access-key", "accesskey", "secret_key", "secretkey", "private_key", "auth_key", "authkey",
	}
}

const (
	// minAssigned is what the shortest secret has that is worth a false alarm,
	// maxAssigned what the longest value has that a name is given, in bytes.
	minAssigned, maxAssigned = 8, 4096
)

// kind is how much a keyword says. A token is a piece of a text as often as a
// credential.
type kind byte

const (
	strong kind = iota
	weak
)

func keywordKind(word string) kind {
	if len(word) == len("token") && hasPrefixFold(word, "token") {
		return weak
	}
	return strong
}

// assigned is a value with what is around it.
type assigned struct {
	from, to int
	op       byte // the operator: = : > or a space after an option
	quote    byte // 0 for a bare value
	spaced   bool // white space stands before or after the operator
	next     byte // what follows the value, 0 at the end
	env      bool // the name is one of the environment, at a line's start
}

// assignedValue finds the value of the name that ends at end.
func assignedValue(s string, start, end int) (v assigned, ok bool) {
	i := end
	for n := 0; i < len(s) && n < 3 && s[i] >= '0' && s[i] <= '9'; n++ { // password2
		i++
	}
	closed := i < len(s) && (s[i] == '"' || s[i] == '\'' || s[i] == '`')
	if closed {
		i++
	}
	if i < len(s) && s[i] == ']' && closed { // config["password"]
		i++
	}
	after := i
	for i < len(s) && i-after < 40 && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	v.spaced = i > after
	if i == len(s) {
		return v, false
	}
	switch s[i] {
	case ':':
		if v.op = ':'; i+1 < len(s) && s[i+1] == '=' {
			v.op = '='
			i++
		}
		i++
	case '=':
		v.op = '='
		if i++; i < len(s) && s[i] == '>' {
			v.op = '>'
			i++
		}
		for i < len(s) && s[i] == '=' { // a comparison: what is compared may be the secret itself
			v.op = '>'
			i++
		}
	case '>':
		if v.spaced {
			return v, false
		}
		return element(s, i+1)
	default:
		if !v.spaced || !option(s, start) {
			return v, false
		}
		v.op = ' '
	}
	return v.value(s, start, end, i)
}

// value reads what follows the operator, which ends at i.
func (v assigned) value(s string, start, end, i int) (assigned, bool) {
	after := i
	for i < len(s) && i-after < 40 && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	v.spaced = v.spaced || i > after
	if v.op == ':' {
		i = pastType(s, i)
	}
	if i == len(s) {
		return v, false
	}
	if c := s[i]; c == '"' || c == '\'' || c == '`' {
		v.quote, v.from = c, i+1
		for j := v.from; j < len(s) && j-v.from <= maxAssigned; j++ {
			switch s[j] {
			case c:
				v.to = j
				if j+1 < len(s) {
					v.next = s[j+1]
				}
				return v, true
			case '\n', '\\':
				return v, false // what is escaped is seen in the plain view
			}
		}
		return v, false
	}
	if v.op == '>' {
		return v, false
	}
	v.env = !v.spaced && v.op == '=' && environment(s, start, end)
	v.from, v.to = i, i
	for v.to < len(s) && v.to-v.from <= maxAssigned && !v.stops(s[v.to]) {
		v.to++
	}
	if v.to < len(s) {
		v.next = s[v.to]
	}
	for v.to > v.from && (s[v.to-1] == '.' || s[v.to-1] == ',' || s[v.to-1] == ':') { // of the sentence
		v.to--
	}
	return v, true
}

// stops reports whether a bare value ends before c.
func (v assigned) stops(c byte) bool {
	switch c {
	case ' ', '\t', '\n', '\r', '\v', '\f', '"', '\'', '`', 0:
		return true
	case ',', ';', ')', ']', '}', '>', '<', '|', '&', '(', '[', '{', '\\':
		return !v.env || c == ';' || c == '\\'
	}
	return false
}

// element is the text of an XML element that begins at i.
func element(s string, i int) (v assigned, ok bool) {
	v.op, v.quote, v.from = '>', '<', i
	for j := i; j < len(s) && j-i <= maxAssigned; j++ {
		switch s[j] {
		case '<':
			v.to = j
			return v, j+1 < len(s) && s[j+1] == '/'
		case '\n':
			return v, false
		}
	}
	return v, false
}

// pastType is the place of the value in name: type = value, i itself where
// there is no such thing.
func pastType(s string, i int) int {
	j := i
	for j < len(s) && j-i < 40 && (alnum(s[j]) || s[j] == '_' || s[j] == '.' || s[j] == '?' || s[j] == '[' || s[j] == ']' || s[j] == '<' || s[j] == '>' || s[j] == '&') {
		j++
	}
	if j == i || j+2 >= len(s) || s[j] != ' ' || s[j+1] != '=' || s[j+2] != ' ' {
		return i
	}
	if j += 3; j < len(s) && (s[j] == '"' || s[j] == '\'') {
		return j
	}
	return i
}

// nameStart is where the name begins whose keyword is at start.
func nameStart(s string, start int) int {
	for start > 0 && (alnum(s[start-1]) || s[start-1] == '_' || s[start-1] == '-') {
		start--
	}
	return start
}

// option reports whether the name is an option of a command line.
func option(s string, start int) bool {
	i := nameStart(s, start)
	return i+2 < len(s) && s[i] == '-' && s[i+1] == '-' && (i == 0 || spaceByte(s[i-1]) || s[i-1] == '"' || s[i-1] == '\'')
}

// environment reports whether the name is written as variables of the
// environment are, and begins a word.
func environment(s string, start, end int) bool {
	i := nameStart(s, start)
	for j := i; j < end; j++ {
		if s[j] >= 'a' && s[j] <= 'z' || s[j] == '-' {
			return false
		}
	}
	return i == 0 || spaceByte(s[i-1])
}

// traits are what a value consists of.
type traits struct {
	digits, lower, upper, marks, under, distinct int
	foreign                                      bool
}

func traitsOf(text string) (t traits) {
	var seen [4]uint64
	for i := range len(text) {
		c := text[i]
		seen[c/64] |= 1 << (c % 64)
		switch {
		case c >= '0' && c <= '9':
			t.digits++
		case c >= 'a' && c <= 'z':
			t.lower++
		case c >= 'A' && c <= 'Z':
			t.upper++
		case c == '_' || c == '-' || c == '.':
			t.under++
		case c >= 0x80:
			t.foreign = true
		default:
			t.marks++
		}
	}
	for _, set := range seen {
		for ; set != 0; set &= set - 1 {
			t.distinct++
		}
	}
	return t
}

// secret reports whether a value is none of the things that stand there
// otherwise.
func (v assigned) secret(text string, k kind) bool {
	t := traitsOf(text)
	if t.distinct < 4 || placeholder(text) || reference(text) || isPath(text) {
		return false
	}
	letters := t.lower + t.upper
	if v.quote != 0 {
		for i := range len(text) {
			if spaceByte(text[i]) {
				return false // a message; or a passphrase of words, which looks the same
			}
		}
		switch {
		case t.digits > 0 && t.marks > 0 && commonWord(text):
			return false // rules of a form: required|min:8
		case t.digits > 0:
			return k == strong || letters > 0 && !identifier(text, 2)
		case t.foreign || hasSecretWord(text) || commonWord(text):
			return false
		}
		return k == strong && (t.under == 0 || t.marks > 0) && t.marks < letters && !joined(text)
	}
	if v.next == '(' || v.next == '[' || v.next == '{' || v.next == '<' {
		return false // a call, an index, a literal
	}
	switch {
	case expression(text) || t.foreign && t.digits == 0:
		return false
	case t.digits == len(text):
		return k == strong
	case t.digits > 0 && letters > 0:
		// A name that is counted, of one who writes code: key1, userToken2.
		if k == weak && v.op == ':' && identifier(text, 9) {
			return false
		}
		return !(identifier(text, 2) && (k == weak || v.spaced || v.next == ',' || v.next == ')' || v.next == ';') && !v.env)
	case t.digits > 0:
		return k == strong && !v.spaced
	case t.marks > 0 && letters > 0:
		return k == strong && v.op != ':' && t.marks < letters && !v.spaced
	}
	if letters == len(text) && scrambled(text) {
		return v.op != ':' || k == strong // token: of a grammar
	}
	// Letters alone: a word, a name of something, or a password. Only where
	// nothing but a value can stand is it taken for one.
	return k == strong && letters == len(text) && v.op == '=' && !v.spaced && v.next != ',' && v.next != ')' && v.next != ';' &&
		(v.env || t.upper == 0) && !hasSecretWord(text) && !commonWord(text)
}

// joined reports whether a text is words with a plus between them, as keys of a
// keyboard are written.
func joined(text string) bool {
	for i := 1; i < len(text)-1; i++ {
		if text[i] == '+' {
			return true
		}
	}
	return false
}

// identifier reports whether a text is letters and underscores with at most so
// many digits at its end, as names of variables are.
func identifier(text string, digits int) bool {
	end := len(text)
	for end > 0 && len(text)-end < digits && text[end-1] >= '0' && text[end-1] <= '9' {
		end--
	}
	for i := range end {
		if c := text[i]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '-') {
			return false
		}
	}
	return end > 0
}

// expression reports whether a bare value is names joined by dots, arrows or
// colons, as code has them.
func expression(text string) bool {
	dots, from := 0, 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && text[i] != '.' && text[i] != '?' && text[i] != '!' && text[i] != ':' && text[i] != '-' && text[i] != '>' && text[i] != '+' && text[i] != '*' {
			continue
		}
		if part := text[from:i]; part != "" && !identifier(part, 2) {
			return false
		}
		if i < len(text) && (text[i] == '.' || text[i] == ':' || text[i] == '>' || text[i] == '+') {
			dots++
		}
		from = i + 1
	}
	return dots > 0
}

// reference reports whether a value stands for another one.
func reference(text string) bool {
	switch text[0] {
	case '$':
		return len(text) > 1 && (text[1] == '{' || text[1] == '(' || text[1] == '$' || wordByte(text[1]) && identifier(text[1:], 9))
	case '%', '{', '<', '[', '(', '*', '&', '#', '@', '!', '?', '|', '=', '-', ',', '+', ')', '}', ']', '>', ':':
		return true
	}
	for i := range len(text) - 1 {
		switch two := text[i : i+2]; two {
		case "${", "$(", "{{", "%s", "%d", "%v", "%q", "#{", "{0", "{}", "()", "=>":
			return true
		}
	}
	return text[0] == '\\'
}

// isPath reports whether a value is a place: a path, or a URL, whose own
// password another rule takes out.
func isPath(text string) bool {
	if len(text) > 2 && text[1] == ':' && (text[2] == '\\' || text[2] == '/') {
		return true
	}
	slashes := 0
	for i := range len(text) {
		if i > 0 && hasPrefixFold(text[i:], "://") {
			return true
		}
	}
	for i := range len(text) {
		switch c := text[i]; {
		case c == '/':
			slashes++
		case !alnum(c) && c != '.' && c != '-' && c != '_' && c != '~' && c != '@':
			return false
		}
	}
	return slashes > 0 && (text[0] == '/' || text[0] == '.' || text[0] == '~' || slashes > 1)
}

// placeholder reports whether a text says that it is none.
func placeholder(text string) bool {
	for _, w := range [...]string{
		"example", "placeholder", "changeme", "change_me", "change-me", "redacted", "withheld", "filtered", "hidden", "removed",
		"your", "xxxx", "****", "....", "enter", "insert", "replace", "dummy", "sample", "todo", "fixme", "<", "…", "undefined",
	} {
		if containsFold(text, w) {
			return true
		}
	}
	return false
}

// hasSecretWord reports whether a text has a keyword in itself, as the names
// of variables, keys and messages about secrets have.
func hasSecretWord(text string) bool {
	for _, w := range [...]string{"pass", "pwd", "secret", "token", "key", "cred", "auth", "kenn", "mot-de", "contras", "senha"} {
		if containsFold(text, w) {
			return true
		}
	}
	return false
}

// commonWord reports whether a text of letters is a word of programs and
// messages and not one that a person chose.
func commonWord(text string) bool {
	for _, w := range [...]string{
		"required", "optional", "disabled", "enabled", "expired", "invalid", "missing", "incorrect", "unknown", "default", "identifier",
		"string", "number", "boolean", "object", "array", "function", "literal", "punctuation", "operator", "comment", "newline",
		"whitespace", "varchar", "nullable", "generated", "encrypted", "provided", "received", "available", "configured", "rotated",
		"revoked", "verified", "refresh", "bearer", "internal", "external", "kubernetes", "vault", "manager", "request", "response",
		"account", "username", "inherit", "not", "param", "input", "field", "value", "text", "type", "var", "config", "setting",
	} {
		if containsFold(text, w) {
			return true
		}
	}
	return false
}
