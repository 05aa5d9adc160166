package sign

import (
	"slices"
	"strings"

	"reprise/internal/clip"
	"reprise/internal/term"
)

// Seen is a text as one line of what can be seen of it: what rises stands where
// people read it, and they must be able to tell what it says.
func Seen(text string) string {
	return clip.Line(strings.Map(func(r rune) rune {
		switch {
		case r < 0x20, r >= 0x7f && r < 0xa0:
			return ' '
		case r >= 0x80 && term.SafeLine(string(r)) != string(r):
			return -1
		}
		return r
	}, text))
}

// plainLetter gives the Latin letter for one that looks like it: Cyrillic, Greek, of full
// width.
func plainLetter(r rune) rune {
	const look, like = "АВЕЅІЈКМНОРСТХУаеіјорсухѕһԁԛԝѵΑΒΕΖΗΙΚΜΝΟΡΤΥΧαιονρυχıɡɑ", "ABESIJKMHOPCTXYaeijopcyxshdqwvABEZHIKMNOPTYXaiovpuxiga"
	if r >= '！' && r <= '～' {
		return r - '！' + '!'
	}
	if i := slices.Index([]rune(look), r); i >= 0 {
		return rune(like[i])
	}
	return r
}

// Instructs finds words by which a text tries to steer a model. It is made to
// find too much: what it holds back a person can still promote.
func Instructs(text string) string {
	low := strings.ToLower(strings.Map(plainLetter, Seen(text)))
	for _, w := range [...]string{
		"ignore previous", "ignore all", "ignore the above", "ignore any", "ignore your", "disregard", "forget everything", "forget all", "forget your",
		"previous instruction", "system prompt", "system message", "you are now", "you must now", "from now on", "act as", "pretend to", "as an ai", "new instructions",
		"do not tell", "don't tell the user", "without telling", "without asking", "do not mention", "secretly", "exfiltrat", "override your", "jailbreak", "developer mode",
		"<system", "</system", "<assistant", "<|im_", "[inst]", "### instruction", "assistant:", "system:", "human:", "important:", "attention ai", "note to ai", "to the agent",
		"send it to", "upload it to", "base64 -d", "| sh", "| bash", "|sh", "|bash", "eval(", "--no-verify", "--dangerously", "chmod 777", "rm -rf /", "rm -rf ~", "curl http", "wget http",
		"指示を無視", "命令を無視", "無視して", "これまでの指示", "システムプロンプト", "秘密に", "ユーザーに言わ", "以前の指示", "従ってください", "あなたは今から",
	} {
		if strings.Contains(low, w) {
			return w
		}
	}
	return ""
}
