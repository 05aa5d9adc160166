package learn

import (
	"context"

	"reprise/internal/recall"
)

// Tx is what organising needs of a transaction of the index; see [recall.Tx].
type Tx interface {
	Put(d recall.Doc) error
	Delete(id string) error
	Get(id string) (recall.Doc, bool, error)
	ByKey(key string) ([]recall.Doc, error)
	Load(bucket, key string) ([]byte, bool, error)
	Store(bucket, key string, value []byte) error
	Drop(bucket, key string) error
	EachKV(bucket, prefix string, fn func(key string, value []byte) bool) error
}

// Store is where derived documents stand. Update keeps all that fn did, or
// nothing; it may call fn again on a store that has lost everything.
type Store interface {
	Update(ctx context.Context, fn func(Tx) error) error
	View(ctx context.Context, fn func(Tx) error) error
}

// In is an index as a [Store].
func In(x *recall.Index) Store { return indexStore{x} }

type indexStore struct{ x *recall.Index }

func (s indexStore) Update(ctx context.Context, fn func(Tx) error) error {
	return s.x.Update(ctx, func(tx *recall.Tx) error { return fn(tx) })
}

func (s indexStore) View(ctx context.Context, fn func(Tx) error) error {
	return s.x.View(ctx, func(tx *recall.Tx) error { return fn(tx) })
}

// The buckets of the index's key-value store that organising keeps its own
// state in. Keys are joined by tabs; parts that are foreign are hashed.
const (
	bucketMeta   = "learn.meta"   // version, asof
	bucketCursor = "learn.cursor" // source → how far it was read
	bucketRecord = "learn.record" // session/hour → records
	bucketName   = "learn.name"   // session → its own id and client
	bucketIn     = "learn.in"     // source, session: which sessions a file holds
	bucketWork   = "learn.work"   // what has to be worked out again: s+session, t+group
	bucketDue    = "learn.due"    // day, session: when it has to be again by the calendar
	bucketMade   = "learn.made"   // s+session, t+group → what was made of it
	bucketRow    = "learn.row"    // kind, group, time|session|id → a session's part
	bucketOwner  = "learn.owner"  // hash of a document's id → s+session or t+group
	bucketHidden = "learn.hidden" // hash of an id, s+session or t+group: kept out because that was forgotten
	bucketStats  = "learn.stats"  // session → Stats
	bucketPolicy = "learn.policy" // in_force → the policies by scope
	bucketTold   = "learn.told"   // session that goes on → ids of what it has been told
	bucketLook   = "learn.look"   // session → how many records it had when it was put there: what was served may have been used
)

func buckets() []string {
	return []string{bucketMeta, bucketCursor, bucketRecord, bucketName, bucketIn, bucketWork, bucketDue, bucketMade, bucketRow, bucketOwner, bucketHidden, bucketStats, bucketPolicy, bucketLook, bucketTold}
}
