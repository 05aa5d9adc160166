package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatal("not within a minute")
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
				if took := time.Since(began); took > 10*time.Second { // its runs do not end by themselves
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
