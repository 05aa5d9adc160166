package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"reprise/internal/config"
	"reprise/internal/recall"
	"reprise/internal/run"
)

// What clients do, and what a server owes them: one test a lesson. Lesson 11
// (finding programs on Windows) and lesson 12 (a minimal PATH) are package
// proc's, where programs are looked for.

// Lesson 1: clients cut calls. Answer within the window, show progress at
// least every 10 s when there is a token, and lose nothing of a cut call
// (TestCancelledCallLosesNothing, TestIdempotencyKeyStartsNothingTwice).
func TestLesson1Progress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		p := w.serve(t.Context()).hands()
		began := time.Now()
		p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"spawn_agent","arguments":{"task":"long"},"_meta":{"progressToken":"tok"}}}`)
		var last time.Duration
		var progress float64
		for {
			r := p.reply()
			at := time.Since(began)
			if at-last > 10*time.Second {
				t.Errorf("silent for %s", at-last)
			}
			last = at
			if r.Method == "notifications/progress" {
				if now := r.Params["progress"].(float64); r.Params["progressToken"] != "tok" || now <= progress {
					t.Errorf("progress: %v", r.Params)
				} else {
					progress = now
				}
				continue
			}
			if string(r.ID) != "1" || at != 25*time.Second {
				t.Errorf("answer %s after %s", r.ID, at)
			}
			break
		}
		if progress < 20 {
			t.Errorf("last progress %v", progress)
		}
		if err := p.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestLesson1NoTokenNoProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		p := w.serve(t.Context()).hands()
		if r := p.ask(toolCall(1, "spawn_agent", `{"task":"long"}`)); string(r.ID) != "1" {
			t.Errorf("got %+v before the answer", r)
		}
		if err := p.end(); err != nil {
			t.Error(err)
		}
	})
}

// A client's own cancel ends the call and not the run.
func TestLesson1CancelledNotification(t *testing.T) {
	w := newWorld(t, nil)
	p := w.serve(t.Context()).hands()
	p.send(toolCall(1, "spawn_agent", `{"task":"long"}`))
	waitFor(t, func() bool { return w.runs.count() == 1 })
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"too slow"}}`)
	p.reply()
	recs, _ := w.runs.List(t.Context())
	if recs[0].Status != run.Running {
		t.Errorf("the run is %s", recs[0].Status)
	}
	w.runs.finish(t, recs[0].ID, run.Completed, "", "kept")
	r := p.ask(toolCall(2, "check_agent", fmt.Sprintf(`{"job_id":%q,"wait_seconds":5}`, recs[0].ID)))
	if a, _ := r.Result["structuredContent"].(map[string]any); a["result"] != "kept" {
		t.Errorf("got %+v", r)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatal("not within 5 s")
		}
		time.Sleep(time.Millisecond)
	}
}

// Lesson 2: every byte on standard output is protocol. peer.next fails on any
// line that is not JSON; here, with everything that could make a server talk.
func TestLesson2OnlyProtocolOnStdout(t *testing.T) {
	w := newWorld(t, nil)
	w.memory.panics = true
	p := w.serve(t.Context()).hands()
	for i, line := range []string{
		"garbage", toolCall(1, "memory_read", `{"name":"core"}`), toolCall(2, "spawn_agent", `{"task":"fail x"}`),
		toolCall(3, "no_such_tool", `{}`), `{"jsonrpc":"2.0","id":4,"method":"nope"}`,
	} {
		if r := p.ask(line); r.Result == nil && r.Error == nil {
			t.Errorf("line %d: %+v", i, r)
		}
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// Lesson 3: gone within a second of the end of input or of the context, which
// stands for the signals and the death of the parent; calls that wait do not
// hold it up. The end-to-end tests do it with processes.
func TestLesson3GoneWithinASecond(t *testing.T) {
	for _, how := range []string{"end of input", "context"} {
		for _, busy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s busy=%v", how, busy), func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				w := newWorld(t, nil)
				p := w.serve(ctx).hands()
				if busy {
					p.send(toolCall(1, "spawn_agent", `{"task":"long"}`))
					waitFor(t, func() bool { return w.runs.count() == 1 })
				}
				began := time.Now()
				if how == "context" {
					cancel(fmt.Errorf("stopped by signal (terminated)"))
				} else {
					p.in.Close()
				}
				if err := p.gone(); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("gone after %s", took)
				}
				if busy && w.runs.stopped != 1 {
					t.Error("its run was not stopped")
				}
				cancel(nil)
			})
		}
	}
}

// What was asked before the end of input is answered.
func TestLesson3PipedRequestsAreAnswered(t *testing.T) {
	w := newWorld(t, nil)
	var out bytes.Buffer
	in := shake + "\n" + `{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n" + toolCall(2, "memory_read", `{"name":"core"}`) // no line end
	if err := w.server.ServeStdio(t.Context(), strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"id":"shake"`, `"id":1`, `"id":2`, "A tester."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in %s", want, &out)
		}
	}
}

// Lesson 4: clients start copies of a server only to look at it. Making and
// serving one, up to the list of tools, writes nothing, starts nothing, and
// leaves not even a line in the log, whose first line makes the file.
func TestLesson4NoSideEffectsAtStart(t *testing.T) {
	w := newWorld(t, nil)
	p := w.serve(t.Context()).hands()
	p.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	p.ask(`{"jsonrpc":"2.0","id":2,"method":"prompts/list"}`)
	if err := p.end(); err != nil {
		t.Error(err)
	}
	if w.memory.ensure != 0 || w.memory.changes() != 0 || w.runs.count() != 0 {
		t.Errorf("memory prepared %d times, written %d times, %d runs", w.memory.ensure, w.memory.changes(), w.runs.count())
	}
	if l := w.log.String(); l != "" {
		t.Errorf("logged: %s", l)
	}
	w = newWorld(t, func(d *Deps) { d.ReadOnly = true })
	w.good(t.Context(), "memory_read", map[string]any{"name": "core"})
	if w.memory.ensure != 0 {
		t.Error("a read-only server prepared the memory directory")
	}
}

const discover = `{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}}}`

// Lesson 5: both eras on one connection, in any order, with one text of
// instructions.
func TestLesson5BothErasOnOneConnection(t *testing.T) {
	modernCall := strings.Replace(toolCall(7, "memory_read", `{"name":"core"}`), `"params":{`, `"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},`, 1)
	w := newWorld(t, nil)
	p := w.serve(t.Context())
	d := p.ask(discover)
	if d.Error != nil {
		t.Fatalf("discover: %+v", d.Error)
	}
	i := p.ask(shake)
	if i.Error != nil {
		t.Fatalf("initialize after discover: %+v", i.Error)
	}
	if i.Result["protocolVersion"] != "2025-06-18" {
		t.Errorf("negotiated %v", i.Result["protocolVersion"])
	}
	if d.Result["instructions"] != i.Result["instructions"] || i.Result["instructions"] == "" {
		t.Error("the eras got different instructions")
	}
	if a, b := mustJSON(t, d.Result["capabilities"]), mustJSON(t, i.Result["capabilities"]); a != b {
		t.Errorf("capabilities %s, then %s", a, b)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for _, line := range []string{toolCall(6, "memory_read", `{"name":"core"}`), modernCall, discover, shake, toolCall(8, "memory_read", `{"name":"core"}`)} {
		if r := p.ask(line); r.Error != nil {
			t.Errorf("%s: %+v", line, r.Error)
		}
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}

	// The same text as after a plain handshake.
	p = newWorld(t, nil).serve(t.Context())
	plain := p.ask(shake)
	if a, b := mustJSON(t, plain.Result), mustJSON(t, i.Result); a != b {
		t.Errorf("initialize answers %s, after discover %s", a, b)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

func TestLesson5LegacyOnly(t *testing.T) {
	p := newWorld(t, func(d *Deps) { d.LegacyOnly = true }).serve(t.Context())
	if r := p.ask(discover); r.Error == nil {
		t.Errorf("discover was answered: %+v", r)
	}
	p.hands()
	if r := p.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); r.Error != nil {
		t.Errorf("%+v", r.Error)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

func mustJSON(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Lesson 6: schemas that every client takes.
func TestLesson6SchemasArePlain(t *testing.T) {
	for _, tl := range inventory() {
		def := tl.definition()
		var s map[string]any
		if err := json.Unmarshal(def.InputSchema.(json.RawMessage), &s); err != nil {
			t.Fatal(err)
		}
		keys(t, tl.name, s, "type", "properties", "required", "additionalProperties")
		props, ok := s["properties"].(map[string]any)
		if s["type"] != "object" || !ok || s["additionalProperties"] != false {
			t.Errorf("%s: top level %v", tl.name, s)
		}
		for name, v := range props {
			where := tl.name + "." + name
			p := v.(map[string]any)
			keys(t, where, p, "type", "description", "items", "enum", "minimum", "maximum", "maxItems")
			kind, ok := p["type"].(string)
			if !ok || !slices.Contains([]string{"string", "integer", "boolean", "array"}, kind) {
				t.Errorf("%s: type %v", where, p["type"])
			}
			if d, _ := p["description"].(string); d == "" {
				t.Errorf("%s is not described", where)
			}
			if kind == "array" && mustJSON(t, p["items"]) != `{"type":"string"}` {
				t.Errorf("%s: items %v", where, p["items"])
			}
		}
		required, _ := s["required"].([]any)
		for _, r := range required {
			if props[r.(string)] == nil {
				t.Errorf("%s requires %v, which it does not have", tl.name, r)
			}
		}
	}
}

func keys(t *testing.T, where string, m map[string]any, allowed ...string) {
	t.Helper()
	for k := range m {
		if !slices.Contains(allowed, k) {
			t.Errorf("%s: %s in a schema", where, k)
		}
	}
}

// Lesson 7: names.
func TestLesson7Names(t *testing.T) {
	plain := regexp.MustCompile(`^[a-z0-9_]{1,32}$`)
	seen := map[string]bool{}
	for _, tl := range inventory() {
		if !plain.MatchString(tl.name) || len("mcp__plugin_reprise_reprise__"+tl.name) > 60 {
			t.Errorf("name %q", tl.name)
		}
		if seen[tl.name] {
			t.Errorf("%s twice", tl.name)
		}
		seen[tl.name] = true
		for _, p := range tl.params {
			if !plain.MatchString(p.name) {
				t.Errorf("%s: parameter %q", tl.name, p.name)
			}
			if p.remedy == "" {
				t.Errorf("%s.%s has no remedy for its errors", tl.name, p.name)
			}
		}
	}
}

// Lesson 8: what a list costs.
func TestLesson8ListIsSmall(t *testing.T) {
	w := newWorld(t, nil)
	if n := len(w.server.tools); n > 12 {
		t.Errorf("%d tools by default", n)
	}
	for _, tl := range inventory() {
		if n := len(tl.about); n >= 600 || n == 0 {
			t.Errorf("%s: description of %d characters", tl.name, n)
		}
	}
	p := w.serve(t.Context()).hands()
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	line := p.next()
	if n := len(line); n >= 12_000 {
		t.Errorf("the list has %d bytes", n)
	} else {
		t.Logf("the list has %d bytes", n)
	}
	if n := len([]rune(instructions(inventory()))); n > maxInstructions || n < 200 {
		t.Errorf("instructions of %d characters", n)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// Lesson 9: every answer is bounded, whatever lies behind it.
func TestLesson9AnswersAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200)
	w := newWorld(t, func(d *Deps) {
		var hits []recall.Hit
		for range 50 {
			hits = append(hits, recall.Hit{File: "blocks/a.md", Heading: strings.Repeat("h", 2000), Snippet: strings.Repeat("s ", 20_000)})
		}
		d.Search = fakeSearch{hits: hits}
		d.Settings.SubAgent.MaxConcurrentAgents = 1000
		d.Settings.SubAgent.SyncWindowSeconds = 0
		d.Settings.SubAgent.DefaultMaxOutputTokens = 1_000_000
	})
	w.memory.files["blocks/big.md"] = strings.Repeat("A line of some length, é included.\n", 100_000)
	w.memory.files["blocks/wide.md"] = strings.Repeat("ü", 1_000_000)
	w.memory.files["core.md"] = strings.Repeat("Core. ", 100_000)
	for i := range 40 {
		w.good(t.Context(), "spawn_agent", map[string]any{"task": fmt.Sprint(i, long), "model": long, "working_directory": t.TempDir()})
	}
	w.runs.suffix = strings.Repeat("word\n", 200_000)
	bounded := func(name string, args map[string]any) {
		t.Helper()
		res := w.call(t.Context(), name, args)
		all := textOf(t, res)
		if res.StructuredContent != nil {
			all += mustJSON(t, res.StructuredContent)
		}
		if n := tokens(all); n > maxAnswerTokens {
			t.Errorf("%s: %d tokens", name, n)
		}
	}
	bounded("spawn_agent", map[string]any{"task": "now x"})
	bounded("spawn_agent", map[string]any{"task": "fail x"})
	bounded("spawn_agent", map[string]any{"task": "now x", "max_output_tokens": maxPayloadTokens})
	w.runs.suffix = strings.Repeat("\"\\\x01\n", 200_000)
	bounded("spawn_agent", map[string]any{"task": "fail x", "max_output_tokens": maxPayloadTokens})
	bounded("list_agents", map[string]any{"limit": 30})
	bounded("memory_search", map[string]any{"query": "x", "max_results": 50})
	bounded("memory_read", map[string]any{"name": "big"})
	bounded("memory_read", map[string]any{"name": "wide"})
	bounded("update_memory_block", map[string]any{"block": strings.Repeat("n", 190), "content": "x", "if_hash": hashOf("c")})
	p := w.serve(t.Context()).hands()
	for i, uri := range []string{"memory://core", "memory://blocks/big", "memory://blocks/wide", "run://" + firstRun(t, w) + "/log"} {
		r := p.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":%q}}`, i, uri))
		if n := tokens(mustJSON(t, r.Result)); r.Error != nil || n > maxAnswerTokens*11/10 {
			t.Errorf("%s: %d tokens, %+v", uri, n, r.Error)
		}
	}
	if r := p.ask(`{"jsonrpc":"2.0","id":9,"method":"prompts/get","params":{"name":"session_start"}}`); tokens(mustJSON(t, r.Result)) > 1500 {
		t.Errorf("session_start has %d tokens", tokens(mustJSON(t, r.Result)))
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

func firstRun(t *testing.T, w *world) string {
	t.Helper()
	recs, err := w.runs.List(t.Context())
	if err != nil || len(recs) == 0 {
		t.Fatal(err)
	}
	return recs[len(recs)-1].ID
}

// Paging gives back the whole file, line by line.
func TestLesson9PagesAddUp(t *testing.T) {
	w := newWorld(t, nil)
	var body strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&body, "line %d of a long file — é\n", i)
	}
	w.memory.files["blocks/big.md"] = body.String()
	var got strings.Builder
	offset, pages := 0, 0
	for {
		a := w.good(t.Context(), "memory_read", map[string]any{"name": "big", "offset": offset})
		got.WriteString(a["content"].(string))
		pages++
		if a["more"] != true {
			break
		}
		offset = int(a["next_offset"].(float64))
	}
	if got.String() != body.String() || pages < 3 {
		t.Errorf("%d bytes of %d in %d pages", got.Len(), body.Len(), pages)
	}
}

// Lesson 10: everything in both forms; on an error everything in the text.
func TestLesson10BothForms(t *testing.T) {
	w := newWorld(t, nil)
	for _, c := range []struct {
		name string
		args map[string]any
	}{
		{"spawn_agent", map[string]any{"task": "now done <&> é"}},
		{"list_agents", nil}, {"memory_search", map[string]any{"query": "x"}}, {"memory_read", map[string]any{"name": "core"}},
		{"append_file", map[string]any{"path": "notes.md", "text": "x"}},
		{"create_memory_block", map[string]any{"name": "project-x", "content": "# X"}},
		{"update_memory_block", map[string]any{"block": "project-site", "content": "# New"}},
		{"append_episodic_log", map[string]any{"entry": "Did it. And more."}},
	} {
		res := w.call(t.Context(), c.name, c.args)
		if text := textOf(t, res); res.IsError || text != strings.TrimSpace(marshalPlain(t, res.StructuredContent)) {
			t.Errorf("%s: text %s, structured %v", c.name, text, res.StructuredContent)
		}
	}
	res := w.call(t.Context(), "update_memory_block", map[string]any{"block": "project-site", "content": "x", "if_hash": hashOf("c")})
	text := textOf(t, res)
	if !res.IsError || res.StructuredContent != nil {
		t.Errorf("stale: %+v", res)
	}
	for _, want := range []string{hashOf("a"), hashOf("c"), "what is there now", "nothing was written"} {
		if !strings.Contains(text, want) {
			t.Errorf("the error text lacks %q: %s", want, text)
		}
	}
}

func marshalPlain(t *testing.T, v any) string {
	t.Helper()
	data, err := encodeJSON(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// No list in an answer is ever null.
func TestNoNullLists(t *testing.T) {
	w := newWorld(t, func(d *Deps) { d.Search = fakeSearch{} })
	for name, field := range map[string]string{"list_agents": "agents", "memory_search": "results"} {
		args := map[string]any{}
		if name == "memory_search" {
			args["query"] = "x"
		}
		a := w.good(t.Context(), name, args)
		if _, ok := a[field].([]any); !ok {
			t.Errorf("%s: %s is %v", name, field, a[field])
		}
	}
}

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
	if took := time.Since(began); took > time.Second {
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

// Toolsets and read-only.
func TestToolsets(t *testing.T) {
	for _, c := range []struct {
		sets string
		read bool
		want string
	}{
		{"", false, "spawn_agent check_agent cancel_agent list_agents memory_search memory_read append_file create_memory_block update_memory_block append_episodic_log"},
		{"default", true, "check_agent list_agents memory_search memory_read"},
		{"runs", false, "spawn_agent check_agent cancel_agent list_agents"},
		{"memory", true, "memory_search memory_read"},
		{"memory,runs", true, "check_agent list_agents memory_search memory_read"},
		{"all", false, "spawn_agent check_agent cancel_agent list_agents memory_search memory_read append_file create_memory_block update_memory_block append_episodic_log"},
	} {
		tools, err := choose(ParseToolsets(c.sets), c.read)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tl := range tools {
			names = append(names, tl.name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s read-only=%v: %s", c.sets, c.read, got)
		}
		for _, n := range regexp.MustCompile(`[a-z]+_[a-z_]+`).FindAllString(instructions(tools), -1) {
			known := slices.Contains(names, n)
			for _, tl := range inventory() {
				if tl.name == n && !known {
					t.Errorf("%s read-only=%v: the instructions speak of %s", c.sets, c.read, n)
				}
			}
		}
	}
	if _, err := New(Deps{Runs: newFakeRuns(time.Now), Memory: newFakeMemory(), Search: fakeSearch{}, Now: time.Now, Settings: config.Settings{}, Toolsets: []string{"nope"}}); err == nil || !strings.Contains(err.Error(), "runs, memory") {
		t.Errorf("unknown toolset: %v", err)
	}
}

// The log: every event of the first design's table, with its fields, without
// secrets and without long values.
func TestLogEvents(t *testing.T) {
	inTime(t, nil, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.good(ctx, "spawn_agent", map[string]any{"task": "now the password is hunter2 " + strings.Repeat("x", 500), "model": "sonnet"})
		id := w.good(ctx, "spawn_agent", map[string]any{"task": "long"})["job_id"].(string)
		w.good(ctx, "check_agent", map[string]any{"job_id": id})
		w.runs.finish(t, id, run.Completed, "", "out")
		w.good(ctx, "check_agent", map[string]any{"job_id": id})
		w.good(ctx, "append_file", map[string]any{"path": "notes.md", "text": "x"})
		w.bad(ctx, "check_agent", map[string]any{"job_id": id})
		w.server.shutdown("end of input")
		for msg, want := range map[string]struct {
			level  string
			n      int
			fields []string
		}{
			LogStarted:   {"INFO", 1, []string{"config", "version"}},
			LogToolCall:  {"INFO", 6, []string{"tool", "params"}},
			LogLaunched:  {"INFO", 2, []string{"job_id", "model", "working_dir"}},
			LogSync:      {"INFO", 1, []string{"elapsed", "output_size"}},
			LogHandoff:   {"INFO", 1, []string{"job_id", "elapsed"}},
			LogPoll:      {"DEBUG", 1, []string{"job_id", "status", "elapsed"}},
			LogCollected: {"INFO", 1, []string{"job_id", "status", "elapsed", "output_size"}},
			LogAppend:    {"INFO", 1, []string{"path", "bytes_written"}},
			LogError:     {"ERROR", 1, []string{"tool", "error"}},
			LogShutdown:  {"INFO", 1, []string{"active_jobs_killed"}},
		} {
			got := w.log.find(t, msg)
			if len(got) != want.n {
				t.Errorf("%s: %d entries, want %d", msg, len(got), want.n)
				continue
			}
			for _, e := range got {
				if e["level"] != want.level {
					t.Errorf("%s: level %v", msg, e["level"])
				}
				for _, f := range want.fields {
					if _, ok := e[f]; !ok {
						t.Errorf("%s has no %s: %v", msg, f, e)
					}
				}
			}
		}
		all := w.log.String()
		if strings.Contains(all, "hunter2") || !strings.Contains(all, "[secret]") {
			t.Error("a secret is in the log, or was not looked for")
		}
		if strings.Contains(all, strings.Repeat("x", 100)) {
			t.Error("a long parameter is in the log")
		}
	})
}

// Resources, templates, completion and prompts, over the wire.
func TestResources(t *testing.T) {
	w := newWorld(t, nil)
	w.good(t.Context(), "spawn_agent", map[string]any{"task": "now what it said"})
	id := firstRun(t, w)
	p := w.serve(t.Context()).hands()
	ask := func(method, params string) reply {
		t.Helper()
		return p.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params))
	}
	list := mustJSON(t, ask("resources/list", `{}`).Result)
	for _, uri := range []string{"memory://core", "memory://index", "memory://blocks/project-site", "memory://blocks/reference-notes", "run://" + id + "/log"} {
		if !strings.Contains(list, `"`+uri+`"`) {
			t.Errorf("%s is not listed: %s", uri, list)
		}
		if r := ask("resources/read", fmt.Sprintf(`{"uri":%q}`, uri)); r.Error != nil || !strings.Contains(mustJSON(t, r.Result), `"uri":"`+uri+`"`) {
			t.Errorf("%s: %+v", uri, r)
		}
	}
	if r := ask("resources/read", fmt.Sprintf(`{"uri":"run://%s/log"}`, id)); !strings.Contains(mustJSON(t, r.Result), "what it said") || !strings.Contains(mustJSON(t, r.Result), "status: complete") {
		t.Errorf("log: %+v", r)
	}
	templates := mustJSON(t, ask("resources/templates/list", `{}`).Result)
	if !strings.Contains(templates, uriBlock) || !strings.Contains(templates, uriRunLog) {
		t.Errorf("templates: %s", templates)
	}
	for _, uri := range []string{"memory://blocks/nothing", "memory://blocks/..%2F..%2Fetc%2Fpasswd", "memory://blocks/%00", "run://run-zzzzzzzzzz/log", "file:///etc/passwd", "memory://core/../x", ":", ""} {
		if r := ask("resources/read", fmt.Sprintf(`{"uri":%q}`, uri)); r.Error == nil {
			t.Errorf("%q was read: %+v", uri, r)
		}
	}
	for ref, want := range map[string]string{
		`{"ref":{"type":"ref/resource","uri":"memory://blocks/{name}"},"argument":{"name":"name","value":"proj"}}`: `{"total":1,"values":["project-site"]}`,
		`{"ref":{"type":"ref/resource","uri":"run://{id}/log"},"argument":{"name":"id","value":"run-"}}`:           `{"total":1,"values":["` + id + `"]}`,
		`{"ref":{"type":"ref/prompt","name":"session_start"},"argument":{"name":"topic","value":"ref"}}`:           `{"total":1,"values":["reference-notes"]}`,
		`{"ref":{"type":"ref/resource","uri":"memory://blocks/{name}"},"argument":{"name":"name","value":"zz"}}`:   `{"values":[]}`,
	} {
		if r := ask("completion/complete", ref); mustJSON(t, r.Result["completion"]) != want {
			t.Errorf("%s: %+v", ref, r)
		}
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

func TestPrompts(t *testing.T) {
	w := newWorld(t, nil)
	p := w.serve(t.Context()).hands()
	get := func(params string) (string, reply) {
		t.Helper()
		r := p.ask(`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":` + params + `}`)
		return mustJSON(t, r.Result), r
	}
	start, _ := get(`{"name":"session_start","arguments":{"topic":"the site"}}`)
	for _, want := range []string{"A tester.", "project-site.md", "the site", "memory_read"} {
		if !strings.Contains(start, want) {
			t.Errorf("session_start lacks %q: %s", want, start)
		}
	}
	rec, _ := get(`{"name":"reconcile_memory"}`)
	for _, want := range []string{"spawn_agent", "allow_memory_read", "sonnet", "/memory", "active projects", "completed projects", "key facts", "recent decisions", "gaps", "contradictions", "stale"} {
		if !strings.Contains(rec, want) {
			t.Errorf("reconcile_memory lacks %q", want)
		}
	}
	for _, bad := range []string{`{"name":"reconcile_memory","arguments":{"model":"; rm -rf /"}}`, `{"name":"session_start","arguments":{"topic":"a\u0000b"}}`, `{"name":"nope"}`} {
		if _, r := get(bad); r.Error == nil || r.Error.Code != -32602 {
			t.Errorf("%s: %+v", bad, r)
		}
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
	ro := newWorld(t, func(d *Deps) { d.ReadOnly = true }).serve(t.Context()).hands()
	if r := ro.ask(`{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`); strings.Contains(mustJSON(t, r.Result), "reconcile") {
		t.Error("a read-only server offers the prompt that starts an agent")
	}
	if err := ro.end(); err != nil {
		t.Error(err)
	}
}

// A golden file for each tool: a change of what clients see is a change of a
// file, to be looked at. Run with -update after a change that is meant.
func TestToolSnapshots(t *testing.T) {
	dir := filepath.Join("testdata", "tools")
	have := map[string]bool{}
	for _, tl := range inventory() {
		data, err := json.MarshalIndent(tl.definition(), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, tl.name+".json")
		have[filepath.Base(file)] = true
		golden(t, file, append(data, '\n'))
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !have[e.Name()] {
			t.Errorf("%s is of no tool: remove it", e.Name())
		}
	}
	golden(t, filepath.Join("testdata", "instructions.txt"), []byte(instructions(inventory())+"\n"))
}
