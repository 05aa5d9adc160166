package lexicon

import (
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// Version goes into the index: when words are cut differently, an old
// index is of no use.
const Version = 3

const longStop = 4 // letters of a stem that can be a stop word by chance

const maxWord = 40 // bytes of a word that are kept: longer ones are hashes and data

// joint stands in a term where a version or file name had its dot. It is a
// token character for FTS5's ascii tokenizer, as everything beyond ASCII is.
const joint = "·"

// Word is one word of a text and where it stands.
type Word struct {
	Term       string // stemmed
	Start, End int    // in the text, in bytes
	// Part: another reading of a place that a word before it has given, such
	// as the parts of an identifier after the whole.
	Part bool
}

// script is the kind of writing that a character belongs to.
type script uint8

const (
	noScript script = iota
	letters         // scripts with spaces between words, and digits
	han
	hiragana
	katakana
	otherDense // Thai, Hangul: no spaces, or endings that stick to the word
)

// Words cuts text into stemmed words: runs of letters and digits, lower case,
// accents of Latin letters dropped. An identifier gives itself, joined, and its
// parts: windGust and wind_gust both give windgust, wind and gust; 1.24.3 gives
// itself and its numbers. Scripts written without spaces give pairs of
// neighbouring characters, and each Chinese character alone. Half-width and
// full-width forms are the same.
func Words(text string, yield func(Word) bool) {
	c := cutter{text: text, yield: yield, start: -1}
	for i, r := range text {
		size := utf8.RuneLen(r)
		if r == utf8.RuneError {
			size = 1
		}
		if c.skip > 0 { // a sound mark that the character before has taken
			c.skip--
			continue
		}
		end := i + size
		if r >= 0xff00 || r >= 0x300 && r < 0x370 {
			var n int
			if r, n = narrow(r, text[end:]); n > 0 {
				c.skip = 1
				end += n
			}
		}
		kind := scriptOf(r)
		switch kind {
		case letters:
			c.letter(r, i, end)
		case noScript:
			if !(unicode.Is(unicode.Mn, r) && c.start >= 0) { // an accent written apart
				c.other(r, i)
			}
		default:
			c.denseChar(r, kind, i, end)
		}
		if c.done {
			return
		}
	}
	c.flushDense()
	c.flushWord()
	c.flushChain()
}

// cutter is the state of Words.
type cutter struct {
	text  string
	yield func(Word) bool
	done  bool
	skip  int

	buf        []byte // the word so far, lower case
	cuts       []int  // where parts begin in buf, by change of case
	start, end int
	last       rune // as written
	notASCII   bool

	// A chain is words with _ - . between them, of which the whole is given too.
	chain      []byte
	links      int
	link       byte // what stands before the word that comes
	chainStart int
	chainEnd   int
	apostrophe bool

	dense []denseRune
}

type denseRune struct {
	r          rune
	kind       script
	start, end int
}

func (c *cutter) put(w Word) {
	if !c.done && !c.yield(w) {
		c.done = true
	}
}

func scriptOf(r rune) script {
	switch {
	case r < utf8.RuneSelf:
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' {
			return letters
		}
		return noScript
	case r == utf8.RuneError:
		return noScript
	case r < 0x0e00:
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			return letters
		}
		return noScript
	case r <= 0x0e7f:
		if unicode.IsLetter(r) {
			return otherDense
		}
		return noScript
	case r >= 0x3041 && r <= 0x309f:
		return hiragana
	case r >= 0x30a1 && r <= 0x30ff && r != '・':
		return katakana
	case r >= 0x31f0 && r <= 0x31ff:
		return katakana
	case r >= 0xac00 && r <= 0xd7a3:
		return otherDense
	case r >= 0x2e80 && unicode.Is(unicode.Han, r):
		return han
	case unicode.IsLetter(r) || unicode.IsNumber(r):
		return letters
	}
	return noScript
}

const halfKana = "ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン"

// narrow gives the usual form of a full-width letter or a half-width kana, and
// how many bytes of what follows belong to it, too (a sound mark).
func narrow(r rune, rest string) (rune, int) {
	switch {
	case r >= 0xff01 && r <= 0xff5e:
		return r - 0xfee0, 0
	case r >= 0xff66 && r <= 0xff9d:
		n := rune(0)
		for _, k := range halfKana {
			if n == r-0xff66 {
				r = k
				break
			}
			n++
		}
		mark, size := utf8.DecodeRuneInString(rest)
		switch {
		case mark == 'ﾞ' && r == 'ウ':
			return 'ヴ', size
		case mark == 'ﾞ' && (r >= 'カ' && r <= 'ト' || r >= 'ハ' && r <= 'ホ'):
			return r + 1, size
		case mark == 'ﾟ' && r >= 'ハ' && r <= 'ホ':
			return r + 2, size
		}
	}
	return r, 0
}

func (c *cutter) letter(r rune, i, end int) {
	c.flushDense()
	if c.start < 0 {
		c.start = i
		c.cuts = c.cuts[:0]
	} else if upper(r) && (lower(c.last) || upper(c.last) && nextLower(c.text[end:])) ||
		alphabetic(r) && digit(c.last) && len(c.buf) == digits(c.buf) {
		c.cuts = append(c.cuts, len(c.buf))
	}
	c.last, c.end = r, end
	switch {
	case upper(r):
		c.buf = append(c.buf, byte(r)+'a'-'A')
	case r < utf8.RuneSelf:
		c.buf = append(c.buf, byte(r))
	default:
		r = unicode.ToLower(r)
		if p, ok := plain(r); ok {
			c.buf = append(c.buf, p...)
		} else {
			c.notASCII = true
			c.buf = utf8.AppendRune(c.buf, r)
		}
	}
}

func upper(r rune) bool      { return r >= 'A' && r <= 'Z' }
func lower(r rune) bool      { return r >= 'a' && r <= 'z' }
func digit(r rune) bool      { return r >= '0' && r <= '9' }
func alphabetic(r rune) bool { return upper(r) || lower(r) }

// nextLower: two letters in a row follow or the word ends in one, as in
// HTTPServer; the s of URLs begins no part.
func nextLower(rest string) bool {
	return len(rest) > 1 && lower(rune(rest[0])) && lower(rune(rest[1]))
}

func digits(b []byte) int {
	n := 0
	for _, x := range b {
		if x >= '0' && x <= '9' {
			n++
		}
	}
	return n
}

// other ends a word at a character that belongs to none.
func (c *cutter) other(r rune, i int) {
	c.flushDense()
	had := c.start >= 0
	afterDigit := had && digit(c.last)
	c.flushWord()
	next, _ := utf8.DecodeRuneInString(c.text[min(len(c.text), i+utf8.RuneLen(max(r, 0))):])
	if r == utf8.RuneError {
		c.flushChain()
		return
	}
	c.apostrophe = had && (r == '\'' || r == '’')
	goesOn := had && scriptOf(next) == letters
	switch {
	case goesOn && (r == '_' || r == '-'):
		c.link = '_'
	case goesOn && r == '.' && (afterDigit == digit(next)):
		c.link = '.'
	default:
		c.flushChain()
	}
}

// flushWord gives the word that has ended, then its parts.
func (c *cutter) flushWord() {
	if c.start < 0 {
		return
	}
	start := c.start
	c.start = -1
	w := c.buf
	c.buf = c.buf[:0]
	ascii := !c.notASCII
	c.notASCII = false
	if c.apostrophe {
		c.apostrophe = false
		switch string(w) { // what is left of is, not, would, …
		case "s", "t", "d", "m", "ll", "re", "ve":
			return
		}
	}
	c.put(Word{Term: normal(w, ascii), Start: start, End: c.end})
	if len(c.cuts) > 0 && ascii && len(w) <= maxWord {
		from := 0
		for k := 0; k <= len(c.cuts); k++ {
			to := len(w)
			if k < len(c.cuts) {
				to = c.cuts[k]
			}
			if to-from > 1 {
				// Every part has the place of the whole: case says where in
				// buf it begins, not where in the text.
				c.put(Word{normal(w[from:to], true), start, c.end, true})
			}
			from = to
		}
	}
	c.cuts = c.cuts[:0]
	if len(c.chain) == 0 {
		c.chainStart = start
	} else {
		if c.link == '.' {
			c.chain = append(c.chain, joint...)
		}
		c.links++
	}
	c.link = 0
	c.chain = append(c.chain, w...)
	c.chainEnd = c.end
	if !ascii {
		c.links = 100
	}
}

// flushChain gives the whole of a_b, a-b or a.b.
func (c *cutter) flushChain() {
	if c.links > 0 && c.links <= 4 && len(c.chain) <= maxWord {
		c.put(Word{normal(c.chain, true), c.chainStart, c.chainEnd, true})
	}
	c.chain, c.links, c.link = c.chain[:0], 0, 0
}

func normal(w []byte, ascii bool) string {
	if len(w) > maxWord {
		w = w[:maxWord]
		for !utf8.Valid(w) {
			w = w[:len(w)-1]
		}
	}
	if !ascii {
		return string(w)
	}
	h := uint32(2166136261) // FNV-1a
	for _, b := range w {
		h = (h ^ uint32(b)) * 16777619
	}
	slot := &known[h%knownWords]
	if k := slot.Load(); k != nil && k.word == string(w) {
		return k.term
	}
	k := &knownWord{word: string(w)}
	var ok bool
	if k.term, ok = irregular()[k.word]; !ok {
		k.term = root(k.word)
	}
	slot.Store(k)
	return k.term
}

// root is a word's stem. Ines is not "in", and use not "us": where the stem would say
// nothing, the word stays as it is.
func root(word string) string {
	s := stem(word)
	if len(s) <= longStop && s != word && Stop(s) && !Stop(word) {
		return word
	}
	return s
}

// known are words whose stem was worked out, by their hash: most of a text's
// words stood in the text before.
var known [knownWords]atomic.Pointer[knownWord]

const knownWords = 1 << 12

type knownWord struct{ word, term string }

func (c *cutter) denseChar(r rune, kind script, i, end int) {
	c.flushWord()
	c.flushChain()
	if n := len(c.dense); n > 0 {
		last := c.dense[n-1]
		if r == 'ー' && (last.kind == hiragana || last.kind == katakana) {
			kind = last.kind
		}
		if last.kind != kind || n >= 256 {
			c.flushDense()
		}
	}
	c.dense = append(c.dense, denseRune{r, kind, i, end})
}

// flushDense gives the pairs of a run of characters of one script.
func (c *cutter) flushDense() {
	run := c.dense
	c.dense = c.dense[:0]
	if len(run) == 0 {
		return
	}
	kind := run[0].kind
	if kind == katakana && len(run) > 2 && run[len(run)-1].r == 'ー' {
		run = run[:len(run)-1] // サーバー is サーバ
	}
	for i, d := range run {
		if len(run) == 1 {
			c.put(Word{Term: string(d.r), Start: d.start, End: d.end})
		} else if i+1 < len(run) {
			c.put(Word{Term: string([]rune{d.r, run[i+1].r}), Start: d.start, End: run[i+1].end})
		}
		if kind == han && len(run) > 1 {
			c.put(Word{string(d.r), d.start, d.end, true})
		}
	}
}

const (
	accented = "àáâãäåāăąçćčďđèéêëēęěğìíîïīįıķļľłñńňòóôõöøōőŕřśşšţťùúûüūůűųýÿźžż"
	bare     = "aaaaaaaaacccddeeeeeeegiiiiiiiklllnnnooooooooorrsssttuuuuuuuuyyzzz"
)

func plain(r rune) (string, bool) {
	switch r {
	case 'ß':
		return "ss", true
	case 'æ':
		return "ae", true
	case 'œ':
		return "oe", true
	}
	if r > 0x17e {
		return "", false
	}
	n := 0
	for _, a := range accented {
		if a == r {
			return bare[n : n+1], true
		}
		n++
	}
	return "", false
}

// stopWords say nothing about what a question is about.
const stopWords = ` a about above after again all also am an and any are aren as at be because been before being below
between both but by can could couldn did didn do does doesn doing don done down during each else ever few for from further get
gets getting got gotten had hadn has hasn have haven having he her here hers him his how i if in into is isn it its itself just
let like ll me more most much my myself no nor not now of off oh ok okay on once only or other our ours out over own per please
re really same she should shouldn so some such tell than that the their theirs them then there these they this those through
to too under until up upon us ve very via was wasn we well were weren what when where whether which while who whom whose why
will with won would wouldn yes yet you your yours yeah `

// genericWords are words of questions that seldom stand in what answers them.
const genericWords = ` actually activities activity any anything certain currently describe described detail details different does
doing event events example first general happen happened happening happens inform information item items kind kinds last latest
mention mentioned mentions name named names new people person place recent recently remember said say says somebody someone something
sort specific take takes talk tell thing things time times today told took try type types use used uses using various want way ways
both many make makes made made usually now these current go going went gone come came think thinks thought know knows knew
名前 名 前 何 誰 時 人 日 方 事 物 今 種類 好 教 言
`

// chatWords are what talk is kept going with: reactions, thanks, greetings.
const chatWords = ` hey hi hello bye wow haha ha aw aww yay congrats congratulations thanks thank glad great awesome amazing cool nice
good wonderful lovely fantastic incredible sounds sound sure totally definitely absolutely course exactly agree love loved happy proud
luck care hope feel feeling feels really so soon talk chat hear heard looks look looking forward keep up deal enjoy fun best better
honestly actually maybe perhaps guess lately always never still everything anything nothing guys much worry sorry means mean lot bit
kind support welcome interesting inspiring beautiful `

// Generic says that a word stands in questions and seldom in what answers them.
func Generic(w string) bool { return flagsOf(w)&flagGeneric != 0 }

// Stop says that a word tells nothing of what a text is about.
func Stop(w string) bool { return flagsOf(w)&flagStop != 0 }

// stopKana are pairs of hiragana that stand for grammar.
const stopKana = ` です ます した から まで など って ない いる ある する れる られ せる こと もの よう そう ため だけ ほど より では
には での とは にも でも でし まし ませ ださ くだ さい いま しま しょ ょう うか すか たの のか なの んで ので のに けど だっ った てい
いた てる いう うん ええ はい たい なっ なん なに どう どこ どの どん いつ だれ なぜ ここ それ これ あれ その この あの がど はど はな はい をど
んな ので もう まだ とか かな だよ たよ るよ よね だね たね るの うの んだ ると てき てく きた くれ もら らう れた れて して しい しく ちゃ
たか るか ばい けば れば にな がな たち とも たり がら なが してい `

// StopDense says that a term of hiragana stands for grammar.
func StopDense(term string) bool {
	r, n := utf8.DecodeRuneInString(term)
	if scriptOf(r) != hiragana {
		return false
	}
	return n == len(term) || flagsOf(term)&flagStop != 0
}

// flags are what lists say of a word.
type flags uint16

const (
	flagStop flags = 1 << iota
	flagGeneric
	flagTime
	flagNumber
	flagReason
	flagPlace
	flagSelf
	flagYou
	flagChat
)

func flagsOf(w string) flags { return wordFlags()[w] }

// wordFlags holds all lists of words. Made at first use: a program that never
// searches does not pay for it.
var wordFlags = sync.OnceValue(func() map[string]flags {
	m := map[string]flags{}
	for f, list := range map[flags]string{flagStop: stopWords + stopKana, flagGeneric: genericWords, flagTime: timeWords,
		flagNumber: numberWords, flagReason: reasonWords, flagPlace: placeWords,
		flagSelf: selfWords, flagYou: youWords, flagChat: chatWords} {
		for w := range strings.FieldsSeq(list) {
			m[w] |= f
		}
	}
	return m
})
