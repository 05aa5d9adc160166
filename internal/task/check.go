package task

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/durable"
)

// Report is what a check found. Mended are the disagreements that it put right,
// each with the side that it took; Left are those that a person has to see to.
type Report struct {
	Mended []Finding `json:"mended,omitempty"`
	Left   []Finding `json:"left,omitempty"`
	// Damaged is where a state.json that could not be read was put.
	Damaged string `json:"damaged,omitempty"`
	// Changes are what happened to tasks by it.
	Changes []Change `json:"-"`
}

// Agrees reports whether the two files said the same.
func (r Report) Agrees() bool { return len(r.Mended) == 0 && len(r.Left) == 0 && r.Damaged == "" }

// Check compares TODO.md with state.json and changes nothing.
func (s *Store) Check(ctx context.Context) (Report, error) {
	b, err := s.Load(ctx)
	if err != nil {
		return Report{}, err
	}
	left, err := s.leftovers(false)
	if err != nil {
		return Report{}, err
	}
	return Report{Left: slices.Concat(b.Taken, b.Problems, b.checkPlans(), left)}, nil
}

// checkPlans tells of plans, of tasks that have not ended, that cannot be worked with, or
// have a marker that is no status: a person's words, which only a person can settle.
func (b *Board) checkPlans() (out []Finding) {
	for _, n := range b.State.Numbers() {
		t := b.State.Tasks[n]
		if t.Status.Ended() || len(t.Plans) == 0 {
			continue
		}
		p, name, err := b.Plan(t)
		if err == nil {
			err = p.Check()
		}
		if err != nil {
			out = append(out, Finding{Number: n, What: fmt.Sprintf("its plan cannot be worked with: %v", err)})
			continue
		}
		if t.Status == InProgress && len(t.Operations) == 0 && len(p.Phases) > 0 && p.Next() == nil {
			out = append(out, Finding{Number: n, What: fmt.Sprintf("every phase of its plan is completed, and the task has not been ended: `reprise task implement %d` does that", n)})
		}
		for _, ph := range p.Phases {
			if ph.Unknown != "" {
				out = append(out, Finding{Number: n, What: fmt.Sprintf("phase %d is marked %s in specs/%s, line %d, which is none of %s: it counts as not started; put one of these in its place", ph.Number, ph.Unknown, name, ph.Line, markers())})
			}
		}
	}
	return out
}

// leftovers tells of changes that were not made, and of edits that stand beside TODO.md
// because they came in the very moment of a change. The first can be forgotten.
func (s *Store) leftovers(forget bool) (out []Finding, err error) {
	d, err := s.o.Disk.OpenDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Dropped()
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		f := Finding{What: fmt.Sprintf("a command was killed in the middle, and a list was edited before the next one: what you saved is kept, and what the command was to change in specs/ (%s) was not done", strings.Join(names, ", ")), Took: todoFile}
		if out = append(out, f); forget {
			if err := d.ForgetDropped(); err != nil {
				return nil, err
			}
		}
	}
	if forget {
		return out, nil
	}
	entries, err := d.ReadDir(".")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if durable.IsKept(e.Name(), todoFile) || durable.IsKept(e.Name(), stateFile) {
			out = append(out, Finding{What: fmt.Sprintf("specs/%s was saved in the very moment of a command: bring what is new in it into the file itself, then remove it", e.Name())})
		}
	}
	return out, nil
}

// Fix brings the two files into agreement and says which side it took. A state.json
// that cannot be read is set aside, beside it, and made anew from TODO.md.
func (s *Store) Fix(ctx context.Context) (Report, error) {
	var r Report
	settled, changes, _, err := s.settleConflict(ctx)
	if fi, lerr := os.Lstat(filepath.Join(s.dir, stateFile)); errors.Is(err, ErrDamaged) && lerr == nil && fi.Mode().Type()&^fs.ModeSymlink != 0 { // no file
		if r.Damaged, err = s.setAside(err); err != nil {
			return r, err
		}
		settled, changes, _, err = s.settleConflict(ctx)
	}
	if err != nil {
		settled.Damaged = r.Damaged
		return settled, err
	}
	damaged := r.Damaged
	b, err := s.change(ctx, true, func(b *Board) error { r = b.mend(); return nil })
	if errors.Is(err, ErrDamaged) {
		if damaged, err = s.setAside(err); err != nil {
			return r, err
		}
		b, err = s.change(ctx, true, func(b *Board) error { r = b.mend(); return nil })
	}
	r.Damaged = damaged
	if err != nil {
		return r, err
	}
	dropped, err := s.leftovers(true)
	if err != nil {
		return r, err
	}
	beside, err := s.leftovers(false)
	if err != nil {
		return r, err
	}
	r.Mended, r.Left = slices.Concat(r.Mended, dropped), slices.Concat(r.Left, b.checkPlans(), beside)
	r.Mended, r.Changes = slices.Concat(settled.Mended, b.Taken, r.Mended), slices.Concat(changes, b.Changes)
	return r, nil
}

// setAside puts a state.json that cannot be read beside itself, and says where.
func (s *Store) setAside(why error) (string, error) {
	aside := filepath.Join(s.dir, stateFile+s.o.Now().UTC().Format(".20060102T150405Z.damaged"))
	if err := s.o.Disk.Rename(filepath.Join(s.dir, stateFile), aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w; it cannot be set aside: %w", why, err)
	}
	return aside, nil
}

// mend does what taking over left.
func (b *Board) mend() (r Report) {
	took := func(n int, side, format string, args ...any) {
		r.Mended = append(r.Mended, Finding{Number: n, What: fmt.Sprintf(format, args...), Took: side})
	}
	for _, s := range b.twice {
		n := s.Number
		if own := b.Todo.Find(n); own != nil && own != s && own.Title == s.Title && b.Todo.says(b.Todo.Text(own), s) {
			b.Todo.Remove(s)
			took(n, todoFile, "it stood there twice, in lines %d and %d, in the same words: the second is taken away", own.Line, s.Line)
			continue
		}
		if !b.number(s) {
			r.Left = append(r.Left, Finding{Number: n, Line: s.Line, What: fmt.Sprintf("the second task of that number gets no other: %v", errNoNumber)})
			continue
		}
		b.compare(s)
		took(n, todoFile, "the second task of that number is now %d: %s", s.Number, s.Title)
	}
	for _, s := range b.shelved {
		n := s.Number
		if shelf, err := b.Shelf(); err == nil {
			if kept := shelf.Todo.Find(n); kept != nil && b.Todo.says(shelf.Todo.Text(kept), s) {
				b.Todo.Remove(s)
				took(n, stateFile, "it is in specs/archive/ with all that stood here: the section is taken away")
				continue
			}
		}
		if !b.number(s) {
			r.Left = append(r.Left, Finding{Number: n, Line: s.Line, What: fmt.Sprintf("it is in specs/archive/, and what stands here gets no other number: %v", errNoNumber)})
			continue
		}
		b.compare(s)
		took(n, todoFile, "it is in specs/archive/ with other words: what stands here is task %d now: %s", s.Number, s.Title)
	}
	b.shelved = nil
	b.twice, b.Problems = nil, slices.DeleteFunc(b.Problems, func(f Finding) bool { return f.Number > 0 }) // what is without a number stays so
	for _, s := range b.Todo.Sections {
		t := b.State.Tasks[s.Number]
		if v, ok := s.Value("status"); t != nil && ok {
			if _, known := ParseStatus(v); !known {
				b.Todo.Set(s, "status", t.Status.Marker())
				took(s.Number, stateFile, "status %q → %s", v, t.Status.Marker())
			}
		}
		if v, ok := s.Value("priority"); t != nil && ok && t.Priority != "" && priorityOf(v) == "" {
			b.Todo.Set(s, "priority", t.Priority)
			took(s.Number, stateFile, "priority %q → %s", v, t.Priority)
		}
	}
	missing := b.State.which(func(t *Task) bool { return b.Todo.Find(t.Number) == nil })
	texts := b.texts(missing)
	for _, n := range missing {
		t := b.State.Tasks[n]
		took(n, stateFile, "it stands in TODO.md again, as %s, %s; `reprise task abandon %d` gives it up, `reprise task todo` takes away what has ended", t.Status.Words(), b.writeBack(t, texts[n]), n)
	}
	b.checkDeps()
	r.Left = append(r.Left, b.Problems...)
	return r
}

// says reports whether a text has every line of a section, but for fields as the program
// writes them.
func (t *Todo) says(text []byte, other *Section) bool {
	lines := map[string]bool{}
	for l := range strings.Lines(string(text)) {
		lines[strings.TrimSpace(l)] = true
	}
	own := map[string]bool{}
	for _, f := range other.Fields {
		if fieldRank(f.Name) >= 0 {
			own["- **"+shownName(f.Name)+"**: "+f.Value] = true
		}
	}
	for l := range strings.Lines(string(t.Text(other))) {
		if l = strings.TrimSpace(l); l != "" && !lines[l] && !own[l] {
			return false
		}
	}
	return true
}

// writeBack puts a task into TODO.md as state.json has it, with its text where a commit has
// that, and says which it was.
func (b *Board) writeBack(t *Task, text string) string {
	level := 3
	if last := len(b.Todo.Sections); last > 0 {
		level = b.Todo.Sections[last-1].Level
	}
	text, err := bodyText(text, level)
	said := "with its text as the latest commit has it"
	if text == "" || err != nil {
		text, said = "", "without a text, for no commit has one of it"
	}
	at := func(name string) string {
		if len(t.paths(name)) == 0 {
			return ""
		}
		return link(t.paths(name)[len(t.paths(name))-1])
	}
	blocked := ""
	if t.Status == Blocked {
		blocked = t.Reason
	}
	b.Todo.Append(t.Number, t.Title, [][2]string{
		{"effort", t.Effort}, {"status", t.Status.Marker()}, {"priority", t.Priority}, {"language", t.Language},
		{"depends", dependsText(t.DependsOn)}, {"started", stamp(t.Started)}, {"completed", stamp(t.Completed)},
		{"abandoned", stamp(t.Abandoned)}, {"blocked", blocked}, {"research", at("research")}, {"plan", at("plan")}, {"summary", at("summary")},
	}, text)
	return said
}
