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

// A session in whose last turn nothing was let happen did not end well, whatever it said
// then: its summary says what was refused. A client may tell of a refused call itself, too,
// and the decision may stand before the call in the log.
func TestRefusedIsNotDone(t *testing.T) {
	denied := func(s *story, id string) {
		e := s.event(event.PermissionDecided, map[string]any{"tool": "shell", "use_id": id, "verdict": "deny"})
		e.Outcome = "denied"
		s.write(e)
	}
	call := func(s *story, id string) {
		s.add(event.ToolCalled, event.ToolData{Tool: "shell", Name: "Bash", ID: id, Input: []byte(`{"command":"sh ./test.sh --force /"}`), Cwd: "/w/shop"})
	}
	for name, c := range map[string]struct {
		did  func(s *story)
		want string
	}{
		"called, then denied": {func(s *story) { call(s, "1"); denied(s, "1") }, "1 prompt, 0 tool calls, 0 failed, 1 refused, outcome failed."},
		"denied, then called": {func(s *story) { denied(s, "1"); call(s, "1") }, "1 prompt, 0 tool calls, 0 failed, 1 refused, outcome failed."},
		"the client says it too": {func(s *story) {
			call(s, "1")
			denied(s, "1")
			s.add(event.ToolFailed, event.ToolData{Tool: "shell", Name: "Bash", ID: "1", Input: []byte(`{"command":"sh ./test.sh --force /"}`), Error: "blocked by hook", Cwd: "/w/shop"})
		}, "1 prompt, 1 tool call, 0 failed, 1 refused, outcome failed."},
		"another was run": {func(s *story) { call(s, "1"); denied(s, "1"); s.shell("make check", "") }, "1 prompt, 1 tool call, 0 failed, 1 refused, outcome good."},
	} {
		s := newStory(t)
		s.start()
		s.prompt("run the tests")
		c.did(s)
		s.answer("The tests pass now.")
		s.end()
		st, o := s.fold("2026-11-03")
		sum := st.ofKind(KindSession)
		if len(sum) != 1 || !strings.HasSuffix(sum[0].Text, c.want) || !strings.Contains(sum[0].Text, "\nRefused, and not done: `sh ./test.sh --force /`\n") {
			t.Errorf("%s: %+v", name, sum)
		}
		if got, err := o.StatsOf(t.Context(), s.client, s.session); err != nil || got.Unended != 0 || got.Refused != 1 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
