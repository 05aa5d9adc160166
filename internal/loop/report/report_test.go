package report

import (
	"bytes"
	"reprise/internal/loop/core"
	"reprise/internal/loop/tell"
	"reprise/internal/queue"
	"slices"
	"strings"
	"testing"
	"time"
)

var ten = time.Date(2026, 1, 28, 22, 0, 0, 0, time.UTC)

// TestReport: the page of a night.
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
	text := Night("shop", s, its, asked, Standing{Running: true, Queue: map[queue.State]int{queue.Ready: 2, queue.Blocked: 1, queue.Done: 1}})
	if want := "Left in the queue: 2 ready, 1 blocked (set aside, or waiting for others).\n"; !strings.Contains(text, want) {
		t.Errorf("it lacks %q:\n%s", want, text)
	}
	if text := Night("shop", s, its, nil, Standing{}); !strings.Contains(text, "is not running: it was killed while it was working") || strings.Contains(text, "is working") {
		t.Errorf("of a loop that was killed it says\n%s", text)
	}
	// How the work comes into a person's branch is said, of what nothing has merged.
	if want := "\n    git merge loop-a\n"; !strings.Contains(text, want) {
		t.Errorf("it lacks %q:\n%s", want, text)
	}
	its[1].Note = "merged into main"
	if text := Night("shop", s, its, asked, Standing{Running: true}); strings.Contains(text, "git merge") {
		t.Errorf("of what is merged it says\n%s", text)
	}
	// A question is read whole: what can be chosen from stands at its end.
	its[2].Reason = "Which of them?\n\nA) keep\nB) drop"
	if text := Night("shop", s, its, asked, Standing{Running: true}); !strings.Contains(text, "  > Which of them?  \n  > A) keep  \n  > B) drop  \n") {
		t.Errorf("of a question of several lines it says\n%s", text)
	}
	its[2].Reason = "which?"
	// Whoever has gone on with it needs nobody.
	s.Slots[0] = core.Slot{Step: core.Running, Run: "run-b", Claim: core.Claim{Item: core.Item{ID: "b"}, Fence: 2}}
	if text := Night("shop", s, its, nil, Standing{Running: true}); strings.Contains(text, "Needs a person") || !strings.Contains(text, "## Being worked on\n\n- **b** Second — running run-b\n") {
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
		text := Night("shop", s, its, nil, Standing{State: func(string) queue.State { return state }})
		if strings.Contains(text, "Needs a person") || strings.Contains(text, "not answered yet") || strings.Contains(text, "resume --item") ||
			!strings.Contains(text, want[0]+"\n\n- **b** Second — an agent asks: which? (run-aaaaaaaaaa); "+want[1]+"\n") || !strings.Contains(text, "which? — not answered; "+want[1]) {
			t.Errorf("where it is %q by now the report says\n%s", state, text)
		}
	}
	var b bytes.Buffer
	if err := tell.MetricsOf(s).Prometheus(&b, `sh"op`); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `reprise_loop_items_total{project="sh\"op",fate="done"} 1`) || !strings.Contains(b.String(), `phase="working"} 1`) {
		t.Errorf("%s", b.String())
	}
}

// TestUnmerged: what lies in branches is told by what git says, not by what was written down:
// a person merges and removes branches; and a branch of an earlier loop is not forgotten.
func TestUnmerged(t *testing.T) {
	its := []Iteration{
		{Item: "early", Fate: core.Done, Branch: "loop-early", Ended: ten},
		{Item: "again", Fate: core.Done, Branch: "loop-again", Ended: ten},
		{Item: "again", Fate: core.Retry, Branch: "loop-again", Ended: ten.Add(time.Minute)},
		{Item: "merged", Fate: core.Done, Branch: "loop-merged", Put: Merged, Ended: ten},
		{Item: "offered", Fate: core.Done, Branch: "loop-offered", Put: Offered, Ended: ten},
		{Item: "old", Fate: core.Done, Branch: "loop-old", Note: "merged into main", Ended: ten},
		{Item: "older", Fate: core.Done, Branch: "loop-older", Note: "pull request https://example.invalid/1", Ended: ten},
		{Item: "by-hand", Fate: core.Done, Branch: "loop-by-hand", Ended: ten},
		{Item: "late", Fate: core.Done, Branch: "loop-late", Note: "could not be put in its place", Ended: ten.Add(time.Hour)},
		{Item: "there", Fate: core.Done, Branch: "loop-there", Commit: "c0ffee", On: "build-7", Ended: ten.Add(2 * time.Hour)},
		{Item: "known", Fate: core.Done, Branch: "loop-known", Commit: "beef", On: "build-7", Ended: ten.Add(2 * time.Hour)},
		{Item: "older there", Fate: core.Done, Branch: "loop-older-there", On: "build-7", Ended: ten.Add(2 * time.Hour)},
	}
	names := func(list []Iteration) (out []string) {
		for _, it := range list {
			out = append(out, it.Item)
		}
		return out
	}
	git := map[string]bool{"loop-late": true, "loop-early": true, "loop-again": true, "loop-offered": true, "a person's": true, "c0ffee": true, "loop-known": true}
	if got, want := names(Unmerged(its, git)), []string{"early", "late", "there"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := names(Unmerged(its, nil)), []string{"by-hand", "early", "late", "known", "older there", "there"}; !slices.Equal(got, want) {
		t.Errorf("where git cannot say: %q, want %q", got, want)
	}
	s := core.New("loop-x", core.DefaultLimits(), core.Time{Wall: ten})
	text := Night("shop", s, its[8:9], nil, Standing{Running: true, All: its, Unmerged: git})
	if want := "\n    git merge loop-early\n    git merge loop-late\n    git fetch origin\n    git merge origin/loop-there\n\n"; !strings.Contains(text, want) {
		t.Errorf("it lacks %q:\n%s", want, text)
	}
}

// TestStandingTitle: an item that is worked on for the first time has no record yet, and is
// called as the queue calls it.
func TestStandingTitle(t *testing.T) {
	s := core.New("loop-x", core.DefaultLimits(), core.Time{Wall: ten})
	s.Slots[0] = core.Slot{Step: core.Running, Run: "run-b", Claim: core.Claim{Item: core.Item{ID: "b"}, Fence: 1}}
	now := Standing{Running: true, Title: func(item string) string { return "The title of " + item }}
	if text, want := Night("shop", s, nil, nil, now), "## Being worked on\n\n- **b** The title of b — running run-b\n"; !strings.Contains(text, want) {
		t.Errorf("it lacks %q:\n%s", want, text)
	}
	// What was recorded of it is from when it was worked on.
	its := []Iteration{{Item: "b", Title: "As it was", Fence: 0, Fate: core.Retry}}
	if text, want := Night("shop", s, its, nil, now), "- **b** As it was — running run-b\n"; !strings.Contains(text, want) {
		t.Errorf("it lacks %q:\n%s", want, text)
	}
	now.Title = nil
	if text, want := Night("shop", s, nil, nil, now), "- **b**  — running run-b\n"; !strings.Contains(text, want) {
		t.Errorf("it lacks %q:\n%s", want, text)
	}
}

// TestReportOfFailedChecks: nobody has asked anything. A person is told what failed, where the
// work is, and each way on.
func TestReportOfFailedChecks(t *testing.T) {
	s := core.New("loop-x", core.DefaultLimits(), core.Time{Wall: ten})
	its := []Iteration{{Item: "b", Title: "Build", Fate: core.Park, Class: "gate", Interrupt: core.ByGate, Run: "run-b", Place: "/w/loop-b",
		Reason: "verification ver-01: failed\n- regressions test: ended with exit code 1\n  test: ? shop [no test files]\n  test: orders/broken.go:3:6: syntax error\n  test: FAIL"}}
	said := []Question{{Item: "b", Kind: core.ByGate, Why: its[0].Reason}}
	text := Night("shop", s, its, said, Standing{Running: true})
	want := "- **b** Build — checks failed: test: orders/broken.go:3:6: syntax error (run-b)\n  What it made is in /w/loop-b. `reprise verify show ver-01` has all that was checked. " +
		"Let the agent go on, told what to do, with `reprise loop resume --item b --answer \"…\"`, mend it there yourself, or end it with `reprise queue drop b`.\n"
	if !strings.Contains(text, want) {
		t.Errorf("it lacks\n%s\nand is\n%s", want, text)
	}
	if got, want := said[0].Words(), "the checks of b failed too often: test: orders/broken.go:3:6: syntax error"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWhatStays: where an item was given up that has changed nothing, nothing is said to stay:
// the place may be the project's own directory.
func TestWhatStays(t *testing.T) {
	s := core.New("loop-x", core.DefaultLimits(), core.Time{Wall: ten})
	yes, no := true, false
	for _, tt := range []struct {
		changed *bool
		class   string
		stays   bool
	}{{&yes, "crash", true}, {&no, "crash", false}, {nil, "crash", true}, {nil, "no change", false}} {
		its := []Iteration{{Item: "b", Fate: core.GiveUp, Class: tt.class, Branch: "loop-b", Place: "/w/loop-b", Changed: tt.changed}}
		if text := Night("shop", s, its, nil, Standing{}); strings.Contains(text, "; what it made stays in /w/loop-b") != tt.stays {
			t.Errorf("%+v: %s", tt, text)
		}
	}
}

// What other machines did is told with where that was; what nobody told the cost of is not told as
// work for nothing.
func TestPastOfOtherMachines(t *testing.T) {
	its := []Iteration{
		{Item: "a", Title: "A", Fate: core.Done, On: "build-7", Started: ten, Ended: ten.Add(time.Minute), Seconds: 60, Turns: 3, CostUSD: 0.5, Tokens: 100, Branch: "loop-a", Commit: "0123456789abcdef0123456789abcdef01234567", Summary: "did it"},
		{Item: "b", Title: "B", Fate: core.GiveUp, On: "build-8", Reason: "no", Ended: ten.Add(2 * time.Minute)},
	}
	text := Past("shop", core.State{}, its, nil, Standing{})
	for _, want := range []string{
		"\nOn other machines build-7, build-8, from ", ": 2 attempts, 0.50 USD and 100 tokens, and what 1 attempt cost, which is not known.\n",
		"- **a** A — on build-7; 1 min, 3 turns, 0.50 USD; checks: none; branch loop-a; commit 0123456789ab\n  did it\n", "## Given up\n\n- **b** B — no (on build-8)\n", "\n    git fetch origin\n    git merge origin/loop-a\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
}

// A sum of money that has nothing of some attempts says so, in all reports, and of each of them.
func TestCostsThatNobodyKnows(t *testing.T) {
	its := []Iteration{
		{Item: "a", Title: "A", Loop: "l", Fate: core.Done, Started: ten, Ended: ten.Add(time.Minute), Seconds: 60, Turns: 3, CostUnknown: true, Tokens: 100},
		{Item: "b", Title: "B", Loop: "l", Fate: core.Done, Started: ten, Ended: ten.Add(time.Minute), Seconds: 60, Turns: 1, CostUSD: 0.5, Tokens: 10},
	}
	s := core.State{Phase: core.Finished, Iterations: 2, CostUSD: 0.5, Untold: 1}
	for name, tt := range map[string]struct{ text, want string }{
		"of a loop":     {Night("shop", s, its, nil, Standing{}), "\nWhat 1 attempt cost is not known, and not in that sum: their client does not say it"},
		"of some":       {Past("shop", s, its, nil, Standing{}), "2 attempts, 0.50 USD and 110 tokens, and what 1 attempt cost, which is not known.\n"},
		"of an item":    {Night("shop", s, its, nil, Standing{}), "- **a** A — 1 min, 3 turns, cost not known; "},
		"of another":    {Night("shop", s, its, nil, Standing{}), "- **b** B — 1 min, 1 turn, 0.50 USD; "},
		"in a sentence": {Cost(0.5, 1), "0.50 USD, and what 1 attempt cost, which is not known"},
		"of all known":  {Cost(0.5, 0), "0.50 USD"},
	} {
		if !strings.Contains(tt.text, tt.want) {
			t.Errorf("%s: it lacks %q:\n%s", name, tt.want, tt.text)
		}
	}
}

// What could not be begun has asked nobody anything: no answer is asked for.
func TestNothingIsAskedByWhatCannotBegin(t *testing.T) {
	q := Question{Item: "a", Title: "A", Kind: core.ByFailing, Why: "no room"}
	if got, want := q.Words(), "a could not be begun: no room"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	its := []Iteration{{Item: "a", Title: "A", Fate: core.Park, Interrupt: core.ByFailing, Reason: "no room"}}
	for name, text := range map[string]string{
		"of this loop":    Night("shop", core.State{}, its, []Question{q}, Standing{}),
		"of one before":   Night("shop", core.State{}, nil, []Question{q}, Standing{}),
		"in the terminal": q.Command(),
	} {
		if !strings.Contains(text, "reprise loop resume --item a") || strings.Contains(text, "--answer") || strings.Contains(text, "Answer") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
