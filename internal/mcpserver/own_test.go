package mcpserver

import (
	"slices"
	"testing"

	"reprise/internal/guard"
)

// The guard lets reprise's own tools pass by their names, so that it must know all of
// them, and no others.
func TestTheGuardKnowsTheTools(t *testing.T) {
	var have []string
	for _, tool := range inventory() {
		have = append(have, tool.name)
	}
	slices.Sort(have)
	if known := slices.Sorted(slices.Values(guard.OwnTools())); !slices.Equal(have, known) {
		t.Errorf("the server has %q, the guard knows %q", have, known)
	}
}
