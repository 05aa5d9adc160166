// Package filter reads programs for sed and awk, and says of one whether it does
// more than filter: runs commands, reads other files, writes.
//
// It is a function of text: it touches no file, writes none and takes no lock.
package filter

import "strings"

// Sed says what a program for sed does beyond choosing, printing and replacing,
// "" where it does nothing else; file is one that it writes.
func Sed(program string) (what, file string) {
	// Programs differ in whether a delimiter in brackets ends a pattern: what is
	// well in one reading only is not well.
	s := sedScript{s: program, brackets: true}
	bad, what, file := s.read()
	if bad == "" && strings.Contains(program, "[") {
		s = sedScript{s: program}
		_, what, file = s.read()
	}
	return what, file
}

// sedScript reads a program for sed.
type sedScript struct {
	s        string
	i        int
	brackets bool
}

func (p *sedScript) end() bool { return p.i >= len(p.s) }

func (p *sedScript) peek() byte {
	if p.end() {
		return 0
	}
	return p.s[p.i]
}

func (p *sedScript) skip(set string) {
	for !p.end() && strings.IndexByte(set, p.s[p.i]) >= 0 {
		p.i++
	}
}

// delimited skips a text up to the delimiter c.
func (p *sedScript) delimited(c byte) bool {
	class := false
	for !p.end() {
		switch b := p.s[p.i]; {
		case b == '\\':
			p.i++
		case b == '[' && !class && p.brackets:
			class = true
			if p.i+1 < len(p.s) && p.s[p.i+1] == '^' {
				p.i++
			}
			if p.i+1 < len(p.s) && p.s[p.i+1] == ']' {
				p.i++
			}
		case b == ']' && class:
			class = false
		case b == c && !class:
			p.i++
			return true
		case b == '\n' && class:
			class = false
		}
		p.i++
	}
	return false
}

// plainDelimited is delimited where brackets mean nothing.
func (p *sedScript) plainDelimited(c byte) bool {
	for !p.end() {
		b := p.s[p.i]
		p.i++
		if b == '\\' && !p.end() {
			p.i++
			continue
		}
		if b == c {
			return true
		}
	}
	return false
}

func (p *sedScript) line() string {
	start := p.i
	for !p.end() && p.s[p.i] != '\n' {
		p.i++
	}
	return strings.TrimSpace(p.s[start:p.i])
}

const sedUnclear = "the program for sed cannot be read"

// read returns what is wrong with the program, with the file that it writes.
func (p *sedScript) read() (bad, what, file string) {
	for {
		p.skip(" \t\n;")
		if p.end() {
			return "", "", ""
		}
		p.address()
		p.skip(" \t")
		if p.peek() == ',' {
			p.i++
			p.skip(" \t")
			p.address()
		}
		p.skip(" \t!")
		if p.end() { // a pattern that has no end in an address, too
			return "?", sedUnclear, ""
		}
		c := p.s[p.i]
		p.i++
		if bad, what, file := p.command(c); bad != "" {
			return bad, what, file
		}
	}
}

// address skips an address, one whose pattern has no end to the end of the text.
func (p *sedScript) address() {
	switch c := p.peek(); {
	case c == '/':
		p.i++
		p.delimited('/')
		p.skip("IM")
	case c == '\\' && p.i+1 < len(p.s):
		d := p.s[p.i+1]
		p.i += 2
		p.delimited(d)
		p.skip("IM")
	default:
		p.skip("0123456789$~+")
	}
}

func (p *sedScript) command(c byte) (bad, what, file string) {
	switch c {
	case '{', '}', '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
	case 'q', 'Q', 'l', 'L':
		p.skip(" 0123456789")
	case ':', 'b', 't', 'T', 'v':
		if !p.label() {
			return "?", sedUnclear, ""
		}
	case '#':
		p.line()
	case 'a', 'i', 'c':
		p.text()
	case 'y':
		d := p.peek()
		p.i++
		from := p.plainDelimited(d)
		if to := p.plainDelimited(d); !from || !to {
			return "?", sedUnclear, ""
		}
	case 's':
		return p.substitute()
	case 'r', 'R':
		return "r", "its program reads another file", ""
	case 'w', 'W':
		f := p.line()
		return "w", "its program writes a file", f
	case 'e':
		return "e", "its program runs commands", ""
	default:
		return "?", sedUnclear, ""
	}
	return "", "", ""
}

// label skips a label, or a version. For some it ends at a blank, and what is behind
// that is a command; for others it goes to the end of the line: only where nothing
// else is on the line is it the same for both.
func (p *sedScript) label() bool {
	p.skip(" \t")
	for !p.end() && (letter(p.s[p.i]) || p.s[p.i] >= '0' && p.s[p.i] <= '9' || p.s[p.i] == '-' || p.s[p.i] == '.') {
		p.i++
	}
	p.skip(" \t")
	return p.end() || strings.IndexByte("\n;}", p.s[p.i]) >= 0
}

// text skips the text of a, i and c: to the end of a line that does not end with
// a backslash.
func (p *sedScript) text() {
	for !p.end() {
		b := p.s[p.i]
		p.i++
		if b == '\\' && !p.end() {
			p.i++
			continue
		}
		if b == '\n' {
			return
		}
	}
}

func (p *sedScript) substitute() (bad, what, file string) {
	d := p.peek()
	if d == 0 || d == '\n' || d == '\\' {
		return "?", sedUnclear, ""
	}
	p.i++
	if !p.delimited(d) || !p.plainDelimited(d) {
		return "?", sedUnclear, ""
	}
	for !p.end() {
		switch c := p.s[p.i]; {
		case c == 'e':
			return "e", "its program runs what it replaces (the flag e)", ""
		case c == 'w':
			p.i++
			return "w", "its program writes a file (the flag w)", p.line()
		case strings.IndexByte("gpiImM0123456789", c) >= 0:
			p.i++
		case strings.IndexByte(" \t;\n}#", c) >= 0:
			return "", "", ""
		default:
			return "?", sedUnclear, ""
		}
	}
	return "", "", ""
}

// printed reports whether a file of awk's is where a program prints anyway.
func printed(file string) bool {
	return file == "/dev/stderr" || file == "/dev/stdout" || file == "/dev/null"
}

// Awk says what a program for awk does beyond filtering and calculating, "" where
// it does nothing else; file is one that it writes, where that is told.
func Awk(s string) (what, file string) {
	depth := 0 // of round brackets, in which > compares
	prints := false
	last := byte('\n') // the last byte that counted: whether / begins an expression
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '#':
			for i < len(s) && s[i] != '\n' {
				i++
			}
			last, prints = '\n', false
		case c == '"':
			end := closing(s, i+1, '"')
			if end < 0 {
				return "the program for awk cannot be read", ""
			}
			i, last = end, '"'
		case c == '/' && !operandEnd(last) && last != '?':
			end := closing(s, i+1, '/')
			if end < 0 {
				return "the program for awk cannot be read", ""
			}
			if in := inBrackets(s, i+1); in != end {
				return "the program for awk can be read in two ways", ""
			}
			i, last = end, '/'
		case c == '/' && last == '?':
			return "the program for awk can be read in two ways", ""
		case (c == '+' || c == '-') && i+1 < len(s) && s[i+1] == c:
			i++
			last = '?'
		case c == '|' && i+1 < len(s) && s[i+1] == '|':
			i++
			last = '|'
		case c == '|':
			return "its program gives text to a command, or takes it from one", ""
		case c == '>' && prints && depth == 0:
			rest := strings.TrimLeft(strings.TrimPrefix(s[i+1:], ">"), " \t")
			if strings.HasPrefix(rest, `"`) {
				if end := closing(rest, 1, '"'); end > 0 {
					if left := strings.TrimLeft(rest[end+1:], " \t"); (left == "" || strings.IndexByte(";}\n#", left[0]) >= 0) && printed(rest[1:end]) {
						i, last = len(s)-len(rest)+end, '"'
						break
					}
					return "its program writes a file", rest[1:end]
				}
			}
			return "its program writes a file", ""
		case c == '@':
			return "its program loads or calls what is only known when it runs", ""
		case c == '(' || c == '[':
			depth++
			last = c
		case c == ')' || c == ']':
			depth = max(depth-1, 0)
			last = c
		case c == ';' || c == '\n' || c == '{' || c == '}':
			prints, depth, last = false, 0, c
		case letter(c):
			start := i
			for i+1 < len(s) && (letter(s[i+1]) || s[i+1] >= '0' && s[i+1] <= '9') {
				i++
			}
			switch word := s[start : i+1]; word {
			case "system", "getline", "load", "ENVIRON", "PROCINFO", "ARGV", "ARGC", "FUNCTAB", "SYMTAB", "include", "stopme":
				if word == "ENVIRON" {
					return "its program reads the environment, secrets among it", ""
				}
				return "its program uses " + word + ", which runs commands or reads other files", ""
			case "print", "printf":
				prints = true
			}
			last = 'a'
			switch s[start : i+1] {
			case "return", "print", "printf", "in", "case", "else", "do":
				last = '('
			}
		case c == ' ' || c == '\t' || c == '\r':
		case c == '\\':
			// The line goes on, whatever is being looked at.
			i += len(s[i+1:]) - len(strings.TrimPrefix(strings.TrimPrefix(s[i+1:], "\r"), "\n"))
		default:
			last = c
		}
	}
	return "", ""
}

func letter(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// operandEnd reports whether a slash after it divides.
func operandEnd(c byte) bool {
	return c == ')' || c == ']' || c == 'a' || c == '"' || c == '/' || c >= '0' && c <= '9' || c == '$'
}

// closing is where a quoted text ends, -1 where it does not.
func closing(s string, i int, quote byte) int {
	for ; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case quote:
			return i
		case '\n':
			return -1
		}
	}
	return -1
}

// inBrackets is closing for a pattern in which a slash between brackets does not
// end it.
func inBrackets(s string, i int) int {
	class := false
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '[' && !class:
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			return i
		}
	}
	return -1
}
