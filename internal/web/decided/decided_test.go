package decided

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/event"
)

// A call that Claude Code asks about comes to the guard twice: before the tool, and as the
// client puts its question. It is one row, with what the person said to it.
func TestACallIsDecidedOnce(t *testing.T) {
	data := func(v any) json.RawMessage { b, _ := json.Marshal(v); return b }
	decided := func(use, verdict, command string) event.Event {
		e := event.Event{Type: event.PermissionDecided, Client: "claude", Session: "s", Data: data(map[string]any{"name": "Bash", "verdict": verdict, "by": "guard", "rule": "project-code", "commands": []string{command}})}
		if use != "" {
			e.Evidence = []string{"turn:t", "tool:" + use}
		}
		return e
	}
	ended := func(kind event.Type, use, said string) event.Event {
		return event.Event{Type: kind, Client: "claude", Session: "s", Evidence: []string{"tool:" + use}, Data: data(map[string]any{"name": "Bash", "error": said})}
	}
	turn := event.Event{Type: event.ResponseCompleted, Client: "claude", Session: "s"}
	inRun := func(e event.Event) event.Event { e.Run = "run-a"; return e }
	for _, c := range []struct {
		name   string
		events []event.Event
		want   string
	}{
		{"let run", []event.Event{decided("u1", "ask", "./check.sh"), decided("", "ask", "./check.sh"), ended(event.ToolSucceeded, "u1", "")}, "ask, you let it run"},
		{"let run, and failed", []event.Event{decided("u1", "ask", "./check.sh"), decided("", "ask", "./check.sh"), ended(event.ToolFailed, "u1", "Exit code 1")}, "ask, you let it run"},
		{"refused", []event.Event{decided("u1", "ask", "./check.sh"), decided("", "ask", "./check.sh"), ended(event.ToolFailed, "u1", "The user doesn't want to proceed with this tool use.")}, "ask, you refused it"},
		{"refused where nobody is", []event.Event{inRun(decided("u1", "ask", "./check.sh")), inRun(decided("", "ask", "./check.sh")), inRun(ended(event.ToolFailed, "u1", "This command requires approval"))}, "ask, it was refused"},
		{"refused, and the client says no more", []event.Event{decided("u1", "ask", "./check.sh"), decided("", "ask", "./check.sh"), turn}, "ask, it did not run"},
		{"it ends after its turn", []event.Event{decided("u1", "ask", "./check.sh"), decided("", "ask", "./check.sh"), turn, ended(event.ToolSucceeded, "u1", "")}, "ask, you let it run"},
		{"nothing is known yet", []event.Event{decided("u1", "ask", "./check.sh"), decided("", "ask", "./check.sh")}, "ask, "},
		{"the client did not ask", []event.Event{decided("u1", "ask", "./check.sh"), ended(event.ToolSucceeded, "u1", "")}, "ask, it ran"},
		{"refused by rule", []event.Event{decided("u1", "deny", "rm -rf /"), turn}, "deny, "},
		{"the client refused what was asked about", []event.Event{decided("u1", "ask", "./check.sh"), decided("u1", "deny", "./check.sh")}, "deny, "},
		{"known at the question", []event.Event{decided("u1", "ask", "./check.sh"), decided("", "allow", "./check.sh"), ended(event.ToolSucceeded, "u1", "")}, "allow, "},
		{"the client alone asks", []event.Event{decided("", "allow", "ls"), decided("", "allow", "ls")}, "allow, ; allow, "},
		{"two at once", []event.Event{decided("u1", "ask", "make a"), decided("u2", "ask", "make b"), decided("", "ask", "make a"), decided("", "ask", "make b"),
			ended(event.ToolSucceeded, "u2", ""), ended(event.ToolFailed, "u1", "user rejected")}, "ask, you refused it; ask, you let it run"},
		{"the same once more", []event.Event{decided("u1", "ask", "make a"), decided("", "ask", "make a"), ended(event.ToolSucceeded, "u1", ""), decided("u2", "ask", "make a"), decided("", "ask", "make a")},
			"ask, you let it run; ask, "},
		{"of another session", []event.Event{decided("u1", "ask", "make a"), {Type: event.PermissionDecided, Client: "claude", Session: "other", Data: decided("", "ask", "make a").Data}}, "ask, ; ask, "},
		{"in a client's transcript", []event.Event{{Type: event.PermissionDecided, Client: "claude", Outcome: "denied"}}, "deny, "},
		{"of no form", []event.Event{{Type: event.PermissionDecided, Data: []byte(`[1]`)}}, ", "},
	} {
		var log []*event.Event
		for i, e := range c.events {
			e.TS = time.Unix(int64(i), 0)
			log = append(log, &e)
		}
		var got []string
		for _, d := range Calls(slices.Values(log)) {
			got = append(got, fmt.Sprintf("%s, %s", d.Verdict, d.Answer))
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
