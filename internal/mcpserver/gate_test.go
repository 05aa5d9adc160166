package mcpserver

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"reprise/internal/config"
	"reprise/internal/mcpserver/issuer/issuertest"
)

// While the keys cannot be had the client is told to come again, not that its
// token is bad, which would have it throw the token away.
func TestIssuerDownIsNotTheTokensFault(t *testing.T) {
	iss := issuertest.New(t)
	iss.Answers(false)
	endpoint := listen(t, newWorld(t, nil), HTTPOptions{OAuth: config.OAuth{Issuer: iss.URL, Resource: "https://r.example/mcp"}})
	res, body := post(t, endpoint, shake, "Authorization", "Bearer "+iss.Sign("https://r.example/mcp", nil))
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || strings.Contains(body, iss.URL) {
		t.Errorf("%s %q %s", res.Status, res.Header.Get("Retry-After"), body)
	}
}

// Each tool with each scope: it is done if and only if the scope is for it,
// whatever form the message has, and a token of ours is shown what it can do.
func TestScopesOfEachTool(t *testing.T) {
	store := tokenStore(t)
	w := newWorld(t, func(d *Deps) { d.Toolsets = []string{"all"} })
	bearers(t, store, "first")
	endpoint := listen(t, w, HTTPOptions{Tokens: store})
	list := func(token string) map[string]bool {
		_, body := post(t, endpoint, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Authorization", "Bearer "+token)
		out := map[string]bool{}
		for _, tl := range w.server.tools {
			out[tl.name] = strings.Contains(body, `"name":"`+tl.name+`"`)
		}
		return out
	}
	for n, scopes := range [][]string{nil, {ScopeRead}, {ScopeWrite}, {ScopeRuns}, {ScopeRead, ScopeWrite}, {Scope}} {
		token, err := store.Create(t.Context(), NewToken{Name: fmt.Sprint("t", n), Scopes: scopes})
		if err != nil {
			t.Fatal(err)
		}
		have := scopes
		if have == nil {
			have = []string{Scope}
		}
		shown := list(token)
		for _, tl := range w.server.tools {
			want := grants(have, tl.scope())
			if shown[tl.name] != want {
				t.Errorf("%v: %s is shown: %v", have, tl.name, shown[tl.name])
			}
			call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tl.name + `","arguments":{"no_such_parameter":1}}}`
			for form, body := range map[string]string{
				"plain": call, "in a batch": "[" + call + "]", "behind another": `[{"jsonrpc":"2.0","id":0,"method":"ping"},` + call + "]",
				"with the name twice": strings.Replace(call, `"name":"`, `"name":"memory_search","name":"`, 1), "with escapes": strings.Replace(call, `"tools/call"`, `"tools\u002fcall"`, 1),
				"in capitals beside": strings.Replace(call, `"method"`, `"Method":"ping","method"`, 1), "in capitals behind": strings.Replace(call, `"params"`, `"METHOD":"ping","params"`, 1),
				"with another name beside": strings.Replace(call, `"arguments"`, `"Name":"memory_search","arguments"`, 1),
			} {
				res, text := post(t, endpoint, body, "Authorization", "Bearer "+token)
				reached := strings.Contains(text, `"text":"`+tl.name+`: `) // the tool itself says what is wrong
				if reached && !want {
					t.Errorf("%v: %s, %s: was called: %s", have, tl.name, form, text)
				}
				if form == "plain" && reached != want {
					t.Errorf("%v: %s: %s %s", have, tl.name, res.Status, text)
				}
				if form == "plain" && !want {
					h := res.Header.Get("WWW-Authenticate")
					if res.StatusCode != 403 || !strings.Contains(h, `error="insufficient_scope"`) || !strings.Contains(h, tl.scope()) {
						t.Errorf("%v: %s: %s %q", have, tl.name, res.Status, h)
					}
				}
			}
		}
		read := `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"memory://core"}}`
		if res, _ := post(t, endpoint, read, "Authorization", "Bearer "+token); (res.StatusCode != 403) != grants(have, ScopeRead) {
			t.Errorf("%v: reading a resource: %s", have, res.Status)
		}
	}
}

func TestTokensThatExpire(t *testing.T) {
	clock := newClock()
	store := tokenStore(t)
	store.Now = clock.now
	token, err := store.Create(t.Context(), NewToken{Name: "day", Scopes: []string{ScopeRead, ScopeRead}, Life: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	endpoint := listen(t, newWorld(t, nil), HTTPOptions{Tokens: store, Now: clock.now})
	if res, _ := post(t, endpoint, shake, "Authorization", "Bearer "+token); res.StatusCode != 200 {
		t.Errorf("on its day: %s", res.Status)
	}
	clock.add(24 * time.Hour)
	if res, body := post(t, endpoint, shake, "Authorization", "Bearer "+token); res.StatusCode != 401 || !strings.Contains(body, "expired") {
		t.Errorf("a day later: %s %s", res.Status, body)
	}
	for name, n := range map[string]NewToken{"no scope of ours": {Name: "a", Scopes: []string{"admin"}}, "over before it begins": {Name: "b", Life: -1}} {
		if _, err := store.Create(t.Context(), n); err == nil {
			t.Errorf("%s: was made", name)
		}
	}
	// An older program knows nothing of scopes and would take the token for one
	// for everything; it must not read the file.
	f, err := store.read()
	if err != nil || f.V != 2 || len(f.Tokens) != 1 || len(f.Tokens[0].Scopes) != 1 {
		t.Errorf("%+v %v", f, err)
	}
	if err := store.Revoke(t.Context(), "day"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Create(t.Context(), NewToken{Name: "plain"}); err != nil {
		t.Fatal(err)
	}
	if f, err := store.read(); err != nil || f.V != 1 {
		t.Errorf("without such a token: %+v %v", f, err)
	}
}

// What a client sends where a token should be.
func TestAuthorizationHeaders(t *testing.T) {
	store := tokenStore(t)
	token, err := store.Create(t.Context(), NewToken{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	endpoint := listen(t, newWorld(t, nil), HTTPOptions{Tokens: store})
	for _, c := range []struct {
		name   string
		header []string
		query  string
		want   int
	}{
		{"two of them", []string{"Authorization", "Bearer " + token, "Authorization", "Bearer other"}, "", 401},
		{"in other letters", []string{"Authorization", "bEARER " + token}, "", 200},
		{"in the address", nil, "?access_token=" + token, 401},
		{"with something behind", []string{"Authorization", "Bearer " + token + " x"}, "", 401},
		{"encoded", []string{"Authorization", "Bearer " + base64.StdEncoding.EncodeToString([]byte(token))}, "", 401},
	} {
		res, body := post(t, endpoint+c.query, shake, c.header...)
		h := res.Header.Get("WWW-Authenticate")
		if res.StatusCode != c.want || strings.Contains(body+h, token) {
			t.Errorf("%s: %s %q %s", c.name, res.Status, h, body)
		}
	}
}
