package mcpserver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"reprise/internal/run"
)

// A client that reads no answers must neither keep the server when it closes its
// end, nor have calls pile up without a bound.
func TestClientThatDoesNotRead(t *testing.T) {
	for name, line := range map[string]string{
		"calls":   `{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`,
		"garbage": `{"jsonrpc":%d}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			defer outR.Close()
			ended := make(chan error, 1)
			go func() { ended <- w.server.ServeStdio(t.Context(), inR, outW) }()
			shake := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
			if _, err := fmt.Fprintln(inW, shake); err != nil {
				t.Fatal(err)
			}
			if _, err := bufio.NewReader(outR).ReadString('\n'); err != nil { // the last line it reads
				t.Fatal(err)
			}
			var b strings.Builder
			b.WriteString(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
			for i := range maxCalls + 600 {
				fmt.Fprintf(&b, line+"\n", i)
			}
			if _, err := io.WriteString(inW, b.String()); err != nil {
				t.Fatal(err)
			}
			inW.Close()
			select {
			case err := <-ended:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(time.Minute):
				t.Fatal("the server is still there a minute after the end of its input")
			}
		})
	}
}

// Every call gets an answer, whatever it was about.
func TestCallsThatCannotEnter(t *testing.T) {
	g := &guardConn{most: 2, inUse: map[any]bool{}, idle: make(chan struct{}, 1)}
	for i, step := range []struct {
		id   string
		want string
	}{{"a", ""}, {"a", "is under way"}, {"b", ""}, {"c", "which is the most"}, {"a", "is under way"}} {
		refused := g.enter(step.id)
		if got := refused == nil; got != (step.want == "") || !got && !strings.Contains(refused.text, step.want) {
			t.Errorf("step %d: %+v", i, refused)
		}
	}
	if !g.free("a") || g.free("a") || g.free("never") {
		t.Error("only a call under way has an id to give back")
	}
	if refused := g.enter("a"); refused == nil || !strings.Contains(refused.text, "which is the most") {
		t.Errorf("its answer is not written: %+v", refused)
	}
	g.settled()
	if refused := g.enter("a"); refused != nil {
		t.Errorf("the id of an answered call: %+v", refused)
	}
	// Through the whole server: as many answers as calls, and then it is gone.
	w := newWorld(t, nil)
	p := w.serve(t.Context()).hands()
	const calls = 100
	for range calls {
		p.send(`{"jsonrpc":"2.0","id":7,"method":"tools/list"}`)
	}
	good := 0
	for range calls {
		switch r := p.reply(); {
		case r.Error == nil && string(r.ID) == "7":
			good++
		case r.Error == nil || r.Error.Code != -32600 || string(r.ID) != "null":
			t.Fatalf("%s %+v", r.ID, r.Error)
		}
	}
	if good == 0 {
		t.Error("no call was answered")
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// What cannot be given back is refused: half a surrogate pair has no UTF-8.
func TestIDsComeBackUnchanged(t *testing.T) {
	for raw, want := range map[string]bool{
		`"a"`: true, `""`: true, `"\u00e4"`: true, `"\ud83d\ude00"`: true, `0`: true, `-5`: true, `9007199254740991`: true,
		`"\ud800"`: false, `"a\udc00b"`: false, `9007199254740993`: false, `1.5`: false, `null`: false, `{}`: false, `1e400`: false,
	} {
		if got := validID(json.RawMessage(raw)); got != want {
			t.Errorf("%s: %v", raw, got)
		}
	}
}

func TestParametersOfAWrongTypeHaveTheirCode(t *testing.T) {
	w := newWorld(t, nil)
	p := w.serve(t.Context())
	for _, params := range []string{`5`, `{"protocolVersion":{}}`} {
		r := p.ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + params + `}`)
		if r.Error == nil || r.Error.Code != -32602 {
			t.Errorf("initialize %s: %+v", params, r.Error)
		}
	}
}

// The run has ended, but on a full disk its end cannot be written. A client that
// is told "running" would wait for ever.
func TestUnsettledRunIsNotRunning(t *testing.T) {
	w := newWorld(t, func(d *Deps) { d.Settings.SubAgent.SyncWindowSeconds = 1 })
	job := w.good(t.Context(), "spawn_agent", map[string]any{"task": "long"})["job_id"].(string)
	w.runs.mu.Lock()
	w.runs.unsettled = fmt.Errorf("settle run: no space left on device")
	r := w.runs.runs[job]
	close(r.ended) // while its record says that it runs
	w.runs.mu.Unlock()
	waitFor(t, func() bool { j, ok := w.server.jobs.get(job); return ok && j.done() })
	for _, tool := range []string{"check_agent", "check_agent"} {
		if msg := w.bad(t.Context(), tool, map[string]any{"job_id": job}); !strings.Contains(msg, "no space left") {
			t.Errorf("%s: %s", tool, msg)
		}
	}
	w.runs.mu.Lock()
	w.runs.unsettled = nil
	r.rec.Status, r.out = run.Completed, "done after all"
	w.runs.mu.Unlock()
	if got := w.good(t.Context(), "check_agent", map[string]any{"job_id": job}); got["result"] != "done after all" {
		t.Errorf("after there was space: %v", got)
	}
}

// Over HTTP the same: an id is given back as it came or not taken, and what is no message, or
// none to this server, is answered in the protocol's own form, with the id where there is one:
// clients take a status and words for a broken transport.
func TestHTTPBodiesThatAreNoMessage(t *testing.T) {
	w := newWorld(t, nil)
	url := listen(t, w, HTTPOptions{NoAuth: true})
	res, _ := post(t, url, shake)
	session := res.Header.Get("Mcp-Session-Id")
	if session == "" {
		t.Fatal("no session")
	}
	type want struct {
		status, code int
		id           string
	}
	table := map[string]want{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`:                {200, 0, "1"},
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`: {400, -32600, "null"},
		`{"jsonrpc":"2.0","id":"\ud800","method":"ping"}`:         {400, -32600, "null"},
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`:             {400, -32600, "null"},
		`{"jsonrpc":"2.0","id":1,"method":"ping"} {"x":1}`:        {400, -32700, "null"},
		`{"jsonrpc":"2.0","id":1,"method":"pi`:                    {400, -32700, "null"},
		"\x00":                                                    {400, -32700, "null"},
		"":                                                        {400, -32700, "null"},
		"7":                                                       {400, -32600, "null"},
		"{}":                                                      {400, -32600, "null"},
		"[]":                                                      {400, -32600, "null"},
		"[1]":                                                     {400, -32600, "null"},
		`{"id":1,"method":"ping"}`:                                {400, -32600, "1"},
		`{"jsonrpc":"2.0","id":1,"method":5}`:                     {400, -32600, "1"},
		`{"jsonrpc":"2.0","id":1,"params":{}}`:                    {400, -32600, "1"},
		`{"jsonrpc":"2.0","method":"tools/list"}`:                                               {400, -32600, "null"},
		`{"jsonrpc":"2.0","id":"a","method":"nosuch"}`:                                          {200, -32601, `"a"`},
		`{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}`:                         {200, -32601, "1"},
		`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"nosuch"}]`: {400, -32600, "2"},
		`{"jsonrpc":"2.0","method":"notifications/nosuch"}`:                                     {202, 0, ""},
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":5}`:                             {200, -32602, "1"},
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}`:                    {200, -32602, "1"},
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":["a"]}}`:             {200, -32602, "1"},
	}
	for _, m := range []string{"initialize", "tools/call", "resources/read", "resources/subscribe", "resources/unsubscribe", "prompts/get", "completion/complete", "logging/setLevel", "subscriptions/listen"} {
		for _, params := range []string{"", `,"params":null`} {
			table[fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q%s}`, m, params)] = want{400, -32602, "1"}
		}
	}
	for _, m := range []string{"tools/list", "resources/list", "resources/templates/list", "prompts/list"} {
		table[fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q}`, m)] = want{200, 0, "1"}
	}
	for body, want := range table {
		for _, header := range [][]string{nil, {"Mcp-Session-Id", session}} {
			res, text := post(t, url, body, header...)
			if _, data, ok := strings.Cut(text, "data: {"); ok {
				text, _, _ = strings.Cut("{"+data, "\n")
			}
			var answer reply
			if want.id == "" && text == "" && res.StatusCode == want.status {
				continue
			}
			err := json.Unmarshal([]byte(text), &answer)
			code := 0
			if answer.Error != nil {
				code = answer.Error.Code
			}
			if err != nil || res.StatusCode != want.status || code != want.code || string(answer.ID) != want.id || strings.Contains(text, "jsonrpc2.") {
				t.Errorf("%s %v: %s %s", body, header, res.Status, text)
			}
		}
	}
	unknown := `{"jsonrpc":"2.0","id":1,"method":"nosuch"}`
	if res, text := post(t, url, unknown, "Mcp-Protocol-Version", stateless); res.StatusCode != 404 || !strings.Contains(text, "-32601") {
		t.Errorf("without a handshake: %s %s", res.Status, text)
	}
}
