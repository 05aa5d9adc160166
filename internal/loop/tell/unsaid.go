package tell

import (
	"fmt"
	"strings"
)

// Way is what there is to do where a person's word could not be taken.
type Way int

// The ways; none where what happened says all.
const (
	WayNone    Way = iota
	WayWhich       // say which question the answer is for
	WayTell        // say which item it is for: nothing is open, and more than one will be told
	WayAnswer      // answer it, or say that it may go without an answer
	WayItem        // as WayAnswer, of an item that was to be put back
	WayGoOn        // let the loop go on without an answer
	WayHigher      // let it go on without an answer by raising a ceiling
	WayCeiling     // raise the ceiling
)

// Unsaid is why nothing was done about what a person said, in its parts, for where it is
// shown decides how the way out is named: in a terminal by flags and commands, on a page by
// what is there to press. [Unsaid.Error] is for a terminal.
type Unsaid struct {
	Kind    error  // one of package loop's: ErrWhich, ErrUnanswered, ErrCeiling, ErrNothingWaits
	What    string // what happened beside that, "" where the kind says it; at a ceiling which one it is
	Way     Way
	Command string // of WayGoOn, WayHigher and WayCeiling
	Open    []OpenQuestion
}

// OpenQuestion is a question that an error is about.
type OpenQuestion struct {
	Item, Why string
	Worker    string   // of a fleet that it is asked by, "" here
	Commands  []string // that answer it, or let it go on without an answer
}

func (e *Unsaid) Unwrap() error { return e.Kind }

// Error is the error in a terminal: what happened, what to do, and each question with the
// command that answers it.
func (e *Unsaid) Error() string {
	do := ""
	switch e.Way {
	case WayWhich:
		do = "say by --item which the answer is for"
	case WayTell:
		do = "say by --item which it is for"
	case WayAnswer:
		do = "answer it, or let the work go on without one by --no-answer"
	case WayGoOn, WayHigher:
		do = "`" + e.Command + "`, without an answer, lets it go on"
	case WayCeiling:
		do = "raise it with `" + e.Command + "`"
	}
	text := e.In(do)
	for _, q := range e.Open {
		text += q.line()
		for _, c := range q.Commands {
			text += "\n    " + c
		}
	}
	return text
}

// In is what happened and what to do, the latter in the words given.
func (e *Unsaid) In(do string) string {
	if e.Way == WayCeiling {
		return fmt.Sprintf("%v (%s): it would wait there again; %s", e.Kind, e.What, do)
	}
	parts := []string{e.What, do}
	if e.What == "" || do == "" {
		parts = []string{e.What + do}
	}
	return strings.TrimSuffix(e.Kind.Error()+": "+strings.Join(parts, "; "), ": ")
}

// Asks is what is asked, a line for each, to be put below [Unsaid.In].
func (e *Unsaid) Asks() string {
	var b strings.Builder
	for _, q := range e.Open {
		b.WriteString(q.line())
	}
	return b.String()
}

func (q *OpenQuestion) line() string {
	where := ""
	if q.Worker != "" {
		where = ", of the worker " + q.Worker
	}
	return fmt.Sprintf("\n  %s%s: %s", q.Item, where, OneLine(q.Why, 300))
}
