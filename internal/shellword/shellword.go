// Package shellword writes words as a POSIX shell reads them, for what a person may copy
// into one and for what one runs. It owns no file and takes no lock.
package shellword

import "strings"

// Quote is s as one word, in quotes where it needs them.
func Quote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:@%+,", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return Quoted(s)
}

// Quoted is s as one word, in quotes.
func Quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Join is a program and its arguments as one line.
func Join(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = Quote(w)
	}
	return strings.Join(out, " ")
}
