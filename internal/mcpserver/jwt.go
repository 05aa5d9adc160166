package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
	"github.com/modelcontextprotocol/go-sdk/auth"

	"reprise/internal/config"
)

// Scope is what a token must grant to use this server at all. There is one:
// what a client may do is decided by --read-only and --toolsets.
const Scope = "reprise"

const (
	clockSkew   = 30 * time.Second
	maxMetadata = 1 << 20 // bytes of an issuer's metadata
	issuerTime  = 10 * time.Second
	maxJWT      = 16 << 10 // bytes of a token
	retryIssuer = 10 * time.Second
)

// signatures are the algorithms taken: public key ones only. With a shared
// secret whoever can check a token could make one, and "none" is no signature.
func signatures() []string {
	return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
}

// issuer checks the tokens of the configured authorization server. Its keys
// are fetched at the first token and kept fresh from then on.
type issuer struct {
	conf   config.OAuth
	audit  *slog.Logger
	now    func() time.Time
	client *http.Client
	life   context.Context // of the refreshing of keys

	mu     sync.Mutex
	keys   keyfunc.Keyfunc
	failed time.Time
	why    error
}

func newIssuer(ctx context.Context, conf config.OAuth, now func() time.Time, log *slog.Logger) (*issuer, error) {
	if conf.Issuer == "" {
		return nil, nil
	}
	for key, u := range map[string]string{"issuer": conf.Issuer, "jwks_url": conf.JWKSURL} {
		if u == "" {
			continue
		}
		if err := secureURL(u); err != nil {
			return nil, fmt.Errorf("http.oauth.%s: %w", key, err)
		}
	}
	if conf.Audience == "" && conf.Resource == "" {
		return nil, errors.New("http.oauth: neither audience nor resource is set, so that a token for any service of the issuer would do: set resource to this server's address as clients see it")
	}
	return &issuer{conf: conf, now: now, audit: log, life: ctx, client: &http.Client{Timeout: issuerTime}}, nil
}

// secureURL refuses an issuer that could be played by whoever is on the way.
func secureURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return fmt.Errorf("%q is not a URL: give one such as https://login.example.com", clip(s, 100))
	}
	if u.Scheme == "https" || u.Scheme == "http" && loopbackHost(u.Hostname()) {
		return nil
	}
	return fmt.Errorf("%q must begin with https:// (http is for loopback only)", clip(s, 100))
}

// verify checks a token of the issuer: signature, issuer, audience, time.
func (i *issuer) verify(ctx context.Context, token string) (*auth.TokenInfo, error) {
	if len(token) > maxJWT {
		return nil, fmt.Errorf("%w: too long", auth.ErrInvalidToken)
	}
	keys, err := i.keyfunc(ctx)
	if err != nil {
		i.audit.LogAttrs(ctx, slog.LevelError, LogError, slog.String("tool", "http"), slog.String("error", err.Error()))
		return nil, fmt.Errorf("the keys of the token's issuer cannot be had at the moment")
	}
	options := []jwt.ParserOption{
		jwt.WithValidMethods(signatures()), jwt.WithIssuer(i.conf.Issuer), jwt.WithExpirationRequired(),
		jwt.WithLeeway(clockSkew), jwt.WithTimeFunc(i.now), jwt.WithAudience(i.audiences()...),
	}
	var claims tokenClaims
	if _, err := jwt.ParseWithClaims(token, &claims, keys.KeyfuncCtx(ctx), options...); err != nil {
		// The library's text names the failed check and nothing secret.
		return nil, fmt.Errorf("%w: %s", auth.ErrInvalidToken, clip(err.Error(), 200))
	}
	if claims.Subject == "" {
		return nil, fmt.Errorf("%w: it names no subject", auth.ErrInvalidToken)
	}
	return &auth.TokenInfo{
		Scopes: claims.scopes(), Expiration: claims.ExpiresAt.Time, UserID: claims.Issuer + "#" + claims.Subject,
	}, nil
}

func (i *issuer) audiences() []string {
	var out []string
	for _, a := range []string{i.conf.Audience, i.conf.Resource} {
		if a != "" {
			out = append(out, a)
		}
	}
	return out
}

type tokenClaims struct {
	jwt.RegisteredClaims
	Scope string          `json:"scope"` // RFC 9068: separated by spaces
	SCP   json.RawMessage `json:"scp"`   // elsewhere: a list, or the same
}

func (c tokenClaims) scopes() []string {
	out := strings.Fields(c.Scope)
	var many []string
	var one string
	switch {
	case json.Unmarshal(c.SCP, &many) == nil:
		out = append(out, many...)
	case json.Unmarshal(c.SCP, &one) == nil:
		out = append(out, strings.Fields(one)...)
	}
	return out
}

// keyfunc returns the issuer's keys. A failure is remembered for a little
// while: tokens anybody can send must not make us knock on the issuer's door
// each time.
func (i *issuer) keyfunc(ctx context.Context) (keyfunc.Keyfunc, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.keys != nil {
		return i.keys, nil
	}
	if i.why != nil && i.now().Sub(i.failed) < retryIssuer {
		return nil, i.why
	}
	keys, err := i.fetchKeys(ctx)
	if err != nil {
		i.failed, i.why = i.now(), err
		return nil, err
	}
	i.keys, i.why = keys, nil
	return keys, nil
}

func (i *issuer) fetchKeys(ctx context.Context) (keyfunc.Keyfunc, error) {
	where := i.conf.JWKSURL
	if where == "" {
		var err error
		if where, err = i.discover(ctx); err != nil {
			return nil, err
		}
	}
	strict := false // an issuer that does not answer is an error at once
	keys, err := keyfunc.NewDefaultOverrideCtx(i.life, []string{where}, keyfunc.Override{
		Client: i.client, HTTPTimeout: issuerTime, NoErrorReturnFirstHTTPReq: &strict,
		// Keys are looked for again when a token names one that is not known,
		// but not for each such token, and nobody waits in line for it.
		RateLimitWaitMax: 10 * time.Millisecond,
		RefreshErrorHandlerFunc: func(u string) func(context.Context, error) {
			return func(ctx context.Context, err error) {
				i.audit.LogAttrs(ctx, slog.LevelError, LogError, slog.String("tool", "http"), slog.String("error", fmt.Sprintf("refresh keys from %s: %v", u, err)))
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("fetch keys of %s from %s: %w", i.conf.Issuer, where, err)
	}
	return keys, nil
}

// discover finds the address of the issuer's keys: RFC 8414 first, then OpenID.
func (i *issuer) discover(ctx context.Context) (string, error) {
	base, err := url.Parse(i.conf.Issuer)
	if err != nil {
		return "", fmt.Errorf("find keys of %s: %w", i.conf.Issuer, err)
	}
	path := strings.TrimSuffix(base.Path, "/")
	var errs []error
	for _, p := range []string{"/.well-known/oauth-authorization-server" + path, path + "/.well-known/openid-configuration"} {
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

func (i *issuer) readMetadata(ctx context.Context, from string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return "", err
	}
	res, err := i.client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s", from, res.Status)
	}
	var meta struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxMetadata)).Decode(&meta); err != nil {
		return "", fmt.Errorf("%s: %w", from, err)
	}
	if meta.Issuer != i.conf.Issuer {
		return "", fmt.Errorf("%s is about the issuer %q, not %q", from, clip(meta.Issuer, 100), i.conf.Issuer)
	}
	if err := secureURL(meta.Keys); err != nil {
		return "", fmt.Errorf("%s: jwks_uri: %w", from, err)
	}
	return meta.Keys, nil
}

// loopbackHost reports whether a host's name or address is this machine's own.
func loopbackHost(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback()
}
