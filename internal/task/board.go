package task

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/internal/clip"
	"reprise/internal/redact"
)

// ErrNoTask says that there is no task of a number.
var ErrNoTask = errors.New("no such task")

// ErrTwice says that a number stands at two tasks in TODO.md.
var ErrTwice = errors.New("stands twice in TODO.md")

// Finding is a place where TODO.md and state.json did not say the same.
type Finding struct {
	Number int    `json:"number,omitempty"`
	Line   int    `json:"line,omitempty"` // in TODO.md
	What   string `json:"what"`
	// Took says which side was right: "TODO.md" or "state.json"; empty where the
	// program takes neither by itself.
	Took string `json:"took,omitempty"`
}

func (f Finding) String() string {
	var b strings.Builder
	if f.Number > 0 {
		fmt.Fprintf(&b, "task %d: ", f.Number)
	}
	b.WriteString(f.What)
	if f.Line > 0 {
		fmt.Fprintf(&b, " (TODO.md, line %d)", f.Line)
	}
	return b.String()
}

// takeOver brings state.json up to what a person wrote in TODO.md: that file is the
// person's, and where the two differ somebody edited it.
func (b *Board) takeOver() {
	b.known = len(b.State.Tasks)
	owner := make(map[int]*Section, len(b.Todo.Sections))
	for _, s := range b.Todo.Sections {
		o := owner[s.Number]
		if t := b.State.Tasks[s.Number]; o == nil || t != nil && o.Title != t.Title && s.Title == t.Title {
			owner[s.Number] = s
		}
	}
	b.Todo.prefer = owner
	last, reach := b.reach()
	for _, s := range b.Todo.Sections {
		switch o := owner[s.Number]; {
		case s.Number == 0:
			if !b.number(s) {
				b.problem(Finding{Line: s.Line, What: fmt.Sprintf("%q gets no number: %v", s.Title, errNoNumber)})
				continue
			}
		case o != s:
			b.twice = append(b.twice, s)
			b.problem(Finding{Number: s.Number, Line: s.Line, What: fmt.Sprintf("the number stands in line %d, too; take it away from one of them and that gets a new one", o.Line)})
			continue
		case b.State.Tasks[s.Number] == nil && b.archived(s.Number):
			b.shelved = append(b.shelved, s)
			b.problem(Finding{Number: s.Number, Line: s.Line, What: "it is in specs/archive/ and stands here again; take the section away, or its number, and it is a new task"})
			continue
		case b.State.Tasks[s.Number] == nil && s.Number > reach:
			b.problem(Finding{Line: s.Line, What: fmt.Sprintf("the number %d is far beyond the last one, %d, and all later tasks would come after it; it is not taken over: take the number away and the task gets the next one, or set next_number in specs/state.json to %d if it is meant", s.Number, last, s.Number)})
			continue
		case b.State.Tasks[s.Number] == nil:
			b.adopt(s)
		}
		b.compare(s)
	}
	why := ""
	b.missing = b.State.which(func(t *Task) bool { return b.Todo.Find(t.Number) == nil })
	for i, n := range b.missing {
		if i == 0 {
			if line := openAt(b.Todo.file.Bytes()); line > 0 {
				why = fmt.Sprintf(": the fence or comment that begins in line %d there is not closed, close it", line)
			}
		}
		b.problem(Finding{Number: n, What: fmt.Sprintf("it is %s in state.json and does not stand in TODO.md%s", b.State.Tasks[n].Status.Words(), why)})
	}
	b.checkDeps()
}

// A number in TODO.md that state.json does not know is taken over where it is at most so
// far beyond the last one: a slip of the finger would use up all the numbers there are.
// A list that is new may begin anywhere, a date as a number included.
const (
	maxJump  = 10_000
	maxFirst = 99_999_999
)

// reach is the last number that there is, and the highest that is taken over from TODO.md.
func (b *Board) reach() (last, reach int) {
	for _, s := range b.Todo.Sections {
		if b.State.Tasks[s.Number] == nil && s.Number > last {
			last = s.Number
		}
	}
	if last < b.State.Next+maxJump {
		return b.State.Next - 1, last // as nearly always: nothing is far
	}
	numbers := make([]int, 0, len(b.Todo.Sections))
	for _, s := range b.Todo.Sections {
		numbers = append(numbers, s.Number)
	}
	slices.Sort(numbers)
	last = max(b.State.Next-1, b.given())
	reach = last + maxJump
	if last == 0 {
		reach = maxFirst
	}
	for _, n := range numbers {
		if n <= reach {
			last = max(last, n)
			reach = max(reach, n+maxJump)
		}
	}
	return last, min(reach, maxNumber)
}

func (b *Board) problem(f Finding) { b.Problems = append(b.Problems, f) }

func (b *Board) took(s *Section, format string, args ...any) {
	b.Taken = append(b.Taken, Finding{Number: s.Number, Line: s.Line, What: fmt.Sprintf(format, args...), Took: todoFile})
}

// maxNumber is the highest number of a task: as many digits as are read in a heading.
const maxNumber = 999_999_999

var errNoNumber = fmt.Errorf("the highest number that a task may have, %d, was given: give that task another one in TODO.md, and set next_number in state.json", maxNumber)

// free is the next number to be given, 0 where none is left.
func (b *Board) free() int {
	n := max(b.State.Next, b.given()+1)
	for b.Todo.Find(n) != nil {
		n++
	}
	if n < 1 || n > maxNumber {
		return 0
	}
	return n
}

// number gives a new task that a person wrote its number, and reports whether there was
// one.
func (b *Board) number(s *Section) bool {
	n := b.free()
	if n == 0 {
		return false
	}
	b.Todo.SetHeading(s, n, s.Title)
	b.adopt(s)
	return true
}

// adopt makes a task of a section that state.json does not know.
func (b *Board) adopt(s *Section) {
	now := b.now
	t := &Task{Number: s.Number, Title: s.Title, Slug: Slug(s.Title), Status: NotStarted, Created: &now, Updated: &now}
	b.State.Tasks[s.Number] = t
	b.adoptFolder(t)
	b.State.Next = max(b.State.Next, s.Number+1)
	if _, ok := s.Value("status"); !ok {
		b.Todo.Set(s, "status", NotStarted.Marker())
	}
	b.took(s, "new: %s", s.Title)
	b.changed(b.State.Tasks[s.Number], Change{Op: "added", To: NotStarted})
}

// adoptFolder gives a task the folder that there is of its number, with the files in it:
// of a state.json that was lost, more is left than TODO.md says.
func (b *Board) adoptFolder(t *Task) {
	if b.dir == nil {
		return
	}
	if b.folders == nil {
		b.folders = map[int]string{}
		for name := range b.names(".") {
			number, slug, ok := strings.Cut(name, "_")
			if n, err := strconv.Atoi(number); ok && err == nil {
				if b.folders[n] != "" {
					slug = "" // of several it cannot be told which
				}
				b.folders[n] = slug
			}
		}
	}
	if b.folders[t.Number] == "" {
		return
	}
	t.Slug = b.folders[t.Number]
	files := func(dir string) (out []string) {
		for name, file := range b.names(path.Join(t.Folder(), dir)) {
			if file && strings.HasSuffix(name, ".md") {
				out = append(out, path.Join(t.Folder(), dir, name))
			}
		}
		return out
	}
	t.Research, t.Plans = files("reports"), files("plans")
	if list := files("summaries"); len(list) > 0 {
		t.Summary = list[len(list)-1]
	}
}

// names are what is in a directory below specs/, in their order, each with whether it is a
// file; nothing where that cannot be told.
func (b *Board) names(dir string) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		d, done, err := b.dir()
		if err != nil {
			return
		}
		defer done()
		list, err := d.ReadDir(dir)
		if err != nil {
			return
		}
		for _, e := range list {
			if !yield(e.Name(), e.Type().IsRegular()) {
				return
			}
		}
	}
}

// compare takes a section's fields over into its task.
func (b *Board) compare(s *Section) {
	t := b.State.Tasks[s.Number]
	if s.Title != t.Title && s.Title != "" {
		b.took(s, "title %q → %q", t.Title, s.Title)
		t.Title = s.Title
	}
	if v, ok := s.Value("status"); ok {
		if status, known := ParseStatus(v); !known {
			b.problem(Finding{Number: s.Number, Line: s.Line, What: fmt.Sprintf("status %q is none of %s; state.json says %s", v, markers(), t.Status.Words())})
		} else if status != t.Status {
			b.took(s, "status %s → %s", t.Status.Words(), status.Words())
			b.become(t, status)
			b.dates(s, t)
		}
	}
	for _, f := range []struct {
		name string
		at   *string
		norm func(string) string
	}{{"priority", &t.Priority, strings.ToLower}, {"language", &t.Language, strings.ToLower}, {"effort", &t.Effort, nil}} {
		v, ok := s.Value(f.name)
		if f.norm != nil {
			v = f.norm(v)
		}
		if ok && f.name == "priority" && priorityOf(v) == "" {
			b.problem(Finding{Number: s.Number, Line: s.Line, What: fmt.Sprintf("priority %q is none of %s; state.json says %s", v, strings.Join(Priorities, ", "), cmp.Or(t.Priority, "nothing"))})
			continue
		}
		if ok && v != *f.at {
			if *f.at != "" {
				b.took(s, "%s %s → %s", f.name, *f.at, v)
			}
			*f.at = v
		}
	}
	t.EffortHours = hours(t.Effort)
	if v, ok := s.Value("depends"); ok {
		if list := numbers(v); !slices.Equal(list, t.DependsOn) {
			if len(t.DependsOn) > 0 {
				b.took(s, "depends on %s → %s", join(t.DependsOn), join(list))
			}
			t.DependsOn = list
		}
	} else if len(t.DependsOn) > 0 {
		b.took(s, "depends on %s → nothing", join(t.DependsOn))
		t.DependsOn = nil
	}
}

func markers() string {
	var all []string
	for _, s := range Statuses() {
		all = append(all, s.Marker())
	}
	return strings.Join(all, " ")
}

// numbers reads a list of tasks: "12, #14 and task 3".
func numbers(text string) []int {
	var out []int
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return r < '0' || r > '9' }) {
		if n, err := strconv.Atoi(w); err == nil && n > 0 && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

func join(list []int) string {
	if len(list) == 0 {
		return "nothing"
	}
	var words []string
	for _, n := range list {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, ", ")
}

// become gives a task a status and the times that go with it, whatever it was.
func (b *Board) become(t *Task, s Status) {
	now := b.now
	if (s == Blocked || s == Abandoned) && t.Status != Blocked && t.Status != Abandoned {
		t.Before = t.Status
	}
	if s != Blocked && s != Abandoned {
		t.Before, t.Reason = "", ""
	}
	if s != NotStarted && s != Abandoned && s != Blocked && t.Started == nil {
		t.Started = &now
	}
	t.Completed, t.Abandoned = nil, nil
	switch s {
	case Completed:
		t.Completed = &now
	case Abandoned:
		t.Abandoned = &now
	case InProgress, Partial, Blocked, NotStarted, Researched, Planned:
	}
	from := t.Status
	t.Status, t.Updated = s, &now
	if from != s {
		b.changed(t, Change{Op: "status", From: from, To: s})
	}
}

// dates writes a task's times into its section.
func (b *Board) dates(s *Section, t *Task) {
	for _, f := range []struct {
		name string
		at   *time.Time
	}{{"started", t.Started}, {"completed", t.Completed}, {"abandoned", t.Abandoned}} {
		text := stamp(f.at)
		if v, ok := s.Value(f.name); ok && f.at != nil && v != "" && f.name == "started" {
			continue // a person's own stays
		}
		b.Todo.SetOwn(s, f.name, text, isStamp)
	}
}

// isStamp reports whether the program may have written a value: people say when in other
// words.
func isStamp(value string) bool {
	at, err := time.Parse(time.RFC3339, value)
	return err == nil && stamp(&at) == value
}

func stamp(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// paths are a task's files of a kind, below specs/, the latest last.
func (t *Task) paths(kind string) []string {
	switch kind {
	case "research":
		return t.Research
	case "plan":
		return t.Plans
	case "summary":
		if t.Summary != "" {
			return []string{t.Summary}
		}
	}
	return nil
}

// link is a file below specs/ as TODO.md names it.
func link(name string) string { return fmt.Sprintf("[%s](%s)", path.Base(name), name) }

// priorityOf is a priority as it is kept, "" for what is none.
func priorityOf(text string) string {
	if p := strings.ToLower(strings.TrimSpace(text)); slices.Contains(Priorities, p) {
		return p
	}
	return ""
}

// Task is the task of a number. The error is [ErrNoTask], or [ErrTwice] where it cannot
// be told which one is meant.
func (b *Board) Task(n int) (*Task, error) {
	for _, s := range b.twice {
		if s.Number == n && b.Todo.Find(n) != nil {
			return nil, fmt.Errorf("task %d %w, in lines %d and %d: take the number away from one of them, which then gets a new one, or `reprise task check --fix` does that to the second", n, ErrTwice, b.Todo.Find(n).Line, s.Line)
		}
	}
	if t := b.State.Tasks[n]; t != nil {
		return t, nil
	}
	if b.archived(n) {
		return nil, fmt.Errorf("%w any more: %d is in specs/archive/", ErrNoTask, n)
	}
	return nil, fmt.Errorf("%w: %d", ErrNoTask, n)
}

// archived reports whether the archive has a task of a number.
func (b *Board) archived(n int) bool {
	shelf, err := b.Shelf()
	return err == nil && shelf.State.Tasks[n] != nil
}

// SetStatus changes a task's status where that is legal, in both files. reason is
// why it is blocked, partial or abandoned.
func (b *Board) SetStatus(n int, to Status, reason string) error {
	t, err := b.Task(n)
	if err != nil {
		return err
	}
	if !t.Status.CanBecome(to) {
		return &TransitionError{Number: n, From: t.Status, To: to}
	}
	b.set(t, to, reason)
	return nil
}

// Recover takes a task up again that has ended, is blocked or was left in the
// middle: it becomes what it was before.
func (b *Board) Recover(n int) error {
	t, err := b.Task(n)
	if err != nil {
		return err
	}
	to := t.Before
	if t.Status == InProgress {
		if done, _, err := b.endWhole(n); done || err != nil { // all that was left is its end
			return err
		}
	}
	switch {
	case t.Status == InProgress && len(t.Operations) > 0:
		to = t.Operations[0].From
	case t.Status == Completed, t.Status == Partial && to == "":
		to = Partial
	case t.Status != Blocked && t.Status != Abandoned && t.Status != InProgress && t.Status != Partial:
		return fmt.Errorf("task %d is %s: there is nothing to recover", n, t.Status.Words())
	}
	if to == "" {
		to = NotStarted
	}
	t.Operations = nil
	b.set(t, to, "")
	return nil
}

func (b *Board) set(t *Task, to Status, reason string) {
	was := t.Reason
	b.become(t, to)
	if to == Blocked || to == Partial || to == Abandoned {
		t.Reason = clip.Line(reason)
	}
	s := b.Todo.Find(t.Number)
	if s == nil {
		return
	}
	b.Todo.Set(s, "status", to.Marker())
	blocked := ""
	if to == Blocked {
		blocked = t.Reason
	}
	b.Todo.SetOwn(s, "blocked", blocked, func(v string) bool { return v == was })
	b.dates(s, t)
}

// Draft is a task that is to be made, or what of one is to be changed: there, nil
// leaves a thing as it is.
type Draft struct {
	Title, Priority, Language, Effort *string
	DependsOn                         *[]int
	Body                              string // new tasks only
}

// DraftError says what of a draft can be no task's.
type DraftError struct{ Problem string }

func (e *DraftError) Error() string { return e.Problem }

// Add makes a task and gives it the next number.
func (b *Board) Add(d Draft) (*Task, error) {
	if d.Title == nil || clip.Line(*d.Title) == "" {
		return nil, &DraftError{"a task needs a title"}
	}
	n := b.free()
	if n == 0 {
		return nil, errNoNumber
	}
	now := b.now
	t := &Task{Number: n, Status: NotStarted, Priority: DefaultPriority, Language: DefaultLanguage, Created: &now}
	if err := b.fill(t, d); err != nil {
		return nil, err
	}
	t.Slug = Slug(t.Title)
	level := 3
	if last := len(b.Todo.Sections); last > 0 {
		level = b.Todo.Sections[last-1].Level
	}
	text, _ := redact.New().String(d.Body) // TODO.md is committed
	body, err := bodyText(text, level)
	if err != nil {
		return nil, err
	}
	b.State.Tasks[n] = t
	b.State.Next = n + 1
	if err := b.depend(t, d.DependsOn); err != nil {
		return nil, err
	}
	b.Todo.Append(n, t.Title, [][2]string{
		{"effort", t.Effort}, {"status", t.Status.Marker()}, {"priority", t.Priority}, {"language", t.Language}, {"depends", dependsText(t.DependsOn)},
	}, body)
	b.changed(t, Change{Op: "added", To: NotStarted})
	return t, nil
}

func dependsText(list []int) string {
	if len(list) == 0 {
		return ""
	}
	return join(list)
}

// Edit changes what a draft names.
func (b *Board) Edit(n int, d Draft) error {
	t, err := b.Task(n)
	if err != nil {
		return err
	}
	was := *t
	if err := b.fill(t, d); err != nil {
		return err
	}
	if err := b.depend(t, d.DependsOn); err != nil {
		return err
	}
	if t.Title == was.Title && t.Priority == was.Priority && t.Language == was.Language && t.Effort == was.Effort && slices.Equal(t.DependsOn, was.DependsOn) {
		t.Updated = was.Updated // what it was already is nothing to commit
	}
	b.changed(t, Change{Op: "edited"})
	s := b.Todo.Find(n)
	if s == nil {
		return nil
	}
	if d.Title != nil {
		b.Todo.SetHeading(s, n, t.Title)
	}
	for _, f := range []struct {
		name  string
		asked bool
		text  string
	}{
		{"effort", d.Effort != nil, t.Effort}, {"priority", d.Priority != nil, t.Priority},
		{"language", d.Language != nil, t.Language}, {"depends", d.DependsOn != nil, dependsText(t.DependsOn)},
	} {
		if f.asked {
			b.Todo.Set(s, f.name, f.text)
		}
	}
	return nil
}

// maxTitle is the longest title of a task in bytes, as of an item of the queue.
const maxTitle = 500

func (b *Board) fill(t *Task, d Draft) error {
	for what, text := range map[string]*string{"the title": d.Title, "the language": d.Language, "the effort": d.Effort} {
		if text != nil {
			if err := checkText(what, *text); err != nil {
				return err
			}
		}
	}
	if d.Title != nil {
		title, _ := redact.New().String(clip.Line(*d.Title)) // TODO.md and state.json are committed
		if t.Title = title; t.Title == "" {
			return &DraftError{"a task needs a title"}
		}
		if len(title) > maxTitle {
			return &DraftError{fmt.Sprintf("the title has %d bytes, more than %d: put the long part into the description", len(title), maxTitle)}
		}
	}
	if d.Priority != nil {
		p := priorityOf(*d.Priority)
		if p == "" {
			return &DraftError{fmt.Sprintf("priority %q is none of %s", *d.Priority, strings.Join(Priorities, ", "))}
		}
		t.Priority = p
	}
	if d.Language != nil {
		l := strings.ToLower(clip.Line(*d.Language))
		if strings.ContainsAny(l, "[]*`") || len(l) > 40 {
			return &DraftError{fmt.Sprintf("language %q: give one word, such as go or markdown", *d.Language)}
		}
		t.Language = l
	}
	if d.Effort != nil {
		t.Effort = clip.Line(*d.Effort)
		t.EffortHours = hours(t.Effort)
	}
	now := b.now
	t.Updated = &now
	return nil
}

// depend sets what a task depends on, unless tasks would wait for each other.
func (b *Board) depend(t *Task, on *[]int) error {
	if on == nil {
		return nil
	}
	for _, n := range *on {
		if n == t.Number {
			return &DraftError{fmt.Sprintf("task %d cannot depend on itself", n)}
		}
		if b.State.Tasks[n] == nil {
			return fmt.Errorf("depends on task %d: %w", n, ErrNoTask)
		}
	}
	old := t.DependsOn
	t.DependsOn = slices.Clone(*on)
	if c := cycle(b.deps()); c != nil {
		t.DependsOn = old
		return fmt.Errorf("tasks would wait for each other: %s", arrows(c))
	}
	return nil
}

func (b *Board) deps() map[int][]int {
	deps := map[int][]int{}
	for n, t := range b.State.Tasks {
		if len(t.DependsOn) > 0 { // who waits for nothing is in no circle
			deps[n] = t.DependsOn
		}
	}
	return deps
}

// checkDeps finds what a hand edit made of dependencies.
func (b *Board) checkDeps() {
	for _, n := range b.State.which(func(t *Task) bool { return len(t.DependsOn) > 0 }) {
		for _, d := range b.State.Tasks[n].DependsOn {
			if b.State.Tasks[d] == nil && d >= b.State.Next {
				b.problem(Finding{Number: n, What: fmt.Sprintf("it depends on task %d, which there is not", d)})
			}
		}
	}
	if c := cycle(b.deps()); c != nil {
		b.problem(Finding{Number: c[0], What: "tasks wait for each other: " + arrows(c)})
	}
}

// Waits are the tasks that one depends on and that are not complete.
func (b *Board) Waits(t *Task) []int {
	var out []int
	for _, n := range t.DependsOn {
		if d := b.State.Tasks[n]; d != nil && d.Status != Completed {
			out = append(out, n)
		}
	}
	return out
}

// SortByWork puts tasks in the order in which people look at them: what is being worked
// on first, then what is next, the most urgent first.
func SortByWork(list []*Task) {
	order := []Status{InProgress, Partial, Planned, Researched, NotStarted, Blocked, Completed, Abandoned}
	slices.SortStableFunc(list, func(a, b *Task) int {
		return cmp.Or(slices.Index(order, a.Status)-slices.Index(order, b.Status), rankOf(a)-rankOf(b))
	})
}
