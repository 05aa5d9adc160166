package elsewhere

import (
	"encoding/json"
	"testing"

	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/queue"
)

// What the guard refused on another machine is told as of a loop here, and once, though the note
// of the item's history has it, too.
func TestRefusedElsewhere(t *testing.T) {
	refused := core.Refusal{What: "./check.sh: it runs a program of the project [exec]", Calls: 3}
	data, err := json.Marshal(map[string]any{"completed": true, "succeeded": false, "refused": refused})
	if err != nil {
		t.Fatal(err)
	}
	w := loop.Iteration{Item: "a", Fate: core.GiveUp, Reason: "no change: nothing was changed; " + refused.Words()}
	result(&w, &queue.Outcome{Run: "run-aaaaaaaaaa", Data: data})
	if w.Refusal() != refused || w.Reason != "no change: nothing was changed" {
		t.Errorf("%+v", w)
	}
	w = loop.Iteration{Item: "a", Fate: core.Retry, Reason: "crash: exit code 3"}
	if result(&w, &queue.Outcome{Data: json.RawMessage(`{"completed":false}`)}); w.Refusal() != (core.Refusal{}) || w.Reason != "crash: exit code 3" {
		t.Errorf("where nothing was refused: %+v", w)
	}
}
