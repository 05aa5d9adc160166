//go:build unix

package e2e

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"reprise/internal/fakemodel"
)

// The MCP server that a route asks for is started by each other client in its own form: its
// tool is offered to the model, called, and what it answers reaches the model; the servers
// of the user's own settings are not there.
func TestTaskServersOfOtherClients(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	tool := regexp.MustCompile(`^[A-Za-z0-9_.-]*notes[A-Za-z0-9_.-]*state_context$`)
	for _, name := range []string{"codex", "gemini", "copilot"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := `(?s)Session: (?P<sid>sess_\d+_[a-z0-9]{6}).*Find out what has to be known`
			ask := fakemodel.Rule{Name: "ask the server", When: fakemodel.When{Task: task, Turn: 1}, Reply: func(q *fakemodel.Request) fakemodel.Answer {
				for _, offered := range q.Tools {
					if tool.MatchString(offered) {
						return call(offered, map[string]any{})
					}
				}
				return call("mcp__notes__state_context", map[string]any{}) // Codex offers a server as one
			}}
			h, m := withTask(t, name, ask,
				fakemodel.Rule{Name: "write", When: fakemodel.When{Task: task, Turn: 2}, Say: shell(taskReport)},
				fakemodel.Rule{Name: "say", When: fakemodel.When{Task: task}, Say: say(answerOf("specs/001_mend_add/reports/research-001.md"))})
			h.must("task", "edit", "1", "--language", "go")
			project := h.read(filepath.Join(h.work, ".reprise", "project.yaml"))
			h.write(filepath.Join(h.work, ".reprise", "project.yaml"), project+"routes:\n  go:\n    servers:\n      notes: {command: ["+program("reprise")+", mcp, --toolsets, state]}\n")
			h.must("trust", "--yes")
			free := turn(t)
			defer free()
			r := h.reprise(append([]string{"task", "research", "1", "--agent", name}, modelOf(name)...)...)
			if r.code != 0 || !strings.Contains(r.out, "research completed") || strings.Contains(r.err, "is not there") {
				t.Errorf("%s%s", r.out, r.err)
			}
			answered := m.Matching(func(q *fakemodel.Request) bool { return q.Turn() == 2 && strings.Contains(q.Results(), "focus") })
			if len(answered) == 0 {
				t.Errorf("the server did not answer\n%s", strings.Join(texts(m), "\n--\n"))
			}
			for _, q := range m.Requests() {
				if strings.Contains(strings.Join(q.Tools, " "), "hangs") {
					t.Errorf("a server of the user's own settings is there: %q", q.Tools)
				}
			}
			if out := h.must("task", "errors"); strings.Contains(out, "tool_failure") {
				t.Error(out)
			}
		})
	}
}
