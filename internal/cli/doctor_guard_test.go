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
	h := setup.InstalledHooks{Client: "codex", File: filepath.Join(home, ".codex", "hooks.json")}
	if err := os.MkdirAll(filepath.Join(home, ".codex"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := `{"hooks":{"PreToolUse":[{"matcher":"*","hooks":[{"type":"command","command":"/x/reprise-hook codex PreToolUse","timeout":75}]}],"Stop":[{"hooks":[{"type":"command","command":"/x/reprise-hook codex Stop"}]}]}}`
	if err := os.WriteFile(h.File, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if h.Hooks, err = setup.FindHooks(h.File, "codex"); err != nil || len(h.Hooks) != 2 {
		t.Fatalf("%v %v", h.Hooks, err)
	}
	d := setup.Doctor{Setup: setup.Setup{Where: setup.Where{Env: config.Env{GOOS: "linux", Vars: map[string]string{"HOME": home}}, Dir: home, Root: home, Machine: t.TempDir()}}}
	ok := []setup.Finding{{Status: setup.OK, Message: "codex: proved"}}
	say := func(t *testing.T, h setup.InstalledHooks, found []setup.Finding) (string, bool) {
		t.Helper()
		out, failed := "", false
		for _, f := range guardTrust(d, h, found) {
			out, failed = out+f.Message+"\n", failed || f.Status == setup.Fail
		}
		return out, failed
	}
	if out, failed := say(t, h, ok); !failed || !strings.Contains(out, "until you have accepted them as they are: PreToolUse\n") {
		t.Errorf("not accepted: %v %s", failed, out)
	}
	if out, failed := say(t, setup.InstalledHooks{Client: "claude-code"}, ok); failed || out != "codex: proved\n" {
		t.Errorf("another client: %v %s", failed, out)
	}
	accept := func(hash string) {
		t.Helper()
		accepted := "[hooks.state.'" + h.File + ":pre_tool_use:0:0']\ntrusted_hash = \"sha256:" + hash + "\"\n"
		if err := os.WriteFile(filepath.Join(home, ".codex", "config.toml"), []byte(accepted), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// What was accepted had another text: Codex runs none of it until it is accepted anew.
	accept("1fe9edfc196b3c7a89e14f335d28904752da803ff0c6209394ad07041126f7c2")
	if out, failed := say(t, h, ok); !failed || !strings.Contains(out, "until you have accepted them as they are: PreToolUse\n") {
		t.Errorf("changed since: %v %s", failed, out)
	}
	accept("efe9edfc196b3c7a89e14f335d28904752da803ff0c6209394ad07041126f7c2") // as Codex 0.171.0 has it
	if out, failed := say(t, h, ok); failed || !strings.Contains(out, "passes over Codex's own question") {
		t.Errorf("accepted: %v %s", failed, out)
	}
	bad := []setup.Finding{{Status: setup.Fail, Message: "it RAN"}}
	if out, failed := say(t, h, bad); !failed || out != "it RAN\n" {
		t.Errorf("failed before: %v %s", failed, out)
	}
	// A setting by which a client runs no hooks at all, which the proof's home has not.
	off := filepath.Join(home, ".claude", "settings.json")
	if err := os.MkdirAll(filepath.Dir(off), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(off, []byte(`{"disableAllHooks": true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, failed := say(t, setup.InstalledHooks{Client: "claude-code"}, ok); !failed || !strings.Contains(out, "claude-code runs no hooks here, by disableAllHooks in "+off) {
		t.Errorf("switched off: %v %s", failed, out)
	}
}
