package dialect

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"math/rand/v2"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"reprise/internal/event/quick"
)

// Sizes of what an [Intake] keeps, in bytes.
const (
	// BigPayload is how large a payload may be to be kept as it came.
	BigPayload = 1 << 20
	// keepMost bounds what is kept of one that is larger.
	keepMost = 4 << 20
	// Of a long text in it, the head and the tail are kept: a log holds less than
	// the head, and how a command ended stands at the end.
	longText, keepHead, keepTail = 64 << 10, 48 << 10, 8 << 10
)

// Intake takes a payload in as it is read. A usual one is kept as it came. Of a
// large one the long texts are cut while they pass, so that neither memory nor
// time grows with what a tool had to say; what was left out is described in its
// place, by a mark that nobody else knows. The zero value is ready to use.
type Intake struct {
	buf    []byte
	shrink *shrinker
}

// Add takes more of the payload in.
func (in *Intake) Add(p []byte) {
	if in.shrink == nil {
		if in.buf = append(in.buf, p...); len(in.buf) <= BigPayload {
			return
		}
		in.shrink = &shrinker{mark: newMark()}
		p, in.buf = in.buf, nil
	}
	in.shrink.add(p)
}

// Big reports whether the payload is being cut.
func (in *Intake) Big() bool { return in.shrink != nil }

// Payload is what was taken in, and the mark of what was cut, "" where the
// payload is as it came. What ends in the middle (whole is false) is closed
// after its last part that is whole, if it is a large one.
func (in *Intake) Payload(whole bool) (data []byte, mark string) {
	if in.shrink == nil {
		return in.buf, ""
	}
	return in.shrink.end(whole), in.shrink.mark
}

// newMark is the beginning of a description of what was cut: no tool's output
// can hold it by chance or on purpose.
func newMark() string { return "[cut " + strconv.FormatUint(rand.Uint64(), 36) + " " }

// shrinker copies JSON with its long texts cut. It does not check it: what it
// made is read by a reader that does. What is broken stays broken.
type shrinker struct {
	mark string
	out  []byte
	// stack are the open objects and arrays, marks where each could be closed.
	stack []byte
	marks []int
	last  byte // the last byte that was no space, outside texts
	full  bool // no more is kept

	inText bool
	text   []byte // decoded; the head once it is long
	tail   []byte // the last of a long text, in turns
	long   bool
	length int
	fresh  int // bytes at the end of tail that are not in sum
	sum    hash.Hash
	esc    []byte // an escape that is not complete
	half   rune   // the first half of a pair
}

func (s *shrinker) add(p []byte) {
	for i := 0; i < len(p) && !s.full; {
		if s.inText {
			i += s.textBytes(p[i:])
			continue
		}
		c := p[i]
		i++
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		case '"':
			s.inText = true
			continue // with the text
		case '{', '[':
			if len(s.stack) == maxDepth {
				s.full = true
				continue
			}
			s.out = append(s.out, c)
			s.stack, s.marks = append(s.stack, c+2), append(s.marks, len(s.out)) // } is two after {, ] two after [
		case '}', ']':
			if n := len(s.stack); n > 0 {
				s.stack, s.marks = s.stack[:n-1], s.marks[:n-1]
			}
			s.out = append(s.out, c)
		case ',':
			if n := len(s.marks); n > 0 {
				s.marks[n-1] = len(s.out)
			}
			s.out = append(s.out, c)
		default:
			s.out = append(s.out, c)
		}
		s.last = c
		s.full = s.full || len(s.out) > keepMost
	}
}

// textBytes takes in what p has of a text and returns how much that is.
func (s *shrinker) textBytes(p []byte) int {
	i := 0
	for i < len(p) {
		if len(s.esc) > 0 {
			s.esc = append(s.esc, p[i])
			i++
			s.escape()
			continue
		}
		from := i
		for i < len(p) && p[i] != '"' && p[i] != '\\' {
			i++
		}
		if i > from {
			s.pair()
			s.keep(p[from:i])
		}
		if i == len(p) {
			return i
		}
		i++
		if p[i-1] == '"' {
			s.endText(true)
			return i
		}
		s.esc = append(s.esc, '\\')
	}
	return i
}

// escape decodes an escape once it is complete.
func (s *shrinker) escape() {
	switch e := s.esc; {
	case len(e) < 2:
		return
	case e[1] == 'u':
		if len(e) < 6 {
			return
		}
		r := hex4(e[2:])
		s.esc = s.esc[:0]
		if s.half != 0 {
			if both := utf16.DecodeRune(s.half, r); both != utf8.RuneError {
				s.half = 0
				s.keep(utf8.AppendRune(nil, both))
				return
			}
			s.pair()
		}
		if r >= 0xd800 && r < 0xdc00 {
			s.half = r
			return
		}
		s.keep(utf8.AppendRune(nil, r)) // no digits, or half a pair, become U+FFFD
	default:
		s.pair()
		c := e[1]
		for i, name := range []byte("bfnrt") {
			if c == name {
				c = "\b\f\n\r\t"[i]
			}
		}
		s.esc = append(s.esc[:0], c)
		s.keep(s.esc)
		s.esc = s.esc[:0]
	}
}

// pair ends half a pair that no other half followed.
func (s *shrinker) pair() {
	if s.half != 0 {
		s.half = 0
		s.keep([]byte("\uFFFD"))
	}
}

// keep adds to the text, as far as it is kept.
func (s *shrinker) keep(b []byte) {
	s.length += len(b)
	if !s.long {
		if s.text = append(s.text, b...); len(s.text) <= longText {
			return
		}
		s.long = true
		s.sum = sha256.New()
		s.sum.Write(s.text)
		cut := keepHead
		for cut > 0 && !utf8.RuneStart(s.text[cut]) {
			cut--
		}
		s.tail = append(s.tail[:0], s.text[cut:]...)
		s.text = s.text[:cut]
		return
	}
	for len(b) > 0 { // in large pieces: a hash of small ones takes many times as long
		n := min(len(b), 8*keepTail-s.fresh)
		s.tail = append(s.tail, b[:n]...)
		if s.fresh += n; s.fresh == 8*keepTail {
			s.settle()
		}
		b = b[n:]
	}
}

// settle takes what was kept last into the hash, and lets go of all but the
// tail.
func (s *shrinker) settle() {
	s.sum.Write(s.tail[len(s.tail)-s.fresh:])
	s.fresh = 0
	if over := len(s.tail) - keepTail; over > 0 {
		s.tail = append(s.tail[:0], s.tail[over:]...)
	}
}

// endText writes the text that is being read; whole says that its end was seen.
func (s *shrinker) endText(whole bool) {
	s.pair()
	if s.long {
		s.settle()
		tail := s.tail[max(0, len(s.tail)-keepTail):]
		for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
			tail = tail[1:]
		}
		sum := "-"
		if whole {
			sum = hex.EncodeToString(s.sum.Sum(nil))
		}
		kept := len(s.text) + len(tail)
		s.text = append(append(s.text, s.mark+strconv.Itoa(s.length)+" "+strconv.Itoa(kept)+" "+sum+"]"...), tail...)
	}
	s.out = quick.AppendString(s.out, string(s.text))
	s.last = '"'
	s.inText, s.long, s.length, s.fresh, s.half = false, false, 0, 0, 0
	s.text, s.tail, s.esc = s.text[:0], s.tail[:0], s.esc[:0]
}

// end is the JSON that is left.
func (s *shrinker) end(whole bool) []byte {
	if whole && !s.full {
		if s.inText { // it has no end, and will be refused
			s.out = append(s.out, '"')
		}
		return s.out
	}
	closed := false
	if s.inText && !s.full && (s.last == ':' || s.last == '[' || s.last == ',' && len(s.stack) > 0 && s.stack[len(s.stack)-1] == ']') {
		s.endText(false)
		closed = true
	}
	for n := len(s.stack) - 1; n >= 0; n-- {
		if !closed {
			s.out = s.out[:s.marks[n]]
			closed = true
		}
		s.out = append(s.out, s.stack[n])
	}
	return s.out
}
