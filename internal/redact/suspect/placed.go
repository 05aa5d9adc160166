package suspect

// Placed finds secrets by the place that they have in a file or a table with the keyword at
// [start,end): the column of a name like password, a line of cookies.txt or .pgpass, a part
// of a JSON Web Key, the second of two arguments. Like [Assigned] it is a whole rule and no
// filter.
func Placed(s string, start, end int, yield func(from, to int)) {
	switch word := s[start:end]; {
	case s[start] == 't' || s[start] == 'f' || s[start] == 'T' || s[start] == 'F':
		cookieLine(s, start, end, yield)
	case word == ":5432:" || word == ":3306:" || word == ":*:":
		passLine(s, start, end, yield)
	case word == "kty":
		webKey(s, start, end, yield)
	case sameFold(word, "private-lines:"):
		puttyKey(s, end, yield)
	case s[start] == '@':
		from := start
		for from > 0 && start-from < 200 && !spaceByte(s[from-1]) && s[from-1] != ':' && s[from-1] != '"' && s[from-1] != '\'' && s[from-1] != '`' {
			from--
		}
		if from > 1 && s[start-1] != ']' && s[from-1] == ':' && wordByte(s[from-2]) && givenSecret(s[from:start]) {
			yield(from, start)
		}
	case s[end-1] == '(':
		if from, to, ok := second(s, end); ok {
			yield(from, to)
		}
	default:
		columns(s, start, end, yield)
	}
}

// PlacedWords are the keywords of [Placed], in lower case.
func PlacedWords() []string {
	return []string{
		"true\t/", "false\t/", ":5432:", ":3306:", "kty", "private-lines:", "basicauth(", "basic_auth(", "auth=(", "db.auth(", "@tcp(",
		"password", "passwd", "secret", "token", "api_key", "apikey", "access_key", "passphrase",
	}
}

// cookieLine is one of cookies.txt: domain, TRUE, path, FALSE, expiry, name, value.
func cookieLine(s string, start, end int, yield func(from, to int)) {
	if start == 0 || s[start-1] != '\t' {
		return
	}
	i := end
	for tabs := 0; i < len(s) && s[i] != '\n' && i-end < 1000; i++ {
		if s[i] != '\t' {
			continue
		}
		if tabs++; tabs < 4 {
			continue
		}
		to := i + 1
		for to < len(s) && !spaceByte(s[to]) {
			to++
		}
		if to-i-1 >= minAssigned && !placeholder(s[i+1:to]) && s[i+1] != '[' {
			yield(i+1, to)
		}
		return
	}
}

// passLine is one of .pgpass: host:port:database:user:password.
func passLine(s string, start, end int, yield func(from, to int)) {
	from := start
	for from > 0 && (alnum(s[from-1]) || s[from-1] == '.' || s[from-1] == '-' || s[from-1] == '*') {
		from--
	}
	if from == start || !lineStart(s, from) && s[from-1] != '"' && s[from-1] != '\'' {
		return
	}
	i := end
	for colons := 0; colons < 2; i++ {
		if i >= len(s) || !wordByte(s[i]) && s[i] != ':' && s[i] != '*' && s[i] != '-' && s[i] != '.' {
			return
		}
		if s[i] == ':' {
			colons++
		}
	}
	to := i
	for to < len(s) && !spaceByte(s[to]) && s[to] != '"' && s[to] != '\'' {
		to++
	}
	if givenSecret(s[i:to]) {
		yield(i, to)
	}
}

// webKey takes the private parts of a JSON Web Key: "d" and, of a symmetric one, "k".
func webKey(s string, start, end int, yield func(from, to int)) {
	from, to := start, end
	for from > 0 && start-from < 4000 && s[from] != '{' {
		from--
	}
	for to < len(s) && to-end < 4000 && s[to] != '}' {
		to++
	}
	for i := from; i+4 < to; i++ {
		if s[i] != '"' || s[i+1] != 'd' && s[i+1] != 'k' || s[i+2] != '"' {
			continue
		}
		j := i + 3
		for j < to && (s[j] == ':' || spaceByte(s[j])) {
			j++
		}
		if j == to || s[j] != '"' {
			continue // a program that makes one
		}
		j++
		if n := run(s, j, wordy); n-j >= 16 && n < len(s) && s[n] == '"' {
			yield(j, n)
		}
	}
}

// puttyKey takes the lines of base64 after the line that counts them.
func puttyKey(s string, i int, yield func(from, to int)) {
	for i < len(s) && (s[i] == ' ' || s[i] >= '0' && s[i] <= '9' || s[i] == '\r') {
		i++
	}
	if i == len(s) || s[i] != '\n' {
		return
	}
	from := i + 1
	to := from
	for to < len(s) && (alnum(s[to]) || s[to] == '+' || s[to] == '/' || s[to] == '=' || s[to] == '\n' || s[to] == '\r') {
		to++
	}
	if to < len(s) && s[to] == '-' { // Private-MAC begins the next line
		for to > from && s[to-1] != '\n' {
			to--
		}
	}
	for to > from && spaceByte(s[to-1]) {
		to--
	}
	if to-from >= 16 {
		yield(from, to)
	}
}

// second is the second of two texts in quotes, as functions take a name and a password.
func second(s string, i int) (from, to int, ok bool) {
	for n := 0; n < 2; n++ {
		for i < len(s) && (s[i] == ' ' || s[i] == ',' && n == 1) {
			i++
		}
		if i == len(s) || s[i] != '"' && s[i] != '\'' {
			return 0, 0, false
		}
		quote := s[i]
		from = i + 1
		for i++; i < len(s) && s[i] != quote && s[i] != '\n' && i-from < maxAssigned; i++ {
		}
		if i == len(s) || s[i] != quote {
			return 0, 0, false
		}
		to = i
		i++
	}
	return from, to, givenSecret(s[from:to])
}

// mostRows is how many lines of a table are looked at.
const mostRows = 200

// columns finds the values in the column of a table whose head is the name with the keyword
// at [start,end), and the one beside a name that is the first cell of a row.
func columns(s string, start, end int, yield func(from, to int)) {
	from := nameStart(s, start)
	before, after := from, end
	for before > 0 && (s[before-1] == ' ' || s[before-1] == '"') {
		before--
	}
	for after < len(s) && (s[after] == ' ' || s[after] == '"') {
		after++
	}
	delimiter := byte(0)
	if after < len(s) && delimits(s[after]) {
		delimiter = s[after]
	} else if before > 0 && delimits(s[before-1]) && (after == len(s) || s[after] == '\n' || s[after] == '\r') {
		delimiter = s[before-1]
	}
	if delimiter == 0 || before > 0 && s[before-1] != delimiter && s[before-1] != '\n' {
		return
	}
	line, eol := before, after
	for line > 0 && start-line < 2000 && s[line-1] != '\n' {
		line--
	}
	for eol < len(s) && eol-end < 2000 && s[eol] != '\n' {
		eol++
	}
	if delimiter == '|' && after < eol { // | password | … |
		cell(s, after+1, eol, delimiter, yield)
	}
	at, of := 0, 0 // which cell of how many the name is
	for i := line; i < eol; i++ {
		c := s[i]
		if c == delimiter {
			of++
			if i < from {
				at++
			}
		} else if delimiter != '|' && !wordByte(c) && c != '-' && c != '"' && c != '\r' && c != '.' {
			return // no head of a table
		}
	}
	if of == 0 {
		return
	}
	for range mostRows {
		if eol >= len(s)-1 {
			return
		}
		line, eol = eol+1, eol+1
		n, cellFrom := 0, line
		if at > 0 {
			cellFrom = -1
		}
		for eol < len(s) && s[eol] != '\n' {
			if s[eol] == delimiter {
				if n++; n == at {
					cellFrom = eol + 1
				}
			}
			eol++
		}
		if n == 0 && eol > line && (s[line] == '-' || s[line] == '+') { // a rule
			continue
		}
		if n != of {
			return
		}
		if cellFrom >= 0 {
			cell(s, cellFrom, eol, delimiter, yield)
		}
	}
}

func delimits(c byte) bool { return c == '|' || c == ',' || c == ';' || c == '\t' }

// cell yields what stands in the cell that begins at i, if it looks like a secret by itself.
func cell(s string, i, eol int, delimiter byte, yield func(from, to int)) {
	to := i
	for to < eol && s[to] != delimiter {
		to++
	}
	for i < to && (spaceByte(s[i]) || s[i] == '"') {
		i++
	}
	for to > i && (spaceByte(s[to-1]) || s[to-1] == '"') {
		to--
	}
	if text := s[i:to]; givenSecret(text) && looksRandom(text) {
		yield(i, to)
	}
}
