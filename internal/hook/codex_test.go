package hook_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/agent/dialect"
	"reprise/internal/hook"
)

// A command of Codex that failed without a word is known to have failed.
func TestAddExit(t *testing.T) {
	payload, err := os.ReadFile(filepath.Join("..", "..", "testdata", "hooks", "captured", "codex", "PostToolUse-shell-failed.json"))
	if err != nil {
		t.Fatal(err)
	}
	transcript := filepath.Join(t.TempDir(), "rollout.jsonl")
	line := func(output string) string {
		return `{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"CommandExecution","id":"call_fake000100","aggregated_output":"` + output + `","exit_code":2}}}` + "\n"
	}
	filler := strings.Repeat(`{"type":"event_msg"}`+"\n", 10_000)
	for name, tc := range map[string]struct {
		text  string
		known bool
	}{
		"said":          {filler + line("x"), true},
		"a long output": {filler + line(strings.Repeat("y", 900_000)), true},
		"not said":      {filler, false},
		"empty":         {"", false},
	} {
		if err := os.WriteFile(transcript, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		ev, err := dialect.Parse("codex", "PostToolUse", payload)
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind != dialect.ToolAfter {
			t.Fatalf("the payload alone makes it %s", ev.Kind)
		}
		ev.Transcript = transcript
		hook.AddExit(&ev)
		if got := ev.Kind == dialect.ToolFailed && ev.ExitCode != nil && *ev.ExitCode == 2; got != tc.known {
			t.Errorf("%s: %s %v", name, ev.Kind, ev.ExitCode)
		}
	}
	ev := dialect.Event{Client: "codex", Kind: dialect.ToolAfter, Tool: "shell", ToolID: "x", Transcript: t.TempDir()}
	if hook.AddExit(&ev); ev.Kind != dialect.ToolAfter {
		t.Error("a directory was read")
	}
}
