package report

import (
	"bytes"
	"reprise/internal/loop/core"
	"reprise/internal/loop/tell"
	"reprise/internal/queue"
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
