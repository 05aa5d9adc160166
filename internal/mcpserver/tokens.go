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
	"os"
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

// maxTokenFile bounds the token file: thousands of tokens.
const maxTokenFile = 1 << 20

// Errors about tokens.
var (
	ErrTokenExists   = errors.New("a token of that name exists")
	ErrTokenNotFound = errors.New("no token of that name")
)

// Token is what is kept of an access token: not the token.
type Token struct {
	Name    string    `json:"name"`
	Hash    string    `json:"hash"` // "sha256:<hex>" of the token
	Created time.Time `json:"created_at"`
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
	f, err := os.Open(s.Path)
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
	if t.V != 1 {
		return tokenFile{}, fmt.Errorf("read tokens: %s has format version %d, this program knows 1: use a newer reprise", s.Path, t.V)
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
func (s TokenStore) Create(ctx context.Context, name string) (string, error) {
	if !tokenName().MatchString(name) {
		return "", fmt.Errorf("create token: %q is not a name: use letters, digits, '.', '_' and '-', at most 64", clip(name, 60))
	}
	var secret [32]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return "", fmt.Errorf("create token: %w", err)
	}
	token := tokenPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
	err := s.change(ctx, func(t *tokenFile) error {
		if slices.ContainsFunc(t.Tokens, func(o Token) bool { return o.Name == name }) {
			return fmt.Errorf("create token %s: %w: revoke it first, or choose another name", name, ErrTokenExists)
		}
		t.Tokens = append(t.Tokens, Token{Name: name, Hash: hashToken(token), Created: s.Now().UTC().Truncate(time.Second)})
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
			return fmt.Errorf("revoke token %q: %w: `reprise mcp token list` shows them", clip(name, 60), ErrTokenNotFound)
		}
		return nil
	})
}

// Verify finds the name of a token. Every token is compared, in constant time.
func (s TokenStore) Verify(token string) (name string, ok bool, err error) {
	if !strings.HasPrefix(token, tokenPrefix) {
		return "", false, nil
	}
	t, err := s.read()
	if err != nil {
		return "", false, err
	}
	have := []byte(hashToken(token))
	for _, o := range t.Tokens {
		if subtle.ConstantTimeCompare(have, []byte(o.Hash)) == 1 {
			name, ok = o.Name, true
		}
	}
	return name, ok, nil
}

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return "sha256:" + hex.EncodeToString(sum[:])
}
