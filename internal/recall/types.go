// Package recall owns the search index: one SQLite FTS5 database in the cache
// directory, derived from the memory directory's markdown and safe to delete.
//
// Files it may write: Options.IndexFile and its neighbours (-wal, -shm, .lock,
// and a .new that is built aside and renamed). It never writes the memory
// directory. It is the one package that uses SQLite, which writes its own file.
//
// Lock: <IndexFile>.lock while it builds or refreshes; searching takes none
// beyond SQLite's own.
package recall

import (
	"context"
	"errors"
	"time"
)

// Limits of a query and its answer.
const (
	DefaultMax       = 10   // hits when Query.Max is 0
	MaxHits          = 50   // most hits one query may have
	DefaultMaxTokens = 2000 // tokens of all hits together when Query.MaxTokens is 0
)

// Options of an Index.
type Options struct {
	IndexFile string // file of the database; empty = in memory
	MemoryDir string
}

// Query is free text; no character in it has a meaning of its own.
type Query struct {
	Text      string
	Max       int // hits; 0 = DefaultMax, at most MaxHits
	MaxTokens int // tokens of the whole answer; 0 = DefaultMaxTokens
}

// Hit is one section of a file. Score is higher for better, comparable only
// within one answer.
type Hit struct {
	File    string  `json:"file"`    // relative to the memory directory, with slashes
	Heading string  `json:"heading"` // path of headings, " > " between them; empty = before the first
	Snippet string  `json:"snippet"`
	Score   float64 `json:"score"`
	Line    int     `json:"line"` // first line of the section, from 1
}

// Stats describes the index.
type Stats struct {
	Files    int           `json:"files"`
	Sections int           `json:"sections"`
	Bytes    int64         `json:"bytes"` // of the index file
	Took     time.Duration `json:"took_ns"`
	InMemory bool          `json:"in_memory,omitempty"` // the cache directory could not be written
	Version  int           `json:"version"`
	Skipped  []string      `json:"skipped,omitempty"` // files that could not be indexed, and why
}

var errTODO = errors.New("recall: not built yet")

// Index is opened lazily, at the first search.
type Index struct{ o Options }

// Open returns an Index; it touches nothing.
func Open(o Options) *Index { return &Index{o: o} }

// Search answers a query from an index brought up to date first.
func (x *Index) Search(ctx context.Context, q Query) ([]Hit, error) { return nil, errTODO }

// Refresh brings the index up to date with the files.
func (x *Index) Refresh(ctx context.Context) error { return errTODO }

// Rebuild makes the index anew.
func (x *Index) Rebuild(ctx context.Context) (Stats, error) { return Stats{}, errTODO }

// Status describes the index without changing it.
func (x *Index) Status(ctx context.Context) (Stats, error) { return Stats{}, errTODO }

// Touch marks one file as changed, so that the next search reads it again.
func (x *Index) Touch(name string) {}

// Close frees the database.
func (x *Index) Close() error { return nil }
