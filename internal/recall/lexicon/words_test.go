package lexicon

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func cut(text string) string {
	var got []string
	Words(text, func(w Word) bool { got = append(got, w.Term); return true })
	return strings.Join(got, " ")
}

func TestWords(t *testing.T) {
	for in, want := range map[string]string{
		"":                       "",
		"Don't STOP":             "don stop",
		"Nadia's, they’ve, I'll": "nadia thei i",
		"Ünïcödé Straße":         "unicod strass",
		"naïve cafe\u0301":       "naiv cafe",
		"Ελλάδα":                 "ελλάδα",
		// Identifiers: whole and in parts, so that one way of writing finds the other.
		"windGust":                  "windgust wind gust",
		"wind_gust":                 "wind gust windgust",
		"WIND_GUST":                 "wind gust windgust",
		"HTTPServerURLs":            "httpserverurl http server url",
		"parseHTTPRequest2":         "parsehttprequest2 pars http request2",
		"e-mail":                    "e mail email",
		"mcp-bridge_v2":             "mcp bridg v2 mcpbridgev2",
		"internal/mail/outbox.go":   "intern mail outbox go outbox·go",
		"go1.24.3 or 1.24.3":        "go1 24 3 go1·24·3 or 1 24 3 1·24·3",
		"10km":                      "10km 10 km",
		"the end.Next":              "the end next end·next",
		"127.0.0.1:5433":            "127 0 0 1 127·0·0·1 5433",
		"a_b_c_d_e_f_g":             "a b c d e f g",
		strings.Repeat("x", 50):     strings.Repeat("x", 40),
		"TestWebhookRetry":          "testwebhookretri test webhook retri",
		"--max-old-space-size=4096": "max old space size maxoldspaces 4096",
		// Forms that no rule leads back.
		"went goes going":        "go go go",
		"bought children mice":   "bui child mous",
		"colours favourite data": "color favorit datum",
		"Ines used it in use":    "ines use it in use", // "us" and "in" say nothing
		// Scripts without spaces.
		"日本語 x":    "日本 日 本語 本 語 x",
		"字":        "字",
		"サーバー":     "サー ーバ",
		"サーバ":      "サー ーバ",
		"ｻｰﾊﾞｰ":    "サー ーバ",
		"ﾊﾟｿｺﾝ":    "パソ ソコ コン",
		"１２３ＡＢＣ":   "123abc 123 abc",
		"読み聞かせ":    "読 み 聞 かせ",
		"Goのエラー処理": "go の エラ 処理 処 理",
		"コーヒー、豆":   "コー ーヒ 豆",
		"กาแฟ":     "กา าแ แฟ",
		"한국어":      "한국 국어",
	} {
		if got := cut(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestWordsMeet: what is written in two ways has a word in common.
func TestWordsMeet(t *testing.T) {
	for _, p := range [][2]string{
		{"getUserName", "get_user_name"}, {"E-Mail", "email"}, {"ＡＰＩ", "api"}, {"ﾃﾞｰﾀ", "データ"}, {"buying", "bought"},
		{"the children", "a child"}, {"he swam", "swimming"}, {"データベース", "データベースの設定"}, {"grey", "gray"}, {"organised", "organizing"},
	} {
		have := map[string]bool{}
		for w := range strings.FieldsSeq(cut(p[0])) {
			have[w] = true
		}
		met := false
		for w := range strings.FieldsSeq(cut(p[1])) {
			met = met || have[w] && !Stop(w)
		}
		if !met {
			t.Errorf("%q (%s) and %q (%s) have no word in common", p[0], cut(p[0]), p[1], cut(p[1]))
		}
	}
}

// FuzzWords: every word lies where it says, parts included, and is of
// characters that FTS5's tokenizer takes for one word.
func FuzzWords(f *testing.F) {
	for _, s := range []string{"", "aB.c_d-e", "ﾊﾟ\xffﾞ", "日本\u0301語ー", "1.2.3.4.5.6", "a'", "’s", "\xe3\x81", "é́", "ｱﾞ", "IÌ İ", "x\x00y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n := 0
		Words(s, func(w Word) bool {
			n++
			if w.Start < 0 || w.Start >= w.End || w.End > len(s) {
				t.Fatalf("%q: %q from %d to %d", s, w.Term, w.Start, w.End)
			}
			if w.Term == "" || !utf8.ValidString(w.Term) || len(w.Term) > maxWord+8 {
				t.Fatalf("%q gives the word %q", s, w.Term)
			}
			for _, r := range w.Term {
				if r < utf8.RuneSelf && !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') {
					t.Fatalf("%q gives the word %q", s, w.Term)
				}
			}
			return true
		})
		if n > 4*len(s) {
			t.Fatalf("%d bytes give %d words", len(s), n)
		}
		stopped := 0
		Words(s, func(Word) bool { stopped++; return false })
		if stopped > 1 {
			t.Fatalf("%q: %d words after the caller had enough", s, stopped)
		}
	})
}
