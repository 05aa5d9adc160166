//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/fakemodel"
)

// A run of each client is stopped in the middle of its work, and gone on with: the new one
// is in the same session, so that its model is told what was asked and done before, and works
// in the same directory.
func TestStoppedRunIsGoneOnWith(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	for _, name := range fakemodel.TrialClients() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const part = "Make the part in two steps"
			h, m := looped(t, name, nil,
				fakemodel.Rule{Name: "end", When: fakemodel.When{Result: "the second is done"}, Say: say("Both steps are done.")},
				fakemodel.Rule{Name: "second", When: fakemodel.When{User: "Now the second"}, Say: shell("echo two >> part.txt; echo the second is done")},
				fakemodel.Rule{Name: "first", When: fakemodel.When{User: part, Turn: 1}, Say: shell("echo one > part.txt; echo the first is done")},
				fakemodel.Rule{Name: "long", When: fakemodel.When{Result: "the first is done"}, Say: fakemodel.Answer{Hang: true}})
			h.write(filepath.Join(h.dir, ".claude", "settings.json"), `{"permissions":{"allow":["Bash"]}}`)
			free := turn(t)
			defer free()
			id := strings.TrimSpace(h.must(append([]string{"spawn", "--detach", "--agent", name, "--timeout", "5m", part + "."}, modelOf(name)...)...))
			until(t, 3*time.Minute, "its second turn", func() bool {
				for _, q := range m.Requests() {
					if strings.Contains(q.Results(), "the first is done") {
						return true
					}
				}
				return false
			})
			h.must("runs", "cancel", id)
			before := len(m.Requests())
			if out := h.must("runs", "resume", id, "Now the second step."); out != "Both steps are done.\n" {
				t.Errorf("its answer: %q", out)
			}
			told := ""
			for _, q := range m.Requests()[before:] {
				told += q.Text() + q.Results()
			}
			for _, want := range []string{part, "the first is done", "Now the second step."} {
				if !strings.Contains(told, want) {
					t.Errorf("the session was not told %q again", want)
				}
			}
			if data, err := os.ReadFile(filepath.Join(h.work, "part.txt")); err != nil || string(data) != "one\ntwo\n" {
				t.Errorf("part.txt: %q, %v", data, err)
			}
			var list []struct {
				ID, Status string
				Session    string `json:"session_id"`
				Resumes    string
				ResumedBy  string `json:"resumed_by"`
			}
			unmarshal(t, h.must("runs", "list", "--json"), &list)
			if len(list) != 2 || list[0].Resumes != id || list[1].ResumedBy != list[0].ID || list[0].Session != list[1].Session || list[0].Status != "completed" {
				t.Errorf("runs: %+v", list)
			}
		})
	}
}
