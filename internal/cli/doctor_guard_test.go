package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/config"
	"reprise/internal/setup"
)

// The live proof passes over Codex's question of trust, so what the user answered
// there is part of what is said: without an answer the guard proves nothing.
func TestGuardTrust(t *testing.T) {
	home := t.TempDir()
	h := setup.InstalledHooks{Client: "codex", File: filepath.Join(home, ".codex", "hooks.json"), Hooks: []setup.Hook{{Event: "PreToolUse"}, {Event: "Stop"}}}
	d := setup.Doctor{Setup: setup.Setup{Where: setup.Where{Env: config.Env{GOOS: "linux", Vars: map[string]string{"HOME": home}}, Dir: home, Root: home}}}
	ok := []setup.Finding{{Status: setup.OK, Message: "codex: proved"}}
	say := func(t *testing.T, h setup.InstalledHooks, found []setup.Finding) (string, bool) {
		t.Helper()
		out, failed := "", false
		for _, f := range guardTrust(d, h, found) {
			out, failed = out+f.Message+"\n", failed || f.Status == setup.Fail
		}
		return out, failed
	}
	if out, failed := say(t, h, ok); !failed || !strings.Contains(out, "until you have accepted them: PreToolUse\n") {
		t.Errorf("not accepted: %v %s", failed, out)
	}
	if out, failed := say(t, setup.InstalledHooks{Client: "claude-code"}, ok); failed || out != "codex: proved\n" {
		t.Errorf("another client: %v %s", failed, out)
	}
	if err := os.MkdirAll(filepath.Join(home, ".codex"), 0o700); err != nil {
		t.Fatal(err)
	}
	accepted := "[hooks.state.\"" + h.File + ":pre_tool_use:0:0\"]\ntrusted_hash = \"sha256:x\"\n"
	if err := os.WriteFile(filepath.Join(home, ".codex", "config.toml"), []byte(accepted), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, failed := say(t, h, ok); failed || !strings.Contains(out, "passes over Codex's own question") {
		t.Errorf("accepted: %v %s", failed, out)
	}
	bad := []setup.Finding{{Status: setup.Fail, Message: "it RAN"}}
	if out, failed := say(t, h, bad); !failed || out != "it RAN\n" {
		t.Errorf("failed before: %v %s", failed, out)
	}
}
