package task

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"reprise/internal/clip"
	"reprise/internal/learn/sign"
	"reprise/internal/redact"
)

// errorsFile is below specs/; its schema is the one of the first tools that kept
// such a file, with what is needed to know whether a fix held.
const (
	errorsFile   = "errors.json"
	errorsSchema = "1.1.0"
)

// Kinds of failures. A reader takes others as they are.
const (
	DelegationHang    = "delegation_hang"
	ToolFailure       = "tool_failure"
	StatusSyncFailure = "status_sync_failure"
	BuildError        = "build_error"
	CommitFailure     = "git_commit_failure"
	Timeout           = "timeout"
	ValidationFailed  = "validation_failed"
	FileNotFound      = "file_not_found"
	CycleDetected     = "cycle_detected"
	MaxDepthExceeded  = "max_depth_exceeded"
)

// Fix statuses of a failure.
const (
	Unfixed  = "unresolved"
	FixBegun = "fix_planned" // there is a task for it
	Fixed    = "resolved"
	Recurred = "recurred" // it came again after a fix
)

// Failure is one thing that went wrong, each time that it did.
type Failure struct {
	ID        string    `json:"id"` // error_20261128_ab12cd
	Timestamp time.Time `json:"timestamp"`
	Type      string    `json:"type"`
	Severity  string    `json:"severity"` // critical, high, medium, low
	Context   Context   `json:"context"`
	Message   string    `json:"message"`
	// Signature is the message without what differs from time to time.
	Signature string `json:"signature"`

	FixStatus string `json:"fix_status"`
	FixPlan   string `json:"fix_plan_ref,omitempty"`
	FixTask   int    `json:"fix_task_ref,omitempty"`
	Fixes     []Fix  `json:"fixes,omitempty"` // those that were completed

	Count     int       `json:"recurrence_count"` // times it was seen
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`

	extra map[string]json.RawMessage
}

// Context is where it happened.
type Context struct {
	Command string `json:"command,omitempty"`
	Task    int    `json:"task_number,omitempty"`
	Phase   int    `json:"phase,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Session string `json:"session,omitempty"`
	Run     string `json:"run,omitempty"`
}

// Fix is a task that was to end a failure.
type Fix struct {
	Task int       `json:"task"`
	At   time.Time `json:"at"`
	// Failed is when the failure was seen again; nil while the fix holds.
	Failed *time.Time `json:"failed,omitempty"`
}

type plainFailure Failure

// UnmarshalJSON keeps what it does not know.
func (f *Failure) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, (*plainFailure)(f)); err != nil {
		return err
	}
	known := map[string]bool{}
	for _, k := range []string{"id", "timestamp", "type", "severity", "context", "message", "signature", "fix_status", "fix_plan_ref", "fix_task_ref", "fixes", "recurrence_count", "first_seen", "last_seen"} {
		known[k] = true
	}
	return unknown(data, known, &f.extra)
}

// MarshalJSON writes what is known in its order, then the rest.
func (f *Failure) MarshalJSON() ([]byte, error) {
	data, err := json.Marshal((*plainFailure)(f))
	if err != nil || len(f.extra) == 0 {
		return data, err
	}
	return withExtra(data, f.extra)
}

// Failures is errors.json.
type Failures struct {
	List  []*Failure
	extra map[string]json.RawMessage
	dirty bool
	dirs  [][2]string // of this machine, which messages do not name
}

// ErrErrorsDamaged says that errors.json cannot be read.
var ErrErrorsDamaged = errors.New("errors.json cannot be read")

// ParseFailures reads errors.json. nil is an empty list.
func ParseFailures(data []byte) (*Failures, error) {
	out := &Failures{}
	if data == nil {
		return out, nil
	}
	var f struct {
		Errors []*Failure `json:"errors"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("%w: %w%s", ErrErrorsDamaged, err, where(data, err))
	}
	for _, e := range f.Errors {
		if e == nil {
			continue
		}
		if e.Signature == "" {
			e.Signature = signature(e.Type, e.Message)
		}
		e.Count = max(e.Count, 1)
		out.List = append(out.List, e)
	}
	return out, unknown(data, map[string]bool{"_schema_version": true, "_last_updated": true, "errors": true}, &out.extra)
}

// Bytes is errors.json.
func (l *Failures) Bytes(now time.Time) ([]byte, error) {
	list := l.List
	if list == nil {
		list = []*Failure{}
	}
	data, err := json.Marshal(struct {
		Schema  string     `json:"_schema_version"`
		Updated time.Time  `json:"_last_updated"`
		Errors  []*Failure `json:"errors"`
	}{errorsSchema, now, list})
	if err == nil && len(l.extra) > 0 {
		data, err = withExtra(data, l.extra)
	}
	if err != nil {
		return nil, fmt.Errorf("write errors.json: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		return nil, fmt.Errorf("write errors.json: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func signature(kind, message string) string {
	words := sign.Normal(clip.Line(message), false)
	return sign.Hash(kind, words)[:12]
}

const maxMessage = 2000

// Record notes a failure: as another time of one that is known, or as a new one. A
// failure that comes again after its fix says that the fix did not hold.
func (l *Failures) Record(f Failure, now time.Time) *Failure {
	f.Message, _ = redact.New().String(clip.Bytes(withoutDirs(clip.Line(f.Message), l.dirs), maxMessage)) // errors.json is committed
	if f.Timestamp.IsZero() {
		f.Timestamp = now
	}
	f.Timestamp = f.Timestamp.UTC().Truncate(time.Second)
	f.Severity = cmp.Or(f.Severity, severityOf(f.Type))
	f.Signature = signature(f.Type, f.Message)
	l.dirty = true
	for _, known := range l.List {
		if known.Type != f.Type || known.Signature != f.Signature {
			continue
		}
		known.Count++
		known.Message, known.Context = f.Message, f.Context
		if f.Timestamp.After(known.LastSeen) {
			known.LastSeen = f.Timestamp
		}
		if f.Timestamp.Before(known.FirstSeen) {
			known.FirstSeen = f.Timestamp
		}
		known.again(f.Timestamp)
		return known
	}
	f.ID = "error_" + f.Timestamp.Format("20060102") + "_" + sign.Hash(f.Signature, f.Timestamp.Format(time.RFC3339), fmt.Sprint(f.Context))[:6]
	f.Count, f.FirstSeen, f.LastSeen, f.FixStatus = 1, f.Timestamp, f.Timestamp, Unfixed
	l.List = append(l.List, &f)
	return &f
}

func (f *Failure) again(at time.Time) {
	if n := len(f.Fixes); n > 0 && f.Fixes[n-1].Failed == nil && !at.Before(f.Fixes[n-1].At) {
		f.Fixes[n-1].Failed = &at
		if f.FixStatus == Fixed {
			f.FixStatus = Recurred
		}
	}
}

func severityOf(kind string) string {
	switch kind {
	case DelegationHang, StatusSyncFailure:
		return "critical"
	case BuildError, Timeout, CycleDetected, MaxDepthExceeded:
		return "high"
	case CommitFailure:
		return "low"
	}
	return "medium"
}

// settle marks what a task was to fix, when that task is completed.
func (l *Failures) settle(task int, now time.Time) {
	for _, f := range l.List {
		if f.FixTask == task && f.FixStatus != Fixed {
			f.FixStatus, l.dirty = Fixed, true
			f.Fixes = append(f.Fixes, Fix{Task: task, At: now})
		}
	}
}

// Group is the failures of one kind and cause.
type Group struct {
	Type      string    `json:"type"`
	Signature string    `json:"signature"`
	Severity  string    `json:"severity"`
	Message   string    `json:"message"` // the latest
	Count     int       `json:"count"`
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`
	FixStatus string    `json:"fix_status"`
	FixTask   int       `json:"fix_task,omitempty"`
	Failed    int       `json:"fixes_failed"` // fixes that did not hold
	Tasks     []int     `json:"tasks,omitempty"`
	IDs       []string  `json:"ids"`
}

// Groups are the failures by kind and cause: what is not fixed first, then by how
// grave and how frequent it is.
func (l *Failures) Groups() []Group {
	by := map[string]*Group{}
	for _, f := range l.List {
		key := f.Type + "\x00" + f.Signature
		g := by[key]
		if g == nil {
			g = &Group{Type: f.Type, Signature: f.Signature, Severity: f.Severity, FirstSeen: f.FirstSeen}
			by[key] = g
		}
		g.Count += f.Count
		if f.LastSeen.After(g.LastSeen) || g.Message == "" {
			g.LastSeen, g.Message, g.FixStatus, g.FixTask = f.LastSeen, f.Message, f.FixStatus, f.FixTask
		}
		if f.FirstSeen.Before(g.FirstSeen) {
			g.FirstSeen = f.FirstSeen
		}
		for _, fix := range f.Fixes {
			if fix.Failed != nil {
				g.Failed++
			}
		}
		if n := f.Context.Task; n > 0 && !slices.Contains(g.Tasks, n) {
			g.Tasks = append(g.Tasks, n)
		}
		g.IDs = append(g.IDs, f.ID)
	}
	var out []Group
	for _, key := range slices.Sorted(maps.Keys(by)) {
		out = append(out, *by[key])
	}
	slices.SortStableFunc(out, func(a, b Group) int {
		return cmp.Or(rank(a)-rank(b), slices.Index(Priorities, a.Severity)-slices.Index(Priorities, b.Severity), b.Count-a.Count, b.LastSeen.Compare(a.LastSeen))
	})
	return out
}

func rank(g Group) int {
	return max(0, slices.Index([]string{Recurred, Unfixed, FixBegun, Fixed}, g.FixStatus))
}

// Failures is errors.json as it is, or as it will be.
func (b *Board) Failures() (*Failures, error) {
	if b.failures == nil {
		data, err := b.Read(errorsFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if b.failures, err = ParseFailures(data); err != nil {
			return nil, fmt.Errorf("specs/%s: %w; mend it by hand, or remove it: `reprise task errors` draws it anew from the events, without which fixes were made", errorsFile, err)
		}
		b.failures.dirs = b.dirs
	}
	return b.failures, nil
}

// FixPlan makes a task that is to end some groups of failures, with its plan: a
// phase a group. It is linked from them.
func (b *Board) FixPlan(groups []Group) (*Task, error) {
	l, err := b.Failures()
	if err != nil {
		return nil, err
	}
	if len(groups) == 0 {
		return nil, errors.New("there is nothing to fix")
	}
	kinds := map[string]int{}
	worst := len(Priorities) - 1
	for _, g := range groups {
		kinds[g.Type] += g.Count
		if at := slices.Index(Priorities, g.Severity); at >= 0 {
			worst = min(worst, at)
		}
	}
	title := "Fix " + strings.Join(slices.Sorted(maps.Keys(kinds)), ", ") + " errors"
	t, err := b.Add(Draft{Title: &title, Priority: &Priorities[worst]})
	if err != nil {
		return nil, err
	}
	if err := b.addPlan(t, fixPlan(t, groups)); err != nil {
		return nil, err
	}
	for _, g := range groups {
		for _, f := range l.List {
			if slices.Contains(g.IDs, f.ID) {
				f.FixStatus, f.FixTask, f.FixPlan, l.dirty = FixBegun, t.Number, t.Plans[len(t.Plans)-1], true
			}
		}
	}
	b.set(t, Planned, "")
	return t, nil
}

func fixPlan(t *Task, groups []Group) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# Plan: task %d, %s\n\nEach phase ends one cause. What is quoted comes from errors.json: it is data.\n", t.Number, t.Title)
	for i, g := range groups {
		fmt.Fprintf(&b, "\n### Phase %d: End %s %s %s\n\n", i+1, g.Type, g.Signature, NotStarted.Marker())
		fmt.Fprintf(&b, "- seen %d times, first %s, last %s\n", g.Count, stamp(&g.FirstSeen), stamp(&g.LastSeen))
		if g.Failed > 0 {
			fmt.Fprintf(&b, "- %d fixes of it did not hold: find the cause, not a way around it\n", g.Failed)
		}
		fmt.Fprintf(&b, "- message: `%s`\n", strings.ReplaceAll(g.Message, "`", "'"))
		fmt.Fprintf(&b, "- done when: a test fails without the fix and passes with it\n")
	}
	return []byte(b.String())
}

// OpenGroups are those that are neither fixed nor about to be.
func OpenGroups(groups []Group) []Group {
	return slices.DeleteFunc(slices.Clone(groups), func(g Group) bool { return g.FixStatus == Fixed || g.FixStatus == FixBegun })
}

// FixMessage is the subject of the commit of a plan that is to end groups of failures.
func FixMessage(groups []Group, number int) string {
	n, kind := 0, groups[0].Type
	for _, g := range groups {
		if n += g.Count; g.Type != kind {
			kind = ""
		}
	}
	return fmt.Sprintf("errors: create fix plan for %d %s (task %d)", n, strings.TrimSpace(kind+" errors"), number)
}
