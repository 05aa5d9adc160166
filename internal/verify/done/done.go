// Package done tells whether an agent's last words claim that its work is done.
//
// It is pure: text in, claim out. It owns no file, writes none and takes no lock.
//
// A marker on a line of its own is certain, and the last one counts:
//
//	[DONE]   or   REPRISE: DONE        the work is done
//	[OPEN]   or   REPRISE: OPEN        it is not; also [BLOCKED] and [PARTIAL]
//
// Without one, only what is said plainly counts, in English or Japanese. What is
// quoted, code, asked, conditional, still to come or somebody else's work is no
// claim; and one word of what is left outweighs any number of what is done, but for one that
// says that nothing is.
package done

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// Claim is what the words say of the work.
type Claim string

// The claims.
const (
	Done Claim = "done"
	Open Claim = "open" // not done, by its own words
	None Claim = "none" // neither
)

// maxText is how much of the end of a text is looked at, in bytes: last words
// are at the end.
const maxText = 64 << 10

// Detect reads an agent's last message. why is the marker or the sentence that
// decided.
func Detect(text string) (claim Claim, why string) {
	if len(text) > maxText {
		text = text[len(text)-maxText:]
		if i := strings.IndexByte(text, '\n'); i >= 0 {
			text = text[i+1:]
		}
	}
	text = strings.ToValidUTF8(text, " ")
	lines, marker, open := prose(text)
	switch {
	case marker != "":
		return claimOf(marker), marker
	case open != "":
		return Open, open
	}
	w := words()
	claim = None
	var question string
	for _, s := range sentences(lines) {
		switch w.judge(s) {
		case Open:
			return Open, s
		case Done:
			if claim == None {
				claim, why = Done, s
			}
		}
		if isQuestion(s) {
			question = s
		} else if strings.TrimSpace(s) != "" {
			question = ""
		}
	}
	if claim == None && question != "" && w.asks(question) {
		return Open, question
	}
	return claim, why
}

// markerOf is the marker that a line is, "" for none.
func markerOf(line string) string {
	line = strings.Trim(strings.TrimSpace(line), "*_ ")
	switch line {
	case "[DONE]", "REPRISE: DONE", "[COMPLETED]", "[OPEN]", "REPRISE: OPEN", "[BLOCKED]", "[PARTIAL]":
		return line
	}
	return ""
}

func claimOf(marker string) Claim {
	switch marker {
	case "[DONE]", "REPRISE: DONE", "[COMPLETED]":
		return Done
	}
	return Open
}

// prose are the lines that the agent says itself: no code, no quotes, no boxes
// that are ticked. marker is the last marker among them, open a box that is not
// ticked.
func prose(text string) (lines []string, marker, open string) {
	fence := ""
	for line := range strings.Lines(text) {
		l := strings.TrimSpace(line)
		if f := fenceOf(l); f != "" && (fence == "" || strings.HasPrefix(f, fence) && strings.Trim(l, f[:1]) == "") {
			if fence == "" {
				fence = f
			} else {
				fence = ""
			}
			continue
		}
		if fence != "" || strings.HasPrefix(l, ">") || strings.HasPrefix(line, "    ") && !listed(l) || strings.HasPrefix(line, "\t") && !listed(l) || strings.HasPrefix(l, "|") {
			continue
		}
		if m := markerOf(l); m != "" {
			marker = m
			continue
		}
		if box, rest := boxOf(l); box != 0 {
			if box == ' ' && open == "" {
				open = rest
			}
			continue
		}
		lines = append(lines, unquote(unlist(l)))
	}
	return lines, marker, open
}

// fenceOf is the run of ``` or ~~~ that a line begins with.
func fenceOf(l string) string {
	for _, c := range [...]string{"`", "~"} {
		if strings.HasPrefix(l, c+c+c) {
			return l[:len(l)-len(strings.TrimLeft(l, c))]
		}
	}
	return ""
}

func listed(l string) bool { return unlist(l) != l }

// unlist takes away what makes a line an item or a heading.
func unlist(l string) string {
	l = strings.TrimLeft(l, "#")
	l = strings.TrimSpace(l)
	for _, p := range [...]string{"- ", "* ", "+ ", "• ", "・"} {
		if s, ok := strings.CutPrefix(l, p); ok {
			return strings.TrimSpace(s)
		}
	}
	if i := strings.IndexAny(l, ".)"); i > 0 && i < 4 && strings.Trim(l[:i], "0123456789") == "" && len(l) > i+1 && l[i+1] == ' ' {
		return strings.TrimSpace(l[i+1:])
	}
	return l
}

// boxOf is what stands in an item's box, 0 where it has none.
func boxOf(l string) (box byte, rest string) {
	s := unlist(l)
	if len(s) >= 3 && s[0] == '[' && s[2] == ']' && (s[1] == ' ' || s[1] == 'x' || s[1] == 'X' || s[1] == '-' || s[1] == '~') {
		return s[1], s
	}
	for _, r := range [...]string{"☐", "□"} {
		if strings.HasPrefix(s, r) {
			return ' ', s
		}
	}
	return 0, ""
}

// quotes are pairs around what is somebody else's words.
var quotes = [...][2]string{{"`", "`"}, {"\"", "\""}, {"“", "”"}, {"「", "」"}, {"『", "』"}, {"«", "»"}, {"„", "“"}}

// unquote puts a mark in the place of what is quoted within a line.
func unquote(l string) string {
	for _, q := range quotes {
		for {
			i := strings.Index(l, q[0])
			if i < 0 {
				break
			}
			j := strings.Index(l[i+len(q[0]):], q[1])
			if j < 0 {
				break
			}
			l = l[:i] + "…q…" + l[i+len(q[0])+j+len(q[1]):]
		}
	}
	return strings.NewReplacer("**", "", "__", "", "’", "'", "＊", "").Replace(l)
}

// sentences splits lines where a sentence ends.
func sentences(lines []string) []string {
	var out []string
	for _, l := range lines {
		from := 0
		for i, r := range l {
			end := i + len(string(r))
			switch r {
			case '。', '！', '？', '；':
			case '.', '!', '?', ';':
				// Not within a name, a number or a path.
				if end < len(l) && l[end] != ' ' && l[end] != ')' {
					continue
				}
			case '—':
			default:
				continue
			}
			if s := strings.TrimSpace(l[from:end]); s != "" {
				out = append(out, s)
			}
			from = end
		}
		if s := strings.TrimSpace(l[from:]); s != "" {
			out = append(out, s)
		}
	}
	return out
}

func isQuestion(s string) bool {
	s = strings.TrimRightFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == ')' || r == '"' || r == '。' || r == '.' })
	for _, end := range [...]string{"?", "？", "ますか", "ましたか", "ですか", "でしょうか", "ましょうか", "ませんか"} {
		if strings.HasSuffix(s, end) {
			return true
		}
	}
	return false
}

// patterns are the expressions of one language.
type patterns struct {
	done, part *regexp.Regexp // a claim; a word of which a claim is made
	open, not  *regexp.Regexp // what is left; what turns a claim around
	skip       *regexp.Regexp // conditions, other people, what is quoted or told
	later      *regexp.Regexp // what is to come, or was done by somebody
	ask        *regexp.Regexp // a question of how to go on
	none, was  *regexp.Regexp // that nothing is left, and what was so before: neither says that work is open
}

type vocabulary struct{ english, japanese patterns }

// words are compiled when first needed: few programs that link them do.
var words = sync.OnceValue(func() *vocabulary {
	return &vocabulary{english: english(), japanese: japanese()}
})

// without is a sentence less what says that nothing is left, and what was once so.
func (p *patterns) without(s string) string {
	short := p.was.ReplaceAllString(p.none.ReplaceAllString(s, " "), "$1")
	if short == s {
		return s
	}
	end := ""
	if i := strings.LastIndexAny(s, ".!。！"); i >= 0 && strings.TrimRight(s[i:], ".!。！ ") == "" {
		end = s[i:]
	}
	return strings.Trim(short, " ,;:—–-、，.!。！") + end
}

// judge says what one sentence claims.
func (w *vocabulary) judge(s string) Claim {
	low := strings.ToLower(strings.TrimSpace(s))
	p := &w.english
	if isJapanese(low) {
		p = &w.japanese
	}
	if isQuestion(low) {
		return None
	}
	low = p.without(low)
	if p.open.MatchString(low) && !p.skip.MatchString(low) {
		return Open
	}
	if p.not.MatchString(low) {
		if p.part.MatchString(low) && !p.skip.MatchString(low) {
			return Open
		}
		return None
	}
	if p.skip.MatchString(low) || p.later.MatchString(low) || !p.done.MatchString(low) {
		return None
	}
	return Done
}

// asks reports whether a question wants the user to decide how to go on.
func (w *vocabulary) asks(s string) bool {
	low := strings.ToLower(s)
	if isJapanese(low) {
		return w.japanese.ask.MatchString(low)
	}
	return w.english.ask.MatchString(low)
}

func isJapanese(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.In(r, unicode.Hiragana, unicode.Katakana, unicode.Han) })
}

func english() patterns {
	const (
		thing  = `(?:everything|all(?: of)? (?:this|that|it|the [a-z]+(?: [a-z]+)?|[a-z]+ tests|tests|tasks|items|steps|changes|requirements|checks|files|phases)?|(?:the|this|that|your|my) (?:whole |entire |requested |full |new )?(?:[a-z]+ ){0,2}(?:task|work|implementation|feature|fix|change|changes|migration|refactoring|refactor|request|job|issue|bug|update|upgrade|cleanup|rewrite|port|setup|assignment|ticket|endpoint|script|module|function|command|page|documentation|test suite|bugs|issues|requirements|conversion|integration|release|tests)|it|this|that|task|work|implementation|feature|migration|refactoring|all)`
		adverb = `(?:now |all |fully |completely |successfully |finally |already |both |also )*`
		state  = `(?:done|complete|completed|finished|implemented|fixed|resolved|in place|ready|working|merged|all set|green)`
		tail   = `(?: (?:now|successfully|as requested|as you asked|end to end|for you|too|and working|and tested|and verified|here))*`
	)
	const (
		more  = `(?:(?:further|more|other|else|remaining|outstanding|open|known|pending|failing|broken|unresolved|unfinished|incomplete|additional|new|obvious) ){0,3}`
		stuff = `(?:work|steps?|tasks?|items?|todos?|to-dos?|issues?|problems?|failures?|errors?|tests?|checks?|changes?|questions?|blockers?|bugs?|gaps?|regressions?|loose ends?|action)`
		left  = `(?:left(?: over)?|remains?|remaining|outstanding|open|pending|missing|failing|broken|unfinished|unresolved|incomplete|to do|to be done|to fix|needed|required)`
	)
	return patterns{
		none: regexp.MustCompile(
			`(?:\band |\bwith |\bso )?(?:\bthere (?:is|are|'s) |\bi see |\bi found )?\b(?:no|zero|without(?: any)?|not any) ` + more + stuff + `(?: (?:is|are|was|were|still|now|currently))*(?: ` + left + `){0,2}\b` +
				`|(?:\band |\bso )?(?:\bthere(?: is|'s) )?\b(?:nothing|none)(?: else| more| further| of (?:it|them|these|those|the tests))?(?: (?:is|are|was|were|still|now))*(?: ` + left + `){1,3}\b`),
		was:  regexp.MustCompile(`\b(?:that|which) (?:was|were|had been|used to be) (?:still |previously |once |being )*(?:failing|broken|missing|open|left|incomplete|unfinished|red|blocked|in progress)()\b`),
		part: regexp.MustCompile(`\b(?:done|complete|completed|finish|finished|implemented|fixed|resolved|ready|working|pass|passes|passing|green)\b`),
		done: regexp.MustCompile(
			// The whole sentence is the claim.
			`^(?:and |so |ok,? |okay,? |great,? |perfect,? |now |yes,? |✅ ?|🎉 ?|status[,:]? )*(?:` + thing + `(?: |'s ))?(?:is |are |was |were |has been |have been )?` + adverb + state + tail + `[.!…✅🎉 ]*$` +
				`|^(?:it's|that's|that is|this is|we're|we are|i'm|i am) ` + adverb + `(?:done|finished|complete|all set|good to go)` + tail + `[.! ]*$` +
				// Somebody says of themselves that they have done it.
				`|\b(?:i|we)(?:'ve| have)?(?: now| just| also| successfully| finally| fully)* (?:finished|completed|implemented|fixed|resolved|wrapped up|done with)\b` +
				`|\b(?:i|we)(?:'m| am|'re| are) (?:now )?(?:done|finished)\b` +
				// Something is said to have been done, in the middle of a sentence.
				`|\b` + thing + ` (?:is|are|has been|have been) ` + adverb + `(?:done|complete|completed|finished|implemented|fixed|resolved|in place)\b` +
				`|\ball (?:the )?(?:[0-9]+ )?(?:[a-z]+ )?(?:tests|checks)(?: now| are| all)* (?:pass|passing|passed|green)\b`),
		open: regexp.MustCompile(
			`\b(?:work in progress|wip|in progress|half[- ]?(?:done|finished|way)|incomplete|unfinished|partially|partly)\b` +
				`|\bstill (?:need|needs|have to|has to|to do|to be|working|fail|fails|failing|missing|remains|remain|open|left|broken|red|some|a few|one|two|three)\b` +
				`|\b(?:remaining|outstanding|left)(?: work| steps?| tasks?| items?| to do| todos?)? ?(?::|are|is|include|to do)` +
				`|^(?:todo|to do|to-do|remaining|not done|open)[:. ]` + `|^(?:todo|remaining|not done yet|not yet)$` +
				`|\b(?:next|then|now|first)?,? ?(?:i'll|i will|i am going to|i'm going to|we'll|we will|let me) (?:now |next |then |also )*(?:continue|proceed|start|implement|fix|add|write|run|work|move|finish|look|update|create|check|investigate|try|do|handle|tackle|test|verify|refactor|complete)\b` +
				`|\b(?:i|we) (?:couldn't|could not|can't|cannot|can not|was unable|am unable|were unable|wasn't able|failed to|did not manage|didn't manage|haven't|have not)\b` +
				`|\b(?:i'm|i am|we're|we are) (?:blocked|stuck|waiting)\b|\bblocked (?:by|on)\b|\bwaiting (?:for|on) (?:you|your|approval|input|the user)\b` +
				`|\b(?:tests?|build|checks?|suite) (?:is|are|still|currently|now)* ?(?:fail|fails|failing|failed|red|broken)\b`),
		not: regexp.MustCompile(
			`\b(?:not|never|nothing|yet|almost|nearly|hardly|barely|far from|mostly|about to|except|apart from|other than|only|isn't|aren't|wasn't|weren't|don't|doesn't|didn't|haven't|hasn't|hadn't|won't|wouldn't|can't|couldn't|shouldn't|cannot|unable|to be done|close to|as good as|would-be|supposed to|most of|some of|half of|part of|[0-9]+ of|but)\b|\b[0-9]+/[0-9]+\b|%`),
		skip: regexp.MustCompile(
			`\b(?:if|when|whenever|once|until|till|unless|as soon as|in case|assuming|provided that|before|after|whether|while)\b` +
				`|\b(?:he|she|they|you|you've|they've|somebody|someone|everybody|upstream|maintainers?|team|colleagues?|coworker|user|customer|ci|bot|dependabot|subagent|sub-agent|other agent|another agent|previous (?:agent|session|developer|author|commit|run)|predecessor|reviewer|bob|alice)(?:'s)?(?: has| have| had| already| just| also)* (?:did|done|finished|completed|implemented|fixed|resolved|wrapped|merged|said|says)\b` +
				`|\b(?:says?|said|prints?|printed|reports?|reported|claims?|claimed|called|named|labell?ed|marked|means|the word|the string|the phrase|the message|the marker|the flag|the status field|stands for|definition of|reads|returns?|returned|shows?|displays?|outputs?|emits?|logs|writes)\b` +
				`|\b(?:his|her|their|(?:somebody|someone|colleague|coworker|teammate|maintainer|upstream|reviewer|team|user|customer|bob|alice)'s) (?:[a-z]+ )?(?:work|task|part|change|fix|job|pr)\b` +
				`|…q…|\b(?:yesterday|last week|last month|last year|ago|in the past|earlier this|previously|used to|in v?[0-9]+\.[0-9]+|back then|since 20[0-9][0-9]|in 20[0-9][0-9])\b` +
				`|\b(?:example|e\.g|such as|like this|hypothetically|imagine|pretend)\b`),
		later: regexp.MustCompile(
			`\b(?:will|shall|going to|gonna|i'll|you'll|we'll|it'll|let's|should|would|could|might|may|must|needs? to|have to|has to|had to|plan to|plans to|trying to|want to|wants to|expect|hope|try to|please|suppose)\b` +
				`|\bby (?:the|a|an|another|somebody|someone|him|her|them|you|ci|our|their|bob|alice|dependabot|upstream|previous)\b`),
		ask: regexp.MustCompile(`\b(?:should i|shall i|shall we|may i|(?:can|could) i (?:go|delete|remove|merge|push|run|use|change|assume|skip|add|drop)|should we|would you (?:like|prefer|rather)|do you (?:want|prefer|mean)|which|what should|how should|prefer|proceed|continue|is (?:it|that|this) ok(?:ay)?)\b`),
	}
}

func japanese() patterns {
	const (
		left = `(?:残りの?|残っている|残った|未(?:完了|完成|対応|実装|解決|着手|処理)の?|失敗(?:している|した|する)?の?|既知の)?(?:作業|タスク|項目|問題|課題|箇所|部分|手順|エラー|失敗|テスト|もの|残り|残作業|残タスク|残課題|todo)`
		none = `(?:ありません|ございません|なし(?:です)?|無し(?:です)?|無いです|ないです|残っていません|残っておりません|ゼロ(?:です)?)`
	)
	return patterns{
		none: regexp.MustCompile(`(?:` + left + `|残り|残作業|残タスク)(?:は|も|が)?(?:、)?(?:もう|特に|一切|何も|ひとつも|1つも)?` + none),
		was:  regexp.MustCompile(`(?:失敗して|壊れて|残って|落ちて|エラーが出て)いた([\p{Han}\p{Katakana}])`),
		part: regexp.MustCompile(`完了|完成|終わ|終了|でき|実装|修正|対応|解決|済み|通って|通り`),
		done: regexp.MustCompile(
			`(?:完了|完成|実装|修正|対応|解決|終了|作成|追加|移行|更新|達成)(?:が|は|を|も)?(?:いた|致)?しました(?:。|！|!|$|ので|、|が、全)` +
				`|(?:完了|完成|終了|解決)(?:です|済みです|しています|となります|済み)` +
				`|(?:作業|実装|修正|対応|タスク|すべて|全て|全部|変更|移行|テスト)(?:が|は|も)?(?:すべて|全て|全部|無事|これで)?(?:終わりました|完了しました|完了です|終わっています|できました|済みました|片付きました|終わり(?:です|ました))` +
				`|(?:すべて|全て|全部|全)(?:の)?(?:テスト|チェック|検査|項目)(?:が|は|に)?(?:すべて|全て)?(?:通りました|通っています|パスしました|成功しました|合格しました|通過しました)` +
				`|(?:出来上がり|できあがり|仕上がり|直り|直し|終わり|やり終え)ました|^(?:完了|終わりました|できました|完了しました|以上です)[。！!]?$|^(?:すべて|全て|全部)(?:の(?:作業|タスク|項目|実装))?(?:が|は)?完了[。！!]?$|以上で(?:作業|対応|実装|修正)?(?:は)?(?:完了|終了|終わり)`),
		open: regexp.MustCompile(
			`まだ|途中|作業中|対応中|実装中|修正中|進行中|未完了|未完成|未対応|未実装|未着手|未解決|残って|残りの(?:作業|タスク|項目|手順|テスト)|残り(?:は|が)|残作業|残タスク` +
				`|これから|次に、?|続けて|引き続き|続きは|あとは|あと(?:[0-9０-９一二三]+)` +
				`|できませんでした|できていません|終わっていません|完了していません|失敗しました|失敗して(?:い|お)|エラーが出て|通りません|通っていません|待ちです|待っています|ブロックされ|行き詰`),
		not: regexp.MustCompile(`ません|ない(?:です|。|$|と|ため|ので|が)|なかった|ほぼ|ほとんど|だいたい|大体|もうすぐ|もう少し|一部|部分的|半分|以外|のみ|だけ|[0-9０-９]+割|[0-9０-９]+(?:%|％|パーセント)|[0-9]+/[0-9]+`),
		skip: regexp.MustCompile(
			`たら|れば|ならば|なら、|場合|次第|とき(?:は|に)|時(?:は|に|点)|した後|後に|したあと|まで(?:は|に|$|、)|前に|すると|たとえ|もし|例えば|たとえば|仮に` +
				`|さん(?:が|は|も)|チーム(?:が|は|も)|ユーザー(?:が|は|も)|あなた(?:が|は|も)|お客様|他の|別の(?:エージェント|人|担当)|前任|担当者|レビュアー|上流|誰か|CI(?:が|は|も)|ci(?:が|は|も)|によって|以前|前回|先週|先月|昨日|昨年|過去` +
				`|と(?:言|いう|書|表示|出力|記|返|呼)|という|…q…|を意味|とは|定義`),
		later: regexp.MustCompile(`予定|つもり|今後|ていきます|しようと|必要|べき|てください|ましょう|します(?:。|！|$|ので|が)|かもしれ|はず|でしょう|思い(?:ます|ました)|希望`),
		ask:   regexp.MustCompile(`どちら|どれ|どの|どうし|どのよう|よろしい|続け|進め|ましょうか`),
	}
}
