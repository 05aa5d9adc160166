package task

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// Names below specs/archive/: what has ended, with its section of TODO.md and its
// entry of state.json. The folders of tasks move there.
const archiveDir = "archive"

// Archive takes tasks that have ended out of the list: their sections, as they
// stand, go to archive/TODO.md, what state.json knows of them to archive/state.json,
// and their folders below archive/. It returns their numbers. only, when it is not
// empty, names those to take.
func (b *Board) Archive(only ...int) ([]*Task, error) {
	data, err := b.Read(path.Join(archiveDir, stateFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	old, err := b.Read(path.Join(archiveDir, todoFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := b.lostShelf(old, data); err != nil {
		return nil, err
	}
	kept, err := ParseState(data)
	if err != nil {
		return nil, fmt.Errorf("specs/%[1]s: %[2]w: mend it by hand, or `git checkout HEAD -- specs/%[1]s` brings back what the last commit has", path.Join(archiveDir, stateFile), err)
	}
	var gone []*Task
	want := only
	if len(want) == 0 {
		for _, n := range b.State.Numbers() {
			if b.State.Tasks[n].Status.Ended() {
				want = append(want, n)
			}
		}
	}
	var text bytes.Buffer
	for _, n := range want {
		t, err := b.Task(n)
		if err != nil {
			return nil, err
		}
		if !t.Status.Ended() {
			return nil, fmt.Errorf("task %d is %s: only what is completed or abandoned is archived", n, t.Status.Words())
		}
		if err := b.unarchived(t, kept); err != nil {
			return nil, err
		}
		if s := b.Todo.Find(n); s != nil {
			text.Write(bytes.TrimRight(b.Todo.Remove(s), "\r\n"))
			text.WriteString("\n\n")
		}
		if err := b.move(t); err != nil {
			return nil, err
		}
		kept.Tasks[n] = t
		delete(b.State.Tasks, n)
		b.changed(t, Change{Op: "archived", From: t.Status})
		gone = append(gone, t)
	}
	if len(gone) == 0 {
		return nil, nil
	}
	kept.Next = max(kept.Next, b.State.Next)
	if blank(old) {
		old = []byte("# Archive\n\n")
	}
	if !bytes.HasSuffix(old, []byte("\n\n")) {
		old = append(bytes.Clone(old), '\n')
	}
	b.Write(path.Join(archiveDir, todoFile), append(old, text.Bytes()...))
	state, err := kept.Bytes()
	if err != nil {
		return nil, err
	}
	b.Write(path.Join(archiveDir, stateFile), state)
	b.shelf = nil
	return gone, nil
}

// unarchived refuses a task whose number or folder the archive has already: it would
// write over what is kept there.
func (b *Board) unarchived(t *Task, kept *State) error {
	there := ""
	if old := kept.Tasks[t.Number]; old != nil {
		there = fmt.Sprintf("a task of that number, %q", old.Title)
	} else if names, err := b.walk(path.Join(archiveDir, t.Folder())); err != nil {
		return fmt.Errorf("archive task %d: %w", t.Number, err)
	} else if len(names) > 0 {
		there = path.Join(specsDir, archiveDir, t.Folder())
	}
	if there == "" {
		return nil
	}
	return fmt.Errorf("archive task %d: the archive has %s, which nothing is written over: give this one another number in TODO.md, or move what is there", t.Number, there)
}

// move puts a task's folder below archive/.
func (b *Board) move(t *Task) error {
	names, err := b.walk(t.Folder())
	if err != nil {
		return fmt.Errorf("archive task %d: %w", t.Number, err)
	}
	for _, name := range names {
		data, err := b.Read(name)
		if err != nil {
			return fmt.Errorf("archive task %d: %w", t.Number, err)
		}
		b.Write(path.Join(archiveDir, name), data)
		b.writes[name] = nil
	}
	for _, list := range [][]string{t.Research, t.Plans} {
		for i := range list {
			list[i] = path.Join(archiveDir, list[i])
		}
	}
	if t.Summary != "" {
		t.Summary = path.Join(archiveDir, t.Summary)
	}
	return nil
}

// walk are the files below a folder of specs/.
func (b *Board) walk(dir string) ([]string, error) {
	if b.dir == nil {
		return nil, nil
	}
	d, done, err := b.dir()
	if err != nil {
		return nil, err
	}
	defer done()
	list, err := d.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range list {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir():
			below, err := b.walk(name)
			if err != nil {
				return nil, err
			}
			out = append(out, below...)
		case e.Type().IsRegular():
			out = append(out, name)
		default:
			return nil, fmt.Errorf("%s is neither a file nor a directory: take it away first", name)
		}
	}
	return out, nil
}

// TodoMessage is the subject of the commit that archives tasks, "" where there are none.
func TodoMessage(gone []*Task) string {
	switch len(gone) {
	case 0:
		return ""
	case 1:
		return "todo: clean 1 completed task"
	}
	return fmt.Sprintf("todo: clean %d completed tasks", len(gone))
}
