package learn

import (
	"slices"
	"strings"
	"testing"

	"reprise/internal/event"
)

// Of a turn that was nothing but a failure and its mending the failure's episode tells
// all, so that one fix is not told twice. A turn that tells more is told.
func TestTurnThatOnlyMended(t *testing.T) {
	type change func(s *story)
	for name, c := range map[string]struct {
		prompt, answer string
		more           change
		only           bool
	}{
		"nothing else":           {"run the tests", "The tests pass now.", nil, true},
		"an answer of its words": {"run the tests", "They pass after `npm ci`.", nil, true},
		"an answer with more":    {"run the tests", "They pass, 83% of the lines are covered.", nil, false},
		"a long answer":          {"run the tests", strings.Repeat("They pass, and this is why. ", 10), nil, false},
		"a long prompt":          {strings.Repeat("run the tests, please, and ", 10), "Done, they pass.", nil, false},
		"another command":        {"run the tests", "The tests pass now.", func(s *story) { s.shell("make deploy", "") }, false},
		"a file":                 {"run the tests", "The tests pass now.", func(s *story) { s.edit("/w/shop/cart.js") }, false},
		"another failure":        {"run the tests", "The tests pass now.", func(s *story) { s.shell("make deploy", "make: no rule") }, false},
		"an error":               {"run the tests", "", func(s *story) { s.add(event.ResponseCompleted, event.ResponseData{Error: "rate limit"}) }, false},
	} {
		s := newStory(t)
		s.start()
		s.prompt(c.prompt)
		s.shell("npm test", moduleMissing)
		s.shell("npm ci", "")
		s.shell("npm test", "")
		if c.more != nil {
			c.more(s)
		}
		if c.answer != "" {
			s.answer(c.answer)
		}
		s.end()
		st, _ := s.fold("2026-11-03")
		turn, failure := st.ofKind(KindTurn), st.ofKind(KindFailure)
		if len(turn) != 1 || len(failure) == 0 {
			t.Fatalf("%s: turns %+v, failures %+v", name, turn, failure)
		}
		if only := slices.Contains(turn[0].Keys, failure[0].ID); only != c.only {
			t.Errorf("%s: that the episode tells all of the turn is %v", name, only)
		}
	}
}
