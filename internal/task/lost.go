package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
)

// ErrLost says that the list, or what it says of tasks, is gone from the checkout and that
// git has it: numbers would be given again, and the list be committed over.
var ErrLost = errors.New("it is not there, and the last commit has it")

// lastCommitted is a file below specs/ as the last commit has it, nil where it has none.
func (s *Store) lastCommitted(ctx context.Context, name string) []byte {
	if s.o.Committed == nil {
		return nil
	}
	for data := range s.o.Committed(ctx, path.Join(specsDir, name)) {
		return data
	}
	return nil
}

// blank reports whether a file is not there, or has nothing in it, as a full disk or a
// killed editor leaves it.
func blank(data []byte) bool {
	return len(bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))) == 0
}

// lost refuses to take a list for empty that is only gone. anew: what is left of it may
// do, for TODO.md tells of most.
func (s *Store) lost(ctx context.Context, todo, state []byte, anew bool) error {
	if state != nil || !blank(todo) && anew || blank(s.lastCommitted(ctx, stateFile)) {
		return nil
	}
	if blank(todo) {
		return fmt.Errorf("%s: %w: `git checkout HEAD -- specs` brings it back; or commit that it is removed, to begin anew", s.dir, ErrLost)
	}
	return fmt.Errorf("%s: %w: `git checkout HEAD -- specs/%s` brings it back, `reprise task check --fix` makes it anew from TODO.md", filepath.Join(s.dir, stateFile), ErrLost, stateFile)
}

// lostTasks refuses to go on with a TODO.md that has none of the tasks that state.json
// knows, while the last commit has them: nobody takes them all out on purpose, and what
// they say stands nowhere else. One that is gone or empty is git's to bring back, with what
// else stood in it; of another one, anew, what is missing may be written back.
func (s *Store) lostTasks(b *Board, todo []byte, anew bool) error {
	if b.known == 0 || len(b.missing) < b.known || b.versions == nil {
		return nil
	}
	gone := blank(todo)
	if !gone && (anew || b.known < 2 || openAt(b.Todo.file.Bytes()) > 0) { // a single one is cut out easily, and asked about
		return nil
	}
	has := false
	for data := range b.versions(todoFile) {
		last, err := ParseTodo(data)
		has = err == nil && slices.ContainsFunc(b.missing, func(n int) bool { return last.Find(n) != nil })
		break
	}
	if !has {
		return nil
	}
	file := filepath.Join(s.dir, todoFile)
	if gone {
		return fmt.Errorf("%s: %w: `git checkout HEAD -- specs/%s` brings it back; or commit it as it is, to go on without what the tasks say", file, ErrLost, todoFile)
	}
	return fmt.Errorf("%s: it has none of the %d tasks of state.json any more; what they say: %w: `git checkout HEAD -- specs/%s` brings the file back as it was, `reprise task check --fix` writes the tasks back into this one; or commit it as it is, if that is meant", file, b.known, ErrLost, todoFile)
}

// lostShelf refuses to begin the archive anew where it is only gone.
func (b *Board) lostShelf(todo, state []byte) error {
	if b.versions == nil {
		return nil
	}
	for name, data := range map[string][]byte{todoFile: todo, stateFile: state} {
		if !blank(data) {
			continue
		}
		name = path.Join(archiveDir, name)
		for last := range b.versions(name) {
			if !blank(last) {
				return fmt.Errorf("specs/%s: %w: `git checkout HEAD -- specs/%s` brings it back; or commit that it is removed, to begin another", name, ErrLost, name)
			}
			break
		}
	}
	return nil
}

// texts are what tasks that do not stand in TODO.md said there, by number, each as the
// latest commit has it that has the task.
func (b *Board) texts(numbers []int) map[int]string {
	out := map[int]string{}
	if b.versions == nil || len(numbers) == 0 {
		return out
	}
	for data := range b.versions(todoFile) {
		was, err := ParseTodo(data)
		if err != nil {
			continue
		}
		for _, n := range numbers {
			t, sec := b.State.Tasks[n], was.Find(n)
			if _, found := out[n]; !found && sec != nil && (sec.Title == t.Title || Slug(sec.Title) == t.Slug) {
				out[n] = was.Body(sec)
			}
		}
		if len(out) == len(numbers) {
			break
		}
	}
	return out
}
