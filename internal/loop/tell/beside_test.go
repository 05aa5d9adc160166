package tell

import (
	"testing"

	"reprise/internal/loop/core"
)

// What a loop waits for is told beside the questions about items, where it is another
// matter: who answers these leaves it standing.
func TestBeside(t *testing.T) {
	for name, c := range map[string]struct {
		kind  string
		items []string
		asked []string
		want  bool
	}{
		"nothing is asked":         {core.ByAgent, []string{"a"}, nil, true},
		"it is the question":       {core.ByAgent, []string{"a"}, []string{"a"}, false},
		"one failure after others": {core.ByFailing, nil, []string{"a"}, true},
		"money":                    {core.ByBudget, []string{"b"}, []string{"a"}, true},
		"of the item that asks":    {core.ByFailing, []string{"a"}, []string{"a"}, false},
	} {
		if got := Beside(&core.Interrupt{Kind: c.kind, Items: c.items}, c.asked); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if Beside(nil, nil) {
		t.Error("it waits for nothing")
	}
}
