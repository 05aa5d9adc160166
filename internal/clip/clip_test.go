package clip

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRunes(t *testing.T) {
	for _, c := range []struct {
		s    string
		most int
		want string
	}{
		{"", 0, ""}, {"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"日本語", 3, "日本語"}, {"日本語で", 3, "日本…"},
		{"ab cd", 4, "ab…"}, {"abc", 1, "…"}, {"abc", 0, ""}, {"abc", -1, ""}, {"a\xff\xfe!", 3, "a\xff…"},
	} {
		if got := Runes(c.s, c.most); got != c.want {
			t.Errorf("Runes(%q, %d) is %q, not %q", c.s, c.most, got, c.want)
		}
	}
}

func TestBytes(t *testing.T) {
	for _, c := range []struct {
		s          string
		most       int
		want, head string
	}{
		{"", 0, "", ""}, {"abc", 3, "abc", "abc"}, {"abcd", 3, "…", "abc"}, {"abcdef", 5, "ab…", "abcde"},
		{"日本語", 9, "日本語", "日本語"}, {"日本語", 8, "日…", "日本"}, {"日本語", 2, "", ""}, {"日本語", -1, "", ""},
	} {
		if got := Bytes(c.s, c.most); got != c.want {
			t.Errorf("Bytes(%q, %d) is %q, not %q", c.s, c.most, got, c.want)
		}
		if got := Head(c.s, c.most); got != c.head {
			t.Errorf("Head(%q, %d) is %q, not %q", c.s, c.most, got, c.head)
		}
	}
}

// Whatever is cut, the bound holds, text stays text, and what fits is left alone.
func FuzzClip(f *testing.F) {
	f.Add("one\ntwo", 3)
	f.Add("日本語 \xff", 4)
	f.Fuzz(func(t *testing.T, s string, most int) {
		most = min(max(most, 0), 1000)
		r, b, h := Runes(s, most), Bytes(s, most), Head(s, most)
		if utf8.RuneCountInString(r) > most || len(b) > most || len(h) > most {
			t.Errorf("%d of %q: %q, %q, %q", most, s, r, b, h)
		}
		if utf8.ValidString(s) && !(utf8.ValidString(r) && utf8.ValidString(b) && utf8.ValidString(h)) {
			t.Errorf("%d of %q: %q, %q, %q", most, s, r, b, h)
		}
		if utf8.RuneCountInString(s) <= most && r != s || len(s) <= most && (b != s || h != s) || !strings.HasPrefix(s, h) {
			t.Errorf("%d of %q: %q, %q, %q", most, s, r, b, h)
		}
	})
}
