package mcpserver

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"reprise/internal/config"
	"reprise/internal/mcpserver/issuer"
	"reprise/internal/mcpserver/issuer/issuertest"
)

// listen serves over HTTP until the test ends and returns the endpoint.
func listen(t *testing.T, w *world, o HTTPOptions) string {
	t.Helper()
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	ready := make(chan net.Addr, 1)
	o.Ready = func(a net.Addr) { ready <- a }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.server.ServeHTTP(ctx, o) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("serve: %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("the server is still there a minute after its end")
		}
	})
	select {
	case a := <-ready:
		return "http://" + a.String() + EndpointPath
	case err := <-ended:
		ended <- nil
		t.Fatalf("serve: %v", err)
	}
	return ""
}

func tokenStore(t *testing.T) *TokenStore {
	return &TokenStore{Path: filepath.Join(t.TempDir(), "data", "mcp-tokens.json"), Now: time.Now}
}

// post sends a message and returns the status and the answer.
func post(t *testing.T, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		req.Header.Add(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(data)
}

func TestHTTPTokens(t *testing.T) {
	store := tokenStore(t)
	token, err := store.Create(t.Context(), NewToken{Name: "laptop"})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, nil)
	url := listen(t, w, HTTPOptions{Tokens: store})
	for _, c := range []struct {
		name, header string
		want         int
	}{
		{"right", "Bearer " + token, 200}, {"none", "", 401}, {"wrong", "Bearer " + tokenPrefix + strings.Repeat("A", 43), 401},
		{"cut", "Bearer " + token[:len(token)-1], 401}, {"longer", "Bearer " + token + "A", 401}, {"basic", "Basic " + token, 401},
		{"empty", "Bearer ", 401}, {"a JWT, without an issuer", "Bearer aaa.bbb.ccc", 401}, {"its hash", "Bearer " + hashToken(token), 401},
	} {
		res, body := post(t, url, shake, "Authorization", c.header)
		if res.StatusCode != c.want {
			t.Errorf("%s: %s %s", c.name, res.Status, body)
		}
		if c.want == 401 && !strings.HasPrefix(res.Header.Get("WWW-Authenticate"), "Bearer ") {
			t.Errorf("%s: WWW-Authenticate %q", c.name, res.Header.Get("WWW-Authenticate"))
		}
		if strings.Contains(body, token) {
			t.Errorf("%s: the answer holds the token", c.name)
		}
	}
	if err := store.Revoke(t.Context(), "laptop"); err != nil {
		t.Fatal(err)
	}
	if res, _ := post(t, url, shake, "Authorization", "Bearer "+token); res.StatusCode != 401 {
		t.Errorf("after its revocation: %s", res.Status)
	}
}

// The SDK's own client, in both eras, with progress and a tool that waits.
func TestHTTPRealClient(t *testing.T) {
	store := tokenStore(t)
	token, err := store.Create(t.Context(), NewToken{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(d *Deps) { d.ProgressEvery = 10 * time.Millisecond })
	url := listen(t, w, HTTPOptions{Tokens: store})
	var progress atomic.Int32
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "0"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { progress.Add(1) },
	})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer(token)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 10 {
		t.Fatalf("%v, %v", tools, err)
	}
	go func() {
		for w.runs.count() == 0 || progress.Load() < 3 {
			time.Sleep(time.Millisecond)
		}
		recs, _ := w.runs.List(context.Background())
		w.runs.mu.Lock()
		w.runs.end(w.runs.runs[recs[0].ID], "completed", "", "over HTTP")
		w.runs.mu.Unlock()
	}()
	params := &mcp.CallToolParams{Name: "spawn_agent", Arguments: map[string]any{"task": "long"}}
	params.SetProgressToken("p")
	res, err := session.CallTool(t.Context(), params)
	if err != nil || res.IsError || !strings.Contains(textOf(t, res), "over HTTP") {
		t.Fatalf("%+v, %v", res, err)
	}
	if progress.Load() < 3 {
		t.Errorf("%d progress notifications", progress.Load())
	}
}

type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func TestHTTPHostAndOrigin(t *testing.T) {
	w := newWorld(t, nil)
	url := listen(t, w, HTTPOptions{NoAuth: true, AllowedOrigins: []string{"https://app.example.com", "file://"}})
	addr := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), EndpointPath)
	_, port, _ := net.SplitHostPort(addr)
	for _, c := range []struct {
		name   string
		header []string
		want   int
	}{
		{"plain", nil, 200},
		{"by name", []string{"Host", "localhost:" + port}, 200},
		{"IPv6 form", []string{"Host", "[::1]:" + port}, 200},
		{"rebound name", []string{"Host", "evil.example:" + port}, 403},
		{"name that begins right", []string{"Host", "localhost.evil.example"}, 403},
		{"address of another machine", []string{"Host", "10.0.0.1"}, 403},
		{"own origin", []string{"Origin", "http://" + addr}, 200},
		{"own name as origin", []string{"Host", "localhost:" + port, "Origin", "http://localhost:" + port}, 200},
		{"another port", []string{"Origin", "http://127.0.0.1:1"}, 403},
		{"foreign origin", []string{"Origin", "https://evil.example"}, 403},
		{"null origin", []string{"Origin", "null"}, 403},
		{"own page of a name that a proxy hands on", []string{"Host", "app.example.com", "Origin", "https://app.example.com"}, 200},
		{"the same unencrypted", []string{"Host", "app.example.com", "Origin", "http://app.example.com"}, 403},
		{"two origins", []string{"Origin", "http://" + addr, "Origin", "https://evil.example"}, 403},
		{"cross-site without origin", []string{"Sec-Fetch-Site", "cross-site"}, 403},
	} {
		if res, body := post(t, url, shake, c.header...); res.StatusCode != c.want {
			t.Errorf("%s: %s %s", c.name, res.Status, body)
		}
		// Reading requests are checked as well.
		req, _ := http.NewRequest(http.MethodGet, url, nil)
		req.Header.Set("Accept", "text/event-stream")
		foreign := false
		for i := 0; i+1 < len(c.header); i += 2 {
			if c.header[i] == "Host" {
				req.Host = c.header[i+1]
			} else {
				req.Header.Add(c.header[i], c.header[i+1])
			}
			foreign = foreign || c.header[i] != "Sec-Fetch-Site"
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if c.want == 403 && foreign && res.StatusCode != 403 {
			t.Errorf("%s, GET: %s", c.name, res.Status)
		}
	}
	// What no client of HTTP sends: no name at all, and one beside the request's own.
	for head, want := range map[string]string{
		"POST /mcp HTTP/1.1\r\nHost:\r\n": "403", "POST /mcp HTTP/1.1\r\nHost: :" + port + "\r\n": "403", "POST /mcp HTTP/1.0\r\n": "403", "POST /mcp HTTP/1.1\r\n": "400",
		"POST http://evil.example/mcp HTTP/1.1\r\nHost: " + addr + "\r\n": "403", "POST /mcp HTTP/1.1\r\nHost: " + addr + "\r\nHost: evil.example\r\n": "400",
	} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintf(conn, "%sContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", head, len(shake), shake)
		line, err := bufio.NewReader(conn).ReadString('\n')
		if _, code, _ := strings.Cut(line, " "); err != nil || !strings.HasPrefix(code, want) {
			t.Errorf("%q: %q %v, want %s", head, line, err, want)
		}
		conn.Close()
	}
	t.Run("allowed origin", func(t *testing.T) {
		// A page of that origin is served through its own name.
		if res, body := post(t, url, shake, "Host", "app.example.com", "Origin", "https://app.example.com"); res.StatusCode != 200 {
			t.Errorf("%s %s", res.Status, body)
		}
		res, _ := post(t, url, shake, "Origin", "https://app.example.com")
		if res.StatusCode != 200 || res.Header.Get("Access-Control-Allow-Origin") != "https://app.example.com" {
			t.Errorf("%s, allow %q", res.Status, res.Header.Get("Access-Control-Allow-Origin"))
		}
		req, _ := http.NewRequest(http.MethodOptions, url, nil)
		req.Header.Set("Origin", "https://app.example.com")
		req.Header.Set("Access-Control-Request-Method", "POST")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 204 || !strings.Contains(res.Header.Get("Access-Control-Allow-Headers"), "Authorization") {
			t.Errorf("preflight: %s %v", res.Status, res.Header)
		}
	})
}

// Who gives an address of IPv4 has not asked for IPv6, which another firewall is for.
func TestAddressOfIPv4(t *testing.T) {
	store := tokenStore(t)
	bearers(t, store, "x")
	if url := listen(t, newWorld(t, nil), HTTPOptions{Addr: "0.0.0.0:0", Tokens: store}); !strings.HasPrefix(url, "http://0.0.0.0:") {
		t.Errorf("listens on %s", url)
	}
}

func TestHTTPBounds(t *testing.T) {
	w := newWorld(t, nil)
	url := listen(t, w, HTTPOptions{NoAuth: true})
	if res, body := post(t, url, strings.Repeat("x", maxMessage+1)); res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a huge body: %s %.100s", res.Status, body)
	}
	for name, body := range map[string]string{"garbage": "hello", "empty": "", "scalar": "7", "not UTF-8": "{\"\xff\":1}"} {
		if res, _ := post(t, url, body); res.StatusCode != 400 {
			t.Errorf("%s: %s", name, res.Status)
		}
	}
	if res, _ := post(t, strings.TrimSuffix(url, EndpointPath)+"/other", shake); res.StatusCode != 404 {
		t.Errorf("another path: %s", res.Status)
	}
	if res, _ := post(t, url, shake); res.StatusCode != 200 {
		t.Errorf("afterwards: %s", res.Status)
	}
	// Headers that never end.
	conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), EndpointPath))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n", strings.Repeat("y", maxHeaders+8192))
	answer, _ := io.ReadAll(conn)
	if !strings.Contains(string(answer), " 431 ") {
		t.Errorf("huge headers: %.100q", answer)
	}
}

func TestHTTPRefusesToListen(t *testing.T) {
	empty := tokenStore(t)
	full := tokenStore(t)
	if _, err := full.Create(t.Context(), NewToken{Name: "x"}); err != nil {
		t.Fatal(err)
	}
	broken := tokenStore(t)
	if err := os.MkdirAll(filepath.Dir(broken.Path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken.Path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	oauth := config.OAuth{Issuer: "https://login.example.com", Resource: "https://here.example.com/mcp"}
	for _, c := range []struct {
		name string
		o    HTTPOptions
		want string
	}{
		{"off loopback without auth", HTTPOptions{Addr: "0.0.0.0:0", Tokens: empty}, "refused to listen on 0.0.0.0:0"},
		{"all addresses without auth", HTTPOptions{Addr: ":0"}, "without authentication"},
		{"off loopback with --no-auth", HTTPOptions{Addr: "0.0.0.0:0", NoAuth: true, Tokens: full}, "--no-auth is for loopback only"},
		{"all addresses with --no-auth", HTTPOptions{Addr: ":0", NoAuth: true}, "--no-auth is for loopback only"},
		{"loopback without tokens", HTTPOptions{Addr: "127.0.0.1:0", Tokens: empty}, "reprise mcp token create"},
		{"damaged tokens", HTTPOptions{Addr: "127.0.0.1:0", Tokens: broken}, "mcp-tokens.json is not valid"},
		{"no port", HTTPOptions{Addr: "127.0.0.1", NoAuth: true}, "host:port"},
		{"issuer over http", HTTPOptions{Addr: "127.0.0.1:0", OAuth: config.OAuth{Issuer: "http://login.example.com", Resource: "x"}}, "https://"},
		{"issuer without audience", HTTPOptions{Addr: "127.0.0.1:0", OAuth: config.OAuth{Issuer: "https://login.example.com"}}, "resource"},
		{"address in use", HTTPOptions{Addr: "127.0.0.1:1", OAuth: oauth}, ""},
	} {
		if c.name == "address in use" {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			c.o.Addr, c.want = l.Addr().String(), "address already in use"
			if runtime.GOOS == "windows" {
				c.want = "serve MCP over HTTP"
			}
		}
		w := newWorld(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := w.server.ServeHTTP(ctx, c.o)
		cancel()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestHTTPOAuth(t *testing.T) {
	iss := issuertest.New(t)
	const resource = "https://memory.example.com/mcp"
	w := newWorld(t, nil)
	url := listen(t, w, HTTPOptions{OAuth: config.OAuth{Issuer: iss.URL, Resource: resource}})
	good := iss.Sign(resource, nil)
	foreign, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	resign := func(method jwt.SigningMethod, key any, kid string) string {
		tok := jwt.NewWithClaims(method, jwt.MapClaims{"iss": iss.URL, "aud": resource, "sub": "u", "scope": "reprise", "exp": time.Now().Add(time.Hour).Unix()})
		tok.Header["kid"] = kid
		s, err := tok.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	pub, err := iss.Key().PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	claim := func(k string, v any) string {
		return iss.Sign(resource, func(c jwt.MapClaims, _ *jwt.Token) {
			if v == nil {
				delete(c, k)
			} else {
				c[k] = v
			}
		})
	}
	for _, c := range []struct {
		name, token string
		want        int
	}{
		{"right", good, 200},
		{"scopes as a list", iss.Sign(resource, func(c jwt.MapClaims, _ *jwt.Token) { delete(c, "scope"); c["scp"] = []string{"reprise"} }), 200},
		{"several audiences", claim("aud", []string{"other", resource}), 200},
		{"expired", claim("exp", time.Now().Add(-time.Hour).Unix()), 401},
		{"expired within the skew", claim("exp", time.Now().Add(-10*time.Second).Unix()), 200},
		{"no expiry", claim("exp", nil), 401},
		{"not yet valid", claim("nbf", time.Now().Add(time.Hour).Unix()), 401},
		{"another issuer", claim("iss", "https://evil.example"), 401},
		{"another audience", claim("aud", "https://other.example/mcp"), 401},
		{"no audience", claim("aud", nil), 401},
		{"no subject", claim("sub", nil), 401},
		{"without the scope", claim("scope", "openid"), 403},
		{"a key of nobody", resign(jwt.SigningMethodES256, foreign, "k1"), 401},
		{"an unknown key", resign(jwt.SigningMethodES256, foreign, "k9"), 401},
		{"no signature", resign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "k1"), 401},
		{"the public key as a secret", resign(jwt.SigningMethodHS256, pub, "k1"), 401},
		{"cut", good[:len(good)-4], 401},
		{"huge", strings.Repeat("a", issuer.MaxToken) + ".b.c", 401},
		{"none", "", 401},
	} {
		res, body := post(t, url, shake, "Authorization", "Bearer "+c.token)
		if res.StatusCode != c.want {
			t.Errorf("%s: %s %s", c.name, res.Status, body)
		}
		// The most frequent mistakes are made in the settings, here or at the provider: what was
		// expected is said and where that stands, and nothing of the token.
		want := map[string][]string{
			"another audience": {strconv.Quote(resource), "http.oauth.audience"}, "no audience": {strconv.Quote(resource), "http.oauth.audience"},
			"another issuer": {strconv.Quote(iss.URL), "http.oauth.issuer"},
		}[c.name]
		for _, part := range want {
			if !strings.Contains(body, part) {
				t.Errorf("%s: %q does not say %s", c.name, body, part)
			}
		}
		if len(want) == 0 && strings.Contains(body, "http.oauth") || strings.Contains(body, "evil") || strings.Contains(body, "other.example") {
			t.Errorf("%s: %q", c.name, body)
		}
		if c.want != 200 {
			want := `resource_metadata="https://memory.example.com/.well-known/oauth-protected-resource/mcp"`
			if h := res.Header.Get("WWW-Authenticate"); !strings.Contains(h, want) || !strings.Contains(h, `scope="reprise"`) {
				t.Errorf("%s: WWW-Authenticate %q", c.name, h)
			}
		}
	}
	for _, path := range []string{metadataPath, metadataPath + EndpointPath} {
		res, err := http.Get(strings.TrimSuffix(url, EndpointPath) + path)
		if err != nil {
			t.Fatal(err)
		}
		var meta struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
			Scopes   []string `json:"scopes_supported"`
			Methods  []string `json:"bearer_methods_supported"`
		}
		err = json.NewDecoder(res.Body).Decode(&meta)
		res.Body.Close()
		if err != nil || res.StatusCode != 200 || meta.Resource != resource || len(meta.Servers) != 1 || meta.Servers[0] != iss.URL || len(meta.Scopes) != len(Scopes()) || len(meta.Methods) != 1 {
			t.Errorf("%s: %s %+v %v", path, res.Status, meta, err)
		}
	}
	// An unknown key does not make us ask the issuer each time.
	asked := iss.Asked()
	began := time.Now()
	for range 20 {
		post(t, url, shake, "Authorization", "Bearer "+resign(jwt.SigningMethodES256, foreign, "k9"))
	}
	if iss.Asked() > asked+1 || time.Since(began) > time.Minute {
		t.Errorf("the issuer was asked %d times more, in %s", iss.Asked()-asked, time.Since(began))
	}
}

func TestTokenStore(t *testing.T) {
	s := tokenStore(t)
	if l, err := s.List(); err != nil || len(l) != 0 {
		t.Errorf("before the first: %v, %v", l, err)
	}
	made := map[string]string{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			name := fmt.Sprint("t", i)
			tok, err := s.Create(context.Background(), NewToken{Name: name})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			made[tok] = name
			mu.Unlock()
		})
	}
	all.Wait()
	data, err := os.ReadFile(s.Path)
	if err != nil || len(made) != 10 {
		t.Fatal(err, len(made))
	}
	for tok, name := range made {
		if got, ok, err := s.Verify(tok); got.Name != name || !ok || err != nil {
			t.Errorf("%s: %v %v %v", name, got, ok, err)
		}
		if strings.Contains(string(data), tok) {
			t.Error("a token is in the file")
		}
		if raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(tok, tokenPrefix)); err != nil || len(raw) != 32 {
			t.Errorf("token %s: %d bytes, %v", tok, len(raw), err)
		}
	}
	if info, err := os.Stat(s.Path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := s.Create(t.Context(), NewToken{Name: "t3"}); !errors.Is(err, ErrTokenExists) {
		t.Errorf("twice: %v", err)
	}
	for _, name := range []string{"", "a b", "../x", "é", strings.Repeat("n", 65), "-x", "a\nb"} {
		if _, err := s.Create(t.Context(), NewToken{Name: name}); err == nil {
			t.Errorf("name %q was taken", name)
		}
	}
	if err := s.Revoke(t.Context(), "t3"); err != nil {
		t.Error(err)
	}
	if err := s.Revoke(t.Context(), "t3"); !errors.Is(err, ErrTokenNotFound) {
		t.Errorf("revoked twice: %v", err)
	}
	for tok, name := range made {
		if _, ok, _ := s.Verify(tok); ok != (name != "t3") {
			t.Errorf("%s: %v", name, ok)
		}
	}
	// What is not ours is never written over.
	for _, damage := range []string{"not json", `{"v":9,"tokens":[]}`} {
		if err := os.WriteFile(s.Path, []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Create(t.Context(), NewToken{Name: "new"}); err == nil || !strings.Contains(err.Error(), s.Path) {
			t.Errorf("%s: %v", damage, err)
		}
		if data, _ := os.ReadFile(s.Path); string(data) != damage {
			t.Errorf("%s became %s", damage, data)
		}
	}
}
