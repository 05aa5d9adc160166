package lexicon

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Features are what a text has that a kind of question asks for.
type Features struct {
	Time, Number, Place, Reason float64 // in [0,1]: how much of it there is
	Asks                        float64 // share of the words that are in questions
	Words                       int
	Content                     int // words that are neither grammar nor small talk, nor left out by skip
	Specific                    int // of them, names within sentences and numbers
	Self, You                   int // words for who speaks, and for who is spoken to
}

const timeWords = ` yesterday today tonight tomorrow ago last next week weeks weekend month months year years monday tuesday wednesday
thursday friday saturday sunday january february march april june july august september october november december morning afternoon
evening day days since until till before after summer winter spring autumn fall christmas easter birthday recently earlier tuesdays
mondays wednesdays thursdays fridays saturdays sundays hour hours minutes noon midnight first second third fourth fifth sixth seventh eighth
ninth tenth eleventh twelfth `

const numberWords = ` two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen
twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million half dozen percent twice once couple `

const reasonWords = ` because since so reason why due cause caused therefore hence after broke order avoid instead wanted want help need needed `

const placeWords = ` in at to from near by on `

const selfWords = ` i my me mine we our us myself ours `

const youWords = ` you your yours yourself `

// FeaturesOf reads a text for what it has of times, numbers, names and reasons.
// Words in lower case that skip says, such as names of who talks, are no content.
func FeaturesOf(text string, skip func(string) bool) Features {
	var f Features
	text = strings.TrimSpace(text)
	times, numbers, places, reasons := 0, 0, 0, 0
	afterPlace, begins := false, true
	asked, sentence := 0, 0
	for i := 0; i < len(text); {
		c, n := utf8.DecodeRuneInString(text[i:])
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			switch c {
			case '?', '？':
				asked += f.Words - sentence
				fallthrough
			case '.', '!', '\n', '。', '！':
				sentence = f.Words
				fallthrough
			case ':':
				begins = true
			}
			i += n
			continue
		}
		j := i
		dense := 0
		for j < len(text) {
			c, n := utf8.DecodeRuneInString(text[j:])
			if !unicode.IsLetter(c) && !unicode.IsDigit(c) {
				break
			}
			if s := scriptOf(c); s > letters {
				dense++
			}
			j += n
		}
		w := text[i:j]
		low := strings.ToLower(w)
		f.Words += 1 + dense/2
		fl := flagsOf(low)
		switch {
		case fl&flagSelf != 0:
			f.Self++
		case fl&flagYou != 0:
			f.You++
		case fl&(flagStop|flagGeneric|flagChat) == 0 && len(w) > 1 && !skip(low):
			f.Content++
			if unicode.IsUpper(c) && !begins || low[0] >= '0' && low[0] <= '9' {
				f.Specific++
			}
		}
		if fl&flagTime != 0 || len(w) == 4 && digits([]byte(w)) == 4 {
			times++
		}
		if c := low[0]; c >= '0' && c <= '9' || fl&flagNumber != 0 {
			numbers++
		}
		if fl&flagReason != 0 {
			reasons++
		}
		if unicode.IsUpper(c) && !begins && len(w) > 1 {
			places++
			if afterPlace {
				places++
			}
		}
		afterPlace, begins = fl&flagPlace != 0, false
		i = j
	}
	if strings.ContainsAny(text, "年月日時週昨明") {
		times++
	}
	if strings.ContainsAny(text, "一二三四五六七八九十百千") {
		numbers++
	}
	if strings.Contains(text, "ので") || strings.Contains(text, "から") || strings.Contains(text, "ため") {
		reasons++
	}
	f.Time, f.Number, f.Place, f.Reason = level(times), level(numbers), level(places), level(reasons)
	f.Asks = float64(asked) / float64(max(1, f.Words))
	return f
}

// level is 0 for none, ¾ for one, 1 for more.
func level(n int) float64 {
	switch n {
	case 0:
		return 0
	case 1:
		return 0.75
	}
	return 1
}
