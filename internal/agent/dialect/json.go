package dialect

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"reprise/internal/event/quick"
)

// A small strict JSON reader. The hook program starts for each tool call, so
// what it links is paid for each time: encoding/json and the reflection behind
// it cost more than all the rest of a hook. It is stricter than encoding/json
// where a payload decides about a permission: a name that stands twice in one
// object is an error, because two readers would see two different payloads.

// Limits of a payload. A client's largest one is a tool's output.
const (
	MaxPayload = 32 << 20 // bytes
	maxDepth   = 256      // of nested arrays and objects
)

// ErrPayload is the error of a payload that is not what a client writes.
var ErrPayload = errors.New("hook payload")

type payloadError struct{ what string }

func (e *payloadError) Error() string { return "hook payload: " + e.what }
func (e *payloadError) Is(target error) bool {
	return target == ErrPayload
}

func bad(what string) error { return &payloadError{what} }

func badAt(pos int, what string) error {
	return bad("byte " + strconv.Itoa(pos) + ": " + what)
}

// value is the text of one JSON value that was checked, without the space
// around it. The zero value is a value that is not there.
type value []byte

type member struct {
	name string
	val  value
}

// object is the members of a JSON object, in their order.
type object []member

func (o object) get(name string) value {
	for _, m := range o {
		if m.name == name {
			return m.val
		}
	}
	return nil
}

// text is the member's string, "" where it is none.
func (o object) text(name string) string { return o.get(name).text() }

// first is the first of these members that is a string and not empty.
func (o object) first(names ...string) string {
	for _, n := range names {
		if s := o.text(n); s != "" {
			return s
		}
	}
	return ""
}

func (v value) is(first byte) bool { return len(v) > 0 && v[0] == first }

func (v value) text() string {
	if !v.is('"') {
		return ""
	}
	return unquote(v)
}

func (v value) isTrue() bool { return string(v) == "true" }

// integer is the number, if it is a whole one.
func (v value) integer() (int64, bool) {
	if len(v) == 0 || v[0] != '-' && (v[0] < '0' || v[0] > '9') {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// object is the members of the value, nil where it is no object.
func (v value) object() object {
	if !v.is('{') {
		return nil
	}
	var out object
	pos := skipSpace(v, 1)
	for v[pos] != '}' {
		end := skipString(v, pos)
		name := unquote(v[pos:end])
		pos = skipSpace(v, skipSpace(v, end)+1)
		end = skipValue(v, pos)
		out = append(out, member{name, v[pos:end]})
		if pos = skipSpace(v, end); v[pos] == ',' {
			pos = skipSpace(v, pos+1)
		}
	}
	return out
}

// items are the elements of the value, nil where it is no array.
func (v value) items() []value {
	if !v.is('[') {
		return nil
	}
	var out []value
	pos := skipSpace(v, 1)
	for v[pos] != ']' {
		end := skipValue(v, pos)
		out = append(out, v[pos:end])
		if pos = skipSpace(v, end); v[pos] == ',' {
			pos = skipSpace(v, pos+1)
		}
	}
	return out
}

// compact is the value without the space between its parts, on one line.
func (v value) compact() []byte {
	out := make([]byte, 0, len(v))
	for pos := 0; pos < len(v); {
		switch v[pos] {
		case ' ', '\t', '\r', '\n':
			pos++
		case '"':
			end := skipString(v, pos)
			out = append(out, v[pos:end]...)
			pos = end
		default:
			out = append(out, v[pos])
			pos++
		}
	}
	return out
}

// The skip functions walk over text that was checked before.

func skipSpace(b []byte, pos int) int {
	for pos < len(b) && (b[pos] == ' ' || b[pos] == '\n' || b[pos] == '\r' || b[pos] == '\t') {
		pos++
	}
	return pos
}

func skipString(b []byte, pos int) int {
	for pos++; ; pos++ {
		i := bytes.IndexByte(b[pos:], '"')
		pos += i
		slashes := 0
		for b[pos-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return pos + 1
		}
	}
}

func skipValue(b []byte, pos int) int {
	switch b[pos] {
	case '"':
		return skipString(b, pos)
	case '{', '[':
		depth := 0
		for {
			switch b[pos] {
			case '"':
				pos = skipString(b, pos)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return pos + 1
				}
			}
			pos++
		}
	}
	for pos < len(b) {
		switch b[pos] {
		case ',', '}', ']', ' ', '\t', '\r', '\n':
			return pos
		}
		pos++
	}
	return pos
}

// unquote is the text of a checked JSON string, quotes and all. Halves of
// surrogate pairs become U+FFFD.
func unquote(b []byte) string {
	b = b[1 : len(b)-1]
	if bytes.IndexByte(b, '\\') < 0 {
		return string(b)
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		if b[i] != '\\' {
			j := bytes.IndexByte(b[i:], '\\')
			if j < 0 {
				j = len(b) - i
			}
			out = append(out, b[i:i+j]...)
			i += j
			continue
		}
		c := b[i+1]
		i += 2
		switch c {
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
			r := hex4(b[i:])
			i += 4
			if utf16.IsSurrogate(r) {
				low := rune(-1)
				if i+6 <= len(b) && b[i] == '\\' && b[i+1] == 'u' {
					low = hex4(b[i+2:])
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

// hex4 reads four hexadecimal digits, -1 where there are none.
func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// checker goes once over a payload and says what is wrong with it.
type checker struct {
	b    []byte
	pos  int
	keys []value // names of the objects that are open, the innermost last
}

// readPayload checks a whole payload and returns the members of its object.
func readPayload(b []byte) (object, error) {
	if len(b) > MaxPayload {
		return nil, bad("it is larger than " + strconv.Itoa(MaxPayload>>20) + " MiB")
	}
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")) // PowerShell puts one before what it pipes
	if len(b) >= 2 && (b[0] == 0xff && b[1] == 0xfe || b[0] == 0xfe && b[1] == 0xff) {
		return nil, bad("it is UTF-16; clients write UTF-8")
	}
	c := checker{b: b}
	c.pos = skipSpace(b, 0)
	if c.pos == len(b) {
		return nil, bad("it is empty")
	}
	if b[c.pos] != '{' {
		return nil, bad("it is not a JSON object")
	}
	start := c.pos
	if err := c.value(0); err != nil {
		return nil, err
	}
	end := c.pos
	if c.pos = skipSpace(b, c.pos); c.pos < len(b) {
		return nil, badAt(c.pos, "text after the end of the JSON object")
	}
	return value(b[start:end]).object(), nil
}

func (c *checker) value(depth int) error {
	if c.pos >= len(c.b) {
		return c.cut()
	}
	switch ch := c.b[c.pos]; {
	case ch == '"':
		return c.string()
	case ch == '{' || ch == '[':
		if depth >= maxDepth {
			return badAt(c.pos, "nested deeper than "+strconv.Itoa(maxDepth)+" levels")
		}
		if ch == '{' {
			return c.object(depth)
		}
		return c.array(depth)
	case ch == '-' || ch >= '0' && ch <= '9':
		return c.number()
	case ch == 't':
		return c.word("true")
	case ch == 'f':
		return c.word("false")
	case ch == 'n':
		return c.word("null")
	}
	return badAt(c.pos, "not JSON")
}

func (c *checker) cut() error {
	return bad("it ends in the middle, after " + strconv.Itoa(len(c.b)) + " bytes")
}

// next skips space and returns the byte that follows.
func (c *checker) next() (byte, error) {
	c.pos = skipSpace(c.b, c.pos)
	if c.pos >= len(c.b) {
		return 0, c.cut()
	}
	return c.b[c.pos], nil
}

func (c *checker) object(depth int) error {
	c.pos++
	first := len(c.keys)
	defer func() { c.keys = c.keys[:first] }()
	var seen map[string]bool // for objects with many names
	ch, err := c.next()
	if err == nil && ch == '}' {
		c.pos++
		return nil
	}
	for ; err == nil; ch, err = c.next() {
		if ch != '"' {
			return badAt(c.pos, "a name was expected")
		}
		start := c.pos
		if err := c.string(); err != nil {
			return err
		}
		if err := c.name(c.b[start:c.pos], first, &seen); err != nil {
			return badAt(start, err.Error())
		}
		if ch, err = c.next(); err != nil {
			return err
		}
		if ch != ':' {
			return badAt(c.pos, "a colon was expected")
		}
		c.pos++
		if _, err = c.next(); err != nil {
			return err
		}
		if err := c.value(depth + 1); err != nil {
			return err
		}
		if ch, err = c.next(); err != nil {
			return err
		}
		c.pos++
		if ch == '}' {
			return nil
		}
		if ch != ',' {
			return badAt(c.pos-1, "a comma or the object's end was expected")
		}
	}
	return err
}

// name takes down a name of the innermost object.
func (c *checker) name(quoted value, first int, seen *map[string]bool) error {
	if bytes.IndexByte(quoted, '\\') >= 0 { // two spellings of one name
		quoted = quick.AppendString(nil, unquote(quoted))
	}
	twice := false
	switch n := len(c.keys) - first; {
	case n < 16:
		for _, k := range c.keys[first:] {
			twice = twice || bytes.Equal(k, quoted)
		}
	case *seen == nil:
		*seen = make(map[string]bool, 2*n)
		for _, k := range c.keys[first:] {
			(*seen)[string(k)] = true
		}
		fallthrough
	default:
		twice = (*seen)[string(quoted)]
		(*seen)[string(quoted)] = true
	}
	if twice {
		if len(quoted) > 80 {
			quoted = append(quoted[:80:80], "…\""...)
		}
		return errors.New("the name " + string(quoted) + " stands twice in one object")
	}
	c.keys = append(c.keys, quoted)
	return nil
}

func (c *checker) array(depth int) error {
	c.pos++
	ch, err := c.next()
	if err == nil && ch == ']' {
		c.pos++
		return nil
	}
	for ; err == nil; _, err = c.next() {
		if err := c.value(depth + 1); err != nil {
			return err
		}
		if ch, err = c.next(); err != nil {
			return err
		}
		c.pos++
		if ch == ']' {
			return nil
		}
		if ch != ',' {
			return badAt(c.pos-1, "a comma or the array's end was expected")
		}
	}
	return err
}

func (c *checker) string() error {
	b := c.b
	for c.pos++; c.pos < len(b); {
		switch ch := b[c.pos]; {
		case ch == '"':
			c.pos++
			return nil
		case ch == '\\':
			if c.pos+1 >= len(b) {
				return c.cut()
			}
			switch b[c.pos+1] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
				c.pos += 2
			case 'u':
				if c.pos+6 > len(b) {
					return c.cut()
				}
				if hex4(b[c.pos+2:]) < 0 {
					return badAt(c.pos, "\\u without four hexadecimal digits")
				}
				c.pos += 6
			default:
				return badAt(c.pos, "unknown escape in a string")
			}
		case ch < 0x20:
			return badAt(c.pos, "control character in a string")
		case ch < utf8.RuneSelf:
			c.pos++
		default:
			r, n := utf8.DecodeRune(b[c.pos:])
			if r == utf8.RuneError && n == 1 {
				if !utf8.FullRune(b[c.pos:]) {
					return c.cut()
				}
				return badAt(c.pos, "not valid UTF-8")
			}
			c.pos += n
		}
	}
	return c.cut()
}

func (c *checker) number() error {
	start := c.pos
	digits := func() bool {
		from := c.pos
		for c.pos < len(c.b) && c.b[c.pos] >= '0' && c.b[c.pos] <= '9' {
			c.pos++
		}
		return c.pos > from
	}
	at := func(set string) bool {
		return c.pos < len(c.b) && bytes.IndexByte([]byte(set), c.b[c.pos]) >= 0
	}
	if at("-") {
		c.pos++
	}
	lead := c.pos
	ok := digits() && (c.b[lead] != '0' || c.pos == lead+1)
	if ok && at(".") {
		c.pos++
		ok = digits()
	}
	if ok && at("eE") {
		if c.pos++; at("+-") {
			c.pos++
		}
		ok = digits()
	}
	if !ok {
		if c.pos >= len(c.b) {
			return c.cut()
		}
		return badAt(start, "not a number")
	}
	return nil
}

func (c *checker) word(w string) error {
	rest := c.b[c.pos:]
	if bytes.HasPrefix(rest, []byte(w)) {
		c.pos += len(w)
		return nil
	}
	if len(rest) < len(w) && bytes.HasPrefix([]byte(w), rest) {
		return c.cut()
	}
	return badAt(c.pos, "not JSON")
}
