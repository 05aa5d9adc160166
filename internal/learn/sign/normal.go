package sign

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// What differs from one time to the next, by placeholder. Two outputs that come
// to the same text after this are the same failure.
const (
	holePath  = "<path>"
	holeURL   = "<url>"
	holeNum   = "<n>"
	holeHex   = "<hex>"
	holeTime  = "<time>"
	holeAddr  = "<addr>"
	holeMail  = "<mail>"
	holeQuote = "<q>"
	holeTemp  = "<temp>"
)

// Place reports whether words have a place, or a temporary name, taken out of them.
func Place(words string) bool {
	return strings.Contains(words, holePath) || strings.Contains(words, holeTemp)
}

// Normal is a line of output without what differs from one time to the
// next: paths, numbers, ids, times, addresses, temporary names. What stands in
// quotes goes too unless keepQuoted is set, in which case only what differs
// within the quotes goes.
func Normal(line string, keepQuoted bool) string {
	line = strings.TrimSpace(stripTerminal(line))
	var b strings.Builder
	b.Grow(len(line))
	for i := 0; i < len(line); {
		r, size := utf8.DecodeRuneInString(line[i:])
		switch {
		case unicode.IsSpace(r):
			for i < len(line) {
				s, n := utf8.DecodeRuneInString(line[i:])
				if !unicode.IsSpace(s) {
					break
				}
				i += n
			}
			b.WriteByte(' ')
			continue
		case closing(r) != 0:
			if end := quoteEnd(line, i, r, size); end > 0 {
				inner := line[i+size : end]
				_, closeSize := utf8.DecodeRuneInString(line[end:])
				if keepQuoted {
					b.WriteString(line[i : i+size])
					b.WriteString(normalWords(inner))
					b.WriteString(line[end : end+closeSize])
				} else {
					b.WriteString(holeQuote)
				}
				i = end + closeSize
				continue
			}
			b.WriteString(line[i : i+size])
			i += size
			continue
		}
		end := wordEnd(line, i)
		before := b.String()
		b.WriteString(NormalWord(line[i:end], before))
		i = end
	}
	return collapse(b.String())
}

// normalWords is normalWord for each word of a text.
func normalWords(s string) string {
	words := strings.Fields(s)
	before := ""
	for i, w := range words {
		words[i] = NormalWord(w, before)
		before = words[i] + " "
	}
	return strings.Join(words, " ")
}

// collapse joins placeholders that stand side by side, so that a list of three
// numbers is as long as one of two.
func collapse(s string) string {
	for _, hole := range []string{holeNum, holePath, holeQuote, holeHex} {
		for _, sep := range []string{" ", ", ", ","} {
			for strings.Contains(s, hole+sep+hole) {
				s = strings.ReplaceAll(s, hole+sep+hole, hole)
			}
		}
	}
	// When it was said is no part of what was said.
	for {
		rest := strings.TrimLeft(s, " []")
		cut, ok := strings.CutPrefix(rest, holeTime)
		if !ok {
			return strings.TrimSpace(s)
		}
		s = strings.TrimLeft(cut, " ]:")
	}
}

// closing is the quote that ends what r begins, or 0.
func closing(r rune) rune {
	switch r {
	case '"', '\'':
		return r
	case '`':
		return '`'
	case '‘':
		return '’'
	case '“':
		return '”'
	case '「':
		return '」'
	case '『':
		return '』'
	case '«':
		return '»'
	}
	return 0
}

// quoteEnd is where the quote that begins at i ends, or -1: an apostrophe
// within a word begins none, and GNU's old style `this' is one.
func quoteEnd(line string, i int, open rune, size int) int {
	if open == '\'' || open == '"' || open == '`' {
		if prev, _ := utf8.DecodeLastRuneInString(line[:i]); i > 0 && open == '\'' && isWordRune(prev) && prev < 0x80 {
			return -1
		}
	}
	end := closing(open)
	for j := i + size; j < len(line); {
		r, n := utf8.DecodeRuneInString(line[j:])
		if r == '\\' {
			j += n + 1
			continue
		}
		if r == end || open == '`' && r == '\'' {
			next, _ := utf8.DecodeRuneInString(line[min(j+n, len(line)):])
			if open == '\'' && j+n < len(line) && next < 0x80 && isWordRune(next) {
				j += n // an apostrophe inside
				continue
			}
			return j
		}
		j += n
	}
	return -1
}

func isWordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// wordEnd is where the word that begins at i ends: at a space or quote, or
// where the script changes to or from one that is written without spaces.
func wordEnd(line string, i int) int {
	r, n := utf8.DecodeRuneInString(line[i:])
	wide := isWide(r)
	for j := i + n; j < len(line); {
		r, n := utf8.DecodeRuneInString(line[j:])
		if unicode.IsSpace(r) || isWide(r) != wide || closing(r) != 0 && (r != '\'' || j+1 >= len(line)) {
			return j
		}
		j += n
	}
	return len(line)
}

func isWide(r rune) bool {
	return r >= 0x2e80 && r <= 0x9fff || r >= 0xac00 && r <= 0xd7af || r >= 0xf900 && r <= 0xfaff || r >= 0xff00 && r <= 0xffef || r >= 0x20000 && r <= 0x3ffff
}

// NormalWord is a word without what differs. Before is what stands before it:
// a number after "status" is what the failure is about, and stays.
func NormalWord(w, before string) string {
	if isAddr(w) {
		return holeAddr
	}
	lead := len(w) - len(strings.TrimLeft(w, "([{<,;:=!|*"))
	tail := len(strings.TrimRight(w, ")]}>,;:.!?|*"))
	if lead >= tail {
		return w
	}
	core := w[lead:tail]
	if n := normalCore(core, before+w[:lead]); n != core {
		return w[:lead] + n + w[tail:]
	}
	return w
}

func normalCore(w, before string) string {
	switch {
	case strings.HasPrefix(w, "<") && strings.HasSuffix(w, ">"):
		return w
	case strings.Contains(w, "://"):
		if i := strings.Index(w, "://"); i > 0 && i < 12 {
			return holeURL
		}
	case isMail(w):
		return holeMail
	case isAddr(w):
		return holeAddr
	case isTime(w):
		return holeTime
	case IsUUID(w):
		return holeHex
	}
	if key, value, ok := strings.Cut(w, "="); ok && key != "" && value != "" && !strings.ContainsAny(key, "/\\") {
		return key + "=" + NormalWord(value, key)
	}
	if isPath(w) {
		return holePath + pathTail(w)
	}
	if strings.HasPrefix(w, "tmp") && len(w) > 3 && strings.ContainsAny(w, ".0123456789") {
		return holeTemp
	}
	if isHex(w) {
		return holeHex
	}
	return normalNumbers(w, before)
}

// pathTail is what follows a path in its word and is no place in the file, as
// "FAIL" in "x.go:12:FAIL".
func pathTail(w string) string {
	i := strings.LastIndexByte(w, ':')
	if i < 0 || i+1 >= len(w) || w[i+1] >= '0' && w[i+1] <= '9' || strings.ContainsAny(w[i:], "/\\") {
		return ""
	}
	return normalNumbers(w[i:], "")
}

// normalNumbers replaces the numbers of a word. Digits that belong to a code
// (TS2307, E0382, SC2086) or to a name (utf8, sha256) stay.
func normalNumbers(w, before string) string {
	first := strings.IndexAny(w, "0123456789")
	if first < 0 {
		return w
	}
	if first > 0 && isWordByte(w[first-1]) && isWordByte(w[0]) {
		run := first
		for run < len(w) && (isWordByte(w[run]) || w[run] == '-') {
			run++
		}
		digits := 0
		for i := first; i < run; i++ {
			if w[i] >= '0' && w[i] <= '9' {
				digits++
			}
		}
		switch {
		case run == len(w) && digits <= 5 && !strings.ContainsAny(w[first:], "-"):
			return w // TS2307, sha256
		case digits <= 5 && strings.HasPrefix(w[run:], ":"):
			return w[:run] + normalNumbers(w[run:], "")
		}
	}
	if len(w) == 3 && first == 0 && isDigits(w) && telling(before) {
		return w
	}
	if len(w) <= 3 && first == 0 && isDigits(w) && strings.HasSuffix(before, "curl: (") {
		return w
	}
	var b strings.Builder
	for i := 0; i < len(w); {
		c := w[i]
		if c < '0' || c > '9' {
			b.WriteByte(c)
			i++
			continue
		}
		for i < len(w) && (w[i] >= '0' && w[i] <= '9' || (w[i] == '.' || w[i] == ',') && i+1 < len(w) && w[i+1] >= '0' && w[i+1] <= '9') {
			i++
		}
		b.WriteString(holeNum)
		// a unit belongs to its number: 12ms, 3s, 1.5GB
		unit := i
		for unit < len(w) && unit-i < 4 && (w[unit] >= 'a' && w[unit] <= 'z' || w[unit] >= 'A' && w[unit] <= 'Z') {
			unit++
		}
		if unit > i && isUnit(w[i:unit]) {
			i = unit
		}
	}
	return b.String()
}

func isUnit(s string) bool {
	switch strings.ToLower(s) {
	case "ms", "s", "m", "h", "us", "ns", "b", "kb", "mb", "gb", "k", "kib", "mib", "gib", "x", "px", "sec", "secs", "min":
		return true
	}
	return false
}

// telling reports whether a three-digit number after this text says what went
// wrong: a status or code.
func telling(before string) bool {
	b := strings.ToLower(strings.TrimRight(before, " :=([#"))
	for _, word := range []string{"status", "code", "http", "http/<n>", "error", "http error", "response", "returned", "ステータス", "コード"} {
		if strings.HasSuffix(b, word) {
			return true
		}
	}
	return false
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// isHex reports a hash, an address in memory or another id in hex: seven digits
// or more with letters and figures among them, or 0x and digits.
func isHex(w string) bool {
	if rest, ok := strings.CutPrefix(w, "0x"); ok {
		return rest != "" && allHex(rest)
	}
	rest := strings.TrimPrefix(w, "sha256:")
	return len(rest) >= 7 && allHex(rest) && strings.ContainsAny(rest, "0123456789") && (len(rest) >= 16 || strings.ContainsAny(rest, "abcdefABCDEF"))
}

func allHex(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}

func IsUUID(w string) bool {
	if len(w) != 36 || w[8] != '-' || w[13] != '-' || w[18] != '-' || w[23] != '-' {
		return false
	}
	return allHex(strings.ReplaceAll(w, "-", ""))
}

func isMail(w string) bool {
	name, host, ok := strings.Cut(w, "@")
	return ok && name != "" && strings.Contains(host, ".") && !strings.ContainsAny(w, "/\\:")
}

// isAddr reports an IP address, with or without port, and localhost or another
// host with a port.
func isAddr(w string) bool {
	if strings.HasPrefix(w, "[::") || strings.HasPrefix(w, ":::") && isDigits(w[3:]) {
		return true
	}
	host, port, has := w, "", false
	if i := strings.LastIndexByte(w, ':'); i > 0 {
		host, port, has = w[:i], w[i+1:], true
		if !isDigits(port) || len(port) > 5 {
			return false
		}
	}
	if host == "localhost" || host == "::1" || host == ":" {
		return true
	}
	if strings.Count(host, ".") == 3 && isDigits(strings.ReplaceAll(host, ".", "")) {
		return true
	}
	// host.name:443, but not main.go:443
	if has && len(port) >= 2 && strings.Count(host, ".") >= 2 && !strings.ContainsAny(host, "/\\") {
		return true
	}
	return false
}

// isTime reports dates and times of day: 2026-11-28, 2026-11-28T06:45:10Z,
// 06:45:10.123, 2026/11/28.
func isTime(w string) bool {
	digits, colons, seps := 0, 0, 0
	for i := range len(w) {
		switch c := w[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c == ':':
			colons++
		case c == '-' || c == '/':
			seps++
		case c == 'T' || c == 'Z' || c == '.' || c == '+' || c == ',':
		default:
			return false
		}
	}
	return digits >= 6 && (colons >= 2 && w[0] >= '0' && w[0] <= '9' || seps == 2 && colons == 0 && digits == 8 || seps >= 2 && colons >= 1)
}

// isPath reports a place in a file system: with a separator, or a file's name
// with a line.
func isPath(w string) bool {
	if len(w) > 2 && w[1] == ':' && (w[2] == '\\' || w[2] == '/') {
		return true
	}
	if strings.HasPrefix(w, "~/") || strings.HasPrefix(w, "./") || strings.HasPrefix(w, "../") || strings.HasPrefix(w, `.\`) || strings.HasPrefix(w, `\\`) {
		return true
	}
	if strings.HasPrefix(w, "/") && len(w) > 1 && (isWordByte(w[1]) || w[1] == '.' || w[1] == '@' || w[1] == '<') {
		return true
	}
	if strings.HasPrefix(w, "@") && strings.Count(w, "/") == 1 {
		return false // a scoped package's name
	}
	if i := strings.IndexAny(w, `/\`); i > 0 {
		// yes/no and I/O are no paths; a/b/c, x/y.go and src\main are
		if strings.Count(w, "/")+strings.Count(w, `\`) >= 2 || fileName(w[i+1:]) || w[i] == '\\' {
			return true
		}
		return i > 2 && len(w)-i > 3 && strings.HasPrefix(w, "internal/")
	}
	name, rest, ok := strings.Cut(w, ":")
	if ok && fileName(name) && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
		return true
	}
	if i := strings.IndexByte(w, '('); i > 0 && fileName(w[:i]) && i+1 < len(w) && w[i+1] >= '0' && w[i+1] <= '9' {
		return true // main.ts(12,5)
	}
	return fileName(w)
}

// fileName reports a name with an extension that source and data files have.
func fileName(w string) bool {
	w, _, _ = strings.Cut(w, ":")
	w, _, _ = strings.Cut(w, "(")
	i := strings.LastIndexByte(w, '.')
	if i <= 0 || i+1 == len(w) {
		return false
	}
	switch strings.ToLower(w[i+1:]) {
	case "go", "mod", "sum", "js", "mjs", "cjs", "ts", "mts", "cts", "jsx", "tsx", "vue", "svelte", "py", "pyi", "ipynb",
		"rs", "c", "h", "cc", "cpp", "cxx", "hpp", "o", "so", "a", "java", "kt", "kts", "gradle", "scala", "rb", "php", "pl",
		"sh", "bash", "zsh", "ps1", "bat", "cs", "fs", "swift", "m", "lua", "ex", "exs", "erl", "hs", "ml", "zig", "dart",
		"json", "jsonl", "yaml", "yml", "toml", "xml", "html", "css", "scss", "md", "txt", "csv", "sql", "db", "lock",
		"log", "cfg", "conf", "ini", "env", "proto", "tf", "dockerfile", "mk", "cmake", "png", "jpg", "svg", "zip", "gz", "tar", "whl", "class", "jar", "exe", "dll":
		return true
	}
	return false
}

// stripTerminal takes out colours and other commands to a terminal.
func stripTerminal(s string) string {
	if !strings.ContainsAny(s, "\x1b\r\x07\x08") {
		return s
	}
	if i := strings.LastIndexByte(strings.TrimRight(s, "\r"), '\r'); i >= 0 {
		s = s[i+1:] // a progress line drawn over itself: what was left standing
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == 0x1b && i+1 < len(s) && s[i+1] == '[':
			for i += 2; i < len(s) && (s[i] < 0x40 || s[i] > 0x7e); i++ {
			}
		case c == 0x1b && i+1 < len(s) && s[i+1] == ']':
			for i += 2; i < len(s) && s[i] != 0x07 && s[i] != 0x1b; i++ {
			}
		case c == 0x1b, c == '\r', c == 0x07, c == 0x08:
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Quoted are what stands in quotes in a text.
func Quoted(s string) []string {
	var out []string
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if closing(r) != 0 {
			if end := quoteEnd(s, i, r, size); end > 0 {
				out = append(out, s[i+size:end])
				i = end
			}
		}
		i += size
	}
	return out
}
