package report

import (
	"testing"
	"time"

	"reprise/internal/loop/core"
)

// TestIterationWords: what a person reads when the work on an item has ended: no flags, no
// codes of ours, and what comes next.
func TestIterationWords(t *testing.T) {
	for _, tt := range []struct {
		name string
		it   Iteration
		want string
	}{
		{"done", Iteration{Fate: core.Done, Seconds: 123, Turns: 3, CostUSD: 0.124, Verified: core.GatePassed, Branch: "loop-a"}, "done; checks passed; 2 min 3 s, 3 turns, 0.12 USD; on the branch loop-a"},
		{"done, no checks, merged", Iteration{Fate: core.Done, Seconds: 1, Turns: 1, Verified: core.GateNone, Branch: "loop-a", Note: "merged into main"}, "done; 1 s, 1 turn; merged into main"},
		{"tried again", Iteration{Fate: core.Retry, Class: "result", Reason: "the agent ended with an error: it failed"}, "the agent ended with an error: it failed; tried again in 16 s (1 of 3)"},
		{"checks", Iteration{Fate: core.Retry, Class: "gate", Reason: "tests: FAIL\nTestX"}, "the checks fail: tests: FAIL TestX; tried again in 16 s (1 of 3)"},
		{"a class alone", Iteration{Fate: core.Retry, Class: "no turn", Reason: "no turn"}, "the model was never asked anything; tried again in 16 s (1 of 3)"},
		{"given up", Iteration{Fate: core.GiveUp, Class: "refusal", Reason: "I will not"}, "given up: the model refuses: I will not"},
		{"refused", Iteration{Fate: core.GiveUp, Reason: "1 tool call was denied: Bash", Refused: "a.py: it writes a file; `reprise config set guard.writes allow` [writes]"},
			"given up: 1 tool call was denied: Bash; the guard refused a.py: it writes a file; `reprise config set guard.writes allow` [writes]"},
		{"put back", Iteration{Fate: core.Release, Class: "loop ends", Reason: "a person stopped it"}, "a person stopped it; put back in 16 s"},
		{"stopped", Iteration{Fate: core.Park, Class: "interrupted", Interrupt: core.ByPerson}, "stopped, and set aside"},
		{"asked, which is told with the command that answers it", Iteration{Fate: core.Park, Class: "asks", Interrupt: core.ByAgent, Reason: "which?"}, ""},
		{"lost", Iteration{Fate: core.Drop, Class: "lease lost", Reason: "somebody has it"}, "not this loop's any more: somebody has it"},
	} {
		if got := tt.it.Words(1, 3, 16200*time.Millisecond); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	it := Iteration{Fate: core.GiveUp, Class: "crash", Reason: "exit code 3"}
	if got, want := it.Words(3, 3, -time.Hour), "given up after 3 attempts: exit code 3"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	it = Iteration{Fate: core.GiveUp, Class: "no change", Reason: "it failed 3 times in the same way: nothing was changed"}
	if got, want := it.Words(3, 3, 0), "given up: it failed 3 times in the same way: nothing was changed"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSubject: an item is named by its id and its title, which an agent or a stranger may
// have written.
func TestSubject(t *testing.T) {
	for want, l := range map[string]Line{
		"loop":          {},
		"a":             {Item: "a"},
		"a 'Two lines'": {Item: "a", Title: "Two\nlines"},
		"b '12345678901234567890123456789012345678901234567…'": {Item: "b", Title: "12345678901234567890123456789012345678901234567890123"},
	} {
		if got := l.Subject(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestGist: of what checks have said, which one fails and why, and not all of it.
func TestGist(t *testing.T) {
	for text, want := range map[string]string{
		"verification ver-1: failed\n- checks test: ended with exit code 1\n  test: ok a\n  test: --- FAIL: TestX": "test: --- FAIL: TestX",
		"verification ver-1: failed\n- checks lint: ended with exit code 2\n  lint: 3 lines\n":                     "checks lint: ended with exit code 2",
		"verification ver-1: failed\n- checks lint: it is gone\n- checks test: and this\n":                         "checks lint: it is gone",
		"verification ver-1: failed":                "verification ver-1: failed",
		"it committed\nin the main checkout":        "it committed in the main checkout",
		"verification ver-1: failed\n  a: b: error": "a: b: error",
	} {
		if got := Gist(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
