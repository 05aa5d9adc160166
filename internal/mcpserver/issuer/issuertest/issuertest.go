// Package issuertest is an authorization server for tests of what checks its tokens.
package issuertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Issuer is an authorization server: its metadata, and its keys, of which k1 signs.
type Issuer struct {
	*httptest.Server
	t     *testing.T
	mu    sync.Mutex
	keys  map[string]*ecdsa.PrivateKey
	down  bool
	asked int
}

// New starts one, which ends with the test.
func New(t *testing.T) *Issuer {
	t.Helper()
	i := &Issuer{t: t, keys: map[string]*ecdsa.PrivateKey{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, i.URL, i.URL+"/keys")
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.asked++
		if i.down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		var keys []map[string]string
		for kid, k := range i.keys {
			b64 := func(n *big.Int) string {
				return base64.RawURLEncoding.EncodeToString(n.FillBytes(make([]byte, 32)))
			}
			pub, err := k.PublicKey.Bytes() // 0x04, X, Y
			if err != nil {
				http.Error(w, err.Error(), 500)
				return
			}
			x, y := new(big.Int).SetBytes(pub[1:33]), new(big.Int).SetBytes(pub[33:])
			keys = append(keys, map[string]string{"kty": "EC", "crv": "P-256", "kid": kid, "alg": "ES256", "use": "sig", "x": b64(x), "y": b64(y)})
		}
		if err := json.NewEncoder(w).Encode(map[string]any{"keys": keys}); err != nil {
			t.Error(err)
		}
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i.keys["k1"] = k
	return i
}

// Key is k1.
func (i *Issuer) Key() *ecdsa.PrivateKey { return i.keys["k1"] }

// Asked is how often the keys were asked for.
func (i *Issuer) Asked() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

// Answers has the issuer answer, or be away.
func (i *Issuer) Answers(yes bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = !yes
}

// Sign makes a token; change may alter its claims and header.
func (i *Issuer) Sign(resource string, change func(jwt.MapClaims, *jwt.Token)) string {
	i.t.Helper()
	claims := jwt.MapClaims{
		"iss": i.URL, "aud": resource, "sub": "user-1", "scope": "openid reprise", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
	}
	tok := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	tok.Header["kid"] = "k1"
	if change != nil {
		change(claims, tok)
	}
	s, err := tok.SignedString(i.Key())
	if err != nil {
		i.t.Fatal(err)
	}
	return s
}
