package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

// keyDoc is a file in <runs>/.keys: which run a key belongs to.
type keyDoc struct {
	V     int       `json:"v"`
	Key   string    `json:"key"`
	RunID string    `json:"run_id"`
	Hash  string    `json:"request_sha256"`
	At    time.Time `json:"at"`
}

// startOnce starts a run for a key, or returns the run that has it. The key's
// file is written before the run exists, so that a crash between the two can
// only leave a key whose run was never made, and that one is made then.
func (m *Manager) startOnce(ctx context.Context, req Request) (Record, error) {
	path := m.keyFile(req.IdempotencyKey)
	if err := m.opt.Disk.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return Record{}, fmt.Errorf("start run: %w", err)
	}
	unlock, err := m.opt.Disk.Lock(ctx, strings.TrimSuffix(path, ".json")+".lock")
	if err != nil {
		return Record{}, fmt.Errorf("start run: lock idempotency key: %w", err)
	}
	defer unlock()

	hash := requestHash(req)
	doc, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		doc = keyDoc{V: formatVersion, Key: req.IdempotencyKey, RunID: newID(), Hash: hash, At: m.opt.Now().UTC()}
		out, err := encode(doc)
		if err != nil {
			return Record{}, fmt.Errorf("start run: %w", err)
		}
		if err := m.opt.Disk.WriteFile(path, out, 0o600); err != nil {
			return Record{}, fmt.Errorf("start run: write idempotency key: %w", err)
		}
		return m.begin(ctx, req, doc.RunID)
	}
	if err != nil {
		return Record{}, fmt.Errorf("start run: %w", err)
	}
	if doc.Hash != hash {
		return Record{}, fmt.Errorf("start run: %w: it started %s; use a new key for a new task", ErrKeyReused, doc.RunID)
	}
	if r, err := m.Get(doc.RunID); err == nil || !errors.Is(err, ErrNotFound) {
		return r, err
	}
	return m.begin(ctx, req, doc.RunID)
}

// ByKey is the run that an idempotency key started here. The error wraps ErrNotFound
// where there is none.
func (m *Manager) ByKey(key string) (Record, error) {
	doc, err := readKey(m.keyFile(key))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, fmt.Errorf("find the run of key %q: %w", key, ErrNotFound)
	}
	if err != nil {
		return Record{}, err
	}
	return m.Get(doc.RunID)
}

// keyFile is where it stands which run a key belongs to.
func (m *Manager) keyFile(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(m.opt.Dir, ".keys", hex.EncodeToString(sum[:16])+".json")
}

func readKey(path string) (keyDoc, error) {
	data, err := readFile(path)
	if err != nil {
		return keyDoc{}, fmt.Errorf("read idempotency key: %w", err)
	}
	var doc keyDoc
	if err := json.Unmarshal(data, &doc); err != nil {
		return keyDoc{}, fmt.Errorf("idempotency key file %s is not valid JSON (%w): remove it to use the key again", path, err)
	}
	return doc, nil
}

// requestHash tells a repeated request from another one with the same key.
func requestHash(req Request) string {
	req.Env, req.IdempotencyKey, req.Origin = nil, "", ""
	data, _ := json.Marshal(req) // strings, numbers and bools: cannot fail
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
