package lexicon

import (
	"strings"
	"testing"
)

// BenchmarkWords cuts a text as sessions have it.
func BenchmarkWords(b *testing.B) {
	text := strings.Repeat("The tests of internal/cart/cart.go:42 failed: undefined: windGust. It worked after editing parse_config and running the tests again, with 1.24.3 installed on the machines. ", 20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Words(text, func(Word) bool { return true })
	}
}
