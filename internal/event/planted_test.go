package event_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"reprise/internal/event"
	"reprise/internal/event/quick"
)

// planted makes secrets of more than twenty kinds, from parts, so that none
// stands in the repository.
func planted(seed uint64) map[string]string {
	r := rand.New(rand.NewPCG(seed, 5))
	of := func(n int, from string) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = from[r.IntN(len(from))]
		}
		return string(b)
	}
	const low, up, dig, hex = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789", "0123456789abcdef"
	an := func(n int) string { return of(n, low+up+dig) }
	key := an(64) + "\n" + an(64) + "\n" + an(40) + "\n"
	return map[string]string{
		"github":           "gh" + "p_" + an(36),
		"github app":       "gh" + "s_" + an(36),
		"github fine":      "github" + "_pat_" + an(82),
		"gitlab":           "gl" + "pat-" + an(20),
		"aws":              "AK" + "IA" + of(16, up+"234567"),
		"anthropic":        "sk-" + "ant-api03-" + an(93) + "AA",
		"openai":           "sk-" + "proj-" + an(74) + "T3Bl" + "bkFJ" + an(74),
		"slack bot":        "xo" + "xb-" + of(12, dig[1:]) + "-" + of(12, dig[1:]) + "-" + an(24),
		"slack hook":       "https://hooks." + "slack.com/services/T" + an(10) + "/B" + an(10) + "/" + an(24),
		"stripe":           "sk" + "_live_" + an(24),
		"google":           "AI" + "za" + an(35),
		"npm":              "npm" + "_" + of(36, low+dig),
		"hugging face":     "hf" + "_" + of(34, low+up),
		"jwt":              "ey" + "J" + an(20) + ".ey" + "J" + an(40) + "." + an(43),
		"sendgrid":         "SG" + "." + of(66, low+dig),
		"pypi":             "pypi-" + "AgEIcHlwaS5vcmc" + an(60),
		"digitalocean":     "dop" + "_v1_" + of(64, hex),
		"terraform":        of(14, low+dig) + ".atlas" + "v1." + an(64),
		"vault":            "hvs" + "." + an(95),
		"databricks":       "dapi" + of(32, hex),
		"shopify":          "shp" + "at_" + of(32, hex),
		"twilio":           "SK" + of(32, hex),
		"postman":          "PMAK" + "-" + of(24, hex) + "-" + of(34, hex),
		"doppler":          "dp." + "pt." + an(43),
		"private key":      "-----BEGIN RSA PRIVATE " + "KEY-----\n" + key + "-----END RSA PRIVATE " + "KEY-----",
		"half private key": "-----BEGIN OPENSSH PRIVATE " + "KEY-----\n" + key,
	}
}

// places are where a secret may stand in a hook's payload.
var places = map[string]func(token string) map[string]any{
	"prompt": func(s string) map[string]any { return map[string]any{"text": "please use " + s + ", thanks"} },
	"command": func(s string) map[string]any {
		return tool("input", map[string]any{"command": "deploy --with " + s + " --now"})
	},
	"env": func(s string) map[string]any {
		return tool("input", map[string]any{"command": "export THE_VALUE=" + s + "; make"})
	},
	"output": func(s string) map[string]any { return tool("output", "first line\nvalue: "+s+"\nlast line") },
	"error":  func(s string) map[string]any { return tool("error", "401 for "+s+": denied") },
	"a long output": func(s string) map[string]any {
		return tool("output", strings.Repeat("words and more words\n", 900)+s+"\nend")
	},
	"name": func(s string) map[string]any { return tool("input", map[string]any{s: "value"}) },
	"deep": func(s string) map[string]any {
		return tool("input", map[string]any{"a": []any{map[string]any{"b": []any{1, s}}}})
	},
	"url": func(s string) map[string]any {
		return tool("input", map[string]any{"url": "https://example.com/?v=" + s + "&x=1"})
	},
	"header": func(s string) map[string]any { return tool("input", map[string]any{"headers": []any{"X-Thing: " + s}}) },
	"JSON in a text": func(s string) map[string]any {
		return tool("output", mustJSON(map[string]any{"result": s}))
	},
	"JSON in JSON in a text": func(s string) map[string]any {
		return tool("output", mustJSON(map[string]any{"body": mustJSON(map[string]any{"result": "v " + s + " w"})}))
	},
	"base64": func(s string) map[string]any {
		return tool("output", "data: "+base64.StdEncoding.EncodeToString([]byte("v = "+s+"\n")))
	},
	"url base64": func(s string) map[string]any { return tool("output", base64.RawURLEncoding.EncodeToString([]byte(s))) },
	"colours": func(s string) map[string]any {
		return tool("output", "v \x1b[1;31m"+s[:7]+"\x1b[0m\x1b[32m"+s[7:]+"\x1b[0m.")
	},
	"shown codes": func(s string) map[string]any { return tool("output", `v \u001b[31m`+s[:9]+`\u001b[0m`+s[9:]+` w`) },
	"tool's name": func(s string) map[string]any { return tool("name", "mcp__"+s+"__run") },
	"directory":   func(s string) map[string]any { return tool("cwd", "/home/me/work_"+s+"_old/src") },
	"use id":      func(s string) map[string]any { return tool("use_id", "call"+s) },
	"unknown":     func(s string) map[string]any { return map[string]any{"of_tomorrow": map[string]any{"x": s}} },
}

func tool(field string, v any) map[string]any {
	return map[string]any{"tool": "shell", "name": "Bash", "use_id": "toolu_01AbCdEfGhIjKlMnOpQrStUv", field: v}
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// traces are parts of a secret that tell enough of it.
func traces(s string) []string {
	var out []string
	line := s
	if i := strings.LastIndexByte(strings.TrimSpace(strings.Split(s, "-----END")[0]), '\n'); strings.HasPrefix(s, "-----") && i > 0 {
		line = s[i+1:]
	}
	line = strings.TrimSpace(strings.Split(line, "\n-----")[0])
	n := min(16, len(line)*2/3)
	mid := line[len(line)-n:]
	out = append(out, mid)
	for shift := range 3 { // base64 of it, at each alignment
		enc := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + mid))
		if part := enc[4 : len(enc)-2]; len(part) >= 10 {
			out = append(out, part, strings.NewReplacer("+", "-", "/", "_").Replace(part))
		}
	}
	return out
}

// TestPlantedSecrets: nothing of a secret is in any byte that is kept, on the
// quick way, on the full one, and in the outbox.
func TestPlantedSecrets(t *testing.T) {
	data := t.TempDir()
	var full atomic.Bool
	opt := options(data)
	opt.Disk = failing(&full, syscall.ENOSPC)
	b := event.NewBroker(opt)
	q := &quick.Broker{Events: opt.Events, Outbox: opt.Outbox, Host: "h", Now: opt.Now, Disk: opt.Disk}
	var looked []string
	quickly := 0
	kinds := planted(1)
	if len(kinds) < 20 {
		t.Fatal(len(kinds))
	}
	for kind, s := range kinds {
		for place, in := range places {
			payload := []byte(mustJSON(in(s)))
			typ := event.ToolSucceeded
			if place == "prompt" {
				typ = event.PromptSubmitted
			}
			full.Store(len(looked)%5 == 0) // every fifth goes through the outbox
			_, err := q.Record(context.Background(), &quick.Event{Type: string(typ), Session: "s", Data: payload}, false)
			switch {
			case err == nil:
				quickly++
			case !errors.Is(err, quick.ErrNeedsFull):
				t.Fatal(err)
			}
			record(t, b, event.Event{
				Type: typ, Session: "s" + s, Run: "run-" + s, Agent: "x" + s, Role: s, Task: "t_" + s, Parent: s, Client: "my" + s,
				Data: payload, Outcome: s, Evidence: []string{"saw " + s, "transcript:/x/" + s + "_1/t.jsonl"}, ACL: []string{"agent:a" + s, "role:" + s},
			})
			looked = append(looked, kind+" in "+place)
		}
	}
	// What a crash tears off is of a clean line, too.
	add(t, event.Open(filepath.Join(data, "events"), "h", clock(time.Second)), event.Event{})
	all := tree(t, data)
	if len(all) < 2 {
		t.Fatal("nothing was written")
	}
	for kind, s := range kinds {
		for path, text := range all {
			for _, part := range traces(s) {
				if i := strings.Index(text, part); i >= 0 {
					t.Errorf("%s: %q is in %s: …%s…", kind, part, filepath.Base(path), text[max(0, i-120):min(len(text), i+60)])
					break
				}
			}
		}
	}
	if quickly > 0 {
		t.Errorf("%d of %d were let through by the quick way", quickly, len(looked))
	}
	if t.Failed() {
		return
	}
	if r, err := b.Replay(context.Background(), 0); err == nil && r.Left > 0 && !full.Load() {
		t.Errorf("%+v", r)
	}
}

// TestOrdinaryEventsAreQuick: what tools do all day needs no full program.
func TestOrdinaryEventsAreQuick(t *testing.T) {
	data := t.TempDir()
	opt := options(data)
	q := &quick.Broker{Events: opt.Events, Outbox: opt.Outbox, Host: "h", Now: opt.Now}
	for i, in := range []map[string]any{
		tool("input", map[string]any{"command": "go test ./... 2>&1 | tail -5"}),
		tool("input", map[string]any{"file_path": "/home/dev/shop/internal/auth/token_test.go", "old_string": "token := next()", "new_string": "token, err := next()\nif err != nil {\n\treturn err\n}"}),
		tool("output", "commit 3f786850e387550fdab836ed7e6dc881de23001b\nAuthor: A <a@example.com>\n"),
		tool("output", "ok  \tshop/internal/auth\t0.412s\nsha256:"+strings.Repeat("ab12", 16)),
		tool("output", `{"id":"019a1b2c-3d4e-7f50-8a9b-0c1d2e3f4a5b","call":"call_9vXyZ12AbCdEfGhIjKlMnOpQ","token_count":1234}`),
		tool("input", map[string]any{"command": "curl -s https://example.com/api/items?page=2 | jq ."}),
		tool("output", "const apiKey = process.env.API_KEY;\nif (!apiKey) throw new Error('API_KEY is not set');"),
	} {
		if pending, err := q.Record(context.Background(), &quick.Event{Type: "tool.succeeded", Session: "s", Data: []byte(mustJSON(in))}, false); err != nil || pending {
			t.Errorf("%d: %v, pending %t: %s", i, err, pending, mustJSON(in))
		}
	}
	if r := verify(t, filepath.Join(data, "events")); !r.OK() {
		t.Error(fmt.Sprint(r.Problems))
	}
}

// TestBothWaysWriteTheSame: which way an event took cannot be seen in the log.
func TestBothWaysWriteTheSame(t *testing.T) {
	data := t.TempDir()
	opt := options(data)
	b := event.NewBroker(opt)
	q := &quick.Broker{Events: opt.Events, Outbox: opt.Outbox, Host: "h", Now: opt.Now}
	for i, raw := range []string{
		"", "{}", ` { "tool" : "shell", "n": [1, 2.50, -0e3, true, null], "t": "a\u0000\u001b\ud83d\ude00\/\u003c \u2028" } `,
		`{"output":"` + strings.Repeat("0123456789", 3000) + `","name":"ü\n"}`,
		`{"a/b~c":{"` + strings.Repeat("k", 20) + `":["` + strings.Repeat("é", 9000) + `"]}}`,
	} {
		at := start.Add(time.Duration(i) * time.Second)
		id := fmt.Sprintf("019a1b2c-3d4e-7f50-8a9b-0c1d2e3f4a%02d", i)
		e := quick.Event{ID: id, TS: at, Type: "tool.succeeded", Session: "s", Client: "Codex-CLI", Importance: .125, Evidence: []string{"e\tf"}, ACL: []string{"*"}, Outcome: "success", Data: []byte(raw)}
		if _, err := q.Record(context.Background(), &e, false); err != nil {
			t.Fatal(i, err)
		}
		record(t, b, event.Event{ID: id, TS: at, Type: event.ToolSucceeded, Session: "s", Client: "Codex-CLI", Importance: .125, Evidence: []string{"e\tf"}, ACL: []string{"*"}, Outcome: "success", Data: json.RawMessage(raw)})
	}
	for path, text := range tree(t, data) {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		for i := 0; i+1 < len(lines); i += 2 {
			a, _, _ := strings.Cut(lines[i], `,"prev":`)
			b, _, _ := strings.Cut(lines[i+1], `,"prev":`)
			if a != b || !json.Valid([]byte(lines[i])) {
				t.Errorf("%s, lines %d and %d:\n%.300s\n%.300s", filepath.Base(path), i, i+1, a, b)
			}
		}
	}
}

func FuzzQuickLine(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":["b",1e5,{"c":null}]}`, `{"a":"\ud800x\u00e9"}`, `{"a":1,}`, `{"a":01}`, "{\"a\":\"\x01\"}", `{"a":tru}`, `{"a":"\x"}`, `[`, `{"a":-}`, `{"a":"` + "\xff" + `"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data string) {
		e := quick.Event{Type: "run.changed", Data: []byte(data)}
		l := quick.Log{Now: clock(1), Host: "h"}
		line, err := l.Line(&e)
		trimmed := strings.Trim(data, " \t\r\n")
		object := json.Valid([]byte(data)) && strings.HasPrefix(trimmed, "{")
		empty := trimmed == "" || trimmed == "null"
		switch {
		case errors.Is(err, quick.ErrNeedsFull):
			return
		case err != nil:
			if object && strings.Count(data, "{")+strings.Count(data, "[") < 400 {
				t.Fatalf("%q is refused: %v", data, err)
			}
			return
		case !object && !empty:
			t.Fatalf("%q is taken", data)
		}
		line = quick.End(line, "")
		var back struct{ Data any }
		if err := json.Unmarshal(line, &back); err != nil {
			t.Fatalf("%q became %q: %v", data, line, err)
		}
		var want any
		if !empty {
			if err := json.Unmarshal([]byte(data), &want); err != nil {
				t.Fatal(err)
			}
		}
		if len(e.Cuts) == 0 && mustJSON(want) != mustJSON(back.Data) {
			t.Fatalf("%q became %q", data, line)
		}
		if strings.Count(string(line), "\n") != 1 {
			t.Fatalf("%q is more than a line", line)
		}
	})
}
