package task

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/internal/clip"
)

// Operations of a task's work.
const (
	OpResearch  = "research"
	OpPlan      = "plan"
	OpImplement = "implement"
	OpRevise    = "revise"
	OpReview    = "review"
)

// Operations are those that a task's work is made of.
func Operations() []string { return []string{OpResearch, OpPlan, OpRevise, OpImplement} }

// ErrOperation says that somebody else works at the task.
var ErrOperation = errors.New("somebody works at it")

// Begin starts an operation: the task is in progress, for the session that want names.
// Where that session, or somebody on the same behalf, works at the very step already,
// it goes on with what it has. Other work at the task is refused, unless dead says that
// nobody does it any more, or both are at phases that do not wait for each other.
func (b *Board) Begin(n int, want Operation, dead func(*Operation) bool) (*Operation, error) {
	t, err := b.Task(n)
	if err != nil {
		return nil, err
	}
	if t.Status != InProgress {
		t.Operations = nil // a person took it away from them
	}
	from := t.Status
	if from == InProgress || from == Blocked {
		from = cmp.Or(t.Before, b.rest(t))
	}
	for _, o := range slices.Clone(t.Operations) {
		switch {
		case o.Name == want.Name && o.Phase == want.Phase && (o.Session == want.Session || o.By != "" && o.By == want.By):
			return o, nil
		case dead != nil && dead(o):
			from = o.From
			t.dropOp(o.Session)
		case o.Phase > 0 && want.Phase > 0 && o.Phase != want.Phase && b.besides(t, want.Phase):
			from = o.From
		default:
			return nil, fmt.Errorf("%w: task %d: %s by %s since %s; `reprise task recover %d` takes it away from them", ErrOperation, n, o.Name, o.Session, stamp(&o.Started), n)
		}
	}
	if waits := b.Waits(t); want.Name == OpImplement && len(waits) > 0 {
		return nil, fmt.Errorf("task %d %w task %s", n, ErrWaits, join(waits))
	}
	if !t.Status.CanBecome(InProgress) {
		return nil, &TransitionError{Number: n, From: t.Status, To: InProgress}
	}
	want.Started, want.From = b.now, from
	t.Operations = append(t.Operations, &want)
	b.set(t, InProgress, "")
	return &want, nil
}

// ErrEnded says that a task has ended, so that nothing of it moves any more.
var ErrEnded = errors.New("it has ended")

// ErrNoPlan says that a task has no plan yet.
var ErrNoPlan = errors.New("has no plan")

// ErrNoStep says that no step of a session is known.
var ErrNoStep = errors.New("no such step")

// ErrWaits says that something comes before a task or a phase.
var ErrWaits = errors.New("waits for")

// besides reports whether a phase may be worked at while others are.
func (b *Board) besides(t *Task, phase int) bool {
	p, _, err := b.Plan(t)
	return err == nil && slices.ContainsFunc(p.Ready(), func(ph *Phase) bool { return ph.Number == phase })
}

// rest is what a task is whose work stopped in the middle, by what there is of it.
func (b *Board) rest(t *Task) Status {
	p, _, err := b.Plan(t)
	switch {
	case err == nil && slices.ContainsFunc(p.Phases, func(ph Phase) bool { return ph.Status != NotStarted }):
		return Partial
	case len(t.Plans) > 0:
		return Planned
	case len(t.Research) > 0:
		return Researched
	}
	return NotStarted
}

// Outcome is how an operation ended.
type Outcome struct {
	Op      string    `json:"operation"`
	Session string    `json:"session,omitempty"`
	Agent   string    `json:"agent,omitempty"`
	Run     string    `json:"run,omitempty"`
	By      string    `json:"by,omitempty"` // on whose behalf, see Operation
	Status  string    `json:"status"`       // completed, partial, failed, blocked
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
	if name, err = b.fresh(t, "reports", "research"); err != nil {
		return "", err
	}
	b.Write(name, text)
	return name, b.adoptReport(t, t.opAt(0), name)
}

// AddPlan files a plan, as plans/implementation-NNN.md; an earlier one stays as it
// is. The error says what of it cannot be worked with.
func (b *Board) AddPlan(n int, text []byte) (name string, err error) {
	t, err := b.Task(n)
	if err != nil {
		return "", err
	}
	if name, err = b.fresh(t, "plans", "implementation"); err != nil {
		return "", err
	}
	b.Write(name, text)
	if err := b.adoptPlan(t, t.opAt(0), name); err != nil {
		delete(b.writes, name)
		return "", err
	}
	return name, nil
}

func (b *Board) addPlan(t *Task, text []byte) error {
	if err := checkPlan(t, text); err != nil {
		return err
	}
	name, err := b.fresh(t, "plans", "implementation")
	if err != nil {
		return err
	}
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
		return nil, "", fmt.Errorf("task %d %w; `reprise task plan %d` makes one", t.Number, ErrNoPlan, t.Number)
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
	if t.Status.Ended() && to != ph.Status {
		return nil, fmt.Errorf("%w: task %d is %s; take it up again first with `reprise task recover %d`", ErrEnded, n, t.Status.Words(), n)
	}
	if !ph.Status.CanBecome(to) && ph.Status != Completed {
		return nil, fmt.Errorf("phase %d of task %d is %s and cannot become %s", phase, n, ph.Status.Words(), to.Words())
	}
	if err := p.SetStatus(phase, to); err != nil {
		return nil, err
	}
	b.Write(name, p.Bytes())
	b.changed(t, Change{Op: "phase", Phase: phase, To: to, Reason: clip.Line(reason)})
	switch {
	case to == InProgress && t.Status != InProgress:
		if !t.Status.CanBecome(InProgress) {
			return nil, &TransitionError{Number: n, From: t.Status, To: InProgress}
		}
		b.set(t, InProgress, "")
	case to == Blocked || to == Partial:
		b.set(t, to, reason)
	}
	if to == Completed {
		b.end(t, t.opAt(phase), "completed", phase, "", name)
	}
	return t, nil
}

// endPhase ends the work of an operation at a phase. While others work at the task
// it is in progress; then it is what the worst of its phases is.
func (b *Board) endPhase(t *Task, o *Operation, status, reason string) error {
	p, name, err := b.Plan(t)
	if err != nil {
		return err
	}
	to := Partial // of one that failed, too: something of it may be there
	switch status {
	case "completed":
		to = Completed
	case "blocked":
		to = Blocked
	}
	if err := p.SetStatus(o.Phase, to); err != nil {
		return err
	}
	b.Write(name, p.Bytes())
	b.changed(t, Change{Op: "phase", Phase: o.Phase, To: to, Reason: clip.Line(reason)})
	b.end(t, o, status, o.Phase, reason, name)
	if len(t.Operations) > 0 {
		return nil
	}
	has := func(s Status) bool {
		return slices.ContainsFunc(p.Phases, func(ph Phase) bool { return ph.Status == s })
	}
	switch {
	case has(Blocked):
		b.set(t, Blocked, reason)
	case has(Partial):
		b.set(t, Partial, reason)
	}
	return nil
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
		name, err := b.fresh(t, "summaries", "implementation-summary")
		if err != nil {
			return err
		}
		b.Write(name, summary)
		t.Summary = name
		b.link(t, "summary", name)
	}
	for _, o := range slices.Clone(t.Operations) {
		b.end(t, o, "completed", o.Phase, "")
	}
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
func (b *Board) Stop(n int, session, status, reason string) error {
	t, err := b.Task(n)
	if err != nil {
		return err
	}
	o := t.Op(session)
	if o == nil {
		return fmt.Errorf("%w: nobody of the session %s works at task %d", ErrOperation, session, n)
	}
	if !slices.Contains([]string{"failed", "partial", "blocked"}, status) {
		return fmt.Errorf("an operation ends completed, partial, failed or blocked, not %q", status)
	}
	if o.Phase > 0 {
		return b.endPhase(t, o, status, reason)
	}
	b.end(t, o, status, 0, reason)
	switch status {
	case "blocked":
		b.set(t, Blocked, reason)
	case "partial":
		b.set(t, Partial, reason)
	default:
		b.set(t, o.From, "")
	}
	return nil
}

// link names a task's file in TODO.md.
func (b *Board) link(t *Task, field, name string) {
	if s := b.Todo.Find(t.Number); s != nil {
		b.Todo.SetOwn(s, field, link(name), func(v string) bool {
			return strings.HasPrefix(v, "[") && strings.Contains(v, "]("+t.Folder()+"/") && strings.IndexByte(v, ')') == len(v)-1
		})
	}
}

// fresh is the next free name of a kind of files of a task. Its folder is made when
// the file is written.
func (b *Board) fresh(t *Task, dir, kind string) (string, error) {
	for i := 1; ; i++ {
		name := path.Join(t.Folder(), dir, fmt.Sprintf("%s-%03d.md", kind, i))
		switch _, err := b.Read(name); {
		case errors.Is(err, fs.ErrNotExist):
			return name, nil
		case err != nil: // it may be so for every name, as where the folder is a link that leads out
			return "", fmt.Errorf("find a free name in %s: %w; put that in order and try again", path.Join(specsDir, t.Folder(), dir), err)
		}
	}
}

// ownState is the state.json in a task's folder: what is the task's alone. Entries stay as
// they were written, and what this program does not know of stays beside them: the file is
// committed, and another program may be a newer one.
type ownState struct {
	V          int               `json:"v"`
	Number     int               `json:"number"`
	Operations []json.RawMessage `json:"operations"`

	extra map[string]json.RawMessage
}

// ownVersion is the version of a task's own state.json.
const ownVersion = 1

// parseOwn reads a task's own state.json. The error is the file's, or [ErrNewer].
func parseOwn(data []byte) (own ownState, err error) {
	if err = json.Unmarshal(data, &own); err != nil {
		return own, fmt.Errorf("%w%s", err, where(data, err))
	}
	if own.V > ownVersion {
		return own, fmt.Errorf("it is of version %d, %w", own.V, ErrNewer)
	}
	return own, unknown(data, map[string]bool{"v": true, "number": true, "operations": true}, &own.extra)
}

// bytes is the file.
func (o ownState) bytes() ([]byte, error) {
	data, err := json.Marshal(o)
	if err == nil && len(o.extra) > 0 {
		data, err = withExtra(data, o.extra)
	}
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// own is a task's own state.json, as it stands there.
func (b *Board) own(t *Task) (ownState, error) {
	name := path.Join(b.below, t.Folder(), stateFile)
	data, err := b.Read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return ownState{}, nil
	}
	if err != nil {
		return ownState{}, err
	}
	own, err := parseOwn(data)
	if err != nil {
		return ownState{}, fmt.Errorf("%s: %w", path.Join(t.Folder(), stateFile), err)
	}
	return own, nil
}

// end notes in the task's folder how an operation went, which is then over. o is nil
// for what a person did.
func (b *Board) end(t *Task, o *Operation, status string, phase int, reason string, files ...string) {
	out := Outcome{Status: status, Phase: phase, Reason: clip.Line(reason), Files: files, Started: b.now, Ended: b.now}
	if o != nil {
		out.Op, out.Session, out.Agent, out.Run, out.By, out.Started = o.Name, o.Session, o.Agent, o.Run, o.By, o.Started
		t.dropOp(o.Session)
	}
	own, err := b.own(t)
	if err != nil {
		return // it is told by a check, and stays as it is; what is noted there is no reason to stop
	}
	entry, err := json.Marshal(out)
	if err != nil {
		return
	}
	own.V, own.Number, own.Operations = ownVersion, t.Number, append(own.Operations, entry)
	data, err := own.bytes()
	if err != nil {
		return
	}
	b.Write(path.Join(t.Folder(), stateFile), data)
}

// Own are the operations of a task so far, the latest last.
func (b *Board) Own(t *Task) ([]Outcome, error) {
	own, err := b.own(t)
	if err != nil {
		return nil, err
	}
	var out []Outcome
	for _, entry := range own.Operations {
		var o Outcome
		if err := json.Unmarshal(entry, &o); err != nil {
			return nil, fmt.Errorf("%s: an operation: %w", path.Join(t.Folder(), stateFile), err)
		}
		out = append(out, o)
	}
	return out, nil
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

// Criterion is a box in a task's text: something that must hold before it is done.
type Criterion struct {
	Text string
	Met  bool
}

var box = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[ \t]*[-*+][ \t]+\[([ xX])\][ \t]+(.+?)[ \t]*$`) })

// Criteria are the boxes in the text of a task, ticked or not.
func (b *Board) Criteria(t *Task) []Criterion {
	sec := b.Todo.Find(t.Number)
	if sec == nil {
		return nil
	}
	var out []Criterion
	for line := range strings.Lines(b.Todo.Body(sec)) {
		if m := box().FindStringSubmatch(strings.TrimRight(line, "\r\n")); m != nil {
			out = append(out, Criterion{Text: m[2], Met: m[1] != " "})
		}
	}
	return out
}

// LastPhase reports whether every other phase of a task's plan is completed.
func (b *Board) LastPhase(t *Task, phase int) bool {
	p, _, err := b.Plan(t)
	return err == nil && !slices.ContainsFunc(p.Phases, func(ph Phase) bool { return ph.Number != phase && !ph.Status.Ended() })
}
