package report

import (
	"fmt"
	"strings"
	"time"

	"reprise/internal/loop/core"
	"reprise/internal/loop/outcome"
	"reprise/internal/loop/tell"
	"reprise/internal/term"
)

// Line is one thing that happens, for who looks on in a terminal. What programs read is the
// loop's audit, which has more.
type Line struct {
	At    time.Time
	Item  string // "" for the loop itself
	Title string // of the item, "" where it is not known
	Text  string
}

// maxTitle is how many characters of a title stand in a line: enough to know the item by.
const maxTitle = 50

// Subject is what the line is about.
func (l *Line) Subject() string {
	switch {
	case l.Item == "":
		return "loop"
	case l.Title == "":
		return l.Item
	}
	return l.Item + " '" + tell.OneLine(l.Title, maxTitle) + "'"
}

// Words are an operation of the audit with its text as a person reads them beside the name of
// what they are about.
func Words(op, text string) string {
	before := ""
	switch op {
	case "put off":
		before = "cannot be done yet, and is tried again: "
	case "lease lost":
		if text == "" || !strings.Contains(text, " ") { // which earlier programs wrote: the item
			text = "another loop has taken it, or somebody has taken it away"
		}
		return "the claim is lost: " + text
	case "resumed":
		if text == core.GoesOn {
			return text
		}
		before = "goes on: "
	case "refused":
		before = "not taken: "
	case "raised":
		before = "ceilings are raised: "
	case "paused":
		return "paused: nothing new is begun until `reprise loop resume`"
	case "stop":
		before = "asked to end: "
	case "stopping":
		before = "is stopped: "
	case "finished":
		before = "finished: "
	}
	return before + text
}

// Phase is what a loop does from now on, and why.
func Phase(p core.Phase, reason string) string {
	switch p {
	case core.Working:
		return "works on"
	case core.Paused:
		return "" // told with what ends it
	case core.Waiting:
		return "waits for a person, and begins nothing" // who is told in a line before
	case core.Draining:
		return "begins nothing any more, and ends with what is being worked on" + because(reason)
	case core.Stopping:
		return "stops what is being worked on, and ends" + because(reason)
	}
	return ""
}

// Words say what came of an iteration: attempts are how many the item has had of at most
// limit, and again is the time after which it is ready once more. "" is what people are told
// otherwise, as a question by how it is answered.
func (it *Iteration) Words(attempts, limit int, again time.Duration) string {
	why := reason(it)
	switch it.Fate {
	case core.Done:
		return strings.Join(append([]string{"done"}, it.figures()...), "; ")
	case core.Retry:
		return fmt.Sprintf("%s; tried again%s (%d of %d)", why, after(again), attempts, limit)
	case core.GiveUp:
		text := "given up"
		if attempts > 1 && !strings.HasPrefix(why, "it failed ") { // which counts
			text += " after " + term.Plural(attempts, "attempt")
		}
		return text + ": " + why
	case core.Park:
		if it.Interrupt != core.ByPerson {
			return "" // the question was told
		}
		return "stopped, and set aside"
	case core.Drop:
		return "not this loop's any more: " + why
	}
	return why + "; put back" + after(again)
}

// after says when something is done again, where that is not at once.
func after(again time.Duration) string {
	if again < time.Second/2 {
		return ""
	}
	return " in " + term.Took(again.Round(time.Second))
}

// figures are what an iteration came to, in the order in which people ask.
func (it *Iteration) figures() (parts []string) {
	if it.Verified == core.GatePassed {
		parts = append(parts, "checks passed"+it.but())
	}
	took := term.Took(time.Duration(it.Seconds*float64(time.Second))) + ", " + term.Plural(it.Turns, "turn")
	if it.CostUSD > 0 {
		took += ", " + term.USD(it.CostUSD) + " USD"
	}
	parts = append(parts, took)
	switch {
	case it.Note != "":
		parts = append(parts, tell.OneLine(it.Note, 300))
	case it.Branch != "":
		parts = append(parts, "on the branch "+it.Branch)
	}
	if said := it.refusal(); said != "" { // such as tests that its agent was to run
		parts = append(parts, said)
	}
	return parts
}

func (it *Iteration) but() string {
	if it.But == "" {
		return ""
	}
	return ", but " + tell.OneLine(it.But, 200)
}

// reason is why an iteration did not succeed.
func reason(it *Iteration) string {
	text := tell.OneLine(it.Reason, 320)
	switch class := core.Class(it.Class); class {
	case core.GateFail:
		return outcome.Join("the checks fail: "+Gist(it.Reason), it.refusal())
	case core.RateLimited, core.AuthFailed, core.Refused, core.SpawnFailed, core.BadWorkspace:
		return outcome.Classed(class.Words(), text)
	default:
		if text == "" || text == it.Class {
			text = class.Words()
		}
	}
	return outcome.Join(text, it.refusal())
}

// Refusal is what the guard refused of the iteration's run, or of one before.
func (it *Iteration) Refusal() core.Refusal {
	return core.Refusal{What: it.Refused, Calls: it.Refusals, Earlier: it.RefusedEarlier}
}

// SetRefusal has it there.
func (it *Iteration) SetRefusal(r core.Refusal) {
	it.Refused, it.Refusals, it.RefusedEarlier = r.What, r.Calls, r.Earlier
}

// refusal is that in words, "" where nothing was refused.
func (it *Iteration) refusal() string { return tell.OneLine(it.Refusal().Words(), 400) }

// verification is the id by which what was checked can be looked at, "" where a text about
// checks names none.
func verification(text string) string {
	rest, ok := strings.CutPrefix(text, "verification ")
	id, _, found := strings.Cut(rest, ":")
	if !ok || !found {
		return ""
	}
	return id
}

// Gist is what checks have said, in one line: which one fails, and the first line of it that
// looks like the reason. Other texts are cut.
func Gist(text string) string {
	if verification(text) == "" {
		return tell.OneLine(text, 320)
	}
	var check, first, why string
	for line := range strings.Lines(text) {
		said, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "  ")
		name, what, colon := strings.Cut(said, ": ")
		switch {
		case !ok && strings.HasPrefix(line, "- ") && first == "":
			first = tell.OneLine(line[2:], 200)
		case ok && colon && why == "" && tellsWhy(what):
			check, why = name, tell.OneLine(what, 200)
		}
	}
	switch {
	case why != "":
		return check + ": " + why
	case first != "":
		return first
	}
	return tell.OneLine(text, 320)
}

// tellsWhy reports whether a line of a check's output looks like the reason of its failure.
func tellsWhy(line string) bool {
	line = strings.ToLower(line)
	for _, word := range []string{"error", "fail", "panic", "fatal", "cannot", "not found", "expected", "undefined"} {
		if strings.Contains(line, word) {
			return true
		}
	}
	return false
}
