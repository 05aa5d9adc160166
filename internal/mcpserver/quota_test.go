package mcpserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"reprise/internal/agent"
	"reprise/internal/config"
	"reprise/internal/run"
)

// bearers makes tokens and returns what the Authorization header is with each.
func bearers(t *testing.T, store *TokenStore, names ...string) []string {
	t.Helper()
	var out []string
	for _, n := range names {
		token, err := store.Create(t.Context(), NewToken{Name: n})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, "Bearer "+token)
	}
	return out
}

func TestRequestsPerMinute(t *testing.T) {
	clock := newClock()
	store := tokenStore(t)
	tokens := bearers(t, store, "busy", "other")
	endpoint := listen(t, newWorld(t, nil), HTTPOptions{Tokens: store, Now: clock.now, Limits: config.HTTPLimits{RequestsPerMinute: 6, Sessions: 10}})
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for i := range 6 {
		if res, body := post(t, endpoint, ping, "Authorization", tokens[0]); res.StatusCode != 200 {
			t.Fatalf("request %d: %s %s", i, res.Status, body)
		}
	}
	res, body := post(t, endpoint, ping, "Authorization", tokens[0])
	var answer struct {
		Error struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	err := json.Unmarshal([]byte(body), &answer)
	if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") != "10" || err != nil || answer.Error.Code != codeBusy ||
		!strings.Contains(answer.Error.Message, "http.limits.requests_per_minute") || !strings.Contains(answer.Error.Message, "10s") {
		t.Errorf("one too many: %s, Retry-After %q, %s %v", res.Status, res.Header.Get("Retry-After"), body, err)
	}
	if res, _ := post(t, endpoint, ping, "Authorization", tokens[1]); res.StatusCode != 200 {
		t.Errorf("another token: %s", res.Status)
	}
	clock.add(10 * time.Second)
	if res, _ := post(t, endpoint, ping, "Authorization", tokens[0]); res.StatusCode != 200 {
		t.Errorf("after the time that was said: %s", res.Status)
	}
	if res, _ := post(t, endpoint, ping, "Authorization", tokens[0]); res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("and one more: %s", res.Status)
	}
	// A stranger uses up nobody's.
	clock.add(time.Minute)
	for range 20 {
		post(t, endpoint, ping, "Authorization", "Bearer rpr_nonsense")
	}
	if res, _ := post(t, endpoint, ping, "Authorization", tokens[0]); res.StatusCode != 200 {
		t.Errorf("after a stranger's: %s", res.Status)
	}
}

// The messages of a batch count as requests of their own, and a batch has an end.
func TestBatchesCountByTheirMessages(t *testing.T) {
	clock := newClock()
	store := tokenStore(t)
	token := bearers(t, store, "busy")[0]
	endpoint := listen(t, newWorld(t, nil), HTTPOptions{Tokens: store, Now: clock.now, Limits: config.HTTPLimits{RequestsPerMinute: 60, Sessions: 10}})
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	batch := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat(ping+",", n), ",") + "]" }
	if res, body := post(t, endpoint, batch(33), "Authorization", token); res.StatusCode != http.StatusBadRequest || !strings.Contains(body, "at most 32 messages") {
		t.Errorf("too long: %s %s", res.Status, body)
	}
	// Of the 60 one went to that, 32 and 20 go to these, and 7 are left.
	for i, want := range []struct {
		n    int
		over bool
	}{{32, false}, {20, false}, {8, true}} {
		if res, body := post(t, endpoint, batch(want.n), "Authorization", token); (res.StatusCode == http.StatusTooManyRequests) != want.over {
			t.Errorf("batch %d of %d: %s %s", i, want.n, res.Status, body)
		}
	}
	clock.add(time.Minute)
	if res, _ := post(t, endpoint, ping, "Authorization", token); res.StatusCode != http.StatusOK {
		t.Errorf("a minute later: %s", res.Status)
	}
}

// The SDK's client shows the status, though not the reason that is in the body,
// and takes a limit for something that passes: its connection lives on.
func TestRealClientIsToldOfALimit(t *testing.T) {
	clock := newClock()
	endpoint := listen(t, newWorld(t, nil), HTTPOptions{NoAuth: true, Now: clock.now, Limits: config.HTTPLimits{RequestsPerMinute: 20, Sessions: 2}})
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "0"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: endpoint}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	list := func() error {
		_, err := session.ListTools(t.Context(), nil)
		return err
	}
	for range 21 {
		if err = list(); err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "Too Many Requests") {
		t.Errorf("the client says: %v", err)
	}
	clock.add(time.Minute)
	if err := list(); err != nil {
		t.Errorf("a minute later: %v", err)
	}
}

func TestConcurrentRequests(t *testing.T) {
	store := tokenStore(t)
	tokens := bearers(t, store, "busy", "other")
	w := newWorld(t, nil)
	endpoint := listen(t, w, HTTPOptions{Tokens: store, Limits: config.HTTPLimits{Concurrent: 2, Sessions: 2}})
	ended := make(chan int, 2)
	for i := range 2 {
		go func() {
			// The answer's head comes with its first event, at the end.
			res, _ := post(t, endpoint, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"spawn_agent","arguments":{"task":"long"}}}`, i), "Authorization", tokens[0])
			ended <- res.StatusCode
		}()
	}
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	eventually(t, "two calls are under way", func() bool { return w.runs.count() == 2 })
	if res, body := post(t, endpoint, ping, "Authorization", tokens[0]); res.StatusCode != http.StatusTooManyRequests || !strings.Contains(body, "http.limits.concurrent") {
		t.Errorf("a third: %s %s", res.Status, body)
	}
	if res, _ := post(t, endpoint, ping, "Authorization", tokens[1]); res.StatusCode != 200 {
		t.Errorf("another token: %s", res.Status)
	}
	recs, _ := w.runs.List(t.Context())
	for _, r := range recs {
		w.runs.finish(t, r.ID, run.Completed, "", "done")
	}
	for range 2 {
		if code := <-ended; code != 200 {
			t.Errorf("a call that was let in: %d", code)
		}
	}
	// The place is free when the answer's last byte is written, a moment later
	// than the client has read it.
	eventually(t, "its place is free again", func() bool {
		res, _ := post(t, endpoint, ping, "Authorization", tokens[0])
		return res.StatusCode == 200
	})
}

func TestRunsOfATokenAreLimited(t *testing.T) {
	clock := newClock()
	store := tokenStore(t)
	tokens := bearers(t, store, "busy", "other")
	limits := config.HTTPLimits{Sessions: 2, RunsAtOnce: 1, RunsPerDay: 3, USDPerDay: 5}
	var w *world
	serve := func(old *fakeRuns) string {
		w = newWorld(t, func(d *Deps) {
			d.Now, d.Settings.HTTP.Limits, d.Settings.SubAgent.SyncWindowSeconds = clock.now, limits, 0
			if old != nil {
				d.Runs = old
			}
		})
		if old != nil {
			w.runs = old
		}
		return listen(t, w, HTTPOptions{Tokens: store, Now: clock.now})
	}
	endpoint := serve(nil)
	spawn := func(token, task, key string) (failed bool, text string) {
		t.Helper()
		args, _ := json.Marshal(map[string]string{"task": task, "idempotency_key": key})
		if key == "" {
			args, _ = json.Marshal(map[string]string{"task": task})
		}
		res, body := post(t, endpoint, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"spawn_agent","arguments":`+string(args)+`}}`, "Authorization", token)
		if res.StatusCode != 200 {
			t.Fatalf("%s %s", res.Status, body)
		}
		return strings.Contains(body, `"isError":true`), body
	}
	refused := func(why, token, task, key, want string) {
		t.Helper()
		if failed, text := spawn(token, task, key); !failed || !strings.Contains(text, want) {
			t.Errorf("%s: failed %v, %s", why, failed, text)
		}
	}
	started := func(why, token, task, key string) {
		t.Helper()
		if failed, text := spawn(token, task, key); failed {
			t.Errorf("%s: %s", why, text)
		}
	}
	started("the first", tokens[0], "long", "again")
	started("a call that is made again starts nothing", tokens[0], "long", "again")
	if n := w.runs.count(); n != 1 {
		t.Fatalf("%d runs", n)
	}
	refused("a second at once", tokens[0], "now b", "", "http.limits.runs_at_once")
	started("of another token", tokens[1], "now c", "")
	for _, r := range w.runs.runs {
		if r.rec.Key == "again" {
			w.runs.finish(t, r.rec.ID, run.Completed, "", "done")
		}
	}
	started("when that has ended", tokens[0], "now d", "")
	// A new server counts on: what was started is in the records.
	endpoint = serve(w.runs)
	started("the third today", tokens[0], "now e", "")
	refused("the fourth today", tokens[0], "now f", "", "http.limits.runs_per_day")
	refused("and says when", tokens[0], "now f", "", clock.now().Add(quotaDay).UTC().Format("2006-01-02"))
	clock.add(quotaDay)
	started("a day later", tokens[0], "now g", "")
	w.runs.mu.Lock()
	for _, r := range w.runs.runs {
		if r.rec.Principal == "token:busy" && r.rec.StartedAt.Equal(clock.now()) {
			r.rec.Result = &agent.Result{OK: true, CostUSD: 5.5}
		}
	}
	w.runs.mu.Unlock()
	refused("when it has spent its money", tokens[0], "now h", "", "http.limits.usd_per_day")
	started("another token's money is its own", tokens[1], "now i", "")
	// Who was not counted is not limited: a program on this machine over stdio.
	p := w.serve(t.Context()).hands()
	r := p.ask(toolCall(7, "spawn_agent", `{"task":"now j"}`))
	if r.Result["isError"] == true {
		t.Errorf("over standard input: %+v", r)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
	// What cannot be counted is not allowed.
	w.runs.mu.Lock()
	w.runs.broken = fmt.Errorf("the disk is gone")
	w.runs.mu.Unlock()
	refused("records that cannot be read", tokens[1], "now k", "", "cannot be counted")
}

// Those who come once and never again are forgotten, and nobody who is at work.
func TestQuotasForgetTheQuiet(t *testing.T) {
	clock := newClock()
	q := newQuotas(config.HTTPLimits{RequestsPerMinute: 1}, clock.now)
	if _, over := q.enter("at work", false); over != nil {
		t.Fatal(over.text)
	}
	for i := range quotaUsers {
		leave, over := q.enter(fmt.Sprint("user ", i), false)
		if over != nil {
			t.Fatal(over.text)
		}
		leave()
	}
	clock.add(2 * quotaQuiet)
	if _, over := q.enter("new", false); over != nil {
		t.Fatal(over.text)
	}
	if n := len(q.users); n != 2 {
		t.Errorf("%d are remembered, want the new one and the one at work", n)
	}
}

// Behind proxies of all kinds the server stays what its settings say: whose
// name is in a request, by Host or by what proxies add, changes no address.
func TestBehindAProxy(t *testing.T) {
	for _, strip := range []bool{true, false} {
		for _, prefix := range []string{"", "/team", "/a/b"} {
			name := fmt.Sprintf("prefix %q, handed on without it %v", prefix, strip)
			front := newFront(t, prefix)
			store := tokenStore(t)
			token := bearers(t, store, "x")[0]
			inner := listen(t, newWorld(t, nil), HTTPOptions{Tokens: store, PublicURL: front.public, OAuth: config.OAuth{Issuer: "https://login.example.com"}})
			front.to(t, inner, strip)
			if res, body := post(t, front.public, shake, "Authorization", token); res.StatusCode != 200 {
				t.Errorf("%s: %s %s", name, res.Status, body)
			}
			res, _ := post(t, front.public, shake, "X-Forwarded-Host", "evil.example", "X-Forwarded-Proto", "http", "X-Forwarded-Prefix", "/evil", "Forwarded", "host=evil.example")
			where := `resource_metadata="` + front.URL + metadataPath + prefix + `/mcp"`
			if h := res.Header.Get("WWW-Authenticate"); res.StatusCode != 401 || !strings.Contains(h, where) || strings.Contains(h, "evil") {
				t.Errorf("%s: %s %q", name, res.Status, h)
			}
			// The metadata is where that says, and where a proxy that hands on one
			// directory alone can have it.
			for _, at := range []string{metadataPath + prefix + EndpointPath, prefix + metadataPath, prefix + metadataPath + EndpointPath} {
				res, err := http.Get(front.URL + at)
				if err != nil {
					t.Fatal(err)
				}
				var meta struct {
					Resource string `json:"resource"`
				}
				err = json.NewDecoder(res.Body).Decode(&meta)
				res.Body.Close()
				if err != nil || meta.Resource != front.public {
					t.Errorf("%s: %s: %s %+v %v", name, at, res.Status, meta, err)
				}
			}
			// A page of the public address may call; another's may not, and a name
			// that was made to point here is refused as ever.
			u, _ := url.Parse(front.public)
			for _, c := range []struct {
				header []string
				want   int
			}{
				{[]string{"Origin", "http://" + u.Host}, 200}, {[]string{"Origin", "https://evil.example"}, 403},
				{[]string{"Host", "evil.example", "X-Forwarded-Host", u.Host}, 403}, {[]string{"Host", u.Host}, 200},
			} {
				if res, body := post(t, inner, shake, append(c.header, "Authorization", token)...); res.StatusCode != c.want {
					t.Errorf("%s: %v: %s %s", name, c.header, res.Status, body)
				}
			}
		}
	}
}

// A server that asks nobody for a token is for this machine. What a proxy hands
// on to it comes from anywhere, with an address of this machine.
func TestNoAuthIsNotForProxies(t *testing.T) {
	inner := listen(t, newWorld(t, nil), HTTPOptions{NoAuth: true})
	front := newFront(t, "")
	front.to(t, inner, true)
	if res, body := post(t, front.public, shake); res.StatusCode != 403 || !strings.Contains(body, "--no-auth") {
		t.Errorf("through a proxy: %s %s", res.Status, body)
	}
	for _, h := range forwarded() {
		if res, _ := post(t, inner, shake, h, "x"); res.StatusCode != 403 {
			t.Errorf("with %s: %s", h, res.Status)
		}
	}
	if res, _ := post(t, inner, shake); res.StatusCode != 200 {
		t.Errorf("from this machine: %s", res.Status)
	}
	err := newWorld(t, nil).server.ServeHTTP(t.Context(), HTTPOptions{Addr: "127.0.0.1:0", NoAuth: true, PublicURL: "https://me.example.com/mcp"})
	if err == nil || !strings.Contains(err.Error(), "http.public_url") {
		t.Errorf("with a public address: %v", err)
	}
}
