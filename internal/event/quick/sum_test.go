package quick

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

// The hash is the library's, for every length around the borders of a block.
func TestSum(t *testing.T) {
	text := strings.Repeat("0123456789abcdefghijklmnopqrstuvwxyz\x00\xff", 20)
	for n := range 300 {
		if got, want := sum(text[:n]), hash(text[:n]); got != want {
			t.Fatalf("%d bytes: %s, want %s", n, got, want)
		}
	}
	long := []byte(strings.Repeat("a", 1<<20))
	if got, want := sum(long), hash(string(long)); got != want {
		t.Errorf("1 MiB: %s, want %s", got, want)
	}
}

func hash(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

func FuzzSum(f *testing.F) {
	f.Add([]byte("abc"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, want := sum(b), hash(string(b)); got != want {
			t.Errorf("%x: %s, want %s", b, got, want)
		}
	})
}

func BenchmarkSum(b *testing.B) {
	line := make([]byte, 4096)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		sum(line)
	}
}
