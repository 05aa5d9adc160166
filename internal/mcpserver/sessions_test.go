package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"reprise/internal/config"
	"reprise/internal/run"
)

const newestShake = `{"jsonrpc":"2.0","id":"shake","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}`

// begin shakes hands and returns the headers of the session.
func begin(t *testing.T, url string, header ...string) []string {
	t.Helper()
	res, body := post(t, url, newestShake, header...)
	id := res.Header.Get("Mcp-Session-Id")
	if res.StatusCode != 200 || id == "" {
		t.Fatalf("handshake: %s %q %s", res.Status, id, body)
	}
	all := append([]string{"Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-11-25"}, header...)
	if res, body := post(t, url, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, all...); res.StatusCode != 202 {
		t.Fatalf("initialized: %s %s", res.Status, body)
	}
	return all
}

// sse is one event of a stream.
type sse struct{ id, data string }

// request makes a request that is not read yet.
func request(t *testing.T, ctx context.Context, method, url, body string, header ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// goOn asks for what came after an event, again and again while the server has not noticed
// yet that the connection before is broken: until then it answers 409.
func goOn(t *testing.T, ctx context.Context, url, after string, in []string) *http.Response {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		res := request(t, ctx, http.MethodGet, url, "", append([]string{"Last-Event-ID", after}, in...)...)
		switch {
		case res.StatusCode == http.StatusOK:
			return res
		case res.StatusCode != http.StatusConflict || time.Now().After(end):
			t.Fatalf("going on: %s", res.Status)
		}
		res.Body.Close()
	}
}

// readEvents reads events until enough says so or the stream ends.
func readEvents(r io.Reader, enough func([]sse) bool) (out []sse) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 4<<20)
	var e sse
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "id:"):
			e.id = strings.TrimSpace(line[3:])
		case strings.HasPrefix(line, "data:"):
			e.data = strings.TrimSpace(line[5:])
		case line == "" && e != (sse{}):
			out = append(out, e)
			e = sse{}
			if enough(out) {
				return out
			}
		}
	}
	return out
}

// eventually polls until what is true, for at most a minute.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// The connection breaks while a tool works. The call goes on, and the client
// gets the rest from the last event it saw: nothing twice, nothing left out.
func TestSessionGoesOnAfterABrokenConnection(t *testing.T) {
	w := newWorld(t, func(d *Deps) { d.ProgressEvery = 2 * time.Millisecond })
	url := listen(t, w, HTTPOptions{NoAuth: true})
	in := begin(t, url)
	ctx, cut := context.WithCancel(t.Context())
	res := request(t, ctx, http.MethodPost, url, `{"jsonrpc":"2.0","id":"long","method":"tools/call","params":{"name":"spawn_agent","arguments":{"task":"long"},"_meta":{"progressToken":"p"}}}`, in...)
	seen := readEvents(res.Body, func(all []sse) bool { return len(all) >= 4 })
	cut()
	res.Body.Close()
	if len(seen) < 4 || seen[len(seen)-1].id == "" {
		t.Fatalf("before the break: %+v", seen)
	}
	// Once more, and then to the end.
	for i := range 2 {
		ctx, cut := context.WithCancel(t.Context())
		res := goOn(t, ctx, url, seen[len(seen)-1].id, in)
		from := len(seen)
		if i == 1 {
			recs, _ := w.runs.List(t.Context())
			w.runs.finish(t, recs[0].ID, run.Completed, "", "the end of it")
		}
		seen = append(seen, readEvents(res.Body, func(all []sse) bool { return i == 0 && len(all) >= 3 })...)
		cut()
		res.Body.Close()
		if len(seen) == from {
			t.Fatal("nothing came after the break")
		}
	}
	if !strings.Contains(seen[len(seen)-1].data, "the end of it") {
		t.Errorf("the last event is not the answer: %+v", seen[len(seen)-1])
	}
	ids := map[string]bool{}
	before := 0.0
	for _, e := range seen {
		if ids[e.id] {
			t.Errorf("event %s came twice", e.id)
		}
		ids[e.id] = true
		var m struct {
			Params struct {
				Progress float64 `json:"progress"`
			} `json:"params"`
		}
		if json.Unmarshal([]byte(e.data), &m) == nil && m.Params.Progress > 0 {
			if step := m.Params.Progress - before; step < 0.0015 || step > 0.0025 {
				t.Errorf("progress went from %v to %v", before, m.Params.Progress)
			}
			before = m.Params.Progress
		}
	}
	// What was answered can still be had again.
	res = goOn(t, t.Context(), url, seen[len(seen)-2].id, in)
	again := readEvents(res.Body, func([]sse) bool { return false })
	res.Body.Close()
	if len(again) != 1 || again[0] != seen[len(seen)-1] {
		t.Errorf("asked again: %+v", again)
	}
}

// cutter breaks the answer to each request whose body has a word, once, after
// its first bytes.
type cutter struct {
	word string
	mu   sync.Mutex
	cuts int
}

func (c *cutter) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.cuts == 0 && bytes.Contains(body, []byte(c.word)) {
		c.cuts++
		res.Body = &shortBody{ReadCloser: res.Body}
	}
	return res, err
}

type shortBody struct {
	io.ReadCloser
	read bool
}

func (b *shortBody) Read(p []byte) (int, error) {
	if b.read {
		return 0, io.ErrUnexpectedEOF
	}
	b.read = true
	return b.ReadCloser.Read(p)
}

// The SDK's own client goes on by itself.
func TestRealClientGoesOnAfterABrokenConnection(t *testing.T) {
	w := newWorld(t, func(d *Deps) { d.ProgressEvery = 5 * time.Millisecond })
	url := listen(t, w, HTTPOptions{NoAuth: true})
	cut := &cutter{word: "spawn_agent"}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "0"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: cut}},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	go func() {
		for cut.count() == 0 || w.runs.count() == 0 {
			time.Sleep(time.Millisecond)
		}
		recs, _ := w.runs.List(context.Background())
		w.runs.finish(t, recs[0].ID, run.Completed, "", "whole")
	}()
	params := &mcp.CallToolParams{Name: "spawn_agent", Arguments: map[string]any{"task": "long"}}
	params.SetProgressToken("p")
	res, err := session.CallTool(t.Context(), params)
	if err != nil || res.IsError || !strings.Contains(textOf(t, res), "whole") {
		t.Fatalf("%+v %v", res, err)
	}
	if n := cut.count(); n != 1 {
		t.Errorf("%d cuts", n)
	}
}

func (c *cutter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cuts
}

// A session is its token's: its id, which may stand in a log somewhere, is of no
// use with another.
func TestSessionIsItsTokens(t *testing.T) {
	store := tokenStore(t)
	var bearers []string
	for _, name := range []string{"mine", "other"} {
		token, err := store.Create(t.Context(), NewToken{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		bearers = append(bearers, "Bearer "+token)
	}
	url := listen(t, newWorld(t, nil), HTTPOptions{Tokens: store})
	mine := begin(t, url, "Authorization", bearers[0])
	theirs := append([]string{}, mine...)
	theirs[len(theirs)-1] = bearers[1]
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		for name, c := range map[string]struct {
			header []string
			want   int
		}{"another token": {theirs, 403}, "no token": {mine[:4], 401}} {
			res := request(t, t.Context(), method, url, ping, c.header...)
			res.Body.Close()
			if res.StatusCode != c.want {
				t.Errorf("%s with %s: %s", method, name, res.Status)
			}
		}
	}
	if res, body := post(t, url, ping, mine...); res.StatusCode != 200 {
		t.Errorf("its own: %s %s", res.Status, body)
	}
	res := request(t, t.Context(), http.MethodDelete, url, "", mine...)
	res.Body.Close()
	if res.StatusCode != 204 {
		t.Errorf("ending it: %s", res.Status)
	}
	if res, _ := post(t, url, ping, mine...); res.StatusCode != 404 {
		t.Errorf("after its end: %s", res.Status)
	}
}

// Clients that come again and again without ending their sessions have the
// oldest idle ones ended, never one that works.
func TestSessionsOfATokenAreBounded(t *testing.T) {
	clock := newClock()
	w := newWorld(t, func(d *Deps) { d.Now = clock.now })
	url := listen(t, w, HTTPOptions{NoAuth: true, Limits: config.HTTPLimits{Sessions: 2}, Now: clock.now})
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	const work = `{"jsonrpc":"2.0","id":"w","method":"tools/call","params":{"name":"spawn_agent","arguments":{"task":"long"}}}`
	first := begin(t, url)
	working := request(t, t.Context(), http.MethodPost, url, work, first...)
	defer working.Body.Close()
	eventually(t, "the call is under way", func() bool { return w.runs.count() == 1 })
	clock.add(time.Second)
	second := begin(t, url)
	clock.add(time.Second)
	third := begin(t, url)
	if res, _ := post(t, url, ping, second...); res.StatusCode != 404 {
		t.Errorf("the idle one: %s", res.Status)
	}
	for name, s := range map[string][]string{"the one that works": first, "the new one": third} {
		if res, body := post(t, url, ping, s...); res.StatusCode != 200 {
			t.Errorf("%s: %s %s", name, res.Status, body)
		}
	}
	also := request(t, t.Context(), http.MethodPost, url, work, third...)
	defer also.Body.Close()
	eventually(t, "the second call is under way", func() bool { return w.runs.count() == 2 })
	res, body := post(t, url, newestShake)
	if res.StatusCode != http.StatusTooManyRequests || !strings.Contains(body, "http.limits.sessions") || res.Header.Get("Retry-After") == "" {
		t.Errorf("with both at work: %s %s", res.Status, body)
	}
	recs, _ := w.runs.List(t.Context())
	for _, r := range recs {
		w.runs.finish(t, r.ID, run.Completed, "", "done")
	}
}
