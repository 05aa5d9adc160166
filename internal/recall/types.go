// Package recall owns the search index: one SQLite FTS5 database in the cache
// directory. What is in it is derived, from the markdown of the memory
// directories and, by package learn, from the event logs; it may be deleted at
// any time.
//
// Files it may write: Options.IndexFile and <IndexFile>-journal (through SQLite,
// which no other package uses), <IndexFile>.new, which is built aside and
// renamed, and <IndexFile>.lock. It never writes a memory directory.
//
// Lock: <IndexFile>.lock while it writes, recovers or replaces the index;
// reading takes none beyond SQLite's own.
//
// # How the index is kept true to files
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
// then found by the first Search of a process, by Refresh, and in a process
// that lives longer by a look at all of them in the background, two seconds
// later or, where a look takes over 0.1 s, after twenty times as long as it
// takes. What is known of the files stays in the database until a look needs
// it, so that opening a large index costs what opening a small one does.
//
// # How it survives
//
// A writer holds the lock for the whole of its transaction, which SQLite's
// rollback journal makes all or nothing: after a kill -9 the next process takes
// the lock, lets SQLite roll back, and goes on. Connections that only read are
// opened read-only. They never roll back and never remove a journal, because a
// journal is found by its name, and a reader that still has a replaced index
// open would take the new one's journal for its own. Whoever replaces the index
// therefore removes the old one before its journal, under the lock: at no
// moment does a journal lie beside a database that it is not of.
package recall

import (
	"context"
	"time"

	"reprise/internal/fact"
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
	// MemoryDir is the global memory; an index belongs to one.
	MemoryDir string
	// Sources are all other places with files: each project's memory and
	// entries, and entries of the global scope (Project empty, Dir empty).
	// The list must be complete: what was indexed of a source that is not in it
	// any more is removed by Refresh and Rebuild.
	Sources []Source
	Now     func() time.Time // nil = time.Now
	// Skip says that a file of a memory directory has nothing to find in it, by
	// its name (core.md, blocks/a.md) and text; nil = none is left out.
	Skip func(name string, data []byte) bool
	// Facts finds what a text of a file states; nil = nothing. Entries and
	// derived documents bring their own.
	Facts func(title, text string) []fact.Fact
	// Derive makes all derived documents, by Update, in an index that has none or not
	// all of them yet: after Rebuild, and before Recall where the index had to be built.
	Derive func(context.Context, *Index) error
	// NoBuild lets an index that is absent or of no use be an error,
	// ErrNotBuilt, instead of building it: for programs with a deadline.
	NoBuild bool
	// Embedder makes vectors of questions; nil = by words only. Documents get
	// theirs from EmbedMissing. When it fails, the answer is by words, and
	// EmbedFailed is told, if it is set.
	Embedder    Embedder
	EmbedFailed func(error)
}

// Source is a place with files that are indexed.
type Source struct {
	Project string // empty = global
	Dir     string // a memory directory: core.md, index.md, blocks/; empty = none
	Entries []EntryFile
	// Come are files of entries that may come and go while the index is open, such
	// as those of agents; it is asked at each look at the source. nil = there are
	// none.
	Come func() []EntryFile
}

// EntryFile is a file of entries, each of which becomes a document.
type EntryFile struct {
	Name  string // what it is called in Doc.Source, such as "learnings.md"
	Path  string
	Class Class // of its documents that have none
	// Parse returns the entries. A document without an ID gets one from its
	// title and text; scope and project are the source's where they are empty,
	// Group and Ord are its place among the others. Source may be the number of
	// the entry's line; the file's name is put before it.
	Parse func(data []byte) ([]Doc, error)
}

// Query is free text; no character in it has a meaning of its own.
type Query struct {
	Text      string
	Max       int // hits; 0 = DefaultMax, at most MaxHits
	MaxTokens int // tokens of the whole answer; 0 = DefaultMaxTokens
	Reader        // who searches
	// Classes are those that are searched; nil = all.
	Classes []Class
	// Keep leaves out what it is false for; nil = nothing.
	Keep func(*Doc) bool
}

// Hit is one thing that was found. Score is higher for better, comparable only
// within one answer.
type Hit struct {
	ID      string  `json:"id"`
	Class   Class   `json:"class"`
	Project string  `json:"project,omitempty"` // empty = global
	File    string  `json:"file,omitempty"`    // relative to its memory, with slashes; empty = worked out from events
	Heading string  `json:"heading"`           // path of headings, " > " between them, or a title
	Snippet string  `json:"snippet"`
	Score   float64 `json:"score"`
	Line    int     `json:"line,omitempty"` // first line of the section, from 1
	Date    string  `json:"date,omitempty"` // 2026-11-28: when it became known
}

// Stats describes the index.
type Stats struct {
	Files    int           `json:"files"`
	Sections int           `json:"sections"` // documents made from files
	Derived  int           `json:"derived"`  // documents made from events
	Bytes    int64         `json:"bytes"`    // of the index file
	Took     time.Duration `json:"took_ns"`
	InMemory bool          `json:"in_memory,omitempty"` // the cache directory could not be written
	Version  int           `json:"version"`
	Skipped  []string      `json:"skipped,omitempty"` // files that could not be indexed, and why
}
