package names

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Match reports whether a shell may take a name for one that its pattern stands for:
// *, ?, what stands in brackets, and a backslash before a character that means itself.
// Which characters a range or a class has in it depends on the shell and on its
// language; where these disagree, it may. A pattern has no slash in it, and whether a
// leading dot is passed over is for the caller to know.
func Match(pattern, name string) bool {
	if odd(pattern) {
		return true
	}
	return match(pattern, name, utf8.DecodeRuneInString) || !ascii(name) && match(pattern, name, firstByte)
}

// firstByte is what a shell takes for a character whose language has bytes only.
func firstByte(s string) (rune, int) {
	if s[0] < utf8.RuneSelf {
		return rune(s[0]), 1
	}
	return utf8.RuneError, 1
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// odd reports whether a pattern has names of characters or kinds of equal ones in
// brackets, or a range with a class: where these end, shells find in their own ways.
func odd(pattern string) bool {
	for ; pattern != ""; pattern = pattern[1:] {
		if inner, _, ok := bracket(pattern); ok && (strings.Contains(inner, "[.") || strings.Contains(inner, "[=") || strings.Contains(inner, "-[:") || strings.Contains(inner, ":]-")) {
			return true
		}
		if pattern[0] == '\\' && len(pattern) > 1 {
			pattern = pattern[1:]
		}
	}
	return false
}

func match(pattern, name string, first func(string) (rune, int)) bool {
	// Of the stars only the last one needs another try: what stands before it fits.
	star, from := "", ""
	starred := false
	for {
		if strings.HasPrefix(pattern, "*") {
			pattern = strings.TrimLeft(pattern, "*")
			star, from, starred = pattern, name, true
		}
		if pattern == "" && name == "" {
			return true
		}
		if rest, left, ok := one(pattern, name, first); ok {
			pattern, name = rest, left
			continue
		}
		if !starred || from == "" {
			return false
		}
		_, n := first(from)
		from = from[n:]
		pattern, name = star, from
	}
}

// one takes a character off a name, and what fits it off a pattern without a star.
func one(pattern, name string, first func(string) (rune, int)) (rest, left string, ok bool) {
	if pattern == "" || name == "" {
		return "", "", false
	}
	r, n := first(name)
	if pattern[0] == '?' {
		return pattern[1:], name[n:], true
	}
	if inner, rest, ok := bracket(pattern); ok {
		return rest, name[n:], oneOf(inner, r)
	}
	if pattern[0] == '\\' && len(pattern) > 1 {
		pattern = pattern[1:]
	}
	return pattern[1:], name[1:], pattern[0] == name[0]
}

// Widen is a pattern with a question mark for what stands in brackets: it stands for
// whatever the pattern may stand for, and more.
func Widen(pattern string) string {
	var b strings.Builder
	for pattern != "" {
		if name, _, _ := strings.Cut(pattern, "/"); odd(name) {
			b.WriteByte('*')
			pattern = pattern[len(name):]
			continue
		}
		n := 1
		if pattern[0] == '\\' && len(pattern) > 1 {
			n = 2
		}
		switch _, rest, ok := bracket(pattern); {
		case ok:
			b.WriteByte('?')
			pattern = rest
			continue
		case pattern[0] == '[':
			b.WriteByte('\\') // it means itself
		}
		b.WriteString(pattern[:n])
		pattern = pattern[n:]
	}
	return b.String()
}

// bracket is what stands in the brackets that a pattern begins with, and what comes
// behind them; a bracket that is not closed means itself.
func bracket(pattern string) (inner, rest string, ok bool) {
	if !strings.HasPrefix(pattern, "[") {
		return "", "", false
	}
	i := 1
	if i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^') {
		i++
	}
	for first := i; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == ']' && i > first:
			return pattern[1:i], pattern[i+1:], true
		case c == '/':
			return "", "", false // no bracket reaches over names
		case c == '\\':
			i++
		case c == '[' && i+1 < len(pattern) && strings.IndexByte(":.=", pattern[i+1]) >= 0:
			if end := strings.Index(pattern[i+2:], pattern[i+1:i+2]+"]"); end >= 0 {
				i += 2 + end + 1
			}
		}
	}
	return "", "", false
}

// oneOf reports whether a character may be one of those in brackets.
func oneOf(inner string, r rune) bool {
	not := inner[0] == '!' || inner[0] == '^'
	if not {
		inner = inner[1:]
	}
	surely, maybe := false, r >= utf8.RuneSelf
	for inner != "" {
		if kind := class(inner); kind != "" {
			in, known := classed(kind[2:len(kind)-2], r)
			surely, maybe = surely || in && known, maybe || in || !known
			inner = inner[len(kind):]
			continue
		}
		var from rune
		from, inner = member(inner)
		if len(inner) < 2 || inner[0] != '-' {
			surely = surely || from == r
			maybe = maybe || fewer(from) == fewer(r)
			continue
		}
		var to rune
		to, inner = member(inner[1:])
		in := from <= r && r <= to
		surely = surely || in && r < utf8.RuneSelf && alike(from, r) && alike(r, to)
		// Languages put small and great letters in turn, and signs as they like.
		maybe = maybe || in || !alike(from, to) || !alike(from, r) || fewer(from) <= fewer(r) && fewer(r) <= fewer(to)
	}
	if not {
		return !surely
	}
	return surely || maybe
}

// fewer is a character without the difference of small and great.
func fewer(r rune) rune { return unicode.ToLower(r) }

// alike reports whether two characters are of one kind, so that what lies between
// them is told by their numbers.
func alike(a, b rune) bool {
	kind := func(r rune) int {
		switch {
		case r >= '0' && r <= '9':
			return 1
		case r >= 'a' && r <= 'z':
			return 2
		case r >= 'A' && r <= 'Z':
			return 3
		}
		return 4
	}
	return kind(a) == kind(b) && kind(a) != 4
}

// member is the character that the text in brackets begins with, and what follows.
func member(inner string) (rune, string) {
	if inner[0] == '\\' && len(inner) > 1 {
		inner = inner[1:]
	}
	r, n := utf8.DecodeRuneInString(inner)
	return r, inner[n:]
}

// class is the class that the text in brackets begins with, "" where it begins with
// none.
func class(inner string) string {
	if !strings.HasPrefix(inner, "[:") {
		return ""
	}
	end := strings.Index(inner[2:], ":]")
	if end < 0 {
		return ""
	}
	return inner[:2+end+2]
}

// classed reports whether a character of ASCII is of a class, and whether that is known:
// other languages have other letters.
func classed(name string, r rune) (in, known bool) {
	digit, lower, upper := r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z'
	graph := r > ' ' && r < 0x7f
	switch name {
	case "alpha":
		return lower || upper, true
	case "digit":
		return digit, true
	case "alnum":
		return digit || lower || upper, true
	case "lower":
		return lower, lower || !upper // nocaseglob takes both
	case "upper":
		return upper, upper || !lower
	case "punct":
		return graph && !digit && !lower && !upper, true
	case "graph":
		return graph, true
	case "print":
		return graph || r == ' ', true
	case "space", "blank", "cntrl":
		return r <= ' ' || r == 0x7f, true // no name that matters has one of them
	case "xdigit":
		return digit || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F', true
	case "word":
		return digit || lower || upper || r == '_', true
	}
	return false, false
}
