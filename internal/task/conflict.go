package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"reprise/internal/durable"
)

// sides are the two texts that a file with conflicts of a merge was made from, as far as
// it tells: ours is that of the branch that was merged into. What stands between lines of
// ||||||| and ======= is neither's.
func sides(text []byte) (ours, theirs []byte) {
	const both, first, base, second = 0, 1, 2, 3
	at := both
	for l := range bytes.Lines(text) {
		switch line := bytes.TrimRight(l, "\r\n"); {
		case at == both && bytes.HasPrefix(line, []byte("<<<<<<< ")):
			at = first
			continue
		case at == first && bytes.HasPrefix(line, []byte("||||||| ")):
			at = base
			continue
		case (at == first || at == base) && string(line) == "=======":
			at = second
			continue
		case at == second && bytes.HasPrefix(line, []byte(">>>>>>> ")):
			at = both
			continue
		}
		if at == both || at == first {
			ours = append(ours, l...)
		}
		if at == both || at == second {
			theirs = append(theirs, l...)
		}
	}
	return ours, theirs
}

// settleConflict ends the conflicts that a merge left in TODO.md and state.json: the
// tasks of both sides stay. One that both sides know is what the side says that changed
// it last; where both gave a number to a task of their own, the other side's gets a new
// one, with its folder. done is false where there is no conflict.
func (s *Store) settleConflict(ctx context.Context) (r Report, changes []Change, done bool, err error) {
	if err := s.within(); err != nil {
		return r, nil, false, err
	}
	if err := s.o.Disk.MkdirAll(s.dir, 0o755); err != nil {
		return r, nil, false, err
	}
	d, err := s.o.Disk.OpenDir(s.dir)
	if err != nil {
		return r, nil, false, err
	}
	defer d.Close()
	c, err := d.Begin(ctx)
	if err != nil {
		return r, nil, false, err
	}
	defer c.Abort()
	todo, state, err := files(d)
	if err != nil || conflictAt(todo) == 0 && conflictAt(state) == 0 && twiceIn(state) == 0 {
		return r, nil, false, err
	}
	u, err := s.openSides(ctx, d, todo, state)
	if err != nil {
		return r, nil, false, err
	}
	ours := u.ours
	if err := u.unite(); err != nil {
		return r, nil, false, err
	}
	newState, err := ours.State.Bytes()
	if err != nil {
		return r, nil, false, err
	}
	c.Write(todoFile, ours.Todo.Bytes(), 0o644)
	c.Write(stateFile, newState, 0o644)
	c.Expect(todoFile, todo)
	c.Expect(stateFile, state)
	for name, data := range ours.writes {
		if data == nil {
			c.Remove(name)
		} else {
			c.Write(name, data, 0o644)
		}
	}
	if ours.State.Next > ours.was {
		if err := s.note(ctx, &noted{}, ours.State.Next); err != nil {
			return r, nil, false, fmt.Errorf("settle the conflict in %s: %w", s.dir, err)
		}
	}
	if err := c.Commit(); err != nil {
		return r, nil, false, fmt.Errorf("settle the conflict in %s: %w", s.dir, err)
	}
	u.took(0, "the conflict of a merge is settled: `git add specs` and go on with the merge")
	return u.report, u.changes, true, nil
}

// union makes one list of the two sides of a merge: it becomes ours.
type union struct {
	ours, theirs *Board
	// What state.json knew of each; the others were taken over from TODO.md.
	ourNumbers, theirNumbers map[int]bool
	report                   Report
	changes                  []Change
}

// openSides reads the two sides of what a merge left.
func (s *Store) openSides(ctx context.Context, d *durable.Dir, todo, state []byte) (*union, error) {
	todoOurs, todoTheirs := sides(todo)
	stateOurs, stateTheirs := sides(state)
	if conflictAt(todo) > 0 {
		stateOurs, stateTheirs = oneOfEach(stateOurs, todoOurs), oneOfEach(stateTheirs, todoTheirs)
	} else { // git put the sections of both into TODO.md by itself
		stateOurs = choose(stateOurs, func(int, stateEntry) bool { return false })
		stateTheirs = choose(stateTheirs, func(int, stateEntry) bool { return true })
	}
	lasting := func() (*durable.Dir, func(), error) { return d, func() {}, nil }
	u := &union{ourNumbers: numbersIn(stateOurs), theirNumbers: numbersIn(stateTheirs)}
	for _, side := range []struct {
		to          **Board
		todo, state []byte
	}{{&u.ours, todoOurs, stateOurs}, {&u.theirs, todoTheirs, stateTheirs}} {
		b, err := s.read(ctx, lasting, side.todo, side.state, nil)
		if errors.Is(err, ErrDamaged) { // TODO.md says what a person has to know
			b, err = s.read(ctx, lasting, side.todo, nil, nil)
		}
		if err != nil {
			return nil, fmt.Errorf("a side of the conflict in %s cannot be read, so it has to be settled by hand: %w", path.Join(specsDir, todoFile), err)
		}
		*side.to = b
	}
	return u, nil
}

func (u *union) took(n int, format string, args ...any) {
	u.report.Mended = append(u.report.Mended, Finding{Number: n, What: fmt.Sprintf(format, args...), Took: todoFile})
}

// unite brings the other side's tasks into ours.
func (u *union) unite() error {
	ours, theirs := u.ours, u.theirs
	ours.State.Next = max(ours.State.Next, theirs.State.Next)
	for _, n := range theirs.State.Numbers() {
		t, own := theirs.State.Tasks[n], ours.State.Tasks[n]
		sec := theirs.Todo.Find(n)
		if sec == nil || own == nil && ours.archived(n) {
			continue // a person took it out there, or it has ended here
		}
		if own != nil && own.Title == t.Title && u.ourNumbers[n] != u.theirNumbers[n] {
			if u.theirNumbers[n] { // of ours nothing but the section is known, which is the same one
				ours.State.Tasks[n] = t
				ours.compare(ours.Todo.Find(n))
			}
			continue
		}
		if own != nil && sameTask(own, t) {
			if later(t, own) && ours.replaceBy(own, t, theirs.Todo, sec) {
				u.took(n, "the other side changed it last: it is %s", t.Status.Words())
			}
			continue
		}
		if own != nil {
			if err := ours.renumber(t, sec, own.Slug == t.Slug); err != nil {
				return err
			}
			u.took(n, "both sides gave this number: %q is %d since", t.Title, t.Number)
			u.changes = append(u.changes, Change{Number: t.Number, Op: "added", Title: t.Title, To: t.Status})
		} else {
			u.took(n, "kept, as the other side has it: %s", t.Title)
		}
		ours.State.Tasks[t.Number] = t
		ours.State.Next = max(ours.State.Next, t.Number+1)
		if !ours.renumberTwin(n, t, sec) {
			ours.Todo.Append(t.Number, t.Title, fieldsOf(sec), theirs.Todo.Body(sec))
		}
	}
	return nil
}

// numbersIn are the numbers that a state.json knows.
func numbersIn(state []byte) map[int]bool {
	out := map[int]bool{}
	if st, err := ParseState(state); err == nil {
		for n := range st.Tasks {
			out[n] = true
		}
	}
	return out
}

// renumberTwin gives the section of another side's task its new number where it stands in
// the same list, and reports whether it does.
func (b *Board) renumberTwin(old int, t *Task, theirs *Section) bool {
	i := slices.IndexFunc(b.twice, func(s *Section) bool { return s.Number == old && s.Title == t.Title })
	if i < 0 {
		return false
	}
	own := b.twice[i]
	b.twice = slices.Delete(b.twice, i, i+1)
	b.Todo.SetHeading(own, t.Number, own.Title)
	for _, name := range []string{"research", "plan", "summary"} {
		if v, ok := theirs.Value(name); ok {
			b.Todo.Set(own, name, v)
		}
	}
	return true
}

// later reports whether a was changed after b; in the same second, whether it is further.
func later(a, b *Task) bool {
	switch {
	case a.Updated == nil:
		return false
	case b.Updated == nil, a.Updated.After(*b.Updated):
		return true
	}
	return a.Updated.Equal(*b.Updated) && slices.Index(Statuses(), a.Status) > slices.Index(Statuses(), b.Status)
}

// stateEntry is one entry of the tasks of a state.json.
type stateEntry struct {
	key string
	raw json.RawMessage
}

// stateEntries are the entries of the tasks of a state.json, those of a number that stands
// twice among them, and the rest of it; nil where it cannot be read.
func stateEntries(state []byte) (list []stateEntry, all map[string]json.RawMessage) {
	if json.Unmarshal(state, &all) != nil {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(all["tasks"]))
	if _, err := dec.Token(); err != nil {
		return nil, nil
	}
	for dec.More() {
		key, err := dec.Token()
		var e stateEntry
		if err != nil || dec.Decode(&e.raw) != nil {
			return nil, nil
		}
		e.key, _ = key.(string)
		list = append(list, e)
	}
	return list, all
}

// twiceIn is a number that has two entries in a state.json, 0 where there is none.
func twiceIn(state []byte) int {
	list, _ := stateEntries(state)
	seen := map[int]bool{}
	for _, e := range list {
		n, err := strconv.Atoi(e.key)
		if err == nil && seen[n] {
			return n
		}
		seen[n] = true
	}
	return 0
}

// choose makes a state.json with one entry a number: better reports whether a further one
// takes the place of that before it.
func choose(state []byte, better func(number int, e stateEntry) bool) []byte {
	list, all := stateEntries(state)
	kept := map[string]json.RawMessage{}
	for _, e := range list {
		n, _ := strconv.Atoi(e.key)
		if key := strconv.Itoa(n); n > 0 {
			e.key = key
		}
		if _, again := kept[e.key]; !again || better(n, e) {
			kept[e.key] = e.raw
		}
	}
	if len(kept) == len(list) {
		return state
	}
	var err error
	if all["tasks"], err = json.Marshal(kept); err != nil {
		return state
	}
	out, err := json.Marshal(all)
	if err != nil {
		return state
	}
	return out
}

// oneOfEach takes out of a state.json in which numbers stand twice, as git leaves it where
// it found no conflict, the entries whose titles are not those of TODO.md. What cannot be
// read stays as it is.
func oneOfEach(state, todo []byte) []byte {
	t, err := ParseTodo(todo)
	if err != nil {
		return state
	}
	return choose(state, func(n int, e stateEntry) bool {
		var about struct {
			Title string `json:"title"`
		}
		sec := t.Find(n)
		return json.Unmarshal(e.raw, &about) == nil && sec != nil && sec.Title == about.Title
	})
}

// sameTask reports whether two sides mean the same task by a number: it was made once.
func sameTask(a, b *Task) bool {
	return a.Slug == b.Slug && (a.Created == nil || b.Created == nil || a.Created.Equal(*b.Created))
}

func fieldsOf(s *Section) (out [][2]string) {
	for _, f := range s.Fields {
		if fieldRank(f.Name) >= 0 {
			out = append(out, [2]string{f.Name, f.Value})
		}
	}
	return out
}

// replaceBy gives a task what another side says of it.
func (b *Board) replaceBy(own, t *Task, from *Todo, sec *Section) bool {
	mine := b.Todo.Find(own.Number)
	if mine == nil || bytes.Equal(b.Todo.Text(mine), from.Text(sec)) {
		*own = *t
		return false
	}
	*own = *t
	if mine.Title != sec.Title {
		b.Todo.SetHeading(mine, own.Number, sec.Title)
	}
	for _, f := range fieldNames {
		value, _ := sec.Value(f.key)
		b.Todo.Set(mine, f.key, value)
	}
	return true
}

// renumber gives a task of another side the next number, and its folder that name, unless
// that is shared with the task that keeps the number.
func (b *Board) renumber(t *Task, sec *Section, shared bool) error {
	n := b.free()
	if n == 0 {
		return errNoNumber
	}
	old := t.Folder()
	t.Number = n
	if shared {
		return nil
	}
	names, err := b.walk(old)
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := b.Read(name)
		if err != nil {
			return err
		}
		b.Write(t.Folder()+strings.TrimPrefix(name, old), data)
		b.writes[name] = nil
	}
	move := func(text string) string { return strings.ReplaceAll(text, old+"/", t.Folder()+"/") }
	for _, list := range [][]string{t.Research, t.Plans} {
		for i := range list {
			list[i] = move(list[i])
		}
	}
	t.Summary = move(t.Summary)
	for i := range sec.Fields {
		if slices.Contains([]string{"research", "plan", "summary"}, sec.Fields[i].Name) {
			sec.Fields[i].Value = move(sec.Fields[i].Value)
		}
	}
	return nil
}
