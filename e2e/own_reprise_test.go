//go:build unix

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// Without the operating system's sandbox an agent can start any program, ours
// too. A reprise inside a run does no more with the memory than the run may.
func TestRepriseInsideARunKeepsItsLimits(t *testing.T) {
	t.Parallel()
	h := newHome(t, sub(map[string]any{"sandbox": "off"}))
	h.must("memory", "init")
	h.must("memory", "create", "project-site", "--content", "# Site\n\nthe secret port\n")
	before := tree(t, filepath.Join(h.memory, "blocks"))
	core := h.read(filepath.Join(h.memory, "core.md"))
	h.write(filepath.Join(filepath.Dir(h.dir), "mock-agent.sh"), `#!/bin/sh
case "$1" in --version) echo 'mock 1'; exit 0;; esac
read -r task
reprise memory append --title x --text y; echo "append $?"
reprise memory create project-made --content x; echo "create $?"
reprise memory update core --content spoilt; echo "update $?"
reprise memory sync; echo "sync $?"
printf '%s\n' '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}' \
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"append_episodic_log","arguments":{"entry":"from a run"}}}' \
  '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"append_file","arguments":{"path":"x.md","text":"from a run"}}}' | reprise mcp
reprise memory read project-site; echo "read $?"
reprise memory search secret; echo "search $?"
exit 0
`)
	s := h.serve()
	for _, allow := range []bool{false, true} {
		a := s.spawn("try", map[string]any{"allow_memory_read": allow})
		got := a.str("result")
		if a.str("status") != "complete" {
			t.Fatalf("got %s", a.text)
		}
		for _, what := range []string{"append", "create", "update", "sync"} {
			if strings.Contains(got, what+" 0\n") || !strings.Contains(got, what+" ") {
				t.Errorf("allow_memory_read %v: %s was not refused: %s", allow, what, got)
			}
		}
		if seen := strings.Contains(got, "the secret port"); seen != allow {
			t.Errorf("allow_memory_read %v, and the memory was read: %v: %s", allow, seen, got)
		}
	}
	if after := tree(t, filepath.Join(h.memory, "blocks")); after != before || h.read(filepath.Join(h.memory, "core.md")) != core || exists(filepath.Join(h.memory, "x.md")) {
		t.Errorf("the memory was changed:\n%s\nfrom\n%s", after, before)
	}
}
