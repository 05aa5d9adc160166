package sign

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Correction judges whether a prompt corrects what was done before it, and
// returns the sentence that does, with the one behind it where that says what
// should be instead ("No, not npm. We use pnpm here."). Strength is 0 for none,
// and up to 1. It is a judgement by words: English and Japanese, made to miss
// rather than to invent.
func Correction(prompt string) (sentence string, strength float64) {
	list := Sentences(prompt)
	best := 0
	for i, s := range list {
		if i >= 3 {
			break // a correction comes first; what follows is the new task
		}
		got := max(correctsEnglish(s, i == 0), correctsJapanese(s))
		if got > strength {
			best, strength = i, got
		}
	}
	if strength == 0 {
		return "", 0
	}
	sentence = oneSpace(list[best])
	bare := bareNo(sentence)
	for i, next := range list[best+1:] {
		next = oneSpace(next)
		if i == 2 || strings.HasSuffix(next, "?") || strings.HasSuffix(next, "？") || !bare && !directs(next) || len(sentence)+len(next) >= mostCorrection {
			break
		}
		if sep, _ := utf8.DecodeLastRuneInString(sentence); sep < 0x3000 {
			sentence += " "
		}
		sentence += next
		bare = bare && bareNo(next) // "No. Wrong. Use pnpm."
	}
	return Clip(sentence, mostCorrection), strength
}

// mostCorrection is the most bytes of a correction that are kept.
const mostCorrection = 240

func oneSpace(s string) string { return strings.Join(strings.Fields(s), " ") }

// bareNo says that a sentence only turns something down: what should be instead
// stands in the next one.
func bareNo(s string) bool {
	low := strings.ToLower(s)
	for _, w := range [...]string{"違", "ちが", "いや", "いえ", "いいえ", "そうじゃ", "そうでは", "それじゃ", "間違"} {
		if strings.HasPrefix(s, w) {
			return !directs(s)
		}
	}
	words := strings.FieldsFunc(low, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '-' })
	if len(words) == 0 || len(words) > 9 || directs(s) {
		return false
	}
	switch words[0] {
	case "no", "nope", "wrong", "incorrect", "that's", "that", "this", "not":
	default:
		return false
	}
	for _, w := range words {
		switch w {
		case "use", "should", "must", "instead", "put", "run", "call", "keep", "make", "leave", "don't", "never", "stop", "always", "said", "meant", "need", "go", "do":
			return false
		}
	}
	return true
}

// directs says that a sentence tells how it should be, in general and not as the
// next task.
func directs(s string) bool {
	low := strings.ToLower(strings.ReplaceAll(s, "’", "'")) + " "
	for _, w := range [...]string{"use ", "please use ", "we use ", "we always ", "we never ", "always ", "never ", "this project uses ", "this repository uses ", "this repo uses ", "here we use ", "it should be ", "it must be "} {
		if strings.HasPrefix(low, w) {
			return true
		}
	}
	for _, w := range [...]string{"を使って", "を使い", "を使う", "を使用", "にして", "でお願い", "ください", "べき", "ではなく", "じゃなく"} {
		if strings.Contains(s, w) {
			return true
		}
	}
	return strings.Contains(low, " instead")
}

// Sentences divides the beginning of a prompt; code, quotes and what is pasted
// are left out, for they are not the user's own words.
func Sentences(prompt string) []string {
	var out []string
	code := false
	for line := range strings.SplitSeq(Clip(prompt, 1200), "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			code = !code
			continue
		}
		if code || line == "" || strings.HasPrefix(line, ">") || strings.HasPrefix(line, "$ ") || strings.HasPrefix(line, "<") {
			continue
		}
		start := 0
		for i, r := range line {
			n := utf8.RuneLen(r)
			ends := r == '。' || r == '！' || r == '？'
			if (r == '.' || r == '!' || r == '?' || r == ';') && (i+n == len(line) || line[i+n] == ' ') {
				ends = true
			}
			if ends {
				if s := strings.TrimSpace(line[start : i+n]); s != "" {
					out = append(out, s)
				}
				start = i + n
			}
		}
		if s := strings.TrimSpace(line[start:]); s != "" {
			out = append(out, s)
		}
		if len(out) > 6 {
			break
		}
	}
	return out
}

// correctsEnglish weighs one sentence; first says that it opens the prompt.
func correctsEnglish(s string, first bool) float64 {
	low := strings.ToLower(strings.NewReplacer("’", "'", "dont ", "don't ", "doesnt ", "doesn't ").Replace(s))
	words := strings.FieldsFunc(low, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '-' })
	if len(words) == 0 || words[0] == "if" || strings.HasSuffix(s, "?") && !strings.HasPrefix(low, "why did you") {
		return 0
	}
	starts := func(list ...string) bool {
		joined := strings.Join(words, " ") + " "
		return slices.ContainsFunc(list, func(l string) bool { return strings.HasPrefix(joined, l+" ") })
	}
	has := func(list ...string) bool {
		joined := " " + strings.Join(words, " ") + " "
		return slices.ContainsFunc(list, func(l string) bool { return strings.Contains(joined, " "+l+" ") })
	}
	if starts("no problem", "no worries", "no need", "no idea", "no rush", "no thanks", "not sure", "not yet", "don't worry", "don't forget", "do not forget", "don't hesitate",
		"don't know", "i don't know", "i don't think so", "no one", "no matter", "no longer", "stop the", "stop all", "wrong number", "no changes", "no errors", "no more") {
		return 0
	}
	switch {
	case first && words[0] == "no" && (len(words) == 1 || nextIs(low, "no", ",.!-—:;")):
		return 0.95
	case first && starts("nope", "wrong", "that's wrong", "that is wrong", "this is wrong", "that's not", "that is not", "this is not what", "not what i", "you misunderstood", "you got it wrong", "incorrect", "that's incorrect", "you broke"):
		return 0.9
	case has("i said", "i told you", "i asked you", "as i said", "like i said", "i already told", "i meant", "you should have", "you shouldn't have", "you were supposed", "you forgot", "you ignored", "why did you"):
		return 0.85
	case starts("revert that", "revert this", "undo that", "undo this", "roll that back", "put it back"):
		return 0.85
	case first && starts("stop using", "stop doing", "stop adding", "stop creating", "stop writing", "stop running", "stop changing", "stop editing", "stop making"),
		first && starts("don't", "do not", "never", "please don't", "please do not", "please stop"):
		return 0.75
	case first && starts("use", "please use", "actually use", "we use", "rather use", "always use", "you must use") && has("instead", "instead of", "not", "rather than", "never"),
		first && starts("not") && strings.Contains(low, ",") && len(words) <= 12:
		return 0.8
	case first && (starts("actually") && nextIs(low, "actually", ",") || starts("instead")) && len(words) <= 40:
		return 0.7
	case first && starts("that doesn't", "that does not", "this doesn't", "it still", "still fails", "still failing", "still broken", "doesn't work", "that didn't work", "didn't work", "it's still"):
		return 0.6
	case has("instead of") && starts("use", "please use", "call", "run", "put"):
		return 0.7
	}
	return 0
}

// nextIs reports whether the text goes on, after a word, with one of the marks.
func nextIs(low, word, marks string) bool {
	rest := strings.TrimLeft(strings.TrimPrefix(strings.TrimSpace(low), word), " ")
	return rest != "" && strings.ContainsAny(rest[:1], marks) || strings.HasPrefix(rest, "—")
}

func correctsJapanese(s string) float64 {
	s = strings.TrimSpace(s)
	for _, lead := range []string{"違う", "違います", "ちがう", "ちがいます", "いや、", "いえ、", "いいえ", "そうじゃな", "そうではな", "それは違", "それじゃな", "間違って", "間違い", "間違え"} {
		if strings.HasPrefix(s, lead) && !strings.HasPrefix(s, "違うブランチ") && !strings.HasPrefix(s, "間違いない") && !strings.HasPrefix(s, "間違いあり") {
			return 0.9
		}
	}
	for _, word := range []string{"と言った", "と言いました", "って言った", "と伝えた", "と伝えました", "勝手に", "元に戻して", "取り消して", "やり直して"} {
		if strings.Contains(s, word) {
			return 0.85
		}
	}
	for _, word := range []string{"じゃなくて", "じゃなく", "ではなくて", "ではなく", "でなく、", "の代わりに", "代わりに"} {
		if strings.Contains(s, word) {
			return 0.75
		}
	}
	if strings.HasSuffix(strings.TrimRight(s, "。！!."), "ないで") || strings.Contains(s, "ないでください") || strings.Contains(s, "ないでほしい") || strings.Contains(s, "やめて") || strings.Contains(s, "使うな") || strings.Contains(s, "禁止") {
		return 0.75
	}
	return 0
}

// SaidKey is what two corrections have in common that say the same: their
// words without those that carry nothing, in order of the alphabet.
func SaidKey(sentence string) string {
	drop := map[string]bool{
		"no": true, "nope": true, "please": true, "the": true, "a": true, "an": true, "it": true, "that": true, "this": true, "you": true, "i": true, "said": true, "told": true,
		"actually": true, "again": true, "to": true, "we": true, "is": true, "here": true, "just": true, "should": true, "have": true, "of": true, "in": true, "for": true, "always": true, "must": true,
	}
	var words []string
	for _, w := range strings.FieldsFunc(strings.ToLower(strings.ReplaceAll(sentence, "’", "'")), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' && r != '-' && r != '_' && r != '.' && r != '/'
	}) {
		w = strings.Trim(w, ".'")
		if w != "" && !drop[w] {
			words = append(words, w)
		}
	}
	slices.Sort(words)
	words = slices.Compact(words)
	if len(words) == 0 {
		return ""
	}
	return "said:" + Hash(strings.Join(words, " "))
}
