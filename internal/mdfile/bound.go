package mdfile

import (
	"bytes"
	"errors"
	"fmt"
)

// ErrYAMLBound says that YAML is larger or nested deeper than is read.
var ErrYAMLBound = errors.New("more than is read")

const maxYAMLDepth = 100

// CheckYAML refuses foreign YAML of more than most bytes or 100 levels before
// the parser sees it. The parser's time grows with the square of the keys and
// of the depth: half a megabyte of keys took it half a minute, 16 kB of opening
// brackets five seconds. Brackets in quoted text count too; no sensible file
// has a hundred of them unclosed.
func CheckYAML(data []byte, most int) error {
	if len(data) > most {
		return fmt.Errorf("%w: it has %d bytes, at most %d are read", ErrYAMLBound, len(data), most)
	}
	depth := 0
	for l := range lines(data, 0) {
		text := bytes.TrimLeft(data[l.start:l.end], " \t")
		level := 0 // of lists begun on one line: "- - - x"
		for len(text) > 1 && (text[0] == '-' || text[0] == '?') && (text[1] == ' ' || text[1] == '\t') {
			text = bytes.TrimLeft(text[1:], " \t")
			level++
		}
		for _, c := range text {
			switch c {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(depth-1, 0)
			}
			if depth > maxYAMLDepth {
				break
			}
		}
		if depth > maxYAMLDepth || level > maxYAMLDepth {
			return fmt.Errorf("%w: it is nested deeper than %d levels", ErrYAMLBound, maxYAMLDepth)
		}
	}
	return nil
}
