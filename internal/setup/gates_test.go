package setup

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/guard"
	"reprise/internal/hook"
)

// The end of a turn and of a subagent is waited for while tests run, and a call that
// is judged while a person may be asked, which is up to what the client grants of
// itself; every other hook has seconds.
func TestHookTimeouts(t *testing.T) {
	for _, tc := range []struct {
		client, event string
		want          int
	}{
		{"claude-code", "Stop", 600}, {"claude-code", "SubagentStop", 600}, {"codex", "Stop", 600}, {"gemini", "AfterAgent", 600},
		{"copilot", "agentStop", 600}, {"copilot", "subagentStop", 600},
		{"claude-code", "PreToolUse", 60}, {"claude-code", "PermissionRequest", 60}, {"codex", "PreToolUse", 600}, {"codex", "PermissionRequest", 600},
		{"gemini", "BeforeTool", 60}, {"copilot", "preToolUse", 30}, {"copilot", "permissionRequest", 30},
		{"claude-code", "PostToolUse", 10}, {"claude-code", "SessionEnd", 10}, {"codex", "SessionEnd", 3}, {"codex", "Interrupt", 3}, {"gemini", "AfterTool", 13}, {"claude-code", "UserPromptSubmit", 13},
	} {
		if got := hookTimeout(tc.client, tc.event); got != tc.want {
			t.Errorf("%s %s: %d s, want %d", tc.client, tc.event, got, tc.want)
		}
	}
}

// A client that cuts off a hook runs the tool: however long the guard may wait for
// a person, every client that setup wrote its settings for waits longer.
func TestClientsOutwaitTheGuard(t *testing.T) {
	g := &hook.Guarding{Rules: guard.Rules{Full: true, WaitMS: 24 * 3600 * 1000}}
	for _, client := range HookClients() {
		judged := 0
		for _, spec := range hookSpecs(client) {
			ev := dialect.Event{Client: hookWord(client), Name: spec.event, Kind: dialect.ManifestOf(hookWord(client)).Event(spec.event).Kind}
			if !hook.Judges(ev.Kind) {
				continue
			}
			judged++
			if got, most := time.Duration(hookTimeout(client, spec.event))*time.Second, g.Patience(ev); got < most+3*time.Second {
				t.Errorf("%s %s: the client waits %s, the guard %s", client, spec.event, got, most)
			}
		}
		if judged == 0 {
			t.Errorf("%s: nothing is judged", client)
		}
	}
}

// What an older setup wrote is brought up to date, a dry run says so, and doctor
// tells which hooks the client gives up on too early.
func TestShortTimeoutsAreNoticed(t *testing.T) {
	for client, tc := range map[string]struct{ event, now, old, want string }{
		"claude-code": {"PreToolUse", `"timeout": 60`, `"timeout": 10`, "PreToolUse after 10 s in place of 60"},
		"codex":       {"PreToolUse", `"timeout": 600`, `"timeout": 10`, "PreToolUse after 10 s in place of 600"},
		"gemini":      {"BeforeTool", `"timeout": 60000`, `"timeout": 10000`, "BeforeTool after 10 s in place of 60"},
		"copilot":     {"preToolUse", `"timeoutSec": 30`, `"timeoutSec": 10`, "preToolUse after 10 s in place of 30"},
	} {
		t.Run(client, func(t *testing.T) {
			s := newSetup(t)
			program := t.TempDir() + "/reprise-hook"
			put(t, program, "")
			file, err := s.HookFile(client, User)
			if err != nil {
				t.Fatal(err)
			}
			a := all(client, User)
			a.NoMCP, a.Skill, a.HookProgram = true, "", program
			if _, err := s.InstallAll(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			said := func() string {
				h, err := FindHooks(file, client)
				if err != nil {
					t.Fatal(err)
				}
				return fmt.Sprint(Doctor{Setup: s, Program: t.TempDir() + "/x"}.hooksOf(InstalledHooks{client, User, file, h, "/bin/sh"}))
			}
			good := get(t, file)
			if got := said(); strings.Contains(got, "too early") {
				t.Errorf("of what was just set up: %s", got)
			}
			at := strings.Index(good, tc.event)
			put(t, file, good[:at]+strings.Replace(good[at:], tc.now, tc.old, 1))
			if got := said(); !strings.Contains(got, "too early on "+tc.want+",") {
				t.Errorf("an old timeout: %s", got)
			}
			dry := a
			dry.DryRun = true
			parts, err := s.InstallAll(t.Context(), dry)
			if err != nil || len(parts) != 1 || parts[0].Action != "changed" || !strings.Contains(parts[0].Diff, tc.now) {
				t.Errorf("a dry run: %+v, %v", parts, err)
			}
			if _, err := s.InstallAll(t.Context(), a); err != nil || get(t, file) != good {
				t.Errorf("set up again: %v\n%s", err, get(t, file))
			}
		})
	}
}
