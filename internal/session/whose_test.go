package session

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A session is told only where it is sure: a client that was started by another one has
// the other's variables, too.
func TestClientSession(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	if err := os.MkdirAll(filepath.Join(state, "sessions"), 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)
	note := func(name, text string, ago time.Duration) {
		t.Helper()
		file := filepath.Join(state, "sessions", name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, now, now.Add(-ago)); err != nil {
			t.Fatal(err)
		}
	}
	note("a.turn", "gemini\ng-old\n\nx\ny\n", time.Hour)
	note("b.turn", "gemini\ng-new\n\nx\ny\n", time.Second)
	note("c.turn", "gemini\ng-new\nsubagent\nx\n", time.Second)
	note("d.turn", "claude\nc-new\n\nx\ny\n", time.Second)
	note("e.told", "gemini\ng-other\n\nx\n", time.Second)
	note("f.turn", "damaged", time.Second)
	for name, c := range map[string]struct {
		caller Caller
		vars   map[string]string
		since  time.Duration
		want   string
	}{
		"claude":               {Caller{Client: "claude"}, map[string]string{"CLAUDE_CODE_SESSION_ID": "c1"}, time.Minute, "c1"},
		"claude's shell":       {Caller{}, map[string]string{"CLAUDE_CODE_SESSION_ID": "c1"}, time.Minute, "c1"},
		"codex in claude":      {Caller{Client: "codex", Session: "x1"}, map[string]string{"CLAUDE_CODE_SESSION_ID": "c1"}, time.Minute, "x1"},
		"codex without a word": {Caller{Client: "codex"}, map[string]string{"CLAUDE_CODE_SESSION_ID": "c1"}, time.Minute, ""},
		"copilot in codex":     {Caller{Client: "copilot"}, map[string]string{"CODEX_THREAD_ID": "x1", "COPILOT_AGENT_SESSION_ID": "p1"}, time.Minute, "p1"},
		"a shell in both":      {Caller{}, map[string]string{"CODEX_THREAD_ID": "x1", "COPILOT_AGENT_SESSION_ID": "p1"}, time.Minute, ""},
		"gemini":               {Caller{Client: "gemini"}, map[string]string{"CLAUDE_CODE_SESSION_ID": "c1"}, time.Minute, "g-new"},
		"gemini's shell":       {Caller{}, map[string]string{"GEMINI_CLI": "1"}, time.Minute, "g-new"},
		"two of gemini":        {Caller{Client: "gemini"}, nil, 2 * time.Hour, ""},
		"a person":             {Caller{}, nil, time.Minute, ""},
	} {
		got := ClientSession(WithCaller(context.Background(), c.caller), func(k string) string { return c.vars[k] }, state, now.Add(-c.since))
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for name, want := range map[string]string{"claude-code": "claude", "codex-mcp-client": "codex", "gemini-cli-mcp-client": "gemini", "copilot-cli": "copilot", "cursor-vscode": "", "": ""} {
		if got := ClientNamed(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
