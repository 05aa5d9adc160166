package mcpserver

import (
	"strings"
	"testing"
)

// BenchmarkToolCall is one call there and back over pipes, with the guard, the
// SDK, the checks and the log between; nothing behind the tool.
func BenchmarkToolCall(b *testing.B) {
	w := newWorld(b, nil)
	p := w.serve(b.Context()).hands()
	line := toolCall(1, "memory_read", `{"name":"core"}`)
	b.ResetTimer()
	for range b.N {
		p.send(line)
		if l := p.next(); !strings.Contains(l, "A tester.") {
			b.Fatal(l)
		}
	}
	b.StopTimer()
	if err := p.end(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkStart is what a server costs before its first answer, without the
// process: made, handshake, list of tools.
func BenchmarkStart(b *testing.B) {
	for range b.N {
		w := newWorld(b, nil)
		p := w.serve(b.Context()).hands()
		p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		p.next()
		if err := p.end(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGuard is a line of 1 MiB through the guard alone.
func BenchmarkGuard(b *testing.B) {
	c := &guardConn{limit: maxMessage, known: knownMethod}
	data := []byte(toolCall(1, "append_file", `{"path":"x","text":"`+strings.Repeat("x", 1<<20)+`"}`))
	b.SetBytes(int64(len(data)))
	for range b.N {
		if _, refused := c.parse(line{data: data, total: int64(len(data))}); refused != nil {
			b.Fatal(refused.text)
		}
	}
}
