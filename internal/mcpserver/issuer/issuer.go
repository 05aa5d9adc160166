// Package issuer checks the tokens of an OAuth 2.1 authorization server, as a resource
// server does (RFC 9068, RFC 8725): signature, issuer, audience, time. Its keys are found
// by its metadata (RFC 8414, OpenID Connect Discovery) and asked for again in time.
//
// It owns no files and writes none. A lock over the keys in memory is its own.
package issuer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/modelcontextprotocol/go-sdk/auth"

	"reprise/internal/clip"
	"reprise/internal/config"
)

const (
	// ClockSkew is how far the clocks of the issuer and of this machine may be apart.
	ClockSkew = 30 * time.Second
	// MaxToken is how many bytes a token may have.
	MaxToken = 16 << 10

	issuerTime = 10 * time.Second
)

// ErrNoKeys is what a client is told while the issuer's keys cannot be had; who was given
// to New hears the reason.
var ErrNoKeys = errors.New("the keys of the token's issuer cannot be had at the moment: try again later")

// signatures are the algorithms taken: public key ones only. With a shared
// secret whoever can check a token could make one, and "none" is no signature.
func signatures() []string {
	return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
}

// Issuer checks the tokens of the configured authorization server.
type Issuer struct {
	conf    config.OAuth
	trouble func(error)
	now     func() time.Time
	client  *http.Client
	keys    *keySet
}

// New returns nil where the settings name none. The error is about the settings; nothing
// is fetched. trouble hears why keys cannot be had, which clients are not told.
func New(conf config.OAuth, now func() time.Time, trouble func(error)) (*Issuer, error) {
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
	i := &Issuer{conf: conf, now: now, trouble: trouble, client: issuerClient()}
	i.keys = &keySet{fetch: i.fetchKeys, now: now, trouble: trouble}
	return i, nil
}

// secureURL refuses an issuer that could be played by whoever is on the way.
func secureURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return fmt.Errorf("%q is not a URL: give one such as https://login.example.com", clip.Bytes(s, 100))
	}
	if u.Scheme == "https" || u.Scheme == "http" && Loopback(u.Hostname()) {
		return nil
	}
	return fmt.Errorf("%q must begin with https:// (http is for loopback only)", clip.Bytes(s, 100))
}

// Verify checks a token of the issuer: signature, issuer, audience, time, and
// that it is an access token of somebody who may come in.
func (i *Issuer) Verify(ctx context.Context, token string) (*auth.TokenInfo, error) {
	if len(token) > MaxToken {
		return nil, fmt.Errorf("%w: too long", auth.ErrInvalidToken)
	}
	options := []jwt.ParserOption{
		jwt.WithValidMethods(signatures()), jwt.WithIssuer(i.conf.Issuer), jwt.WithExpirationRequired(),
		jwt.WithLeeway(ClockSkew), jwt.WithTimeFunc(i.now), jwt.WithAudience(i.audiences()...),
	}
	var claims tokenClaims
	if _, err := jwt.ParseWithClaims(token, &claims, i.key(ctx), options...); err != nil {
		if errors.Is(err, ErrNoKeys) {
			return nil, ErrNoKeys
		}
		// The library's text names the failed check and nothing secret.
		return nil, fmt.Errorf("%w: %s%s", auth.ErrInvalidToken, clip.Bytes(err.Error(), 200), i.expected(err, &claims))
	}
	// RFC 9449, 7.1, and RFC 8705, 3: who stole such a token has not got the key that it is
	// bound to, and whoever takes it without that proof lets him in.
	if cnf := string(claims.Confirm); cnf != "" && cnf != "null" {
		return nil, fmt.Errorf("%w: it is bound to a key of its client's (cnf), and this server takes bearer tokens only", auth.ErrInvalidToken)
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
func (i *Issuer) key(ctx context.Context) jwt.Keyfunc {
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
			i.trouble(err)
			return nil, ErrNoKeys
		}
		return keys.Keyfunc(t)
	}
}

// expected says what a refused token would have to say, and which setting that is. Whoever
// hears it has a token that the issuer signed: claims are looked at after the signature. What
// is expected stands in the server's public metadata, and nothing of the token is repeated.
func (i *Issuer) expected(err error, claims *tokenClaims) string {
	missing := errors.Is(err, jwt.ErrTokenRequiredClaimMissing)
	var out string
	if errors.Is(err, jwt.ErrTokenInvalidAudience) || missing && strings.Join(claims.Audience, "") == "" {
		out += fmt.Sprintf("; its aud must have %s: have the provider issue tokens for that, or give what it puts there as http.oauth.audience", quoted(i.audiences(), " or "))
	}
	if errors.Is(err, jwt.ErrTokenInvalidIssuer) || missing && claims.Issuer == "" {
		out += fmt.Sprintf("; its iss must be %s, to the letter: that is http.oauth.issuer", quoted([]string{i.conf.Issuer}, ""))
	}
	return out
}

// quoted is a list of settings for an error.
func quoted(list []string, between string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strconv.Quote(clip.Bytes(s, 200))
	}
	return strings.Join(out, between)
}

func (i *Issuer) audiences() []string {
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

	Confirm json.RawMessage `json:"cnf"` // RFC 7800: whose token it is alone
}

// UnmarshalJSON implements json.Unmarshaler. A time is a number (RFC 7519, 2): the library
// takes a text with one in it, too, which another reader of the same token would refuse.
func (c *tokenClaims) UnmarshalJSON(data []byte) error {
	var times struct {
		Expires   numeric `json:"exp"`
		NotBefore numeric `json:"nbf"`
		Issued    numeric `json:"iat"`
	}
	type plain tokenClaims
	return errors.Join(json.Unmarshal(data, &times), json.Unmarshal(data, (*plain)(c)))
}

// numeric is a number that nobody looks at; a text is an error.
type numeric struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*numeric) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return errors.New("a time in it is a text, and not a number")
	}
	return nil
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

// Loopback reports whether a host's name or address is this machine's own.
func Loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback()
}
