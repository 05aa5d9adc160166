//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/fakemodel"
)

// Each client beside Claude Code, whose spawned runs have tests of their own, does one: it
// is told that nobody watches, works in the directory it was given, is kept from memory,
// and what it says last is the answer. Its user's settings do not count (Codex's name a
// server that hangs).
func TestSpawnClients(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	for _, name := range []string{"codex", "gemini", "copilot"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			step := func(turn int, say fakemodel.Answer) fakemodel.Rule {
				return fakemodel.Rule{Name: "part", When: fakemodel.When{Task: "Make part one", Turn: turn}, Say: say}
			}
			h, m := looped(t, name, nil, step(1, shell("echo one > part.txt")), step(2, shell("echo mine > \"$KEPT\"")), step(3, say("Part one is made.")))
			note := filepath.Join(h.memory, "notes.md")
			h.write(note, "kept\n")
			h.env = append(h.env, "KEPT="+note)
			free := turn(t)
			defer free()
			out := h.must(append([]string{"spawn", "--agent", name, "--timeout", "5m", "Make part one."}, modelOf(name)...)...)
			if out != "Part one is made.\n" {
				t.Errorf("its answer: %q", out)
			}
			allUsed(t, m)
			told, results := "", ""
			for _, q := range m.Requests() {
				told += q.SystemText() + q.Text()
				results += q.Results()
			}
			if data, err := os.ReadFile(filepath.Join(h.work, "part.txt")); err != nil || string(data) != "one\n" {
				t.Errorf("part.txt: %q, %v; its tools said %s", data, err, results)
			}
			if s := h.read(note); s != "kept\n" {
				t.Errorf("the run wrote memory: %q", s)
			}
			if !strings.Contains(told, "You were started by another agent") {
				t.Error("the model was not told that it is a spawned agent")
			}
			var list []struct{ Client, Status string }
			unmarshal(t, h.must("runs", "list", "--json"), &list)
			if len(list) != 1 || list[0].Client != name || list[0].Status != "completed" {
				t.Errorf("runs: %+v", list)
			}
		})
	}
}
