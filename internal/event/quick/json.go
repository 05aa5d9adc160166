package quick

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// MaxField is how long a string of an event may be, in bytes; longer ones
	// are cut and described in Cut.
	MaxField = 16 << 10
	// MaxLine is how long an event's line may be, in bytes. Data that makes it
	// longer is left out whole and described in Cut.
	MaxLine = 1 << 20
	// maxDepth is how deep data may be nested. Nothing that a client sends is
	// near it, and a reader's stack is not ours to fill.
	maxDepth = 500
)

// ErrJSON is the error of data that is not one JSON value.
var ErrJSON = errors.New("not a JSON value")

// Cut describes a field, after redaction, of which an event holds only the
// beginning.
type Cut struct {
	At     string // JSON pointer
	SHA256 string
	Len    int // bytes
}

// Cleaner rewrites JSON in one pass: compact, with its strings as they may be
// written. It needs no reflection, because it runs at every tool call.
type Cleaner struct {
	// Redact returns what may be written of a string; key is the name that it
	// goes by, empty for one without and for names themselves.
	Redact func(key, s string) string
	// Fields is what the outermost object must hold.
	Fields []Field
	// Cuts are the strings that were too long.
	Cuts []Cut
	// Mark begins what stands in a string for a part that was left out when it
	// was read: the mark, the length of the whole, the length of what is there
	// and the hash of the whole or -, each in bytes, and ]. "" is none.
	Mark string

	src   string
	at    int
	path  []string // names and indexes of the value being read
	depth int
	want  Field // kind of the value being read
}

// Value appends src, cleaned, to dst. The pointers of its cuts begin with at.
// The error is [ErrJSON] with the place.
func (c *Cleaner) Value(dst []byte, at, src string) ([]byte, error) {
	c.src, c.at, c.depth = src, 0, 0
	c.path = append(c.path[:0], at)
	c.want = Field{Kind: Any}
	if c.Fields != nil {
		c.want = Field{Kind: Object, Of: c.Fields}
	}
	dst, err := c.value(dst, "")
	if err != nil {
		return dst, err
	}
	if c.space(); c.at < len(c.src) {
		return dst, c.bad("something follows the value")
	}
	return dst, nil
}

type jsonError struct {
	what string
	at   int
}

func (e *jsonError) Error() string {
	return ErrJSON.Error() + ": " + e.what + " at byte " + strconv.Itoa(e.at)
}
func (e *jsonError) Unwrap() error { return ErrJSON }

func (c *Cleaner) bad(what string) error { return &jsonError{what, c.at} }

func (c *Cleaner) space() {
	for c.at < len(c.src) {
		switch c.src[c.at] {
		case ' ', '\t', '\r', '\n':
			c.at++
		default:
			return
		}
	}
}

func (c *Cleaner) value(dst []byte, key string) ([]byte, error) {
	c.space()
	if c.at == len(c.src) {
		return dst, c.bad("it ends too early")
	}
	if c.want.Kind != Any && !c.want.fits(c.src[c.at:]) {
		return dst, c.bad(c.pointer() + " is not " + c.want.what())
	}
	switch b := c.src[c.at]; b {
	case '{', '[':
		if c.depth++; c.depth > maxDepth {
			return dst, c.bad("nested too deeply")
		}
		c.at++
		var err error
		if b == '{' {
			dst, err = c.object(dst)
		} else {
			dst, err = c.array(dst, key)
		}
		c.depth--
		return dst, err
	case '"':
		s, err := c.text()
		if err != nil {
			return dst, err
		}
		return AppendString(dst, c.Text("", key, s)), nil
	case 't':
		return c.word(dst, "true")
	case 'f':
		return c.word(dst, "false")
	case 'n':
		return c.word(dst, "null")
	}
	return c.number(dst)
}

func (c *Cleaner) object(dst []byte) ([]byte, error) {
	dst = append(dst, '{')
	fields := c.want.Of
	for n := 0; ; n++ {
		if c.space(); c.at == len(c.src) {
			return dst, c.bad("an object has no end")
		}
		if c.src[c.at] == '}' && n == 0 {
			c.at++
			return append(dst, '}'), nil
		}
		if n > 0 {
			if c.src[c.at] == '}' {
				c.at++
				return append(dst, '}'), nil
			}
			if c.src[c.at] != ',' {
				return dst, c.bad("a comma or } is missing")
			}
			c.at++
			dst = append(dst, ',')
			c.space()
		}
		if c.at == len(c.src) || c.src[c.at] != '"' {
			return dst, c.bad("a name is missing")
		}
		name, err := c.text()
		if err != nil {
			return dst, err
		}
		if c.Redact != nil {
			name = c.Redact("", name)
		}
		if c.space(); c.at == len(c.src) || c.src[c.at] != ':' {
			return dst, c.bad("a colon is missing")
		}
		c.at++
		dst = append(AppendString(dst, name), ':')
		c.path = append(c.path, name)
		if f, ok := find(fields, name); ok {
			c.want = f
		} else {
			c.want = Field{Kind: Any}
		}
		if dst, err = c.value(dst, name); err != nil {
			return dst, err
		}
		c.path = c.path[:len(c.path)-1]
	}
}

func (c *Cleaner) array(dst []byte, key string) ([]byte, error) {
	dst = append(dst, '[')
	element := Field{Kind: Any}
	switch c.want.Kind {
	case Objects:
		element = Field{Kind: Object, Of: c.want.Of}
	case Texts:
		element.Kind = Text
	}
	for n := 0; ; n++ {
		if c.space(); c.at == len(c.src) {
			return dst, c.bad("an array has no end")
		}
		if c.src[c.at] == ']' && n == 0 {
			c.at++
			return append(dst, ']'), nil
		}
		if n > 0 {
			if c.src[c.at] == ']' {
				c.at++
				return append(dst, ']'), nil
			}
			if c.src[c.at] != ',' {
				return dst, c.bad("a comma or ] is missing")
			}
			c.at++
			dst = append(dst, ',')
		}
		c.path = append(c.path, strconv.Itoa(n))
		c.want = element
		var err error
		if dst, err = c.value(dst, key); err != nil {
			return dst, err
		}
		c.path = c.path[:len(c.path)-1]
	}
}

func (c *Cleaner) word(dst []byte, w string) ([]byte, error) {
	if len(c.src)-c.at < len(w) || c.src[c.at:c.at+len(w)] != w {
		return dst, c.bad("neither a value nor an end")
	}
	c.at += len(w)
	return append(dst, w...), nil
}

// number copies a number as it was written (RFC 8259, section 6).
func (c *Cleaner) number(dst []byte) ([]byte, error) {
	from := c.at
	digits := func() int {
		n := c.at
		for c.at < len(c.src) && c.src[c.at] >= '0' && c.src[c.at] <= '9' {
			c.at++
		}
		return c.at - n
	}
	is := func(set ...byte) bool {
		for _, b := range set {
			if c.at < len(c.src) && c.src[c.at] == b {
				c.at++
				return true
			}
		}
		return false
	}
	is('-')
	lead := c.at
	if n := digits(); n == 0 || n > 1 && c.src[lead] == '0' {
		return dst, c.bad("neither a value nor an end")
	}
	if is('.') && digits() == 0 {
		return dst, c.bad("a number has no digits after its point")
	}
	if is('e', 'E') {
		is('+', '-')
		if digits() == 0 {
			return dst, c.bad("a number has no exponent")
		}
	}
	return append(dst, c.src[from:c.at]...), nil
}

// text reads a string, whose opening quote is next.
func (c *Cleaner) text() (string, error) {
	c.at++
	from := c.at
	for c.at < len(c.src) {
		switch b := c.src[c.at]; {
		case b == '"':
			c.at++
			return valid(c.src[from : c.at-1]), nil
		case b == '\\':
			return c.escaped(from)
		case b < ' ':
			return "", c.bad("a control character in a string")
		}
		c.at++
	}
	return "", c.bad("a string has no end")
}

// escaped goes on with a string at its first backslash.
func (c *Cleaner) escaped(from int) (string, error) {
	end := c.at // of the string as it stands, which is no shorter than what it says
	for end < len(c.src) && c.src[end] != '"' {
		if c.src[end] == '\\' {
			end++
		}
		end++
	}
	out := append(make([]byte, 0, min(end, len(c.src))-from), c.src[from:c.at]...)
	for c.at < len(c.src) {
		b := c.src[c.at]
		c.at++
		switch {
		case b == '"':
			return valid(string(out)), nil
		case b < ' ':
			return "", c.bad("a control character in a string")
		case b != '\\':
			out = append(out, b)
			continue
		}
		if c.at == len(c.src) {
			break
		}
		b = c.src[c.at]
		c.at++
		switch b {
		case '"', '\\', '/':
			out = append(out, b)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, ok := c.hex4()
			if !ok {
				return "", c.bad("an escape is no \\u and four digits")
			}
			if r >= 0xd800 && r < 0xdc00 && c.at+1 < len(c.src) && c.src[c.at] == '\\' && c.src[c.at+1] == 'u' {
				back := c.at
				c.at += 2
				if low, ok := c.hex4(); ok && low >= 0xdc00 && low < 0xe000 {
					r = (r-0xd800)<<10 | (low - 0xdc00) + 0x10000
				} else {
					c.at = back
				}
			}
			out = utf8.AppendRune(out, r) // half a pair becomes U+FFFD
		default:
			return "", c.bad("an unknown escape in a string")
		}
	}
	return "", c.bad("a string has no end")
}

func (c *Cleaner) hex4() (rune, bool) {
	if len(c.src)-c.at < 4 {
		return 0, false
	}
	var r rune
	for _, b := range []byte(c.src[c.at : c.at+4]) {
		switch {
		case b >= '0' && b <= '9':
			b -= '0'
		case b >= 'a' && b <= 'f':
			b -= 'a' - 10
		case b >= 'A' && b <= 'F':
			b -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(b)
	}
	c.at += 4
	return r, true
}

// Text is a string as it may be written: redacted, then cut. The pointer of a
// cut is at, or with "" the place that is being read.
func (c *Cleaner) Text(at, key, s string) string {
	var whole Cut
	if c.Mark != "" {
		s, whole = unmark(c.Mark, s)
	}
	if c.Redact != nil {
		s = c.Redact(key, s)
	}
	if len(s) <= MaxField && whole.Len == 0 {
		return s
	}
	if at == "" {
		at = c.pointer()
	}
	if whole.Len == 0 {
		whole = Whole(at, s)
	}
	whole.At = at
	c.Cuts = append(c.Cuts, whole)
	if len(s) <= MaxField {
		return s
	}
	end := MaxField
	for end > MaxField-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// unmark takes marks out of a string and says what the whole was: its length,
// and its hash where it is known of the whole and not of several parts alone.
func unmark(mark, s string) (string, Cut) {
	var whole Cut
	sum, parts, kept := "", 0, 0
	for {
		before, rest, ok := strings.Cut(s, mark)
		if !ok {
			break
		}
		text, after, ok := strings.Cut(rest, "]")
		if !ok {
			break // of a text that was cut once more
		}
		length, text, _ := strings.Cut(text, " ")
		here, hash, _ := strings.Cut(text, " ")
		n, err := strconv.Atoi(length)
		m, err2 := strconv.Atoi(here)
		if err != nil || err2 != nil || n < m {
			break
		}
		whole.Len += n - m
		sum, parts, kept = hash, parts+1, m
		s = before + after
	}
	if parts == 0 {
		return s, Cut{}
	}
	if parts == 1 && len(s) == kept && len(sum) == HashSize {
		whole.SHA256 = sum
	}
	whole.Len += len(s)
	return s, whole
}

// Whole is the description of a field that is cut or left out.
func Whole(at, s string) Cut {
	return Cut{At: at, SHA256: Hash([]byte(s)), Len: len(s)}
}

// pointer is the JSON pointer (RFC 6901) of the value being read.
func (c *Cleaner) pointer() string {
	out := []byte(c.path[0])
	for _, part := range c.path[1:] {
		out = append(out, '/')
		for i := range len(part) {
			switch part[i] {
			case '~':
				out = append(out, "~0"...)
			case '/':
				out = append(out, "~1"...)
			default:
				out = append(out, part[i])
			}
		}
	}
	return string(out)
}

// valid makes UTF-8 of what is none, as a JSON reader would.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	out := make([]byte, 0, len(s)+16)
	for _, r := range s {
		out = utf8.AppendRune(out, r)
	}
	return string(out)
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string: readable, UTF-8, on one line.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		b := s[i]
		if b < utf8.RuneSelf {
			if b >= ' ' && b != '"' && b != '\\' {
				i++
				continue
			}
			dst = append(dst, s[from:i]...)
			switch b {
			case '"', '\\':
				dst = append(dst, '\\', b)
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			case '\b':
				dst = append(dst, '\\', 'b')
			case '\f':
				dst = append(dst, '\\', 'f')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&15])
			}
			i++
			from = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			dst = append(append(dst, s[from:i]...), "\uFFFD"...)
			from = i + n
		case r == '\u2028' || r == '\u2029': // line ends to JavaScript
			dst = append(append(dst, s[from:i]...), '\\', 'u', '2', '0', '2', hexDigits[r&15])
			from = i + n
		}
		i += n
	}
	return append(append(dst, s[from:]...), '"')
}
