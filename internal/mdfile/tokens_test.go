package mdfile

import (
	"strings"
	"testing"
)

func TestTokens(t *testing.T) {
	for _, test := range []struct {
		text string
		want int
	}{
		{"", 0},
		{"a", 1},
		{"four", 1},
		{"fives", 2},
		{strings.Repeat("word ", 800), 1000},
		// A budget that counted four of these as one token would be spent four times.
		{"ステージングの環境", 9},
		{"ポートは5432です", 7},
		{"한국어", 3},
		{"naïve café", 3},
	} {
		if got := Tokens(test.text); got != test.want {
			t.Errorf("Tokens(%q) = %d, want %d", test.text, got, test.want)
		}
	}
}
