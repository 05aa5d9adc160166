package task

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"reprise/internal/durable"
)

// Keeps reports whether a file, named from the project's root and with slashes, is one
// that the list has or names: TODO.md and state.json, errors.json, the archive, the files
// of tasks and reviews that were filed, and what of a folder was archived. What an agent
// is still writing is none, nor is what a person put there.
func (b *Board) Keeps(name string) bool {
	below, ok := strings.CutPrefix(name, specsDir+"/")
	if !ok {
		return false
	}
	switch below {
	case todoFile, stateFile, errorsFile, path.Join(archiveDir, todoFile), path.Join(archiveDir, stateFile):
		return true
	}
	if slices.ContainsFunc(b.State.Reviews, func(r *Review) bool { return r.Report == below && r.Report != "" }) {
		return true
	}
	folder, rest, _ := strings.Cut(below, "/")
	if folder == archiveDir {
		folder, rest, _ = strings.Cut(rest, "/")
	}
	number, _, _ := strings.Cut(folder, "_")
	n, err := strconv.Atoi(number)
	if err != nil || rest == "" {
		return false
	}
	if t := b.State.Tasks[n]; t != nil {
		return t.Folder() == folder && (below == path.Join(folder, stateFile) || t.names(below))
	}
	shelf, err := b.Shelf()
	if err != nil {
		return false
	}
	t := shelf.State.Tasks[n]
	return t != nil && t.Folder() == folder // it was moved as a whole
}

// names reports whether a file below specs/ is one of a task's.
func (t *Task) names(below string) bool {
	return slices.Contains(t.Research, below) || slices.Contains(t.Plans, below) || t.Summary == below
}

// Shelf is the archive, to be looked at as the list is.
func (b *Board) Shelf() (*Board, error) {
	if b.shelf != nil {
		return b.shelf, nil
	}
	todo, err := b.Read(path.Join(archiveDir, todoFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	state, err := b.Read(path.Join(archiveDir, stateFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	s := &Board{now: b.now, dir: b.dir, dirs: b.dirs, writes: b.writes, below: archiveDir}
	if s.Todo, err = ParseTodo(todo); err != nil {
		return nil, err
	}
	if s.State, err = ParseState(state); err != nil {
		return nil, err
	}
	b.shelf = s
	return s, nil
}

// Archived lists the tasks of the archive, of some statuses or all.
func (b *Board) Archived(want map[Status]bool) ([]Named, error) {
	shelf, err := b.Shelf()
	if err != nil {
		return nil, fmt.Errorf("read specs/archive: %w", err)
	}
	var out []Named
	for _, n := range shelf.State.Numbers() {
		if t := shelf.State.Tasks[n]; len(want) == 0 || want[t.Status] {
			out = append(out, Named{Task: t, Archived: true})
		}
	}
	return out, nil
}

// Listed is the task of a number on the list, or else in the archive, with the board that
// has it. The error is that of [Board.Task].
func (b *Board) Listed(n int) (*Board, *Task, error) {
	t, err := b.Task(n)
	if errors.Is(err, ErrNoTask) {
		if shelf, serr := b.Shelf(); serr == nil && shelf.State.Tasks[n] != nil {
			return shelf, shelf.State.Tasks[n], nil
		}
	}
	return b, t, err
}

// missedFile has, beside [givenFile], the files outside specs/ that could not be committed
// when they were to be, a line each.
const missedFile = "uncommitted"

// missed is a file of the project that was to be committed, and what it held then: what
// was changed since is somebody else's to commit.
type missed struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Missed notes that files of the project, named from its root and with slashes, could not
// be committed. The caller holds [Store.CommitLock]. Those of the list need no note.
func (s *Store) Missed(ctx context.Context, names []string) error {
	var lines []byte
	for _, name := range names {
		sum, ok := s.sum(name)
		if !ok || strings.HasPrefix(name, specsDir+"/") {
			continue
		}
		line, err := json.Marshal(missed{name, sum})
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	if len(lines) == 0 {
		return nil
	}
	return s.o.Disk.Append(ctx, filepath.Join(s.dir, journalDir, missedFile), lines, 0o644)
}

// Unmissed are the files that [Store.Missed] noted and that are as they were then.
func (s *Store) Unmissed() (names []string, err error) {
	data, err := durable.Read(filepath.Join(s.dir, journalDir, missedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(data)) {
		var m missed
		if json.Unmarshal([]byte(line), &m) != nil || !filepath.IsLocal(filepath.FromSlash(m.Name)) {
			continue // cut short by a kill
		}
		if sum, ok := s.sum(m.Name); ok && sum == m.SHA256 && !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	return names, err
}

// Committed forgets what [Store.Missed] noted. The caller holds [Store.CommitLock].
func (s *Store) Committed() error {
	err := s.o.Disk.Remove(filepath.Join(s.dir, journalDir, missedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// sum is the hash of a file of the project that is short enough to be committed for an
// agent.
func (s *Store) sum(name string) (string, bool) {
	p := filepath.Join(filepath.Dir(s.dir), filepath.FromSlash(name))
	if fi, err := os.Lstat(p); err != nil || !fi.Mode().IsRegular() || fi.Size() > maxArtifact {
		return "", false
	}
	data, err := durable.Read(p)
	if err != nil {
		return "", false
	}
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:]), true
}
