package issuer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"

	"reprise/internal/clip"
)

const (
	// keyLife is how old the issuer's keys may be before they are asked for
	// again: a key that was withdrawn is good for no longer than that.
	keyLife = 10 * time.Minute
	// staleKeys is for how long keys are good that cannot be asked for again
	// because the issuer does not answer.
	staleKeys = 12 * time.Hour
	// KeyPause is the time between two questions to the issuer, whoever asks
	// for what: tokens anybody can send must not make us knock each time.
	KeyPause = 10 * time.Second

	maxKeySet    = 1 << 20 // bytes of an issuer's keys or metadata
	maxKeys      = 1000
	maxRedirects = 3
)

// keySet holds the keys of an issuer. They are fetched at the first token, when
// they have become old, and when a token names one that is not there, which is
// how a key that is new is learnt of.
type keySet struct {
	// fetch gets the set as it is now, within ctx.
	fetch func(ctx context.Context) (keyfunc.Keyfunc, map[string]bool, error)
	now   func() time.Time
	// trouble hears of a set that could not be fetched anew while the old one
	// goes on.
	trouble func(error)

	asking sync.Mutex // held by the one that asks the issuer

	mu    sync.Mutex
	keys  keyfunc.Keyfunc
	ids   map[string]bool
	got   time.Time // when keys were fetched
	asked time.Time // when they were last asked for
	why   error     // of the last time that failed
}

// of returns the keys to check a token with that names the key kid ("" for
// none).
func (s *keySet) of(ctx context.Context, kid string) (keyfunc.Keyfunc, error) {
	keys, enough, err := s.have(kid)
	if enough {
		return keys, err
	}
	if keys != nil && !s.asking.TryLock() {
		return keys, nil // somebody asks already; what is known is not kept waiting
	} else if keys == nil {
		s.asking.Lock()
	}
	defer s.asking.Unlock()
	if keys, enough, err = s.have(kid); enough {
		return keys, err
	}
	// Those that come after are served from it too, so it does not end with
	// the request that happened to be first.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), issuerTime)
	defer cancel()
	fresh, ids, err := s.fetch(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.why = s.now(), err
	if err == nil {
		s.keys, s.ids, s.got = fresh, ids, s.asked
		return fresh, nil
	}
	if s.keys != nil && s.asked.Sub(s.got) < staleKeys {
		s.trouble(err)
		return s.keys, nil
	}
	return nil, err
}

// have is what is known, and whether that is enough without asking.
func (s *keySet) have(kid string) (_ keyfunc.Keyfunc, enough bool, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	age := now.Sub(s.got)
	usable := s.keys != nil && age < staleKeys
	rested := now.Sub(s.asked) >= KeyPause
	switch {
	case usable && age < keyLife && (kid == "" || s.ids[kid]):
		return s.keys, true, nil
	case !rested && usable:
		return s.keys, true, nil
	case !rested && s.why != nil:
		return nil, true, s.why
	case usable:
		return s.keys, false, nil
	}
	return nil, false, nil
}

// readKeys makes a set of a JWK Set document. A key that cannot be used here,
// because it is of a kind we do not know, is a secret or is for encryption,
// is passed over: one such key must not take the others away.
func readKeys(data []byte) (keyfunc.Keyfunc, map[string]bool, error) {
	var doc struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, nil, fmt.Errorf("not a JWK Set: %w", err)
	}
	if len(doc.Keys) > maxKeys {
		return nil, nil, fmt.Errorf("a JWK Set of %d keys is over the limit of %d", len(doc.Keys), maxKeys)
	}
	ctx, store, ids := context.Background(), jwkset.NewMemoryStorage(), map[string]bool{}
	n := 0
	for _, raw := range doc.Keys {
		key, err := jwkset.NewJWKFromRawJSON(raw, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
		if err != nil || key.Marshal().USE == jwkset.UseEnc {
			continue
		}
		if err := store.KeyWrite(ctx, key); err != nil {
			return nil, nil, fmt.Errorf("keep a key: %w", err)
		}
		ids[key.Marshal().KID] = true
		n++
	}
	if n == 0 {
		return nil, nil, errors.New("a JWK Set without a key for signatures that can be used here")
	}
	keys, err := keyfunc.New(keyfunc.Options{Storage: store})
	return keys, ids, err
}

// fetchKeys gets the issuer's keys, from where the settings or its metadata say.
func (i *Issuer) fetchKeys(ctx context.Context) (keyfunc.Keyfunc, map[string]bool, error) {
	where := i.conf.JWKSURL
	if where == "" {
		var err error
		if where, err = i.discover(ctx); err != nil {
			return nil, nil, err
		}
	}
	data, err := i.get(ctx, where)
	if err != nil {
		return nil, nil, fmt.Errorf("fetch keys of %s: %w", i.conf.Issuer, err)
	}
	keys, ids, err := readKeys(data)
	if err != nil {
		return nil, nil, fmt.Errorf("fetch keys of %s from %s: %w", i.conf.Issuer, where, err)
	}
	return keys, ids, nil
}

// discover finds the address of the issuer's keys: RFC 8414 first, then OpenID,
// by its rule and by the one of RFC 8414.
func (i *Issuer) discover(ctx context.Context) (string, error) {
	base, err := url.Parse(i.conf.Issuer)
	if err != nil {
		return "", fmt.Errorf("find keys of %s: %w", i.conf.Issuer, err)
	}
	path := strings.TrimSuffix(base.Path, "/")
	places := []string{"/.well-known/oauth-authorization-server" + path, path + "/.well-known/openid-configuration"}
	if path != "" {
		places = append(places, "/.well-known/openid-configuration"+path)
	}
	var errs []error
	for _, p := range places {
		u := *base
		u.Path = p
		where, err := i.readMetadata(ctx, u.String())
		if err == nil {
			return where, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("find keys of %s: %w: set http.oauth.jwks_url", i.conf.Issuer, errors.Join(errs...))
}

func (i *Issuer) readMetadata(ctx context.Context, from string) (string, error) {
	data, err := i.get(ctx, from)
	if err != nil {
		return "", err
	}
	var meta struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(data, &meta); err != nil {
		return "", fmt.Errorf("%s: %w", from, err)
	}
	// RFC 8414, 3.3: another issuer's metadata must not be used.
	if meta.Issuer != i.conf.Issuer {
		return "", fmt.Errorf("%s is about the issuer %q, not %q", from, clip.Bytes(meta.Issuer, 100), i.conf.Issuer)
	}
	if err := secureURL(meta.Keys); err != nil {
		return "", fmt.Errorf("%s: jwks_uri: %w", from, err)
	}
	return meta.Keys, nil
}

// get reads a document of the issuer's, whole or not at all.
func (i *Issuer) get(ctx context.Context, from string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	res, err := i.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", from, res.Status)
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, maxKeySet+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", from, err)
	}
	if len(data) > maxKeySet {
		return nil, fmt.Errorf("%s is over the limit of %d bytes", from, maxKeySet)
	}
	return data, nil
}

// issuerClient follows the issuer's redirects a little way, and never to where
// the answer could be somebody else's.
func issuerClient() *http.Client {
	return &http.Client{Timeout: issuerTime, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		return secureURL(req.URL.String())
	}}
}

// kidOf is the name of the key that a token says it was signed with.
func kidOf(t *jwt.Token) string {
	kid, _ := t.Header["kid"].(string)
	return kid
}
