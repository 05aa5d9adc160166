package outcome

import (
	"reprise/internal/agent"
	"reprise/internal/loop/core"
	"reprise/internal/run"
	"testing"
	"time"
)

var ten = time.Date(2026, 1, 28, 22, 0, 0, 0, time.UTC)

// TestJudge: how a run ended, by what its record and its client say.
func TestJudge(t *testing.T) {
	ended := ten
	rec := func(s run.Status, res *agent.Result, reason string) run.Record {
		return run.Record{ID: "run-aaaaaaaaaa", Client: "claude", Status: s, StatusReason: reason, Result: res, EndedAt: &ended, SessionID: "s", Heartbeat: run.Heartbeat{MessageCount: 3}}
	}
	for _, tt := range []struct {
		name  string
		r     run.Record
		class core.Class
		done  bool // completed, and the result is good
		reset time.Time
	}{
		{"good", rec(run.Completed, &agent.Result{OK: true, NumTurns: 2, Subtype: "success"}, ""), core.None, true, time.Time{}},
		{"good, with a denied tool", rec(run.Completed, &agent.Result{OK: true, NumTurns: 2, Reason: "1 tool call was denied: Bash"}, ""), core.None, true, time.Time{}},
		{"timeout", rec(run.TimedOut, nil, "exceeded timeout"), core.TimedOut, false, time.Time{}},
		{"cancelled", rec(run.Killed, nil, "cancelled"), core.Cancelled, false, time.Time{}},
		{"crash", rec(run.Failed, nil, "its supervisor ended before it"), core.Crashed, false, time.Time{}},
		{"no result line", rec(run.Failed, &agent.Result{Reason: "ended without a result (signal SIGKILL)"}, ""), core.Crashed, false, time.Time{}},
		{"401", rec(run.Failed, &agent.Result{APIStatus: 401, Reason: "the model's API failed with status 401"}, ""), core.AuthFailed, false, time.Time{}},
		{"no login", rec(run.Failed, &agent.Result{Text: "Invalid API key · Please run /login", Subtype: "success"}, ""), core.AuthFailed, false, time.Time{}},
		{"429", rec(run.Failed, &agent.Result{APIStatus: 429, Reason: "status 429: Retry after 30 seconds"}, ""), core.RateLimited, false, ten.Add(30 * time.Second)},
		{"usage limit with a moment", rec(run.Failed, &agent.Result{Text: "Claude AI usage limit reached|1769641200", Subtype: "success"}, ""), core.RateLimited, false, time.Unix(1769641200, 0)},
		{"529", rec(run.Failed, &agent.Result{APIStatus: 529, Reason: "the model's API failed with status 529: overloaded"}, ""), core.APIError, false, time.Time{}},
		{"context", rec(run.Failed, &agent.Result{APIStatus: 400, Text: "prompt is too long: 210000 tokens > 200000 maximum"}, ""), core.ContextFull, false, time.Time{}},
		{"Claude Code has not kept the session", rec(run.Failed, &agent.Result{Subtype: "error_during_execution", Reason: "the agent ended with an error: error_during_execution", Errors: []string{"No conversation found with session ID: 1d9b"}}, ""), core.SessionGone, false, time.Time{}},
		{"Codex has not kept the session", rec(run.Failed, nil, "exit code 1: Error: thread/resume: thread/resume failed: no rollout found for thread id 1111 (code -32600)"), core.SessionGone, false, time.Time{}},
		{"turns", rec(run.Failed, &agent.Result{Subtype: "error_max_turns", Reason: "Reached maximum number of turns (50)"}, ""), core.TurnsUsed, false, time.Time{}},
		{"budget", rec(run.Failed, &agent.Result{Subtype: "error_max_budget_usd"}, ""), core.BudgetUsed, false, time.Time{}},
		{"refusal", rec(run.Completed, &agent.Result{OK: true, NumTurns: 1, StopReason: "refusal"}, ""), core.Refused, false, time.Time{}},
		{"never started", rec(run.Failed, nil, "failed to start agent: no such file"), core.SpawnFailed, false, time.Time{}},
		{"an error of its own", rec(run.Failed, &agent.Result{Subtype: "error_during_execution", NumTurns: 2, Reason: "the agent ended with an error"}, ""), core.None, false, time.Time{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := Judge(tt.r)
			if o.Class != tt.class || (o.Completed && o.OK) != tt.done {
				t.Errorf("class %q, completed %v, result %v; want %q, %v", o.Class, o.Completed, o.OK, tt.class, tt.done)
			}
			if !o.Reset.Equal(tt.reset) {
				t.Errorf("it is over at %s, want %s", o.Reset, tt.reset)
			}
			if tt.class != core.None && o.Turns == 0 && tt.r.Result != nil && tt.r.Result.NumTurns == 0 && o.Turns != 3 {
				t.Errorf("%d turns, though it spoke", o.Turns)
			}
		})
	}
}

func TestResetTime(t *testing.T) {
	local := time.Date(2026, 1, 28, 22, 0, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"try again in 5 minutes":                     local.Add(5 * time.Minute),
		"retry-after: 90":                            local.Add(90 * time.Second),
		"please retry in 1.5 hours":                  local.Add(90 * time.Minute),
		"limit reached ∙ resets 3am (europe/berlin)": time.Date(2026, 1, 29, 3, 0, 0, 0, time.Local),
		"resets at 11:30pm":                          time.Date(2026, 1, 28, 23, 30, 0, 0, time.Local),
		"resets at 25:00":                            {},
		"too many requests":                          {},
	} {
		if got := resetTime(text, local); !got.Equal(want) {
			t.Errorf("%q: %s, want %s", text, got.Local(), want)
		}
	}
}

// TestSignature: what differs from one run to the next makes no other failure of it.
func TestSignature(t *testing.T) {
	same := []string{"run run-aaaaaaaaaa ended with exit code 3 in /tmp/a/b", "run run-bbbbbbbbbb ended with exit code 4 in /tmp/c"}
	if signature(same[0]) != signature(same[1]) {
		t.Errorf("%q and %q are not the same failure", signature(same[0]), signature(same[1]))
	}
	if signature("tests fail: TestX") == signature("tests fail: TestY") {
		t.Error("two failures are taken for one")
	}
}

// TestUntold: a sum of money that has nothing of a run says so, and only then.
func TestUntold(t *testing.T) {
	for name, tt := range map[string]struct {
		r      run.Record
		usd    float64
		tokens int64
		turns  int
		want   bool
	}{
		"Codex, which never says it":      {r: run.Record{Client: agent.KindCodex}, tokens: 700, turns: 2, want: true},
		"Codex, which asked nothing":      {r: run.Record{Client: agent.KindCodex}},
		"Copilot, whose tokens are none":  {r: run.Record{Client: agent.KindCopilot}, turns: 1, want: true},
		"Claude Code said it":             {r: run.Record{Client: agent.KindClaude, Result: &agent.Result{Subtype: "success"}}, usd: 0.1, tokens: 7},
		"Claude Code, which cost nothing": {r: run.Record{Client: agent.KindClaude, Result: &agent.Result{Subtype: "success"}}},
		"Claude Code, killed at once":     {r: run.Record{Client: agent.KindClaude, Result: &agent.Result{Reason: "ended without a result"}}, want: true},
		"Claude Code, which is estimated": {r: run.Record{Client: agent.KindClaude}, tokens: 7},
		"Claude Code, never started":      {r: run.Record{Client: agent.KindClaude, StatusReason: "failed to start agent: no such file"}},
		"a script":                        {r: run.Record{Client: agent.KindScript}, turns: 2},
	} {
		if got := Untold(tt.r, tt.usd, tt.tokens, tt.turns); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
