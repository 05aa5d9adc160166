package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"reprise/internal/proc"
)

// stateVersion is of state.json.
const stateVersion = 1

// Priorities of a task, the most urgent first.
var Priorities = []string{"critical", "high", "medium", "low"}

// DefaultPriority and DefaultLanguage are of a task that says nothing.
const (
	DefaultPriority = "medium"
	DefaultLanguage = "general"
)

// Task is one task as state.json has it.
type Task struct {
	Number   int    `json:"-"`
	Title    string `json:"title"`
	Slug     string `json:"slug"` // of its folder, NNN_slug; it stays when the title changes
	Status   Status `json:"status"`
	Priority string `json:"priority,omitempty"`
	Language string `json:"language,omitempty"`
	Effort   string `json:"effort,omitempty"` // as a person says it: "3 hours"
	// EffortHours is Effort as a number, where it can be read as one.
	EffortHours float64 `json:"effort_hours,omitempty"`
	DependsOn   []int   `json:"depends_on,omitempty"`

	Created   *time.Time `json:"created,omitempty"`
	Started   *time.Time `json:"started,omitempty"`
	Completed *time.Time `json:"completed,omitempty"`
	Abandoned *time.Time `json:"abandoned,omitempty"`
	Updated   *time.Time `json:"updated,omitempty"`

	// Before is the status that blocking or abandoning took away.
	Before Status `json:"status_before,omitempty"`
	Reason string `json:"reason,omitempty"` // why it is blocked, partial or abandoned

	Operations []*Operation `json:"operations,omitempty"` // what is being done to it now: one step, or phases side by side

	Research []string `json:"research,omitempty"` // paths below specs/, the latest last
	Plans    []string `json:"plans,omitempty"`
	Summary  string   `json:"summary,omitempty"`

	extra map[string]json.RawMessage
}

// Operation is a step of a task's work that somebody has begun.
type Operation struct {
	Name    string    `json:"name"`    // "research", "plan", "revise", "implement", "review"
	Session string    `json:"session"` // sess_…, of the delegation
	Started time.Time `json:"started"`
	// From is the status that the task goes back to when the step comes to nothing.
	From  Status `json:"from,omitempty"`
	Phase int    `json:"phase,omitempty"`
	// Agent does it, and Path is through whom it came to that one, outermost first.
	Agent string   `json:"agent,omitempty"`
	Path  []string `json:"path,omitempty"`
	Focus string   `json:"focus,omitempty"`
	// Artifact is the file below specs/ that the agent is to write.
	Artifact string `json:"artifact,omitempty"`
	// Place is the checkout that it works in, "" for the main one; below the user's own
	// directory it begins with ~, for state.json is committed.
	Place string `json:"place,omitempty"`
	// By is on whose behalf: "client:SESSION" or "item:ID" of the queue.
	By string `json:"by,omitempty"`
	// Until is when it is out of time; who has no process that can be looked for is
	// taken for gone then.
	Until time.Time `json:"until,omitzero"`
	// Mended says that one answer in a wrong form was refused.
	Mended bool `json:"mended,omitempty"`
	// Owner is the process that began it and Run the agent's, for who asks whether
	// they are still there.
	Owner *proc.ID `json:"owner,omitempty"`
	Run   string   `json:"run,omitempty"`
}

// Op is the operation of a session, nil where that works at something else.
func (t *Task) Op(session string) *Operation {
	for _, o := range t.Operations {
		if o.Session == session {
			return o
		}
	}
	return nil
}

// opAt is the operation on a phase; of phase 0, on the task as a whole.
func (t *Task) opAt(phase int) *Operation {
	for _, o := range t.Operations {
		if o.Phase == phase {
			return o
		}
	}
	return nil
}

func (t *Task) dropOp(session string) {
	t.Operations = slices.DeleteFunc(t.Operations, func(o *Operation) bool { return o.Session == session })
	if len(t.Operations) == 0 {
		t.Operations = nil
	}
}

// State is state.json.
type State struct {
	Next    int // the next number to be given; never given before
	Tasks   map[int]*Task
	Reviews []*Review // the latest last

	extra map[string]json.RawMessage // what other programs keep there
}

// ErrDamaged says that state.json cannot be read.
var ErrDamaged = errors.New("state.json cannot be read")

// ErrNewer says that a newer reprise wrote state.json.
var ErrNewer = errors.New("which this program does not know: use the newer reprise")

// ErrDoubled says that state.json has two entries of a number, which git leaves where both
// sides of a merge gave it.
var ErrDoubled = errors.New("has two entries, as a merge leaves them; `reprise task check --fix` keeps the tasks of both")

type plainTask Task

// UnmarshalJSON keeps what it does not know.
func (t *Task) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, (*plainTask)(t)); err != nil {
		return err
	}
	return unknown(data, knownTask(), &t.extra)
}

// MarshalJSON writes what is known in its order, then the rest.
func (t *Task) MarshalJSON() ([]byte, error) {
	w := writer{}
	w.task(t, "\n")
	return w.b, w.err
}

func withExtra(data []byte, extra map[string]json.RawMessage) ([]byte, error) {
	var b bytes.Buffer
	b.Write(data[:len(data)-1])
	for i, k := range slices.Sorted(maps.Keys(extra)) {
		if i > 0 || len(data) > 2 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(k)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(extra[k])
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func unknown(data []byte, known map[string]bool, into *map[string]json.RawMessage) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	maps.DeleteFunc(all, func(k string, _ json.RawMessage) bool { return known[k] })
	if *into = all; len(all) == 0 {
		*into = nil
	}
	return nil
}

func knownTask() map[string]bool {
	return map[string]bool{
		"title": true, "slug": true, "status": true, "priority": true, "language": true, "effort": true,
		"effort_hours": true, "depends_on": true, "created": true, "started": true, "completed": true,
		"abandoned": true, "updated": true, "status_before": true, "reason": true, "operations": true,
		"research": true, "plans": true, "summary": true,
	}
}

// ParseState reads state.json. nil is an empty state; a file without anything in it is none,
// for it is what a full disk leaves. The error is [ErrDamaged], with the place, or [ErrNewer].
func ParseState(data []byte) (*State, error) {
	if data == nil {
		return &State{Next: 1, Tasks: map[int]*Task{}}, nil
	}
	if blank(data) {
		return nil, fmt.Errorf("%w: it has nothing in it", ErrDamaged)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if s, ok := quickState(data); ok {
		return s, nil
	}
	return slowState(data)
}

func slowState(data []byte) (*State, error) {
	s := &State{Next: 1, Tasks: map[int]*Task{}}
	var f struct {
		V       int                   `json:"v"`
		Next    int                   `json:"next_number"`
		Tasks   map[string]*plainTask `json:"tasks"`
		Reviews []*Review             `json:"reviews"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("%w: %w%s", ErrDamaged, err, where(data, err))
	}
	// What other programs keep there is kept, and is looked for only where there is
	// any: a long list is read at each command.
	var more struct {
		Tasks map[string]*Task `json:"tasks"`
	}
	strange := strangeKeys(data)
	if strange {
		if err := json.Unmarshal(data, &more); err != nil {
			return nil, fmt.Errorf("%w: %w%s", ErrDamaged, err, where(data, err))
		}
	}
	if n := twiceIn(data); n > 0 {
		return nil, fmt.Errorf("task %d %w", n, ErrDoubled)
	}
	if f.V > stateVersion {
		return nil, fmt.Errorf("state.json is of version %d, %w", f.V, ErrNewer)
	}
	for k, plain := range f.Tasks {
		t := (*Task)(plain)
		if strange {
			t = more.Tasks[k]
		}
		n, err := strconv.Atoi(k)
		if err != nil || n < 1 || n > maxNumber || t == nil {
			return nil, fmt.Errorf("%w: %q is no number of a task", ErrDamaged, k)
		}
		if t.Status == "" {
			t.Status = NotStarted
		}
		if status, ok := ParseStatus(string(t.Status)); ok {
			t.Status = status
		} else {
			return nil, fmt.Errorf("%w: task %d has the unknown status %q", ErrDamaged, n, t.Status)
		}
		t.Number = n
		s.Tasks[n] = t
		s.Next = max(s.Next, n+1)
	}
	s.Next = max(s.Next, f.Next)
	for _, r := range f.Reviews {
		if r == nil || r.Number < 1 {
			return nil, fmt.Errorf("%w: a review without a number", ErrDamaged)
		}
		s.Reviews = append(s.Reviews, r)
	}
	if strange {
		if err := unknown(data, knownState(), &s.extra); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	return s, nil
}

func knownState() map[string]bool {
	return map[string]bool{"v": true, "next_number": true, "tasks": true, "reviews": true}
}

// strangeKeys reports whether a state.json, which is valid JSON, has a field that this
// program does not know, at its top or in a task.
func strangeKeys(data []byte) bool {
	top, of := knownState(), knownTask()
	depth, tasks := 0, false // tasks: within the object of that name
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 2 {
				tasks = false
			}
		case '"':
			from := i + 1
			for i++; data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
			name := data[from:i]
			at := i + 1
			for at < len(data) && (data[at] == ' ' || data[at] == '\n' || data[at] == '\t' || data[at] == '\r') {
				at++
			}
			switch isKey := at < len(data) && data[at] == ':'; {
			case !isKey:
			case depth == 1 && !top[string(name)], depth == 3 && tasks && !of[string(name)]:
				return true
			case depth == 1:
				tasks = string(name) == "tasks"
			}
		}
	}
	return false
}

// where gives the line and column of a JSON error.
func where(data []byte, err error) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var at int64
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &kind):
		at = kind.Offset
	default:
		return ""
	}
	before := data[:min(int(at), len(data))]
	return fmt.Sprintf(" (line %d, column %d)", bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n'))
}

// Numbers are the numbers of all tasks, ascending.
func (s *State) Numbers() []int { return slices.Sorted(maps.Keys(s.Tasks)) }

// which are the numbers of the tasks that are meant, ascending.
func (s *State) which(meant func(t *Task) bool) []int {
	var out []int
	for n, t := range s.Tasks {
		if meant(t) {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// Bytes is state.json, a line a field, tasks by number.
func (s *State) Bytes() ([]byte, error) {
	w := writer{b: make([]byte, 0, 4096+400*len(s.Tasks))}
	w.object("\n", func() {
		w.key("v").integer(stateVersion)
		w.key("next_number").integer(s.Next)
		w.key("tasks").object("\n  ", func() {
			for _, n := range s.Numbers() {
				w.key(strconv.Itoa(n)).task(s.Tasks[n], "\n    ")
			}
		})
		if len(s.Reviews) > 0 {
			w.key("reviews").value(s.Reviews)
		}
		w.extra(s.extra)
	})
	if w.err != nil {
		return nil, fmt.Errorf("write state.json: %w", w.err)
	}
	return append(w.b, '\n'), nil
}

// Folder is the task's folder below specs/: 012_add_login.
func (t *Task) Folder() string { return fmt.Sprintf("%03d_%s", t.Number, t.Slug) }

// maxSlug keeps names of folders readable.
const maxSlug = 50

// Slug is a title as part of a folder's name: words of letters and digits in lower
// case, joined by underscores, at most 50 characters, "task" where nothing is left.
func Slug(title string) string {
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	var b strings.Builder
	n := 0
	for _, w := range words {
		size := len([]rune(w))
		if n > 0 && n+1+size > maxSlug {
			break
		}
		if n > 0 {
			b.WriteByte('_')
			n++
		}
		if r := []rune(w); size > maxSlug {
			w, size = string(r[:maxSlug]), maxSlug
		}
		b.WriteString(w)
		n += size
	}
	if b.Len() == 0 {
		return "task"
	}
	return b.String()
}

// hours reads an effort: "3 hours", "90 min", "2 days" (of eight hours), "1-2 h"
// (the larger); 0 where it is no such thing.
func hours(effort string) float64 {
	if effort == "" {
		return 0
	}
	text := strings.ToLower(strings.TrimSpace(effort))
	i := strings.IndexFunc(text, func(r rune) bool { return unicode.IsLetter(r) })
	number, unit := text, ""
	if i >= 0 {
		number, unit = text[:i], text[i:]
	}
	if from := strings.LastIndexAny(number, "-–"); from >= 0 {
		number = number[from:]
	}
	v, err := strconv.ParseFloat(strings.Trim(number, " -–~≈<>"), 64)
	if err != nil || v < 0 || v > 1e6 {
		return 0
	}
	switch {
	case unit == "", strings.HasPrefix(unit, "h"):
		return v
	case strings.HasPrefix(unit, "m") && !strings.HasPrefix(unit, "mo"):
		return v / 60
	case strings.HasPrefix(unit, "d"):
		return v * 8
	case strings.HasPrefix(unit, "w"):
		return v * 40
	}
	return 0
}
