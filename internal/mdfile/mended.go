package mdfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Damage is a place at which a file is not the text that it should be.
type Damage struct {
	Line    int    `json:"line"` // from 1
	Problem string `json:"problem"`
}

func (d Damage) String() string { return fmt.Sprintf("line %d: %s", d.Line, d.Problem) }

// maxDamage is how many places of one file are named.
const maxDamage = 20

// Mended is a file as far as it can be read, for those who only read it: each
// stretch of bytes that are no text becomes U+FFFD, lines that end in CR alone end
// in LF, a byte order mark before a line in the middle goes, UTF-16 with a byte
// order mark is UTF-8. Lines keep their numbers. What was wrong is found, one
// place a line. Text without damage comes back as it is; data is never changed.
func Mended(data []byte) (text []byte, found []Damage) {
	if u, ok := fromUTF16(data); ok {
		text, found = Mended(u)
		return text, append([]Damage{{1, "the file is UTF-16; save it as UTF-8"}}, found...)
	}
	if crOnly(data) {
		found = append(found, Damage{1, "its lines end in CR alone; save it with LF"})
		data = bytes.ReplaceAll(data, []byte{'\r'}, []byte{'\n'})
	}
	marks := bytes.Contains(bytes.TrimPrefix(data, bom), bom)
	if utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 && !marks {
		return data, found
	}
	var out bytes.Buffer
	n, more := 0, 0
	for line := range bytes.Lines(data) {
		n++
		at := out.Len()
		problem := mendLine(&out, line, n == 1)
		switch {
		case problem == "":
			out.Truncate(at)
			out.Write(line)
		case len(found) == maxDamage:
			more++
		default:
			found = append(found, Damage{n, problem})
		}
	}
	if more > 0 {
		last := &found[len(found)-1]
		last.Problem += fmt.Sprintf("; and %d more lines", more)
	}
	return out.Bytes(), found
}

// mendLine writes a line as it can be read and says what is wrong with it.
func mendLine(out *bytes.Buffer, line []byte, first bool) (problem string) {
	if rest, ok := bytes.CutPrefix(line, bom); ok && !first {
		line, problem = rest, "a byte order mark in the middle of the file"
	}
	bad := false // in a stretch of bytes that are no text
	for i := 0; i < len(line); {
		r, size := utf8.DecodeRune(line[i:])
		switch {
		case line[i] == 0:
			if problem == "" {
				problem = fmt.Sprintf("a NUL at byte %d of the line", i+1)
			}
		case r == utf8.RuneError && size == 1:
			if problem == "" {
				problem = fmt.Sprintf("the byte 0x%02x at byte %d of the line is not UTF-8", line[i], i+1)
			}
		default:
			out.Write(line[i : i+size])
			i, bad = i+size, false
			continue
		}
		if !bad {
			out.WriteString("\uFFFD")
		}
		i, bad = i+1, true
	}
	return problem
}

// Readable is [Parse] for those who only read: it takes the file as [Mended]
// gives it, and never fails. An edit of it would not keep what was there.
func Readable(data []byte) (*File, []Damage) {
	text, found := Mended(data)
	f := &File{src: text}
	f.measure()
	return f, found
}

// crOnly says that a file's lines end as they did on the first Macintoshes.
func crOnly(data []byte) bool {
	return bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, '\r') >= 0
}

// fromUTF16 decodes what an editor saved as "Unicode".
func fromUTF16(data []byte) ([]byte, bool) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	default:
		return nil, false
	}
	var units []uint16
	for at := 2; at+1 < len(data); at += 2 {
		units = append(units, order.Uint16(data[at:]))
	}
	if bytes.Equal(data[:2], []byte{0xff, 0xfe}) && len(units) > 0 && units[0] == 0 {
		return nil, false // UTF-32: nobody saves notes so
	}
	return []byte(string(utf16.Decode(units))), true
}

// clean is a field as it can be read.
func clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	text, _ := Mended([]byte(s))
	return string(text)
}
