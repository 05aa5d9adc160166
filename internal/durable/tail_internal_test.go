package durable

import (
	"bytes"
	"strings"
	"testing"
)

// sparse is a log of that many bytes of which only the last are given; before
// them are newlines.
type sparse struct {
	size int64
	tail string
	read int64 // bytes asked for
}

func (s *sparse) ReadAt(p []byte, at int64) (int, error) {
	s.read += int64(len(p))
	for i := range p {
		p[i] = '\n'
		if off := at + int64(i) - (s.size - int64(len(s.tail))); off >= 0 {
			p[i] = s.tail[off]
		}
	}
	return len(p), nil
}

// TestLastLineEnd: what it costs to find the end of the last whole line depends
// on the torn tail, not on the log.
func TestLastLineEnd(t *testing.T) {
	for _, torn := range []int{0, 1, 100, tailBlock - 1, tailBlock, tailBlock + 1, 700_000} {
		s := &sparse{size: 600_000_000, tail: "\n" + strings.Repeat("x", torn)}
		end, err := lastLineEnd(s, s.size)
		if err != nil || end != s.size-int64(torn) {
			t.Errorf("%d torn: end %d, %v", torn, end, err)
		}
		if s.read > int64(torn)+tailBlock+1 {
			t.Errorf("%d torn: %d bytes were read", torn, s.read)
		}
	}
	for text, want := range map[string]int64{"": 0, "x": 0, "\n": 1, "x\n": 2, "x\ny": 2, "\n\n": 2, "\n\nz": 2} {
		if end, err := lastLineEnd(bytes.NewReader([]byte(text)), int64(len(text))); end != want || err != nil {
			t.Errorf("%q: %d, %v", text, end, err)
		}
	}
}
