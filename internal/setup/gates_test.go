package setup

import "testing"

// The end of a turn and of a subagent is waited for while tests run; every other
// hook has seconds.
func TestHookTimeouts(t *testing.T) {
	for _, tc := range []struct {
		client, event string
		want          int
	}{
		{"claude-code", "Stop", 600}, {"claude-code", "SubagentStop", 600}, {"codex", "Stop", 600}, {"gemini", "AfterAgent", 600},
		{"copilot", "agentStop", 600}, {"copilot", "subagentStop", 600},
		{"claude-code", "PreToolUse", 10}, {"claude-code", "SessionEnd", 10}, {"gemini", "BeforeTool", 10}, {"claude-code", "UserPromptSubmit", 13},
	} {
		if got := hookTimeout(tc.client, tc.event); got != tc.want {
			t.Errorf("%s %s: %d s, want %d", tc.client, tc.event, got, tc.want)
		}
	}
}
