package memory

import (
	"context"
	"errors"
	"io"
)

var errTODO = errors.New("memory: not built yet")

// Store reads and writes one memory directory.
type Store struct{ o Options }

// New returns a Store; it touches nothing.
func New(o Options) *Store { return &Store{o: o} }

// Dir is the memory directory.
func (s *Store) Dir() string { return s.o.Dir }

// Ensure makes what is missing: directory, core.md, index.md, blocks/, repository.
func (s *Store) Ensure(ctx context.Context) error { return errTODO }

// Read returns lines offset+1… of a file, at most limit.
func (s *Store) Read(ctx context.Context, name string, offset, limit int) (Doc, bool, error) {
	return Doc{}, false, errTODO
}

// List returns the blocks by name.
func (s *Store) List(ctx context.Context) ([]BlockInfo, error) { return nil, errTODO }

// Create makes a block.
func (s *Store) Create(ctx context.Context, b CreateBlock) (Written, error) {
	return Written{}, errTODO
}

// Update changes a block.
func (s *Store) Update(ctx context.Context, b UpdateBlock) (Written, error) {
	return Written{}, errTODO
}

// AppendEpisode adds an entry to a monthly log.
func (s *Store) AppendEpisode(ctx context.Context, e Episode) (Written, error) {
	return Written{}, errTODO
}

// AppendFile adds text to a file of the memory directory.
func (s *Store) AppendFile(ctx context.Context, path, text string) (int, error) { return 0, errTODO }

// Check reports budgets and faults.
func (s *Store) Check(ctx context.Context) (Report, error) { return Report{}, errTODO }

// Sync commits and pushes.
func (s *Store) Sync(ctx context.Context, o SyncOptions) (SyncResult, error) {
	return SyncResult{}, errTODO
}

// PackSkill writes the skill zip. flavour is "reprise" or "filesystem".
func PackSkill(w io.Writer, flavour, memoryDir string) error { return errTODO }

// PackSkill writes the skill zip for this directory.
func (s *Store) PackSkill(w io.Writer, flavour string) error {
	return PackSkill(w, flavour, s.o.Dir)
}
