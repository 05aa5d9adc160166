package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/mdfile"
	"reprise/internal/pathname"
)

// Names below the project's checkout.
const (
	specsDir  = "specs"
	todoFile  = "TODO.md"
	stateFile = "state.json"
)

// Options are what a Store works with.
type Options struct {
	Disk durable.Disk
	Now  func() time.Time // required
	// Committed is what commits have of a file of the project, named from its root and with
	// slashes: first the last commit, nil where that has no such file, and then those before
	// it that have another one, the newest first. nil: nothing is committed.
	Committed func(ctx context.Context, name string) iter.Seq[[]byte]
	// Home is the user's own directory, which is written as ~ in what goes into specs/;
	// empty is none.
	Home string
}

// Store is the list of tasks of one project.
type Store struct {
	dir string
	o   Options
}

// New is the store of the project whose main checkout is root. It makes nothing.
func New(root string, o Options) *Store {
	return &Store{dir: filepath.Join(root, specsDir), o: o}
}

// Dir is the directory specs/.
func (s *Store) Dir() string { return s.dir }

// dirs are the directories of this machine that what goes into specs/ does not name, each
// with what stands for it.
func (s *Store) dirs() [][2]string {
	return [][2]string{{filepath.Dir(s.dir), ""}, {s.o.Home, "~"}}
}

// shortPlace is a checkout as state.json names it, see [Operation], and longPlace the same
// as the machine does.
func (s *Store) shortPlace(place string) string {
	if rel, ok := pathname.Below(s.o.Home, place); ok && place != "" && s.o.Home != "" {
		return "~/" + filepath.ToSlash(rel)
	}
	return place
}

func (s *Store) longPlace(place string) string {
	if below, ok := strings.CutPrefix(place, "~/"); ok && s.o.Home != "" {
		return filepath.Join(s.o.Home, filepath.FromSlash(below))
	}
	return place
}

// CommitLock is the lock under which what changes in specs/ is committed.
func (s *Store) CommitLock() string { return filepath.Join(s.dir, journalDir, "commit.lock") }

// Board is TODO.md and state.json as they were read, with what was taken over from
// one into the other, and the changes that are to be written.
type Board struct {
	Todo  *Todo
	State *State
	// Taken is what the program made of edits by hand, Problems what it left alone.
	Taken, Problems []Finding
	// Changes are what happened to tasks, in order.
	Changes []Change

	was      int                                // state.json's next number as it was read
	known    int                                // tasks that state.json had when it was read
	missing  []int                              // those of them that do not stand in TODO.md
	versions func(name string) iter.Seq[[]byte] // see [Options.Committed]; nil = nothing is committed
	taking   bool                               // what a person did is being taken over
	highest  int                                // number that was given, by the archive and folders; 0 = not looked for
	folders  map[int]string                     // parts of their names behind the number; nil = not looked for
	noted    *noted                             // numbers that this change says were given, though nothing came of it yet
	twice    []*Section                         // sections whose number another one has
	shelved  []*Section                         // sections of tasks that were archived
	now      time.Time
	failures *Failures
	dirs     [][2]string                                     // see [Store.dirs]
	shelf    *Board                                          // the archive, once it was looked at
	below    string                                          // directory below specs/ in which the folders of its tasks are
	dir      func() (d *durable.Dir, done func(), err error) // specs/; nil = there is none
	writes   map[string][]byte                               // other files, by their name below specs/; nil = removed
}

// Change is one thing that happened to a task.
type Change struct {
	Number   int
	Op       string // added, status, edited, report, plan, phase, archived
	Title    string
	From, To Status
	Phase    int
	Operation, Session,
	Reason string
	Files  []string
	ByHand bool // a person did it in TODO.md
}

func (b *Board) changed(t *Task, c Change) {
	c.Number, c.Title = t.Number, t.Title
	if o := t.opAt(c.Phase); o != nil && c.Session == "" {
		c.Operation, c.Session = o.Name, o.Session
	}
	c.ByHand = c.ByHand || b.taking
	b.Changes = append(b.Changes, c)
}

// ErrBusy says that TODO.md or state.json was being changed by somebody else, again
// and again.
var ErrBusy = errors.New("it is being changed by somebody else at the same moment; try again")

// tries is how often a change begins anew because a person saved TODO.md meanwhile.
const tries = 20

// Load reads the list without changing anything. What a person edited is taken over
// into the Board, not into the files. Where there is no list, it is empty.
func (s *Store) Load(ctx context.Context) (*Board, error) {
	if err := s.within(); err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	d, err := s.o.Disk.OpenDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := s.lost(ctx, nil, nil, false); err != nil {
			return nil, err
		}
		return s.read(ctx, nil, nil, nil, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	defer d.Close()
	for range tries {
		before := look(d)
		todo, state, err := files(d)
		if err != nil {
			return nil, fmt.Errorf("read tasks: %w", err)
		}
		// A change by the program puts other files in the place of both, one after the
		// other. Where both are what they were before, they belong together.
		if before.same(look(d)) {
			if err := s.lost(ctx, todo, state, false); err != nil {
				return nil, err
			}
			b, err := s.read(ctx, s.reopen, todo, state, nil)
			if err == nil {
				err = s.lostTasks(b, todo, false)
			}
			if err != nil {
				return nil, err
			}
			return b, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("read tasks in %s: %w", s.dir, ErrBusy)
}

// within refuses a specs/ that leads out of the project: a repository that brings such a
// link along would have files written wherever it likes.
func (s *Store) within() error {
	real, err := filepath.EvalSymlinks(s.dir)
	if err != nil {
		return nil // not there, or said by who opens it
	}
	top, err := filepath.EvalSymlinks(filepath.Dir(s.dir))
	if err != nil {
		return err
	}
	if !pathname.Within(top, real) {
		return fmt.Errorf("%s leads to %s, outside of the project: put a directory in its place", s.dir, real)
	}
	return nil
}

// looked is what can be seen of TODO.md and state.json without reading them; nil stands
// for one that is not there.
type looked [2]fs.FileInfo

func look(d *durable.Dir) (l looked) {
	for i, name := range []string{todoFile, stateFile} {
		if fi, err := d.Stat(name); err == nil {
			l[i] = fi
		}
	}
	return l
}

// same reports whether the files are still those that they were.
func (l looked) same(m looked) bool {
	for i := range l {
		a, b := l[i], m[i]
		if (a == nil) != (b == nil) {
			return false
		}
		if a != nil && (!os.SameFile(a, b) || a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime())) {
			return false
		}
	}
	return true
}

// reopen is the directory for a Board that outlives the look at the list.
func (s *Store) reopen() (*durable.Dir, func(), error) {
	d, err := s.o.Disk.OpenDir(s.dir)
	if err != nil {
		return nil, nil, err
	}
	return d, func() { d.Close() }, nil
}

func files(d *durable.Dir) (todo, state []byte, err error) {
	if todo, err = readMaybe(d, todoFile); err == nil {
		state, err = readMaybe(d, stateFile)
	}
	return todo, state, err
}

func readMaybe(d *durable.Dir, name string) ([]byte, error) {
	data, err := d.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, unread(d, name, err)
}

// unread says of a file below specs/ that cannot be read because of what it is, a link out
// of specs/ or no file at all, what it is and what to do. Other errors stay as they are.
func unread(d *durable.Dir, name string, err error) error {
	if err == nil {
		return nil
	}
	at := ""
	for part := range strings.SplitSeq(name, "/") {
		at = path.Join(at, part)
		file := filepath.Join(d.Path(), filepath.FromSlash(at))
		fi, lerr := os.Lstat(file)
		switch {
		case lerr != nil:
			return err
		case fi.Mode()&fs.ModeSymlink != 0:
			to, lerr := os.Readlink(file)
			if lerr != nil {
				return err
			}
			return fmt.Errorf("%s is a link to %s, which cannot be read from here, for links are not followed out of specs/: put what is to be read itself in its place", file, to)
		case at != name || fi.Mode().IsRegular() || fi.IsDir() && name != todoFile && name != stateFile:
		case name == stateFile:
			return fmt.Errorf("%s: %w: it is %s; `reprise task check --fix` sets it aside and makes it anew from TODO.md", file, ErrDamaged, kindOf(fi.Mode()))
		default:
			return fmt.Errorf("%s is %s, and not a file: move it away, and put the file in its place", file, kindOf(fi.Mode()))
		}
	}
	return err
}

// kindOf names what is no regular file.
func kindOf(m fs.FileMode) string {
	if m.IsDir() {
		return "a directory"
	}
	return "a device, a pipe or a socket"
}

func (s *Store) read(ctx context.Context, d func() (*durable.Dir, func(), error), todo, state []byte, own *noted) (*Board, error) {
	if line := conflictAt(todo); line > 0 {
		return nil, fmt.Errorf("%s, line %d: %w", filepath.Join(s.dir, todoFile), line, ErrConflict)
	}
	if line := conflictAt(state); line > 0 {
		return nil, fmt.Errorf("%s, line %d: %w", filepath.Join(s.dir, stateFile), line, ErrConflict)
	}
	b := &Board{dirs: s.dirs(), now: s.o.Now().UTC().Truncate(time.Second), dir: d, writes: map[string][]byte{}, noted: own}
	if s.o.Committed != nil {
		b.versions = func(name string) iter.Seq[[]byte] { return s.o.Committed(ctx, path.Join(specsDir, name)) }
	}
	// Both take their time where there are thousands of tasks.
	var todoErr error
	parsed := make(chan struct{})
	go func() {
		defer close(parsed)
		b.Todo, todoErr = ParseTodo(todo)
	}()
	var err error
	b.State, err = ParseState(state)
	<-parsed
	if errors.Is(todoErr, mdfile.ErrNotText) {
		return nil, fmt.Errorf("%s: %w; put that line right, or save the file as UTF-8 (`git show HEAD:specs/%s` shows the last one that was committed)", filepath.Join(s.dir, todoFile), todoErr, todoFile)
	}
	if todoErr != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(s.dir, todoFile), todoErr)
	}
	if errors.Is(err, ErrDoubled) {
		return nil, fmt.Errorf("%s: %w", filepath.Join(s.dir, stateFile), err)
	}
	if errors.Is(err, ErrNewer) {
		return nil, fmt.Errorf("%s: %w", filepath.Join(s.dir, stateFile), err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w; mend it by hand, or `reprise task check --fix` sets it aside and makes it anew from TODO.md", filepath.Join(s.dir, stateFile), err)
	}
	b.was = b.State.Next
	b.taking = true
	b.takeOver()
	b.taking = false
	return b, nil
}

// ErrConflict says that TODO.md or state.json holds the two sides of a merge. Which of them counts is
// for a person, or for [Store.Fix], to say; nothing is written into the middle of them.
var ErrConflict = errors.New("here begins a conflict of a merge that is not settled; `reprise task check --fix` keeps the tasks of both sides, or settle it by hand")

// conflictAt is the line at which a conflict of a merge begins, 0 where there is none.
func conflictAt(text []byte) int {
	if !bytes.Contains(text, []byte("<<<<<<< ")) {
		return 0
	}
	begin, number, middle := 0, 0, false
	for l := range bytes.Lines(text) {
		number++
		switch {
		case bytes.HasPrefix(l, []byte("<<<<<<< ")):
			begin, middle = number, false
		case begin > 0 && bytes.Equal(bytes.TrimRight(l, "\r\n"), []byte("=======")):
			middle = true
		case middle && bytes.HasPrefix(l, []byte(">>>>>>> ")):
			return begin
		}
	}
	return 0
}

// given is the highest number that the archive and the names of folders tell of: what was
// given once is not given again, though state.json was lost, or is an older one.
func (b *Board) given() int {
	if b.highest == 0 {
		b.highest = b.lookForNumbers()
	}
	return b.highest
}

func (b *Board) lookForNumbers() int {
	if b.dir == nil {
		return 0
	}
	d, done, err := b.dir()
	if err != nil {
		return 0 // said by whatever is read next
	}
	defer done()
	highest := 0
	if data, err := readMaybe(d, path.Join(archiveDir, stateFile)); err == nil {
		if kept, err := ParseState(data); err == nil {
			highest = kept.Next - 1
		}
	}
	if data, err := readMaybe(d, path.Join(journalDir, givenFile)); err == nil {
		for line := range strings.Lines(string(data)) {
			if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && n <= maxNumber && !b.noted.has(n) {
				highest = max(highest, n)
			}
		}
	}
	for _, dir := range []string{".", archiveDir} {
		entries, err := d.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			number, _, ok := strings.Cut(e.Name(), "_")
			if n, err := strconv.Atoi(number); ok && err == nil && e.IsDir() && n <= maxNumber {
				highest = max(highest, n)
			}
		}
	}
	return highest
}

// Change lets fn change the list, and writes what it changed as one. Edits by hand
// are taken over first. A person who saves TODO.md in the middle is not overwritten:
// fn is called again on what is there then, so it must do nothing but change the
// Board. When fn fails nothing is written.
func (s *Store) Change(ctx context.Context, fn func(*Board) error) (*Board, error) {
	return s.change(ctx, false, fn)
}

// change is Change; anew says that a state.json that is gone may be made anew.
func (s *Store) change(ctx context.Context, anew bool, fn func(*Board) error) (*Board, error) {
	if err := s.within(); err != nil {
		return nil, fmt.Errorf("change tasks: %w", err)
	}
	if _, err := os.Lstat(s.dir); errors.Is(err, fs.ErrNotExist) {
		if err := s.lost(ctx, nil, nil, anew); err != nil {
			return nil, err
		}
	}
	if err := s.o.Disk.MkdirAll(filepath.Join(s.dir, journalDir), 0o755); err != nil {
		return nil, fmt.Errorf("change tasks: %w", err)
	}
	d, err := s.o.Disk.OpenDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("change tasks: %w", err)
	}
	defer d.Close()
	own := &noted{}
	for range tries {
		b, err := s.try(ctx, d, anew, own, fn)
		if !errors.Is(err, errAgain) {
			return b, err
		}
	}
	return nil, fmt.Errorf("change tasks in %s: %w", s.dir, ErrBusy)
}

// journalDir is where package durable keeps a change of several files.
const journalDir = ".reprise-journal"

// givenFile has, in journalDir and so outside git, the numbers that were given in this
// checkout, a line each.
const givenFile = "given"

// noted are numbers that a change noted as given in tries of which nothing came.
type noted struct{ numbers []int }

func (n *noted) has(number int) bool { return n != nil && slices.Contains(n.numbers, number) }

// note says that numbers up to the one before next are given. The caller holds the change
// lock and has changed nothing yet: who is killed in between has left a number out, while
// one that was noted afterwards might never be, and be given again once git has taken the
// list back to an older one.
func (s *Store) note(ctx context.Context, own *noted, next int) error {
	if own.has(next - 1) {
		return nil
	}
	err := s.o.Disk.Append(context.WithoutCancel(ctx), filepath.Join(s.dir, journalDir, givenFile), []byte(strconv.Itoa(next-1)+"\n"), 0o644)
	if err != nil {
		return fmt.Errorf("nothing is changed: which numbers are given cannot be noted: %w", err)
	}
	own.numbers = append(own.numbers, next-1)
	return nil
}

var errAgain = errors.New("TODO.md was saved by somebody else")

func (s *Store) try(ctx context.Context, d *durable.Dir, anew bool, own *noted, fn func(*Board) error) (*Board, error) {
	c, err := d.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("change tasks: %w", err)
	}
	defer c.Abort()
	if err := s.ignoreJournal(); err != nil {
		return nil, fmt.Errorf("change tasks: %w", err)
	}
	todo, state, err := files(d)
	if err != nil {
		return nil, fmt.Errorf("change tasks: %w", err)
	}
	if err := s.lost(ctx, todo, state, anew); err != nil {
		return nil, err
	}
	b, err := s.read(ctx, func() (*durable.Dir, func(), error) { return d, func() {}, nil }, todo, state, own)
	if err == nil {
		err = s.lostTasks(b, todo, anew)
	}
	if err != nil {
		return nil, err
	}
	defer func() { b.dir = s.reopen }()
	if err := fn(b); err != nil {
		return b, err
	}
	if l := b.failures; l != nil && l.dirty {
		data, err := l.Bytes(b.now)
		if err != nil {
			return nil, err
		}
		b.Write(errorsFile, data)
	}
	newTodo := b.Todo.Bytes()
	readBack := make(chan error, 1) // it takes as long as reading does
	go func() {
		if bytes.Equal(newTodo, todo) {
			readBack <- nil
			return
		}
		readBack <- b.Todo.readBack(newTodo)
	}()
	newState, err := b.State.Bytes()
	if rerr := <-readBack; err == nil {
		err = rerr
	}
	if err != nil {
		return nil, err
	}
	changed := 0
	for name, f := range map[string][2][]byte{todoFile: {todo, newTodo}, stateFile: {state, newState}} {
		if !bytes.Equal(f[0], f[1]) {
			c.Write(name, f[1], 0o644)
			c.Expect(name, f[0]) // a person may be saving it
			changed++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.writes)) {
		changed++
		if data := b.writes[name]; data != nil {
			c.Write(name, data, 0o644)
		} else {
			c.Remove(name)
		}
	}
	if changed == 0 || len(todo) == 0 && len(state) == 0 && len(b.State.Tasks) == 0 && len(b.writes) == 0 {
		return b, nil
	}
	if b.State.Next > b.was {
		if err := s.note(ctx, own, b.State.Next); err != nil {
			return nil, fmt.Errorf("change tasks in %s: %w", s.dir, err)
		}
	}
	err = c.Commit()
	if errors.Is(err, durable.ErrChanged) {
		return nil, errAgain
	}
	if err != nil && !errors.Is(err, durable.ErrPending) {
		return nil, fmt.Errorf("change tasks in %s: %w", s.dir, err)
	}
	return b, nil
}

// ignoreJournal keeps the journal's directory, in which things lie for the moment of a
// change, from the user's git. The caller holds the change lock: who takes it clears the
// directory of temporary files, this one's among them.
func (s *Store) ignoreJournal() error {
	ignore := filepath.Join(s.dir, journalDir, ".gitignore")
	if _, err := os.Lstat(ignore); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.o.Disk.WriteFile(ignore, []byte("*\n"), 0o644)
}

// Read is a file below specs/ as it is, or as it will be.
func (b *Board) Read(name string) ([]byte, error) {
	if data, ok := b.writes[name]; ok {
		if data == nil {
			return nil, fs.ErrNotExist
		}
		return data, nil
	}
	if b.dir == nil {
		return nil, fs.ErrNotExist
	}
	d, done, err := b.dir()
	if err != nil {
		return nil, err
	}
	defer done()
	data, err := d.ReadFile(name)
	return data, unread(d, name, err)
}

// Write changes a file below specs/ together with the list.
func (b *Board) Write(name string, data []byte) { b.writes[name] = data }

// Files are the names, relative to the project's root and with slashes, of what this
// Board changed: the list, and what belongs to it.
func (b *Board) Files() []string {
	out := []string{path.Join(specsDir, todoFile), path.Join(specsDir, stateFile), path.Join(specsDir, errorsFile)}
	for _, name := range slices.Sorted(maps.Keys(b.writes)) {
		if name != errorsFile {
			out = append(out, path.Join(specsDir, name))
		}
	}
	return out
}
