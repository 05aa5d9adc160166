// Package mdfile reads and edits markdown with front matter, keeping every byte
// that an edit is not about: line ends, a byte order mark, comments, key order,
// odd spacing, a missing last newline.
//
// It owns no file and takes no lock: bytes in, bytes out.
package mdfile

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"
)

// ErrNotText says that the bytes are not UTF-8 text, so that they cannot be
// edited without a risk to what they hold.
var ErrNotText = errors.New("not UTF-8 text")

var bom = []byte("\xef\xbb\xbf")

// File is one markdown file. It is not changed after Parse: an edit returns a
// new File, so that offsets always belong to the bytes they came from.
type File struct {
	src      []byte
	start    int  // after the byte order mark
	has      bool // has front matter
	fm, fmTo int  // bytes between the fences
	body     int  // first byte after the closing fence's line
	eol      string
}

// Parse reads data. It fails only on what is not UTF-8 text, with the offset of
// the first bad byte; anything else is a File whose Bytes are data.
func Parse(data []byte) (*File, error) {
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return nil, fmt.Errorf("parse markdown: %w: NUL in line %d, at byte %d of the file", ErrNotText, bytes.Count(data[:i], []byte("\n"))+1, i)
	}
	if !utf8.Valid(data) {
		i := 0
		for i < len(data) {
			r, n := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			i += n
		}
		return nil, fmt.Errorf("parse markdown: %w: bad byte 0x%02x in line %d, at byte %d of the file", ErrNotText, data[i], bytes.Count(data[:i], []byte("\n"))+1, i)
	}
	f := &File{src: data}
	f.measure()
	return f, nil
}

// measure finds out where the parts of the file are.
func (f *File) measure() {
	if bytes.HasPrefix(f.src, bom) {
		f.start = len(bom)
	}
	f.body = f.start
	f.eol = eolOf(f.src)
	f.findFrontMatter()
}

// eolOf is a file's line end, told by its first line.
func eolOf(src []byte) string {
	i := bytes.IndexByte(src, '\n')
	switch {
	case i > 0 && src[i-1] == '\r':
		return "\r\n"
	case i < 0 && crOnly(src):
		return "\r"
	}
	return "\n"
}

func (f *File) findFrontMatter() {
	first := true
	for l := range lines(f.src, f.start) {
		text := trimRight(f.src[l.start:l.end])
		if first {
			if string(text) != "---" || l.next == l.end { // no line end: nothing can follow
				return
			}
			f.fm = l.next
			first = false
			continue
		}
		if string(text) == "---" || string(text) == "..." {
			f.has, f.fmTo, f.body = true, l.start, l.next
			return
		}
	}
	f.fm = 0
}

// Bytes is the whole file.
func (f *File) Bytes() []byte { return f.src }

// Body is what follows the front matter.
func (f *File) Body() []byte { return f.src[f.body:] }

// Head is what precedes the body: byte order mark and front matter with its fences.
func (f *File) Head() []byte { return f.src[:f.body] }

// HasFrontMatter says whether the file starts with a closed front matter.
func (f *File) HasFrontMatter() bool { return f.has }

// FrontMatter is the text between the fences.
func (f *File) FrontMatter() []byte {
	if !f.has {
		return nil
	}
	return f.src[f.fm:f.fmTo]
}

// EOL is the file's line end, "\n", "\r\n" or, in a file without any of these,
// "\r", told by its first line.
func (f *File) EOL() string { return f.eol }

// Lines is the number of lines; a last line without a line end counts.
func (f *File) Lines() int { return CountLines(f.src) }

// CountLines counts lines as File.Lines does.
func CountLines(data []byte) int {
	end := byte('\n')
	if crOnly(data) {
		end = '\r'
	}
	n := bytes.Count(data, []byte{end})
	if len(data) > 0 && data[len(data)-1] != end {
		n++
	}
	return n
}

// Replace returns the file with bytes from..to replaced by text.
func (f *File) Replace(from, to int, text []byte) (*File, error) {
	if from < 0 || to < from || to > len(f.src) {
		return nil, fmt.Errorf("edit markdown: range %d..%d is outside of %d bytes", from, to, len(f.src))
	}
	out := make([]byte, 0, len(f.src)+len(text)-(to-from))
	out = append(out, f.src[:from]...)
	out = append(out, text...)
	out = append(out, f.src[to:]...)
	return Parse(out)
}

// WithEOL gives text the line ends of f.
func (f *File) WithEOL(text string) string {
	b := bytes.ReplaceAll([]byte(text), []byte("\r\n"), []byte("\n"))
	if f.eol != "\n" {
		b = bytes.ReplaceAll(b, []byte("\n"), []byte(f.eol))
	}
	return string(b)
}

type line struct {
	start, end, next int // end is before the line end, next after it
}

// lines yields the lines of src from offset on. "\r\n" and "\n" end a line, and
// "\r" in a file that has no other line ends.
func lines(src []byte, from int) func(yield func(line) bool) {
	end := byte('\n')
	if crOnly(src) {
		end = '\r'
	}
	return func(yield func(line) bool) {
		for at := from; at < len(src); {
			l := line{start: at, end: len(src), next: len(src)}
			if i := bytes.IndexByte(src[at:], end); i >= 0 {
				l.end, l.next = at+i, at+i+1
				if l.end > l.start && src[l.end-1] == '\r' {
					l.end--
				}
			}
			if !yield(l) {
				return
			}
			at = l.next
		}
	}
}

func trimRight(b []byte) []byte { return b[:trimmed(b)] }

// trimmed is how long a line is without the white space at its end. bytes.TrimRight
// would build a set of these bytes for each line.
func trimmed[T string | []byte](b T) int {
	n := len(b)
	for n > 0 && (b[n-1] == ' ' || b[n-1] == '\t' || b[n-1] == '\r') {
		n--
	}
	return n
}
