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
