//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/fakemodel"
)

// A run's tool calls are judged by the rules of any session, whether or not the
// user's client has our hooks: nobody is there to be asked, so that asking is
// refusing. Each call is recorded once, in both cases.
func TestRunsAreGuarded(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	for name, installed := range map[string]bool{"with the user's hooks": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := model(t,
				rule("outside", fakemodel.When{Task: "Agent: work", Turn: 1}, call("Bash", map[string]any{"command": "echo x > ../canary"})),
				rule("inside", fakemodel.When{Task: "Agent: work", Turn: 2}, call("Bash", map[string]any{"command": "echo x > canary"})),
				rule("reads", fakemodel.When{Task: "Agent: work", Turn: 3}, call("Bash", map[string]any{"command": "echo seen | wc -c"})),
				rule("own", fakemodel.When{Task: "Agent: work", Turn: 4}, call("Bash", map[string]any{"command": "./make-canary now"})),
				rule("end", fakemodel.When{Task: "Agent: work", Turn: 5}, say("done")))
			// The homes of other tests let the project's code run; this one is as a user
			// has it who changed nothing.
			h := newClaudeHome(t, m, settings{"guard": map[string]any{"writes": "ask", "project_code": "ask", "allow": []string{}}})
			h.must("init", "--yes", "--name", "shop")
			own := filepath.Join(h.work, "make-canary")
			h.write(own, "#!/bin/sh\necho x > canary\n")
			if err := os.Chmod(own, 0o755); err != nil {
				t.Fatal(err)
			}
			if installed {
				h.must("setup", "--yes", "claude-code")
			}
			s := h.serve()
			free := turn(t)
			a := s.spawn("Agent: work", map[string]any{"working_directory": h.work})
			if a.str("status") == "running" {
				a = s.settle(a.str("job_id"))
			}
			free()
			if a.str("status") != "complete" {
				t.Fatalf("got %s", a.text)
			}
			allUsed(t, m)
			absent(t, filepath.Join(filepath.Dir(h.work), "canary"))
			absent(t, filepath.Join(h.work, "canary"))
			events := h.must("events", "list", "--type", "permission.decided", "--json")
			if strings.Count(events, `"type": "permission.decided"`) != 3 || !strings.Contains(events, "writes-outside") || !strings.Contains(events, "project-code") || !strings.Contains(events, `"instead_of": "ask"`) {
				t.Errorf("what was decided: %s", events)
			}
			calls := h.must("events", "list", "--type", "tool.called", "--json")
			if strings.Count(calls, `"type": "tool.called"`) != 4 {
				t.Errorf("what was called: %s", calls)
			}
		})
	}
}
