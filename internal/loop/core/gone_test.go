package core

import (
	"slices"
	"testing"
)

// A question is over with its item, and the loop waits on only for what is still to be decided.
func TestQuestionIsOverWithItsItem(t *testing.T) {
	question := func(why string, number int64) Memory {
		return Memory{Parked: true, Kind: ByAgent, Asked: why, Number: number, From: &Continuation{Run: "run-" + why}}
	}
	for name, c := range map[string]struct {
		kind, why string
		halt      bool
		items     []string // of the interrupt
		paused    bool
		event     Gone
		phase     Phase
		waits     []string
		says      string // the interrupt, afterwards
		ops       []Op
	}{
		"the only one":                {ByAgent, "x", false, []string{"a"}, false, Gone{Item: "a", Number: 1, Ended: true}, Working, nil, "", []Op{OpLower}},
		"put back":                    {ByAgent, "x", false, []string{"a"}, false, Gone{Item: "a", Number: 1}, Working, nil, "", []Op{OpLower}},
		"of a loop that is paused":    {ByAgent, "x", false, []string{"a"}, true, Gone{Item: "a", Number: 1, Ended: true}, Paused, nil, "", []Op{OpLower}},
		"the first of two":            {ByAgent, "x", false, []string{"a", "b"}, false, Gone{Item: "a", Number: 1, Ended: true}, Waiting, []string{"b"}, "y", []Op{OpRaise}},
		"the second of two":           {ByAgent, "x", false, []string{"a", "b"}, false, Gone{Item: "b", Number: 2, Ended: true}, Waiting, []string{"a"}, "x", nil},
		"beside a login":              {ByAuth, "login", false, []string{"a"}, false, Gone{Item: "a", Number: 1, Ended: true}, Waiting, nil, "login", nil},
		"stopped by a person":         {ByAgent, "x", true, []string{"a"}, false, Gone{Item: "a", Number: 1, Ended: true}, Waiting, nil, "x", nil},
		"another question by now":     {ByAgent, "x", false, []string{"a"}, false, Gone{Item: "a", Number: 7, Ended: true}, Waiting, []string{"a"}, "x", nil},
		"an item that nobody knows":   {ByAgent, "x", false, []string{"a"}, false, Gone{Item: "c", Ended: true}, Waiting, []string{"a"}, "x", nil},
		"what the loop waits not for": {ByAgent, "x", false, []string{"a"}, false, Gone{Item: "b", Number: 2, Ended: true}, Waiting, []string{"a"}, "x", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := New("loop-a", DefaultLimits(), Time{})
			s.Items = map[string]Memory{"a": question("x", 1), "b": question("y", 2)}
			s.Interrupt, s.Paused, s.Open = &Interrupt{Kind: c.kind, Why: c.why, Halt: c.halt, Items: slices.Clone(c.items)}, c.paused, []string{"b"}
			s.phase(Waiting, c.kind)
			var out []Action
			s.gone(c.event, &out)
			var ops []Op
			for _, a := range out {
				ops = append(ops, a.Op)
			}
			says, waits := "", []string(nil)
			if s.Interrupt != nil {
				says, waits = s.Interrupt.Why, s.Interrupt.Items
			}
			if s.Phase != c.phase || says != c.says || !slices.Equal(waits, c.waits) || !slices.Equal(ops, c.ops) {
				t.Errorf("%s, %q about %v, %v; want %s, %q about %v, %v", s.Phase, says, waits, ops, c.phase, c.says, c.waits, c.ops)
			}
			known := c.event.Item != "c" && c.event.Number != 7
			m, there := s.Items[c.event.Item]
			if known && (m.Parked || there == c.event.Ended) || slices.Contains(s.Open, c.event.Item) != (c.event.Item == "b" && !known) {
				t.Errorf("what is kept of it: %+v, %v; open: %v", m, there, s.Open)
			}
			if known && !c.event.Ended && (m.From == nil || m.From.Number != 1 || m.From.Asked != "x") {
				t.Errorf("its next session would not know what was asked: %+v", m.From)
			}
		})
	}
}
