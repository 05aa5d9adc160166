package suspect

import (
	"encoding/base64"
	"unicode/utf8"
)

// Levels is how often [Plain] is applied to what it made: JSON in JSON in JSON.
const Levels = 3

// Plain is s as a person would read it: without the escape sequences of
// terminals, which can stand in the middle of a token, and with one level of
// backslash escapes resolved. offsets[i] is where the view's byte i begins in s,
// and one more entry the end. ok is false when s is plain already.
func Plain(s string) (view string, offsets []int, ok bool) {
	first := -1
	for i := range len(s) {
		if b := s[i]; b == 0x1b || b == '\\' && i+1 < len(s) && escapable(s[i+1]) {
			first = i
			break
		}
	}
	if first < 0 {
		return s, nil, false
	}
	out := make([]byte, 0, len(s))
	offsets = make([]int, 0, len(s)+1)
	add := func(at int, b ...byte) {
		for range b {
			offsets = append(offsets, at)
		}
		out = append(out, b...)
	}
	for i := 0; i < len(s); {
		b := s[i]
		switch {
		case i < first:
			add(i, b)
			i++
		case b == 0x1b:
			i += sequence(s[i:])
		case b == '\\' && i+1 < len(s) && escapable(s[i+1]):
			n := 2
			switch e := s[i+1]; e {
			case 'n':
				add(i, '\n')
			case 'r':
				add(i, '\r')
			case 't':
				add(i, '\t')
			case 'b', 'f':
				add(i, ' ')
			case 'u', 'x', 'e', '0':
				r, size := codePoint(s[i:])
				n = size
				if size == 0 {
					n = 1
					add(i, b)
				} else {
					var buf [utf8.UTFMax]byte
					add(i, buf[:utf8.EncodeRune(buf[:], r)]...)
				}
			default:
				add(i, e)
			}
			i += n
		default:
			add(i, b)
			i++
		}
	}
	return string(out), append(offsets, len(s)), true
}

func escapable(b byte) bool {
	switch b {
	case '"', '\'', '\\', '/', 'n', 'r', 't', 'b', 'f', 'u', 'x', 'e', '0':
		return true
	}
	return false
}

// codePoint reads \uXXXX, \xXX, \e and \033, as programs print them.
func codePoint(s string) (r rune, size int) {
	digits, base := 0, rune(16)
	switch s[1] {
	case 'u':
		digits = 4
	case 'x':
		digits = 2
	case 'e':
		return 0x1b, 2
	case '0':
		if len(s) >= 4 && s[2] == '3' && s[3] == '3' {
			return 0x1b, 4
		}
		return 0, 0
	}
	if len(s) < 2+digits {
		return 0, 0
	}
	for _, b := range []byte(s[2 : 2+digits]) {
		switch {
		case b >= '0' && b <= '9':
			b -= '0'
		case b|0x20 >= 'a' && b|0x20 <= 'f':
			b = b | 0x20 - 'a' + 10
		default:
			return 0, 0
		}
		r = r*base + rune(b)
	}
	return r, 2 + digits
}

// sequence is the length of the terminal's escape sequence at the start of s
// (ECMA-48: CSI, OSC and its like, and the short ones).
func sequence(s string) int {
	if len(s) < 2 {
		return 1
	}
	switch s[1] {
	case '[':
		for i := 2; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 || s[i] > 0x7e {
				return i
			}
		}
		return len(s)
	case ']', 'P', '^', '_', 'X':
		for i := 2; i < len(s) && i < 4096; i++ {
			if s[i] == 7 {
				return i + 1
			}
			if s[i] == 0x1b {
				if i+1 < len(s) && s[i+1] == '\\' {
					return i + 2
				}
				return i
			}
		}
		return 2
	}
	if s[1] >= 0x20 && s[1] <= 0x2f {
		return min(3, len(s))
	}
	return 2
}

const (
	// A token of 16 characters and the name before it come to more than this.
	minEncoded = 24
	maxEncoded = 64 << 10
)

// Encoded yields the texts that stand in s as base64, with their places. What
// decodes to anything but text is left out.
func Encoded(s string, yield func(start, end int, text string) bool) {
	for i := 0; i < len(s); {
		if !base64Byte(s[i]) {
			i++
			continue
		}
		start, mixed := i, 0
		for ; i < len(s) && base64Byte(s[i]); i++ {
			switch b := s[i]; {
			case b >= 'a' && b <= 'z':
				mixed |= 1
			case b >= 'A' && b <= 'Z':
				mixed |= 2
			}
		}
		if i-start < minEncoded || mixed != 3 {
			continue
		}
		// A path may stand before it, and a name and an equals sign.
		for _, from := range starts(s[start:i]) {
			if text, ok := decode(s[start+from : i]); ok {
				if !yield(start+from, i, text) {
					return
				}
				break
			}
		}
	}
}

func base64Byte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' ||
		b == '+' || b == '/' || b == '-' || b == '_' || b == '='
}

// starts are where an encoded text may begin in a run: at its beginning, and
// after an equals sign that something follows.
func starts(run string) []int {
	out := []int{0}
	for i := 1; i < len(run)-minEncoded && len(out) < 4; i++ {
		if run[i-1] == '=' && run[i] != '=' {
			out = append(out, i)
		}
	}
	return out
}

func decode(run string) (string, bool) {
	for len(run) > 0 && run[len(run)-1] == '=' {
		run = run[:len(run)-1]
	}
	run = run[:min(len(run), maxEncoded)]
	if len(run)%4 == 1 {
		run = run[:len(run)-1]
	}
	enc := base64.RawStdEncoding
	for i := range len(run) {
		if run[i] == '-' || run[i] == '_' {
			enc = base64.RawURLEncoding
			break
		}
	}
	// The first few characters tell bytes from text.
	head := run[:min(len(run), minEncoded)]
	if out, err := enc.DecodeString(head[:len(head)/4*4]); err != nil || !printable(out) {
		return "", false
	}
	out, err := enc.DecodeString(run)
	if err != nil || !printable(out) {
		return "", false
	}
	return string(out), true
}

func printable(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' || c > 0x7e {
			return false
		}
	}
	return len(b) > 0
}
