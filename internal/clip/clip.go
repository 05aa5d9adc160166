// Package clip cuts texts short, between characters. The "…" that stands for what was
// left out is part of the length that its caller allows, and no space stands before it.
// It owns no file and takes no lock.
package clip

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// mark stands where something was left out.
const mark = "…"

// Runes is s in at most that many characters, the last of them "…" where something was
// left out. Bytes that are no text count as one each and stay.
func Runes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	if most < 1 {
		return ""
	}
	n, end := 0, 0
	for i := range s {
		switch n {
		case most - 1:
			end = i
		case most:
			return marked(s[:end])
		}
		n++
	}
	return s
}

// Bytes is s in at most that many bytes, "…" at their end where something was left out.
func Bytes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	if most < len(mark) {
		return ""
	}
	return marked(Head(s, most-len(mark)))
}

func marked(s string) string { return strings.TrimRightFunc(s, unicode.IsSpace) + mark }

// Head is the beginning of s, of at most that many bytes, without a mark.
func Head(s string, most int) string {
	if len(s) <= most {
		return s
	}
	most = max(most, 0)
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// Line is s as one line: its words, with one space between two.
func Line(s string) string { return strings.Join(strings.Fields(s), " ") }
