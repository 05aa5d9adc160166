package cli_test

import (
	"slices"
	"testing"

	"reprise/internal/agent/dialect"
	"reprise/internal/setup"
)

// The matrix says which hooks are set up; setup has a list of its own, in the
// order of a session. They are the same, or the matrix lies.
func TestMatrixSaysWhatSetupInstalls(t *testing.T) {
	for _, m := range dialect.Manifests() {
		client := m.Client
		if client == "claude" {
			client = "claude-code"
		}
		installed := setup.HookEvents(client)
		for _, s := range m.Events {
			if slices.Contains(installed, s.Name) != s.Install {
				t.Errorf("%s %s: the manifest says set up = %v, setup does otherwise", m.Client, s.Name, s.Install)
			}
		}
		for _, name := range installed {
			if m.Event(name) == nil {
				t.Errorf("%s %s is set up and in no manifest", m.Client, name)
			}
		}
	}
}
