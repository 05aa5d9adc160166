package redact

import (
	"regexp/syntax"
	"unicode"
	"unicode/utf8"

	"reprise/internal/redact/suspect"
)

// How far the generic rule's expression reaches before its word, and how long
// its value is, in bytes: (?i)\w has members of three bytes.
const (
	genericBefore = 50 * 3
	genericValue  = 150*3 + 16
)

// mayBeGeneric is the window in which a match of the generic rule with the
// word at [start,end) would lie.
func mayBeGeneric(s string, start, end int) (window, bool) {
	if !suspect.MayBeGeneric(s, end) {
		return window{}, false
	}
	i := end
	for limit := min(len(s), end+suspect.Between); i < limit && suspect.NameByte(s[i]); i++ {
	}
	return window{max(0, start-genericBefore), min(len(s), i+12+genericValue+edge)}, true
}

func isSpaceByte(c byte) bool {
	return c == ' ' || c >= '\t' && c <= '\r'
}

// ahead is the offset after end that is more than n white spaces away.
func ahead(s string, end, n int) int {
	for ; end < len(s); end++ {
		if isSpaceByte(s[end]) {
			if n--; n < -1 {
				break
			}
		}
	}
	return end
}

// back is the offset before start that is more than n white spaces away.
func back(s string, start, n int) int {
	for ; start > 0; start-- {
		if isSpaceByte(s[start-1]) {
			if n--; n < -1 {
				break
			}
		}
	}
	return start
}

// shape is what can be said of every match of an expression: how many bytes it
// has at most and how many of white space (-1: without limit), and how many
// bytes it has at least.
func shape(expr string) (most, spaces, least int) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return -1, -1, 0
	}
	most = measure(re, func(lo, hi rune) int { return utf8.RuneLen(hi) })
	if most > 1<<14 {
		most = -1
	}
	spaces = measure(re, func(lo, hi rune) int {
		if lo <= ' ' && hi >= '\t' {
			return 1
		}
		return 0
	})
	return most, spaces, leastLen(re)
}

// measure adds up the largest weight that a match can have, given the weight of
// a character of a range; -1 is without limit.
func measure(re *syntax.Regexp, weight func(lo, hi rune) int) int {
	switch re.Op {
	case syntax.OpLiteral:
		n := 0
		for _, r := range re.Rune {
			if re.Flags&syntax.FoldCase != 0 {
				n += max(weight(r, r), weight(unfold(r), unfold(r)))
			} else {
				n += weight(r, r)
			}
		}
		return n
	case syntax.OpCharClass:
		n := 0
		for i := 0; i < len(re.Rune); i += 2 {
			n = max(n, weight(re.Rune[i], re.Rune[i+1]))
		}
		return n
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return weight(0, utf8.MaxRune)
	case syntax.OpCapture, syntax.OpQuest:
		return measure(re.Sub[0], weight)
	case syntax.OpStar, syntax.OpPlus:
		if measure(re.Sub[0], weight) == 0 {
			return 0
		}
		return -1
	case syntax.OpRepeat:
		n := measure(re.Sub[0], weight)
		if n == 0 || n > 0 && re.Max >= 0 {
			return n * max(re.Max, 0)
		}
		return -1
	case syntax.OpConcat:
		sum := 0
		for _, sub := range re.Sub {
			n := measure(sub, weight)
			if n < 0 {
				return -1
			}
			sum += n
		}
		return sum
	case syntax.OpAlternate:
		most := 0
		for _, sub := range re.Sub {
			n := measure(sub, weight)
			if n < 0 {
				return -1
			}
			most = max(most, n)
		}
		return most
	}
	return 0 // assertions and the empty match
}

// unfold is the longest character that is r but for case: the long s and the
// Kelvin sign are the ones beyond ASCII that ASCII letters have.
func unfold(r rune) rune {
	most := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		most = max(most, f)
	}
	return most
}

func leastLen(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpCapture, syntax.OpPlus:
		return leastLen(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min * leastLen(re.Sub[0])
	case syntax.OpConcat:
		sum := 0
		for _, sub := range re.Sub {
			sum += leastLen(sub)
		}
		return sum
	case syntax.OpAlternate:
		least := leastLen(re.Sub[0])
		for _, sub := range re.Sub[1:] {
			least = min(least, leastLen(sub))
		}
		return least
	}
	return 0
}
