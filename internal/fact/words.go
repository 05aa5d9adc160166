package fact

import (
	"strings"
)

const maxWords = 24 // of one sentence; longer ones are no plain statements

// words is a sentence cut at spaces. It is used again for the next one, so that
// reading a text costs no allocation until a statement is found.
type words struct {
	src   string
	low   [maxSentence]byte // src in lower case, ASCII only: offsets stay
	n     int
	from  [maxWords]int16
	to    [maxWords]int16
	comma [maxWords]bool // a comma follows the word
	colon [maxWords]bool // a colon follows the word
	aside [maxSentence]byte
	na    int // bytes of what stands in brackets
}

// split cuts a sentence; false when it is too long. What stands in brackets is
// an aside and no part of it, but for the place that it may name.
func (w *words) split(s string) bool {
	w.src, w.n, w.na = s, 0, 0
	if len(s) > maxSentence {
		return false
	}
	depth, start := 0, -1
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		w.low[i] = c
		switch {
		case c == '(' && start < 0:
			depth++
		case c == ')' && depth > 0:
			depth--
			w.aside[w.na] = ' '
			w.na++
			start = -1
			continue
		}
		if depth > 0 {
			if c != '(' {
				w.aside[w.na] = c
				w.na++
			}
			continue
		}
		if c == ' ' || c == '\t' {
			if start >= 0 && !w.push(start, i) {
				return false
			}
			start = -1
		} else if start < 0 {
			start = i
		}
	}
	if start >= 0 && depth == 0 && !w.push(start, len(s)) {
		return false
	}
	return true
}

const trimmed = "`*\"'_,:!()[]"

func (w *words) push(i, j int) bool {
	if w.n == maxWords {
		return false
	}
	comma, colon := false, false
	for j > i && (strings.IndexByte(trimmed, w.src[j-1]) >= 0 || w.src[j-1] == '.') {
		comma = comma || w.src[j-1] == ','
		colon = colon || w.src[j-1] == ':'
		j--
	}
	for i < j && strings.IndexByte(trimmed, w.src[i]) >= 0 {
		i++
	}
	if i == j {
		if w.n > 0 {
			w.comma[w.n-1] = w.comma[w.n-1] || comma
			w.colon[w.n-1] = w.colon[w.n-1] || colon
		}
		return true
	}
	w.from[w.n], w.to[w.n], w.comma[w.n], w.colon[w.n] = int16(i), int16(j), comma, colon
	w.n++
	return true
}

// at is word i in lower case.
func (w *words) at(i int) []byte {
	if i < 0 || i >= w.n {
		return nil
	}
	return w.low[w.from[i]:w.to[i]]
}

func (w *words) is(i int, word string) bool { return string(w.at(i)) == word }

// raw is words i to j as they were written.
func (w *words) raw(i, j int) string {
	if i >= j {
		return ""
	}
	return w.src[w.from[i]:w.to[j-1]]
}

func (w *words) upper(i int) bool {
	c := w.src[w.from[i]]
	return c >= 'A' && c <= 'Z' || c >= 0x80
}

// subject is words i to j normalised.
func (w *words) subject(i, j int) string {
	if i >= j {
		return ""
	}
	var b [maxSentence + 2*maxWords]byte
	out := b[:0]
	for ; i < j; i++ {
		word := w.at(i)
		if article(word) || place(word) != "" {
			continue
		}
		if n := len(word); n > 2 && word[n-1] == 's' && (word[n-2] == '\'') {
			word = word[:n-2]
		}
		if len(out) > 0 {
			out = append(out, ' ')
		}
		out = appendNormal(out, word)
	}
	return string(out)
}

// appendNormal adds a word with "_" and "-" as spaces, each part stemmed.
func appendNormal(out, word []byte) []byte {
	start := len(out)
	for _, c := range word {
		if c == '_' || c == '-' {
			out = stem(out, start)
			if len(out) > 0 && out[len(out)-1] != ' ' {
				out = append(out, ' ')
			}
			start = len(out)
			continue
		}
		out = append(out, c)
	}
	return stem(out, start)
}

// stem takes the plural's "s" off the word that begins at start.
func stem(out []byte, start int) []byte {
	n := len(out)
	switch string(out[start:]) {
	case "postgresql":
		return append(out[:start], "postgres"...)
	case "golang":
		return append(out[:start], "go"...)
	case "nodejs", "node.js":
		return append(out[:start], "node"...)
	case "postgres", "kubernetes", "jenkins", "https", "series", "sales", "news", "analytics", "metrics":
		return out
	}
	if n-start > 4 && out[n-1] == 's' && out[n-2] == 'e' && out[n-3] == 'i' {
		return append(out[:n-3], 'y')
	}
	if n-start > 3 && out[n-1] == 's' && out[n-2] != 's' && out[n-2] != 'u' && out[n-2] != 'i' {
		return out[:n-1]
	}
	return out
}

// place is the environment that the sentence names, in brackets or outside.
func (w *words) place() string {
	for i := range w.n {
		if p := place(w.at(i)); p != "" {
			return p
		}
	}
	rest := w.aside[:w.na]
	for len(rest) > 0 {
		i := 0
		for i < len(rest) && (rest[i] >= 'a' && rest[i] <= 'z') {
			i++
		}
		if p := place(rest[:i]); p != "" {
			return p
		}
		rest = rest[min(i+1, len(rest)):]
	}
	return ""
}

func article(w []byte) bool {
	switch string(w) {
	case "the", "a", "an", "our", "my", "this", "its", "your", "their", "that":
		return true
	}
	return false
}

// place gives the one name of an environment; what holds in one need not hold
// in another.
func place(w []byte) string {
	switch string(w) {
	case "staging", "stage", "stg":
		return "staging"
	case "production", "prod", "live":
		return "production"
	case "dev", "development":
		return "dev"
	case "local", "locally", "localhost", "laptop":
		return "local"
	case "test", "testing", "tests":
		return "test"
	case "ci":
		return "ci"
	case "qa", "uat", "sandbox", "preview", "canary", "demo":
		return string(w)
	case "windows", "macos", "linux", "docker", "kubernetes", "k8s":
		return string(w)
	}
	return ""
}

// hedge are words that make a sentence something else than a plain statement:
// conditions, guesses, the past, alternatives, negation, examples.
func hedge(w []byte) bool {
	switch string(w) {
	case "if", "could", "might", "would", "should", "maybe", "perhaps", "probably", "suppose", "supposing", "example", "examples",
		"e.g", "eg", "was", "were", "had", "previously", "formerly", "earlier", "unless", "when", "whenever", "or", "either", "sometimes",
		"whether", "assume", "assuming", "imagine", "todo", "will", "may", "can", "between", "except", "until", "today",
		"yesterday", "tomorrow", "temporarily", "say", "says", "said", "think", "thinks", "guess", "seems", "apparently", "wrong",
		"wrongly", "not", "never", "no", "isn't", "aren't", "don't", "doesn't", "didn't", "won't", "can't", "nor", "neither",
		"expected", "got", "want", "wants", "wanted", "proposal", "proposed", "suggest", "suggests", "considered", "considering", "old", "legacy", "deprecated",
		"hypothetically", "sample", "dummy", "fake", "mock", "placeholder", "foo", "bar", "vs", "versus", "instead", "than", "almost",
		"about", "around", "roughly", "approximately", "first", "second", "last", "next", "another", "other", "each", "every", "any", "some", "which", "what", "who", "how", "why":
		return true
	}
	return false
}

// stop are words that end a value.
func stop(w []byte) bool {
	switch string(w) {
	case "and", "but", "because", "since", "so", "as", "for", "in", "on", "at", "with", "by", "from", "after", "before", "now", "again",
		"—", "–", "-", "that", "to", "via", "per", "across", "everywhere", "only", "too", "there", "here", "then", "while", "of", "is", "are", "has":
		return true
	}
	return false
}

// noValue are words that tell nothing about what the value is.
func noValue(w []byte) bool {
	switch string(w) {
	case "unknown", "tbd", "none", "missing", "correct", "right", "empty", "different", "same", "the", "a", "an", "this", "it", "very",
		"already", "still", "being", "set", "required", "optional", "important", "used", "busy", "free", "taken", "open", "closed",
		"unavailable", "available", "invalid", "valid", "up", "down", "defined", "undefined", "hard-coded", "hardcoded", "high", "low",
		"exceeded", "reached", "too", "all", "both", "based", "given", "shown", "listed", "mandatory", "unclear", "blocked", "broken", "flaky",
		"done", "ready", "just", "fine", "ok", "okay", "good", "bad", "large", "small", "long", "short", "null", "nil", "n/a", "configurable",
		"responsible", "happy", "one", "where", "out", "also", "always", "often", "usually", "changed", "fixed", "new", "like", "dynamic", "random":
		return true
	}
	return false
}

// vague are subjects that mean another thing in each text.
func vague(subject string) bool {
	switch subject {
	case "", "it", "he", "she", "they", "there", "here", "note", "fact", "notes", "decision", "learning", "summary", "overview", "context", "detail",
		"setting", "config", "configuration", "key fact", "default", "new", "current", "one", "thing", "value", "number", "file", "error",
		"result", "output", "step", "todo", "misc", "core", "index", "preference", "i", "you", "active project":
		return true
	}
	return false
}
