package cli

import (
	"strings"
	"testing"
)

// Who has another client than Claude Code is told how runs and loops start it, before they
// are sent into one that cannot start.
func TestNextNamesTheClientThatIsThere(t *testing.T) {
	claude, codex, gemini := standClient{Client: "claude-code", Found: true}, standClient{Client: "codex", Connected: true}, standClient{Client: "gemini", Found: true}
	for _, c := range []struct {
		clients []standClient
		set     string
		want    string
	}{
		{[]standClient{codex}, "claude", "codex"},
		{[]standClient{gemini, codex}, "claude", "codex"},
		{[]standClient{gemini}, "claude", ""}, // connect it first
		{[]standClient{claude, codex}, "claude", ""},
		{[]standClient{codex}, "codex", ""},
		{[]standClient{codex}, "script", ""},
		{[]standClient{{Client: "cursor", Connected: true}}, "claude", ""},
		{nil, "claude", ""},
	} {
		if got := otherClient(c.clients, c.set); got != c.want {
			t.Errorf("%v with %s: %q, want %q", c.clients, c.set, got, c.want)
		}
	}
	s := standing{Project: &standProject{Name: "shop"}, Queue: map[string]int{"ready": 1}, Clients: []standClient{codex}, other: "codex"}
	next := nextCommands(&s)
	if len(next) < 2 || next[0].Command != "reprise config set sub_agent.agent codex" || !strings.HasPrefix(next[1].Command, "reprise loop run") {
		t.Errorf("next: %v", next)
	}
}

// Who begins with the dashboard, and has connected no client, is told why all is empty there,
// and what to do.
func TestDashboardSaysThatNothingIsConnected(t *testing.T) {
	claude, codex := standClient{Client: "claude-code", Found: true}, standClient{Client: "codex", Found: true}
	got := nobodyConnected([]standClient{claude, codex})
	if len(got) != 1 || got[0].Command != "reprise setup" || !strings.Contains(got[0].Text, "claude-code, codex found") {
		t.Errorf("%v", got)
	}
	codex.Connected = true
	if got := nobodyConnected([]standClient{claude, codex}); got != nil { // one is enough for who wants no other
		t.Errorf("%v", got)
	}
	if got := nobodyConnected(nil); got != nil {
		t.Errorf("%v", got)
	}
}
