package task

import (
	"fmt"
	"slices"
	"strings"
)

// Status is how far a task or a phase of a plan is.
type Status string

// The statuses, as state.json has them. Their markers in TODO.md and in plans are
// the same words in capitals between brackets: [NOT STARTED].
const (
	NotStarted Status = "not_started"
	InProgress Status = "in_progress"
	Researched Status = "researched"
	Planned    Status = "planned"
	Partial    Status = "partial" // stopped in the middle; goes on where it stopped
	Blocked    Status = "blocked"
	Completed  Status = "completed"
	Abandoned  Status = "abandoned"
)

// Statuses are all of them, in the order in which a task usually has them.
func Statuses() []Status {
	return []Status{NotStarted, InProgress, Researched, Planned, Partial, Blocked, Completed, Abandoned}
}

// next says what may follow what. A task that has ended is only taken up again by
// recovering it, see [Recoverable].
var next = map[Status][]Status{
	NotStarted: {InProgress, Researched, Planned, Blocked, Completed, Abandoned},
	InProgress: {NotStarted, Researched, Planned, Partial, Blocked, Completed, Abandoned},
	Researched: {InProgress, Planned, Blocked, Completed, Abandoned},
	Planned:    {InProgress, Researched, Partial, Blocked, Completed, Abandoned},
	Partial:    {InProgress, Researched, Planned, Blocked, Completed, Abandoned},
	Blocked:    {NotStarted, InProgress, Researched, Planned, Partial, Abandoned},
}

// TransitionError is a change of status that is not allowed.
type TransitionError struct {
	Number   int
	From, To Status
}

func (e *TransitionError) Error() string {
	msg := fmt.Sprintf("task %d is %s and cannot become %s", e.Number, e.From.Words(), e.To.Words())
	if e.From.Ended() {
		return fmt.Sprintf("%s: take it up again first with `reprise task recover %d`", msg, e.Number)
	}
	var to []string
	for _, s := range next[e.From] {
		to = append(to, s.Words())
	}
	return msg + ", only " + strings.Join(to, ", ")
}

// CanBecome reports whether a task may go from s to another status. To stay what
// it is is always allowed.
func (s Status) CanBecome(to Status) bool { return s == to || slices.Contains(next[s], to) }

// Ended reports whether nothing more is to be done.
func (s Status) Ended() bool { return s == Completed || s == Abandoned }

// Words is the status as a person says it: "not started".
func (s Status) Words() string { return strings.ReplaceAll(string(s), "_", " ") }

// Marker is the status as it stands in TODO.md and in plans: "[NOT STARTED]".
func (s Status) Marker() string { return "[" + strings.ToUpper(s.Words()) + "]" }

// said are other words that people use.
var said = map[string]Status{
	"todo": NotStarted, "open": NotStarted, "new": NotStarted, "notstarted": NotStarted,
	"wip": InProgress, "started": InProgress, "doing": InProgress, "active": InProgress,
	"researching": InProgress, "planning": InProgress, "implementing": InProgress,
	"done": Completed, "complete": Completed, "finished": Completed, "closed": Completed, "x": Completed,
	"cancelled": Abandoned, "canceled": Abandoned, "dropped": Abandoned, "wontfix": Abandoned,
	"waiting": Blocked,
}

// ParseStatus reads a status in any spelling that people and programs use:
// "[IN PROGRESS]", "in_progress", "In-Progress", "done". What follows a marker
// ("[BLOCKED] by the vendor") is passed over. ok is false for other words.
func ParseStatus(text string) (s Status, ok bool) {
	if s, ok := exactStatus(text); ok {
		return s, true
	}
	text = strings.TrimSpace(text)
	if rest, in := strings.CutPrefix(text, "["); in {
		if inner, _, closed := strings.Cut(rest, "]"); closed {
			text = inner
		}
	}
	text = strings.Trim(strings.ToLower(text), " \t*_`.[]")
	word := strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '_' || r == '-' || r == '\t' }), "_")
	if slices.Contains(Statuses(), Status(word)) {
		return Status(word), true
	}
	s, ok = said[strings.ReplaceAll(word, "_", "")]
	return s, ok
}

// exactStatus is a status or a marker as this program writes them, which a long list has
// by the thousand.
func exactStatus(text string) (Status, bool) {
	switch s := Status(text); s {
	case NotStarted, InProgress, Researched, Planned, Partial, Blocked, Completed, Abandoned:
		return s, true
	}
	switch text {
	case "[NOT STARTED]":
		return NotStarted, true
	case "[IN PROGRESS]":
		return InProgress, true
	case "[RESEARCHED]":
		return Researched, true
	case "[PLANNED]":
		return Planned, true
	case "[PARTIAL]":
		return Partial, true
	case "[BLOCKED]":
		return Blocked, true
	case "[COMPLETED]":
		return Completed, true
	case "[ABANDONED]":
		return Abandoned, true
	}
	return "", false
}
