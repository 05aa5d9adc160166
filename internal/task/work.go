package task

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
)

// Operations of a task's work.
const (
	OpResearch  = "research"
	OpPlan      = "plan"
	OpImplement = "implement"
	OpRevise    = "revise"
)

// ErrOperation says that somebody else works at the task.
var ErrOperation = errors.New("somebody works at it")

// Begin starts an operation: the task is in progress, for the session that is named.
// Going on with an operation of the same session changes nothing. Another one's is
// refused unless takeOver is set, which is for those who know that it is dead.
func (b *Board) Begin(n int, op, session string, takeOver bool) (*Task, error) {
	t, err := b.Task(n)
	if err != nil {
		return nil, err
	}
	if o := t.Operation; o != nil && t.Status == InProgress {
		if o.Session == session && o.Name == op {
			return t, nil
		}
		if !takeOver {
			return nil, fmt.Errorf("%w: task %d: %s by %s since %s; `reprise task recover %d` takes it away from them", ErrOperation, n, o.Name, o.Session, stamp(&o.Started), n)
		}
		t.Operation = nil
		b.set(t, o.From, "")
	}
	if waits := b.Waits(t); op == OpImplement && len(waits) > 0 {
		return nil, fmt.Errorf("task %d waits for task %s", n, join(waits))
	}
	if !t.Status.CanBecome(InProgress) {
		return nil, &TransitionError{Number: n, From: t.Status, To: InProgress}
	}
	from := t.Status
	if from == InProgress || from == Blocked {
		from = cmp.Or(t.Before, NotStarted)
	}
	b.set(t, InProgress, "")
	t.Operation = &Operation{Name: op, Session: session, Started: b.now, From: from}
	return t, nil
}

// Outcome is how an operation ended.
type Outcome struct {
	Op      string    `json:"operation"`
	Session string    `json:"session,omitempty"`
	Status  string    `json:"status"` // completed, partial, failed, blocked
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	Phase   int       `json:"phase,omitempty"`
	Files   []string  `json:"files,omitempty"`
	Reason  string    `json:"reason,omitempty"`
}

// AddReport files what research found, as reports/research-NNN.md.
func (b *Board) AddReport(n int, text []byte) (name string, err error) {
	t, err := b.Task(n)
	if err != nil {
		return "", err
	}
	name = b.fresh(t, "reports", "research")
	b.Write(name, text)
	return name, b.adoptReport(t, name)
}

// AddPlan files a plan, as plans/implementation-NNN.md; an earlier one stays as it
// is. The error says what of it cannot be worked with.
func (b *Board) AddPlan(n int, text []byte) (name string, err error) {
	t, err := b.Task(n)
	if err != nil {
		return "", err
	}
	name = b.fresh(t, "plans", "implementation")
	b.Write(name, text)
	if err := b.adoptPlan(t, name); err != nil {
		delete(b.writes, name)
		return "", err
	}
	return name, nil
}

func (b *Board) addPlan(t *Task, text []byte) error {
	if err := checkPlan(t, text); err != nil {
		return err
	}
	name := b.fresh(t, "plans", "implementation")
	b.Write(name, text)
	t.Plans = append(t.Plans, name)
	b.link(t, "plan", name)
	b.changed(t, Change{Op: "plan", Files: []string{name}})
	return nil
}

// checkPlan says what of a plan cannot be worked with.
func checkPlan(t *Task, text []byte) error {
	p, err := ParsePlan(text)
	if err == nil {
		err = p.Check()
	}
	if err == nil && len(p.Phases) == 0 {
		err = errors.New("it has no phase: each begins with a heading such as `### Phase 1: What is done [NOT STARTED]`")
	}
	if err != nil {
		return fmt.Errorf("plan of task %d: %w", t.Number, err)
	}
	return nil
}

// Plan is a task's latest plan and its name below specs/.
func (b *Board) Plan(t *Task) (p *Plan, name string, err error) {
	if len(t.Plans) == 0 {
		return nil, "", fmt.Errorf("task %d has no plan; `reprise task plan %d` makes one", t.Number, t.Number)
	}
	name = t.Plans[len(t.Plans)-1]
	data, err := b.Read(name)
	if err == nil {
		p, err = ParsePlan(data)
	}
	if err != nil {
		return nil, name, fmt.Errorf("plan of task %d, %s: %w", t.Number, name, err)
	}
	return p, name, nil
}

// SetPhase gives a phase of a task's plan a status, and the task the one that goes
// with it: in progress as soon as one phase is, completed with the last.
func (b *Board) SetPhase(n, phase int, to Status, reason string) (*Task, error) {
	t, err := b.movePhase(n, phase, to, reason)
	if err != nil || to != Completed {
		return t, err
	}
	p, _, err := b.Plan(t)
	if err == nil && p.Next() == nil {
		err = b.Complete(n, nil)
	}
	return t, err
}

// movePhase is SetPhase without the end of the task.
func (b *Board) movePhase(n, phase int, to Status, reason string) (*Task, error) {
	t, err := b.Task(n)
	if err != nil {
		return nil, err
	}
	p, name, err := b.Plan(t)
	if err != nil {
		return nil, err
	}
	ph := p.Phase(phase)
	if ph == nil {
		return nil, fmt.Errorf("%s has no phase %d", name, phase)
	}
	if !ph.Status.CanBecome(to) && ph.Status != Completed {
		return nil, fmt.Errorf("phase %d of task %d is %s and cannot become %s", phase, n, ph.Status.Words(), to.Words())
	}
	if err := p.SetStatus(phase, to); err != nil {
		return nil, err
	}
	b.Write(name, p.Bytes())
	b.changed(t, Change{Op: "phase", Phase: phase, To: to, Reason: oneLine(reason)})
	switch {
	case to == InProgress && t.Status != InProgress:
		if !t.Status.CanBecome(InProgress) {
			return nil, &TransitionError{Number: n, From: t.Status, To: InProgress}
		}
		b.set(t, InProgress, "")
	case to == Blocked || to == Partial:
		b.set(t, to, reason)
	}
	if t.Operation != nil && to == InProgress {
		t.Operation.Phase = phase
	}
	if to == Completed {
		b.end(t, "completed", phase, "", name)
	}
	return t, nil
}

// Complete ends a task, with a summary where there is one, and settles what it was
// to fix.
func (b *Board) Complete(n int, summary []byte) error {
	t, err := b.Task(n)
	if err != nil {
		return err
	}
	if !t.Status.CanBecome(Completed) {
		return &TransitionError{Number: n, From: t.Status, To: Completed}
	}
	if summary != nil {
		name := b.fresh(t, "summaries", "implementation-summary")
		b.Write(name, summary)
		t.Summary = name
		b.link(t, "summary", name)
	}
	if t.Operation != nil && t.Operation.Phase == 0 {
		b.end(t, "completed", 0, "")
	}
	t.Operation = nil
	b.set(t, Completed, "")
	l, err := b.Failures()
	if err != nil {
		return nil // errors.json is said to be damaged where it is asked for
	}
	l.settle(n, b.now)
	return nil
}

// Stop ends an operation that did not come to its end. What was found stays; the
// task is in progress no more: partial where something was done, else what it was
// before.
func (b *Board) Stop(n int, status, reason string) error {
	t, err := b.Task(n)
	if err != nil {
		return err
	}
	from := NotStarted
	if t.Operation != nil {
		from = t.Operation.From
	}
	b.end(t, status, 0, reason)
	switch status {
	case "blocked":
		b.set(t, Blocked, reason)
	case "partial":
		b.set(t, Partial, reason)
	case "failed":
		b.set(t, from, "")
	default:
		return fmt.Errorf("an operation ends completed, partial, failed or blocked, not %q", status)
	}
	return nil
}

// link names a task's file in TODO.md.
func (b *Board) link(t *Task, field, name string) {
	if s := b.Todo.Find(t.Number); s != nil {
		b.Todo.Set(s, field, link(name))
	}
}

// fresh is the next free name of a kind of files of a task. Its folder is made when
// the file is written.
func (b *Board) fresh(t *Task, dir, kind string) string {
	for i := 1; ; i++ {
		name := path.Join(t.Folder(), dir, fmt.Sprintf("%s-%03d.md", kind, i))
		if _, err := b.Read(name); errors.Is(err, fs.ErrNotExist) {
			return name
		}
	}
}

// ownState is the state.json in a task's folder: what is the task's alone.
type ownState struct {
	V          int       `json:"v"`
	Number     int       `json:"number"`
	Operations []Outcome `json:"operations"`
}

// end notes in the task's folder how an operation went.
func (b *Board) end(t *Task, status string, phase int, reason string, files ...string) {
	o := Outcome{Status: status, Phase: phase, Reason: oneLine(reason), Files: files, Started: b.now, Ended: b.now}
	if op := t.Operation; op != nil {
		o.Op, o.Session, o.Started = op.Name, op.Session, op.Started
	}
	if phase == 0 {
		t.Operation = nil
	}
	own, err := b.Own(t)
	if err != nil {
		return // it is told by a check; what is noted there is no reason to stop
	}
	own = append(own, o)
	data, err := json.MarshalIndent(ownState{V: 1, Number: t.Number, Operations: own}, "", "  ")
	if err != nil {
		return
	}
	b.Write(path.Join(t.Folder(), stateFile), append(data, '\n'))
}

// Own are the operations of a task so far, the latest last.
func (b *Board) Own(t *Task) ([]Outcome, error) {
	data, err := b.Read(path.Join(t.Folder(), stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var own ownState
	if err := json.Unmarshal(data, &own); err != nil {
		return nil, fmt.Errorf("%s: %w%s", path.Join(t.Folder(), stateFile), err, where(data, err))
	}
	return own.Operations, nil
}

// Message is the subject of the commit for a step of a task's work.
func Message(t *Task, op string, phase int, title string) string {
	switch {
	case op == OpImplement && phase > 0:
		return fmt.Sprintf("task %d phase %d: %s", t.Number, phase, lower(title))
	case op == OpImplement:
		return fmt.Sprintf("task %d: %s", t.Number, lower(t.Title))
	case op == OpResearch:
		return fmt.Sprintf("task %d: complete research", t.Number)
	case op == OpPlan:
		return fmt.Sprintf("task %d: create implementation plan", t.Number)
	case op == OpRevise:
		return fmt.Sprintf("task %d: revise implementation plan", t.Number)
	}
	return fmt.Sprintf("task %d: %s", t.Number, op)
}

// lower is a title within a sentence: its first letter small, unless the word is a
// name or all in capitals.
func lower(title string) string {
	word, _, _ := strings.Cut(title, " ")
	if word == "" || strings.ToUpper(word) == word && len(word) > 1 || strings.ToLower(word[1:]) != word[1:] {
		return title
	}
	return strings.ToLower(word[:1]) + title[1:]
}
