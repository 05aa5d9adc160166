package learn

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/internal/recall"
)

// fakeStore is an index in memory, with transactions that are kept whole or not
// at all.
type fakeStore struct {
	docs map[string]recall.Doc
	kv   map[string]map[string][]byte
	// failAt makes the operation of that number of the next transaction fail,
	// from 1; 0 = none.
	failAt int
	// writes counts the operations that changed something.
	writes int
}

func newFake() *fakeStore {
	return &fakeStore{docs: map[string]recall.Doc{}, kv: map[string]map[string][]byte{}}
}

var errFake = fmt.Errorf("the disk is full")

type fakeTx struct {
	s    *fakeStore
	undo []func()
	ops  int
}

func (s *fakeStore) Update(ctx context.Context, fn func(Tx) error) error {
	tx := &fakeTx{s: s}
	err := fn(tx)
	if err != nil {
		for _, u := range slices.Backward(tx.undo) {
			u()
		}
	}
	return err
}

func (s *fakeStore) View(ctx context.Context, fn func(Tx) error) error { return fn(&fakeTx{s: s}) }

func (tx *fakeTx) op() error {
	tx.ops++
	tx.s.writes++
	if tx.ops == tx.s.failAt {
		return errFake
	}
	return nil
}

func (tx *fakeTx) Put(d recall.Doc) error {
	old, had := tx.s.docs[d.ID]
	tx.undo = append(tx.undo, func() { restore(tx.s.docs, d.ID, old, had) })
	d.Keys = slices.Compact(slices.Sorted(slices.Values(d.Keys))) // a set, as in the index
	tx.s.docs[d.ID] = d
	return tx.op()
}

func (tx *fakeTx) Delete(id string) error {
	old, had := tx.s.docs[id]
	tx.undo = append(tx.undo, func() { restore(tx.s.docs, id, old, had) })
	delete(tx.s.docs, id)
	return tx.op()
}

func restore[V any](m map[string]V, k string, v V, had bool) {
	if had {
		m[k] = v
	} else {
		delete(m, k)
	}
}

func (tx *fakeTx) Get(id string) (recall.Doc, bool, error) {
	d, ok := tx.s.docs[id]
	return d, ok, nil
}

func (tx *fakeTx) ByKey(key string) ([]recall.Doc, error) {
	var out []recall.Doc
	for _, d := range tx.s.docs {
		if slices.Contains(d.Keys, key) {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b recall.Doc) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}

func (tx *fakeTx) bucket(name string) map[string][]byte {
	if tx.s.kv[name] == nil {
		tx.s.kv[name] = map[string][]byte{}
	}
	return tx.s.kv[name]
}

func (tx *fakeTx) Load(bucket, key string) ([]byte, bool, error) {
	v, ok := tx.bucket(bucket)[key]
	return bytes.Clone(v), ok, nil
}

func (tx *fakeTx) Store(bucket, key string, value []byte) error {
	b := tx.bucket(bucket)
	old, had := b[key]
	tx.undo = append(tx.undo, func() { restore(b, key, old, had) })
	b[key] = bytes.Clone(value)
	return tx.op()
}

func (tx *fakeTx) Drop(bucket, key string) error {
	b := tx.bucket(bucket)
	old, had := b[key]
	tx.undo = append(tx.undo, func() { restore(b, key, old, had) })
	delete(b, key)
	return tx.op()
}

func (tx *fakeTx) EachKV(bucket, prefix string, fn func(string, []byte) bool) error {
	b := tx.bucket(bucket)
	var keys []string
	for k := range b {
		if strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		if v, ok := b[k]; ok && !fn(k, bytes.Clone(v)) {
			return nil
		}
	}
	return nil
}

// dump is everything that can be served, byte for byte.
func (s *fakeStore) dump() string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(s.docs)) {
		line, err := json.Marshal(s.docs[id])
		if err != nil {
			panic(err)
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	for _, bucket := range []string{bucketStats, bucketRow, bucketDue, bucketPolicy, bucketTold} {
		for _, k := range slices.Sorted(maps.Keys(s.kv[bucket])) {
			fmt.Fprintf(&b, "%s %s %s\n", bucket, k, s.kv[bucket][k])
		}
	}
	return b.String()
}
