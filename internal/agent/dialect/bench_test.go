package dialect_test

import (
	"io/fs"
	"strings"
	"testing"

	"reprise/internal/agent/dialect"
	"reprise/internal/agent/dialect/fixture"
)

// What the hook program does with a payload beside reading and writing files:
// a usual one, and one with a megabyte of output.
func BenchmarkPayload(b *testing.B) {
	usual, err := fs.ReadFile(fixture.Builtin(), "claude/PostToolUse/stdin.json")
	if err != nil {
		b.Fatal(err)
	}
	large := strings.Replace(string(usual), `"env=SessionStart"`, `"`+strings.Repeat(`line 日本 \"x\"\n`, 60_000)+`"`, 1)
	for name, payload := range map[string][]byte{"usual": usual, "1MB": []byte(large)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(payload)))
			for b.Loop() {
				e, err := dialect.Parse("claude", "PostToolUse", payload)
				if err != nil {
					b.Fatal(err)
				}
				dialect.AppendData(nil, e)
				dialect.Encode(e, dialect.Decision{Context: "c"})
			}
		})
	}
}
