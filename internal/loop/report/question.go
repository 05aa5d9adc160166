package report

import (
	"fmt"

	"reprise/internal/loop/core"
	"reprise/internal/loop/tell"
)

// Question is what a person must decide of an item, or has decided and no session was told
// yet.
type Question struct {
	Item  string `json:"item"`
	Title string `json:"title,omitempty"`
	Kind  string `json:"kind"` // as an interrupt has it
	Why   string `json:"why"`
	// Number tells the question from others of the item; 0 in states of older programs.
	Number int64 `json:"number,omitempty"`
	// Answer is what a person has answered, which the item's next session is told.
	Answer string `json:"answer,omitempty"`
	// Going says that the item goes on, and that its next session has not begun.
	Going bool `json:"going,omitempty"`
}

// Open says that nobody has decided yet.
func (q *Question) Open() bool { return q.Answer == "" && !q.Going }

// Asked says that an agent asks, so that silence is no answer.
func (q *Question) Asked() bool { return q.Kind == core.ByAgent }

// Command is how it is answered in a terminal, or let go on where nobody asks anything.
func (q *Question) Command() string { return core.AnswerTo(q.Kind, q.Item) }

// Stopped says that a person has stopped the item: nobody asks anything.
func (q *Question) Stopped() bool { return core.ByStop(q.Kind) }

// Words are what waits, in a sentence for a list.
func (q *Question) Words() string {
	if q.Stopped() {
		return fmt.Sprintf("%s was stopped by a person: %s", q.Item, tell.OneLine(q.Why, 200))
	}
	switch q.Kind {
	case core.ByGate:
		return fmt.Sprintf("the checks of %s failed too often: %s", q.Item, Gist(q.Why))
	case core.ByFailing, core.ByMissing:
		return fmt.Sprintf("%s could not be begun: %s", q.Item, tell.OneLine(q.Why, 200))
	}
	return fmt.Sprintf("the loop asks about %s: %s", q.Item, tell.OneLine(q.Why, 200))
}

// Told is a question for an error that is about it, with the commands that answer it, and,
// where it may go on without an answer, that one.
func (q *Question) Told(worker string, silent bool) tell.OpenQuestion {
	t := tell.OpenQuestion{Item: q.Item, Why: q.Why, Worker: worker, Commands: []string{q.Command()}}
	if silent {
		t.Commands = append(t.Commands, core.SilentCommand(q.Item))
	}
	return t
}
