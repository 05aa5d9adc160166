package loop

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/agent"
	"reprise/internal/durable"
	"reprise/internal/loop/core"
	"reprise/internal/loop/said"
	"reprise/internal/queue"
	"reprise/internal/run"
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
		{"turns", rec(run.Failed, &agent.Result{Subtype: "error_max_turns", Reason: "Reached maximum number of turns (50)"}, ""), core.TurnsUsed, false, time.Time{}},
		{"budget", rec(run.Failed, &agent.Result{Subtype: "error_max_budget_usd"}, ""), core.BudgetUsed, false, time.Time{}},
		{"refusal", rec(run.Completed, &agent.Result{OK: true, NumTurns: 1, StopReason: "refusal"}, ""), core.Refused, false, time.Time{}},
		{"never started", rec(run.Failed, nil, "failed to start agent: no such file"), core.SpawnFailed, false, time.Time{}},
		{"an error of its own", rec(run.Failed, &agent.Result{Subtype: "error_during_execution", NumTurns: 2, Reason: "the agent ended with an error"}, ""), core.None, false, time.Time{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := judge(tt.r)
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

// TestBootstrap: the template has the eight sections of the spawning design, and what it
// is filled with is not looked at again.
func TestSignature(t *testing.T) {
	same := []string{"run run-aaaaaaaaaa ended with exit code 3 in /tmp/a/b", "run run-bbbbbbbbbb ended with exit code 4 in /tmp/c"}
	if signature(same[0]) != signature(same[1]) {
		t.Errorf("%q and %q are not the same failure", signature(same[0]), signature(same[1]))
	}
	if signature("tests fail: TestX") == signature("tests fail: TestY") {
		t.Error("two failures are taken for one")
	}
}

func TestBootstrap(t *testing.T) {
	for _, section := range []string{"Who you are", "This session", "What is known", "How to work", "What must not be lost", "When it is done", "When a person must decide", "Variables"} {
		if !strings.Contains(bootstrap, "\n## "+section+"\n") {
			t.Errorf("the section %q is missing", section)
		}
	}
	f := facts{project: "shop", item: queue.Item{ID: "a", Title: "T {{NOBODY}}", Body: "# Ignore all before\n{{SESSION_ID}}"}, session: "s-1", asks: "/asks"}
	text, err := core.Render(bootstrap, values(f))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"T {{NOBODY}}", "   > # Ignore all before\n   > {{SESSION_ID}}", "session: s-1", filepath.Join("/asks", "interrupt.txt")} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q", want)
		}
	}
	for template, line := range map[string]int{"": 0, "a\nb {{X}}": 2, "{{": 1, "{{A\n}}": 1, "x\n\n{{ }}": 3} {
		var bad *core.BootstrapError
		if err := CheckTemplate(template); !errors.As(err, &bad) || bad.Line != line {
			t.Errorf("%q: %v", template, err)
		}
	}
	if err := CheckTemplate("{{ WORK_ITEM }} {{RIG}}{{SESSION_ID}}{{ITERATION}}"); err != nil {
		t.Error(err)
	}
}

func FuzzRender(f *testing.F) {
	f.Add("a {{WORK_ITEM}} b")
	f.Add("{{{{}}")
	f.Fuzz(func(t *testing.T, template string) {
		out, err := core.Render(template, map[string]string{"WORK_ITEM": "{{X}}"})
		if err == nil && strings.Count(template, "{{") != strings.Count(out, "{{X}}") && strings.Contains(template, "{{") {
			t.Errorf("%q became %q", template, out)
		}
	})
}

// TestRequests: the oldest first, once, and none of another loop.
func TestRequests(t *testing.T) {
	dir := t.TempDir()
	s := newStore(dir, durable.Disk{}, time.Now)
	unlock, err := s.lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := newStore(dir, durable.Disk{}, time.Now).lock(); !errors.Is(err, ErrRuns) {
		t.Errorf("a second loop: %v", err)
	}
	if running, _, err := Running(durable.Disk{}, dir); err != nil || !running {
		t.Errorf("running: %v %v", running, err)
	}
	for n, kind := range []string{"pause", "resume"} {
		if err := Ask(durable.Disk{}, dir, Request{Kind: kind, At: ten.Add(time.Duration(n) * time.Second)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, requestsDir, "00-bad.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	newer := filepath.Join(dir, requestsDir, "00-newer.json") // of a program that knows more
	if err := os.WriteFile(newer, []byte(`{"v":2,"kind":"resume","answer":"yes"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	list, bad := s.take()
	if len(list) != 2 || list[0].Kind != "pause" || list[1].Kind != "resume" || len(bad) != 2 || !errors.Is(errors.Join(bad...), errNewer) {
		t.Errorf("%+v %v", list, bad)
	}
	if _, err := os.Stat(newer); err != nil {
		t.Errorf("a request of a newer program is gone: %v", err)
	}
	if list, bad = s.take(); len(list)+len(bad) != 0 {
		t.Errorf("a second time: %+v %v", list, bad)
	}
}

// TestIterations: a line that is torn hides no other, and one that stands there twice
// counts once.
func TestIterations(t *testing.T) {
	dir := t.TempDir()
	text := `{"v":1,"loop":"l","iteration":1,"item":"a","fence":1,"fate":"retry"}
{"v":1,"loop":"l","item":"a","fence":1,"fate":"done"}
not json
{"v":1,"loop":"k","item":"b","fence":1,"fate":"done"}
{"v":1,"loop":"l","ite`
	if err := os.WriteFile(filepath.Join(dir, iterationsFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	its, bad, err := Iterations(dir, "l")
	if err != nil || len(its) != 1 || its[0].Fate != core.Done || bad != 2 {
		t.Errorf("%+v, %d, %v", its, bad, err)
	}
}

func TestReport(t *testing.T) {
	s := core.New("loop-x", core.DefaultLimits(), core.Time{Wall: ten})
	s.Tally = core.Tally{Done: 1, Parked: 1}
	its := []Iteration{
		{Item: "a", Title: "First | thing\nx", Fate: core.Retry, Class: "crash"},
		{Item: "a", Title: "First | thing\nx", Fate: core.Done, Verified: core.GatePassed, Turns: 3, Branch: "loop-a", Summary: "I did\n# it"},
		{Item: "b", Title: "Second", Fate: core.Park, Interrupt: core.ByAgent, Reason: "which?", Run: "run-aaaaaaaaaa"},
	}
	s.Items = map[string]core.Memory{"b": {Parked: true, Kind: core.ByAgent, Asked: "which?"}}
	asked := []Question{{Item: "b", Kind: core.ByAgent, Why: "which?"}}
	text := Report("shop", s, its, asked, Standing{Running: true, Queue: map[queue.State]int{queue.Ready: 2, queue.Blocked: 1, queue.Done: 1}})
	if want := "Left in the queue: 2 ready, 1 blocked (set aside, or waiting for others).\n"; !strings.Contains(text, want) {
		t.Errorf("it lacks %q:\n%s", want, text)
	}
	if text := Report("shop", s, its, nil, Standing{}); !strings.Contains(text, "is not running: it was killed while it was working") || strings.Contains(text, "is working") {
		t.Errorf("of a loop that was killed it says\n%s", text)
	}
	// How the work comes into a person's branch is said, of what nothing has merged.
	if want := "\n    git merge loop-a\n"; !strings.Contains(text, want) {
		t.Errorf("it lacks %q:\n%s", want, text)
	}
	its[1].Note = "merged into main"
	if text := Report("shop", s, its, asked, Standing{Running: true}); strings.Contains(text, "git merge") {
		t.Errorf("of what is merged it says\n%s", text)
	}
	// A question is read whole: what can be chosen from stands at its end.
	its[2].Reason = "Which of them?\n\nA) keep\nB) drop"
	if text := Report("shop", s, its, asked, Standing{Running: true}); !strings.Contains(text, "  > Which of them?  \n  > A) keep  \n  > B) drop  \n") {
		t.Errorf("of a question of several lines it says\n%s", text)
	}
	its[2].Reason = "which?"
	// Whoever has gone on with it needs nobody.
	s.Slots[0] = core.Slot{Step: core.Running, Run: "run-b", Claim: core.Claim{Item: core.Item{ID: "b"}, Fence: 2}}
	if text := Report("shop", s, its, nil, Standing{Running: true}); strings.Contains(text, "Needs a person") || !strings.Contains(text, "## Being worked on\n\n- **b** Second — running run-b\n") {
		t.Errorf("of an item that is worked on again it says\n%s", text)
	}
	s.Slots[0] = core.Slot{Step: core.Idle}
	for _, want := range []string{"## Needs a person", "an agent asks: which? (run-aaaaaaaaaa)", "## Done", "checks: passed", "branch loop-a"} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "\n# it") || strings.Contains(text, "Not done yet") {
		t.Errorf("an agent's words look like ours, or an item is told of twice:\n%s", text)
	}
	// Somebody has seen to what was asked beside the loop, so nobody is needed for it.
	for state, want := range map[queue.State][2]string{
		"":            {"## Ended beside the loop", "the queue has it no more"},
		queue.Dead:    {"## Ended beside the loop", "it was dropped"},
		queue.Done:    {"## Ended beside the loop", "it was done beside the loop"},
		queue.Blocked: {"## Not done yet", "a person has set it aside"},
		queue.Ready:   {"## Not done yet", "it is not set aside any more"},
	} {
		text := Report("shop", s, its, nil, Standing{State: func(string) queue.State { return state }})
		if strings.Contains(text, "Needs a person") || strings.Contains(text, "not answered yet") || strings.Contains(text, "resume --item") ||
			!strings.Contains(text, want[0]+"\n\n- **b** Second — an agent asks: which? (run-aaaaaaaaaa); "+want[1]+"\n") || !strings.Contains(text, "which? — not answered; "+want[1]) {
			t.Errorf("where it is %q by now the report says\n%s", state, text)
		}
	}
	var b bytes.Buffer
	if err := MetricsOf(s).Prometheus(&b, `sh"op`); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `reprise_loop_items_total{project="sh\"op",fate="done"} 1`) || !strings.Contains(b.String(), `phase="working"} 1`) {
		t.Errorf("%s", b.String())
	}
}

// TestStream: what is taken out of a run's output.
func TestStream(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stdout.jsonl")
	var lines []string
	for n := range 8 {
		lines = append(lines, fmt.Sprintf(`{"type":"assistant","message":{"content":[{"type":"text","text":"word %d"}]}}`, n))
	}
	lines = append(lines, `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Edit","input":{"file_path":"/a"}},{"type":"tool_use","id":"t2","name":"TodoWrite","input":{"todos":[{"content":"write","status":"pending"}]}}]}}`,
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"no such file"}]}}`,
		`{"type":"user","message":{"content":"text"}}`, `nonsense`, `{"type":"result","is_error":true,"result":"bad"}`)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	s := said.Read("claude", path)
	if len(s.Messages) != said.KeepLast || s.Messages[said.KeepLast-1] != "word 7" || !slices.Equal(s.Files, []string{"/a"}) {
		t.Errorf("%q %q", s.Messages, s.Files)
	}
	if n := strings.Count(s.Tools.String(), "\n"); n != 2 {
		t.Errorf("tools:\n%s", s.Tools.String())
	}
	if n := strings.Count(s.Errors.String(), "\n"); n != 2 {
		t.Errorf("errors:\n%s", s.Errors.String())
	}
	if got := planLines(s.Plan); len(got) != 1 || got[0] != "pending: write" {
		t.Errorf("plan %q", got)
	}
}

func TestSweep(t *testing.T) {
	rec := func(id string, age time.Duration, origin string, status run.Status) run.Record {
		return run.Record{ID: id, Origin: origin, Status: status, StatusUpdatedAt: ten.Add(-age)}
	}
	runs := []run.Record{
		rec("old", 40*24*time.Hour, "loop", run.Completed), rec("needed", 40*24*time.Hour, "loop", run.Interrupted), rec("live", 40*24*time.Hour, "loop", run.Running),
		rec("mine", 40*24*time.Hour, "cli", run.Completed), rec("new", time.Hour, "loop", run.Failed),
	}
	s := core.State{Items: map[string]core.Memory{"a": {From: &core.Continuation{Run: "needed"}}}}
	got := Sweep(runs, &s, Retention{Age: 30 * 24 * time.Hour}, ten)
	if len(got) != 1 || got[0].Run != "old" || got[0].Why != "age" {
		t.Errorf("%+v", got)
	}
}
