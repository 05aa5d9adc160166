package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/modelcontextprotocol/go-sdk/auth"

	"reprise/internal/config"
)

const (
	clockSkew  = 30 * time.Second
	issuerTime = 10 * time.Second
	maxJWT     = 16 << 10 // bytes of a token
)

// signatures are the algorithms taken: public key ones only. With a shared
// secret whoever can check a token could make one, and "none" is no signature.
func signatures() []string {
	return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
}

// issuer checks the tokens of the configured authorization server.
type issuer struct {
	conf   config.OAuth
	audit  *slog.Logger
	now    func() time.Time
	client *http.Client
	keys   *keySet
}

// newIssuer returns nil where the settings name none. The error is about the
// settings; nothing is fetched.
func newIssuer(conf config.OAuth, now func() time.Time, log *slog.Logger) (*issuer, error) {
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
		return nil, errors.New("http.oauth: neither audience nor resource is set, so that a token for any service of the issuer would do: set http.public_url or http.oauth.resource to this server's address as clients see it")
	}
	i := &issuer{conf: conf, now: now, audit: log, client: issuerClient()}
	i.keys = &keySet{fetch: i.fetchKeys, now: now, trouble: i.complain}
	return i, nil
}

func (i *issuer) complain(err error) {
	i.audit.LogAttrs(context.Background(), slog.LevelError, LogError, slog.String("tool", "http"), slog.String("error", err.Error()))
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

// errNoKeys is what a client is told while the issuer's keys cannot be had; the
// log has the reason.
var errNoKeys = errors.New("the keys of the token's issuer cannot be had at the moment: try again later")

// verify checks a token of the issuer: signature, issuer, audience, time, and
// that it is an access token of somebody who may come in.
func (i *issuer) verify(ctx context.Context, token string) (*auth.TokenInfo, error) {
	if len(token) > maxJWT {
		return nil, fmt.Errorf("%w: too long", auth.ErrInvalidToken)
	}
	options := []jwt.ParserOption{
		jwt.WithValidMethods(signatures()), jwt.WithIssuer(i.conf.Issuer), jwt.WithExpirationRequired(),
		jwt.WithLeeway(clockSkew), jwt.WithTimeFunc(i.now), jwt.WithAudience(i.audiences()...),
	}
	var claims tokenClaims
	if _, err := jwt.ParseWithClaims(token, &claims, i.key(ctx), options...); err != nil {
		if errors.Is(err, errNoKeys) {
			return nil, errNoKeys
		}
		// The library's text names the failed check and nothing secret.
		return nil, fmt.Errorf("%w: %s", auth.ErrInvalidToken, clip(err.Error(), 200))
	}
	if claims.Subject == "" {
		return nil, fmt.Errorf("%w: it names no subject", auth.ErrInvalidToken)
	}
	if len(i.conf.Subjects) > 0 && !slices.Contains(i.conf.Subjects, claims.Subject) {
		return nil, fmt.Errorf("%w: its subject is not one of http.oauth.subjects", auth.ErrInvalidToken)
	}
	return &auth.TokenInfo{
		Scopes: claims.scopes(), Expiration: claims.ExpiresAt.Time, UserID: claims.Issuer + "#" + claims.Subject,
	}, nil
}

// key finds the key that a token names, and refuses the token where its header
// says that it is something else than an access token.
func (i *issuer) key(ctx context.Context) jwt.Keyfunc {
	return func(t *jwt.Token) (any, error) {
		// RFC 7515, 4.1.11: what must be understood and is not.
		if _, ok := t.Header["crit"]; ok {
			return nil, errors.New("its header has critical extensions, of which none is known here")
		}
		// RFC 8725, 3.11: tokens of other kinds by the same issuer say so.
		if typ, ok := t.Header["typ"]; ok {
			name, _ := typ.(string)
			switch strings.TrimPrefix(strings.ToLower(name), "application/") {
			case "jwt", "at+jwt":
			default:
				return nil, errors.New("it is not an access token, by its typ")
			}
		}
		keys, err := i.keys.of(ctx, kidOf(t))
		if err != nil {
			i.complain(err)
			return nil, errNoKeys
		}
		return keys.Keyfunc(t)
	}
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
	Scope json.RawMessage `json:"scope"` // RFC 9068: separated by spaces; some write a list
	SCP   json.RawMessage `json:"scp"`   // elsewhere: a list, or the same
}

func (c tokenClaims) scopes() []string {
	var out []string
	for _, raw := range []json.RawMessage{c.Scope, c.SCP} {
		var many []string
		var one string
		switch {
		case json.Unmarshal(raw, &many) == nil:
			out = append(out, many...)
		case json.Unmarshal(raw, &one) == nil:
			out = append(out, strings.Fields(one)...)
		}
	}
	return out
}

// loopbackHost reports whether a host's name or address is this machine's own.
func loopbackHost(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback()
}
