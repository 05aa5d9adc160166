package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/guard"
	"reprise/internal/hook"
)

// Copilot CLI does not tell its hooks what the agent said last.
func TestLastWords(t *testing.T) {
	line := func(typ, content string) string {
		return `{"type":"` + typ + `","data":{"content":"` + content + `"}}` + "\n"
	}
	for name, tc := range map[string]struct{ text, want string }{
		"last":             {line("assistant.message", "first") + line("user.message", "x") + line("assistant.message", "All done.") + line("session.idle", ""), "All done."},
		"a call alone":     {line("assistant.message", "said") + line("assistant.message", ""), "said"},
		"cut at the end":   {line("assistant.message", "said") + `{"type":"assistant.mess`, "said"},
		"long before":      {strings.Repeat(line("tool", strings.Repeat("x", 1000)), 400) + line("assistant.message", "said"), "said"},
		"none":             {line("user.message", "x"), ""},
		"empty":            {"", ""},
		"not what we know": {"\x00\xff\n[1]\n", ""},
	} {
		file := filepath.Join(t.TempDir(), "events.jsonl")
		if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := lastWords(file); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if lastWords(filepath.Join(t.TempDir(), "none")) != "" || lastWords(t.TempDir()) != "" || lastWords("") != "" {
		t.Error("words of nothing")
	}
}

// What a hook program without a plan grants is for calls that wait for a person: the
// others are refused as soon as before.
func TestTimeToJudge(t *testing.T) {
	ev := dialect.Event{Client: "claude", Name: "PreToolUse", Kind: dialect.ToolBefore}
	for _, tc := range []struct {
		rules guard.Rules
		want  time.Duration
	}{
		{guard.Rules{}, judgeLimit},
		{guard.Rules{WaitMS: 20_000}, judgeLimit},
		{guard.Rules{Full: true, WaitMS: 20_000}, 22 * time.Second},
		{guard.Rules{Full: true, WaitMS: 600_000}, 55 * time.Second},
	} {
		h := &hookRun{guard: &hook.Guarding{Rules: tc.rules}}
		if got := h.judging(&ev); got != tc.want {
			t.Errorf("%+v: %s, want %s", tc.rules, got, tc.want)
		}
	}
}
