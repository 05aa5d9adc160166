package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"reprise/internal/agent"
	"reprise/internal/git"
	"reprise/internal/loop/core"
	"reprise/internal/loop/said"
	"reprise/internal/queue"
	"reprise/internal/run"
)

// The rows of the table in docs/loop.md, each with the driver.

func TestNightDone(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.add("a", "b")
	s := n.all()
	n.want("a done, b done")
	if s.Tally.Done != 2 || s.Reason != "the queue is empty" || s.CostUSD < 0.19 || s.Tokens != 200 {
		t.Errorf("%+v", s)
	}
	its, _, err := Iterations(n.opt.Dir, s.Loop)
	if err != nil || len(its) != 2 || !its[0].Completed || !its[0].Succeeded || its[0].Verified != core.GateNone || its[0].Turns != 2 {
		t.Errorf("%+v %v", its, err)
	}
	lines, _, err := Audit(n.opt.Dir, s.Loop)
	ends := 0
	for _, l := range lines {
		if strings.Contains(l.Op+" "+l.Text, "finished") {
			ends++
		}
	}
	if err != nil || ends != 1 {
		t.Errorf("its end is told %d times: %+v %v", ends, lines, err)
	}
	req := n.runs.requests()[0]
	if !req.Detach || !req.AllowStateWrite || req.Work.Grace != StopGrace || req.Origin != "loop" {
		t.Errorf("%+v", req)
	}
	for _, name := range []string{"SESSION_ID=" + req.Work.Session, "HARNESS_SESSION=true", "INTERRUPT_FILE=", "ERROR_FILE=", "PROGRESS_FILE=", "ITERATION=1", "WORK_ITEM=a", "REPRISE_ACTOR=a", "BD_ACTOR=a", "BD_RIG=shop"} {
		if !slices.ContainsFunc(req.Work.Vars, func(kv string) bool { return strings.HasPrefix(kv, name) }) {
			t.Errorf("its environment lacks %s: %q", name, req.Work.Vars)
		}
	}
}

// Only all three together are done.
func TestNightThreeFields(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		play  play
		free  bool // an item that needs no change
		class core.Class
	}{
		{"zero turns", play{result: &agent.Result{OK: true}, change: true}, false, core.NoTurn},
		{"no change", play{}, false, core.NoChange},
		{"no change, and none needed", play{}, true, core.None},
		{"a result that is an error", play{status: run.Failed, result: &agent.Result{Subtype: "error_during_execution", NumTurns: 1, Text: "oh"}, change: true}, false, core.Crashed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNight(t, tt.play)
			if _, err := n.queue.Add(t.Context(), queue.Item{ID: "a", Title: "a", MaxAttempts: 1, NoChangeOK: tt.free}); err != nil {
				t.Fatal(err)
			}
			s := n.all()
			its, _, err := Iterations(n.opt.Dir, s.Loop)
			if err != nil || len(its) != 1 {
				t.Fatalf("%+v %v", its, err)
			}
			done := tt.class == core.None
			if it := its[0]; (it.Fate == core.Done) != done || it.Succeeded != done || !done && it.Class != string(tt.class) && it.Class != string(core.BadResult) {
				t.Errorf("%+v", its[0])
			}
			if done != (s.Tally.Done == 1) {
				t.Errorf("%+v", s.Tally)
			}
		})
	}
}

// The client cannot be started: given back, five in a row are an interrupt.
func TestNightCannotStart(t *testing.T) {
	t.Parallel()
	n := newNight(t, play{start: errNoProgram}, play{start: errNoProgram}, play{start: errNoProgram}, play{start: errNoProgram}, play{start: errNoProgram})
	n.add("a")
	n.begin()
	n.waits(core.ByFailing)
	n.want("a ready")
	if it, err := n.queue.Get(t.Context(), "a"); err != nil || it.Attempts != 0 {
		t.Errorf("%d attempts are counted against it, %v", it.Attempts, err)
	}
	if s := n.loop.State(); s.Tally.Released != 5 {
		t.Errorf("%+v", s.Tally)
	}
	n.ask(Request{Kind: "resume"}) // it has been installed meanwhile
	if s := n.end(); s.Tally.Done != 1 {
		t.Errorf("%+v", s.Tally)
	}
}

// The template is wrong: the same, and nothing is started.
func TestNightTemplateIsWrong(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.opt.Template = "{{NOBODY}}"
	n.add("a")
	n.begin()
	if i := n.waits(core.ByFailing); !strings.Contains(i.Why, "NOBODY") {
		t.Errorf("%q", i.Why)
	}
	if len(n.runs.requests()) != 0 {
		t.Error("something was started")
	}
	n.over()
	n.want("a ready")
}

// The workspace cannot be made: the same.
func TestNightNoWorkspace(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	for range 5 {
		n.place.fail = append(n.place.fail, errors.New("the branch is checked out elsewhere"))
	}
	n.add("a")
	n.begin()
	if i := n.waits(core.ByFailing); !strings.Contains(i.Why, "checked out elsewhere") {
		t.Errorf("%q", i.Why)
	}
	n.ask(Request{Kind: "resume"})
	if s := n.end(); s.Tally.Done != 1 {
		t.Errorf("%+v", s.Tally)
	}
}

// Nothing is ready: it waits until the queue tells of something.
func TestNightWaitsForWork(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.opt.Limits.UntilEmpty, n.opt.Limits.IdleWait = false, time.Hour
	n.begin()
	n.until("idle", func(s core.State) bool { return s.Empty })
	n.add("late")
	n.until("done with it", func(s core.State) bool { return s.Tally.Done == 1 })
	n.over()
}

// What comes and may not be begun yet is noticed when it comes, and begun when it may be.
func TestNightNoticesWhatComesLater(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.opt.Limits.UntilEmpty, n.opt.Limits.IdleWait = false, time.Hour
	n.begin()
	n.until("idle", func(s core.State) bool { return s.Empty })
	for id, d := range map[string]time.Duration{"far": time.Hour, "near": 300 * time.Millisecond} {
		if _, err := n.queue.Add(t.Context(), queue.Item{ID: id, Title: "x", NotBefore: time.Now().Add(d)}); err != nil {
			t.Fatal(err)
		}
		n.until("waiting for "+id, func(s core.State) bool { return strings.Contains(s.Left, id+" waits until") || s.Tally.Done == 1 })
	}
	s := n.until("done with it", func(s core.State) bool { return s.Tally.Done == 1 && strings.Contains(s.Left, "far waits until") })
	if s.Empty {
		t.Errorf("nothing is said to be left: %+v", s)
	}
	n.over()
	n.want("far ready, near done")
}

// What a failed run of a class leads to, and how the next one goes on.
func TestNightTriesAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		first    play
		same     bool // the next run goes on in the session
		attempts int  // that are counted
	}{
		{"crash", play{status: run.Failed, reason: "ended without a result (signal SIGSEGV)"}, false, 1},
		{"time limit", play{status: run.TimedOut, reason: "exceeded timeout"}, true, 1},
		{"stall", play{hang: true}, false, 1},
		{"the model's service fails", failedWith(agent.Result{APIStatus: 529, NumTurns: 1, Reason: "overloaded"}), true, 0},
		{"rate limit", failedWith(agent.Result{APIStatus: 429, NumTurns: 1, Text: "try again in 20 ms"}), true, 0},
		{"context full", failedWith(agent.Result{APIStatus: 400, NumTurns: 1, Text: "prompt is too long"}), false, 0},
		{"turns used up", failedWith(agent.Result{Subtype: "error_max_turns", NumTurns: 50, IsError: true}), true, 0},
		{"an agent's own error", failedWith(agent.Result{Subtype: "error_during_execution", NumTurns: 2, Reason: "bad"}), false, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNight(t, tt.first)
			if tt.first.hang { // of the others each is to end by itself, however late that is seen
				n.opt.Limits.Stall = 50 * time.Millisecond
			}
			n.add("a")
			s := n.all()
			n.want("a done")
			reqs := n.runs.requests()
			if len(reqs) != 2 {
				t.Fatalf("%d runs: %+v", len(reqs), s)
			}
			if same := reqs[1].Work.Resume == reqs[0].Work.Session && reqs[0].Work.Session != ""; same != tt.same {
				t.Errorf("the next run resumes %q, the first was %q", reqs[1].Work.Resume, reqs[0].Work.Session)
			}
			if it, err := n.queue.Get(t.Context(), "a"); err != nil || it.Attempts != tt.attempts {
				t.Errorf("%d attempts, want %d (%v)", it.Attempts, tt.attempts, err)
			}
			if !tt.same && !strings.Contains(reqs[1].SystemPrompt, "Another session has worked on this item before you") {
				t.Errorf("a new session is not told of the one before:\n%s", reqs[1].SystemPrompt)
			}
			for _, name := range []string{"context.json", "summary.md", "iteration.json"} {
				if _, err := os.Stat(filepath.Join(n.runs.dir, n.runs.id(0), name)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A rate limit holds everything until the time that the service named.
func TestNightRateLimit(t *testing.T) {
	t.Parallel()
	n := newNight(t, failedWith(agent.Result{APIStatus: 429, NumTurns: 1, Text: "try again in 700 ms"}))
	n.add("a", "b")
	s := n.all()
	n.want("a done, b done")
	if began := n.runs.requests(); s.Tally.RateLimited != 1 || len(began) != 3 {
		t.Errorf("%d runs: %+v", len(began), s)
	}
	// On a machine that is busy the hold may be over before anybody has looked at it.
	lines, _, err := Audit(n.opt.Dir, s.Loop)
	if err != nil {
		t.Fatal(err)
	}
	claims := 0
	for _, l := range lines {
		if l.Op != "claimed" {
			continue
		}
		if claims++; claims > 1 && l.At.Before(s.HoldWall) {
			t.Errorf("claimed at %v, held until %v", l.At, s.HoldWall)
		}
	}
	if s.HoldWall.IsZero() || claims != 3 {
		t.Errorf("held until %v, %d claims", s.HoldWall, claims)
	}
	r, err := n.runs.Get(n.runs.id(1))
	if err != nil || r.StartedAt.Before(s.HoldWall) {
		t.Errorf("the next began at %s, the limit was to %s (%v)", r.StartedAt, s.HoldWall, err)
	}
}

// A rate limit holds the loop that is begun after the one that met it, too.
func TestNightLimitOutlivesTheLoop(t *testing.T) {
	t.Parallel()
	n := newNight(t, failedWith(agent.Result{APIStatus: 429, NumTurns: 1, Text: "try again in 1500 ms"}))
	n.add("a")
	n.begin()
	met := n.until("holding", func(s core.State) bool { return s.Tally.RateLimited == 1 && s.Busy() == 0 })
	n.stop <- "enough"
	n.end()
	n.begin()
	next := n.end()
	n.want("a done")
	if next.Loop == met.Loop {
		t.Error("it is the same loop")
	}
	if r, err := n.runs.Get(n.runs.id(1)); err != nil || r.StartedAt.Before(met.HoldWall) {
		t.Errorf("the next loop began it at %s, the limit was to %s (%v)", r.StartedAt, met.HoldWall, err)
	}
}

// The checks fail: told to the same session; twice is an interrupt.
func TestNightChecksFail(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	fails := 1
	n.check = func(string) Checked {
		if fails--; fails >= 0 {
			return Checked{Gate: core.GateFailed, Text: "TestLogin fails"}
		}
		return Checked{Gate: core.GatePassed}
	}
	n.add("a")
	n.all()
	n.want("a done")
	reqs := n.runs.requests()
	if len(reqs) != 2 || reqs[1].Work.Resume != reqs[0].Work.Session || !strings.Contains(reqs[1].Task, "TestLogin fails") {
		t.Errorf("%d runs, the last: %+v", len(reqs), reqs[len(reqs)-1])
	}

	n = newNight(t)
	fails = 2
	n.check = func(string) Checked {
		if fails--; fails >= 0 {
			return Checked{Gate: core.GateFailed, Text: "TestLogin fails"}
		}
		return Checked{Gate: core.GatePassed}
	}
	n.add("a")
	n.begin()
	if i := n.waits(core.ByGate, "a"); !strings.Contains(i.Why, "TestLogin") {
		t.Errorf("%q", i.Why)
	}
	n.want("a blocked")
	n.ask(Request{Kind: "resume", Answer: "the test is wrong, mend it"})
	n.end()
	n.want("a done")
	if last := n.runs.requests()[2]; !strings.Contains(last.Task, "the test is wrong, mend it") {
		t.Errorf("%q", last.Task)
	}
}

// A run asks, by either file: stopped, kept, gone on with in the same session and with
// the answer.
func TestNightAgentAsks(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]string{"INTERRUPT_FILE": "interrupt.txt", "ERROR_FILE": "error.txt"} {
		t.Run(name, func(t *testing.T) {
			n := newNight(t, play{hang: true, do: asks(name, "which of the two?"), change: true})
			n.add("a", "b")
			n.begin()
			if i := n.waits(core.ByAgent, "a"); i.Why != "which of the two?" {
				t.Errorf("%q", i.Why)
			}
			n.want("a blocked, b ready")
			if len(n.runs.stops) != 1 || !strings.HasPrefix(n.runs.stops[0], "interrupted") {
				t.Errorf("stopped: %q", n.runs.stops)
			}
			if text, err := os.ReadFile(filepath.Join(n.runs.dir, n.runs.id(0), kind)); err != nil || string(text) != "which of the two?" {
				t.Errorf("kept: %q, %v", text, err)
			}
			n.ask(Request{Kind: "resume", Answer: "the second"})
			n.end()
			n.want("a done, b done")
			reqs := n.runs.requests()
			at := slices.IndexFunc(reqs[1:], func(r run.Request) bool { return strings.Contains(r.Task, "the second") })
			if at < 0 || name == "INTERRUPT_FILE" && reqs[at+1].Work.Resume != reqs[0].Work.Session {
				t.Errorf("%+v", reqs)
			}
		})
	}
}

// Not logged in: nothing more is begun, told once.
func TestNightNotLoggedIn(t *testing.T) {
	t.Parallel()
	bad := failedWith(agent.Result{APIStatus: 401, Reason: "invalid api key"})
	n := newNight(t, bad, bad)
	n.opt.Limits.Workers = 2
	n.add("a", "b", "c")
	n.begin()
	n.waits(core.ByAuth)
	if told := n.told(); len(told) != 1 {
		t.Errorf("told %q", told)
	}
	n.runs.mu.Lock()
	n.runs.plays = nil // the second worker's run may not have begun when the first one's had failed
	n.runs.mu.Unlock()
	n.ask(Request{Kind: "resume"})
	n.end()
	n.want("a done, b done, c done")

	// With skip there is nothing else to do: the loop ends.
	n = newNight(t, bad)
	n.opt.Limits.OnInterrupt = core.Skip
	n.add("a", "b")
	if s := n.all(); !strings.HasPrefix(s.Reason, core.ByAuth) || len(n.runs.requests()) != 1 {
		t.Errorf("%+v", s)
	}
	n.want("a ready, b ready")
}

// Five fresh sessions are enough for one item whose context is always full.
func TestNightContextAlwaysFull(t *testing.T) {
	t.Parallel()
	var full []play
	for range 6 {
		full = append(full, failedWith(agent.Result{APIStatus: 400, NumTurns: 1, Text: "prompt is too long"}))
	}
	n := newNight(t, full...)
	n.add("a")
	n.begin()
	n.waits(core.ByContinues, "a")
	if len(n.runs.requests()) != 6 {
		t.Errorf("%d runs", len(n.runs.requests()))
	}
	n.over()
	n.want("a blocked")
}

// A run's money, a refusal, a denied tool.
func TestNightMoneyRefusalDenial(t *testing.T) {
	t.Parallel()
	n := newNight(t, failedWith(agent.Result{Subtype: "error_max_budget_usd", NumTurns: 5, CostUSD: 10.2}))
	n.add("a")
	n.begin()
	n.waits(core.ByBudget, "a")
	n.over()
	n.want("a blocked")

	n = newNight(t, play{result: &agent.Result{OK: true, NumTurns: 1, StopReason: "refusal", Text: "I will not"}})
	n.add("a")
	n.all()
	n.want("a dead")

	n = newNight(t, play{change: true, result: &agent.Result{OK: true, NumTurns: 3, Text: "done", Reason: "1 tool call was denied: Bash"}})
	n.add("a")
	s := n.all()
	n.want("a done")
	its, _, _ := Iterations(n.opt.Dir, s.Loop)
	lines, _, _ := Audit(n.opt.Dir, s.Loop)
	if len(its) != 1 || !slices.ContainsFunc(lines, func(l Line) bool { return l.Op == "ended" && strings.Contains(l.Text, "denied: Bash") }) {
		t.Errorf("the denial is noted nowhere: %+v", lines)
	}
}

// The same failure three times: of one item it is given up, of three it is an interrupt;
// five different items in a row are one, too.
func TestNightFailuresInARow(t *testing.T) {
	t.Parallel()
	same := play{status: run.Failed, reason: "ended without a result (exit code 3)"}
	n := newNight(t, same, same, same)
	n.add("a")
	n.all()
	n.want("a dead")

	n = newNight(t, same, same, same)
	n.opt.Limits.BackoffUnit, n.opt.Limits.BackoffMax = time.Minute, time.Minute // each of them once before one of them again
	n.add("a", "b", "c")
	n.begin()
	n.waits(core.ByIdentical)
	n.over()

	var different []play
	for i := range 5 {
		different = append(different, play{status: run.Failed, reason: "ended without a result: " + strings.Repeat("x", i+1)})
	}
	n = newNight(t, different...)
	n.opt.Limits.BackoffUnit, n.opt.Limits.BackoffMax = time.Minute, time.Minute
	n.add("a", "b", "c", "d", "e")
	n.begin()
	n.waits(core.ByFailing)
	n.over()
}

// The lease was lost: the run is stopped, and the queue hears nothing of it.
func TestNightLeaseLost(t *testing.T) {
	t.Parallel()
	n := newNight(t, play{hang: true})
	n.add("a")
	n.begin()
	s := n.until("running", func(s core.State) bool { return len(s.Slots) > 0 && s.Slots[0].Step == core.Running })
	// Another has it now, as after a lease that ran out.
	if _, err := n.queue.Release(t.Context(), queue.Token(s.Slots[0].Claim.Token), "somebody took it away"); err != nil {
		t.Fatal(err)
	}
	c, err := n.queue.Claim(t.Context(), queue.ClaimOptions{ID: "a", Worker: "other"})
	if err != nil {
		t.Fatal(err)
	}
	n.loop.send(t.Context(), core.LeaseLost{Slot: 0, Item: "a", Fence: s.Slots[0].Claim.Fence})
	n.until("rid of it", func(s core.State) bool { return s.Tally.Lost == 1 && s.Busy() == 0 })
	if len(n.runs.stops) != 1 {
		t.Errorf("stopped: %q", n.runs.stops)
	}
	if it, err := n.queue.Get(t.Context(), "a"); err != nil || it.State != queue.Claimed || it.Fence != c.Fence {
		t.Errorf("%+v %v", it, err)
	}
	n.over()
}

// What an item builds on is merged before its own place is made, though the queue has it
// as done before that. Others do not wait.
func TestNightBuildsOnWhatIsMerged(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	hold := make(chan struct{})
	n.place.hold = map[string]chan struct{}{"base": hold}
	n.opt.Limits.Workers = 3
	for _, it := range []queue.Item{{ID: "base", Title: "x"}, {ID: "upon", Title: "x", DependsOn: []string{"base"}}, {ID: "other", Title: "x"}} {
		if _, err := n.queue.Add(t.Context(), it); err != nil {
			t.Fatal(err)
		}
	}
	n.begin()
	s := n.until("at what builds on it", func(s core.State) bool {
		return s.Tally.Done == 2 && slices.ContainsFunc(s.Slots, func(p core.Slot) bool { return p.Claim.Item.ID == "upon" && p.Step == core.Preparing })
	})
	if !slices.ContainsFunc(s.Slots, func(p core.Slot) bool { return p.Claim.Item.ID == "base" && p.Step == core.Archiving }) {
		t.Errorf("%+v", s.Slots)
	}
	close(hold)
	n.end()
	n.want("base done, other done, upon done")
	at := func(what string) int { return slices.Index(n.place.finished, what) }
	if at("upon prepared") < at("base done") {
		t.Errorf("%q", n.place.finished)
	}
}

// What a run says of its progress stands with its item.
func TestNightProgress(t *testing.T) {
	t.Parallel()
	n := newNight(t, play{change: true, do: asks("PROGRESS_FILE", "3/10 Implementing the login\n")})
	n.add("a")
	n.all()
	it, err := n.queue.Get(t.Context(), "a")
	if err != nil || it.Progress == nil || it.Progress.StepsCompleted != 3 || it.Progress.StepsTotal != 10 || it.Progress.CurrentStep != "Implementing the login" {
		t.Errorf("%+v %v", it.Progress, err)
	}
}

func TestParseProgress(t *testing.T) {
	for text, want := range map[string]queue.Progress{
		"3/10": {StepsCompleted: 3, StepsTotal: 10}, " 0/2 look \n": {StepsTotal: 2, CurrentStep: "look"},
		`{"steps_completed":1,"steps_total":4,"current_step":"x"}`: {StepsCompleted: 1, StepsTotal: 4, CurrentStep: "x"},
	} {
		if got, err := queue.ParseProgress(text); err != nil || got != want {
			t.Errorf("%q: %+v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "3", "3/x", "4/3", "-1/3", "{", `{"steps_completed":-1}`} {
		if p, err := queue.ParseProgress(text); err == nil {
			t.Errorf("%q is taken: %+v", text, p)
		}
	}
}

// An item's route: its client, model, tools, turns, money and time.
func TestNightRoutes(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.opt.Route = func(it queue.Item) Route {
		if len(it.Labels) > 0 {
			return Route{Client: "codex", Model: "m", Tools: []string{"Read"}, Turns: 7, USD: 0.5, Timeout: time.Minute}
		}
		return Route{Turns: 50}
	}
	for _, it := range []queue.Item{{ID: "plain", Title: "x"}, {ID: "routed", Title: "x", Labels: []string{"go"}}, {ID: "meant", Title: "x", Labels: []string{"go"}, Agent: "gemini"}} {
		if _, err := n.queue.Add(t.Context(), it); err != nil {
			t.Fatal(err)
		}
	}
	n.all()
	got := map[string]string{}
	for _, r := range n.runs.requests() {
		got[filepath.Base(r.WorkDir)] = fmt.Sprint(r.Client, r.Model, r.Work.AllowedTools, r.Work.MaxTurns, r.Work.MaxBudgetUSD, r.Timeout)
	}
	for item, want := range map[string]string{"plain": "claude[] 50 10 1h0m0s", "routed": "codexm[Read] 7 0.5 1m0s", "meant": "geminim[Read] 7 0.5 1m0s"} {
		if got[item] != want {
			t.Errorf("%s: %q, want %q", item, got[item], want)
		}
	}
}

// A client that was not proved to be kept from what is refused is not started, and asked
// once only.
func TestNightUnproved(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	asked := 0
	n.opt.Prove = func(context.Context, string) error { asked++; return errors.New("its hook does not block") }
	n.add("a")
	n.begin()
	if i := n.waits(core.ByFailing); !strings.Contains(i.Why, "does not block") {
		t.Errorf("%q", i.Why)
	}
	if asked != 1 || len(n.runs.requests()) != 0 {
		t.Errorf("asked %d times, %d runs", asked, len(n.runs.requests()))
	}
	n.over()
}

// The loop's money: what is set aside for runs never exceeds it, and at the end a person
// is asked.
func TestNightMoney(t *testing.T) {
	t.Parallel()
	dear := play{change: true, result: &agent.Result{OK: true, NumTurns: 1, Text: "done", CostUSD: 2}}
	n := newNight(t, dear, dear, dear, dear)
	n.opt.Limits.MaxUSD, n.opt.Limits.ItemUSD = 4, 2
	n.add("a", "b", "c")
	n.begin()
	n.waits(core.ByBudget)
	if len(n.runs.requests()) != 2 {
		t.Errorf("%d runs", len(n.runs.requests()))
	}
	n.ask(Request{Kind: "resume", More: &More{USD: 5}})
	n.end()
	n.want("a done, b done, c done")
}

// A person interrupts, and answers.
func TestNightPersonInterrupts(t *testing.T) {
	t.Parallel()
	n := newNight(t, play{hang: true, change: true})
	n.add("a")
	n.begin()
	n.until("running", func(s core.State) bool { return len(s.Slots) > 0 && s.Slots[0].Step == core.Running })
	n.ask(Request{Kind: "interrupt", Why: "look at this"})
	n.waits(core.ByPerson, "a")
	n.want("a blocked")
	n.ask(Request{Kind: "resume", Answer: "go on"})
	n.end()
	n.want("a done")
	if r := n.runs.requests(); len(r) != 2 || r[1].Work.Resume != r[0].Work.Session || !strings.Contains(r[1].Task, "go on") {
		t.Errorf("%+v", r)
	}
}

// What is taken out of the output of the other clients.
func TestStreamOthers(t *testing.T) {
	for client, text := range map[string]string{
		"codex": `{"type":"thread.started","thread_id":"t"}
{"type":"item.completed","item":{"id":"item_0","type":"error","message":"a warning"}}
{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"go test","status":"in_progress"}}
{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"go test","aggregated_output":"FAIL","exit_code":3,"status":"failed"}}
{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"All done."}}`,
		"gemini": `{"type":"tool_use","tool_name":"run_shell_command","tool_id":"c1","parameters":{"command":"go test"}}
{"type":"tool_result","tool_id":"c1","status":"error","output":"FAIL"}
{"type":"message","role":"assistant","content":"All ","delta":true}
{"type":"message","role":"assistant","content":"done.","delta":true}`,
		"copilot": `{"type":"tool.execution_start","data":{"toolCallId":"c1","toolName":"bash","arguments":{"command":"go test"}}}
{"type":"tool.execution_complete","data":{"toolCallId":"c1","success":false,"error":{"message":"FAIL"}}}
{"type":"assistant.message","data":{"content":"All done.","toolRequests":[]}}`,
	} {
		path := filepath.Join(t.TempDir(), "stdout.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := said.Read(client, path)
		if len(s.Messages) != 1 || s.Messages[0] != "All done." || strings.Count(s.Tools.String(), "\n") != 1 || !strings.Contains(s.Tools.String(), "go test") || strings.Count(s.Errors.String(), "\n") != 1 || !strings.Contains(s.Errors.String(), "FAIL") {
			t.Errorf("%s: %q\n%s%s", client, s.Messages, s.Tools.String(), s.Errors.String())
		}
	}
}

// The file that says that a person is waited for is removed, and nobody has answered: the
// work goes on, and neither the log nor the session takes that for an answer.
func TestNightGoesOnUnanswered(t *testing.T) {
	t.Parallel()
	for name, fresh := range map[string]bool{"INTERRUPT_FILE": false, "ERROR_FILE": true} {
		t.Run(name, func(t *testing.T) {
			n := newNight(t, play{hang: true, do: asks(name, "which of the two?"), change: true})
			n.add("a")
			n.begin()
			n.waits(core.ByAgent, "a")
			if err := os.Remove(filepath.Join(n.opt.Dir, interruptFile)); err != nil {
				t.Fatal(err)
			}
			s := n.end()
			n.want("a done")
			last := n.runs.requests()[1]
			told := last.Task
			if fresh {
				told = last.SystemPrompt
			}
			if strings.Contains(last.Task, "has answered") || !strings.Contains(told, "has no answer") {
				t.Errorf("the session is told\n%s", told)
			}
			lines, _, err := Audit(n.opt.Dir, s.Loop)
			said := ""
			for _, l := range lines {
				said += l.Op + " " + l.Text + "\n"
			}
			if err != nil || !strings.Contains(said, "request interrupt.txt was removed, so it goes on without an answer\nresumed without an answer\n") {
				t.Errorf("%v\n%s", err, said)
			}
		})
	}
}

// What the checks say may have any bytes in it: what a session is told of them has none that
// no program takes as an argument, nor any that does something to a terminal.
func TestNightChecksSayBytes(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	fails := 1
	n.check = func(string) Checked {
		if fails--; fails >= 0 {
			return Checked{Gate: core.GateFailed, Text: "TestLogin\x00fails \x1b[31mred\x1b[0m \xff\xfe end\r\nnext"}
		}
		return Checked{Gate: core.GatePassed}
	}
	if _, err := n.queue.Add(t.Context(), queue.Item{ID: "a", Title: "Do\x07 it", Body: "with \x00 in it", MaxAttempts: 9}); err != nil {
		t.Fatal(err)
	}
	n.all()
	n.want("a done")
	reqs := n.runs.requests()
	if len(reqs) != 2 || !strings.Contains(reqs[1].Task, "TestLogin") || !strings.Contains(reqs[1].Task, "end\nnext") {
		t.Fatalf("%d runs: %q", len(reqs), reqs[len(reqs)-1].Task)
	}
	for _, r := range reqs {
		for _, text := range []string{r.Task, r.SystemPrompt} {
			if i := strings.IndexAny(text, "\x00\x07\x1b\r"); i >= 0 || !utf8.ValidString(text) {
				t.Errorf("it is told %q", text[max(i-20, 0):])
			}
		}
	}
}

// A loop that is killed between going on and taking the interrupt file away leaves it there: the
// next one does not take that for a person's, and does take one that a person has made.
func TestNightFileLeftBehind(t *testing.T) {
	t.Parallel()
	for name, byPerson := range map[string]bool{"agent: which?": false, "stop and look": true} {
		t.Run(name, func(t *testing.T) {
			n := newNight(t)
			n.add("a")
			st := newStore(n.opt.Dir, n.opt.Disk, n.opt.Now)
			unlock, err := st.lock()
			if err != nil {
				t.Fatal(err)
			}
			s := core.New("loop-1", n.opt.Limits, core.Time{})
			s.Shown = "agent: which?"
			err = errors.Join(st.save(s), os.WriteFile(filepath.Join(n.opt.Dir, interruptFile), []byte(name+"\n"), 0o600), unlock())
			if err != nil {
				t.Fatal(err)
			}
			if !byPerson {
				n.all()
				n.want("a done")
				return
			}
			n.begin()
			if i := n.waits(core.ByPerson); i.Why != "stop and look" {
				t.Errorf("it waits for %q", i.Why)
			}
			n.over()
		})
	}
}

// What could not be merged is given to an item of its own, once: what builds on it waits for
// that, also where it had been claimed already, or nobody had lived to have it wait.
func TestNightWaitsForTheMerge(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"ready later", "claimed already", "not noted"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			var n *night
			held := func(run.Request) { // the merge is not over before what builds on it waits for it
				for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
					if it, err := n.queue.Get(context.Background(), "upon"); err == nil && it.State == queue.Blocked && it.Waits != "base" {
						return
					}
				}
			}
			n = newNight(t, play{change: true}, play{change: true, do: held})
			hold := make(chan struct{})
			n.place.hold = map[string]chan struct{}{"base": hold}
			n.place.conflicts = map[string]bool{"base": true}
			if n.opt.Limits.Workers = 1; how != "ready later" {
				n.opt.Limits.Workers = 2
			}
			if how == "not noted" {
				n.opt.Queue = &editless{Queue: n.queue, fail: 1}
			}
			for _, it := range []queue.Item{{ID: "base", Title: "x"}, {ID: "upon", Title: "x", DependsOn: []string{"base"}}} {
				if _, err := n.queue.Add(t.Context(), it); err != nil {
					t.Fatal(err)
				}
			}
			n.begin()
			n.until("at the end of the first", func(s core.State) bool {
				at := func(id string, step core.Step) bool {
					return slices.ContainsFunc(s.Slots, func(p core.Slot) bool { return p.Claim.Item.ID == id && p.Step == step })
				}
				return at("base", core.Archiving) && (how != "claimed already" || at("upon", core.Preparing))
			})
			close(hold)
			s := n.end()
			by := queue.KeyID(mergeKey + "base:1")
			n.want("base done, upon done, " + by + " done")
			it, err := n.queue.Get(t.Context(), "upon")
			if err != nil || !slices.Equal(it.DependsOn, []string{"base", by}) || it.Attempts > 0 {
				t.Errorf("%+v %v", it, err)
			}
			if at := func(what string) int { return slices.Index(n.place.finished, what) }; at("upon prepared") < at(by+" done") {
				t.Errorf("%q", n.place.finished)
			}
			if len(n.runs.started) != 3 || s.Tally.Failed > 0 {
				t.Errorf("%d runs, %+v", len(n.runs.started), s.Tally)
			}
		})
	}
}

// editless is a queue in which items cannot be changed for some time.
type editless struct {
	queue.Queue
	mu   sync.Mutex
	fail int
}

func (q *editless) Edit(ctx context.Context, id string, e queue.Edit) (queue.Item, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail--; q.fail >= 0 {
		return queue.Item{}, errors.New("not now")
	}
	return q.Queue.Edit(ctx, id, e)
}

// A queue that is away for the moment is no failure of the item whose place is to be made.
func TestNightQueueAwayInPrepare(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.opt.Queue = &awayQueue{Queue: n.queue, fail: 4}
	n.add("a")
	s := n.all()
	n.want("a done")
	if it, err := n.queue.Get(t.Context(), "a"); err != nil || it.Attempts > 0 || len(it.History) != 3 || s.Spawning > 0 || s.Tally.Released > 0 {
		t.Errorf("%+v %v %+v", it, err, s.Tally)
	}
}

// awayQueue is one whose servers do not answer the first times that an item is asked for.
type awayQueue struct {
	queue.Queue
	mu   sync.Mutex
	fail int
}

func (q *awayQueue) Get(ctx context.Context, id string) (queue.Item, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail--; q.fail >= 0 {
		return queue.Item{}, queue.Away(errors.New("no servers available"))
	}
	return q.Queue.Get(ctx, id)
}

// The same where a loop takes up a run whose end nobody saw: that cannot be seen for the
// moment is no sign that nothing has changed.
func TestNightQueueAwayAtTheEnd(t *testing.T) {
	t.Parallel()
	n := newNight(t, play{change: true, hang: true})
	n.add("a")
	ctx, die := context.WithCancel(t.Context())
	defer die()
	n.loop, n.done = New(n.opt), make(chan error, 1)
	go func() {
		_, err := n.loop.Run(ctx, n.stop)
		n.done <- err
	}()
	n.until("running", func(s core.State) bool { return len(s.Slots) > 0 && s.Slots[0].Step == core.Running })
	die()
	if err := <-n.done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	n.runs.finish(n.runs.id(0), run.Completed, "", &agent.Result{OK: true, NumTurns: 2, Text: "done"})
	n.opt.Queue = &awayQueue{Queue: n.queue, fail: 6}
	s := n.all()
	n.want("a done")
	if it, err := n.queue.Get(t.Context(), "a"); err != nil || it.Attempts > 0 || s.Tally != (core.Tally{Done: 1}) {
		t.Errorf("%+v %v %+v", it, err, s.Tally)
	}
}

// What git says of a full disk is of the moment, too, and what it says of others is not.
func TestPassingInGit(t *testing.T) {
	for said, want := range map[string]bool{
		"fatal: cannot update the ref 'refs/heads/x': No space left on device": true,
		"error: unable to write file f: Input/output error":                    true,
		"fatal: not a git repository":                                          false,
	} {
		if got := passing(fmt.Errorf("make it: %w", &git.Error{Stderr: said})); got != want {
			t.Errorf("%s: %v", said, got)
		}
	}
}

// A queue of which something cannot be read is not told to be empty.
func TestNightUnreadable(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.add("a", "b")
	found, err := filepath.Glob(filepath.Join(n.dir, "queue", "ready", "*~a.json"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	if err := os.WriteFile(found[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := n.all(); !strings.Contains(s.Reason, "1 file of the queue cannot be read") {
		t.Errorf("it ended with %q", s.Reason)
	}
}
