package core

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ByStop says of a kind of interrupt that a person has stopped something.
func ByStop(kind string) bool { return kind == ByPerson || kind == ByCancel }

// ParkedBy is the kind of decision that an item was set aside for, and what is to be decided, by the
// reason that the queue keeps of it: the class of what happened, and words.
func ParkedBy(reason string) (kind, why string) {
	class, why, ok := strings.Cut(reason, ": ")
	if ok {
		switch Class(class) {
		case Asked, Reported:
			return ByAgent, why
		case Halted:
			return ByPerson, why
		case Cancelled:
			return ByCancel, why
		case GateFail:
			return ByGate, why
		case BudgetUsed:
			return ByBudget, why
		case ContextFull, TurnsUsed:
			return ByContinues, why
		}
	}
	return "set aside", reason
}

// Wordless says of a kind of interrupt that nobody asks anything: what was set aside for it goes on
// by a word that it may.
func Wordless(kind string) bool { return ByStop(kind) || kind == ByMissing || kind == ByFailing }

// KindWords are a kind of interrupt, or a class of failure, for people.
func KindWords(kind string) string {
	switch kind {
	case ByPerson, ByCancel:
		return "stopped by a person"
	case ByAgent:
		return "an agent asks"
	case ByGate:
		return "checks failed"
	case ByBudget:
		return "a ceiling is reached"
	case ByAuth:
		return "not logged in"
	case ByRepo:
		return "the repository is held"
	case ByFailing:
		return "one failure after another"
	case ByIdentical:
		return "the same failure again"
	case ByContinues:
		return "not finished in several sessions"
	case ByMissing:
		return Missing.Words()
	}
	return kind
}

// Words are a class of failure for people.
func (c Class) Words() string {
	switch c {
	case SpawnFailed:
		return "it could not be started"
	case BadWorkspace:
		return "it has no place to work"
	case RemoteAway:
		return "the remote is away"
	case Missing:
		return "what it builds on is missing"
	case Crashed:
		return "its process ended without a result"
	case RateLimited:
		return "the service wants to be left alone"
	case AuthFailed:
		return "not logged in"
	case SessionGone:
		return "the client has not kept the session"
	case Refused:
		return "the model refuses"
	case NoTurn:
		return "the model was never asked anything"
	case NoChange:
		return "nothing was changed"
	case BadResult:
		return "its result is an error"
	}
	return string(c)
}

// GoesOn is why work goes on that waits for no answer, such as what a person had stopped.
const GoesOn = "a person lets it go on"

// Words are what was refused, in words; "" is nothing.
func (r Refusal) Words() string {
	if r.What == "" {
		return ""
	}
	text := "the guard refused " + r.What
	if r.Earlier {
		text = "in an attempt before " + text
	}
	switch {
	case r.Calls == 2:
		text += " (and another call)"
	case r.Calls > 2:
		text += fmt.Sprintf(" (and %d other calls)", r.Calls-1)
	}
	return text
}

// AnswerTo is how a person lets go on what was set aside, or with "" the loop.
func AnswerTo(kind, item string) string {
	switch {
	case item == "":
		return "reprise loop resume"
	case Wordless(kind):
		return "reprise loop resume --item " + item
	}
	return AnswerCommand(item)
}

// SilentCommand is how the work on an item goes on without an answer.
func SilentCommand(item string) string {
	return fmt.Sprintf("reprise loop resume --item %s --no-answer", item)
}

// AnswerCommand is how the question of an item is answered in a terminal.
func AnswerCommand(item string) string {
	return fmt.Sprintf("reprise loop resume --item %s --answer \"…\"", item)
}

// Indent sets an item's text off from the template around it: headings in it must not
// look like ours.
func Indent(text string) string {
	return "   > " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n   > ")
}

// Plain is a text without the bytes that no program takes as an argument, or that do
// something to a terminal: what a session is told comes from outputs of others, too.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\r':
			return -1
		case unicode.IsControl(r):
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// Unanswered is what a session is told that asked, and that a person let go on without a
// word: silence is not consent.
const Unanswered = "What was asked has no answer: a person let the work go on without one. Decide it yourself, on the safe side, or ask again if it cannot be done without."

// Exchange names what a session is told of a decision: who asked whom. A session that a
// person has stopped has asked nothing, and neither has one whose checks failed.
func Exchange(c *Continuation) (asked, answered string) {
	kind := c.Kind
	switch c.Why {
	case string(Asked), string(Reported):
		kind = cmp.Or(kind, ByAgent)
	case string(Halted), string(Cancelled):
		kind = cmp.Or(kind, ByPerson)
	}
	switch {
	case kind == ByAgent:
		return "What a person was asked", "A person has answered what you asked"
	case ByStop(kind):
		return "Why a person stopped the work", "A person says, now that it goes on"
	}
	return "Why a person was to decide how it goes on", "A person has decided"
}

// SameState says that nobody has gone on with a state since it was read.
func SameState(now, read *State) bool {
	if read == nil {
		return true
	}
	over := func(s *State) bool { return s == nil || s.Phase == Finished }
	if over(now) || over(read) {
		return over(now) && over(read)
	}
	return now.Loop == read.Loop && now.Rev == read.Rev
}
