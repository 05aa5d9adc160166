package transcript

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine is the longest line that is read, in bytes. Clients write pictures
// and whole files into a line; what is longer than this is skipped and told of.
const maxLine = 16 << 20

// line is one line of a transcript.
type line struct {
	n      int   // from 1
	offset int64 // of its first byte
	size   int64 // with the newline
	text   []byte
	long   bool // longer than maxLine; text is empty
	torn   bool // the last one, without a newline: still being written, perhaps
}

// lineReader reads lines in bounded memory.
type lineReader struct {
	r      *bufio.Reader
	buf    []byte
	n      int
	offset int64
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 256<<10)}
}

// next is the next line; its text is valid until the one after. The error is
// io.EOF at the end.
func (l *lineReader) next() (line, error) {
	l.buf = l.buf[:0]
	l.n++
	out := line{n: l.n, offset: l.offset}
	for {
		part, err := l.r.ReadSlice('\n')
		out.size += int64(len(part))
		whole := err == nil
		if whole && len(l.buf) == 0 && !out.long {
			out.text = part
		} else if !out.long {
			if len(l.buf)+len(part) > maxLine {
				out.long, l.buf = true, l.buf[:0]
			} else {
				l.buf = append(l.buf, part...)
				out.text = l.buf
			}
		}
		switch {
		case whole:
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && out.size > 0:
			out.torn = true
		default:
			return out, err
		}
		break
	}
	l.offset += out.size
	if out.long {
		out.text = nil
	}
	out.text = bytes.TrimRight(out.text, "\r\n")
	return out, nil
}

// mayBe reports whether a line may be of one of these types, so that lines that
// are of none need not be parsed: most of a transcript's bytes are in those. A
// mark is what a compact writer puts for the type; unescaped quotes cannot come
// from inside a string. A line that is not written compactly is parsed.
func mayBe(text []byte, marks [][]byte) bool {
	if !bytes.Contains(text, []byte(`"type":"`)) {
		return true
	}
	for _, m := range marks {
		if bytes.Contains(text, m) {
			return true
		}
	}
	return false
}
