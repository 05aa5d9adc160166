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
	if k == loose && start > 0 && letter(s[start]) && letter(s[start-1]) && (s[start-1] < 'a' || s[start] >= 'a') &&
		!hasPrefixFold(s[start:end], "sess") && !hasPrefixFold(s[start:end], "sonar") && !hasPrefixFold(s[start:end], "pr") {
		return 0, 0, false // bypass, compass
	}
	v, ok := assignedValue(s, start, end)
	if !ok {
		return unnamed(s, start, end, k)
	}
	if i := nameStart(s, start); v.op == ':' && i > 0 && s[i-1] == '/' {
		return 0, 0, false // /etc/passwd:17: is a place
	}
	text := s[v.from:v.to]
	if len(text) < minAssigned || len(text) > maxAssigned || !v.secret(text, k) {
		return unnamed(s, start, end, k)
	}
	if k == loose && !v.loose(s[start:end], text) {
		return 0, 0, false
	}
	return v.from, v.to, true
}

// unnamed finds the value of a name in a sentence.
func unnamed(s string, start, end int, k kind) (from, to int, ok bool) {
	if end == len(s) || letter(s[end]) {
		return 0, 0, false
	}
	if k == loose {
		if containsFold(s[start:end], "phrase") || hasPrefixFold(s[start:end], "mnemonic") {
			return phrase(s, end)
		}
		if containsFold(s[start:end], " key") {
			return said(s, end)
		}
		return 0, 0, false
	}
	if s[end] == ' ' || s[end] >= 0x80 {
		if from, to, ok = said(s, end); ok {
			return from, to, ok
		}
		return generated(s, start, end)
	}
	return 0, 0, false
}

// loose reports whether the value of a name that often means something else is a secret:
// as a person sets a variable, or because it can be nothing else.
func (v assigned) loose(name, text string) bool {
	if isUUID(text) || name == "PASS" && v.op == ':' || name == "sessionId" || name == "sessionID" || name == "SessionId" {
		return false
	}
	if v.env && len(name) < 5 && hasPrefixFold(name, "p") {
		return true
	}
	if hasPrefixFold(name, "authorization") && (len(text) < 12 || hasPrefixFold(text, "aws4")) {
		return false
	}
	if name == "--key" && 5*oddness(text) < 2*len(text) { // of a file
		return false
	}
	if len(name) > 9 && hasPrefixFold(name, "pr") && v.quote == 0 && len(text) < 40 { // PrivateKey: testRSA2048Key
		return false
	}
	if hasPrefixFold(name, "connection") && containsFold(text, "=") { // of parts that have names
		return false
	}
	return looksRandom(text)
}

// AssignedWords are the keywords of [Assigned], in lower case.
func AssignedWords() []string {
	return append([]string{
		"password", "passwd", "passphrase", "pwd", "secret", "token", "api_key", "api-key", "apikey",
		"access_key", "access-key", "accesskey", "secret_key", "secretkey", "private_key", "auth_key", "authkey",
		"account_key", "account-key", "accountkey", "passcode", "requirepass", "masterauth", "bindpw", "rootpw", "securestring", "identified by",
		"passwort", "mot de passe", "motdepasse", "mot_de_passe", "senha", "contrasena", "contraseña", "ароль", "密码", "密碼", "パスワード", "비밀번호",
	}, looseWords[:]...)
}

// looseWords are keywords that must be a name, or the end of one, and have a value that
// looks like a secret by itself.
var looseWords = [...]string{
	"pass", "pw", "psk", "_pat", "_auth", "otp_seed", "bearer", "authorization", "credential", "sessionid", "sessid", "connectionstring",
	"sonar.login", "--auth", "--key", "privatekey", "presharedkey", "api key", "secret key", "unseal key", "mnemonic", "seed phrase", "recovery phrase",
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
	loose
)

func keywordKind(word string) kind {
	if len(word) == len("token") && hasPrefixFold(word, "token") {
		return weak
	}
	for _, w := range looseWords {
		if sameFold(word, w) {
			return loose
		}
	}
	return strong
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

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
	if i+1 < len(s) && s[i] == ']' && (closed || s[i+1] == '=') { // config["password"], user[password]=
		i++
	}
	if at, ok := beside(s, start, i, closed); ok {
		v.op, v.spaced = ':', true
		return v.value(s, start, end, at)
	}
	if i+2 < len(s) && s[i] == ' ' && s[i+1] >= '0' && s[i+1] <= '9' && s[i+2] == ':' { // Unseal Key 1:
		i += 2
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
		v.op = ':'
		switch {
		case i+1 < len(s) && s[i+1] == '=':
			v.op = '='
			i++
		case i+1 < len(s) && s[i+1] == '-' && defaulted(s, start), i+2 < len(s) && s[i+1] == ':' && s[i+2] == ' ': // of LDIF, in base64
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
	case '(', ',', '\'', '"':
		return v.argument(s, start, end, i, closed)
	default:
		switch {
		case s[i] >= 0x80 && hasPrefixFold(s[i:], "："):
			v.op = ':'
			i += len("：")
		case hasPrefixFold(s[i:], "%3d"):
			v.op = '='
			i += len("%3d")
		case v.spaced && (option(s, start) || commanded(s, start)):
			v.op = ' '
		case column(s, start, after), v.spaced && sameFold(s[start:end], "bearer"):
			v.op = ' '
			got, ok := v.value(s, start, end, i)
			return got, ok && looksRandom(s[got.from:got.to])
		default:
			return v, false
		}
	}
	return v.value(s, start, end, i)
}

// argument reads a value in quotes that a function is given, or a statement has, where its
// bracket, comma or quote is at i: setPassword("…"), Setenv("PASSWORD", "…"), PASSWORD '…'.
func (v assigned) argument(s string, start, end, i int, closed bool) (assigned, bool) {
	sure := false
	switch s[i] {
	case '(':
		if closed || v.spaced || reads(s, start, end) {
			return v, false
		}
		sure = statement(s, start)
		i++
	case ',':
		j := nameStart(s, start)
		if !closed || v.spaced || j < 2 || s[j-2] != '(' {
			return v, false
		}
		i++
	default:
		if option(s, start) || commanded(s, start) {
			v.op = ' '
			return v.value(s, start, end, i)
		}
		if closed || !v.spaced {
			return v, false
		}
		sure = sameFold(s[start:end], "identified by") || statement(s, start)
	}
	v.op = ','
	got, ok := v.value(s, start, end, i)
	return got, ok && got.quote != 0 && (sure || looksRandom(s[got.from:got.to]))
}

// value reads what follows the operator, which ends at i.
func (v assigned) value(s string, start, end, i int) (assigned, bool) {
	after := i
	for i < len(s) && i-after < 40 && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	v.spaced = v.spaced || i > after
	if v.op == ':' {
		i = within(s, pastType(s, i))
	}
	if v.op == ':' || v.op == '=' {
		if next := nextLine(s, i); next > i {
			i, v.op, v.spaced = next, ':', true
		}
		if i+1 < len(s) && s[i] == '$' && s[i+1] == '\'' {
			i++
		}
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
	if i+4 < len(s) && s[i] == '-' && s[i+1] != '-' && start-i > 0 { // -token, of programs that have no other options
		return i > 1 && s[i-1] == ' ' && !lineStart(s, i)
	}
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
	if k == loose { // and more is asked of it; see loose
		k = strong
	}
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
