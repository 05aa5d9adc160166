package mcpserver

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What the SDK leaves to us.

func TestSDKGarbageOnStdin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	p := w.serve(t.Context()).hands()
	huge := `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"append_file","arguments":{"path":"x","text":"` + strings.Repeat("y", maxMessage) + `"}}}`
	hugeLast := `{"method":"tools/call","params":{"text":"` + strings.Repeat("y", maxMessage) + `"},"jsonrpc":"2.0","id":"last"}`
	for _, c := range []struct {
		name, line string
		code       int
		id         string
	}{
		{"garbage", "hello there", -32700, "null"},
		{"half", `{"jsonrpc":"2.0","id":1,`, -32700, "null"},
		{"two messages on a line", `{"jsonrpc":"2.0","id":1,"method":"ping"} {"jsonrpc":"2.0","id":2,"method":"ping"}`, -32700, "null"},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, -32600, "null"},
		{"empty batch", `[]`, -32600, "null"},
		{"scalar", `42`, -32600, "null"},
		{"no version", `{"id":5,"method":"ping"}`, -32600, "5"},
		{"old version", `{"jsonrpc":"1.0","id":5,"method":"ping"}`, -32600, "5"},
		{"method is a number", `{"jsonrpc":"2.0","id":5,"method":3}`, -32600, "5"},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, -32600, "null"},
		{"id with a fraction", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, -32600, "null"},
		{"id too large to give back", `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, -32600, "null"},
		{"neither request nor answer", `{"jsonrpc":"2.0"}`, -32600, "null"},
		{"not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"prompts/get\",\"params\":{\"name\":\"\xff\"}}", -32700, "6"},
		{"bytes", "\x00\xff\xfe", -32700, "null"},
		{"nested a thousand deep", `{"jsonrpc":"2.0","id":8,"method":"ping","params":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`, -32600, "8"},
		{"huge", huge, -32600, "77"},
		{"huge with the id at its end", hugeLast, -32600, `"last"`},
		{"params is a list", `{"jsonrpc":"2.0","id":10,"method":"tools/call","params":[1]}`, -32602, "10"},
	} {
		r := p.ask(c.line)
		if r.Error == nil || r.Error.Code != c.code || string(r.ID) != c.id {
			t.Errorf("%s: got %+v (id %s), want %d for id %s", c.name, r.Error, r.ID, c.code, c.id)
		}
		if r := p.ask(`{"jsonrpc":"2.0","id":"alive","method":"ping"}`); r.Error != nil || string(r.ID) != `"alive"` {
			t.Fatalf("after %s: %+v", c.name, r)
		}
	}
	// And what is harmless.
	for _, line := range []string{"", "   ", "\r", `{"jsonrpc":"2.0","method":"notifications/nonsense"}`, `{"jsonrpc":"2.0","id":99,"result":{}}`} {
		p.send(line)
	}
	if r := p.ask("\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":"bom","method":"ping"}` + "\r"); string(r.ID) != `"bom"` || r.Error != nil {
		t.Errorf("a byte order mark: %+v", r)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// A tool call whose bytes are not UTF-8 gets as far as the tool, which says
// which parameter it is.
func TestSDKNotUTF8InAToolCall(t *testing.T) {
	w := newWorld(t, nil)
	p := w.serve(t.Context()).hands()
	r := p.ask(toolCall(1, "append_file", "{\"path\":\"notes.md\",\"text\":\"a\xffb\"}"))
	if msg := mustJSON(t, r.Result["content"]); r.Result["isError"] != true || !strings.Contains(msg, `\"text\"`) || !strings.Contains(msg, "UTF-8") {
		t.Errorf("got %+v", r)
	}
	if w.memory.changes() != 0 {
		t.Error("something was written")
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

func TestSDKHandlerPanicSurvives(t *testing.T) {
	w := newWorld(t, nil)
	w.memory.panics = true
	w.server.SDK.AddPrompt(&mcp.Prompt{Name: "broken"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) { panic("a prompt breaks") })
	p := w.serve(t.Context()).hands()
	r := p.ask(toolCall(1, "memory_read", `{"name":"core"}`))
	if r.Error != nil || r.Result["isError"] != true || !strings.Contains(mustJSON(t, r.Result), "the fake memory breaks") {
		t.Errorf("tool: %+v", r)
	}
	if r := p.ask(`{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"broken"}}`); r.Error == nil || r.Error.Code != -32603 {
		t.Errorf("prompt: %+v", r)
	}
	if r := p.ask(`{"jsonrpc":"2.0","id":3,"method":"ping"}`); r.Error != nil {
		t.Errorf("afterwards: %+v", r)
	}
	if n := len(w.log.find(t, LogError)); n < 2 {
		t.Errorf("%d errors logged", n)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

func TestSDKUnknownMethodsAtOnce(t *testing.T) {
	w := newWorld(t, nil)
	p := w.serve(t.Context())
	for _, before := range []bool{true, false} {
		for _, m := range []string{"tasks/list", "x", "", "roots/list", strings.Repeat("m", 5000)} {
			if r := p.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q}`, m)); r.Error == nil || r.Error.Code != -32601 || len(r.Error.Message) > 400 {
				t.Errorf("%.20q before the handshake=%v: %+v", m, before, r.Error)
			}
		}
		if before {
			// A known method too early is the caller's fault, and says so.
			if r := p.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); r.Error == nil || r.Error.Code != -32600 {
				t.Errorf("tools/list before the handshake: %+v", r.Error)
			}
			p.hands()
		}
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// Eight calls that wait and a quick one, which is answered at once.
func TestSDKQuickCallBesideSlowOnes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(d *Deps) { d.Settings.SubAgent.MaxConcurrentAgents = 8 })
	p := w.serve(t.Context()).hands()
	for i := range 8 {
		p.send(toolCall(i, "spawn_agent", `{"task":"long"}`))
	}
	waitFor(t, func() bool { return w.runs.count() == 8 })
	began := time.Now()
	if r := p.ask(toolCall(100, "memory_read", `{"name":"core"}`)); string(r.ID) != "100" || r.Error != nil {
		t.Errorf("got %+v", r)
	}
	if took := time.Since(began); took > 10*time.Second { // the slow ones take longer
		t.Errorf("answered after %s", took)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// Output that can no longer be written ends the session, with no half line
// followed by another.
func TestSDKBrokenOutput(t *testing.T) {
	w := newWorld(t, nil)
	out := &shortWriter{left: 50}
	err := w.server.ServeStdio(t.Context(), strings.NewReader(shake+"\n"+shake+"\n"), out)
	if out.calls != 1 || out.wrote != 50 {
		t.Errorf("%d writes, %d bytes, %v", out.calls, out.wrote, err)
	}
}

type shortWriter struct{ left, calls, wrote int }

func (s *shortWriter) Write(p []byte) (int, error) {
	s.calls++
	n := min(len(p), s.left)
	s.left -= n
	s.wrote += n
	if n < len(p) {
		return n, os.ErrClosed
	}
	return n, nil
}
