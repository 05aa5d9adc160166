package mdfile

// Tokens is about how many tokens a text costs a model: one for four
// characters, and one for each character of a script that is written without
// spaces (Chinese, Japanese, Korean, Thai), where tokenizers get no further than
// that. It is an estimate on the high side, for budgets; no tokenizer is asked,
// because every client's model has another one.
func Tokens(text string) int {
	narrow, wide := 0, 0
	for _, r := range text {
		if r >= 0x0e00 && (r <= 0x0e7f || r >= 0x1100 && r <= 0x11ff || r >= 0x2e80 && r <= 0x9fff || r >= 0xa960 && r <= 0xd7ff || r >= 0xf900 && r <= 0xfaff || r >= 0xff00 && r <= 0xffef || r >= 0x20000 && r <= 0x3ffff) {
			wide++
		} else {
			narrow++
		}
	}
	return (narrow+3)/4 + wide
}
