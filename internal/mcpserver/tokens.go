package mcpserver

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/internal/durable"
)

// tokenPrefix marks our tokens, so that they can be told from an issuer's and
// found by scanners for leaked secrets.
const tokenPrefix = "rpr_"

// tokenFormat is the newest version of the file: 2 holds tokens that are for less
// than everything, which a program that knows 1 only would take for more.
const tokenFormat = 2

// maxTokenFile bounds the token file: thousands of tokens.
const maxTokenFile = 1 << 20

// Errors about tokens.
var (
	ErrTokenExists   = errors.New("a token of that name exists")
	ErrTokenNotFound = errors.New("no token of that name")
	ErrTokenWords    = errors.New("no such token can be made") // what was asked for is wrong
)

// Token is what is kept of an access token: not the token.
type Token struct {
	Name    string     `json:"name"`
	Hash    string     `json:"hash"` // "sha256:<hex>" of the token
	Created time.Time  `json:"created_at"`
	Scopes  []string   `json:"scopes,omitempty"`     // none: everything
	Expires *time.Time `json:"expires_at,omitempty"` // nil: when it is revoked
}

// Grants are the scopes that the token has.
func (t Token) Grants() []string {
	if len(t.Scopes) == 0 {
		return []string{Scope}
	}
	return t.Scopes
}

// bounded reports whether the token is for less than everything, always.
func (t Token) bounded() bool { return len(t.Scopes) > 0 || t.Expires != nil }

// NewToken says what a token is to be for.
type NewToken struct {
	Name   string
	Scopes []string      // of Scopes(); none means everything
	Life   time.Duration // 0 means until it is revoked
}

// TokenStore keeps the access tokens for HTTP in one file, mode 0600. Reading
// takes no lock: the file is replaced whole.
//
// A token is 256 random bits, so a plain hash protects it as well as a slow
// one would. When a token was last used is not kept: that would be a write for
// each request.
type TokenStore struct {
	Path string
	Now  func() time.Time
}

type tokenFile struct {
	V      int     `json:"v"`
	Tokens []Token `json:"tokens"`
}

var tokenName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`) })

func (s TokenStore) read() (tokenFile, error) {
	f, err := durable.Open(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return tokenFile{V: 1}, nil
	}
	if err != nil {
		return tokenFile{}, fmt.Errorf("read tokens: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxTokenFile+1))
	if err != nil {
		return tokenFile{}, fmt.Errorf("read tokens: %w", err)
	}
	if len(data) > maxTokenFile {
		return tokenFile{}, fmt.Errorf("read tokens: %s is over %d bytes: that cannot be right", s.Path, maxTokenFile)
	}
	var t tokenFile
	if err := json.Unmarshal(data, &t); err != nil {
		return tokenFile{}, fmt.Errorf("read tokens: %s is not valid: %w: repair it, or remove it and make new tokens", s.Path, err)
	}
	if t.V < 1 || t.V > tokenFormat {
		return tokenFile{}, fmt.Errorf("read tokens: %s has format version %d, this program knows %d: use a newer reprise", s.Path, t.V, tokenFormat)
	}
	return t, nil
}

// change rewrites the file under its lock.
func (s TokenStore) change(ctx context.Context, edit func(*tokenFile) error) error {
	if err := durable.MkdirAll(filepath.Dir(s.Path), 0o700); err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	unlock, err := durable.Lock(ctx, s.Path+".lock")
	if err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	defer unlock()
	t, err := s.read()
	if err != nil {
		return err
	}
	if err := edit(&t); err != nil {
		return err
	}
	t.V = 1
	if slices.ContainsFunc(t.Tokens, Token.bounded) {
		t.V = tokenFormat
	}
	data, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	if err := durable.WriteFile(s.Path, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	return nil
}

// Create makes a token and returns it. This is the only time it can be seen.
// The error wraps ErrTokenExists for a name that is taken.
func (s TokenStore) Create(ctx context.Context, n NewToken) (string, error) {
	name := n.Name
	if !tokenName().MatchString(name) {
		return "", fmt.Errorf("%w: %q is not a name: use letters, digits, '.', '_' and '-', at most 64", ErrTokenWords, shorten(name, 60))
	}
	made := Token{Name: name, Created: s.Now().UTC().Truncate(time.Second)}
	for _, scope := range n.Scopes {
		if !slices.Contains(Scopes(), scope) {
			return "", fmt.Errorf("%w: %s: %q is not a scope: use some of %s", ErrTokenWords, name, shorten(scope, 60), strings.Join(Scopes(), ", "))
		}
		if !slices.Contains(made.Scopes, scope) {
			made.Scopes = append(made.Scopes, scope)
		}
	}
	switch {
	case n.Life < 0:
		return "", fmt.Errorf("%w: %s would have expired before it is made: give a time from now on", ErrTokenWords, name)
	case n.Life > 0:
		end := s.Now().UTC().Add(n.Life).Truncate(time.Second)
		made.Expires = &end
	}
	var secret [32]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return "", fmt.Errorf("create token: %w", err)
	}
	token := tokenPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
	made.Hash = hashToken(token)
	err := s.change(ctx, func(t *tokenFile) error {
		if slices.ContainsFunc(t.Tokens, func(o Token) bool { return o.Name == name }) {
			return fmt.Errorf("create token %s: %w: revoke it first, or choose another name", name, ErrTokenExists)
		}
		t.Tokens = append(t.Tokens, made)
		return nil
	})
	if err != nil {
		return "", err
	}
	return token, nil
}

// List returns the tokens in the order they were made.
func (s TokenStore) List() ([]Token, error) {
	t, err := s.read()
	return t.Tokens, err
}

// Revoke removes a token; the next request with it is refused. The error wraps
// ErrTokenNotFound.
func (s TokenStore) Revoke(ctx context.Context, name string) error {
	return s.change(ctx, func(t *tokenFile) error {
		n := len(t.Tokens)
		t.Tokens = slices.DeleteFunc(t.Tokens, func(o Token) bool { return o.Name == name })
		if len(t.Tokens) == n {
			return fmt.Errorf("revoke token %q: %w: `reprise mcp token list` shows them", shorten(name, 60), ErrTokenNotFound)
		}
		return nil
	})
}

// Verify finds what is kept of a token; ok is false for one that is not known
// or has expired. Every token is compared, in constant time.
func (s TokenStore) Verify(token string) (found Token, ok bool, err error) {
	if !strings.HasPrefix(token, tokenPrefix) {
		return Token{}, false, nil
	}
	t, err := s.read()
	if err != nil {
		return Token{}, false, err
	}
	have := []byte(hashToken(token))
	for _, o := range t.Tokens {
		if subtle.ConstantTimeCompare(have, []byte(o.Hash)) == 1 {
			found, ok = o, true
		}
	}
	if ok && found.Expires != nil && !s.Now().Before(*found.Expires) {
		return Token{}, false, nil
	}
	return found, ok, nil
}

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return "sha256:" + hex.EncodeToString(sum[:])
}
