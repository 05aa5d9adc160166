package issuer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"

	"reprise/internal/config"
	"reprise/internal/mcpserver/issuer/issuertest"
)

// jwk is a public key as issuers publish it.
func jwk(t *testing.T, key any, kid string, more map[string]any) map[string]any {
	t.Helper()
	j, err := jwkset.NewJWKFromKey(key, jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{KID: kid}, Marshal: jwkset.JWKMarshalOptions{Private: kid == "secret"}})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(j.Marshal())
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	for k, v := range more {
		out[k] = v
	}
	return out
}

func ecKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// When the issuer is asked for its keys, and when not.
func TestKeysAreFetchedInTime(t *testing.T) {
	clock := &handClock{at: time.Now()}
	var asked, complaints int
	var broken error
	known := []string{"a"}
	s := &keySet{now: clock.now, trouble: func(error) { complaints++ }, fetch: func(context.Context) (keyfunc.Keyfunc, map[string]bool, error) {
		asked++
		if broken != nil {
			return nil, nil, broken
		}
		ids := map[string]bool{}
		for _, k := range known {
			ids[k] = true
		}
		k, err := keyfunc.New(keyfunc.Options{Storage: jwkset.NewMemoryStorage()})
		return k, ids, err
	}}
	step := func(what, kid string, after time.Duration, wantAsked int, wantErr bool) {
		t.Helper()
		clock.add(after)
		asked = 0
		keys, err := s.of(t.Context(), kid)
		if asked != wantAsked || (err != nil) != wantErr || (keys == nil) != wantErr {
			t.Errorf("%s: asked %d times, %v; want %d and an error: %v", what, asked, err, wantAsked, wantErr)
		}
	}
	step("the first token", "a", 0, 1, false)
	step("the same key", "a", time.Minute, 0, false)
	step("a token that names none", "", 0, 0, false)
	step("a key that is not known", "b", 0, 1, false)
	step("at once again", "b", 0, 0, false)
	step("another that is not known", "c", KeyPause-time.Second, 0, false)
	known = []string{"b"}
	step("and when that time has passed", "b", time.Second, 1, false)
	step("which is known now", "b", time.Minute, 0, false)
	step("a key that was withdrawn", "a", 0, 1, false)
	step("when they are old", "b", keyLife, 1, false)
	broken = errors.New("down")
	step("the issuer is down: what is known goes on", "b", keyLife, 1, false)
	if complaints != 1 {
		t.Errorf("%d complaints in the log", complaints)
	}
	step("and is not knocked up", "b", time.Second, 0, false)
	step("until the keys are too old", "b", staleKeys, 1, true)
	step("which is remembered", "b", time.Second, 0, true)
	broken = nil
	step("it is back", "b", KeyPause, 1, false)
}

// An issuer that answers slowly keeps nobody waiting whose key is known.
func TestKeysThatAreKnownDoNotWait(t *testing.T) {
	clock := &handClock{at: time.Now()}
	slow, entered := make(chan struct{}), make(chan struct{}, 1)
	var calls atomic.Int32
	s := &keySet{now: clock.now, trouble: func(error) {}, fetch: func(context.Context) (keyfunc.Keyfunc, map[string]bool, error) {
		if calls.Add(1) > 1 {
			entered <- struct{}{}
			<-slow
		}
		k, err := keyfunc.New(keyfunc.Options{Storage: jwkset.NewMemoryStorage()})
		return k, map[string]bool{"a": true}, err
	}}
	if _, err := s.of(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	clock.add(keyLife)
	ended := make(chan error, 1)
	gone, leave := context.WithCancel(t.Context())
	go func() {
		_, err := s.of(gone, "a")
		ended <- err
	}()
	<-entered
	leave() // whoever asked has gone; the others still get what comes
	for range 100 {
		if _, err := s.of(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	close(slow)
	if err := <-ended; err != nil {
		t.Errorf("the one that asked: %v", err)
	}
	if n := calls.Load(); n != 2 {
		t.Errorf("asked %d times", n)
	}
}

// Keys that are for something else, or that we cannot use, are as if they were
// not there; the rest is good.
func TestKeysOfOtherKinds(t *testing.T) {
	good := ecKey(t)
	set := func(keys ...any) []byte {
		data, err := json.Marshal(map[string]any{"keys": keys})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	secret := jwk(t, []byte("a shared secret that is long enough"), "secret", nil)
	others := []any{
		secret, jwk(t, &good.PublicKey, "enc", map[string]any{"use": "enc"}),
		map[string]any{"kty": "AKP", "kid": "pq", "alg": "ML-DSA-65", "pub": "AAAA"}, map[string]any{"kty": "EC", "kid": "broken", "crv": "P-256", "x": "AA", "y": "AA"}, "text",
	}
	_, ids, err := readKeys(set(append(others, jwk(t, &good.PublicKey, "good", nil))...))
	if err != nil || len(ids) != 1 || !ids["good"] {
		t.Errorf("%v %v", ids, err)
	}
	for name, data := range map[string][]byte{
		"none of use": set(others...), "none": set(), "no list": []byte(`{}`), "no JSON": []byte("<html>"), "many": set(make([]any, maxKeys+1)...),
	} {
		if _, _, err := readKeys(data); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}

// tokens for tests of what is refused beside the checks of http_test.go.
func TestTokensThatAreSomethingElse(t *testing.T) {
	iss := issuertest.New(t)
	i, err := New(config.OAuth{Issuer: iss.URL, Audience: "us", Subjects: []string{"user-1", "user-2"}}, time.Now, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	header := func(k string, v any) string {
		return iss.Sign("us", func(_ jwt.MapClaims, tok *jwt.Token) { tok.Header[k] = v })
	}
	claim := func(k string, v any) string {
		return iss.Sign("us", func(c jwt.MapClaims, _ *jwt.Token) { c[k] = v })
	}
	for _, c := range []struct {
		name, token string
		ok          bool
	}{
		{"plain", iss.Sign("us", nil), true},
		{"an access token by its type", header("typ", "at+JWT"), true},
		{"in the long form", header("typ", "application/at+jwt"), true},
		{"a logout token", header("typ", "logout+jwt"), false},
		{"a proof of possession", header("typ", "dpop+jwt"), false},
		{"a type that is no text", header("typ", 7), false},
		{"what must be understood", header("crit", []string{"exp"}), false},
		{"a key in the token itself", header("jwk", map[string]any{"kty": "EC"}), true}, // passed over: the issuer's key signed it
		{"another's subject", claim("sub", "user-3"), false},
		{"the other subject", claim("sub", "user-2"), true},
		{"an audience that contains ours", claim("aud", "us.example.com"), false},
		{"an audience in other letters", claim("aud", "US"), false},
		{"an issuer with a slash", claim("iss", iss.URL+"/"), false},
		{"expiry that is no number", claim("exp", "soon"), false},
		{"expiry in quotes", claim("exp", strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)), false},
		{"the same under a name in other letters", claim("EXP", strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)), false},
		{"a beginning in quotes", claim("nbf", "1"), false},
		{"a time of issue in quotes", claim("iat", "1"), false},
		{"bound to a key, as by DPoP", claim("cnf", map[string]any{"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}), false},
		{"bound to a certificate", claim("cnf", map[string]any{"x5t#S256": "bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2"}), false},
		{"bound to nothing", claim("cnf", nil), true},
		{"an expiry far away", claim("exp", 1e300), false},
	} {
		info, err := i.Verify(t.Context(), c.token)
		if (err == nil) != c.ok {
			t.Errorf("%s: %+v %v", c.name, info, err)
		}
	}
	// A secret among the issuer's keys makes no secret of a token.
	hs := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"iss": iss.URL, "aud": "us", "sub": "user-1", "scope": "reprise", "exp": time.Now().Add(time.Hour).Unix()})
	hs.Header["kid"] = "secret"
	secret := []byte("a shared secret that is long enough")
	forged, err := hs.SignedString(secret)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		// The test's own key set: what is written needs no check.
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{jwk(t, secret, "secret", nil), jwk(t, &iss.Key().PublicKey, "k1", nil)}})
	}))
	defer server.Close()
	i, err = New(config.OAuth{Issuer: iss.URL, Audience: "us", JWKSURL: server.URL}, time.Now, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.Verify(t.Context(), forged); err == nil {
		t.Error("a token that a shared secret signed was taken")
	}
	if _, err := i.Verify(t.Context(), iss.Sign("us", nil)); err != nil {
		t.Errorf("beside it: %v", err)
	}
}

// Where an issuer's metadata may be, and whose it must be.
func TestIssuerMetadata(t *testing.T) {
	key := ecKey(t)
	var base string
	docs := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/keys" {
			_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{jwk(t, &key.PublicKey, "k", nil)}})
			return
		}
		switch doc := docs[r.URL.Path]; {
		case strings.HasPrefix(doc, "to "):
			http.Redirect(w, r, doc[3:], http.StatusFound)
		case doc != "":
			fmt.Fprint(w, doc)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	base = server.URL
	meta := func(issuer, keys string) string { return fmt.Sprintf(`{"issuer":%q,"jwks_uri":%q}`, issuer, keys) }
	ours := base + "/tenant"
	good := meta(ours, base+"/keys")
	for _, c := range []struct {
		name, path, doc string
		ok              bool
	}{
		{"RFC 8414", "/.well-known/oauth-authorization-server/tenant", good, true},
		{"OpenID Connect", "/tenant/.well-known/openid-configuration", good, true},
		{"OpenID Connect by the rule of RFC 8414", "/.well-known/openid-configuration/tenant", good, true},
		{"elsewhere", "/.well-known/openid-configuration", good, false},
		{"of another issuer", "/tenant/.well-known/openid-configuration", meta(base+"/other", base+"/keys"), false},
		{"of an issuer with a slash", "/tenant/.well-known/openid-configuration", meta(ours+"/", base+"/keys"), false},
		{"with keys that are not encrypted on their way", "/tenant/.well-known/openid-configuration", meta(ours, "http://keys.example.com/keys"), false},
		{"with keys in a file", "/tenant/.well-known/openid-configuration", meta(ours, "file:///etc/keys"), false},
		{"no JSON", "/tenant/.well-known/openid-configuration", "<html>", false},
		{"huge", "/tenant/.well-known/openid-configuration", `{"x":"` + strings.Repeat("x", maxKeySet) + `"}`, false},
		{"a redirect to where it is", "/tenant/.well-known/openid-configuration", "to /moved", true},
		{"a redirect to what is not encrypted", "/tenant/.well-known/openid-configuration", "to http://192.0.2.1/x", false},
		{"a redirect to itself", "/tenant/.well-known/openid-configuration", "to /tenant/.well-known/openid-configuration", false},
	} {
		clear(docs)
		docs["/moved"], docs[c.path] = good, c.doc
		i, err := New(config.OAuth{Issuer: ours, Audience: "us"}, time.Now, func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		_, ids, err := i.fetchKeys(t.Context())
		if (err == nil) != c.ok || c.ok && !ids["k"] {
			t.Errorf("%s: %v %v", c.name, ids, err)
		}
	}
}

func TestIssuerDown(t *testing.T) {
	iss := issuertest.New(t)
	iss.Answers(false)
	clock := atomic.Int64{}
	clock.Store(time.Now().UnixNano())
	now := func() time.Time { return time.Unix(0, clock.Load()) }
	i, err := New(config.OAuth{Issuer: iss.URL, Audience: "a", JWKSURL: iss.URL + "/keys"}, now, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := i.Verify(t.Context(), iss.Sign("a", nil)); err == nil {
			t.Fatal("verified without keys")
		}
	}
	if iss.Asked() != 1 {
		t.Errorf("asked %d times within 10 s", iss.Asked())
	}
	iss.Answers(true)
	clock.Add(int64(KeyPause))
	if _, err := i.Verify(t.Context(), iss.Sign("a", nil)); err != nil {
		t.Errorf("when it is back: %v", err)
	}
}

// handClock is a clock that a test moves.
type handClock struct{ at time.Time }

func (h *handClock) now() time.Time { return h.at }

func (h *handClock) add(d time.Duration) { h.at = h.at.Add(d) }
