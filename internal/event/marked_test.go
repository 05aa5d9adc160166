package event_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"reprise/internal/event"
)

// A text that was cut while it was read is described by what it was.
func TestMarkedTexts(t *testing.T) {
	opt := options(t.TempDir())
	opt.Mark = "[cut abc "
	sum := strings.Repeat("0f", 32)
	b := event.NewBroker(opt)
	head := strings.Repeat("h", event.MaxField+100)
	for name, tc := range map[string]struct {
		text string
		want event.Whole
		kept int
	}{
		"one":             {head + "[cut abc 5000000 16487 " + sum + "]end", event.Whole{SHA256: sum, Len: 5000000}, event.MaxField},
		"short":           {"head[cut abc 100 8 " + sum + "]tail", event.Whole{SHA256: sum, Len: 100}, 8},
		"not to its end":  {"head[cut abc 100 8 -]tail", event.Whole{Len: 100}, 8},
		"two":             {"a[cut abc 100 2 " + sum + "]b\nc[cut abc 1000 2 " + sum + "]d", event.Whole{Len: 1101}, 5},
		"with other text": {"x: a[cut abc 100 2 " + sum + "]b", event.Whole{Len: 103}, 5},
	} {
		data, err := json.Marshal(map[string]any{"tool": "shell", "name": "Bash", "output": tc.text})
		if err != nil {
			t.Fatal(err)
		}
		e, err := b.Record(context.Background(), event.Event{Type: event.ToolSucceeded, Data: data})
		if err != nil {
			t.Fatal(err)
		}
		var d event.ToolData
		if err := json.Unmarshal(e.Data, &d); err != nil {
			t.Fatal(err)
		}
		if e.Cut["/data/output"] != tc.want || len(d.Output) != tc.kept || strings.Contains(d.Output, "[cut") {
			t.Errorf("%s: %+v, %d kept", name, e.Cut, len(d.Output))
		}
	}
	// Without the mark it is a text like others.
	e, err := event.NewBroker(options(t.TempDir())).Record(context.Background(), event.Event{Type: event.PromptSubmitted, Data: json.RawMessage(`{"text":"[cut abc 100 2 -]"}`)})
	if err != nil || len(e.Cut) > 0 || !strings.Contains(string(e.Data), "[cut abc") {
		t.Errorf("%s %v %v", e.Data, e.Cut, err)
	}
}
