package hook

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"reprise/internal/agent/dialect"
	"reprise/internal/event/quick"
)

// ledger gives what it records ids in their order.
type ledger struct{ events []quick.Event }

func (l *ledger) Record(_ context.Context, e *quick.Event, _ bool) (bool, error) {
	if e.ID == "" {
		e.ID = fmt.Sprintf("00000000-0000-7000-8000-%012d", len(l.events)+1)
	}
	l.events = append(l.events, *e)
	return false, nil
}

// What happens in a turn belongs to its prompt, in a subagent to its beginning, and
// the rest of a session to the session's; each process finds that anew.
func TestParents(t *testing.T) {
	state := t.TempDir()
	l := &ledger{}
	rules := all()
	route := func(ev dialect.Event) quick.Event {
		t.Helper()
		if ev.Client == "" {
			ev.Client = "claude"
		}
		if ev.Session == "" {
			ev.Session = "s1"
		}
		r := &Router{Rules: &rules, Recorder: l, State: state, Warn: func(what string, err error) { t.Errorf("%s: %v", what, err) }}
		n := len(l.events)
		if _, err := r.Route(t.Context(), ev); err != nil {
			t.Fatal(err)
		}
		if len(l.events) != n+1 {
			t.Fatalf("%s: %d events", ev.Kind, len(l.events)-n)
		}
		return l.events[n]
	}
	belongs := func(what string, ev dialect.Event, to string) quick.Event {
		t.Helper()
		e := route(ev)
		if e.Parent != to {
			t.Errorf("%s belongs to %q, want %q", what, e.Parent, to)
		}
		return e
	}
	tool := func(agent string) dialect.Event {
		return dialect.Event{Kind: dialect.ToolBefore, Tool: "shell", ToolName: "Bash", ToolID: "t", Agent: agent}
	}
	belongs("a tool of a session whose beginning was not seen", tool(""), "")
	start := belongs("the beginning", dialect.Event{Kind: dialect.SessionStart, Source: "startup"}, "")
	belongs("a tool before any prompt", tool(""), start.ID)
	first := belongs("a prompt", dialect.Event{Kind: dialect.Prompt, Prompt: "do it"}, start.ID)
	belongs("a tool", tool(""), first.ID)
	sub := belongs("a subagent", dialect.Event{Kind: dialect.SubagentStarted, Agent: "a1", AgentType: "Explore"}, first.ID)
	other := belongs("another beside it", dialect.Event{Kind: dialect.SubagentStarted, Agent: "a2"}, first.ID)
	belongs("a tool in the first", tool("a1"), sub.ID)
	belongs("a tool in the second", tool("a2"), other.ID)
	belongs("a tool in one that was not seen", tool("a3"), first.ID)
	belongs("its end", dialect.Event{Kind: dialect.SubagentFinished, Agent: "a1"}, sub.ID)
	belongs("the answer", dialect.Event{Kind: dialect.Response, Text: "done"}, first.ID)
	second := belongs("the next prompt", dialect.Event{Kind: dialect.Prompt, Prompt: "more"}, start.ID)
	belongs("its tool", tool(""), second.ID)
	belongs("a tool of a subagent that goes on", tool("a2"), other.ID)
	belongs("a compaction", dialect.Event{Kind: dialect.CompactBefore}, start.ID)
	belongs("after it", dialect.Event{Kind: dialect.SessionStart, Source: "compact"}, "")
	belongs("its tool, still", tool(""), second.ID)
	belongs("another session", dialect.Event{Kind: dialect.Prompt, Prompt: "x", Session: "s2"}, "")
	belongs("the same id in another client", dialect.Event{Kind: dialect.Response, Text: "x", Client: "codex"}, "")
	belongs("the end", dialect.Event{Kind: dialect.SessionEnd}, start.ID)
	again := belongs("the session is resumed", dialect.Event{Kind: dialect.SessionStart, Source: "resume"}, "")
	belongs("a tool after that", tool(""), again.ID)

	// Notes that are no notes are none.
	for _, spoilt := range []string{"", "claude\ns1\n\n", "claude\ns1\n\n../../x\ny\n", "claude\ns1\n\n" + again.ID} {
		if err := os.WriteFile(turnFile(state, "claude", "s1", ""), []byte(spoilt), 0o600); err != nil {
			t.Fatal(err)
		}
		belongs(fmt.Sprintf("with the note %q", spoilt), tool(""), "")
	}
	// Without a place for them, nothing is written.
	none := &Router{Rules: &rules, Recorder: l, Warn: func(string, error) { t.Error("warned") }}
	if _, err := none.Route(t.Context(), dialect.Event{Client: "claude", Session: "s9", Kind: dialect.Prompt, Prompt: "x"}); err != nil {
		t.Fatal(err)
	}
	if list, _ := filepath.Glob(filepath.Join(state, "sessions", "*")); len(list) != 4 { // s1, a1, a2, s2
		t.Errorf("%d notes: %v", len(list), list)
	}
}

// What is counted of a turn belongs to its prompt, as the call does that it is about.
func TestWhatIsCountedHasAParent(t *testing.T) {
	state := t.TempDir()
	l := &ledger{}
	rules := all()
	r := &Router{Rules: &rules, Recorder: l, State: state, Warn: func(what string, err error) { t.Errorf("%s: %v", what, err) }}
	prompt := dialect.Event{Client: "claude", Session: "s1", Kind: dialect.Prompt, Prompt: "go"}
	if _, err := r.Route(t.Context(), prompt); err != nil {
		t.Fatal(err)
	}
	call := dialect.Event{Client: "claude", Session: "s1", Kind: dialect.ToolBefore, Tool: "shell", ToolName: "Bash", ToolID: "t"}
	if e := (counted{what: "warned"}).event(&call, Who{}, Parent(state, &call)); e.Parent == "" || e.Parent != l.events[0].ID {
		t.Errorf("it belongs to %q, the prompt is %q", e.Parent, l.events[0].ID)
	}
}
