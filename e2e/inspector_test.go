//go:build unix

package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// The inspector is a second, independent client: it checks what it is given
// against the protocol's own schemas.
func TestInspectorListsAndCalls(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	path, engine := client(t, "mcp-inspector"), node(t)
	h := newHome(t, nil)
	free := turn(t)
	defer free()
	// It hands servers a bare environment, so the settings file is named.
	inspect := func(args ...string) map[string]any {
		t.Helper()
		r := h.run(engine, append([]string{path, "--cli", program("reprise"), "mcp", "-e", "REPRISE_CONFIG=" + h.config}, args...)...)
		var out map[string]any
		if err := json.Unmarshal([]byte(r.out), &out); err != nil || r.code != 0 {
			t.Fatalf("inspector %q: exit %d, %v\n%s%s", args, r.code, err, r.out, r.err)
		}
		return out
	}
	list, _ := json.Marshal(inspect("--method", "tools/list"))
	for _, name := range []string{"spawn_agent", "check_agent", "append_file"} {
		if !strings.Contains(string(list), `"`+name+`"`) {
			t.Errorf("no %s in %s", name, list)
		}
	}
	inspect("--method", "tools/call", "--tool-name", "append_file",
		"--tool-arg", "path="+filepath.Join(h.memory, "blocks", "episodic-2026-11.md"), "--tool-arg", "text=by the inspector")
	if got := h.read(filepath.Join(h.memory, "blocks", "episodic-2026-11.md")); got != "by the inspector" {
		t.Errorf("the file holds %q", got)
	}
}

// Inside a project the inspector lists the tools of its state, and what it calls is
// written and committed in the agent's repository.
func TestInspectorWritesState(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	path, engine := client(t, "mcp-inspector"), node(t)
	h := newHome(t, nil)
	h.gitIn(h.work, "init", "-q", "-b", "main")
	h.must("init", "--yes", "--name", "shop")
	free := turn(t)
	defer free()
	inspect := func(args ...string) string {
		t.Helper()
		args = append([]string{path, "--cli", program("reprise"), "mcp", "--toolsets", "state", "-e", "REPRISE_CONFIG=" + h.config, "-e", "REPRISE_AGENT=ann"}, args...)
		r := h.run(engine, args...)
		if !json.Valid([]byte(r.out)) || r.code != 0 {
			t.Fatalf("inspector %q: exit %d\n%s%s", args, r.code, r.out, r.err)
		}
		return r.out
	}
	list := inspect("--method", "tools/list")
	for _, name := range []string{"state_context", "state_log", "state_learn", "state_decide", "state_handoff", "state_search", "state_scratch", "state_focus", "state_note", "state_artifact", "state_checkpoint"} {
		if !strings.Contains(list, `"`+name+`"`) {
			t.Errorf("no %s in %s", name, list)
		}
	}
	inspect("--method", "tools/call", "--tool-name", "state_log", "--tool-arg", "message=Looked at by the inspector.", "--tool-arg", "type=plan")
	if got := inspect("--method", "tools/call", "--tool-name", "state_context"); !strings.Contains(got, "Looked at by the inspector.") {
		t.Error(got)
	}
	desk := filepath.Join(h.work, ".reprise", "agent")
	if got := h.gitIn(desk, "log", "-1", "--format=%an: %s"); got != "ann: plan: Looked at by the inspector.\n" {
		t.Error(got)
	}
}
