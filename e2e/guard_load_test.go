//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/agent/dialect"
)

// A client runs the tool whose hook does not answer in time, so the guard has to
// answer on a machine that has no time, too: a thousand calls beside four busy
// programs for each processor. docs/benchmarks.md has what came of it.
func TestGuardUnderLoad(t *testing.T) {
	if os.Getenv("REPRISE_LONG_TESTS") == "" {
		t.Skip("it makes the machine busy for minutes, in which other tests would be late: REPRISE_LONG_TESTS=1")
	}
	const calls = 1000
	busy := 4 * runtime.NumCPU()
	h := &hooked{home: newHome(t, nil), program: program("reprise-hook")}
	h.data = filepath.Join(filepath.Dir(h.dir), "data")
	h.env = append(h.env, "REPRISE_HOME="+h.data)
	h.must("init", "--yes", "--name", "shop")
	long := strings.TrimSuffix(strings.Repeat("ls -la src | grep -v x && git log --oneline -3; ", 160), "; ")
	cases := []struct{ command, want string }{
		{"echo x > ../../canary", "writes-outside"},
		{"git push --force origin main", "push-over-protected"},
		{"cat /etc/passwd", `"ask"`},
		{long + "; rm -rf /", `"deny"`},
		{"ls -la", ""},
	}
	payload := func(command string) string {
		return h.payload("PreToolUse", `,"tool_name":"Bash","tool_use_id":"tu1","tool_input":{"command":"`+command+`"}`)
	}
	h.hook("claude", "PreToolUse", payload("ls")) // it makes the plan
	for range busy {
		loop := exec.Command("/bin/sh", "-c", "while :; do :; done")
		if err := loop.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = loop.Process.Kill(); _ = loop.Wait() }()
	}
	var took []time.Duration
	late := 0
	limit := time.Duration(dialect.DeadlineMS("claude", "PreToolUse")) * time.Millisecond
	for i := range calls {
		c := cases[i%len(cases)]
		began := time.Now()
		r := h.hook("claude", "PreToolUse", payload(c.command))
		took = append(took, time.Since(began))
		if took[i] > limit {
			late++
		}
		if r.code != 0 || c.want == "" && r.out != "" || !strings.Contains(r.out, c.want) {
			t.Errorf("%.60q: exit %d, %s%s", c.command, r.code, r.out, r.err)
		}
	}
	slices.Sort(took)
	t.Logf("%d calls, %d busy programs, %d processors: half within %s, 99 of 100 within %s, all within %s, %d later than %s", calls, busy, runtime.NumCPU(), took[len(took)/2], took[len(took)*99/100], took[len(took)-1], late, limit)
	if late > 0 {
		t.Errorf("%d of %d calls were later than %s", late, calls, limit)
	}
}
