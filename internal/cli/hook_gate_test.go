package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
