// Package recall owns the search index: one SQLite FTS5 database in the cache
// directory, derived from the memory directory's markdown and safe to delete.
//
// Files it may write: Options.IndexFile (through SQLite, which no other package
// uses), <IndexFile>.new, which is built aside and renamed, <IndexFile>.dirty,
// which marks a write that has not ended, and <IndexFile>.lock. It never writes
// the memory directory.
//
// Lock: <IndexFile>.lock while it builds or refreshes; searching takes none
// beyond SQLite's own.
//
// # How the index is kept true
//
// The content hash of a file decides whether its sections are made again. A
// file is not read to be hashed when its size, modification time, change time
// and inode are those that were seen when it was hashed, and both times lie at
// least two seconds before that: an edit in the same tick of the clock, or one
// that sets the modification time back, is still found (Windows has no change
// time here; `reprise index rebuild` hashes all).
//
// Looking at every file costs about 3 µs each. As long as that is quick, each
// search does it. In a large memory a search looks at the two directories'
// times, which change with every file that is made, removed or replaced, and
// at the files it was told of by Touch; files written in place by others are
// then found by a look at all of them in the background, two seconds later or,
// where a look takes over 0.1 s, after twenty times as long as it takes.
//
// # How it survives
//
// A write is announced by <IndexFile>.dirty and made under the lock, so that
// whoever finds the mark without anyone holding the lock knows that a writer
// died and builds the index anew. SQLite's journal is in memory: no file beside
// the database has a meaning that could be mixed up with another database when
// the index is replaced by a rename.
package recall

import "time"

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
	Now       func() time.Time // nil = time.Now
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
