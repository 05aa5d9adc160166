// Package memory owns the memory directory: core.md, index.md and blocks/*.md,
// plain markdown that people and agents both edit.
//
// Files it may write: everything it makes is inside the memory directory —
// core.md, index.md, blocks/*.md, .gitignore, and whatever append_file names —
// always through durable.Dir, so no name can leave the directory. Through
// package git it also has the git program write the directory's .git.
//
// Lock: durable's change lock of the memory directory (.reprise-journal/lock)
// is the single writer lock. It is held from the read to the commit of every
// change, around append_file and around the local half of a sync; durable's
// lock of an appended file is taken inside it, never before it.
package memory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reprise/internal/durable"
	"reprise/internal/mdfile"
)

// Sizes and budgets. Token counts are the estimates of mdfile.Tokens.
const (
	CoreBudget      = 1000    // tokens of core.md, of which a session's start tells the first
	IndexBudget     = 800     // tokens of index.md, likewise
	MaxContent      = 1 << 20 // bytes of one block's content in one call
	MaxFile         = 8 << 20 // bytes of a file that is read whole
	MaxAppend       = 4 << 20 // bytes of one append
	MaxSummary      = 200     // runes of an index row's summary
	MaxName         = 80      // bytes of a block name without ".md"
	DefaultReadRows = 2000    // lines Read returns when limit is 0
)

// Errors that callers tell apart with errors.Is. StaleError also matches ErrStale.
var (
	ErrNotFound = errors.New("not found in memory")
	ErrExists   = errors.New("already exists with other content")
	ErrStale    = errors.New("changed since it was read")
	ErrOutside  = errors.New("restricted to the memory directory")
	ErrName     = errors.New("not a valid block name")
	ErrContent  = errors.New("content refused")
	ErrTooLarge = errors.New("too large")
	ErrFormat   = errors.New("front matter is not valid")
)

// StaleError says that if_hash named an older version of a block. Current is
// what is there now, so that the writer can merge and try again with its hash.
type StaleError struct {
	Name    string
	Have    string // hash of the file as it is now
	Want    string // hash that the caller gave
	Current Doc
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("update %s: it changed since you read it: it is now %s, you gave %s; nothing was written; read it again, merge, and retry with if_hash %s",
		e.Name, e.Have, e.Want, e.Have)
}

// Is makes errors.Is(err, ErrStale) true.
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// Doc is one memory file, or a range of its lines.
type Doc struct {
	Name    string    `json:"name"`              // core.md, index.md or the block's file name
	Scope   string    `json:"scope,omitempty"`   // project or global, where several were looked at
	Project string    `json:"project,omitempty"` // of the scope project
	Also    []string  `json:"also,omitempty"`    // other scopes that have a file of this name
	Content string    `json:"content"`
	Hash    string    `json:"hash"` // "sha256:<hex>" of the whole file, whatever range was asked for
	Updated time.Time `json:"updated"`
	Tokens  int       `json:"tokens"` // of the whole file
	Lines   int       `json:"lines"`  // of the whole file
	// Private is how many entries are left out, because they are of others alone.
	Private int `json:"private,omitempty"`
	// Damage are the places that are no text; what stands there is not shown.
	Damage []mdfile.Damage `json:"damage,omitempty"`
}

// BlockInfo is one block as List shows it. Summary is its index row's, empty
// when the index has none.
type BlockInfo struct {
	Name    string `json:"name"`
	Scope   string `json:"scope,omitempty"` // as in Doc
	Project string `json:"project,omitempty"`
	// Shadowed says that a narrower scope has a file of this name.
	Shadowed bool      `json:"shadowed,omitempty"`
	Summary  string    `json:"summary"`
	Updated  time.Time `json:"updated"`
	Tokens   int       `json:"tokens"`
}

// CreateBlock asks for a new block. Name is with or without ".md". Content may
// bring its own front matter; what it leaves out is generated.
type CreateBlock struct {
	Name    string
	Content string
	Summary string // index row; empty = taken from the first heading or sentence
	Tags    []string
}

// UpdateBlock changes a block, core.md or index.md. Either Content replaces the
// whole, or OldText (which must occur exactly once) becomes NewText. Content
// without front matter keeps the file's front matter.
type UpdateBlock struct {
	Name    string
	Content string
	Summary string // empty = the index row's summary stays
	IfHash  string // empty = no check
	OldText string
	NewText string
}

// Written is the answer to a write that is on disk.
type Written struct {
	Path         string   `json:"path"` // absolute
	Name         string   `json:"name"`
	Hash         string   `json:"hash"`
	Warnings     []string `json:"warnings,omitempty"`
	IndexUpdated bool     `json:"index_updated"`
	Created      bool     `json:"created"`
	Unchanged    bool     `json:"unchanged,omitempty"` // what was asked for was already there
}

// Episode is one dated entry of a monthly log. A zero Date is now.
type Episode struct {
	Title string
	Entry string
	Date  time.Time
}

// Change is what a Recorder is told after a write is durable.
type Change struct {
	Op    string // create, update, append_episode, append_file, seed
	Name  string // file, relative to the memory directory with slashes
	Hash  string // "sha256:<hex>" after the write; empty for append_file
	Bytes int    // size of the file after the write, or bytes appended
}

// Recorder is told of each durable write, to make a memory.written event of it.
// Its error becomes a warning of the write: the memory itself is already safe.
type Recorder interface {
	MemoryWritten(ctx context.Context, c Change) error
}

// Options of a Store. Dir and Now are required.
type Options struct {
	Dir    string
	Now    func() time.Time
	Access Access // what the calling program may do; the zero value is everything
	// May says whether an entry with this access list is shown to who reads; nil =
	// all are. An entry that is not shown stays where it is when its file is changed.
	May        func(acl []string) bool
	Events     Recorder          // may be nil
	AfterWrite func(name string) // may be nil; name is relative, with slashes
	Disk       durable.Disk      // zero = the real disk; tests put faults in
	Git        GitOptions
	// Part is a memory that need not be whole: a project's, which has what people
	// put there.
	Part bool
}

// GitOptions say how the memory repository is handled.
type GitOptions struct {
	Off     bool              // no repository, whatever is installed
	Program string            // git program; empty = "git" looked up in Vars["PATH"]
	Vars    map[string]string // environment to take PATH, HOME and the like from
}

// Level of a finding of Check.
type Level string

// Levels: an error is something wrong in a file, a warning is something to tidy.
const (
	LevelError   Level = "error"
	LevelWarning Level = "warning"
)

// Finding is one thing Check noticed.
type Finding struct {
	Level   Level  `json:"level"`
	Code    string `json:"code"` // stable, such as core.budget
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Problem string `json:"problem"`
	Remedy  string `json:"remedy"`
}

// Report is the state of the memory.
type Report struct {
	Dir         string    `json:"dir"`
	Scope       string    `json:"scope,omitempty"` // as in Doc
	Project     string    `json:"project,omitempty"`
	CoreTokens  int       `json:"core_tokens"`
	CoreBudget  int       `json:"core_budget"`
	IndexTokens int       `json:"index_tokens"`
	IndexBudget int       `json:"index_budget"`
	Blocks      int       `json:"blocks"`
	Findings    []Finding `json:"findings"`
}

// OK says that there is nothing of level error.
func (r Report) OK() bool {
	for _, f := range r.Findings {
		if f.Level == LevelError {
			return false
		}
	}
	return true
}

// SyncOptions of Sync.
type SyncOptions struct {
	Message string // commit message; empty = a dated one
	NoPush  bool   // commit only
	DryRun  bool   // say what would be done
}

// SyncResult says what Sync did.
type SyncResult struct {
	Committed bool     `json:"committed"`
	Commit    string   `json:"commit,omitempty"`
	Files     []string `json:"files,omitempty"` // changed paths of the commit
	Remote    string   `json:"remote,omitempty"`
	Branch    string   `json:"branch,omitempty"`
	Merged    bool     `json:"merged,omitempty"` // the remote's work was merged in
	Pushed    bool     `json:"pushed"`
	Notes     []string `json:"notes,omitempty"`
}
