package term

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SafeText makes foreign text safe to print: what a terminal would act on, and
// what an eye cannot see, is shown as an escape instead. Newlines and tabs
// stay; "\r\n" becomes "\n". Escaped are control characters (also the
// eight-bit ones), bytes that are not UTF-8, zero-width and invisible
// characters, and those that turn the direction of writing.
func SafeText(s string) string { return safe(s, true) }

// SafeLine is SafeText for a single line: newlines and tabs are escaped too.
func SafeLine(s string) string { return safe(s, false) }

func safe(s string, lines bool) string {
	if clean(s, lines) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case lines && (r == '\n' || r == '\t'):
			b.WriteByte(s[i])
		case lines && r == '\r' && strings.HasPrefix(s[i+1:], "\n"):
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < 0x100 && hidden(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case hidden(r):
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// clean is the quick test for text that needs nothing.
func clean(s string, lines bool) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x80 || c == 0x7f || c < 0x20 && !(lines && (c == '\n' || c == '\t')) {
			return false
		}
	}
	return true
}

// hidden tells whether r is acted on or not seen. Zero-width joiners and
// variation selectors are hidden too: emoji that need them fall apart, which is
// better than two names that look the same.
func hidden(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r < 0xa0, r == 0xad:
		return true
	case r < 0x100:
		return false
	case r == 0x34f, r == 0x61c, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164, r == 0xffa0:
		return true
	case r >= 0x180b && r <= 0x180f, r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f:
		return true
	case r >= 0xfe00 && r <= 0xfe0f, r == 0xfeff, r >= 0xfff0 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r)
}
