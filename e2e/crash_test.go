//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/internal/fakemodel"
)

// victims are the processes that a crash may take.
type victims struct{ server, supervisor, child int }

// TestCrash kills whoever may die, in every combination that differs, while a
// run has an agent and a grandchild that left its group and ignores SIGTERM.
// No process with the run's id may be left, and runs list must tell the truth.
func TestCrash(t *testing.T) {
	t.Parallel()
	linuxOnly(t, "looks for processes by their environment")
	for name, tc := range map[string]struct {
		kill func(victims) []int
		// wait is for the survivors to clean up; 0: nobody survives, the next command does it.
		wait   time.Duration
		status []string
	}{
		"server killed":           {func(v victims) []int { return []int{v.server} }, 20 * time.Second, []string{"killed"}},
		"supervisor killed":       {func(v victims) []int { return []int{v.supervisor} }, 20 * time.Second, []string{"failed", "killed"}},
		"child killed":            {func(v victims) []int { return []int{v.child} }, 20 * time.Second, []string{"failed", "killed"}},
		"server and child killed": {func(v victims) []int { return []int{v.server, v.child} }, 20 * time.Second, []string{"failed", "killed"}},
		"server and supervisor":   {func(v victims) []int { return []int{v.server, v.supervisor} }, 0, []string{"failed", "killed"}},
		"all three killed":        {func(v victims) []int { return []int{v.server, v.supervisor, v.child} }, 0, []string{"failed", "killed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, sub(map[string]any{"sync_window_seconds": 1}))
			s := h.serve()
			id := s.spawn("escape").str("job_id")
			var r runRecord
			until(t, 20*time.Second, "the agent runs and its grandchild has left its group", func() bool {
				r, _ = h.record(id)
				return r.Child != nil && r.Super != nil && len(ofRun(t, id)) >= 3
			})
			for i, pid := range tc.kill(victims{s.cmd.Process.Pid, r.Super.PID, r.Child.PID}) {
				err := syscall.Kill(pid, syscall.SIGKILL)
				if i > 0 && errors.Is(err, syscall.ESRCH) {
					continue // whoever survived the first was quicker in ending it
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if tc.wait > 0 {
				until(t, tc.wait, "those who live have ended the run's processes", func() bool { return len(ofRun(t, id)) == 0 })
			}
			// A supervisor that lives may still be writing down the end. Where nobody lives who
			// could, whoever asks first finds it out, and is told.
			asked := 0
			var list []map[string]any
			until(t, 20*time.Second, "runs list tells how the run ended", func() bool {
				asked++
				if err := json.Unmarshal([]byte(h.must("runs", "list", "--json")), &list); err != nil {
					t.Fatal(err)
				}
				return len(list) == 1 && list[0]["status"] != "running" && list[0]["status"] != "completing"
			})
			if left := ofRun(t, id); len(left) > 0 {
				t.Errorf("left after runs list: %v", left)
			}
			if !oneOf(list[0]["status"], tc.status) || list[0]["status_reason"] == "" {
				t.Errorf("runs list: %v, want status %q and a reason", list, tc.status)
			}
			if tc.wait == 0 && asked > 1 {
				t.Errorf("the truth was told when runs list was asked %d times, want the first", asked)
			}
			if out := h.must("runs", "logs", id); !strings.Contains(out, "escaped") {
				t.Errorf("the run's output is lost: %q", out)
			}
		})
	}
}

func oneOf(v any, list []string) bool {
	s, _ := v.(string)
	for _, l := range list {
		if s == l {
			return true
		}
	}
	return false
}

// A Claude Code that is killed leaves the shells of its Bash tool behind, in
// sessions of their own: the supervisor has to find them.
func TestCrashOfTheRealClient(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	linuxOnly(t, "looks for processes by their environment")
	m := model(t, rule("loop", fakemodel.When{Task: "loop"}, call("Bash", map[string]any{
		"command": "touch began; while true; do sleep 1; done", "description": "loop",
	})))
	h := newClaudeHome(t, m, sub(map[string]any{"sync_window_seconds": 1}))
	s := h.serve()
	free := turn(t)
	defer free()
	id := s.spawn("loop please", map[string]any{"working_directory": h.work}).str("job_id")
	until(t, 30*time.Second, "the shell loops", func() bool {
		if r, _ := h.record(id); r.done() {
			t.Fatalf("the run has ended: %s", h.must("runs", "show", "--json", id))
		}
		return exists(filepath.Join(h.work, "began"))
	})
	r, _ := h.record(id)
	if err := syscall.Kill(r.Child.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, 8*time.Second, "no process of the run is left", func() bool { return len(ofRun(t, id)) == 0 })
	if a := s.settle(id); a.str("status") != "failed" || !strings.Contains(a.str("error"), "SIGKILL") {
		t.Errorf("got %s", a.text)
	}
}
