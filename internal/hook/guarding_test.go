package hook

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"reprise/internal/agent/dialect"
	"reprise/internal/guard"
)

// A run works in the directories that it was given, too, and only a run does; where
// reprise keeps its own files nothing writes, whoever was given them. A payload that
// does not say where a call runs means where the session lives.
func TestDirectoriesOfRuns(t *testing.T) {
	root := guard.Resolve(t.TempDir())
	work, memory, other := filepath.Join(root, "work"), filepath.Join(root, "memory"), filepath.Join(root, "other")
	for _, d := range []string{work, memory, other} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	run := map[string]string{RunVar: "run-abcdefghij", AddDirsVar: memory + string(os.PathListSeparator) + other + string(os.PathListSeparator) + "."}
	for _, tt := range []struct {
		env     map[string]string
		command string
		want    guard.Decision
	}{
		{run, "cat " + memory + "/core.md", guard.Allow},
		{run, "cat " + other + "/x", guard.Allow},
		{run, "cat " + root + "/x", guard.Deny},
		{run, "echo x > " + other + "/x", guard.Allow},
		{run, "echo x > " + memory + "/core.md", guard.Deny},
		{run, "echo x > x", guard.Allow},
		{map[string]string{RunVar: "run-abcdefghij"}, "cat " + memory + "/core.md", guard.Deny},
		{map[string]string{AddDirsVar: other}, "cat " + other + "/x", guard.Ask},
	} {
		g := &Guarding{Rules: guard.Rules{Roots: []string{work}, Own: []string{memory}, Writes: true}, Dir: work, Get: func(n string) string { return tt.env[n] }}
		input, err := json.Marshal(map[string]string{"command": tt.command})
		if err != nil {
			t.Fatal(err)
		}
		j := g.Judge(t.Context(), dialect.Event{Client: "claude", Kind: dialect.ToolBefore, Tool: "shell", ToolName: "Bash", Input: input})
		if j.Said != tt.want {
			t.Errorf("%v: %s: %s, want %s: %s", tt.env, tt.command, j.Said, tt.want, j.Verdict.Reason)
		}
		if len(g.Rules.Roots) != 1 {
			t.Errorf("the rules were changed: %q", g.Rules.Roots)
		}
	}
}
